"""Figures that answer back: each is small, asks nothing, and stands below a figure that exists."""

import re

import pytest

from kit import figures
from performer_course.figures import COLORS
from tools.lesson import paths, read
from tools.record import window
from tools.setting import ROOT

FOLDER = ROOT / "kit/look/static" / figures.FOLDER
FILES = sorted(FOLDER.glob("*"))
BYTES, LINES = 15_000, 150


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_a_file_is_small_names_no_address_and_moves_nothing_by_itself(file):
    text = file.read_text(encoding="utf-8")
    assert len(text.encode()) < BYTES
    assert len(text.splitlines()) < LINES
    assert not re.search(r"https?:|//\w+\.|\b(fetch|import|XMLHttpRequest|eval)\b", text)
    assert not re.search(r"\b(animate|animation|transition|setInterval|setTimeout)\b", text)


def test_each_figure_is_one_of_its_lesson_and_has_a_script():
    numbers = {figure.number for path in paths() for figure in read(path).figures}
    assert set(figures.SCRIPTS) <= numbers
    assert {file.stem for file in FILES} == {"shared", *figures.SCRIPTS.values()}


def test_the_head_in_the_figure_of_a_window_is_the_one_that_its_record_cuts():
    written = window.FILE.read_text(encoding="utf-8")
    assert written.partition(window.BEGIN)[2].partition(window.END)[0] == window.heads()


def test_its_colours_are_those_of_the_still_figures():
    written = (FOLDER / "shared.js").read_text(encoding="utf-8")
    assert tuple(re.findall(r'"(#\w{6})"', written)) == COLORS


def test_the_page_has_an_empty_place_below_such_a_figure_and_nothing_below_others():
    for number, script in figures.SCRIPTS.items():
        said = figures.below(number, "static")
        assert f"data-answers-back='{script}'></div>" in said
        sources = re.findall(r"<script defer src='static/([^']+)'>", said)
        assert sources == [f"figures/{name}.js" for name in ("shared", script)]
    assert figures.below("00.1") == figures.below(None) == ""
