"""The rules by which the web site is made of the repository; `make test-kit` looks at the pages."""

import json
import re

import nbformat.v4 as nbf
import pytest

from kit import need, npm, site
from tools.lesson import ANSWER, headings, paths
from tools.lesson import read as lesson
from tools.references import CITED, works

SHEET, NAME = "# Exercises 04: waves", "04_random_fourier_features"
LESSON, EXERCISES, WORKS = (
    f"notebooks/{NAME}",
    f"notebooks/exercises/{NAME}",
    "notebooks/references",
)
A5 = "notebooks/a5_on_the_gpu"


@pytest.fixture(scope="module")
def stage(tmp_path_factory):
    """The sources of the site, laid out as for Sphinx."""
    folder = tmp_path_factory.mktemp("site") / "source"
    site.stage(folder)
    return folder


@pytest.fixture(scope="module")
def whole(stage):
    return site.Site(stage)


def texts_of(notebook):
    cells = json.loads(notebook)["cells"]
    return ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown"]


def read(whole, name):
    """The Markdown of a page as Sphinx gets it."""
    path = whole.files[name]
    said = whole.on_page(path.read_text(encoding="utf-8"), name)
    return "\n\n".join(texts_of(said)) if path.suffix == ".ipynb" else said


# Titles, and what lies beside a page


def test_a_figure_to_move_is_below_the_fold_of_its_answer_and_named_at_the_head(whole, monkeypatch):
    monkeypatch.setattr(site.figures, "SCRIPTS", {"04.1": "waves", "04.2": "gram"})
    drawn = [nbf.new_output("display_data", data={"image/png": "aGk="})]
    answer = nbf.new_code_cell(outputs=drawn, metadata={"tags": [ANSWER]})
    cells = [nbf.new_markdown_cell("# One"), answer, nbf.new_code_cell(outputs=drawn)]
    said = texts_of(whole.on_page(json.dumps(nbf.new_notebook(cells=cells)), LESSON))
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
def test_a_title_has_its_number(whole, name, title, expected):
    assert whole.title(title, name) == expected


def test_a_lesson_has_buttons_to_run_and_to_exercise_and_a_line_of_what_else_there_is(
    stage, tmp_path
):
    runs = tmp_path / f"lite/files/my/{NAME}.ipynb"
    runs.parent.mkdir(parents=True)
    runs.touch()
    made = site.Site(stage, built=tmp_path)
    buttons, line, *_ = made.beside(LESSON).split("\n\n")
    assert re.findall(r"href='(.*?)'>(.*?)<", buttons) == [
        (f"../lite/lab/index.html?path=my/{NAME}.ipynb", "Run it in the browser"),
        (f"exercises/{NAME}.html", "Exercises"),
    ]
    said = line.removeprefix(site.BESIDE).split(" · ")
    assert [re.sub(r"\[(.*)\]\(.*\)|<a.*>(.*)</a>", r"\1\2", link) for link in said] == [
        "solutions",
        "notebook",
    ]
    assert f"href='../{NAME}.html'>Lesson<" in made.beside(EXERCISES)
    assert made.beside("notebooks/glossary") == ""


# Links


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("in lesson 04.", [("lesson 04", LESSON, "")]),
        ("Lesson\n04's map", [("Lesson\n04", LESSON, "")]),
        ("appendix a5 says", [("appendix a5", A5, "")]),
        ("lessons 04, 77 and\na5", [("04", LESSON, ""), ("a5", A5, "")]),
        ("(Rahimi & Recht, 2007)", [("Rahimi & Recht, 2007", WORKS, "rahimi-2007")]),
        ("Schölkopf & Smola (2002)", [("Schölkopf & Smola (2002)", WORKS, "scholkopf-2002")]),
        ("Figure 04.1.", [("Figure 04.1", LESSON, "figure-04-1")]),
        (
            "figures 04.1, 04.77 and 04.2",
            [("04.1", LESSON, "figure-04-1"), ("04.2", LESSON, "figure-04-2")],
        ),
        ("exercise 04.2 (5", [("exercise 04.2", EXERCISES, "exercise-04-2")]),
        ("(04 §3; home)", [("04 §3", LESSON, "section-04-3")]),
        *((said, []) for said in ("figure 04.77", "Figure 4.1 of the paper", "04 §77")),
        *((said, []) for said in ("lesson 09 is this one", "Rahimi (1999)", "lesson 04% of")),
    ],
)
def test_a_lesson_a_work_or_a_place_that_is_named_leads_there_if_it_is_known(whole, said, expected):
    found = whole.named(said, "notebooks/09_positive_features")
    assert [(said[begin:end], *to) for begin, end, *to in found] == expected


def test_an_answer_has_no_heading_as_a_fold_would_hide_the_sections_after_it():
    answers = [c for path in paths() for c in lesson(path).cells if ANSWER in c.tags]
    assert [c.source for c in answers if c.kind == "markdown" and headings(c.source)] == []
    assert len(answers) > 200


def test_the_page_of_a_lecture_leads_to_its_deck_and_its_handout(stage, tmp_path, monkeypatch):
    here, whole = "kit/pages/lectures/3_directions", site.Site(stage, built=tmp_path)
    (tmp_path / "slides").mkdir()
    for suffix in ("html", "pdf"):
        (tmp_path / f"slides/lecture_3.{suffix}").touch()
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
    mine = "kit/pages/lectures/99_mine"
    assert whole.of_lecture("# Nine\n\nSaid.", mine) == "# Nine\n\nSaid."


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


def test_without_a_package_one_is_told_of_the_group(monkeypatch):
    monkeypatch.setattr("kit.distributions", lambda name: [name] * (name != "myst-nb"))
    with pytest.raises(SystemExit, match=r"^myst-nb missing.*make site.*--group site"):
        need("site")


def test_a_lesson_its_sheet_and_its_solutions_are_saved_under_names_of_their_own(whole):
    pages = (LESSON, EXERCISES, EXERCISES.replace("exercises", "solutions"))
    saved = [re.findall(r"download='(.+?)'", read(whole, page)) for page in pages]
    assert saved == [[f"{of}{NAME}.ipynb"] for of in ("", "exercises_", "solutions_")]
