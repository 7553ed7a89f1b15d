"""Every comparison of methods: which rows of the bench it leaves out, and why."""

import csv
import re

import numpy as np

from performer_course import compare
from tools.lesson import read
from tools.setting import NOTEBOOKS, ROOT

LISTED = ROOT / "tests/comparisons.csv"
MEASURES = re.compile(
    r"\b(normalised_error|rivals|card\.measure|error|perplexit\w+|bits|scores|records?|table"
    r"|print_table|DictReader)\("
)
# How a row of the bench shows in the code or the outputs of a place; where `rivals` is, all do.
SHOWS = {
    "mean(V)": r"uniform_attention|mean\(V\)|mean_value|normalised_error",
    "window": r"near_field|[Ww]indow",
    "window + sinks": r"sinks|\+ 4",
    "window + mean key": r"joint_attention|mean key",
    "window + sinks + mean key": r"(?s)(sinks|\+ 4).*mean key|mean key.*sinks",
    "Taylor, degree 1": r"[Tt]aylor",
    "Taylor, degree 2": r"[Tt]aylor",
    "window + centres": r"centres|clusters",
    "clustered queries": r"clustered",
    "positive features": r"favor_attention|[Ff]eatures|FAVOR",
}


def places():
    """{place: its code and outputs} of the sections of 08 to 23 that measure, of each project, and
    of each benchmark."""
    found = {path.stem: path.read_text("utf-8") for path in (ROOT / "benchmarks").glob("*.py")}
    del found["harness"]  # what the others share
    lessons = [path for path in NOTEBOOKS.glob("[0-2]*.ipynb") if path.stem >= "08"]
    for path in (*lessons, *NOTEBOOKS.glob("projects/solutions/*.ipynb")):
        number = path.stem.split("_")[0]
        for section in read(path).sections:
            cells = [cell for cell in section.cells if cell.kind == "code"]
            if any(MEASURES.search(cell.source) for cell in cells):
                place = number if number[0] == "p" else f"{number} §{section.name}"
                shown = [x for c in cells for x in (c.source, *(o.text for o in c.outputs))]
                found[place] = "\n".join([found.get(place, ""), *shown])
    return found


def listed():
    """{place: its row of the list}."""
    with LISTED.open(encoding="utf-8", newline="") as file:
        return {row["place"]: row for row in csv.DictReader(file)}


def wrong(found, known):
    """Places on one side only, rows left out without a reason, and rows that are not there."""
    faults = [f"{place}: on one side only" for place in found.keys() ^ known.keys()]
    for place in found.keys() & known.keys():
        without, shown = known[place]["missing"].removeprefix("all but "), found[place]
        out = [x for x in without.split("; ") if x]
        if out == ["all"] or without != known[place]["missing"]:
            out = [row for row in SHOWS if row not in out]
        faults += [f"{place}: {row} is no row" for row in out if row not in SHOWS]
        faults += [f"{place}: no reason"] * bool(out and len(known[place]["why"]) < 20)
        if not re.search(r"\b(rivals|card\.measure)\(", shown):
            kept = [row for row in SHOWS if row not in out]
            faults += [f"{place}: {x} is not there" for x in kept if not re.search(SHOWS[x], shown)]
    return faults


def test_every_comparison_has_each_row_of_the_bench_or_says_why_not():
    assert wrong(places(), listed()) == []


def test_a_comparison_not_listed_a_missing_row_and_a_missing_reason_are_found():
    found, known = {"01 §1": "error(favor_attention)"}, {"place": "01 §1", "why": ""}
    assert wrong(found, {}) == ["01 §1: on one side only"]
    assert "01 §1: no reason" in wrong(found, {"01 §1": known | {"missing": "window"}})
    known |= {"missing": "", "why": "it is the first lesson, and has no heads"}
    assert "01 §1: window is not there" in wrong(found, {"01 §1": known})
    assert wrong({"01 §1": "rivals(q, k, v)"}, {"01 §1": known}) == []


def test_the_list_knows_the_rows_of_the_bench():
    q, k, v = np.random.default_rng(0).normal(size=(3, 40, 4))
    assert [*compare.rivals(q, k, v, budget=10)] == [*SHOWS]
