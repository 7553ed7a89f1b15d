"""The reader of a built lesson finds what is there, and puts it where it belongs."""

import nbformat
import pytest

from tools import lesson
from tools.lesson import Cell

BOX = "# Weigh\n\n> **9 minutes.** Needs: 01.\n>\n> Afterwards you can weigh.\n\nHi."
CLAIM = "**The second weight is twice as large as the first.**"


def output(kind, **parts):
    return nbformat.v4.new_output(kind, **parts)


@pytest.fixture
def toy():
    told = {"image/png": {"alt": "A line.", "caption": "It rises."}}
    data = {"image/png": "aGk=", "text/plain": "A line.\n[1] line: 2 points"}
    table = {"text/html": "<table><tr><td>0.5</td></tr></table>"}
    text, code = nbformat.v4.new_markdown_cell, nbformat.v4.new_code_cell
    cells = [
        text(
            f"{BOX}\n\n## 1. Scales\n\n{CLAIM} **Layer norm.**\n\n**Before you run this:** 0 or 1?"
        ),
        code(
            "show()",
            outputs=[
                output("stream", text="x = 0.25\n"),
                output("display_data", data=data, metadata=told),
                output("display_data", data={"text/markdown": "*It rises.*", "text/plain": "-"}),
                output("display_data", data=table),
            ],
            metadata={"tags": ["hide-input"]},
        ),
        text("It is one.\n\n```\n## none\n# of these\n```"),
        text("### Deeper\n\nMore."),
        code("x", outputs=[output("display_data", data=data, metadata=told)]),
        text("## Take away\n\n- All."),
    ]
    return lesson.parse(nbformat.v4.new_notebook(cells=cells), "09")


def test_a_lesson_has_title_box_and_sections_by_their_numbers_or_names(toy):
    assert (toy.number, toy.title, toy.minutes) == ("09", "Weigh", 9)
    assert toy.box == ["**9 minutes.** Needs: 01.", "Afterwards you can weigh."]
    assert [section.name for section in toy.sections] == ["0", "1", "Take away"]
    expected = [(1, "Weigh"), (2, "1. Scales"), (3, "Deeper"), (2, "Take away")]
    assert toy.headings == expected


def test_a_section_says_runs_prints_and_draws_what_stands_in_it(toy):
    section = toy.section("1")
    assert toy.section("0").texts == [f"{BOX}\n\n"]
    assert len(section.texts) == 3
    assert section.code == ["show()", "x"]
    printed = [output.text for cell in section.cells for output in cell.outputs]
    assert printed[0] == "x = 0.25\n"
    assert printed[1].endswith("[1] line: 2 points")
    assert "0.5" in printed[2]
    assert [(f.number, f.alt, f.caption) for f in section.figures] == [
        ("09.1", "A line.", "It rises."),
        ("09.2", "A line.", "It rises."),
    ]
    assert [cell.folded for cell in section.cells if cell.kind == "code"] == [True, False]


def test_a_question_stands_in_a_text_and_in_no_code(toy):
    assert toy.questions == ["0 or 1?"]
    assert lesson.questions(Cell("markdown", "so. **Before you read on**, guess.")) == ["guess."]
    assert lesson.questions(Cell("code", "x = '**Before you run this:** 1'")) == []
