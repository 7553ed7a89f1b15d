"""The rules by which the web site is made of the repository; `make test-kit` looks at the pages."""

import json
import os
import re
import subprocess
import sys
import tarfile
from pathlib import Path

import nbformat
import pytest
import yaml

from tools import api, npm, site
from tools.setting import NOTEBOOKS, ROOT

from .checkout import text

ADDRESS = "https://github.com/someone/some-course"
LESSON = "notebooks/09_positive_features"


@pytest.fixture(scope="module")
def stage(tmp_path_factory):
    """The sources of the site, laid out as for Sphinx."""
    folder = tmp_path_factory.mktemp("site") / "source"
    site.stage(folder)
    return folder


@pytest.fixture(scope="module")
def whole(stage):
    return site.Site(stage)


@pytest.fixture
def small(tmp_path):
    """A site of two lessons, an appendix and two works, with slides of the first lesson."""
    stage, slides = tmp_path / "source", tmp_path / "slides"
    names = ("04_one", "09_two", "a5_three", "exercises/04_one", "solutions/04_one")
    for name in names:
        path = stage / f"notebooks/{name}.ipynb"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("{}", encoding="utf-8")
    works = "# References\n\n### rahimi-2007\n\n### bjorck-1967\n"
    (stage / "notebooks/references.md").write_text(works, encoding="utf-8")
    slides.mkdir()
    (slides / "04_one.html").write_text("", encoding="utf-8")
    return site.Site(stage, built=tmp_path)


def texts(path):
    """The Markdown of a page: its text, or that of each of its cells."""
    said = path.read_text(encoding="utf-8")
    return texts_of(said) if path.suffix == ".ipynb" else [said]


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
            entries = [entry for _, tree in trees for entry in tree.split("\n")]
            paths = [Path(os.path.normpath(Path(name).parent / entry)) for entry in entries]
            listed += [path.as_posix() for path in paths]
    assert sorted(listed) == sorted(whole.files.keys() - {"index"})


def test_the_side_bar_has_the_lessons_of_readme_in_its_order(stage):
    linked = re.findall(r"(?m)^\| \[\w+\]\((notebooks/\w+)\.ipynb\)", text("README.md"))
    said = (stage / "index.md").read_text(encoding="utf-8")
    assert re.findall(r"(?m)^notebooks/\w+$", said)[: len(linked)] == linked


def test_the_first_page_has_every_section_of_readme_and_what_to_read_comes_first(stage):
    headings = re.findall(r"(?m)^## (.+)$", text("README.md"))
    found = re.findall(r"(?m)^## (.+)$", (stage / "index.md").read_text(encoding="utf-8"))
    assert sorted(found) == sorted(headings)
    assert found.index("The lessons") < found.index("How to study") < found.index("Two commands")


# Titles, and what lies beside a page


@pytest.mark.parametrize(
    ("name", "title", "expected"),
    [
        ("notebooks/04_one", "# Turn", "# 04 Turn"),
        ("notebooks/a5_three", "# Bound", "# a5 Bound"),
        ("notebooks/exercises/04_one", "# Exercises 04: waves", "# Exercises 04: waves"),
        ("notebooks/solutions/04_one", "# Exercises 04: waves", "# Solutions 04: waves"),
        ("notebooks/projects/p1_x", "# Build", "# p1 Build"),
        ("notebooks/projects/solutions/p1_x", "# Build", "# Solution of p1: Build"),
        ("notebooks/glossary", "# Symbols", "# Symbols"),
    ],
)
def test_a_title_has_its_number(small, name, title, expected):
    assert small.title(title, name) == expected


def test_a_lesson_leads_to_its_exercises_solutions_slides_and_the_notebook_itself(small):
    said = small.beside("notebooks/04_one")
    assert re.findall(r"\]\((.*?)\)|href='(.*?)'", said) == [
        ("exercises/04_one.ipynb", ""),
        ("solutions/04_one.ipynb", ""),
        ("", "../_sources/notebooks/04_one.ipynb"),
        ("", "../slides/04_one.html"),
    ]
    assert "](../04_one.ipynb)" in small.beside("notebooks/exercises/04_one")
    assert "slides" not in small.beside("notebooks/09_two")
    assert small.beside("notebooks/glossary") == ""


def test_the_button_for_colab_stands_beside_the_page_and_not_above_its_title(small):
    button = {
        "id": "colab",
        "cell_type": "markdown",
        "source": ["[![In Colab](https://a)](https://b)"],
    }
    install = {"id": "install", "cell_type": "code", "source": ["%pip install"]}
    title = {"id": "x", "cell_type": "markdown", "source": ["# Exercises 04: waves\n", "\n", "Do."]}
    page = small.on_page(
        json.dumps({"cells": [button, install, title]}), "notebooks/exercises/04_one"
    )
    (cell,) = json.loads(page)["cells"]
    head, beside, *rest = [line for line in cell["source"].split("\n") if line]
    assert (head, rest) == ("# Exercises 04: waves", ["Do."])
    assert beside.endswith(" · [In Colab](https://b)")


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
    ],
)
def test_a_lesson_or_a_work_that_is_named_becomes_a_link(small, said, expected):
    assert small.linked(said, "notebooks/09_two") == expected


