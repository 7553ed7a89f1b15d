"""The shape of a lesson: honest minutes, questions, folded plots, no answer or seed used twice."""

import ast
import re
from collections import defaultdict
from contextlib import suppress
from itertools import combinations, product

import nbformat
import pytest

from tests.support.lessons import definitions
from tools import shape
from tools.lesson import find, parse, paths, read
from tools.setting import NOTEBOOKS

LESSONS = paths()
SOLUTIONS = sorted((NOTEBOOKS / "solutions").glob("*.ipynb"))
RUN = 15  # tokens in a row that an answer may not have in common with its lesson
MOST, QUESTIONS = 75, 4


def faults(path):
    """What a lesson lacks of its shape, in words."""
    lesson = read(path)
    takes, asked = shape.minutes(lesson), len(lesson.questions)
    plots = [cell for cell in lesson.cells if cell.kind == "code" and "show(" in cell.source]
    found = []
    if lesson.minutes != takes or takes > MOST:
        found.append(
            f"the box says {lesson.minutes} minutes, and it takes {takes} ({MOST} at most)"
        )
    if asked < QUESTIONS:
        found.append(f"it asks {asked} times before it shows, not {QUESTIONS} times")
    return found + [
        f"cell {cell.number} plots and is not folded" for cell in plots if not cell.folded
    ]


@pytest.mark.parametrize("lesson", LESSONS, ids=lambda lesson: lesson.stem)
def test_a_lesson_keeps_its_minutes_asks_before_it_shows_and_folds_its_plots(lesson):
    assert faults(lesson) == []


@pytest.mark.parametrize("solution", SOLUTIONS, ids=lambda solution: solution.stem)
def test_no_answer_copies_its_lesson(solution):
    lesson = read(NOTEBOOKS / solution.name)
    copies = [shape.longest_copy(answer, lesson) for answer in shape.answers(read(solution))]
    assert copies
    assert [" ".join(copy) for copy in copies if len(copy) >= RUN] == []


@pytest.mark.parametrize("solution", SOLUTIONS, ids=lambda solution: solution.stem)
def test_an_exercise_says_how_hard_it_is_and_how_long_it_takes(solution):
    found = re.findall(r"(?m)^## \d+\..*\n+(.*)", "\n\n".join(read(solution).texts))
    assert found
    says = re.compile(r"\*(●○○|●●○|●●●) · \d+ minutes\.\*")
    assert [first for first in found if not says.match(first)] == []


ONE = r"((?:[^,:.?]|[.,](?=\d))+?)"
OFFER = re.compile(rf"{ONE}, {ONE},? or {ONE}\?")
RIGHT = {  # what only the right one of three says; - where several are right, or two are offered
    "00": "twenty ten", "01": "0.7 cone quarter", "02": "one billion half", "03": "eleven 0.02",
    "04": "0.25 6 0.08 less", "05": "135 none none 1,000", "06": "0.9", "07": "less", "20": "-",
    "08": "90° 3,000 twenty made-up 9", "09": "five -x$ less positively 1", "11": "larger 1",
    "12": "- hundred", "13": "ten one 2,000", "22": "more -",
    "14": "quarter 2 small key 2.5 alone", "16": "third nothing million fall three",
    "17": "hundredth", "19": "none hardly minutes - six", "21": "25 7 thirds",
    "23": "grow small more all",
    "a1": "none above most", "a2": "0.98 hundreds 0.002 larger", "a4": "1 none one mixture",
    "a3": "0.3 thousands twentieth this",
    "a5": "50 180 -", "a6": "three less", "a7": r"25 $\sqrt2$", "a8": "13 not grow 80",
}  # fmt: skip


def test_the_right_one_of_three_is_anywhere_and_numbers_ascend():
    path, places = definitions(find("00").with_suffix(".py"), {"PATH"})["PATH"], []
    for lesson in map(read, LESSONS):
        asked = " ".join(" ".join(lesson.questions).split())
        right = RIGHT.get(lesson.number, "").split()
        for offer, one in zip(OFFER.findall(asked), right, strict=True):
            numbers = [re.findall(r"[\d.]*\d", said.replace(",", ""))[-1:] for said in offer]
            assert not all(numbers) or numbers == sorted(numbers, key=lambda n: float(n[0])), offer
            if one != "-":
                (place,) = (i for i, said in enumerate(offer) if f" {one} " in f" {said} ")
                places.append((place, lesson.number in path))
    for some in ([place for place, on in places if on], [place for place, _ in places]):
        counts = [some.count(place) for place in range(3)]
        assert max(abs(n - len(some) / 3) for n in counts) < 2 * (len(some) * 2 / 9) ** 0.5, counts


# Directions and data never share a seed

DRAWS = re.compile(r"projections\.|draw|frequencies")  # what is called to draw directions
NAMED = re.compile(r"(W|omega|draws)(_\w+)?")  # what directions are called


