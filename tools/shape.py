"""The shape of a lesson, counted: its minutes and questions, what is folded, what answers copy.

Each takes notebooks as `tools.notebooks.read` gives them.
"""

import io
import re
import tokenize
from textwrap import dedent

from nbformat import NotebookNode

FOLDED = "hide-input"
ASK = re.compile(r"\*\*Before you (?:run this|read on|look)[:,]?\*\*[:,]?")
ANSWER = re.compile(r"(?s)### BEGIN SOLUTION\n(.*?)### END SOLUTION")
BLANK = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT}


def texts(nb: NotebookNode) -> list[str]:
    return [cell.source for cell in nb.cells if cell.cell_type == "markdown"]


def folded(cell: NotebookNode) -> bool:
    return FOLDED in cell.metadata.get("tags", ())


def words(text: str) -> int:
    """The words of a text; a formula in a line counts as one, displayed ones and links as none."""
    text = re.sub(r"(?s)\$\$.*?\$\$", " ", text)
    text = re.sub(r"\$[^$]*\$", " formula ", text)
    return len(re.findall(r"[^\W\d_][\w'’-]*", re.sub(r"\]\([^)]*\)", "]", text)))


def minutes(nb: NotebookNode) -> float:
    """words / 80 + lines of code that is not folded / 8 + displayed formulas."""
    code = [c.source for c in nb.cells if c.cell_type == "code" and not folded(c)]
    lines = sum(bool(line.strip()) for source in code for line in source.splitlines())
    formulas = sum(text.count("$$") // 2 for text in texts(nb))
    return sum(map(words, texts(nb))) / 80 + lines / 8 + formulas


def rounded(exact: float) -> int:
    """What a box says of so many minutes: to the nearest 5."""
    return 5 * int(exact / 5 + 0.5)


def questions(nb: NotebookNode) -> int:
    """How often a reader is asked to guess before the answer stands there."""
    return sum(len(ASK.findall(text)) for text in texts(nb))


def tokens(source: str) -> list[str]:
    """The tokens of a piece of Python, without comments and layout."""
    found = tokenize.generate_tokens(io.StringIO(source).readline)
    return [token.string for token in found if token.type not in BLANK and token.string]


def answers(nb: NotebookNode) -> list[str]:
    """What a solution puts in place of each stub, as code that stands alone."""
    return [dedent(found) for cell in nb.cells for found in ANSWER.findall(cell.source)]


def longest_copy(answer: str, lesson: NotebookNode) -> list[str]:
    """The longest run of tokens that an answer has in common with a cell of its lesson."""
    given, best = tokens(answer), []
    for cell in lesson.cells:
        if cell.cell_type == "code":
            shown = tokens(cell.source)
            before = [0] * (len(given) + 1)  # lengths of common runs that end at the token before
            for token in shown:
                now = [0] + [(before[i] + 1) * (token == own) for i, own in enumerate(given)]
                longest = max(now)
                if longest > len(best):
                    end = now.index(longest)
                    best = given[end - longest : end]
                before = now
    return best
