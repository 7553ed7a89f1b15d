"""Each number that a lesson states is printed, or set, by a cell beside it.

A number is a decimal or a whole number of two digits and more, also at either end of a range.
Beside a text are the cells up to the next text on either side. A section without a number, as the
last ones, repeats numbers of those before. A print counts with its sign, as a fraction or per cent,
and in as few digits as the text has. What a question offers to choose from is free, as is what
given.csv lists: what others wrote or measured, constants, and what follows from a print.

quoted.csv says which print each number quotes: "0.32 3.2.17" is number 17 of the second cell of
code in §3. `python -m tests.test_words` keeps what holds, binds each other number to the print that
is likeliest by its words, and says to which.
"""

import ast
import csv
import re
from collections import namedtuple
from functools import partial

import pytest

from tools.lesson import FENCE, Cell, Lesson, Output, Section, paths, questions, read
from tools.setting import ROOT


def table(path):
    with open(path, encoding="utf-8", newline="") as file:
        return list(csv.reader(file))[1:]


# Its place is "3.2.17", "given" or "none"; `places` are decimal.
Print = namedtuple("Print", "place line value places", defaults=(0, 0))
GIVEN = {(s, number): Print("given", told) for s, number, told in table(ROOT / "tests/given.csv")}
QUOTED = ROOT / "tests/quoted.csv"
TODO = """correct each number, print it beside the text, or say in given.csv what it is; then run
.venv/bin/python -m tests.test_words and read what it prints:"""
NUMBER = re.compile(
    r"(?<![\w.^])(?<!\d,)[-−]?(?:\d{1,3}(?:,\d{3})+|\d*\.\d+|\d\d+)(?!\w|[.,:]?\d|\^)"
)
PER_CENT = re.compile(r"\$?(?:(?:,? and | or | to |, |–)\$?[\d.]+)*\$?\s*(?:\\?%|per cent)")
PRINTED = re.compile(
    r"(?<![\w.])[-−]?(?:\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d*\.?\d+)(?:[eE][-+−]?\d+)?(?!\w|\.\d)"
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


def is_printed(number, p, share):
    """Whether a print is `number`, or has more digits of it; a share may be a fraction."""
    half = 0.5 * 10.0 ** -places(number)
    return any(
        abs(p.value * 10**k - value(number)) <= half + 1e-6 * abs(value(number))
        for k in ((0, 2) if share else (0,))
        if p.places - k >= places(number)
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


def said(section, cells):
    """The numbers that cells of a section print or show, and then those that they set."""
    found, code = [], [cell.number for cell in section.cells if cell.kind == "code"]
    for cell in (cell for cell in cells if cell.kind == "code"):
        shown = "\n".join(o.figure.alt if o.figure else o.text for o in cell.outputs)
        lines = [(line, line) for line in re.split(r"\n|(?<=[.;]) ", shown)]
        source, nodes = cell.source.splitlines(), ast.walk(ast.parse(cell.source))
        nodes = [n for n in nodes if type(getattr(n, "value", "")) in (int, float)]
        lines += [(f"{n.value} {-n.value}", source[n.lineno - 1]) for n in nodes]
        numbers = [(n, line) for text, line in lines for n in PRINTED.findall(text)]
        for count, (n, line) in enumerate(numbers, start=1):
            place = f"{section.name}.{code.index(cell.number) + 1}.{count}"
            found.append(Print(place, line.strip(), value(n), places(n.replace(",", ""))))
    return found


def words(text):
    return {word[:5] for word in re.findall(r"[^\W\d_]{3,}|\d[\d.,]*", text.lower())}


def likely(text, bound, p):
    shared = len(words(text) & words(p.line))
    return p.place == bound != "none", "." in p.place, shared - p.places


def numbers(cell):
    """The matches of the numbers in a text, without what it asks and names."""
    text = FENCE.sub("", cell.source)
    for asked in questions(cell):
        text = text.replace(asked, "")
    return NUMBER.finditer(NAMES.sub(" ", text.replace("{,}", ",")))


def quotes(lesson: Lesson, quoted):
    """What quoted.csv has to say of each section, and a line for each number bound anew, or not."""
    rows, anew, before = {}, [], {}
    for section in lesson.sections:
        where, row, old = f"{lesson.number} §{section.name}", [], {}
        for number, place in re.findall(r"([^;\s]+) ([^;\s]+)", quoted.get(where, "")):
            old.setdefault(number, []).append(place)
        for i, cell in enumerate(section.cells):
            if cell.kind != "markdown":
                continue
            near = said(section, beside(section, i))
            for at in numbers(cell):
                number, share = at[0].lstrip("-−"), PER_CENT.match(at.string, at.end())
                fits = [p for p in near if is_printed(at[0], p, share)]
                fits = fits if section.number else [*before.get(number, ())]
                text = " ".join(at.string[max(0, at.start() - 80) : at.end() + 60].split())
                bound = (old.get(number) or [""]).pop(0)
                fits.append(GIVEN.get((where, number), Print("none", "no cell beside it")))
                best = max(fits, key=partial(likely, text, bound))
                if best.place != bound or bound == "none":
                    now = [f"; at its place is “{p.line}”" for p in near if p.place == bound]
                    anew.append(f"{where}: {number} in “{text}” fits “{best.line}”{''.join(now)}")
                if section.number:
                    before.setdefault(number, []).append(best)
                row.append(f"{number} {best.place}")
        rows |= {where: "; ".join(row)} if row else {}
    return rows, anew


def bind():
    found = [quotes(read(path), dict(table(QUOTED))) for path in paths()]
    with open(QUOTED, "w", encoding="utf-8", newline="") as file:
        rows = [row for rows, _ in found for row in rows.items()]
        csv.writer(file, lineterminator="\n").writerows([("section", "quotes"), *rows])
    print("".join(f"{line}\n" for _, anew in found for line in anew), end="")


@pytest.mark.parametrize("path", paths(), ids=lambda path: path.stem)
def test_each_number_of_a_text_is_the_one_that_it_quotes(path):
    listed = {where: row for where, row in table(QUOTED) if where[:2] == path.stem[:2]}
    rows, anew = quotes(read(path), listed)
    wrong = anew or ["numbers are no longer there"] * (rows != listed)
    assert not wrong, "\n".join([TODO, *wrong])


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
        ("At −0.32, 4.5, $-4.5$ ± 0.65, 51 or 52 % and 53.", ["0.32", "4.5", "0.65", "53"]),
        ("It is 0.3, not 0.33, and 32.4 of them.", ["0.33", "32.4"]),
        ("On [page 73](a.md#76), in lessons 11 to 13 and in 2048.", ["2048"]),
        ("At $d = 64$, $\\alpha \\approx 31$, 41 %, 12 of 25.", ["64", "31", "41", "12", "25"]),
    ],
)
def test_what_is_neither_printed_nor_set_is_found(text, found):
    assert unprinted(toy(text)) == [("99 §1", number) for number in found]


