"""The rules by which the web site is made of the repository; `make test-kit` looks at the pages."""

import json
import os
import re
from pathlib import Path

import nbformat
import pytest
import yaml

from kit import need, npm, site, slides
from tests.checkout import text
from tools.lesson import ANSWER, headings, paths
from tools.lesson import read as lesson
from tools.setting import ROOT, edition

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
    """A site of two lessons, an appendix and two works, with slides of the first lesson.

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
    works = "# References\n\n### rahimi-2007\n\n### bjorck-1967\n"
    (stage / "notebooks/references.md").write_text(works, encoding="utf-8")
    slides.mkdir()
    (slides / "04_one.html").write_text("", encoding="utf-8")
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


def test_a_lesson_belongs_to_the_last_part_begun_before_it():
    found = site.parts(["00", "01", "03", "04", "18", "19", "20", "a1", "a6"])
    assert found == {
        "": ["00"],
        "Kernels": ["01", "03"],
        "Random features": ["04"],
        "Scale, and after": ["18", "19", "20"],
        "Appendices": ["a1", "a6"],
    }


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


def test_the_side_bar_has_the_lessons_of_readme_in_its_order(stage):
    linked = re.findall(r"(?m)^\| \[\w+\]\((notebooks/\w+)\.ipynb\)", text("README.md"))
    said = (stage / "index.md").read_text(encoding="utf-8")
    assert re.findall(r"(?m)^\w\d .*<(notebooks/\w+)>$", said) == linked


def test_the_side_bar_calls_a_page_by_what_its_title_says_before_a_colon(stage):
    said = (stage / "index.md").read_text(encoding="utf-8")
    assert "\n05 Orthogonal random features <notebooks/05_orthogonal_features>\n" in said
    assert site.short("notebooks/formulas/1_kernels", stage).startswith("Formulas <")
    assert site.short("CONTRIBUTING", stage) == "CONTRIBUTING"
    listed = re.findall(r"(?m)^\w\d (.*) <notebooks/\w+>$", said)
    assert max(map(len, listed)) <= 34


def test_learners_stand_before_lecturers_and_authors_last(stage):
    said = (stage / "index.md").read_text(encoding="utf-8")
    groups = re.findall(r":caption: (.*)", said)[-4:]
    assert groups == ["Exercises and projects", "To look up", "For lecturers", "For authors"]
    assert said.split()[-5:] == ["authors", *site.AUTHORS, "```"]
    assert "notebooks/solutions/index" not in said


def test_each_part_of_the_lessons_ends_with_its_formulas(stage):
    said = (stage / "index.md").read_text(encoding="utf-8")
    for part in [*site.PARTS][:-1]:
        (tree,) = re.findall(rf"(?s):caption: {part}\n\n(.*?)\n```", said)
        (page,) = re.findall(r"(?m)^Formulas <(notebooks/formulas/\w+)>$", tree)
        assert text(f"{page}.md").startswith(f"# Formulas: {part}\n")


# Titles, and what lies beside a page


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
    for name in ("slides/04_one.pdf", "handouts/04_one.pdf", "lite/files/my/04_one.ipynb"):
        path = small.built / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    buttons, line = small.beside("notebooks/04_one").split("\n\n")
    assert re.findall(r"href='(.*?)'>(.*?)<", buttons) == [
        ("../lite/lab/index.html?path=my/04_one.ipynb", "Run it in the browser"),
        ("exercises/04_one.html", "Exercises"),
    ]
    said = line.removeprefix(site.BESIDE).split(" · ")
    assert [re.sub(r"\[(.*)\]\(.*\)|<a.*>(.*)</a>", r"\1\2", link) for link in said] == [
        *("solutions", "slides", "slides as PDF", "handout as PDF", "notebook"),
    ]
    assert "href='../04_one.html'>Lesson<" in small.beside("notebooks/exercises/04_one")
    assert "slides" not in small.beside("notebooks/09_two")
    assert small.beside("notebooks/glossary") == ""


# Links


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("in lesson 04.", "in [lesson 04](04_one.ipynb)."),
        ("Lesson 04's map", "[Lesson 04](04_one.ipynb)'s map"),
        ("lesson\n> 04 is", "[lesson\n> 04](04_one.ipynb) is"),
        ("- of lesson\n  04.", "- of [lesson\n  04](04_one.ipynb)."),
        ("appendix a5 says", "[appendix a5](a5_three.ipynb) says"),
        ("lessons 04, 05 and\na5", "lessons [04](04_one.ipynb), 05 and\n[a5](a5_three.ipynb)"),
        ("(Rahimi & Recht, 2007)", "([Rahimi & Recht, 2007](references.md#rahimi-2007))"),
        (r"Rahimi \& Recht (2007)", r"[Rahimi \& Recht (2007)](references.md#rahimi-2007)"),
        ("Björck et al. (1967)", "[Björck et al. (1967)](references.md#bjorck-1967)"),
        ("Figure 04.1.", "[Figure 04.1](04_one.ipynb#figure-04-1)."),
        ("| **figure\n> 04.2** |", "| **[figure\n> 04.2](04_one.ipynb#figure-04-2)** |"),
        (
            "figures 04.1, 09.1 and\n04.2",
            "figures [04.1](04_one.ipynb#figure-04-1), 09.1 and\n[04.2](04_one.ipynb#figure-04-2)",
        ),
        ("- exercise 04.3 (5", "- [exercise 04.3](exercises/04_one.ipynb#exercise-04-3) (5"),
        ("(04 §3; home)", "([04 §3](04_one.ipynb#section-04-3); home)"),
        ("[04 §3, *Signs*](04_one.ipynb)", "[04 §3, *Signs*](04_one.ipynb#section-04-3)"),
        ("In `exercises/04_one.ipynb`:", "In [`exercises/04_one.ipynb`](exercises/04_one.ipynb):"),
    ],
)
def test_a_lesson_a_work_or_a_place_that_is_named_becomes_a_link_there(small, said, expected):
    assert small.linked(said, "notebooks/09_two") == expected


def test_a_question_stands_in_a_box_and_all_that_answers_it_opens_below_at_once(small):
    said, caption = toy.prints("0.5"), {"text/markdown": "*It rises.*", "text/plain": "It rises."}
    drawn = toy.figure("It is 2.", "answer", "hide-input", caption="It rises.")
    drawn.outputs.append(nbformat.v4.new_output("display_data", data=caption))
    asked = toy.text("# One\n\nLook. **Before you run this:** one\nor two?")
    notebook = toy.notebook(asked, drawn, toy.text("It is $2$.", "answer"), said)
    page = json.loads(small.on_page(json.dumps(notebook), "notebooks/04_one"))
    question, opens, figure, answer, closes, printed = page["cells"]
    label = r"<div class='question'>\n\n\*\*Before you run this\*\*\n\n"
    assert re.search(rf"Look\.\n\n{label}One\nor two\?\n\n</div>\Z", question["source"])
    summary = "<summary>Show the answer</summary>"
    assert opens["source"] == f"<details class='answer'>{summary}"
    assert answer["source"] == "It is $2$."
    assert closes["source"] == "</details>"
    assert [*figure["outputs"][0]["data"]] == ["image/png", "text/plain"]
    assert len(figure["outputs"]) == 1  # the caption stands once
    assert printed["metadata"]["tags"] == []
    nbformat.validate(page)


def test_an_answer_has_no_heading_as_a_fold_would_hide_the_sections_after_it():
    answers = [c for path in paths() for c in lesson(path).cells if ANSWER in c.tags]
    assert [c.source for c in answers if c.kind == "markdown" and headings(c.source)] == []
    assert len(answers) > 200


def test_a_print_of_long_lines_is_told_and_others_are_not():
    lengths = site.ACROSS, site.ACROSS + 1, site.PROSE + 1
    notebook = toy.notebook(*(toy.prints("x" * length) for length in lengths))
    site.fit_outputs(notebook)
    assert [c.metadata.get("tags") for c in notebook.cells] == [[], ["broad"], ["broad", "prose"]]


def test_a_fold_says_whether_a_figure_that_answers_back_is_in_it(whole):
    said = {
        name: read(whole, name).count(", and a figure to move<") for name in whole.lessons.values()
    }
    told = {site.number(name): count for name, count in said.items() if count}
    assert told == {"03": 1, "09": 1, "10": 1, "12": 1, "15": 1, "18": 1, "20": 1}


def test_sections_and_figures_of_a_lesson_are_places_where_links_can_end(small):
    places = ["exercise-04-3", "section-04-3", "figure-04-1", "figure-04-2"]
    assert sorted(small.places) == sorted(places)
    cells = json.loads(small.on_page(drawn(), "notebooks/04_one"))["cells"]
    assert "\n(section-04-3)=\n## 3. Signs\n" in cells[0]["source"]
    noted = [cell["outputs"][0]["metadata"] for cell in cells[1:]]
    assert [told["image/png"]["figure"] for told in noted] == ["04.1", "04.2"]
    sheet = small.on_page(drawn(), "notebooks/exercises/04_one")
    assert "(exercise-04-3)=\n## 3. Signs\n" in json.loads(sheet)["cells"][0]["source"]
    solved = small.on_page(drawn(), "notebooks/solutions/04_one")
    assert "-04-3" not in solved
    assert '"figure"' not in sheet + solved


@pytest.mark.parametrize(
    "said",
    [
        "figure 04.3",
        "exercise 04.1",
        "figure 77.1",
        "Figure 4.1 of the paper",
        "`figure 04.1`",
        "`04_gone.ipynb`",
        "`09_two.ipynb`",
        "04 §1",
        "§3",
        "[04 §7, *Gone*](04_one.ipynb)",
        "lesson 09 is this one",
        "lesson 77",
        "lesson 045",
        "in `lesson 04`",
        "# Lesson 04",
        "$x$ in $\\text{lesson 04}$",
        "$$\n\\text{lesson 04}\n$$",
        "see [what lesson 04 says](04_one.ipynb)",
        "```\nlesson 04\n```",
        "Rahimi (1999)",
        "over 2000 draws in 2007",
    ],
)
def test_what_is_code_formula_heading_link_or_unknown_stays_as_it_is(small, said):
    assert small.linked(said, "notebooks/09_two") == said


def test_a_link_to_a_file_that_is_not_on_the_site_keeps_its_words_alone(small):
    said, here = "[made](../Makefile), [all](../tests), [one](04_one.ipynb)", "notebooks/09_two"
    assert small.elsewhere(said, here) == "made, all, [one](04_one.ipynb)"
    gone = "[gone](05_gone.ipynb)"  # stays for Sphinx to refuse
    assert small.elsewhere(gone, here) == gone


def slug(heading):
    plain = re.sub(r"[`$*\\]", "", heading).strip().lower()
    return re.sub(r"[^\w\- ]", "", plain).replace(" ", "-")


def ends(whole, name):
    """The places of a lesson or of its exercises, as Sphinx gets them."""
    said = whole.on_page(whole.files[name].read_text(encoding="utf-8"), name)
    outputs = [output for cell in json.loads(said)["cells"] for output in cell.get("outputs", [])]
    noted = [output.get("metadata", {}).get("image/png", {}).get("figure") for output in outputs]
    counted = [figure for figure in noted if figure]
    assert counted == [f"{site.number(name)}.{n + 1}" for n in range(len(counted))]
    kind = "exercise" if "/exercises/" in name else "section"
    sections = re.findall(rf"(?m)^\(({kind}-\S+)\)=\n## ", "\n".join(texts_of(said)))
    return [*sections, *(f"figure-{figure.replace('.', '-')}" for figure in counted)]


def test_every_link_of_every_page_leads_to_a_page_and_each_key_to_its_entry(whole):
    keys = {}  # by page
    for name, path in whole.files.items():
        if re.match(site.LINKED, name):
            keys[path] = ends(whole, name)
        elif path.suffix == ".md":
            said = read(whole, name)
            keys[path] = [slug(h) for h in re.findall(r"(?m)^#+ (.+)$", said)]
            keys[path] += re.findall(r"(?m)^\((\S+)\)=$", said)
    assert len(keys[whole.files["notebooks/references"]]) > 50
    faults, count = [], 0
    for name in whole.files:
        said = re.sub(r"(?s)```.*?```|`[^`]*`|\$\$.*?\$\$", "", read(whole, name))
        for _, target, anchor in site.LINK.findall(said):
            path = (whole.files[name].parent / target).resolve()
            count += 1
            if not path.is_file() or (anchor and anchor[1:] not in keys[path]):
                faults.append(f"{name}: {target}{anchor}")
    assert faults == []
    assert count > 1000


def test_the_page_of_a_lecture_leads_to_its_deck_and_its_handout_where_they_are_made(small):
    here = "kit/pages/lectures/3_directions"
    assert small.of_lecture("# Three\n\nSaid.", here) == "# Three\n\nSaid."
    for name in ("slides/lecture_3.html", "slides/lecture_3.pdf", "handouts/lecture_3.pdf"):
        (small.built / name).parent.mkdir(exist_ok=True)
        (small.built / name).write_text("", encoding="utf-8")
    said = small.on_page("# Three\n\nSaid.", here)
    assert said.startswith(f"# Three\n\n{site.BESIDE}")
    led = re.findall(r"href='../../../(\S+)'>(.+?)<", said)
    assert [to for to, _ in led] == [
        *("slides/lecture_3.html", "slides/lecture_3.pdf", "handouts/lecture_3.pdf"),
    ]
    assert site.called("lecture_3", small.stage).startswith("Lecture 3: ")


def test_a_work_is_headed_as_a_text_cites_it(whole):
    said = site.by_authors(
        "# R\n\n### a-1999\n\nÅ. B. Ab, C.-D.\nde Ef. On g. 1.\n\n### hi-2000\n\nHI. J.\n"
    )
    assert re.findall(r"(?m)^\((.+)\)=\n## (.+)\n\n", said) == [
        ("a-1999", "Ab & de Ef (1999)"),
        ("hi-2000", "HI (2000)"),
    ]
    headed = re.findall(r"(?m)^## (.+)$", read(whole, "notebooks/references"))
    assert len(headed) == len(whole.works)
    assert {"Su et al. (2021)", "Schölkopf & Smola (2002)", "Mezzadri (2007)"} < set(headed)
    assert [name for name in headed if not re.fullmatch(f"{site.NAMES} .{site.YEAR}.", name)] == []


def test_who_teaches_is_led_to_slides_and_handouts_where_they_are_made(small):
    row, here = "| slides | `make slides` | a deck |", "kit/pages/teach"
    assert small.on_page(row, here) == row
    (small.stage / "slides.md").write_text("# Slides\n", encoding="utf-8")
    said = site.Site(small.stage).on_page(row, here)
    assert said == "| slides | [Slides of all lectures and lessons](../../slides.md) | a deck |"
    assert all(f"| `{command}` |" in text("kit/pages/teach.md") for command in site.LISTED)


def test_no_place_in_a_lesson_is_named_to_a_lecturer_without_a_link(whole):
    linked, left = 0, []
    for name in [name for name in whole.files if name.startswith("kit/pages/")]:
        said = read(whole, name)
        linked += len(re.findall(r"\]\([^)]*#(?:figure|section|exercise)-", said))
        said = re.sub(r"\[[^\]]*\]\([^)]*\)|`[^`]*`|\$[^$]*\$", "·", said)
        left += re.findall(r"\b\w\d §\d|\b(?:figure|exercise)s?(?:[\s·,]|and)+\w\d\.\d", said)
    assert linked > 500
    assert left == []


# Figures


def test_the_words_for_a_figure_are_its_description_or_the_first_sentence_of_a_long_one():
    short, rest = "It is 3.5 against m = 0.4, i.e. less.", " And so on" + ", on and on" * 40 + "."
    assert site.alt(short) == short
    assert site.alt(f"The error is 3.5 at 0.4.{rest}") == "The error is 3.5 at 0.4."
    assert site.alt(rest) == rest


# Nothing from outside


@pytest.mark.parametrize("folder", ["static", "slides"])
def test_the_files_of_the_sites_own_and_of_a_deck_name_no_address(folder):
    for path in (ROOT / "kit/look" / folder).rglob("*.*"):
        said = path.read_text(encoding="utf-8")
        assert "://" not in said.replace('xmlns="http://www.w3.org/2000/svg"', "")


def test_the_foot_of_each_page_names_the_edition_and_the_licences():
    cited = text("CITATION.cff")
    assert site.options()["extra_footer"] == f"{edition()} · {site.LICENCES}"
    said = site.LICENCES.replace(" ", "-")
    assert all(name in said for name in re.findall(r"(?m)^  - (BSD\S+|CC\S+)$", cited))


# Tools that are missing, and who runs them


def test_without_npm_one_is_told_how_to_get_it(tmp_path, monkeypatch):
    monkeypatch.setattr("shutil.which", lambda name: None)
    with pytest.raises(SystemExit, match=r"npm is missing.*mathjax.*apt install npm"):
        npm.package("mathjax", tmp_path)


def test_what_npm_has_brought_is_fetched_once(tmp_path, monkeypatch):
    modules = tmp_path / f"mathjax@{npm.PINS['mathjax']}/node_modules"
    modules.mkdir(parents=True)
    (modules / ".package-lock.json").write_text("{}")
    monkeypatch.setattr("shutil.which", lambda name: pytest.fail("npm is asked again"))
    assert npm.package("mathjax", tmp_path) == modules / "mathjax"


TAKEN = {  # what makes a folder of files that npm brings, and the packages that are in it
    site.assets: {"mathjax", npm.SANS, npm.CODE},
    slides.assets: {"mathjax", "reveal.js", npm.SANS},
}


@pytest.fixture
def packages(tmp_path, monkeypatch):
    """The folder of toy packages, each with all that is taken of any, and with a licence."""
    files = (site.MATHJAX, "dist/reveal.js", "dist/reveal.css", "dist/plugin/notes.js")
    files += ("400.css", "400-italic.css", "600.css", "files/a-latin-400.woff2")
    for name in set.union(*TAKEN.values()):
        for file in files:
            path = tmp_path / "npm" / name / file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("@font-face { src: url(./files/a-latin-400.woff2) }")
        (tmp_path / "npm" / name / "LICENSE").write_text(name)
    monkeypatch.setattr(npm, "package", lambda name: tmp_path / "npm" / name)
    return tmp_path / "npm"


@pytest.mark.parametrize(("make", "names"), TAKEN.items(), ids=["site", "slides"])
def test_the_licence_of_each_package_goes_out_with_its_files(make, names, packages, tmp_path):
    make(tmp_path / "made")
    assert {path.read_text() for path in (tmp_path / "made").rglob("LICENSE-*.txt")} == names


def test_without_a_package_one_is_told_of_the_extra():
    with pytest.raises(SystemExit, match=r"^no-such missing.*make site.*\[site\]"):
        need("site", no_such="no-such", re="re")


def test_a_site_says_what_it_was_made_without_and_the_command_that_makes_it(tmp_path):
    assert site.without(tmp_path).startswith("without slides (make slides), slides as PDF (make ")
    for name in ("slides/a.html", "handouts/a.pdf", "lite/index.html"):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).touch()
    assert re.findall(r"\(.*?\)", site.without(tmp_path)) == ["(make slides)"]
    (tmp_path / "slides/a.pdf").touch()
    assert site.without(tmp_path) == ""


def test_make_publish_makes_first_what_the_site_takes_along():
    recipe = re.search(r"(?m)^publish: .*\n((?:\t.*\n)+)", text("Makefile"))[1]
    made = re.findall(r"python -m kit\.(\w+)", recipe)
    assert made.pop() == "site"
    assert sorted(made) == ["handouts", "lite", "slides"]
    targets = re.findall(r"(?m)^(\w+): .*\n\t\$\(BIN\)/python -m kit\.(\w+)", text("Makefile"))
    for target, _ in site.MAKES.values():
        assert dict(targets)[target] in made


def test_what_is_published_has_been_looked_at_and_only_publishing_may_publish():
    pages = yaml.safe_load(text(".github/workflows/pages.yml"))
    jobs = pages["jobs"]
    runs = [step.get("run", "") for step in jobs["build"]["steps"]]
    made = [runs.index(f"make {name} PYTHON=python") for name in ("lite", "pdf", "slides")]
    assert max(made) < runs.index("make test-kit PYTHON=python")  # which makes the site of all
    (upload,) = [s for s in jobs["build"]["steps"] if "pages-artifact" in s.get("uses", "")]
    assert ROOT / upload["with"]["path"] == site.HTML
    assert jobs["publish"]["needs"] == "build"
    assert "pull_request" in jobs["publish"]["if"]
    assert pages["permissions"] == {"contents": "read"}
    assert "permissions" not in jobs["build"]
    assert set(jobs["publish"]["permissions"]) == {"pages", "id-token"}
    used = dict(re.findall(r"uses: (\S+)@(v\d+)$", text(".github/workflows/ci.yml"), re.MULTILINE))
    ours = dict(re.findall(r"uses: (\S+)@(v\d+)$", text(".github/workflows/pages.yml"), re.M))
    assert used.items() <= ours.items()
    assert len(re.findall("uses:", text(".github/workflows/pages.yml"))) == len(ours)
