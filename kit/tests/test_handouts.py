"""The rules by which the course is printed; `make test-kit` sets the pages and looks at them."""

import re

import nbformat
import pytest

from kit import handouts, site
from tests.checkout import text as file
from tools.lesson import parse

from .toy import figure, notebook, prints, text

HERE = "notebooks/09_two"


@pytest.fixture(scope="module")
def stage(tmp_path_factory):
    """What is printed of the repository."""
    return handouts.stage(tmp_path_factory.mktemp("pdf"))


@pytest.fixture
def small(tmp_path):
    """A lesson in a part, one before all parts, exercises, a project and two works."""

    def put(name, *cells):
        path = tmp_path / f"notebooks/{name}.ipynb"
        path.parent.mkdir(parents=True, exist_ok=True)
        nbformat.write(notebook(*cells), path)

    stub, install = (nbformat.v4.new_code_cell(source) for source in ("def f(): ...", "%pip"))
    button, install.id = text("[![In Colab](https://a)](https://b)"), "install"
    button.id = "colab"
    sheet = [button, install, text("# Exercises 09: turns"), stub, text("YOUR ANSWER HERE")]
    put("00_zero", text("# Zero\n\nSee lesson 09."))
    put("09_two", text("# Turn `x`\n\nRahimi & Recht (2007), see lesson 00."), stub)
    put("projects/p1_do", text("# Do"))
    put("exercises/09_two", *sheet)
    quiz = tmp_path / "kit/pages/quizzes/1_attention.md"
    quiz.parent.mkdir(parents=True)
    quiz.write_text("# Page\n\n## Answers\n", encoding="utf-8")
    works = (
        "# References\n\nAll of them.\n\n### abel-1826\n\nOf old.\n\n### rahimi-2007\n\nFeatures."
    )
    (tmp_path / "notebooks/references.md").write_text(f"{works}\n", encoding="utf-8")
    (tmp_path / "notebooks/glossary.md").write_text("# Symbols\n", encoding="utf-8")
    return site.Site(tmp_path)


def pages(course):
    """The pages of a course before pandoc, with its references as pandoc leaves them."""
    found = {}
    for name, path in course.files.items():
        whole = handouts.notebook if path.suffix == ".ipynb" else handouts.page
        found[handouts.label(name)] = whole(course, name)
    listed = re.sub(r"```(?:\{=typst\})?\n?", "", found["references"])
    return found | {"references": listed}


def test_a_string_of_typst_says_what_it_was_made_of():
    assert handouts.quoted('φ "b" \\n\tc\n') == r'"φ \"b\" \\n\tc\n"'


def test_code_that_draws_is_left_out_and_what_it_drew_and_said_is_there():
    cells = [prints("one\n"), figure("A line.", "hide-input", caption="It rises.")]
    said = [handouts.printed(cell) for cell in parse(notebook(*cells), "05").cells]
    assert said[0][0] == '```{=typst}\n#code("secret()")\n```'
    assert said[0][1] == '```{=typst}\n#printed("one")\n```'
    assert said[1] == [
        '```{=typst}\n#picture("/pictures/05.1.png", "05.1", "A line.", "It rises.")\n```'
    ]


def test_a_sheet_of_exercises_has_its_stubs_and_nothing_for_a_screen(small):
    said = handouts.notebook(small, "notebooks/exercises/09_two")
    assert said.startswith("# Exercises 09: turns `<exercises-09>`{=typst}\n")
    assert "def f(): ..." in said
    assert not re.search(r"Colab|%pip|YOUR ANSWER", said)


