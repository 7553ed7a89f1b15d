"""A lesson or a section that a text names exists, in lessons, the package, the tools and README."""

import re

import pytest

from tools.notebooks import NOTEBOOKS, ROOT

LESSONS = {path.stem[:2]: path for path in sorted(NOTEBOOKS.glob("*.py"))}
TEXTS = [*LESSONS.values(), *NOTEBOOKS.glob("**/solutions/*.py"), *ROOT.glob("*.md")]
TEXTS += [*ROOT.glob("performer_course/**/*.py"), *ROOT.glob("benchmarks/*.py")]
TEXTS += [*ROOT.glob("tools/*.*"), *ROOT.glob("tools/record/*.py"), ROOT / "Makefile"]

LESSON = r"\[?\b[\da]\d\b\]?(?:\(\S*?\))?(?: §+ ?\d+)?"  # 10 · [10](10_….ipynb) · 10 §2
AND = r"(?:, and |, | and | or | to |–)"
NAMED = rf"\b(?:[Ll]essons {LESSON}(?:{AND}{LESSON})*|(?:[Ll]esson|[Aa]ppendix) {LESSON})"
LINK = r"\[([\da]\d)\]\((\S+?)\)"


def joined(text):
    """The text on one line, without the marks of comments and quotes."""
    return re.sub(r"\s*\n\s*(?:#+ ?)?(?:> ?)?", " ", text)


def numbers(named):
    """The lessons of "lessons 08 and 10 to 12": 08, 10, 11, 12."""
    plain = re.sub(r"\(\S*?\)|[\[\]]| §+ ?\d+", "", named)
    found = re.findall(r"\b[\da]\d\b", plain)
    for first, last in re.findall(r"\b(\d\d)(?: to |–)(\d\d)\b", plain):
        found += [f"{number:02d}" for number in range(int(first) + 1, int(last))]
    return found


def places(text):
    """(lesson, section) of "10 §2", "section 2 of lesson 10" and "lesson 10, section 2"."""
    found = re.findall(r"(?<![\w.])([\da]\d) §+ ?(\d+)", text)
    found += re.findall(r"\b[Ll]esson ([\da]\d), section (\d+)", text)
    swapped = re.findall(r"\b[Ss]ection (\d+) of lesson ([\da]\d)", text)
    return found + [(lesson, section) for section, lesson in swapped]


def own(text):
    """The sections of itself that a lesson names; those of other works are at its end."""
    before = text.split("## Further reading")[0]
    pairs = re.findall(
        r"(?<!\d, )\b[Ss]ections? (\d+)(?![\d.]*\d| of lesson)(?: and (\d+)(?!\.?\d))?", before
    )
    return [section for pair in pairs for section in pair if section]


def sections(lesson):
    return re.findall(r"(?m)^# ## (\d+)\. ", LESSONS[lesson].read_text(encoding="utf-8"))


def astray(text, itself=None):
    """What a text, or the lesson `itself`, names and does not exist."""
    line = joined(text)
    named = [n for some in re.findall(NAMED, line) for n in numbers(some)]
    named += re.findall(r"LESSON=(\d\d)\b", line)
    found = [f"lesson {number}" for number in named if number not in LESSONS]
    found += [
        f"[{number}]({address})"
        for number, address in re.findall(LINK, line)
        if not address.split("/")[-1].startswith(f"{number}_")
    ]
    found += [
        f"{lesson} §{section}"
        for lesson, section in places(line) + [(itself, section) for section in own(line) if itself]
        if lesson not in LESSONS or section not in sections(lesson)
    ]
    return found


@pytest.mark.parametrize("path", TEXTS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_a_text_names_lessons_and_sections_that_exist(path):
    itself = path.stem[:2] if path in LESSONS.values() else None
    assert astray(path.read_text(encoding="utf-8"), itself) == []


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("the Performer of lesson 99.", ["lesson 99"]),
        ("# > Needs: lessons 01 and 97,\n# > 02", ["lesson 97"]),
        ("lessons 95 to 98", ["lesson 95", "lesson 98", "lesson 96", "lesson 97"]),
        ("Taught in lesson [01](02_x.ipynb)", ["[01](02_x.ipynb)"]),
        ("see 01 §40", ["01 §40"]),
        ("sections 1 and 40", ["01 §40"]),
    ],
)
def test_a_lesson_or_a_section_that_does_not_exist_is_found(text, found):
    assert astray(text, "01") == found
