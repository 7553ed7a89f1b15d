"""Each number that a lesson states is printed, or set, by a cell beside it.

A number is a decimal, a whole number of three digits and more, or one of two digits after = or ≈ or
before a unit. Beside a text are the cells up to the next text on either side; beside the last
sections, which sum up, the whole lesson. A printed number counts rounded, and as a fraction or per
cent. What a question offers to choose from is free, as is what is in GIVEN, lesson by lesson: what
others wrote or measured, and constants.
"""

import re

import pytest

from tools.lesson import FENCE, Cell, Lesson, Output, Section, paths, questions, read

GIVEN = {
    "00": {"0.9": "of a quiz"},
    "01": {"100": "half of 200", "16": "9 + 6 + 1"},
    "04": {"0.06": "1/√256", "0.01": "1/√10,000", "4,950": "pairs of 100", "70": "√4,950"}
    | {"5,000": "1/(2 · 0.01²)", "64": "of the digits"},
    "05": {"64": "of an example"},
    "09": {"40": "of an example"},
    "10": {"7675": "of an issue", "4,800": "18 · 64 ln 64"} | {"64": "of the data"},
    "11": {"900": "30²"},
    "12": {"13": "40,960 / 3,072"},
    "15": {"300": "steps of training"},
    "14": {"122": "of the data", "1,500": "of the data", "64": "of it", "2,145": "66 · 65 / 2"}
    | {"90": "0.883, nearly"},
    "16": {"600": "of §2", "32": "of §2"},
    "17": {"115": "of the data", "104": "of a file", "512": "of the model"}
    | {"1,500": "of lesson 18", "64": "of the model"},
    "18": {"120": "of lesson 17", "122": "of it", "1,600": "of it", "300": "of its own training"}
    | {"1,500": "of the model", "64": "of the model", "76": "of its file"}
    | dict.fromkeys(("3,000", "16,000", "30"), "of its sound")
    | {"26": "of the data"},
    "19": {"26": "of what the printed ratios are above 1"},
    "20": dict.fromkeys(("21417", "1242"), "of an issue"),
    "21": dict.fromkeys(("3412", "3358", "0.97", "0.01", "397"), "of an issue")
    | dict.fromkeys(("1435", "2295", "2365", "27752"), "of an issue")
    | {"400": "steps of §4"},
    "22": {"135": "of the model", "98": "of its file", "270": "30 · 9", "30": "of the model"}
    | {"32": "96 − 64", "240": "of its own training", "1,500": "of the text", "1,700": "of it"}
    | dict.fromkeys(("1,024", "2,047"), "rows of a window"),
    "a1": dict.fromkeys(("001", "002", "003", "004"), "of a document") | {"1.5": "of 1.52e+28"},
    "a2": {"1024": "of an article"},
    "a4": {"397": "of the data", "600": "of the recorded run"},
    "a5": {"3.35": "of a data sheet", "128": "of a data sheet", "840": "of a paper"}
    | {"790": "of §4", "50": "of two data sheets", "23": "of float32"},
}
LAST = {"take away", "where it breaks", "exercises", "further reading"}
UNIT = (
    "bits?|blocks?|bytes?|characters?|coordinates?|digits?|dimensions?|directions?|draws?|entries|"
    "features?|heads?|images?|keys?|layers?|points?|quer(?:y|ies)|rows?|samples?|seconds?|seeds?|"
    "steps?|symbols?|texts?|times|tokens?|values?|waves?|words?|ms|s|[kMG]B|[kM]iB"
)
NUMBER = re.compile(
    r"(?<![\w.,/:^{(_-])(?:\d{1,3}(?:,\d{3})+|\d*\.\d+|\d{3,}|"
    rf"(?<=[=≈] )\d\d|(?<=\\approx )\d\d|\d\d(?= (?:{UNIT})\b|\$? ?(?:\\?%|per cent)))"
    r"(?![\w.,:]*\d)(?![-–\w^])"
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
    if "." not in digits and len(digits) > 2:
        half *= 10 ** (len(digits) - len(digits.rstrip("0")))  # 10,000 may be about 9,876
    return any(
        abs(p * k - value(number)) <= half * (1 + 1e-6)
        for p in printed
        for k in ((1, 100) if per_cent else (1,))
    )


def beside(section, place):
    """The cells before and after the text at this place, up to the next text on either side.

    A text right after another, as what is said of an answer, is also beside the cells before both.
    """
    text = [cell.kind == "markdown" for cell in section.cells]
    first = place
    while first and text[first - 1]:
        first -= 1
    before = max((i + 1 for i in range(first) if text[i]), default=0)
    after = min((i for i in range(place + 1, len(text)) if text[i]), default=len(text))
    return section.cells[before:after]


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
            code = "\n".join(c.source for c in near if c.kind == "code").replace("_", "")
            printed_or_set = printed, {value(number) for number in PRINTED.findall(code)}
            free = {*PRINTED.findall(" ".join(questions(cell))), *GIVEN.get(lesson.number, {})}
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
        (
            "At $d = 64$, $\\alpha \\approx 31$ and 41 %, 12 features make 20 of 25.",
            ["64", "31", "41", "12"],
        ),
    ],
)
def test_what_is_neither_printed_nor_set_is_found(text, found):
    assert [line.split(": ")[1].split(" in ")[0] for line in unprinted(toy(text))] == found


def test_a_number_is_printed_beside_its_text_or_in_what_is_summed_up():
    lesson = toy("So.")
    other = Cell("code", "other = 7"), Cell("markdown", "It was 0.32, at 0.02.")
    after = Cell("markdown", "That is 0.07."), Cell("code", "last = 0.07 + 0.02")
    lesson.sections[1].cells += [*other, *after]  # 0.02 is beyond the next text
    lesson.sections.append(Section("", "Take away", [Cell("markdown", "It was 0.32, not 0.37.")]))
    assert [line.split(" in ")[0] for line in unprinted(lesson)] == [
        "99 §1: 0.32",
        "99 §1: 0.02",
        "99 §Take away: 0.37",
    ]


def test_what_is_given_is_said_and_needed(monkeypatch):
    given = {(lesson, number) for lesson, numbers in GIVEN.items() for number in numbers}
    monkeypatch.setattr("tests.test_words.GIVEN", {})
    found = [line.partition(" in ")[0] for path in paths() for line in unprinted(read(path))]
    assert {(line.split(" ")[0], line.rpartition(": ")[2]) for line in found} == given
