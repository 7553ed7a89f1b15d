"""The start page and glossary are true: terms are in their lessons; the path needs no branch."""

import re

import pytest

from tests.support.lessons import definitions
from tools.lesson import find, read
from tools.setting import NOTEBOOKS, ROOT

START = NOTEBOOKS / "00_start_here.py"
GLOSSARY = (NOTEBOOKS / "glossary.md").read_text(encoding="utf-8")
WORDS = re.findall(r"(?m)^- \*\*(.+?)\*\*: (.+) \[(\w\d)\]\((\w+)\.ipynb\)$", GLOSSARY)
SYMBOLS = re.findall(r"(?m)^\| (\$.+?) \| .+ \| (\d\d) \|$", GLOSSARY)


def prose(lesson):
    """The text of the lesson of this number."""
    return " ".join(" ".join(read(find(lesson)).texts).split())


def test_the_glossary_is_in_order_and_each_word_is_there_once():
    words = [word.lower().replace("χ", "ch") for word, *_ in WORDS]
    assert len(words) == len(re.findall(r"(?m)^- \*\*", GLOSSARY)) >= 40
    assert words == sorted(set(words))
    assert len(SYMBOLS) == GLOSSARY.count("\n| $") >= 20


@pytest.mark.parametrize(("word", "meaning", "lesson", "stem"), WORDS, ids=[w for w, *_ in WORDS])
def test_a_term_is_set_off_in_the_lesson_that_defines_it(word, meaning, lesson, stem):
    assert stem.startswith(lesson)
    assert meaning.endswith(".")
    set_off = re.findall(r"(?<![\w*])\*{1,2}([^*\s][^*]*)\*", prose(lesson))
    titles = [title for _, title in read(find(lesson)).headings]
    assert word.lower() in " | ".join([*set_off, *titles]).lower()


@pytest.mark.parametrize(("symbols", "lesson"), SYMBOLS, ids=[s for s, _ in SYMBOLS])
def test_a_symbol_stands_in_the_lesson_that_it_comes_from(symbols, lesson):
    for symbol in re.findall(r"\$(.+?)\$", symbols):
        assert symbol in prose(lesson)


@pytest.fixture(scope="module")
def start():
    return definitions(START, {"PATH", "BRANCHES", "AFTERNOON", "PARTS"})


def box(lesson):
    """The minutes of a lesson, and the lessons that it needs."""
    minutes, needs = re.search(
        r"> \*\*(\d+) minutes\.\*\* Needs: (.+?) > > ", prose(lesson)
    ).groups()
    named = set(re.findall(r"\b(?:\d\d|a\d)\b", re.sub(r"\]\(.+?\)", "]", needs)))
    for low, high in re.findall(r"(\d\d) to (\d\d)", needs):
        named.update(f"{number:02d}" for number in range(int(low), int(high)))
    return int(minutes), named


BOXES = {path.stem[:2]: box(path.stem[:2]) for path in sorted(NOTEBOOKS.glob("*.py"))}


def test_the_path_and_its_branches_are_all_lessons(start):
    assert sorted([*start["PATH"], *start["BRANCHES"]]) == sorted(BOXES)
    assert list(start["PATH"]) == sorted(start["PATH"])
    assert set(start["AFTERNOON"]) | set(start["PARTS"].values()) <= set(start["PATH"])


def test_a_lesson_of_the_path_needs_none_off_it(start):
    strays = {number: BOXES[number][1] - set(start["PATH"]) for number in start["PATH"]}
    assert not any(strays.values()), strays


def test_a_branch_hangs_below_the_last_lesson_of_the_path_that_it_needs(start):
    path, branches = start["PATH"], start["BRANCHES"]

    def needed(number):
        direct = BOXES[number][1] - {number}
        return direct.union(*(needed(other) for other in direct if other in branches))

    hangs = {number: max(needed(number) & set(path), default="00") for number in branches}
    assert hangs == {number: after for number, (after, _) in branches.items()}


def card(text):
    """The rows of a decision card, (number, question, what to try, lessons), and those below it."""
    lines = re.findall(r"(?m)^\| (.+) \|$", text)
    rows = [[cell.strip() for cell in line.split(" | ")] for line in lines]
    return rows[[row[:2] for row in rows].index(["row", "ask"]) + 1 :]


def test_the_page_of_the_card_has_that_of_lesson_23_word_for_word_and_lecture_8_its_questions():
    said = [x for c in read(find("23")).cells for x in (c.source, *(o.text for o in c.outputs))]
    full = card("\n".join(said))  # the card, and below it what lesson 23 prints in its form
    assert card((ROOT / "kit/pages/decision_card.md").read_text("utf-8")) == full
    full, short = full[:6], card((ROOT / "kit/pages/lectures/8_language.md").read_text("utf-8"))[:6]
    assert [row[0] for row in full] == list("123456")
    questions = [(number, ask.split("?")[0] + "?") for number, ask, *_ in full]
    assert [(number, ask) for number, ask, *_ in short] == questions
    assert [row[-1] for row in short] == [row[-1] for row in full]
