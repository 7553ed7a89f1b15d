"""The rules by which the course is printed; `make test-kit` sets the pages and looks at them."""

import base64
import json
import re
import subprocess
import sys

import pytest
import yaml

from kit import handouts, site
from tests.checkout import text
from tools.setting import ROOT

PNG = base64.b64encode(b"a picture").decode()
HERE = "notebooks/09_two"


@pytest.fixture(scope="module")
def stage(tmp_path_factory):
    """What is printed of the repository."""
    return handouts.stage(tmp_path_factory.mktemp("pdf"))


def figure(alt):
    return {"data": {"image/png": PNG}, "metadata": {"image/png": {"alt": alt}}}


def code(source, *outputs, tags=()):
    cell = {"cell_type": "code", "source": [source], "outputs": list(outputs)}
    return cell | {"metadata": {"tags": list(tags)}}


def words(source, **more):
    return {"cell_type": "markdown", "source": [source], "metadata": {}, **more}


@pytest.fixture
def small(tmp_path):
    """A lesson in a part, one before all parts, exercises, a project and two works."""

    def put(name, *cells):
        path = tmp_path / f"notebooks/{name}.ipynb"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps({"cells": cells}), encoding="utf-8")

    put("00_zero", words("# Zero\n\nSee lesson 09."))
    put("09_two", words("# Turn `x`\n\nRahimi & Recht (2007), see lesson 00."), code("x = 1"))
    put("projects/p1_do", words("# Do"))
    put(
        "exercises/09_two",
        words("[![In Colab](https://a)](https://b)", id="colab"),
        code("%pip install") | {"id": "install"},
        words("# Exercises 09: turns"),
        code("def f():\n    raise NotImplementedError()"),
        words("YOUR ANSWER HERE"),
    )
    works = (
        "# References\n\nAll of them.\n\n### abel-1826\n\nOf old.\n\n### rahimi-2007\n\nFeatures.\n"
    )
    (tmp_path / "notebooks/references.md").write_text(works, encoding="utf-8")
    (tmp_path / "notebooks/glossary.md").write_text("# Symbols\n", encoding="utf-8")
    return site.Site(tmp_path)


def pages(course):
    """The pages of a course before pandoc, with its references as pandoc leaves them."""
    found = {}
    for name, path in course.files.items():
        whole = handouts.notebook if path.suffix == ".ipynb" else handouts.page
        said = whole(course, name)
        found[handouts.label(name)] = said if isinstance(said, str) else said[0]
    listed = re.sub(r"```(?:\{=typst\})?\n?", "", found["references"])
    return found | {"references": listed}


# Cells


def test_a_string_of_typst_says_what_it_was_made_of():
    assert handouts.quoted('a "b" \\n\tc\n') == r'"a \"b\" \\n\tc\n"'


def test_code_that_draws_is_left_out_and_what_it_drew_and_said_is_there():
    said = {"output_type": "stream", "text": ["one\n", "two\n"]}
    pictures = {}
    drawn = code("plot()", said, figure("A line."), tags=["hide-input"])
    assert handouts.printed(drawn, "05", pictures) == [
        '```{=typst}\n#printed("one\\ntwo")\n```',
        '```{=typst}\n#picture("/pictures/05.1.png", "05.1", "A line.")\n```',
    ]
    assert pictures == {"05.1": b"a picture"}
    assert '#code("plot()")' in handouts.printed(code("plot()"), "05", {})[0]


def test_figures_are_counted_from_the_top_of_a_lesson_and_each_keeps_its_words():
    pictures = {}
    first = handouts.printed(code("", figure("One."), figure('Two, "too".')), "05", pictures)
    (third,) = handouts.printed(code("", figure("Three.")), "05", pictures)
    assert list(pictures) == ["05.1", "05.2", "05.3"]
    assert '"05.2", "Two, \\"too\\"."' in first[1]
    assert '"05.3", "Three."' in third


def test_of_what_moves_on_a_screen_its_words_are_printed_and_what_has_none_is_left_out():
    slider = {"data": {"text/html": ["<input>"], "text/plain": ["a slider from 0 to 1"]}}
    mute = {"data": {"text/html": ["<input>"]}}
    assert handouts.printed(code("", slider, mute), "05", {}) == [
        '```{=typst}\n#printed("a slider from 0 to 1")\n```'
    ]


def test_a_sheet_of_exercises_has_its_stubs_and_nothing_for_a_screen(small):
    said, _ = handouts.notebook(small, "notebooks/exercises/09_two")
    assert said.startswith("# Exercises 09: turns `<exercises-09>`{=typst}\n")
    assert "raise NotImplementedError()" in said
    assert not re.search(r"Colab|%pip|YOUR ANSWER", said)


def test_each_lesson_is_printed_with_all_its_figures_and_all_its_open_code(stage):
    count = 0
    for name, path in stage.files.items():
        if path.suffix != ".ipynb":
            continue
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        said, pictures = handouts.notebook(stage, name)
        outputs = [
            o for c in cells for o in c.get("outputs", []) if "image/png" in o.get("data", {})
        ]
        alts = [output["metadata"]["image/png"]["alt"] for output in outputs]
        shown = re.findall(r'(?m)^#picture\("\S+", "([\w.]+)", (".*")\)$', said)
        marks = [f"{site.number(name)}.{n}" for n in range(1, len(alts) + 1)]
        assert shown == list(zip(marks, map(handouts.quoted, alts), strict=True))
        assert list(pictures) == marks
        code = [c for c in cells if c["cell_type"] == "code"]
        kept = [c for c in code if "hide-input" not in c["metadata"].get("tags", [])]
        assert len(re.findall(r"(?m)^#code\(", said)) == len(kept)
        count += len(alts)
    assert count > 100


