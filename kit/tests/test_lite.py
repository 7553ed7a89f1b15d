"""What runs in the browser: what lessons 00 to 06 ask for, beside what Python has there.

Pyodide's compiled packages lie on its own server alone, so nothing is run here. What the notebooks
import (`in_browser.py`) is compared with Pyodide's lock file (`kit/pyodide.json`) and with
the wheels that we put beside it. `make test-kit` starts the kernel.
"""

import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import nbformat
import pytest
import yaml
from packaging.requirements import Requirement
from packaging.version import Version

from kit import lite, pyodide, site
from kit.pyodide import canonical
from tests.checkout import text
from tools import lab
from tools.setting import NOTEBOOKS, ROOT

from .in_browser import (
    FILES,
    KERNEL,
    LOCK,
    RUNNING,
    asked,
    barred,
    code,
    is_code,
    missing,
    opened,
    version,
    wants,
)

PROJECT = tomllib.loads(text("pyproject.toml"))["project"]
PAGE = text("kit/pages/in_the_browser.md")
LESSONS = sorted(NOTEBOOKS.glob("[0-9a][0-9]_*.ipynb"))
COLAB = {"colab", "install"}
NOT_THERE = {
    "distributed": "starts processes and connects them",
    "jax": "is compiled, and there is no build of it for the browser",
    "jupyterlab": "is the page itself",
    "optax": "needs JAX",
}


# What a notebook asks for


@pytest.mark.parametrize("name", RUNNING)
def test_a_notebook_in_the_browser_asks_for_nothing_that_is_not_there(name):
    assert {"numpy", "scipy", "jaxtyping", "wadler-lindig", "comm"} <= asked(FILES[name])
    assert missing(FILES[name]) == set()


def test_every_version_in_the_browser_meets_the_bounds_of_the_project():
    bounds = {}
    needed = [*PROJECT["dependencies"], *PROJECT["optional-dependencies"]["lessons"]]
    for requirement in map(Requirement, needed):
        bounds[canonical(requirement.name)] = requirement.specifier
    everything = set().union(*(asked(FILES[name]) for name in RUNNING))
    for name in everything - {"ipykernel"}:  # of which the kernel has a stand-in of its own
        for requirement in wants(name):
            there = version(canonical(requirement.name))
            assert there in requirement.specifier, f"{name} wants {requirement}, there is {there}"
        assert name not in bounds or version(name) in bounds[name], (name, version(name))
    assert set(map(canonical, lite.DRAWN_WITH)) <= everything
    assert {canonical(Requirement(r).name) for r in PROJECT["dependencies"]} <= everything


def test_python_in_the_browser_is_one_that_the_project_takes():
    assert Version(LOCK["python"]) in Requirement(f"x{PROJECT['requires-python']}").specifier


def test_each_wheel_that_is_put_beside_it_is_needed_and_pyodide_has_it_not():
    everything = set().union(*(asked(FILES[name]) for name in RUNNING))
    beside = {n for n in everything if not LOCK["packages"].get(n) and n not in KERNEL}
    assert beside == set(lite.WHEELS)


def test_what_is_not_in_the_browser_is_known_with_the_reason():
    absent = {name for name, package in LOCK["packages"].items() if package is None}
    assert absent - {*lite.WHEELS, *KERNEL} == NOT_THERE.keys()


# Python runs there in one thread of a page, without processes, network or files of the machine


@pytest.mark.parametrize("name", RUNNING)
def test_a_notebook_in_the_browser_starts_no_thread_or_process_and_opens_no_connection(name):
    assert barred(FILES[name]) == set()


@pytest.mark.parametrize("name", RUNNING)
def test_a_notebook_in_the_browser_opens_only_files_that_are_put_there(name):
    folder = Path(name).parent
    for path in opened(code(FILES[name])):
        whole = Path(os.path.normpath(folder / path)).as_posix()
        assert any(file == whole or file.startswith(f"{whole}/") for file in FILES), path


def test_who_sees_no_python_start_is_told_of_the_server_that_it_comes_from():
    (server,) = re.findall(r"comes from a public server, `(.+?)`", PAGE)
    assert f"Python did not start, as where a network blocks `{server}`" in lite.WORDS


def test_lesson_00_finds_every_source_that_it_counts_and_the_record_that_it_quotes():
    assert opened(code(FILES["my/00_start_here.ipynb"])) == [
        "../benchmarks/attention.json",
        "../notebooks",
    ]
    sources = {name for name in FILES if name.startswith("notebooks/")}
    counted = [*NOTEBOOKS.glob("*.py"), *NOTEBOOKS.glob("solutions/*.py")]
    assert sources == {path.relative_to(ROOT).as_posix() for path in counted}
    assert FILES["benchmarks/attention.json"] == (ROOT / "benchmarks/attention.json").read_bytes()