def shared_seeds(source):
    """Lines of two calls default_rng(…) with one seed, where one draws directions and one data.

    No seeds are seen but numbers and names from loops and defaults. A generator whose name is
    passed to DRAWS anywhere may draw both, and by itself that is no fault.
    """
    nodes, over, bound = [*ast.walk(ast.parse(source))], defaultdict(list), {}
    alone, passed, asked, sites = set(), set(), set(), []

    def generators(node):
        calls = [n for n in ast.walk(node) if isinstance(n, ast.Call)]
        return [call for call in calls if ast.unparse(call.func).endswith("default_rng")]

    def seeds(node, deep=0):
        names = [n.id for n in ast.walk(node) if isinstance(n, ast.Name) and n.id in over]
        given = [[s for x in over[name] for s in seeds(x, deep + 1)] for name in names if deep < 4]
        for values in product(*given):
            with suppress(NameError, TypeError, ValueError):
                seed = eval(ast.unparse(node), dict(zip(names, values, strict=False)))
                yield from seed if isinstance(seed, range | tuple) else [seed]

    for node in nodes:
        match node:
            case ast.For(target=name, iter=value) | ast.comprehension(target=name, iter=value):
                over[ast.unparse(name)].append(value)
            case ast.arguments(args=names, defaults=values):
                for name, value in zip(names[::-1], values[::-1], strict=False):
                    over[name.arg].append(value)
            case ast.Call(func=function, args=args) if DRAWS.match(ast.unparse(function)):
                alone |= {*generators(node)}
                passed |= {*map(ast.unparse, args)}
            case ast.Assign(targets=targets):
                names = {n.id for x in targets for n in ast.walk(x) if isinstance(n, ast.Name)}
                alone |= {*generators(node)} if all(map(NAMED.fullmatch, names)) else set()
                bound |= dict.fromkeys(generators(node), names)
            case ast.Attribute(value=value):
                asked.add(ast.unparse(value))
    for call in generators(nodes[0]):
        some = call in alone or not (names := bound.get(call, set())).isdisjoint(passed)
        only = call in alone or (some and names.isdisjoint(asked))
        sites.append((call.lineno, {some, only}, {*map(str, seeds(call.args[0]))}))
    both = combinations(sites, 2)
    return [(a[0], b[0]) for a, b in both if a[2] & b[2] and len(a[1] | b[1]) == 2]


@pytest.mark.parametrize("path", sorted(NOTEBOOKS.rglob("*.py")), ids=lambda path: path.stem)
def test_directions_and_data_never_share_a_seed(path):
    assert shared_seeds(path.read_text(encoding="utf-8")) == []


def test_a_seed_that_directions_share_with_data_is_found():
    old = """def judged(q, k, v, m, draws=range(4)):
    for draw in draws:
        W = projections.iid(np.random.default_rng(draw), m, q.shape[-1])
q, k, v = np.random.default_rng({}).normal(size=(3, 2048, 8))"""
    assert [len(shared_seeds(old.format(seed))) for seed in (1, 4)] == [1, 0]


# What counts


def notebook(*cells):
    """Cells of text, and of code where they begin with %; folded where with %%."""
    nb = nbformat.v4.new_notebook()
    for cell in cells:
        if cell.startswith("%"):
            nb.cells.append(nbformat.v4.new_code_cell(cell.lstrip("%")))
            nb.cells[-1].metadata.tags = ["hide-input"] if cell.startswith("%%") else []
        else:
            nb.cells.append(nbformat.v4.new_markdown_cell(cell))
    return parse(nb)


def test_minutes_count_words_visible_code_formulas_figures_and_questions():
    text = "**Before you run this:** more? " + "word's " * 93 + "$x = 1$ [link](a/path.md)"
    nb = notebook(text, "$$x = 1$$", "%a = 1\n\nb = 2", "%%c = 3\nshow(fig)\nshowed(c)")
    assert shape.exact_minutes(nb) == pytest.approx(100 / 100 + 1 + 2 / 8 + 1 + 1 / 2)
    assert [shape.minutes(notebook("word " * n)) for n in (4249, 4250, 4749)] == [40, 45, 45]


def test_a_copy_is_found_whatever_its_comments_and_line_breaks():
    nb = notebook("%x = [i for i in range(3)]  # here\ny = f(x,\n      1)", "z = 1 + 2 + 3")
    assert shape.longest_copy("w = 2\ny = f(x, 1)  # mine\n", nb) == list("y=f(x,1)")
    assert shape.longest_copy("z = 1 + 2 + 3", nb) == ["="]
    solved = notebook("%def f():\n    ### BEGIN SOLUTION\n    return 1\n    ### END SOLUTION")
    assert shape.answers(solved) == ["return 1\n"]
