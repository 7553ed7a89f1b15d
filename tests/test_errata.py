"""Appendix a1 measures ten mistakes, errata_list.md lists all others, and none is lost."""

import re
import runpy

import matplotlib.pyplot as plt

from tools.notebooks import NOTEBOOKS

SOURCE = NOTEBOOKS / "a1_errata.py"
TEN = ["003.6", "000.1", "001.1", "003.3", "003.2", "002.1", "000.10a", "002.3c", "004.6", "004.5a"]
ALSO = ["002.2b", "002.3b"]  # 003.3 and 000.10a in a second text


def test_each_mistake_of_the_list_is_in_the_text_or_on_the_page_and_no_other():
    page = SOURCE.with_name("errata_list.md").read_text(encoding="utf-8")
    others = re.findall(r"(?m)^\| (I?00\d\.\S+) \|", page)
    assert len(others) == len({*others}) == 47
    named = set(re.findall(r"(?<![\w.])I?00\d\.\d+[a-e]?\b", SOURCE.read_text(encoding="utf-8")))
    assert {*TEN, *ALSO} <= named <= {*TEN, *ALSO, *others}


def test_each_of_the_ten_is_off_as_printed_and_ten_times_nearer_as_corrected(monkeypatch):
    monkeypatch.chdir(NOTEBOOKS)
    verdicts = runpy.run_path(str(SOURCE))["verdicts"]
    plt.close("all")
    assert list(verdicts) == TEN
    off = {e: (abs(printed - it), abs(right - it)) for e, (it, printed, right) in verdicts.items()}
    assert {mistake: both for mistake, both in off.items() if not 10 * both[1] < both[0]} == {}