@pytest.mark.parametrize(
    "said",
    [
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


def test_a_file_that_is_not_on_the_site_is_shown_in_the_repository_or_is_no_link(small):
    said, here = "[made](../Makefile), [all](../tests), [one](04_one.ipynb)", "notebooks/09_two"
    assert small.elsewhere(said, here) == "made, all, [one](04_one.ipynb)"
    small.address = ADDRESS
    made, tests = f"[made]({ADDRESS}/blob/main/Makefile)", f"[all]({ADDRESS}/tree/main/tests)"
    assert small.elsewhere(said, here) == f"{made}, {tests}, [one](04_one.ipynb)"


def test_a_link_that_leads_nowhere_stays_for_sphinx_to_refuse(small):
    said = "[gone](05_gone.ipynb)"
    assert small.elsewhere(said, "notebooks/09_two") == said


def slug(heading):
    plain = re.sub(r"[`$*\\]", "", heading).strip().lower()
    return re.sub(r"[^\w\- ]", "", plain).replace(" ", "-")


def test_every_link_of_every_page_leads_to_a_page_and_each_key_to_its_entry(whole):
    keys = {slug(h) for h in re.findall(r"(?m)^## (.+)$", read(whole, "notebooks/references"))}
    assert len(keys) > 50
    faults, count = [], 0
    for name in whole.files:
        said = re.sub(r"(?s)```.*?```|`[^`]*`|\$\$.*?\$\$", "", read(whole, name))
        for _, target, anchor in site.LINK.findall(said):
            path = (whole.files[name].parent / target).resolve()
            wrong = target.endswith("references.md") and anchor and anchor[1:] not in keys
            count += 1
            if wrong or not path.is_file():
                faults.append(f"{name}: {target}{anchor}")
    assert faults == []
    assert count > 1000


def test_no_lesson_is_named_in_a_sentence_without_a_link(whole):
    """Searched in another way than it is done: by what is left when links are taken out."""
    left = []
    for name in whole.lessons.values():
        said = re.sub(r"\[[^\]]*\]\([^)]*\)|`[^`]*`|(?m:^#.*$)", "", read(whole, name))
        found = re.findall(r"[Ll]esson\s+(\d\d)", said)
        left += [f"{name}: {lesson}" for lesson in found if lesson != site.number(name)]
    assert [line for line in left if line[-2:] in whole.lessons] == []


# Figures


def figures(path):
    cells = nbformat.read(path, as_version=4).cells
    outputs = [output for cell in cells for output in cell.get("outputs", [])]
    return [o.metadata["image/png"]["alt"] for o in outputs if "image/png" in o.get("data", {})]


def test_the_words_for_a_figure_are_its_description_or_the_first_sentence_of_a_long_one():
    short, rest = "It is 3.5 against m = 0.4, i.e. less.", " And so on" + ", on and on" * 40 + "."
    assert site.alt(short) == short
    assert site.alt(f"The error is 3.5 at 0.4.{rest}") == "The error is 3.5 at 0.4."
    assert site.alt(rest) == rest


def test_each_committed_figure_has_words_that_begin_its_description():
    found = [alt for path in sorted(NOTEBOOKS.rglob("*.ipynb")) for alt in figures(path)]
    assert len(found) > 100
    for description in found:
        said = site.alt(description)
        assert description.startswith(said)
        assert len(said) > 20
        assert said == description or said[-1] in ".!?"
        assert said != description or len(said) <= site.LONG or ". " not in said


# Nothing from outside


def test_a_badge_becomes_a_link_and_no_picture_comes_from_outside(small):
    said = "[![Binder](https://x.org/b.svg)](https://y.org) ![Seen](https://x.org/c.png)"
    assert small.markdown(said, "index") == "[Binder](https://y.org) Seen"


def test_the_files_of_the_sites_own_name_no_address():
    for path in (ROOT / "site/static").iterdir():
        assert "://" not in path.read_text(encoding="utf-8")


def test_buttons_lead_outside_only_where_the_repository_has_an_address():
    assert "http" not in str(site.options(None))
    told = site.options(ADDRESS)
    assert told["repository_url"] == ADDRESS
    assert told["launch_buttons"]["binderhub_url"] == "https://mybinder.org"
    assert "colab" not in str(told)  # Colab installs nothing by itself


# The package


@pytest.mark.parametrize("name", api.rooms())
def test_each_public_function_of_a_module_is_on_its_page_as_it_is_written(name):
    path = api.rooms()[name]
    page, source = api.page(name, path), path.read_text(encoding="utf-8")
    written = re.findall(r'(?ms)^(def ([a-z]\w*)\(.*?:)\n(?=    """)', source)
    assert written or name == "checks"
    for definition, called in written:
        assert f"\n## {called}\n".replace("_", r"\_") in page
        assert f"```python\n{definition}\n```\n" in page


def test_the_package_has_a_page_for_each_public_module_and_room_for_new_ones():
    files = [p.stem for p in (ROOT / "performer_course").glob("[a-z]*.py")] + ["checks"]
    assert sorted(api.pages()) == sorted(f"{name}.md" for name in ["index", *files])


def test_each_check_is_on_the_page_of_the_checks():
    from performer_course import checks

    page = api.page("checks", api.rooms()["checks"])
    names = [name for name in vars(checks) if callable(getattr(checks, name))]
    assert len(names) > 40
    assert [name for name in names if f"## {name}\n".replace("_", r"\_") not in page] == []


def test_shapes_and_fields_of_a_docstring_are_on_the_page():
    page = api.page("attention", api.rooms()["attention"])
    assert 'q: Float[Array, "... L d"],' in page
    assert "class State(NamedTuple):\n    c: Float" in page
    assert re.search(r"(?m)^\*\*Cost:\*\* O\(L S \(d \\\+ e\)\)", page)


def test_the_pages_of_the_package_are_read_and_not_imported(tmp_path):
    (tmp_path / "__init__.py").write_text('"""Map.\n\n    room  what\n"""\n', encoding="utf-8")
    code = '"""A *room*."""\nraise SystemExit\ndef f(x: "n d"):\n    """x_i. Cost: 1."""\n    g()\n'
    (tmp_path / "room.py").write_text(code, encoding="utf-8")
    expected = '# room\n\nA \\*room\\*.\n\n## f\n\n```python\ndef f(x: "n d"):\n```\n\n'
    assert api.pages(tmp_path)["room.md"] == expected + "x\\_i.\n\n**Cost:** 1.\n"


# Tools that are missing, and who runs them


def test_without_npm_one_is_told_how_to_get_it(tmp_path, monkeypatch):
    monkeypatch.setattr("shutil.which", lambda name: None)
    with pytest.raises(SystemExit, match=r"npm is missing.*mathjax.*apt install npm"):
        npm.package("mathjax", tmp_path)


def test_what_npm_has_brought_is_fetched_once(tmp_path, monkeypatch):
    (tmp_path / f"mathjax-{npm.PINS['mathjax']}").mkdir()
    monkeypatch.setattr("shutil.which", lambda name: pytest.fail("npm is asked again"))
    assert npm.package("mathjax", tmp_path).is_dir()


def test_without_sphinx_one_is_told_of_the_extra(monkeypatch):
    monkeypatch.setattr(site, "find_spec", lambda name: None)
    with pytest.raises(SystemExit, match=r"sphinx, myst-nb, .*missing.*make site.*\[site\]"):
        site.main()


def test_the_rules_of_the_site_need_none_of_its_tools():
    code = "import sys, tools.site; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    heavy = {"sphinx", "docutils", "myst_nb", "nbformat", "jupytext", "numpy", "performer_course"}
    assert heavy & set(done.stdout.split()) == set()
    assert "tools.api" in done.stdout.split()


def test_what_is_published_has_been_looked_at_and_only_publishing_may_publish():
    pages = yaml.safe_load(text(".github/workflows/pages.yml"))
    jobs = pages["jobs"]
    runs = [step.get("run", "") for step in jobs["build"]["steps"]]
    assert "make test-kit PYTHON=python" in runs
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


@pytest.mark.parametrize("filters", [True, False])
def test_an_archive_is_unpacked_with_or_without_the_filters_of_newer_pythons(
    filters, tmp_path, monkeypatch
):
    class Early(tarfile.TarFile):
        """As in Python 3.11.0: no filters."""

        def extractall(self, path):
            self.extraction_filter = lambda member, _: member
            return super().extractall(path)

    def pack(command, cwd, **_):
        with tarfile.open(Path(cwd) / "made.tgz", "w:gz") as made:
            made.add(__file__, "package/tex.js")
        return subprocess.CompletedProcess(command, 0)

    if not filters:
        monkeypatch.delattr(tarfile, "data_filter", raising=False)
        monkeypatch.setattr(tarfile, "open", lambda *args: Early.open(*args))
    monkeypatch.setattr("shutil.which", lambda name: name)
    monkeypatch.setattr(npm.subprocess, "run", pack)
    unpacked = npm.package("mathjax", tmp_path / "npm")
    assert (unpacked / "tex.js").read_bytes() == Path(__file__).read_bytes()
    assert [path.name for path in unpacked.parent.iterdir()] == [unpacked.name]
