"""Each number that a lesson states is printed, or set, by a cell beside it.

A number is a decimal, or a whole number of three digits and more. Beside a text are the cells up to
the next text on either side; beside the last sections, which sum up, the whole lesson. A printed
number counts rounded, and as a share or per cent. What a question offers to choose from is free, as
is what stands in GIVEN, lesson by lesson: what others wrote or measured, and constants.
"""

import re

import pytest

from tools.lesson import FENCE, Cell, Lesson, Output, Section, paths, questions, read

GIVEN = {
    "00": {"0.9": "of a quiz"},
    "04": {"0.06": "1/√256", "0.01": "1/√10,000", "4,950": "pairs of 100"},
    "08": {"600": "steps of lesson 16", "12,000": "steps of it"},
    "10": {"7675": "of an issue", "4,800": "18 · 64 ln 64", "300": "of its training"},
    "11": {"900": "30²"},
    "14": {"120": "of a sequence in the data", "600": "steps of lesson 16", "100": "400/4"},
    "15": {"122": "of the data", "1,500": "of the data", "2,145": "66 · 65 / 2"},
    "16": {"600": "of §2"},
    "17": {"115": "of the data", "120": "of the data", "104": "of a file", "512": "of the model"}
    | {"1,500": "of lesson 18"},
    "18": {"120": "of lesson 17", "122": "of it", "1,600": "of it", "300": "of its own training"}
    | {"1,500": "of the model", "3,000": "of its sound"}
    | {"16,000": "of its sound"},
    "20": dict.fromkeys(("21417", "337", "3412", "3358", "0.97", "0.01", "397"), "of an issue")
    | dict.fromkeys(("1435", "2365", "27752"), "of an issue"),
    "a1": dict.fromkeys(("001", "002", "003", "004"), "of a document") | {"1.5": "of 1.52e+28"},
    "a2": {"1024": "of an article"},
    "a4": {"397": "of the data", "600": "of the recorded run"},
    "a5": {"3.35": "of a data sheet", "128": "of a data sheet", "840": "of a paper"}
    | {"790": "of §5"},
}
LAST = {"take away", "where it breaks", "exercises", "further reading"}
NUMBER = re.compile(
    r"(?<![\w.,/:^{(_-])(?:\d{1,3}(?:,\d{3})+|\d*\.\d+|\d{3,})(?![\w.,:]*\d)(?![-–\w])"
)
PER_CENT = re.compile(r"\$?\s*(?:\\?%|per cent)")
PRINTED = re.compile(r"\d{1,3}(?:,\d{3})+|\d*\.?\d+(?:[eE][-+−]?\d+)?")
# Names of works and their parts, years, formulas' entries in a list of errata, links, code.
NAMES = re.compile(
    r"arXiv:\S+|00\d\.\d\w?|\((?:1[89]|20)\d\d\w?\)|(?:1[89]|20)\d\d\b|`[^`]*`|\]\([^)]*\)|"
    r"(?:Section|Theorem|Lemma|Chapter|[Ff]igure|[Ll]esson|eqs?\.|§|pages?|Granite|PCIe) ?[\d.]+"
)


def value(text):
    return float(text.replace(",", "").replace("−", "-"))


def is_printed(number, printed, per_cent):
    """Whether one of these values is what `number` says to its own digits, per cent or not."""
    digits = number.replace(",", "")
    half = 0.5 * 10.0 ** -len(digits.partition(".")[2])
    if "." not in digits:
        half *= 10 ** (len(digits) - len(digits.rstrip("0")))  # 10,000 may be about 9,876
    return any(
        abs(p * k - value(number)) <= half * (1 + 1e-6)
        for p in printed
        for k in ((1, 100) if per_cent else (1,))
    )


def beside(section, place):
    """The cells between the texts before and after the one at this place."""
    texts = [i for i, cell in enumerate(section.cells) if cell.kind == "markdown"]
    before = max((i for i in texts if i < place), default=-1)
    after = min((i for i in texts if i > place), default=len(section.cells))
    return section.cells[before + 1 : after]