def test_no_solution_is_printed(stage):
    assert [name for name in stage.files if "solutions" in name] == []
    said = "".join(handouts.notebook(stage, n)[0] for n in stage.files if "exercises/" in n)
    assert "BEGIN SOLUTION" not in said
    assert said.count("raise NotImplementedError()") > 40


# Titles and links


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("notebooks/09_two", "lesson-09"),
        ("notebooks/a1_errata", "lesson-a1"),
        ("notebooks/exercises/09_two", "exercises-09"),
        ("notebooks/projects/p1_do", "project-p1"),
        ("notebooks/references", "references"),
    ],
)
def test_a_page_has_a_name_in_the_book(name, expected):
    assert handouts.label(name) == expected


def test_a_title_has_its_number_and_the_name_by_which_links_find_it():
    title = '# `#number("09")`{=typst} Turn `<lesson-09>`{=typst}\n\nText.'
    assert handouts.titled("# 09 Turn\n\nText.", HERE) == title
    glossary = handouts.titled("# Symbols\n", "notebooks/glossary")
    assert glossary == "# Symbols `<glossary>`{=typst}\n"


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
        ("`$` for $a$ or `$\nx`", "`$` for $a$ or `$\nx`"),
    ],
)
def test_a_formula_stands_on_one_line_as_none_of_its_lines_begins_a_list(said, expected):
    assert handouts.joined(said) == expected


def test_a_lesson_and_a_work_that_are_named_become_links_as_on_the_web(small):
    said, _ = handouts.notebook(small, HERE)
    assert "[Rahimi & Recht (2007)](#rahimi-2007), see [lesson 00](#lesson-00)." in said


def test_every_link_of_every_page_leads_to_a_page_of_the_book_or_to_a_work(stage):
    known = {handouts.label(name) for name in stage.files} | stage.works
    found = [t for said in pages(stage).values() for t in re.findall(r"\]\(#([\w-]+)\)", said)]
    assert set(found) - known == set()
    assert len(found) > 500


# The book and the handouts


def test_the_book_has_each_lesson_below_its_part_and_its_exercises_right_after_it(small):
    said = handouts.book(small, pages(small))
    order = re.findall(r'include "/pages/(\S+)\.typ"|#part\("(.*?)"\)|(#metadata.*?)>', said)
    assert ["".join(found) for found in order] == [
        *("lesson-00", "Attention", "lesson-09", "exercises-09"),
        *("Projects", "project-p1", "glossary"),
        *("#metadata(none) <abel-1826", "#metadata(none) <rahimi-2007"),
    ]
    assert said.index("All of them.") < said.index("abel-1826")
    zero, lesson = (said.index(f"pages/lesson-{mark}") for mark in ("00", "09"))
    assert zero < said.index("heading(offset: 1)") < lesson


def test_a_handout_has_its_lesson_its_exercises_and_the_works_it_cites(small):
    led = {"lesson-09": "#link(<rahimi-2007>)[R]", "exercises-09": ""}
    said = handouts.handout(small, HERE, pages(small) | led)
    assert re.findall(r'"/pages/(\S+)\.typ"', said) == ["lesson-09", "exercises-09"]
    assert 'title: "09 Turn x"' in said
    assert "== References\n#work[#metadata(none) <rahimi-2007> Features.]" in said
    assert "abel" not in said
    assert "References" not in handouts.handout(small, "notebooks/00_zero", pages(small))


def test_the_title_page_says_what_the_repository_says():
    said = handouts.first_words()
    assert said["title"] == "How kernels became linear attention"
    assert said["about"].startswith("Lessons in executable notebooks, from")
    assert f"![{said['alt']}](notebooks/picture.png)" in text("README.md")
    assert said["licence"].endswith("(CC BY 4.0)")
    assert said["rights"].startswith("Copyright")
    assert f'version = "{said["version"]}"' in text("pyproject.toml")


# What the site shows of them


def test_the_book_is_first_in_the_list_of_the_site_and_each_handout_has_its_title(small, tmp_path):
    (tmp_path / "handouts").mkdir()
    for name in ("00_zero.pdf", "course.pdf", "09_two.pdf", "other.pdf"):
        (tmp_path / "handouts" / name).write_bytes(b"")
    found = [path.stem for path in site.made("handouts", tmp_path)]
    assert found == ["course", "00_zero", "09_two", "other"]
    assert [site.called(stem, tmp_path) for stem in found] == [
        *("The whole course as a book", "00 Zero", "09 Turn x", "other"),
    ]


def test_the_handouts_lie_where_the_site_looks_for_them():
    assert handouts.OUT in [ROOT / "build" / name for name in site.MADE]
    assert handouts.BOOK in site.WHOLE


def test_what_is_published_has_been_printed_before():
    steps = yaml.safe_load(text(".github/workflows/pages.yml"))["jobs"]["build"]["steps"]
    runs = [step.get("run", "") for step in steps]
    assert runs.index("make pdf PYTHON=python") < runs.index("make test-kit PYTHON=python")


# Tools that are missing


def test_without_pandoc_and_typst_one_is_told_of_the_extra(monkeypatch):
    monkeypatch.setattr(handouts, "find_spec", lambda name: None)
    with pytest.raises(SystemExit, match=r"pypandoc-binary, typst missing.*make pdf.*\[pdf\]"):
        handouts.main()


def test_the_rules_of_the_handouts_need_none_of_their_tools():
    program = "import sys, kit.handouts; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True)
    heavy = {"pypandoc", "typst", "pypdf", "nbformat", "numpy", "performer_course", "sphinx"}
    assert heavy & set(done.stdout.split()) == set()
    assert "kit.site" in done.stdout.split()