def test_the_faults_that_are_looked_for_are_found_in_the_lessons_that_have_them():
    found = {path.name[:2]: path.read_bytes() for path in LESSONS}
    assert missing(found["16"]) == {"jax", "optax"}
    assert missing(found["19"]) >= {"distributed"}
    assert barred(found["18"]) >= {"threading", "concurrent"}
    assert opened(code(found["07"])) == ["data/sentences.txt"]


def test_the_page_says_which_lessons_run_which_could_and_which_cannot_for_what_reason():
    lacking = {path.name[:2]: missing(path.read_bytes()) for path in LESSONS}
    barring = {path.name[:2]: barred(path.read_bytes()) for path in LESSONS}
    assert re.search(r"Lessons 00 to 06", PAGE)
    could = [n for n in lacking if not lacking[n] | barring[n] and n not in lite.LESSONS]
    (said,) = re.findall(r"Lessons? ([^.]+?) ask for nothing", " ".join(PAGE.split()))
    assert spelt(said) == could
    rows = re.findall(r"(?m)^\| ([\da ,and]+) \| (.+) \|$", PAGE)
    reasons = {number: reason for numbers, reason in rows for number in spelt(numbers)}
    assert sorted(reasons) == [n for n in lacking if lacking[n] | barring[n]]
    for number, reason in reasons.items():
        named = {"jax": "JAX", "distributed": "processes"}
        for package in lacking[number] & named.keys():
            assert named[package] in reason, (number, reason)
        assert ("thread" in reason) == (number == "18")


def spelt(numbers: str) -> list[str]:
    """The lessons of '07 to 09, 20 and a1'."""
    known, found = [path.name[:2] for path in LESSONS], []
    for first, last in re.findall(r"(\d\d|a\d)(?: to (\d\d|a\d))?", numbers):
        found += known[known.index(first) : known.index(last or first) + 1]
    return found


def test_the_page_names_the_versions_of_the_lock():
    names = {"Python": LOCK["python"], "Pyodide": LOCK["pyodide"]}
    for name, package in (("NumPy", "numpy"), ("SciPy", "scipy"), ("scikit-learn", "scikit-learn")):
        names[name] = LOCK["packages"][package]["version"]
    for name, number in names.items():
        assert f"{name} {number}" in " ".join(PAGE.split())


# What lies there


def test_a_copy_is_that_of_make_lab_with_two_cells_in_front():
    mine = {f"my/{name}": content for name, content in lab.copies(NOTEBOOKS).items()}
    assert len(RUNNING) == 7 + 6 + 6
    for name in RUNNING:
        words, install, *rest = json.loads(FILES[name])["cells"]
        assert words["source"].startswith("**You read this in the browser.**")
        assert install["source"].startswith("import piplite\n\nawait piplite.install(['performer_")
        whole = json.loads(mine[name])["cells"]
        assert [bare(c) for c in rest] == [bare(c) for c in whole if c["id"] not in COLAB]
        assert not any(cell.get("outputs") for cell in rest)
        nbformat.validate(nbformat.reads(FILES[name], as_version=4))


def bare(cell):
    """A cell, with the words of links alone in its text."""
    source = "".join(cell["source"])
    said = (
        source if cell["cell_type"] == "code" else re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", source)
    )
    return cell | {"source": said}


def test_the_cells_for_colab_give_way():
    cells = [{"id": "colab"}, {"id": "install"}, {"id": "x", "cell_type": "code"}]
    assert [cell["id"] for cell in lite.opened(cells)] == ["in-the-browser", "install", "x"]


def test_each_link_in_the_browser_leads_to_a_file_that_lies_there():
    count = 0
    for name, content in FILES.items():
        if not name.endswith((".ipynb", ".md")):
            continue
        said = content.decode()
        if name.endswith(".ipynb"):
            cells = nbformat.reads(content, as_version=4).cells
            said = "\n".join(cell.source for cell in cells if not is_code(cell))
        for _, target, _ in site.LINK.findall(said):
            count += 1
            path = Path(os.path.normpath(Path(name).parent / target)).as_posix()
            assert path in FILES, f"{name}: {target}"
    assert count > 50


