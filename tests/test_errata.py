"""Appendix a1: every entry is there, fails as published and holds as corrected.

The list of entries stands here, so that none can be lost. The claims at the end are of entries that
the appendix does not measure, each against its closed form.
"""

import ast
import math
import re
import runpy

import matplotlib.pyplot as plt
import numpy as np
import pytest

from performer_course import features, projections, theory
from tests.claims.shared import agree
from tools.notebooks import NOTEBOOKS, read

SOURCE = NOTEBOOKS / "a1_errata.py"
ENTRIES = {  # measured: each fails in a cell, and its correction holds there
    "000": ["1", "2", "3", "4", "7a", "7b", "10a", "10b"],
    "001": ["1"],
    "002": ["1", "2b", "3a", "3b", "3c", "3d", "3e"],
    "003": ["1", "2", "3", "4", "6"],
    "004": ["1", "3b", "4a", "5a", "5b", "6"],
}
ENTRIES = [f"{text}.{entry}" for text, entries in ENTRIES.items() for entry in entries]
PEN = ["000.6a", "000.6b", "000.8", "000.9a", "000.9b", "001.2", "002.4", "002.5", "003.5a"]
PEN += ["003.5b", "004.2a", "004.2b", "004.2d", "004.4b", "004.4c", "004.8"]
IMPRECISE = ["000.5", "000.9", "000.11", "001.3", "001.4", "001.5", "001.6", "002.4", "002.6"]
IMPRECISE += ["003.7", "004.2c", "004.3a", "004.7", "004.9", "004.10"]


def sections():
    """(heading, text, code) of each ### section."""
    found = []
    for cell in read(SOURCE).cells:
        if cell.cell_type == "code":
            if found:
                found[-1][2].append(cell.source)
            continue
        for part in re.split(r"(?m)^(?=##)", cell.source):
            if part.startswith("## "):
                found.append((None, [part], []))
            elif part.startswith("### "):
                found.append((part.splitlines()[0], [part], []))
            elif found:
                found[-1][1].append(part)
    return [section for section in found if section[0]]


def called(code, name):
    """The entries for which a function is called in these cells."""
    calls = [node for cell in code for node in ast.walk(ast.parse(cell)) if is_call(node, name)]
    return [call.args[0].value for call in calls]


def is_call(node, name):
    return isinstance(node, ast.Call) and getattr(node.func, "id", "") == name


def covers(heading, entry):
    """E002.3 stands for 002.3a … 002.3e; other headings name each of their entries."""
    named = re.findall(r"E(\d{3}\.\w+)", heading)
    return entry in named or entry[:-1] in named


@pytest.mark.parametrize("entry", ENTRIES)
def test_each_entry_has_its_heading_its_statement_and_cells_that_judge_both(entry):
    (section,) = [s for s in sections() if covers(s[0], entry)]
    _, text, code = section
    assert "*Published*" in text[0]
    assert "*Correct" in "".join(text)
    assert called(code, "fails").count(entry) == 1
    assert called(code, "holds").count(entry) == 1


def test_no_entry_is_outside_the_list():
    code = [cell.source for cell in read(SOURCE).cells if cell.cell_type == "code"]
    for name in ("fails", "holds"):
        assert sorted(called(code, name)) == sorted(ENTRIES)
    headings = [entry for s in sections() for entry in re.findall(r"E(\d{3}\.\w+)", s[0])]
    assert all(any(e.startswith(heading) for e in ENTRIES) for heading in headings)


def text():
    return "\n".join(c.source for c in read(SOURCE).cells if c.cell_type == "markdown")


