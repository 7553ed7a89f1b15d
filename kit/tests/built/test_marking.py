"""Marking by hand in a browser, and what a text that is a program comes to there.

    make test-kit

A lecturer's whole round as kit/pages/grading.md tells it: assignments are made, autograded and
given feedback in Formgrader, two answers are marked by hand. One student answers right; another's
texts, files and metadata are what would run in the browser of whoever marks.
"""

import os
import re
import socket
import subprocess
import sys
import time
import urllib.request

import nbformat
import pytest
from nbconvert.filters.markdown_mistune import IPythonRenderer, MarkdownWithMath

from kit import chromium, course
from kit.grading import pages
from kit.tests.hostile import RUN, TAG, TEXTS, spoilt

from .browser import opened
from .rounds import hand_in, marks, solutions

PATIENCE = 240_000  # milliseconds
POINTS = {"anna": 5, "mallory": 1}  # given by hand
CLICKS = """() => document.querySelectorAll('#notebook a, math [href]').forEach(link => {
    if (!/^https?:/.test(link.href)) link.dispatchEvent(new MouseEvent('click'));
})"""
NAME = "variant05"
NOTEBOOK = "variant_05"
BY_HAND = "derivation"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("marking") / "course"
    folder.mkdir()
    (folder / course.SEED).write_text("of the kit")
    course.make(folder)
    return folder


