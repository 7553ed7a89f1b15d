"""The plan of each lecture, read from its page: what deck, handout and tests are made of.

    talks = every()
    talks[2].rows[0].minutes

A page of kit/pages/lectures is data. It has one shape, and what departs from it is refused: the
title, what students can do afterwards, and a chapter each for the plan, what is written in some of
its rows, the figures, the board, the live cell, the questions, what is left out, and the homework.
Nothing but Python's own is imported here.
"""

import re
from dataclasses import dataclass, field
from pathlib import Path

from tools.setting import ROOT

PAGES = ROOT / "kit/pages/lectures"
PLACE = r"\w\d\.\d+"  # figure 05.3


@dataclass(frozen=True)
class Row:
    """Minutes of a plan."""

    start: int
    minutes: int
    what: str
    show: str  # figures, a table, or a dash
    written: str = ""  # a slide of its own, before a figure of the row
    said: str = ""

    @property
    def figures(self) -> list[str]:
        return re.findall(PLACE, self.show)

    @property
    def kind(self) -> str:
        """What is set in bold: Ask 1, Board, Live, Their questions; or Homework; else nothing."""
        bold = re.match(r"\*\*(.+?)\*\*|(Homework)", self.what)
        return (bold[1] or bold[2]) if bold else ""

    @property
    def subject(self) -> str:
        """`what` without its kind: a heading."""
        text = re.sub(r"^(\*\*.+?\*\*|Homework)[,:;]? ?(?:and |then )?", "", self.what)
        text = re.sub(r" \(\w\d §\d+\)", "", text)
        return text[:1].upper() + text[1:]


@dataclass(frozen=True)
class Ask:
    """A question, or the live cell: what is asked, what students tend to say, what is so."""

    question: str
    tend: str
    say: str
    code: str = ""
    prints: str = ""


@dataclass(frozen=True)
class Lecture:
    path: Path
    number: int
    title: str
    opening: str
    afterwards: str
    rows: list[Row]
    titles: dict[str, str]  # number of a figure → the title of its slide
    figures: dict[str, str]  # number → what to say of it
    paper: list[str]  # the figures on the handout
    derives: str  # what the board derives
    steps: list[str]
    live: Ask
    asks: dict[str, Ask]  # by "Ask 1"
    left: str
    late: list[int]  # the minutes at which the rows begin that may be skipped
    homework: list[str]
    reading: str
    chapters: dict[str, str] = field(repr=False)

    @property
    def name(self) -> str:
        """Of its deck and its handout."""
        return f"lecture_{self.number}"


CHAPTERS = (
    *("Plan", "To write", "Figures", "On the board", "Live", "Ask"),
    *("Leave out", "Homework"),
)


def every() -> list[Lecture]:
    """All lectures, in order."""
    return [read(path) for path in sorted(PAGES.glob("[0-9]_*.md"))]


def read(path: Path) -> Lecture:
    try:
        return parse(path.read_text(encoding="utf-8"), path)
    except ValueError as error:
        raise ValueError(f"{path.name}: {error}") from None


def parse(text: str, path: Path = PAGES) -> Lecture:
    head, *rest = re.split(r"(?m)^## ", text)
    parts = [part.split("\n", 1) for part in rest]
    chapters = {title.strip(): body.strip() for title, body in parts}
    if missing := [name for name in CHAPTERS if name not in chapters]:
        raise ValueError(f"no chapter {', '.join(missing)}")
    title = found(r"# Lecture (\d): (.+)\n", head, "a title, '# Lecture 1: …'")
    afterwards = found(r"(?s)(\*\*Afterwards students can\*\* .+)", head, "'**Afterwards …'")[1]
    rows = plan(chapters["Plan"], chapters["To write"])
    figures, _, paper = chapters["Figures"].rpartition("On the handout: ")
    entries = [re.match(SHOWN, flat(item)) for item in re.split(r"(?m)^- ", figures)]
    shown = {entry[1]: entry.group(2, 3) for entry in entries if entry}
    if missing := [number for row in rows for number in row.figures if number not in shown]:
        raise ValueError(f"no title in bold for figure {', '.join(missing)}")
    derives, _, steps = chapters["On the board"].partition("\n1. ")
    left = chapters["Leave out"]
    late = found(r"rows at minutes (\d+) and (\d+): (\d+) minutes", left, "'Skip the rows at …'")
    homework = chapters["Homework"]
    return Lecture(
        path,
        int(title[1]),
        title[2],
        flat(head[title.end() : head.index(afterwards)]),
        flat(afterwards),
        rows,
        {number: title for number, (title, _) in shown.items()},
        {number: said for number, (_, said) in shown.items()},
        re.findall(PLACE, paper),
        flat(derives),
        [flat(step) for step in re.split(r"(?m)^\d+\. ", steps)],
        live(chapters["Live"]),
        asks(chapters["Ask"]),
        flat(left),
        [int(late[1]), int(late[2])],
        [flat(item) for item in re.findall(r"(?m)^- (exercise .+(?:\n  .+)*)", homework)],
        flat(found(r"(?s)(In all .+)", homework, "'In all …'")[1]),
        chapters,
    )


SHOWN = rf'\*\*figure ({PLACE})\*\* \(.*?\)\): ".+?"\. \*\*(.+?)\*\* (.+)'
ANSWER = r'(?s)\A"(.+?)".*?- \*They tend to say:\*\s(.+?)- \*Say then:\*\s(.+)\Z'


def flat(text: str) -> str:
    """A text on one line."""
    return " ".join(text.split())


def unmarked(text: str) -> str:
    """A text whose numbers are no longer marked as a lesson's own."""
    return re.sub(r"`([-\d.,e+]+)`", r"\1", text)


def found(pattern: str, text: str, what: str) -> re.Match:
    if match := re.search(pattern, text):
        return match
    raise ValueError(f"needs {what}")


def plan(table: str, notes: str) -> list[Row]:
    """The rows, each beginning where the one before it ends, with the text below the plan."""
    items = re.findall(r"(?ms)^- \*\*minute (\d+)\*\*(.*?)(?=^- |\Z)", notes)
    below = {int(start): said for start, said in items}
    rows, clock = [], 0
    for start, minutes, what, show in re.findall(
        r"(?m)^\| (\d+) \| (\d+) \| (.+?) \| (.+?) \|$", table
    ):
        if int(start) != clock:
            raise ValueError(f"the row at minute {start} should begin at {clock}")
        said = re.sub(r"^ ?(\([^)]*\))?:\s+", "", below.pop(clock, ""))
        written, _, aloud = map(flat, said.partition("*Say:*"))
        rows.append(Row(clock, int(minutes), what, show, written, aloud))
        clock += int(minutes)
    if below:
        raise ValueError(f"no row of the plan begins at minute {min(below)}")
    return rows


def answered(text: str, what: str) -> list[str]:
    """Question, what students tend to say, and what is so."""
    return [flat(said) for said in found(ANSWER, text, f"question and answers, {what}").groups()]


def live(text: str) -> Ask:
    cell = found(r"(?s)```python\n(.+?)\n```\n\nIt prints\n\n```\n(.+?)\n```", text, "a live cell")
    return Ask(*answered(text.replace(cell[0], ""), "live"), cell[1], cell[2])


def asks(text: str) -> dict[str, Ask]:
    _, *parts = re.split(r"\*\*(Ask \d)\.\*\*\s+", text)
    pairs = zip(parts[::2], parts[1::2], strict=True)
    return {name: Ask(*answered(said.strip(), name)) for name, said in pairs}
