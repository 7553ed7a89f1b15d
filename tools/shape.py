"""The shape of a lesson, counted: its minutes, and what answers copy of it."""

import io
import re
import tokenize
from difflib import SequenceMatcher
from textwrap import dedent

from tools.lesson import Lesson, find, read

ANSWER = re.compile(r"(?s)### BEGIN SOLUTION\n(.*?)### END SOLUTION")
FIGURE = re.compile(r"(?m)^\s*show\(")
BLANK = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT}


def words(text: str) -> int:
    """The words of a text; a formula in a line counts as one, displayed ones and links as none."""
    text = re.sub(r"(?s)\$\$.*?\$\$", " ", text)
    text = re.sub(r"\$[^$]*\$", " formula ", text)
    return len(re.findall(r"[^\W\d_][\w'’-]*", re.sub(r"\]\([^)]*\)", "]", text)))


def exact_minutes(lesson: Lesson) -> float:
    """words / 100 + lines of code that is not folded / 8 + displayed formulas + figures +
    half of the questions."""
    code = [cell.source for cell in lesson.cells if cell.kind == "code" and not cell.folded]
    lines = sum(bool(line.strip()) for source in code for line in source.splitlines())
    formulas = sum(text.count("$$") // 2 for text in lesson.texts)
    figures = sum(len(FIGURE.findall(source)) for source in lesson.code)
    seen = lines / 8 + formulas + figures
    return sum(map(words, lesson.texts)) / 100 + seen + len(lesson.questions) / 2


def minutes(lesson: Lesson | str) -> int:
    """How long a lesson takes to read, to the nearest 5: the one source of what its box, README,
    lesson 00 and the plans of lectures say.

    lesson: as `lesson.read` returns it, or its number: minutes("05").
    """
    lesson = read(find(lesson)) if isinstance(lesson, str) else lesson
    return 5 * int(exact_minutes(lesson) / 5 + 0.5)


def tokens(source: str) -> list[str]:
    """The tokens of a piece of Python, without comments and layout."""
    found = tokenize.generate_tokens(io.StringIO(source).readline)
    return [token.string for token in found if token.type not in BLANK and token.string]


def answers(solution: Lesson) -> list[str]:
    """What a solution puts in place of each stub, as code by itself."""
    return [dedent(found) for source in solution.code for found in ANSWER.findall(source)]


def longest_copy(answer: str, lesson: Lesson) -> list[str]:
    """The longest run of tokens that an answer has in common with a cell of its lesson."""
    given = tokens(answer)

    def run(source):
        matcher = SequenceMatcher(None, given, tokens(source), autojunk=False)
        found = matcher.find_longest_match()
        return given[found.a : found.a + found.size]

    return max(map(run, lesson.code), key=len, default=[])
