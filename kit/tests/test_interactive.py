"""Each interactive figure belongs to a figure that exists, and has its real numbers."""

import re

from kit import figures
from tools.lesson import paths, read
from tools.record import window
from tools.setting import ROOT

FILES = sorted((ROOT / "kit/look/static" / figures.FOLDER).glob("*"))


def test_each_figure_is_one_of_its_lesson_and_has_a_script():
    numbers = {figure.number for path in paths() for figure in read(path).figures}
    assert set(figures.SCRIPTS) <= numbers
    assert {file.stem for file in FILES} == {"shared", *figures.SCRIPTS.values()}


def test_the_head_in_the_figure_of_a_window_is_the_one_that_its_record_cuts():
    written = window.FILE.read_text(encoding="utf-8")
    assert written.partition(window.BEGIN)[2].partition(window.END)[0] == window.heads()


def test_the_page_has_an_empty_place_below_such_a_figure_and_nothing_below_others():
    for number, script in figures.SCRIPTS.items():
        said = figures.below(number, "static")
        assert f'id="{figures.place(number)}" data-answers-back="{script}"></div>' in said
        sources = re.findall(r"<script defer src='static/([^']+)'>", said)
        assert sources == [f"figures/{name}.js" for name in ("shared", script)]
    assert figures.below("00.1") == figures.below(None) == ""