def unprinted(lesson: Lesson) -> list[str]:
    """The numbers of a lesson's text that nothing beside them prints or sets, and their words."""
    found = []
    for section in lesson.sections:
        sums_up = not section.number and section.title != lesson.title
        sums_up |= section.title.lower() in LAST
        for place, cell in enumerate(section.cells):
            if cell.kind != "markdown":
                continue
            near = lesson.cells if sums_up else beside(section, place)
            told = [o.figure.alt if o.figure else o.text for c in near for o in c.outputs]
            printed = [value(number) for text in told for number in PRINTED.findall(text)]
            code = "\n".join(lesson.code if sums_up else section.code).replace("_", "")
            printed_or_set = printed, {value(number) for number in PRINTED.findall(code)}
            free = " ".join(questions(cell)) + " ".join(GIVEN.get(lesson.number, {}))
            text = NAMES.sub("", FENCE.sub("", cell.source).replace("{,}", ","))
            for at in NUMBER.finditer(text):
                per_cent = PER_CENT.match(text, at.end())
                known = value(at[0]) in printed_or_set[1] or is_printed(
                    at[0], printed_or_set[0], per_cent
                )
                if not known and at[0] not in free:
                    words = " ".join(text[max(0, at.start() - 40) : at.end() + 30].split())
                    found.append(f"{lesson.number} §{section.name}: {at[0]} in “{words}”")
    return found


@pytest.mark.parametrize("path", paths(), ids=lambda path: path.stem)
def test_each_number_of_a_text_is_printed_or_set_beside_it(path):
    found = unprinted(read(path))
    assert not found, "print it in a cell beside the text, or say in GIVEN what it is:\n" + (
        "\n".join(found)
    )


def toy(text, printed="mean 0.3241, of 10,003", code="gamma = 0.02"):
    cell = Cell("code", code, outputs=(Output(printed),))
    section = Section("1", "A section", [Cell("markdown", text), cell, Cell("markdown", "So.")])
    return Lesson("99", "A toy", [Section("0", "A toy"), section])


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("It is 0.32, or 32.4 %, with a $\\gamma$ of 0.02.", []),
        ("It is 0.37.", ["0.37"]),
        ("About 10,000 of them, or 10,003.", []),
        ("About 12,000 of them, or 10,004.", ["12,000", "10,004"]),
        ("It is 0.3, not 0.33, and 32.4 of them.", ["0.33", "32.4"]),
        ("**Before you run this:** nearer 0.1 or 0.5?", []),
        ("See Section 3.1, lesson 05 and arXiv:2009.14794 (2020), with `x = 0.7`.", []),
        ("In 135 of $2{,}048$ cases.", ["135", "2,048"]),
    ],
)
def test_what_is_neither_printed_nor_set_is_found(text, found):
    assert [line.split(": ")[1].split(" in ")[0] for line in unprinted(toy(text))] == found


def test_a_number_is_printed_beside_its_text_or_in_what_is_summed_up():
    lesson = toy("So.")
    lesson.sections[1].cells.append(Cell("markdown", "It was 0.32."))  # not beside the cell
    lesson.sections.append(Section("", "Take away", [Cell("markdown", "It was 0.32, not 0.37.")]))
    assert [line.split(" in ")[0] for line in unprinted(lesson)] == [
        "99 §1: 0.32",
        "99 §Take away: 0.37",
    ]


def test_what_is_given_is_said_and_needed(monkeypatch):
    given = {(lesson, number) for lesson, numbers in GIVEN.items() for number in numbers}
    monkeypatch.setattr("tests.test_words.GIVEN", {})
    found = [line.partition(" in ")[0] for path in paths() for line in unprinted(read(path))]
    assert {(line.split(" ")[0], line.rpartition(": ")[2]) for line in found} == given