@pytest.fixture(scope="module")
def formgrader(folder):
    """The address of JupyterLab, started in the folder of the course."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "jupyterlab", "--no-browser", "--ServerApp.ip=127.0.0.1"]
    command += ["--allow-root", f"--ServerApp.port={port}", "--ServerApp.port_retries=0"]
    leave = {"PYTHONPATH"}
    env = {key: value for key, value in os.environ.items() if key not in leave}
    env |= {"JUPYTER_TOKEN": "kit", "HOME": str(folder.parent)}
    with (folder.parent / "lab.log").open("w") as log:
        server = subprocess.Popen(command, cwd=folder, env=env, stdout=log, stderr=log)
        address = f"http://127.0.0.1:{port}/"
        for _ in range(240):
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


def mallory(nb):
    """All texts in the answer, and each in a cell; an error whose words are a tag; no texts."""
    for cell in nb.cells:
        name = cell.metadata.get("nbgrader", {}).get("grade_id")
        if name == BY_HAND:
            cell.source += "\n\n".join(["", *TEXTS.values()])
        elif name == "moment":
            cell.source = f"def moment(d):\n    raise ValueError({TAG!r})"
    nb.cells += [nbformat.v4.new_markdown_cell(text) for text in TEXTS.values()]
    spoilt(nb)


def told(tab, address, what):
    """What Formgrader says when `what` is clicked on one of its pages."""
    tab.goto(address)
    tab.locator(what).first.click()
    title = tab.locator(".modal-title:visible")
    title.wait_for(timeout=PATIENCE)
    return title.inner_text()


@pytest.fixture(scope="module")
def tab(formgrader, browser):
    """A tab that is logged in, and what goes wrong in it."""
    with opened(browser, formgrader, "lab?token=kit") as (tab, faults):
        yield tab, faults


@pytest.fixture(scope="module")
def marked(folder, formgrader, tab, tmp_path_factory):
    """The round: {what was done: what was seen}, and at "faults" what went wrong on the pages."""
    tab, faults = tab
    tab.locator("text=Nbgrader >> visible=true").first.click()
    items = tab.locator(".lm-Menu-itemLabel:visible").all_inner_texts()
    seen = {"menu": items}
    faults.clear()  # JupyterLab's own
    managing = f"{formgrader}formgrader/manage_assignments"
    seen["release"] = told(tab, managing, f"tr:has-text('{NAME}') .assign a")
    right = solutions(folder, NAME)
    hand_in(folder, "anna", NAME, right)
    place = hand_in(folder, "mallory", NAME, right, change=mallory)
    place.with_name("drawing.html").write_text(f"<script>{RUN}</script>")
    for who in POINTS:
        address = f"{formgrader}formgrader/manage_submissions/{NAME}"
        seen["autograde", who] = told(tab, address, f"tr:has-text('{who}') .autograde a")
    for who, points in POINTS.items():
        tab.goto(f"{formgrader}formgrader/gradebook/{NAME}/{NOTEBOOK}")
        row = tab.locator("tbody tr", has_text=who)
        row.locator(".glyphicon-eye-open").click()
        row.locator("a.name-shown").click()
        tab.wait_for_load_state("networkidle")  # the marks that there are have come
        for field, what, kind in (
            (BY_HAND, str(points), "grade"),
            (f"{BY_HAND}-comment", "See $x_i < 1$ again.", "comment"),
        ):
            tab.locator(f"#{field}").fill(what)
            with tab.expect_response(lambda got, kind=kind: f"/api/{kind}/" in got.url):
                tab.locator(f"#{field}").blur()
        seen["page", who] = tab.content()
        seen["title", who] = title_after_clicks(tab)
        seen["file", who] = tab.request.get(f"{tab.url.partition('?')[0]}drawing.html").status
    seen["feedback"] = told(tab, managing, f"tr:has-text('{NAME}') .generate-feedback a")
    found = marks(folder, tmp_path_factory.mktemp("grades"))
    seen["grades"] = {who: found[NAME, who] for who in POINTS}
    return {**seen, "faults": faults}


def title_after_clicks(tab) -> str:
    """The title of a page once each of its links was clicked that leads to no other page."""
    tab.evaluate(CLICKS)
    tab.wait_for_timeout(500)
    return tab.title()


def stopped(faults):
    """Of what goes wrong on pages, all but what their policy stopped."""
    return [fault for fault in faults if "Content Security Policy" not in fault]


def test_formgrader_is_in_the_menu_and_each_of_its_buttons_says_success(marked):
    assert "Formgrader" in marked["menu"]
    said = [marked["release"], marked["feedback"], *(marked["autograde", who] for who in POINTS)]
    assert said == ["Success"] * 4


def test_answers_are_marked_by_hand_and_the_marks_are_exported(marked):
    assert marked["grades"] == {"anna": 4 + POINTS["anna"], "mallory": 2 + POINTS["mallory"]}


def test_formulas_are_set_where_answers_are_marked(marked):
    page = marked["page", "anna"]
    assert page.count("<math") > 20
    assert "$" not in re.sub(r"(?s)<(script|textarea)\b.*?</\1>", "", page)


def test_no_text_of_a_student_runs_where_answers_are_marked(marked):
    assert [marked["title", who] for who in POINTS] == [NOTEBOOK] * 2
    assert stopped(marked["faults"]) == []
    assert [marked["file", who] for who in POINTS] == [404] * 2


def test_no_text_of_a_student_runs_in_feedback(marked, folder, browser):
    for who in POINTS:
        with (
            chromium.served(folder / "feedback" / who / NAME) as address,
            opened(browser, address, f"{NOTEBOOK}.html") as (page, faults),
        ):
            assert title_after_clicks(page) == NOTEBOOK
            assert stopped(faults) == []
            assert page.locator(".panel-footer", has_text="Comments").count() == 1
            assert page.locator(".panel-footer math").count() == 1


def test_the_policy_alone_lets_nothing_run(browser, tmp_path):
    """The same texts as they were written, in a page that has the policy and nothing else.

    A page that moves on runs nothing, and no policy forbids it.
    """
    texts = [text for name, text in TEXTS.items() if name != "a page that moves on"]
    written = MarkdownWithMath(renderer=IPythonRenderer(escape=False)).render("\n\n".join(texts))
    body = f"<title>kept</title>{written}"
    for kind in ("feedback", "formgrade"):
        meta = f'<meta http-equiv="Content-Security-Policy" content="{pages.policy(kind)}">'
        for head, title in ((meta, "kept"), ("", "reached")):
            (tmp_path / "page.html").write_text(f"<head>{head}</head>{body}", encoding="utf-8")
            with chromium.served(tmp_path) as address:
                context = browser.new_context()
                context.route(lambda url: not url.startswith(address), lambda route: route.abort())
                page = context.new_page()
                page.goto(f"{address}page.html")
                page.wait_for_timeout(500)
                assert (kind, page.title()) == (kind, title)
                context.close()
