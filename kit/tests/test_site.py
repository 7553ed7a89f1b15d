"""The rules by which the web site is made of the repository; `make test-kit` looks at the pages."""

import json
import os
import re
from pathlib import Path

import nbformat
import pytest

from kit import need, npm, site
from tests.support.checkout import text
from tools.lesson import ANSWER, headings, paths
from tools.lesson import read as lesson
from tools.references import CITED, works

from . import toy

ADDRESSED = re.compile(r".* <(.+)>$")  # a line of a toctree that names its page
SAID, SHEET = "# One\n\n## 3. Signs\n\nLook.", "# Exercises 04: waves"


@pytest.fixture(scope="module")
def stage(tmp_path_factory):
    """The sources of the site, laid out as for Sphinx."""
    folder = tmp_path_factory.mktemp("site") / "source"
    site.stage(folder)
    return folder


@pytest.fixture(scope="module")
def whole(stage):
    return site.Site(stage)


def drawn():
    """A notebook with a section 3, and two figures."""
    return nbformat.writes(toy.notebook(toy.text(SAID), toy.figure("A."), toy.figure("B.")))


@pytest.fixture
def small(tmp_path):
    """A site of two lessons, an appendix and two works, with the deck of a lecture.

    The first has a section 3 and two figures.
    """
    stage, slides = tmp_path / "source", tmp_path / "slides"
    names = ("04_one", "09_two", "a5_three", "exercises/04_one", "solutions/04_one")
    for name in names:
        path = stage / f"notebooks/{name}.ipynb"
        path.parent.mkdir(parents=True, exist_ok=True)
        nbformat.write(toy.notebook(), path)
    for name in ("04_one", "exercises/04_one"):
        path = stage / f"notebooks/{name}.ipynb"
        path.write_text(drawn(), encoding="utf-8")
    listed = "# References\n\n### rahimi-2007\n\nA. Rahimi.\n\n### bjorck-1967\n\nÅ. Björck.\n"
    (stage / "notebooks/references.md").write_text(listed, encoding="utf-8")
    slides.mkdir()
    (slides / "lecture_3.html").write_text("", encoding="utf-8")
    return site.Site(stage, built=tmp_path)


def texts_of(notebook):
    cells = json.loads(notebook)["cells"]
    return ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown"]


def read(whole, name):
    """The Markdown of a page as Sphinx gets it."""
    path = whole.files[name]
    said = whole.on_page(path.read_text(encoding="utf-8"), name)
    return "\n\n".join(texts_of(said)) if path.suffix == ".ipynb" else said


# The side bar


def test_every_page_is_in_the_side_bar_once(stage, whole):
    listed = []
    for name, path in whole.files.items():
        if path.suffix == ".md":
            said = path.read_text(encoding="utf-8")
            trees = re.findall(r"(?s)```\{toctree\}\n((?::.*?\n)*)\n(.*?)\n```", said)
            entries = [ADDRESSED.sub(r"\1", e) for _, tree in trees for e in tree.split("\n")]
            paths = [Path(os.path.normpath(Path(name).parent / entry)) for entry in entries]
            listed += [path.as_posix() for path in paths]
    assert sorted(listed) == sorted(whole.files.keys() - {"index"})


def test_each_part_of_the_lessons_ends_with_its_quiz(stage):
    said = (stage / "index.md").read_text(encoding="utf-8")
    for part in [*site.PARTS][:-1]:
        (tree,) = re.findall(rf"(?s):caption: {part}\n\n(.*?)\n```", said)
        (page,) = re.findall(r"(?m)^Quiz <(kit/pages/quizzes/\w+)>$", tree)
        assert text(f"{page}.md").startswith(f"# Quiz: {part}\n")


# Titles, and what lies beside a page


def test_a_figure_to_move_is_below_the_fold_of_its_answer_and_named_at_the_head(small, monkeypatch):
    monkeypatch.setattr(site.figures, "SCRIPTS", {"04.1": "waves", "04.2": "gram"})
    answer = toy.figure("A.", ANSWER)
    made = toy.notebook(toy.text(SAID), answer, toy.figure("B."))
    said = texts_of(small.on_page(nbformat.writes(made), "notebooks/04_one"))
    assert [re.findall(r"move-(\d\d-\d)", text) for text in said] == [
        *(["04-1", "04-2"], [], [], ["04-1"], ["04-2"]),
    ]
    assert said[2] == "</details>"


