"""The whole round of grading, in the sandbox: release, hand in, autograde, feed back.

    make test-kit

Students of three lessons, right, wrong, and of each kind that tries to get marks by other means.
"""

import importlib
import re
import shutil
import socket
import sys
from pathlib import Path

import nbformat
import numpy as np
import pytest

from kit import course, variants
from kit.grading import sandbox
from kit.grading.judge import judged
from performer_course import checks
from tests.exercises.shared import loopback, wrong_answers
from tests.grading import digests
from tools.notebooks import NOTEBOOKS, ROOT

from .rounds import hand_in, marks, nbgrader, solutions

SEED = "of the kit"
SECONDS = 20  # what a cell or an answer may take here
LESSONS = {
    "01": ("quadratic_features", "highest_degree", "distance_to_mean"),
    "05": ("worth", "loses_at", "orthogonal_directions"),
    "10": ("masked_linear_attention", "padding_invariant", "features_at_least"),
}
WRONG = {
    "01": "def quadratic_features(x):\n    return x**2",
    "05": "def worth(m, d):\n    return m * (d + 2) / 3",
    "10": "def features_at_least(A, eps):\n    return 1",
}
HINTS = {
    "01": "quadratic_features: the squares alone: the products x_i x_j are missing.",
    "05": "worth: that is for full blocks: the last one is cut, and saves less.",
    "10": "features_at_least: found 1 for (12, 9) weights, share 0.6, expected 2.",
}

