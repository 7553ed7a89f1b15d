"""The start page is true: its words and symbols stand in the lessons it names; links lead on."""

import re

import pytest

from tools.notebooks import NOTEBOOKS, read, sources

START = (NOTEBOOKS / "00_start_here.py").read_text(encoding="utf-8")
WORDS = re.findall(r"(?m)^# - \*\*(.+?)\*\*: (.+) \[(\w\d)\]\((\w+)\.ipynb\)$", START)
SYMBOLS = re.findall(r"(?m)^# \| (\$.+?) \| .+ \| (\d\d) \|$", START)


def prose(source):
    cells = [cell.source for cell in read(source).cells if cell.cell_type == "markdown"]
    return " ".join("\n".join(cells).split())


def lesson_prose(lesson):
    (source,) = NOTEBOOKS.glob(f"{lesson}_*.py")
    return prose(source)


def plain(text):
    return re.sub(r"[*`$-]", " ", text).lower()


def test_the_glossary_is_in_order_and_each_word_is_there_once():
    words = [word.lower().replace("χ", "ch") for word, *_ in WORDS]
    assert len(words) == len(re.findall(r"(?m)^# - \*\*.+\[\w\d\]\(", START)) >= 40
    assert words == sorted(set(words))


@pytest.mark.parametrize(("word", "meaning", "lesson", "stem"), WORDS, ids=[w for w, *_ in WORDS])
def test_a_word_stands_in_the_lesson_that_teaches_it(word, meaning, lesson, stem):
    assert stem.startswith(lesson)
    assert meaning.endswith(".")
    assert plain(word) in plain(lesson_prose(lesson))


@pytest.mark.parametrize(("symbols", "lesson"), SYMBOLS, ids=[s for s, _ in SYMBOLS])
def test_a_symbol_stands_in_the_lesson_that_it_comes_from(symbols, lesson):
    for symbol in re.findall(r"\$(.+?)\$", symbols):
        assert symbol in lesson_prose(lesson)


@pytest.mark.parametrize("source", sources(), ids=lambda s: f"{s.parent.name}/{s.stem}")
def test_links_of_a_lesson_lead_somewhere(source):
    links = re.findall(r"\]\(([^)#\s]+)", prose(source))
    local = [link for link in links if "://" not in link]
    assert [link for link in local if not (source.parent / link).exists()] == []