@pytest.mark.parametrize(
    ("name", "title", "expected"),
    [
        ("notebooks/04_one", "# Turn", "# 04 Turn"),
        ("notebooks/a5_three", "# Bound", "# a5 Bound"),
        ("notebooks/exercises/04_one", SHEET, SHEET),
        ("notebooks/solutions/04_one", SHEET, "# Solutions 04: waves"),
        ("notebooks/projects/p1_x", "# Build", "# p1 Build"),
        ("notebooks/projects/solutions/p1_x", "# Build", "# Solution of p1: Build"),
        ("notebooks/glossary", "# Symbols", "# Symbols"),
    ],
)
def test_a_title_has_its_number(small, name, title, expected):
    assert small.title(title, name) == expected


def test_a_lesson_has_buttons_to_run_and_to_exercise_and_a_line_of_what_else_there_is(small):
    runs = small.built / "lite/files/my/04_one.ipynb"
    runs.parent.mkdir(parents=True)
    runs.touch()
    buttons, line, _ = small.beside("notebooks/04_one").split("\n\n")
    assert re.findall(r"href='(.*?)'>(.*?)<", buttons) == [
        ("../lite/lab/index.html?path=my/04_one.ipynb", "Run it in the browser"),
        ("exercises/04_one.html", "Exercises"),
    ]
    said = line.removeprefix(site.BESIDE).split(" · ")
    assert [re.sub(r"\[(.*)\]\(.*\)|<a.*>(.*)</a>", r"\1\2", link) for link in said] == [
        "solutions",
        "notebook",
    ]
    assert "href='../04_one.html'>Lesson<" in small.beside("notebooks/exercises/04_one")
    assert small.beside("notebooks/glossary") == ""


# Links


ONE, SHEET_4 = "notebooks/04_one", "notebooks/exercises/04_one"
WORKS = "notebooks/references"


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("in lesson 04.", [("lesson 04", ONE, "")]),
        ("Lesson\n04's map", [("Lesson\n04", ONE, "")]),
        ("appendix a5 says", [("appendix a5", "notebooks/a5_three", "")]),
        ("lessons 04, 05 and\na5", [("04", ONE, ""), ("a5", "notebooks/a5_three", "")]),
        ("(Rahimi & Recht, 2007)", [("Rahimi & Recht, 2007", WORKS, "rahimi-2007")]),
        ("Björck et al. (1967)", [("Björck et al. (1967)", WORKS, "bjorck-1967")]),
        ("Figure 04.1.", [("Figure 04.1", ONE, "figure-04-1")]),
        (
            "figures 04.1, 09.1 and 04.2",
            [("04.1", ONE, "figure-04-1"), ("04.2", ONE, "figure-04-2")],
        ),
        ("exercise 04.3 (5", [("exercise 04.3", SHEET_4, "exercise-04-3")]),
        ("(04 §3; home)", [("04 §3", ONE, "section-04-3")]),
        *((said, []) for said in ("figure 04.3", "Figure 4.1 of the paper", "04 §1", "lesson 77")),
        *((said, []) for said in ("lesson 09 is this one", "Rahimi (1999)", "lesson 04% of")),
    ],
)
def test_a_lesson_a_work_or_a_place_that_is_named_leads_there_if_it_is_known(small, said, expected):
    found = small.named(said, "notebooks/09_two")
    assert [(said[begin:end], *to) for begin, end, *to in found] == expected


def test_an_answer_has_no_heading_as_a_fold_would_hide_the_sections_after_it():
    answers = [c for path in paths() for c in lesson(path).cells if ANSWER in c.tags]
    assert [c.source for c in answers if c.kind == "markdown" and headings(c.source)] == []
    assert len(answers) > 200


