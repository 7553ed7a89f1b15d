"""The first page of the site is README, laid out anew, and its hours are those of the lessons."""

import re

import pytest

from kit import front
from tests.support.checkout import text
from tools.lesson import find, paths, read

README = text("README.md")
ROUTES = ["One afternoon", "The path", "Everything"]


def test_the_first_page_begins_with_title_sentence_buttons_pictures_and_a_figure_to_move():
    said = front.page(README, browser=True)
    title, lead, buttons, *pictures = said.split("\n\n")
    assert title == "# How kernels became linear attention"
    assert lead.startswith("Executable notebooks")
    assert re.findall(r"href='(.+?)'", buttons) == [*front.BUTTONS.values()]
    for number, (drawn, caption) in enumerate((pictures[1:3], pictures[3:5]), start=1):
        assert drawn.endswith(f"(notebooks/00_start_here.ipynb#figure-00-{number})")
        assert caption.endswith(f"(figure 00.{number}).*")
    assert "_static/figures/window.js" in said
    assert said.count("Afterwards you can") == 1


def test_without_the_browsers_part_no_button_leads_there():
    assert front.BROWSER in front.page(README, browser=True)
    assert front.BROWSER not in front.buttons(browser=False)


def test_the_title_of_a_lesson_leads_to_it():
    row = "| [01](notebooks/01_polynomial_kernel.ipynb) | [Polynomial kernels: separate circles"
    assert row in front.page(README, browser=True)


@pytest.mark.parametrize("route", ROUTES)
def test_the_hours_of_a_route_are_those_of_its_lessons(route):
    hours, named = re.search(
        rf"\*\*{route}\*\*, (\d+) hours of reading[^:]*: ((?:.|\n)+?)\.\n", README
    ).groups()
    lessons = [read(find(number)) for number in re.findall(r"\b\d\d\b", named)]
    lessons = lessons or [read(path) for path in paths()]
    assert round(sum(lesson.minutes for lesson in lessons) / 60) == int(hours)


def test_the_path_and_the_afternoon_are_those_of_lesson_00():
    printed = "".join(output.text for cell in read(find("00")).cells for output in cell.outputs)
    for route, name in {"One afternoon": "one afternoon", "The path": "the path"}.items():
        named = re.search(rf"\*\*{route}\*\*, \d+ hours(?:.|\n)+?lessons ([\d,\sadn]+)", README)
        listed = re.search(rf"(?m)^{name} +[\d.]+ hours: (.+)$", printed)[1]
        assert re.findall(r"\b\d\d\b", named[1]) == listed.split()
