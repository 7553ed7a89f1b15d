"""What a page's head says, and the words by which a search finds a lesson."""

import base64
import re

import pytest
from nbformat.v4 import new_markdown_cell, new_notebook

from kit import head
from tools.lesson import find, parse, paths, read
from tools.setting import NOTEBOOKS

HERE = "notebooks/05_orthogonal_features"


def test_a_lesson_is_described_by_what_its_box_says_one_can_do():
    box = "> **9 minutes.** Needs: 01.\n>\n> Afterwards you can weigh\n> $x^\\top y$. And more."
    made = new_notebook(cells=[new_markdown_cell(f"# Weigh\n\n{box}")])
    assert head.description(parse(made, "77")) == "Weigh xᵀy."
    assert head.description().startswith("Executable notebooks")


@pytest.mark.parametrize("path", paths(), ids=lambda path: path.stem)
def test_each_lesson_has_a_description_of_its_own_in_plain_words(path):
    said = head.description(read(path))
    assert said != head.description()
    assert said.endswith(".")
    assert not set(said) & set("*`$\\[<")


def test_the_glossary_has_the_names_of_a_word_in_italics_and_a_theorem_is_found_by_whose_it_is():
    said = "- **map**: a *plan*, $a * b * c$. By *Abel's theorem* it is **one**. [05](05_a.ipynb)\n"
    assert head.terms(said) == {"05": ["map", "plan", "Abel's theorem", "Abel"]}


def test_the_head_of_a_lesson_has_its_description_and_its_words():
    assert re.findall(r'<meta name="(\w+)" content=".+" />', head.tags(HERE)) == [
        *("description", "keywords"),
    ]


def test_what_is_typed_for_a_folder_finds_each_of_its_pages():
    assert "multiple choice" in head.words("kit/pages/quizzes/3_attention")
    assert "multiple choice" not in head.words("kit/pages/speed")


def test_the_pictures_are_the_first_figures_of_lesson_00():
    for number, figure in enumerate(read(find("00")).figures[:2], start=1):
        png = (NOTEBOOKS / f"picture_{number}.png").read_bytes()
        assert png == base64.b64decode(figure.png)
