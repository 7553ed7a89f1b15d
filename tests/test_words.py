"""Each number that a lesson states is printed, or set, by a cell beside it.

A number is a decimal or a whole number of two digits and more, also at either end of a range.
Beside a text are the cells up to the next text on either side, and beside an answer those before
it. What sums up, as the last sections do, repeats numbers of the sections before. A print counts
with its sign, its ± and its %, as a fraction or per cent, and in as few digits as the text has, if
these are two or more. What a question offers to choose from is free, as is what given.csv lists,
section by section: what others wrote or measured, constants, and what follows from a print.

Which print a number quotes is not known: a wrong number that something beside it prints is not
found. Of the numbers that quote a print, one in eleven made 30 % larger is such a number, and one
in six doubled.
"""

import ast
import csv
import re

import pytest

from tools.lesson import ANSWER, FENCE, Cell, Lesson, Output, Section, paths, questions, read
from tools.setting import ROOT

with open(ROOT / "tests/given.csv", encoding="utf-8", newline="") as file:
    GIVEN = {(row["section"], row["number"]): row["what it is"] for row in csv.DictReader(file)}
LAST = {"take away", "where it breaks", "exercises", "further reading"}
NUMBER = re.compile(
    r"(?<![\w.^])(?<!\d,)[-−]?(?:\d{1,3}(?:,\d{3})+|\d*\.\d+|\d\d+)(?!\w|[.,:]?\d|\^)"
)
PER_CENT = re.compile(r"\$?(?:(?:,? and | or | to |, |–)\$?[\d.]+)*\$?\s*(?:\\?%|per cent)")
PRINTED = re.compile(
    r"(± ?)?(?<![\w.])([-−]?(?:\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d*\.?\d+)(?:[eE][-+−]?\d+)?)"
    r"(?!\w|\.\d)( ?%)?"
)
# Names of works, models, lessons and their parts, years, powers, indices, links, code, the box.
NAMES = re.compile(
    r"(?m)arXiv:\S+|`[^`]*`|\[[^][]*\]\([^)]*\)|^>.*|^#+ \d+\.|\| \d\d(?:, \d\d)* \|$|"
    r"[\d.]*\^(?:\{[^{}]*\}|\w)|_\{[^{}]*\}|\b(?:1[89]\d|20[0-2])\d\b|(?<![\w.,])00\d(?:\.\d\w?)?|"
    r"(?:\b(?:Section|Theorem|Lemma|[Cc]hapters?|[Ff]igures?|[Ll]essons?|[Ee]xercise|pages?|issue|"
    r"pull request|GLM|Granite|Ling|PCIe)[\s-]|eqs?\. |§|(?<![\w.,])(?=0\d\b(?!\.)))[\d.]+"
    r"(?:(?:, |,? and | to |–)\d\d\b)*"
)


def value(text):
    return float(text.replace(",", "").replace("−", "-"))


def places(text):
    """Decimal places: 2 of 0.25, 3 of 2.5e-2."""
    digits, _, power = text.lower().replace("−", "-").partition("e")
    return len(digits.partition(".")[2]) - int(power or 0)


def is_printed(number, printed, mark=""):
    """Whether one of these prints has `number`, or more digits of it; its mark is "%", "±" or none.

    A single digit, as in 0.3, is printed as it is: nearly every table has something near 0.3.
    """
    digits = re.sub(r"\D", "", number).lstrip("0")
    half = 0.5 * 10.0 ** -places(number) if len(digits) > 1 else 0
    return any(
        abs(told * 10**k - value(number)) <= half + 1e-6 * abs(value(number))
        for told, after, marked in printed
        for k in ((0, 2) if mark == "%" else (0,))
        if after - k >= places(number) and marked in ("", mark)
    )


def beside(section, place):
    """The cells before and after the text at this place, up to the next text on either side.

    A text right after another, as what is said of an answer, is also beside the cells before both.
    An answer is beside the cells before it alone.
    """
    text = [cell.kind == "markdown" for cell in section.cells]
    first = place
    while first and text[first - 1]:
        first -= 1
    before = max((i + 1 for i in range(first) if text[i]), default=0)
    after = min((i for i in range(place + 1, len(text)) if text[i]), default=len(text))
    return section.cells[before : place if ANSWER in section.cells[place].tags else after]


def said(cells):
    """(value, decimal places, mark) of each number that cells print, show or set."""
    texts = [o.figure.alt if o.figure else o.text for cell in cells for o in cell.outputs]
    code = [ast.parse(cell.source) for cell in cells if cell.kind == "code"]
    nodes = [node for tree in code for node in ast.walk(tree) if isinstance(node, ast.Constant)]
    texts += [f"{node.value} {-node.value}" for node in nodes if type(node.value) in (int, float)]
    found = [at.groups("") for text in texts for at in PRINTED.finditer(text)]
    return [(value(n), places(n.replace(",", "")), (a or b).strip()) for a, n, b in found]


