"""The start page and the glossary are true: words and symbols stand in the lessons named, minutes
are those that are counted, links lead on."""

import re

import pytest

from tests.lessons import definitions, printed
from tools import shape
from tools.lesson import parse
from tools.notebooks import NOTEBOOKS, read, sources

START = NOTEBOOKS / "00_start_here.py"
GLOSSARY = (NOTEBOOKS / "glossary.md").read_text(encoding="utf-8")
WORDS = re.findall(r"(?m)^- \*\*(.+?)\*\*: (.+) \[(\w\d)\]\((\w+)\.ipynb\)$", GLOSSARY)
SYMBOLS = re.findall(r"(?m)^\| (\$.+?) \| .+ \| (\d\d) \|$", GLOSSARY)
LESSONS = sorted(NOTEBOOKS.glob("*.py"))


def prose(source):
    cells = [cell.source for cell in read(source).cells if cell.cell_type == "markdown"]
    return " ".join("\n".join(cells).split())


def lesson_prose(lesson):
    (source,) = NOTEBOOKS.glob(f"{lesson}_*.py")
    return prose(source)


def astray(text, folder):
    """The links of a text in `folder` that lead nowhere."""
    links = re.findall(r"\]\(([^)#\s]+)", text)
    return [x for x in links if "://" not in x and not (folder / x).exists()]


def plain(text):
    return re.sub(r"[*`$-]", " ", text).lower()


def test_the_glossary_is_in_order_and_each_word_is_there_once():
    words = [word.lower().replace("χ", "ch") for word, *_ in WORDS]
    assert len(words) == len(re.findall(r"(?m)^- \*\*", GLOSSARY)) >= 40
    assert words == sorted(set(words))
    assert len(SYMBOLS) == GLOSSARY.count("\n| $") >= 20


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
    assert astray(prose(source), source.parent) == []


@pytest.mark.parametrize("page", ["glossary.md", "references.md"])
def test_links_of_a_page_lead_somewhere(page):
    assert astray((NOTEBOOKS / page).read_text(encoding="utf-8"), NOTEBOOKS) == []


@pytest.fixture(scope="module")
def start():
    return definitions(START, {"AFTERNOON", "THEMES"})


@pytest.mark.parametrize("lesson", LESSONS, ids=lambda lesson: lesson.stem)
def test_the_minutes_of_sections_add_up_to_those_of_the_lesson(start, lesson):
    found = start["sections"](lesson)
    assert sum(time for _, time in found.values()) == pytest.approx(
        shape.minutes(parse(read(lesson)))
    )
    numbered = [number for number in found if number]
    assert numbered == [str(i) for i in range(1, len(numbered) + 1)]


def test_the_box_of_a_lesson_names_every_lesson_that_it_needs(start, tmp_path):
    lesson = tmp_path / "99_a_lesson.py"
    lesson.write_text(
        "# %% [markdown]\n# # Do it\n#\n"
        "# > **5 minutes.** Needs: lessons 02 (kernels), 05 (QR), 07\n"
        "# > and 09 to 11 (attention) and 13; lesson [18](18_on_the_gpu.ipynb), $e^t$; a3 helps.\n"
        "# >\n# > Afterwards you can do it.\n",
        encoding="utf-8",
    )
    title, minutes, needs, named = start["box"](lesson)
    assert (title, minutes) == ("Do it", 5)
    assert named == {"02", "05", "07", "09", "10", "11", "13", "18", "a3"}
    assert needs.endswith("lesson 18, e^t; a3 helps")


def test_an_afternoon_takes_two_to_four_hours_and_attention_comes_first(start):
    chosen = {lesson: set(sections) for lesson, sections in start["AFTERNOON"].items()}
    route = re.search(r"\*\*One afternoon\*\*(.+?)- \*\*Two weeks", prose(START))[1]
    assert re.findall(r" \((\d\d)\)", route) == list(chosen)
    assert next(iter(chosen)) == "07"
    time = 0.0
    for lesson, sections in chosen.items():
        (source,) = NOTEBOOKS.glob(f"{lesson}_*.py")
        found = start["sections"](source)
        assert sections <= set(found)
        time += sum(found[section][1] for section in sections)
    assert 60 < time < 240


def test_two_weeks_take_the_minutes_of_all_boxes_and_of_all_sheets():
    boxes = [re.search(r"\*\*(\d+) minutes", prose(path))[1] for path in LESSONS if path != START]
    sheets = "".join(p.read_text(encoding="utf-8") for p in NOTEBOOKS.glob("exercises/*.ipynb"))
    work = re.findall(r"[●○]+ · (\d+) minutes", sheets)
    hours, more = (sum(map(int, minutes)) / 60 for minutes in (boxes, work))
    lessons, exercises = f"{len(boxes)} lessons", f"{len(work)} exercises: {hours + more:.1f}\n"
    assert f"{hours:.1f} hours for {lessons}, {more:.1f} for {exercises}" in printed(START)


def test_a_lecture_is_about_lessons_that_follow_each_other_and_none_is_given_twice(start):
    given = [lesson for pair in start["THEMES"].values() for lesson in pair]
    assert given == [f"{number:02d}" for number in range(1, 15)]


def test_what_the_start_page_calls_explained_is_in_the_glossary_under_that_lesson():
    said = re.search(r"are explained where they are first used: (.+?)\.", prose(START))[1]
    lessons = {word.lower(): lesson for word, _, lesson, _ in WORDS}
    named = re.findall(r"([A-Za-z ]+?) in (?:lesson )?(\d\d)", said.replace("and ", ""))
    assert len(named) == 4
    assert [lessons[word.strip().lower().removesuffix("s")] for word, _ in named] == [
        lesson for _, lesson in named
    ]