def unprinted(lesson):
    rows = quotes(lesson, {})[0].items()
    return [(where, n) for where, row in rows for n in re.findall(r"(\S+) none", row)]


def test_a_number_is_printed_beside_its_text_or_said_before_what_sums_up():
    lesson = toy("So.")
    other = Cell("code", "other = 7"), Cell("markdown", "It was 0.32, at 0.02.")
    after = Cell("markdown", "That is 0.07."), Cell("code", "last = 0.07 + 0.03")
    lesson.sections[1].cells += [*other, *after]
    said = "It was 0.07, not 0.3241."  # which is printed, but not in the text
    lesson.sections.append(Section("", "Take away", [Cell("markdown", said)]))
    beyond = [("99 §1", "0.32"), ("99 §1", "0.02"), ("99 §Take away", "0.3241")]
    assert unprinted(lesson) == beyond


@pytest.mark.parametrize(
    ("window", "place", "beside"),
    [("32", "1", None), ("42", "1", "; at its place is “window 0.42”"), ("42", "9", "")],
)
def test_a_number_is_bound_to_one_print(window, place, beside):
    """A change is noticed, even to what still fits, until the number is bound anew."""
    text = "With a mean key it is 0.32."
    lesson = toy(text, f"window 0.{window}\nall 0.32\nmean key 0.32")
    rows, anew = quotes(lesson, {"99 §1": f"0.32 1.1.{place}"})
    assert rows == {"99 §1": "0.32 1.1.1" if beside is None else "0.32 1.1.3"}
    said = f"99 §1: 0.32 in “{text}” fits “mean key 0.32”{beside}"
    assert anew == [said] * (beside is not None)


def test_what_is_given_is_said_and_needed():
    assert all(given.line for given in GIVEN.values())
    found = {(w, n) for w, row in table(QUOTED) for n in re.findall(r"(\S+) given", row)}
    assert {*GIVEN} <= found


if __name__ == "__main__":
    bind()
