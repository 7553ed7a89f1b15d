"""A comparison in an alternative text is made by a function of the data.

A literal "higher" stays when the data turns round, and no other test reads what it means. So the
word comes from `figures.compared` or `figures.trend`, or from a conditional expression. What is
as a literal in the `alt` of a `show`, or in a text of the same cell that it holds, has no comparing
word. Cells that are tagged for their timings are free: there either way may be faster, and no
lesson may fail for it.
"""

import ast
import re

import pytest

from tools.lesson import VOLATILE
from tools.setting import NOTEBOOKS

COMPARING = re.compile(
    r"\b(?:higher|lower|above|below|larger|smaller|greater|less|more|fewer|faster|slower|longer|shorter|"
    r"wider|narrower|steeper|steeply|flatter|better|worse|nearer|farther|closer|cross(?:es)?|"
    r"(?:rise|fall|grow|shrink|climb|drop|beat|win|lose|exceed|increase|decrease)s?|"
    r"(?:fall|grow|shrink|climb)ing|rising|increasing|decreasing)\b",
    re.IGNORECASE,
)
NO_COMPARISON = {
    "lower triangle": "a shape",
    "or more": "at least",
    "one more": "a count",
    "Above, ": "the upper of two rows",
    "Below, ": "the lower of two rows",
    "blocks below": "a place in a matrix",
    "above the diagonal": "a place in a matrix",
}
TEXT = ast.JoinedStr | ast.Constant | ast.BinOp | ast.ListComp | ast.GeneratorExp | ast.List
LESSONS = sorted(NOTEBOOKS.glob("*.py"))


def name_of(call):
    return getattr(call.func, "attr", getattr(call.func, "id", ""))


def literals(node):
    """The literal texts under a node, without those that the data chooses from."""
    if isinstance(node, ast.Constant):
        return [node.value] if isinstance(node.value, str) else []
    chosen = isinstance(node, ast.Call) and name_of(node) in ("compared", "trend")
    if chosen or isinstance(node, ast.IfExp | ast.Subscript):
        return []
    return [text for child in ast.iter_child_nodes(node) for text in literals(child)]


def assigned(cell, name):
    """The texts that a cell gives this name, or appends to it."""
    for node in ast.walk(cell):
        if isinstance(node, ast.Assign | ast.AugAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            if any(isinstance(t, ast.Name) and t.id == name for t in targets):
                yield node.value
        elif isinstance(node, ast.Call) and ast.unparse(node.func) == f"{name}.append":
            yield from node.args


def compared_in_words(source: str) -> list[str]:
    """The comparing words in what a cell's alternative texts say whatever the data."""
    cell, found = ast.parse(source), []
    shows = [n for n in ast.walk(cell) if isinstance(n, ast.Call) and name_of(n) == "show"]
    for alt in (k.value for show in shows for k in show.keywords if k.arg == "alt"):
        names = {node.id for node in ast.walk(alt) if isinstance(node, ast.Name)}
        held = [value for name in sorted(names) for value in assigned(cell, name)]
        for node in (alt, *(value for value in held if isinstance(value, TEXT))):
            for text in literals(node):
                for phrase in NO_COMPARISON:
                    text = text.replace(phrase, "")
                found += COMPARING.findall(text)
    return found


def cells(lesson):
    """The sources of a lesson's cells of code, but those of timings."""
    text = lesson.read_text(encoding="utf-8")
    parts = (part.partition("\n") for part in text.split("\n# %%")[1:])
    return [code for tags, _, code in parts if "[markdown]" not in tags and VOLATILE not in tags]


@pytest.mark.parametrize("lesson", LESSONS, ids=lambda path: path.stem)
def test_the_data_chooses_the_comparing_words_of_an_alternative_text(lesson):
    found = {cell: compared_in_words(cell) for cell in cells(lesson)}
    found = {re.search(r"alt=.*", cell)[0]: words for cell, words in found.items() if words}
    assert not found, "take the words from figures.compared or trend"


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ('show(fig, alt=f"A is higher than B: {a}.")', ["higher"]),
        ('figures.show(fig, alt="Errors: " + "; ".join(f"{n} below 1" for n in names))', ["below"]),
        ('text = f"A is faster, {a}"\nshow(fig, alt=f"So: {text}.")', ["faster"]),
        ("show(fig, alt=f\"A is {compared(a, b, 'higher', 'lower')} than B.\")", []),
        ("show(fig, alt=f\"A is {'higher' if a > b else 'lower'}.\")", []),
    ],
)
def test_a_comparing_word_that_no_data_chose_is_found(source, words):
    assert compared_in_words(source) == words
