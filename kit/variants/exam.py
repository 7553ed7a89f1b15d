"""An examination of an hour: two tasks and a derivation as in the variants, and five numbers.

Its tasks are drawn apart from those of the variants, so that nobody has seen them as homework.
"""

from dataclasses import replace

import nbformat

from kit.variants import lesson_01, lesson_10
from kit.variants.lesson_05 import CLOSED
from kit.variants.parts import Sheet, Task, notebook, stream

OPENING = """\
# Examination

*60 minutes, 20 points.* At each question stand its minutes and points. Replace each `raise NotImplementedError` by
your code or by your number. The example below a task says whether you are right for one input; below a number it says
only that it is one. Use NumPy alone."""
KEY = """\
# Key of the examination

Students never get this file. Below each answer stands what earns its points. The check gives all points of a task or
none; in Formgrader you may write others over them."""
NUMBER = '''\
def {name}():
    """→ a number, to four digits or as an expression."""'''


def _number(name: str, title: str, text: str, right: str, wrong, rtol=1e-3) -> Task:
    """A question whose answer is one number, and the slips that lead to others."""
    head = NUMBER.format(name=name)
    wrong = tuple((f"return {value}", hint) for value, hint in wrong)
    shown = f"assert np.ndim({name}()) == 0\n{CLOSED}"
    told = (title, "2 minutes, 1 point.", text, head, f"return {right}", wrong, shown, ((),))
    return Task(*told, rtol=rtol, points=1)


def _features(rng):
    d, p = int(rng.integers(3, 13)), int(rng.integers(2, 5))
    product = "np.prod(np.arange({}, {}) / np.arange(1, {}))".format
    return _number(
        "features_of_a_kernel",
        "Features of a kernel",
        f"Points have {d} coordinates. How many features has $(x^\\top y + 1)^{p}$, each product kept once?",
        f"round({product(d + 1, d + p + 1, p + 1)})",
        (
            (f"{d}**{p}", "these are products in every order, of one degree: each counts once."),
            (f"round({product(d, d + p, p + 1)})", "of degree p alone: the lower ones count, too."),
            (f"round({product(d + 1, d + p + 1, p + 1)}) - 1", "the constant is a feature, too."),
        ),
        rtol=1e-9,
    )


def _waves(rng):
    error = float(rng.choice([0.25, 0.125, 0.1, 0.05, 0.025, 0.02, 0.01, 0.005]))
    return _number(
        "waves_needed",
        "Waves",
        "The mean of $m$ waves estimates the Gaussian kernel. At any distance the root mean square of its "
        f"error is to be ${error}$ at most. How many waves are enough?",
        f"1 / (2 * {error}**2)",
        (
            (f"1 / {error}**2", "the variance of one wave is at most ½."),
            (f"1 / (2 * {error})", "the error falls like one over the root of m."),
            (f"1 / {error}", "the variance is at most 1/(2m): set it to the square of the error."),
        ),
    )


def _left(rng):
    d = int(rng.choice([8, 16, 24, 32, 48, 64]))
    m = int(rng.integers(3, d // 2))  # more than half is left
    return _number(
        "share_left",
        "Orthogonal directions",
        f"Take {m} orthogonal directions in $\\mathbb{{R}}^{{{d}}}$, with $\\chi$ lengths. At small distances, which share "
        "is left of the variance of as many independent ones?",
        f"1 - {m - 1} / {d + 2}",
        (
            (f"3 / {d + 2}", "that is for as many directions as dimensions."),
            (f"1 - {m - 1} / {d}", "d + 2 stands below: lengths vary, too."),
            (f"{m - 1} / {d + 2}", "that is what is gained: what is left?"),
        ),
    )


def _weight(rng):
    (a, b), m = rng.choice([0.25, 0.5, 0.75, 1.0], size=2), int(rng.choice([16, 32, 64, 128]))
    c = float(rng.choice([-0.1, 0.05, 0.1, 0.2]))
    z, r = (round(float(a + b + sign * 2 * c), 6) for sign in (1, -1))
    return _number(
        "error_of_a_weight",
        "The error of a weight",
        f"$\\|x\\|^2 = {a}$, $\\|y\\|^2 = {b}$ and $x^\\top y = {c}$. Positive features with {m} independent directions "
        "estimate $e^{x^\\top y}$. What is the mean squared error, divided by the square of the weight?",
        f"(np.exp({z}) - 1) / {m}",
        (
            (f"np.exp({z}) / {m}", "the square of the mean is to be subtracted."),
            (f"2 / {m} * np.sinh({r} / 2) ** 2", "that is for cosines and sines."),
            (f"2 / {m} * np.sinh({z} / 2) ** 2", "that is for hyperbolic features."),
            (f"np.sqrt((np.exp({z}) - 1) / {m})", "the mean square is asked for, not its root."),
        ),
    )


def _recall(rng):
    n, d = int(rng.integers(5, 41)), int(rng.choice([8, 16, 32, 64]))
    return _number(
        "error_of_recall",
        "What a state forgets",
        f"$S = \\sum_j k_j v_j^\\top$ holds {n} pairs; keys are random, independent and of length 1, in "
        f"$\\mathbb{{R}}^{{{d}}}$, and values independent of mean zero. What is the mean of $\\|S^\\top k_i - v_i\\|^2$ over "
        "that of $\\|v_i\\|^2$?",
        f"{n - 1} / {d}",
        (
            (f"{n} / {d}", "the pair itself is no noise: n − 1 others are."),
            (f"{n - 1} / {d + n - 1}", "that is after the best number has scaled the answer."),
            (f"np.sqrt({n - 1} / {d})", "the mean square is asked for, not its root."),
        ),
    )


NUMBERS = (_features, _waves, _left, _weight, _recall)


def sheet(seed: str) -> Sheet:
    """Two tasks, five numbers and a derivation: 60 minutes, 20 points."""
    apart, drawn = f"{seed}/exam", {}
    for lesson in (lesson_01, lesson_10):
        drawn |= {task.name: task for task in lesson.sheet(apart).tasks}
    tasks = (
        replace(drawn["place"], level="20 minutes, 6 points.", points=6),
        replace(drawn["fading"], level="15 minutes, 5 points.", points=5),
        *(draw(stream(apart, draw.__name__)) for draw in NUMBERS),
    )
    last = lesson_10.sheet(apart).derivation
    last = replace(last, text=last.text.replace("15 minutes.", "15 minutes, 4 points."))
    return Sheet("exam", "Examination", tasks, last, OPENING)


def key(sheet: Sheet) -> nbformat.NotebookNode:
    """What the lecturer marks by: the notebook, solved, with what earns points below each answer."""
    nb = notebook(sheet)
    nb.cells[0].source = KEY
    told = {task.name: task for task in sheet.tasks}
    for cell in nb.cells:
        name = cell.metadata.pop("nbgrader", {}).get("grade_id", "").removeprefix("check-")
        if name in told and cell.source == told[name].example:
            cell.cell_type, cell.source = "markdown", _marking(told[name])
            del cell["outputs"], cell["execution_count"]
    return nb


def _marking(task: Task) -> str:
    """What earns the points of a task."""
    value = f", which is {task.answer(task.solution)():.5g}" if task.points == 1 else ""
    slips = []
    for hint in dict.fromkeys(hint for _, hint in task.wrong):
        some = task.points > 1 and "as it was given" not in hint
        slips.append(f"- {f'{task.points // 2} at most' if some else 0}: {hint}")
    return "\n".join(
        [f"**{task.points} for what the check calls right{value}.** For less:", "", *slips]
    )