def test_no_solution_is_printed(stage):
    assert [name for name in stage.files if "solutions" in name] == []
    said = "".join(handouts.notebook(stage, name) for name in stage.files if "exercises/" in name)
    assert "BEGIN SOLUTION" not in said
    assert said.count("raise NotImplementedError()") > 40


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("[one](00_zero.ipynb)", "[one](#lesson-00)"),
        ("[one](exercises/09_two.ipynb)", "[one](#exercises-09)"),
        ("[R](references.md#rahimi-2007)", "[R](#rahimi-2007)"),
        ("[all](references.md)", "[all](#references)"),
        ("[made](../Makefile)", "made"),
        ("[out](https://x.org)", "[out](https://x.org)"),
        ("![Two rings](picture.png)", "![Two rings](/notebooks/picture.png)"),
    ],
)
def test_a_link_leads_into_the_book_or_to_an_address_and_never_to_a_file(small, said, expected):
    assert handouts.inside(said, HERE, small.files) == expected


def test_a_link_that_leads_nowhere_is_refused(small):
    with pytest.raises(ValueError, match=r"09_two leads to 05_gone\.ipynb, which is nowhere"):
        handouts.inside("[gone](05_gone.ipynb)", HERE, small.files)


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("$$a\n- b\n= c$$", "$$a - b = c$$"),
        ("so $a\n- b$ and\n- a list", "so $a - b$ and\n- a list"),
        ("> $$a\n> - b$$", "> $$a - b$$"),
        ("```\n$a\n- b$\n```", "```\n$a\n- b$\n```"),
    ],
)
def test_a_formula_stands_on_one_line_as_none_of_its_lines_begins_a_list(said, expected):
    assert handouts.joined(said) == expected


def test_every_link_of_every_page_leads_to_a_page_of_the_book_or_to_a_work(stage):
    known = {handouts.label(name) for name in stage.files} | stage.works
    found = [t for said in pages(stage).values() for t in re.findall(r"\]\(#([\w-]+)\)", said)]
    assert set(found) - known == set()
    assert len(found) > 500


def test_the_book_has_each_lesson_below_its_part_and_its_exercises_right_after_it(small):
    said = handouts.book(small, pages(small))
    order = re.findall(r'include "/pages/(\S+)\.typ"|#part\("(.*?)",? ?|(#metadata.*?)>', said)
    assert ["".join(found) for found in order] == [
        *("lesson-00", "Attention", "lesson-09", "exercises-09"),
        *("Projects", "project-p1", "glossary"),
        *("#metadata(none) <abel-1826", "#metadata(none) <rahimi-2007"),
        *("For lecturers", "quiz-1_attention"),
    ]
    assert '#part("Attention", ("09", "Turn x", "' in said


def test_a_quiz_has_its_answers_on_a_later_page(small):
    said = handouts.page(small, "kit/pages/quizzes/1_attention")
    assert "#pagebreak()\n```\n\n## Answers" in said


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        ("word " * 200 + "\n\n## End\n\nfew words", None),  # as much as a page has
        ("# T\n\nmany\n\n" + "word " * 89 + "\n\n## End\n\nfew words", "word "),
        ("# T\n\nmany\n\n## Last\n\n" + "word " * 95, "## Last"),
        ('# T\n\n```{=typst}\n#picture("a")\n```\n\nfew words\n', "few words"),
    ],
)
def test_the_last_paragraphs_stay_together_and_are_no_lonely_page(said, kept):
    found = handouts.together(said).partition("//together\n```\n\n")[2]
    assert found.startswith(kept) if kept else found == ""


def test_a_handout_has_its_lesson_its_exercises_and_the_works_it_cites(small):
    led = {"lesson-09": "#link(<rahimi-2007>)[R]", "exercises-09": ""}
    said = handouts.handout(small, HERE, pages(small) | led)
    assert re.findall(r'"/pages/(\S+)\.typ"', said) == ["lesson-09", "exercises-09"]
    assert 'title: "09 Turn x"' in said
    assert "== References\n#work[#metadata(none) <rahimi-2007> Features.]" in said
    assert "abel" not in said


def test_the_title_page_says_what_the_repository_says():
    said = handouts.first_words()
    assert said["title"] == "How kernels became linear attention"
    assert f"![{said['alt']}](notebooks/picture.png)" in file("README.md")
    assert said["licence"].endswith("(CC BY 4.0)")
    assert f"## {said['edition'].removeprefix('Edition ')}\n" in file("CHANGELOG.md")
