"""A second set of exercises: the same ideas with other kernels, maps, faults and numbers.

    sheet("10", seed)    the tasks of lesson 10 that this seed draws, solved
    check("10", name)    the check of one of them, in a course that has a seed

What is drawn is drawn from the seed alone, a text that the lecturer keeps: the sheet can be made
again, and nobody without the seed can make it. A task comes with its solution, its check, an
example that students see, and likely wrong answers, on which the check is tested.
"""

from collections.abc import Callable
from pathlib import Path

from kit.variants import lesson_10
from kit.variants.parts import Sheet

SEED = "seed"  # the file of a course that has it
SHEETS = {"10": lesson_10.sheet}
LESSONS = tuple(SHEETS)


def sheet(lesson: str, seed: str) -> Sheet:
    if lesson not in LESSONS:
        raise ValueError(f"variants are there for {', '.join(LESSONS)}, not for {lesson}")
    return SHEETS[lesson](seed)


def check(lesson: str, name: str) -> Callable:
    """The check of the task `name`, from the seed of the course that the working folder is in."""
    course = next(path for path in Path.cwd().parents if (path / SEED).is_file())
    seed = (course / SEED).read_text(encoding="utf-8").strip()
    return next(task.check for task in sheet(lesson, seed).tasks if task.name == name)
