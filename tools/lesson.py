"""A built lesson as all that show it or test it read it: one vocabulary for site, slides and tests.

    lesson = read(NOTEBOOKS / "05_orthogonal_features.ipynb")
    lesson.section("3").figures[0].alt

A section begins at a heading of level two; what is above the first is section "0". It holds
cells in their order, and gives what they say (`texts`), run (`code`) and draw (`figures`). A
*claim* is a sentence in bold; a *question* is what a reader is asked to guess.
Nothing but Python's own is imported here.
"""

import json
import re
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

from tools.setting import NOTEBOOKS

FOLDED = "hide-input"  # the tag of a cell whose code is out of sight
ANSWER = "answer"  # of a cell that answers the question before it
FOLD = "<details class='answer'>"  # how such a text begins once it is out of sight
VOLATILE = "nbval-ignore-output"  # of a cell that prints timings or the names of devices
ASK = re.compile(r"\*\*Before you (?:run this|read on|look)[:,]?\*\*[:,]?")
HEADING = re.compile(r"(?m)^(#{1,6}) +(.+)$")
FENCE = re.compile(r"(?ms)^```.*?^```$")


@dataclass(frozen=True)
class Figure:
    number: str  # "05.3": the third of lesson 05
    alt: str
    caption: str
    png: str  # in base64


@dataclass(frozen=True)
class Output:
    """What a cell printed or drew; the text of a figure says what it shows and what is drawn."""

    text: str
    figure: Figure | None = None


@dataclass(frozen=True)
class Cell:
    """A cell, or the part of a text cell that belongs to one section."""

    kind: str  # "markdown" or "code"
    source: str
    number: int = 0  # counted from the top of the notebook, from 1
    id: str = ""
    tags: frozenset = frozenset()
    outputs: tuple[Output, ...] = ()

    @property
    def figures(self) -> list[Figure]:
        return [output.figure for output in self.outputs if output.figure]

    @property
    def folded(self) -> bool:
        return FOLDED in self.tags


@dataclass
class Section:
    number: str  # "3"; empty where the heading has none
    title: str
    cells: list[Cell] = field(default_factory=list)

    @property
    def name(self) -> str:
        """The number, or the title of a section without one: how other pages name it."""
        return self.number or self.title

    @property
    def texts(self) -> list[str]:
        return [cell.source for cell in self.cells if cell.kind == "markdown"]

    @property
    def code(self) -> list[str]:
        return [cell.source for cell in self.cells if cell.kind == "code"]

    @property
    def figures(self) -> list[Figure]:
        return [figure for cell in self.cells for figure in cell.figures]


@dataclass
class Lesson:
    number: str  # 05, a1, p2
    title: str
    sections: list[Section]

    @property
    def subject(self) -> str:
        """What the title says before its colon."""
        return self.title.partition(":")[0]

    @property
    def cells(self) -> list[Cell]:
        return [cell for section in self.sections for cell in section.cells]

    @property
    def texts(self) -> list[str]:
        return [text for section in self.sections for text in section.texts]

    @property
    def figures(self) -> list[Figure]:
        return [figure for section in self.sections for figure in section.figures]

    @property
    def code(self) -> list[str]:
        return [source for section in self.sections for source in section.code]

    @property
    def questions(self) -> list[str]:
        return [asked for cell in self.cells for asked in questions(cell)]

    @property
    def headings(self) -> list[tuple[int, str]]:
        """(level, words) of each heading."""
        return [found for text in self.texts for found in headings(text)]

    @property
    def box(self) -> list[str]:
        """The paragraphs of the box below the title: minutes, needs, what one can do afterwards."""
        quote = re.search(r"(?m)(?:^>.*\n?)+", self.texts[0])
        plain = re.sub(r"(?m)^> ?", "", quote[0]) if quote else ""
        return [part.strip() for part in plain.split("\n\n") if part.strip()]

    @property
    def minutes(self) -> int:
        """What the box says; of a project, the hours."""
        return int(re.search(r"\*\*(\d+) (?:minutes|hours)", self.texts[0])[1])

    def section(self, name: str) -> Section:
        return next(section for section in self.sections if section.name == name)