@pytest.mark.parametrize(("names", "mark"), [(PEN, ""), (IMPRECISE, "I")], ids=["pen", "imprecise"])
def test_a_table_has_each_slip_once_with_its_correction_and_its_lesson(names, mark):
    pattern = rf"(?m)^\| {mark}(\d{{3}}\.\w+) \| (.+) \| (.+) \| \[(\w\d)\]\((\w+)\.ipynb\) \|$"
    rows = re.findall(pattern, text())
    assert [row[0] for row in rows] == names
    for _, printed, correct, number, lesson in rows:
        assert printed != correct
        assert lesson.startswith(f"{number}_")


@pytest.mark.parametrize("entry", ENTRIES)
def test_a_measured_entry_leads_to_a_lesson(entry):
    (found,) = [part for heading, part, _ in sections() if covers(heading, entry)]
    links = re.findall(r"\]\((\w+)\.ipynb\)", "".join(found))
    assert links
    assert all((NOTEBOOKS / f"{lesson}.py").exists() for lesson in links)


def test_every_entry_fails_as_published_and_holds_as_corrected(monkeypatch):
    monkeypatch.chdir(NOTEBOOKS)
    verdicts = runpy.run_path(str(SOURCE))["verdicts"]
    plt.close("all")
    assert sorted(verdicts) == sorted(ENTRIES)
    assert {e: found for e, found in verdicts.items() if found != (True, True)} == {}


# Claims that no cell of the appendix measures


def mean_is(values, expected, what):
    agree(values.mean(0), expected, values.std(0) / math.sqrt(len(values)), what)


def test_a_fixed_phase_adds_the_kernel_of_the_sum():  # 004.3a
    m = 100_000
    W = np.random.default_rng(1).normal(size=(m, 1))
    for x, y, b in ((0.6, 0.4, 0.3), (1.0, -0.5, 2.0), (0.2, 0.9, np.pi / 4)):
        minus, plus = (math.exp(-(t**2) / 2) for t in (x - y, x + y))
        phi = features.fourier_phase(np.array([[x], [y]]), W, np.full(m, b))
        mean_is(m * phi[0] * phi[1], minus + math.cos(2 * b) * plus, f"b = {b}")


def test_a_phase_matters_modulo_half_a_turn_only():
    rng = np.random.default_rng(2)
    x, W, b = rng.normal(size=(6, 3)), rng.normal(size=(9, 3)), projections.phases(rng, 9)
    assert b.max() > math.pi
    grams = [phi @ phi.T for phi in (features.fourier_phase(x, W, c) for c in (b, b % math.pi))]
    np.testing.assert_allclose(*grams, atol=1e-14)


def test_the_second_moment_needs_the_square_outside_the_sum():  # 003.5a
    x, y, m, N = np.array([0.4, 0.1]), np.array([-0.1, 0.5]), 4, 50_000
    phi = features.positive(np.stack([x, y]), np.random.default_rng(7).normal(size=(N * m, 2)))
    terms = N * m * (phi[0] * phi[1]).reshape(N, m)
    square, kappa = math.exp((x + y) @ (x + y)), math.exp(x @ y)
    inside = square * kappa**2 / m
    mean_is((terms**2).sum(1) / m**2, inside, "inside")
    mean_is(terms.mean(1) ** 2, inside + (m - 1) / m * kappa**2, "outside")


def test_the_trigonometric_error_is_bounded_by_norms_and_from_below_by_the_weight():  # I002.2a
    x, y = np.random.default_rng(10).normal(size=(2, 10_000, 3))
    mse, kappa = theory.trigonometric_mse(x, y, 1), np.exp((x * y).sum(-1))
    assert (mse <= np.exp((x**2 + y**2).sum(-1)) / 2 * (1 + 1e-12)).all()
    small = kappa < 1
    floor = (1 / kappa - kappa**3) ** 2 / 2
    assert (mse[small] >= floor[small] * (1 - 1e-12)).all()
    least = theory.trigonometric_mse(x, -x, 1)  # y = −x reaches it
    kappa = np.exp(-(x**2).sum(-1))
    np.testing.assert_allclose(least, (1 / kappa - kappa**3) ** 2 / 2, rtol=1e-9)
