"""Tables among what a cell has printed: a head, aligned rows, and the line above as its caption.

A table is recognised or left out; nothing is guessed. Columns are what two blanks keep apart in the
head and in every row. Under the head of each column but the first stand numbers, at least half of
the time, and the head itself is none, unless it counts upwards (m = 16, 64, 256).
"""

import re
from dataclasses import dataclass

NUMBER = r"[<>≤≥±−+-]*\d[\d,]*(?:\.\d+)?(?:e[+-]?\d+)?"
VALUE = re.compile(rf"{NUMBER}\b.{{0,24}}|True|False|none|[−–—-]|nan|inf")
PURE = re.compile(NUMBER)
DATA = re.compile(rf"{NUMBER}(?:[ ,%°±].*)?")  # what a head has only where it counts
TWO = re.compile(rf"{NUMBER} {NUMBER}")  # two columns that were not told apart


@dataclass(frozen=True)
class Table:
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    caption: str = ""


def tables(text: str) -> list[Table]:
    """The tables in `text`, from top to bottom."""
    lines, found, at, fresh = text.expandtabs().splitlines(), [], 0, True
    while at < len(lines):
        table = _begins(lines[at:]) if fresh else None
        if table is None:  # below a line with columns of its own no head can stand
            fresh = len(_split(lines[at])) == 1
            at += 1
            continue
        above = lines[at - 1].strip() if at else ""
        alone = len(_split(above)) == 1 and not above.endswith(("True", "False"))
        found.append(Table(table.head, table.rows, above.removesuffix(":") if alone else ""))
        at, fresh = at + 1 + len(table.rows), True
    return found


def _split(line: str) -> list[str]:
    return re.split(r" {2,}", line.strip())


def _begins(lines: list[str]) -> Table | None:
    """The longest table whose head is the first of `lines`."""
    if not _may_head(lines[0]):
        return None
    end = 1
    while end < len(lines) and _may_row(lines[end]) and not _head_again(lines, end):
        end += 1
    for last in range(end, 2, -1):  # a head and two rows at least
        for gap in (2, 1):
            table = _cut(lines[:last], gap)
            if table:
                return table
    return None


def _may_head(line: str) -> bool:
    return len(_split(line)) > 1 and not re.search(r": *(?:[-−\d]|True|False|$)|[\[\]→]|,$", line)


def _may_row(line: str) -> bool:
    cells = _split(line)
    return len(cells) > 1 and not re.search(r": |:$|[\[\]→]", "  ".join(cells[1:]))


def _head_again(lines: list[str], at: int) -> bool:
    """Whether line `at` has the head's own columns: it begins another table of the same form."""
    again, indent = _split(lines[at])[1:], [len(l) - len(l.lstrip()) for l in (lines[0], lines[at])]
    return len(again) > 1 and again == _split(lines[0])[1:] and indent[0] == indent[1]


def _cut(lines: list[str], gap: int) -> Table | None:
    """`lines` as a table whose columns are `gap` blanks apart, or None where they are none."""
    width = max(map(len, lines))
    padded = [line.ljust(width) for line in lines]
    blank = "".join(" " if all(line[i] == " " for line in padded) else "x" for i in range(width))
    spans = [found.span() for found in re.finditer(rf"x(?: {{0,{gap - 1}}}x)*", blank)]
    cells = [[line[a:b].strip() for a, b in spans] for line in padded]
    cells = [[re.sub(r" +", " ", cell) for cell in _joined(row, cells[0])] for row in cells]
    head, rows = cells[0], cells[1:]
    if len(head) != len(_split(lines[0])) + (not head[0]) or not all(head[1:]):
        return None
    if not all(any(row[1:]) for row in rows):
        return None
    columns = list(zip(*rows, strict=True))
    if any(TWO.fullmatch(cell) for row in rows for cell in row):
        return None
    if gap == 1 and not all(
        PURE.fullmatch(re.split("[±%]", cell)[0]) for column in columns[1:] for cell in column
    ):
        return None
    numeric = [_numeric(column) for column in columns]
    said = [cell for cell, counts in zip(head[1:], numeric[1:], strict=True) if counts]
    words = [column for column, counts in zip(columns, numeric, strict=True) if not counts]
    if not said or any(len(cell) >= 40 for column in words for cell in column):
        return None
    if not any(map(VALUE.fullmatch, rows[0][1:])):  # a head in two lines
        return None
    if any(map(DATA.fullmatch, said)) and not _counts(head):
        return None
    return Table(tuple(head), tuple(map(tuple, rows)))


def _joined(row: list[str], head: list[str]) -> list[str]:
    """`row` with what has no head of its own in the column before it."""
    out = []
    for i, (cell, above) in enumerate(zip(row, head, strict=True)):
        if i == 0 or above:
            out.append(cell)
        else:
            out[-1] = f"{out[-1]} {cell}".strip()
    return out


def _numeric(column) -> bool:
    filled = [cell for cell in column if cell]
    return sum(bool(VALUE.fullmatch(cell)) for cell in filled) * 2 >= len(filled) > 0


def _counts(head: list[str]) -> bool:
    """Whether the numbers of a head count upwards; decimal ones only after "… =" """
    if not all(map(PURE.fullmatch, head[1:])):
        return False
    values = [float(re.sub(r"[^\d.e+-]", "", cell)) for cell in head[1:]]
    whole = all(value.is_integer() for value in values) or head[0].endswith("=")
    return len(values) > 1 and whole and values == sorted(set(values))