def numbers(cell):
    """The matches of the numbers in a text, without what it asks and names."""
    text = FENCE.sub("", cell.source)
    for asked in questions(cell):
        text = text.replace(asked, "")
    return NUMBER.finditer(NAMES.sub(" ", text.replace("{,}", ",")))


def unprinted(lesson: Lesson) -> list[str]:
    """The numbers of a lesson's text that nothing beside them prints or sets, and their words.

    Those of what sums up are the ones that the text before it does not have.
    """
    found, before = [], set()
    for section in lesson.sections:
        sums_up = not section.number and section.title != lesson.title
        sums_up |= section.title.lower() in LAST
        for place, cell in enumerate(section.cells):
            if cell.kind != "markdown":
                continue
            near = [] if sums_up else said(beside(section, place))
            for at in numbers(cell):
                number = at[0].lstrip("-−")
                if sums_up:
                    held = number in before
                else:
                    before.add(number)
                    share = PER_CENT.match(at.string, at.end())
                    error = re.search(r"(?:±|\\pm) ?$", at.string[: at.start()])
                    held = is_printed(at[0], near, "%" if share else "±" if error else "")
                where = f"{lesson.number} §{section.name}"
                if not held and (where, number) not in GIVEN:
                    words = " ".join(at.string[max(0, at.start() - 40) : at.end() + 30].split())
                    found.append(f"{where}: {number} in “{words}”")
    return found


@pytest.mark.parametrize("path", paths(), ids=lambda path: path.stem)
def test_each_number_of_a_text_is_printed_or_set_beside_it(path):
    found = unprinted(read(path))
    assert not found, "print it in a cell beside the text, or say in given.csv what it is:\n" + (
        "\n".join(found)
    )


def toy(text, printed="mean 0.3241, of 10,003, 51% to 52%, −4.5 ± 0.6", code="gamma = 0.02"):
    cell = Cell("code", code, outputs=(Output(printed),))
    section = Section("1", "A section", [Cell("markdown", text), cell, Cell("markdown", "So.")])
    return Lesson("99", "A toy", [Section("0", "A toy"), section])


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("It is 0.32, or 32.4 %, with a $\\gamma$ of 0.02 (0.37).", ["0.37"]),
        ("From 0.02 to 0.32, 0.32–0.37, 64–0.32 and 12-20 %.", ["0.37", "64", "12", "20"]),
        ("It is 0.020, 0.3241 or 0.32410, and 10,003 or 10,000.", ["0.020", "0.32410", "10,000"]),
        ("At −0.32, 4.5, $-4.5$ ± 0.65, 51 or 52 % and 51.", ["0.32", "4.5", "0.65", "51"]),
        ("It is 0.3, not 0.33, and 32.4 of them.", ["0.3", "0.33", "32.4"]),
        ("**Before you run this:** nearer 0.1 or 0.5?\n\nIt is 0.5.", ["0.5"]),
        ("See Section 3.1, 05 or\nlesson\n12 and arXiv:2009.14794 (2020), with `x = 0.7`.", []),
        (
            "In $\\mathbb{R}^{64}$, $10^{12}$, [page 73](a.md#76), lessons 11 to 13 and 2048.",
            ["2048"],
        ),
        ("In 135 of $2{,}048$ cases.", ["135", "2,048"]),
        (
            "At $d = 64$, $\\alpha \\approx 31$ and 41 %, 12 features make 20 of 25.",
            ["64", "31", "41", "12", "20", "25"],
        ),
    ],
)
def test_what_is_neither_printed_nor_set_is_found(text, found):
    assert [line.split(": ")[1].split(" in ")[0] for line in unprinted(toy(text))] == found


def test_a_number_is_printed_beside_its_text_or_said_before_what_sums_up():
    lesson = toy("So.")
    other = Cell("code", "other = 7"), Cell("markdown", "It was 0.32, at 0.02.")
    after = Cell("markdown", "That is 0.07."), Cell("code", "last = 0.07 + 0.03")
    answer = Cell("markdown", "It is 0.03, not 0.05.", tags=frozenset({ANSWER}))
    lesson.sections[1].cells += [*other, *after, answer, Cell("code", "0.05")]
    said = "It was 0.32, not 0.3241."  # which is printed, but not in the text
    lesson.sections.append(Section("", "Take away", [Cell("markdown", said)]))
    assert [line.split(" in ")[0] for line in unprinted(lesson)] == [
        "99 §1: 0.32",  # it and 0.02 are beyond the next text
        "99 §1: 0.02",
        "99 §1: 0.05",
        "99 §Take away: 0.3241",
    ]


def test_what_is_given_is_said_and_needed(monkeypatch):
    given = {f"{section}: {number}" for section, number in GIVEN}
    assert all(GIVEN.values())
    monkeypatch.setattr("tests.test_words.GIVEN", {})
    found = [line.split(" in “")[0] for path in paths() for line in unprinted(read(path))]
    assert {*found} == given