def test_the_page_of_a_lecture_leads_to_its_deck_and_its_handout(whole, small, monkeypatch):
    here, whole = "kit/pages/lectures/3_directions", site.Site(whole.stage, built=small.built)
    (small.built / "slides/lecture_3.pdf").write_text("", encoding="utf-8")
    monkeypatch.setattr(site.chromium, "PRINTS", True)
    said = whole.on_page("# Three\n\nSaid.", here)
    assert said.startswith(f"# Three\n\n{site.BESIDE}")
    assert re.findall(r"href='(\S+)'>|\]\((\S+)\)", said) == [
        ("../../../slides/lecture_3.html", ""),
        ("../../../slides/lecture_3.pdf", ""),
        ("", "handout_3.md"),
        ("handout_3.pdf", ""),
    ]
    monkeypatch.setattr(site.chromium, "PRINTS", False)
    assert "handout_3.pdf" not in whole.on_page("# Three\n\nSaid.", here)
    assert small.of_lecture("# Nine\n\nSaid.", "kit/pages/lectures/9_mine") == "# Nine\n\nSaid."


def test_a_work_is_headed_as_a_text_cites_it(whole):
    said = site.by_authors(
        "# R\n\n### a-1999\n\nÅ. B. Ab, C.-D.\nde Ef. On g. 1.\n\n### hi-2000\n\nHI. J.\n"
    )
    assert re.findall(r"(?m)^\((.+)\)=\n## (.+)\n\n", said) == [
        ("a-1999", "Ab & de Ef (1999)"),
        ("hi-2000", "HI (2000)"),
    ]
    headed = re.findall(r"(?m)^## (.+)$", read(whole, "notebooks/references"))
    assert len(headed) == len(works())
    assert {"Su et al. (2021)", "Schölkopf & Smola (2002)", "Mezzadri (2007)"} < set(headed)
    assert [name for name in headed if not re.fullmatch(CITED, name)] == []


def test_no_place_in_a_lesson_is_named_to_a_lecturer_without_a_link(whole):
    linked, left = 0, []
    for name in [name for name in whole.files if name.startswith("kit/pages/")]:
        said = read(whole, name)
        linked += len(re.findall(r"\]\([^)]*#(?:figure|section|exercise)-", said))
        said = " ".join(re.sub(r"\[[^\]]*\]\([^)]*\)|`[^`]*`|\$[^$]*\$", "·", said).split())
        for begin, end, *_ in reversed(whole.named(said, name)):
            said, linked = f"{said[:begin]}·{said[end:]}", linked + 1
        left += re.findall(r"\b\w\d §\d|\b(?:figure|exercise)s?(?:[\s·,]|and)+\w\d\.\d", said)
    assert linked > 500
    assert left == []


def test_the_words_for_a_figure_are_its_description_or_the_first_sentence_of_a_long_one():
    short, rest = "It is 3.5 against m = 0.4, i.e. less.", " And so on" + ", on and on" * 40 + "."
    assert site.alt(short) == short
    assert site.alt(f"The error is 3.5 at 0.4.{rest}") == "The error is 3.5 at 0.4."
    assert site.alt(rest) == rest


# Tools that are missing, and who runs them


def test_without_npm_one_is_told_how_to_get_it(tmp_path, monkeypatch):
    monkeypatch.setattr("shutil.which", lambda name: None)
    with pytest.raises(SystemExit, match=r"npm is missing.*mathjax.*apt install npm"):
        npm.package("mathjax", tmp_path)


def test_without_a_package_one_is_told_of_the_extra():
    with pytest.raises(SystemExit, match=r"^no-such missing.*make site.*\[site\]"):
        need("site", no_such="no-such", re="re")


def test_a_site_says_what_it_was_made_without_and_the_command_that_makes_it(tmp_path):
    assert site.without(tmp_path).startswith("without slides (make slides), slides as PDF (make ")
    for name in ("slides/a.html", "lite/index.html"):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).touch()
    assert re.findall(r"\(.*?\)", site.without(tmp_path)) == ["(make slides)"]
    (tmp_path / "slides/a.pdf").touch()
    assert site.without(tmp_path) == ""