# Put before the solution's answers, or in their place. {places} is a list of paths to write to, and
# {port} a port of this machine that somebody listens at.
REACH = """\
import json, os, pathlib, socket, subprocess, sys
def reach():
    for place in {places}:
        for mode in ("w", "a"):
            try:
                with open(place, mode) as file:
                    file.write("reached")
            except OSError:
                pass
    try:
        socket.create_connection(("127.0.0.1", {port}), timeout=1).send(b"reached")
    except OSError:
        pass
    try:
        subprocess.run(["sh", "-c", "(sleep 600; echo reached > {places[0]}) &"])
    except OSError:
        pass
reach()
"""
FORGERIES = {
    "forged_checks": """\
from performer_course import checks
class Yes:
    def __getattr__(self, name):
        return lambda answer: print(name + ": right.")
checks = Yes()
sys = __import__("sys")
sys.modules["performer_course.checks"] = sys.modules["performer_course"].checks = checks
""",
    "forged_reload": """\
import importlib
from performer_course import checks
for name in {names}:
    setattr(checks, name, lambda answer: print("right."))
importlib.reload = lambda module: module
importlib.import_module = lambda *a: checks
""",
    "forged_numpy": """\
import builtins, numpy as np
class Equal(np.ndarray):
    __eq__ = lambda self, other: np.True_
    __ne__ = lambda self, other: np.False_
    __sub__ = __rsub__ = lambda self, other: np.zeros(())
np.allclose = np.array_equal = lambda *a, **k: True
np.testing.assert_allclose = lambda *a, **k: None
builtins.isinstance = lambda *a: True
""",
    "forged_output": """\
import os, json
for number in range(3, 64):
    for text in (b'0000000e{{"value": true}}', b'{{"right": true}}\\n'):
        try:
            os.write(number, text)
        except OSError:
            pass
print(json.dumps({{"right": True, "hint": ""}}))
""",
    "forged_files": REACH
    + """\
for name in ("results.json", "verdict.json", "task.json", "grades.csv", "gradebook.db"):
    for folder in (".", "..", "../..", "../../..", "/tmp", os.path.expanduser("~")):
        try:
            pathlib.Path(folder, name).write_text('{{"right": true, "hint": "", "score": 3}}')
        except OSError:
            pass
""",
}
STUB = """\
def {name}(*arguments):
    if "reach" in globals():
        reach()
    return np.zeros(()).view(globals().get("Equal", np.ndarray))
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("kit") / "course"
    folder.mkdir()
    (folder / course.SEED).write_text(SEED)
    course.make(folder)
    config = folder / "nbgrader_config.py"
    config.write_text(config.read_text(encoding="utf-8") + f"c.Judge.seconds = {SECONDS}\n")
    for name in [*(f"lesson{lesson}" for lesson in LESSONS), "variant10", "exam"]:
        nbgrader(folder, "generate_assignment", name, "--create")
    return folder


def claims_all(nb):
    """Metadata and outputs as one would like them to be, and no check."""
    for cell in nb.cells:
        if cell.metadata.get("nbgrader", {}).get("grade") and cell.cell_type == "code":
            cell.metadata.nbgrader |= {"solution": True, "locked": False, "points": 100}
            cell.source = "print('right.')"
            cell.outputs = [nbformat.v4.new_output("stream", text="right.\n")]
    nb.metadata["kernelspec"] = {"name": "mine", "display_name": "mine", "language": "python"}


def without_checks(nb):
    nb.cells = [c for c in nb.cells if not c.metadata.get("nbgrader", {}).get("grade")]


GRADED = ("autograded", "feedback", "gradebook.db")  # what grading itself writes


@pytest.fixture(scope="module")
def round_trip(folder):
    """All hand in, all are graded and get feedback; what was reached meanwhile."""
    outside = folder.parent / "outside"
    outside.mkdir()
    places = [outside / "canary", folder / "gradebook.db", folder / "seed", ROOT / "canary"]
    places += [folder / "source/lesson01/01_polynomial_kernel.ipynb", Path.home() / "canary"]
    places += [ROOT / "performer_course/checks/canary.py", Path(sys.prefix) / "canary"]
    places += [folder / "submitted/right/lesson01/canary", Path("/tmp/canary-of-the-kit")]
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0.1)
        for lesson, names in LESSONS.items():
            for student, answers in students(folder, lesson, names, places, server).items():
                if lesson == "01" or student in EVERYWHERE:
                    hand_in(folder, student, f"lesson{lesson}", answers)
            if lesson != "01":
                continue
            (path,) = (folder / f"source/lesson{lesson}").glob("*.ipynb")
            hand_in(folder, "claims", f"lesson{lesson}", {}, claims_all)
            hand_in(folder, "no_checks", f"lesson{lesson}", {}, without_checks)
            linked = folder / f"submitted/linked/lesson{lesson}/{path.name}"
            linked.parent.mkdir(parents=True)
            linked.symlink_to(path)
            (linked.parent / "notes.txt").symlink_to(folder / "seed")
        watched = folder, outside, ROOT / "performer_course", ROOT / "notebooks"
        before = digests(*watched, leave=GRADED)
        for lesson in LESSONS:
            nbgrader(folder, "autograde", f"lesson{lesson}")
            nbgrader(folder, "generate_feedback", f"lesson{lesson}")
        after = digests(*watched, leave=GRADED)
        try:
            server.accept()[0].close()
            called = True
        except TimeoutError:
            called = False
    new = [str(path) for path in places if "canary" in path.name and path.exists()]
    return {"before": before, "after": after, "called": called, "new": new}


def students(folder, lesson, names, places, server):
    """The answers of each student of a lesson."""
    right = solutions(folder, f"lesson{lesson}")
    given = {"places": [str(path) for path in places], "port": server.getsockname()[1]}
    given |= {"names": names}
    stubs = {name: STUB.format(name=name) for name in names}
    first, second, third = names
    found = {
        "right": right,
        "wrong": right | {WRONG[lesson].split("(")[0].removeprefix("def "): WRONG[lesson]},
        "endless": right | {first: f"def {first}(*a):\n    while True:\n        pass"},
        "endless_cell": right | {second: f"{right[second]}\nwhile True:\n    pass"},
        "exiting": right | {third: f"import os\ndef {third}(*a):\n    os._exit(0)"},
        "exiting_cell": right | {first: f"{right[first]}\nimport os\nos._exit(0)"},
        "stopped": right | {first: f"import os\ndef {first}(*a):\n    os.kill(os.getpid(), 19)"},
        "untouched": {},
        "reaching_but_right": right | {first: REACH.format(**given) + right[first]},
    }
    for student, forgery in FORGERIES.items():
        found[student] = stubs | {first: forgery.format(**given) + stubs[first]}
    return found


EXPECTED = {
    "right": 3,
    "wrong": 2,
    "endless": 2,
    "endless_cell": 2,
    "exiting": 2,
    "exiting_cell": 2,
    "stopped": 2,
    "untouched": 0,
    "reaching_but_right": 3,
    "claims": 0,
    "no_checks": 0,
    "linked": 0,
    **dict.fromkeys(FORGERIES, 0),
}
EVERYWHERE = {"right", "wrong", "endless", "exiting", *FORGERIES}  # the others in lesson 01 alone


def of_lesson(lesson):
    """The students of a lesson, with their marks."""
    return {who: EXPECTED[who] for who in EXPECTED if lesson == "01" or who in EVERYWHERE}


def test_full_marks_go_to_right_answers_alone(folder, round_trip, tmp_path):
    found = marks(folder, tmp_path)
    wanted = {
        (f"lesson{lesson}", who): points
        for lesson in LESSONS
        for who, points in of_lesson(lesson).items()
    }
    assert {key: found[key] for key in wanted} == wanted


def test_nothing_outside_the_sandbox_was_changed_and_nobody_was_called(round_trip):
    assert round_trip["after"] == round_trip["before"]
    assert round_trip["new"] == []
    assert round_trip["called"] is False


def test_a_link_shows_nothing_of_what_it_leads_to(folder, round_trip):
    for kind in ("autograded", "feedback"):
        (path,) = [p for p in (folder / kind / "linked/lesson01").iterdir() if p.suffix != ".txt"]
        assert "SOLUTION" not in path.read_text(encoding="utf-8")
        assert not (path.parent / "notes.txt").exists()


@pytest.mark.parametrize("lesson", LESSONS)
def test_each_student_gets_feedback_with_hints_alone(folder, round_trip, lesson):
    for student, points in of_lesson(lesson).items():
        (path,) = (folder / "feedback" / student / f"lesson{lesson}").glob("*.html")
        whole = path.read_text(encoding="utf-8")
        page = whole.partition("<body")[2]  # without its styles
        assert not re.search(r"<(script|link|img)\b[^>]*\bhttps?:", whole)
        assert "Traceback" not in page
        missed = 3 - points
        assert page.count("Hint: ") == missed, student
        assert page.count(": right.") >= 3 - missed
    (path,) = (folder / f"feedback/wrong/lesson{lesson}").glob("*.html")
    page = path.read_text(encoding="utf-8")
    assert HINTS[lesson] in page
    assert page.count("<math") > 3


def test_a_variant_goes_the_same_way(folder, tmp_path):
    right = solutions(folder, "variant10")
    hand_in(folder, "vera", "variant10", right)
    other = variants.sheet("10", "another seed").tasks  # each of the three differs
    copied = {task.name: task.source(task.solution) for task in other}
    hand_in(folder, "otto", "variant10", copied)
    nbgrader(folder, "autograde", "variant10")
    nbgrader(folder, "generate_feedback", "variant10")
    found = marks(folder, tmp_path)
    assert found["variant10", "vera"] == 6  # and 4 more by hand
    assert found["variant10", "otto"] == 0
    assert len(list((folder / "feedback").glob("*/variant10/*.html"))) == 2


def test_released_notebooks_hold_no_answer_and_the_seed_is_in_none(folder):
    for path in (folder / "release").rglob("*.ipynb"):
        text = path.read_text(encoding="utf-8")
        assert "SOLUTION" not in text
        assert SEED not in text
        assert text.count("NotImplementedError") >= 3


def test_without_a_sandbox_nbgrader_grades_nothing(folder, tmp_path):
    hand_in(folder, "late", "lesson01", {})
    bare = {"PATH": str(tmp_path)}
    with pytest.raises(AssertionError, match="bubblewrap") as refused:
        nbgrader(folder, "autograde", "lesson01", "--student", "late", env=bare)
    assert "No submission was graded" in str(refused.value)
    assert not (folder / "autograded/late").exists()
    shutil.rmtree(folder / "submitted/late")


SOLUTIONS = sorted((NOTEBOOKS / "solutions").glob("*.ipynb"))


@pytest.mark.parametrize("path", SOLUTIONS, ids=lambda path: path.stem)
def test_each_solution_of_the_course_is_right_in_the_sandbox(path):
    cells = []
    for cell in course.graded(nbformat.read(path, as_version=4)).cells:
        data = cell.metadata.get("nbgrader", {})
        if cell.cell_type == "code" and data.get("grade") and not data["solution"]:
            name = data["grade_id"].removeprefix("check-")
            task = {"cells": cells, "name": name, "of": None, "seconds": 60.0}
            found = judged(task, sandbox.worker(300))
            assert found == {"right": True, "hint": "", "fatal": {}}, name
        elif cell.cell_type == "code":
            cells.append(cell.source)


# Their answers draw, and here from a generator that goes on elsewhere: another case may fail first,
# and of the poor strategies one may have luck, or another slip be named.
DRAWN = {"choose_rows", "what_is_wrong", "can_be_swapped"}


def heard(name, answer):
    """The hint that the check gives from far away; "" if none."""
    try:
        with np.errstate(all="ignore"):
            getattr(checks, name)(loopback(answer))
    except checks.Hint as hint:
        return str(hint)
    return ""


TESTED = sorted(path.stem[5:] for path in (ROOT / "tests/exercises").glob("test_*.py"))


@pytest.mark.parametrize("lesson", TESTED)
def test_each_slip_gets_its_hint_from_far_away_too(lesson, monkeypatch):
    monkeypatch.setattr("performer_course.checks._judge._own_line", lambda *_: "")
    tested = importlib.import_module(f"tests.exercises.test_{lesson}")
    for name in tested.RIGHT.keys() - course.BY_HAND.keys():
        assert [heard(name, answer) for answer in tested.RIGHT[name]] == [""] * len(
            tested.RIGHT[name]
        )
        wrong = wrong_answers(name, tested.WRONG.get(name, ()))
        said = [(heard(name, answer), hint) for _, answer, hint in wrong]
        if name in DRAWN:
            assert sum(not text for text, _ in said) <= 1
        else:
            # what the answer calls, `join`, may have given the hint, and then it is quoted
            words = [(re.sub(rf"^{name}:(\\? )*", "", hint), text) for text, hint in said]
            assert [pair for pair in words if not re.search(*pair)] == []


def test_an_examination_goes_the_same_way_and_its_key_stays_at_home(folder, tmp_path):
    hand_in(folder, "erna", "exam", solutions(folder, "exam"))
    hand_in(folder, "hans", "exam", {})
    nbgrader(folder, "autograde", "exam")
    nbgrader(folder, "generate_feedback", "exam")
    found = marks(folder, tmp_path)
    assert (found["exam", "erna"], found["exam", "hans"]) == (16, 0)  # and 4 more by hand
    for kind in ("release", "autograded", "feedback"):
        files = [path for path in (folder / kind).rglob("*") if path.is_file()]
        assert files
        assert not any("Key of the examination" in path.read_text("utf-8") for path in files)
