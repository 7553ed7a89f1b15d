"""Appendix a1 measures ten mistakes, errata_list.md lists all others, and none is lost."""

import re
import runpy

import matplotlib.pyplot as plt

from tools.notebooks import NOTEBOOKS

SOURCE = NOTEBOOKS / "a1_errata.py"
TEN = ["003.6", "000.1", "001.1", "003.3", "003.2", "002.1", "000.10a", "002.3c", "004.6", "004.5a"]
ALSO = ["002.2b", "002.3b"]  # 003.3 and 000.10a in a second text
OTHERS = """
    000.2 000.3 000.4 I000.5 000.6a 000.6b 000.7a I000.7b 000.8 000.9a 000.9b I000.9 000.10b I000.11
    001.2 I001.3 I001.4 I001.5 I001.6
    I002.2a 002.3a 002.3d 002.3e 002.4 I002.4 002.5 I002.6
    003.1 003.4 003.5a 003.5b I003.7
    004.1 004.2a 004.2b I004.2c 004.2d I004.3a 004.3b 004.4a 004.4b 004.4c 004.5b I004.7 004.8
    I004.9 I004.10
"""


def test_each_mistake_of_the_list_is_in_the_text_or_on_the_page_and_no_other():
    page = SOURCE.with_name("errata_list.md").read_text(encoding="utf-8")
    assert re.findall(r"(?m)^\| (I?00\d\.\S+) \|", page) == OTHERS.split()
    named = set(re.findall(r"(?<![\w.])I?00\d\.\d+[a-e]?\b", SOURCE.read_text(encoding="utf-8")))
    assert {*TEN, *ALSO} <= named <= {*TEN, *ALSO, *OTHERS.split()}


def test_each_of_the_ten_is_off_as_printed_and_ten_times_nearer_as_corrected(monkeypatch):
    monkeypatch.chdir(NOTEBOOKS)
    verdicts = runpy.run_path(str(SOURCE))["verdicts"]
    plt.close("all")
    assert list(verdicts) == TEN
    off = {e: (abs(printed - it), abs(right - it)) for e, (it, printed, right) in verdicts.items()}
    assert {mistake: both for mistake, both in off.items() if not 10 * both[1] < both[0]} == {}