def test_a_link_to_what_does_not_lie_there_keeps_its_words():
    said = "[one](01_a.ipynb#x), [nine](../09_b.ipynb), [out](https://a.b), [here](#c)"
    expected = "[one](01_a.ipynb#x), nine, [out](https://a.b), [here](#c)"
    assert lite.reachable(said, "my/exercises/02_c.ipynb", {"my/exercises/01_a.ipynb"}) == expected


# The lock


def test_a_lock_is_reduced_to_what_is_asked_for_and_what_that_depends_on():
    packages = {
        "One": {"version": "1", "depends": ["two_b"]},
        "two-b": {"version": "2", "depends": []},
        "three": {"version": "3", "depends": []},
    }
    whole = {"info": {"python": "3.14.2"}, "packages": packages}
    found = pyodide.reduced(whole, "9", ["one", "four"])
    assert found["packages"] == {
        "four": None,
        "one": {"version": "1", "depends": ["two-b"]},
        "two-b": {"version": "2", "depends": []},
    }
    assert (found["pyodide"], found["python"]) == ("9", "3.14.2")
    assert json.loads(pyodide.written(found)) == found


def test_the_lock_is_of_the_version_that_npm_brings_and_answers_all_that_is_asked():
    assert LOCK["pyodide"] == pyodide.npm.PINS["pyodide"]
    assert {canonical(name) for name in pyodide.asked()} <= LOCK["packages"].keys()
    assert pyodide.written(LOCK) == pyodide.LOCK.read_text(encoding="utf-8")


# The site, and who builds it


def built(folder, *names):
    for name in names:
        path = folder / "lite" / "files" / "my" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("{}", encoding="utf-8")


@pytest.fixture(scope="module")
def stage(tmp_path_factory):
    folder = tmp_path_factory.mktemp("lite") / "source"
    site.stage(folder)
    return folder


def test_a_page_leads_to_the_browser_where_it_was_built_and_nowhere_else(stage, tmp_path):
    whole = site.Site(stage, built=tmp_path)
    lesson, exercise = (
        "notebooks/05_orthogonal_features",
        "notebooks/exercises/05_orthogonal_features",
    )
    assert "lite/" not in whole.beside(lesson) + whole.on_page(PAGE, site.BROWSER)
    built(tmp_path, "05_orthogonal_features.ipynb", "exercises/05_orthogonal_features.ipynb")
    start = "lite/lab/index.html?path=my"
    assert f"href='../{start}/05_orthogonal_features.ipynb'" in whole.beside(lesson)
    linked = f"href='../../{start}/exercises/05_orthogonal_features.ipynb'"
    assert linked in whole.beside(exercise)
    assert "lite/" not in whole.beside("notebooks/solutions/05_orthogonal_features")
    assert "lite/" not in whole.beside("notebooks/06_structured_projections")
    said = whole.on_page(PAGE, site.BROWSER)
    assert re.findall(r"href='(.*?)'", said) == [f"../../{start}/05_orthogonal_features.ipynb"]


def test_the_page_is_to_look_up_and_not_for_lecturers(stage):
    said = (stage / "index.md").read_text(encoding="utf-8")
    (lecturers,) = re.findall(r"(?s):caption: For lecturers\n(.*?)```", said)
    (behind,) = re.findall(r"(?s):caption: To look up\n(.*?)```", said)
    assert site.BROWSER not in lecturers
    assert site.BROWSER in behind.split()


def test_without_its_tools_one_is_told_of_the_extra(monkeypatch):
    monkeypatch.setattr(lite, "find_spec", lambda name: None)
    with pytest.raises(SystemExit, match=r"jupyterlite-core, .*wheel missing.*make lite.*\[lite\]"):
        lite.main()


def test_the_extra_has_each_tool_that_is_looked_for():
    extra = [Requirement(line) for line in PROJECT["optional-dependencies"]["lite"]]
    named = {canonical(requirement.name) for requirement in extra}
    assert named | {"jupyter-server"} == set(lite.NEEDED.values())
    assert {"contents"} in [requirement.extras for requirement in extra]  # brings jupyter-server


def test_the_rules_of_the_browser_need_none_of_its_tools():
    code = "import sys, kit.lite, kit.pyodide; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    heavy = {"jupyterlite_core", "jupyter_server", "wheel", "nbformat", "numpy", "performer_course"}
    assert heavy & set(done.stdout.split()) == set()
    assert "kit.lite" in done.stdout.split()


def test_the_browser_is_built_before_the_site_that_takes_it_along():
    steps = yaml.safe_load(text(".github/workflows/pages.yml"))["jobs"]["build"]["steps"]
    runs = [step.get("run", "") for step in steps]
    assert runs.index("make lite PYTHON=python") < runs.index("make test-kit PYTHON=python")