def paths(folder: Path = NOTEBOOKS) -> list[Path]:
    """The built lessons and appendices, in order."""
    return sorted(folder.glob("[0-9a]*_*.ipynb"))


def find(number: str) -> Path:
    """The built lesson, appendix, or solved project of this number."""
    folder = NOTEBOOKS / "projects/solutions" if number.startswith("p") else NOTEBOOKS
    (path,) = folder.glob(f"{number}_*.ipynb")
    return path


def read(path: Path) -> Lesson:
    """The lesson, exercise sheet or project in a notebook."""
    return parse(json.loads(path.read_text(encoding="utf-8")), path.stem.split("_")[0])


def parse(notebook: dict, number: str = "") -> Lesson:
    """A notebook as its file has it, or as nbformat reads it."""
    lesson, drawn = Lesson(number, "", [Section("0", "")]), 0
    for count, cell in enumerate(notebook["cells"], start=1):
        source, kind = "".join(cell["source"]), cell["cell_type"]
        outputs = []
        for output in cell.get("outputs", []):
            if "text/markdown" in output.get("data", {}):
                continue  # a caption, which its figure has
            drawn += "image/png" in output.get("data", {})
            outputs.append(_output(output, f"{number}.{drawn}"))
        tags = frozenset(cell["metadata"].get("tags", ()))
        rest = (count, cell.get("id", ""), tags, tuple(outputs))
        for part in _parts(source) if kind == "markdown" else [source]:
            if kind == "markdown" and (head := re.match(r"## (?:(\d+)\. )?(.+)", part)):
                lesson.sections.append(Section(head[1] or "", head[2].strip()))
            lesson.sections[-1].cells.append(Cell(kind, part, *rest))
    title = re.search(r"(?m)^# (.+)$", "\n".join(lesson.texts))
    lesson.title = lesson.sections[0].title = title[1].strip() if title else ""
    return lesson


def _output(output: dict, number: str) -> Output:
    data = output.get("data", {})
    text = "".join(output.get("text", data.get("text/plain", [])))
    if not text and "text/html" in data:
        text = re.sub(r"<[^>]*>", " ", "".join(data["text/html"]))
    if "image/png" not in data:
        return Output(text)
    told = output.get("metadata", {}).get("image/png", {})
    png = "".join(data["image/png"]).strip()
    return Output(text, Figure(number, told.get("alt", ""), told.get("caption", ""), png))


def _parts(text: str) -> list[str]:
    """A text cell, cut before each heading of level two."""
    cuts = [at.start() for at in HEADING.finditer(_blank(text)) if at[1] == "##"]
    edges = [0, *filter(None, cuts), len(text)]
    return [text[a:b] for a, b in pairwise(edges)]


def fold_answers(notebook: dict) -> None:
    """Put each text that answers a question out of sight, until it is opened."""
    for cell in notebook["cells"]:
        if cell["cell_type"] == "markdown" and ANSWER in cell["metadata"].get("tags", ()):
            text = "".join(cell["source"])
            summary = "<summary>The answer in words</summary>"
            cell["source"] = f"{FOLD}{summary}\n\n{text}\n\n</details>"


def _blank(text: str) -> str:
    """`text` with its blocks of code blanked."""
    return FENCE.sub(lambda block: " " * len(block[0]), text)


def headings(text: str) -> list[tuple[int, str]]:
    return [(len(mark), said.strip()) for mark, said in HEADING.findall(_blank(text))]


def questions(cell: Cell) -> list[str]:
    """What a text asks its reader to guess: each runs to the end of its paragraph."""
    paragraphs = cell.source.split("\n\n") if cell.kind == "markdown" else []
    found = [ASK.split(paragraph)[1:] for paragraph in paragraphs]
    return [asked.strip() for several in found for asked in several]
