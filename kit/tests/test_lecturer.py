"""The lecturer's pages say what the lessons say: figures, sections, minutes and numbers.

The pages are Markdown in kit/pages; test_site.py sees that each place they name is there. A figure
is named by its lesson and its place in it. A number in `this type` is printed by a section of a
lesson, or by the solution of a project, that is named in the same paragraph; a figure names its
section as well. Below a live cell a number is printed by the cell, which is run.
"""

import functools
import os
import re
import subprocess
import sys

import pytest

from kit import lectures, quizzes, site, slides
from tools.lesson import VOLATILE, find, read
from tools.setting import NOTEBOOKS, ROOT

PAGES = ROOT / "kit" / "pages"
LECTURES, WEEKS, PROJECTS = (
    (PAGES / f"{name}.md").read_text(encoding="utf-8")
    for name in ("lectures/index", "twelve_weeks", "projects")
)
QUIZZES = sorted((PAGES / "quizzes").glob("*.md"))
# These are about tools, or are held to their lesson or record as a whole.
TOOLS = ("grading", "in_the_browser", "in_your_own_model", "decision_card", "how_we_know", "speed")
ALL = sorted(page for page in PAGES.rglob("*.md") if page.stem not in TOOLS)
FIGURES = r"figures? ((?:\w\d\.\d+(?:, | and )?)+)"
FORMULA = r"\$[^$]*\$"
# What counts lessons and sections is no number that a section tells.
COUNTED = r"(?m:^#+ .*$)|\b(?:[Ll]essons?|[Ss]ections?|[Ee]xercises?|[Ff]igures?)\s+\d[\d., and]*"
FRAGMENT = r"(?:It|They|This|That|Nothing|None|Somewhat|Of|Few|Yes)\b|No[,.:]"

each_page = pytest.mark.parametrize("page", ALL, ids=lambda page: page.stem)


def numbers(text):
    """The numbers in a text, without their signs."""
    text = text.replace("{,}", ",")
    found = re.findall(r"(?<![\w.])((?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?(?:e[+-]?\d+)?)", text)
    return {float(number.replace(",", "")) for number in found}


@functools.cache
def lesson(name):
    """Lesson `name`, or the solution of project `name`."""
    return read(find(name))


def told(name, section):
    """The numbers in the text of a section."""
    return numbers(re.sub(COUNTED, " ", "\n".join(lesson(name).section(section).texts)))


def printed(name, section):
    """The numbers that the cells of a section print, timings left out."""
    cells = lesson(name).section(section).cells
    said = [output.text for cell in cells if VOLATILE not in cell.tags for output in cell.outputs]
    return numbers("\n".join(said))


def figures(name):
    """[(section, description)] of the figures of a lesson."""
    return [(part.name, figure.alt) for part in lesson(name).sections for figure in part.figures]


@functools.cache
def sheet(name):
    """The minutes of each exercise of lesson `name`, as students see them."""
    text = "\n".join(read(NOTEBOOKS / "exercises" / find(name).name).texts)
    found = re.findall(r"## (\d)\. .+\n+\*[●○]+ · (\d+) minutes\.\*", text)
    return {int(number): int(minutes) for number, minutes in found}


def named(text):
    """The figures that a text names: ["05.3", …]."""
    return [
        figure for some in re.findall(FIGURES, text) for figure in re.findall(r"\w\d\.\d+", some)
    ]


def blocks(text):
    """Paragraphs, items of lists and rows of tables, each in one line."""
    starts = re.sub(r"(?m)^(- |\d+\. |\| )", r"\n\n\1", text)
    return [" ".join(block.split()) for block in starts.split("\n\n") if block.strip()]


def sections_in(block):
    """{(lesson, section)} that a block names: as 05 §3, or by a figure."""
    found = set(re.findall(r"\b(\d\d|a\d) §(\d+)", block))
    for figure in named(block):
        name, number = figure.split(".")
        found.add((name, figures(name)[int(number) - 1][0]))
    return found


def projects_in(block):
    return set(re.findall(r"\b(p\d)\b", block))


TALKS = lectures.every()

each_lecture = pytest.mark.parametrize("talk", TALKS, ids=lambda talk: talk.name)


def words_of(page):
    """What a page says, without a live cell: its numbers are the cell's own."""
    return re.sub(r"(?s)\n## Live\n.+?(?=\n## )", "", page.read_text(encoding="utf-8"))


def shown(talk):
    """The figures of a plan, in order."""
    return [figure for row in talk.rows for figure in row.figures]


# The pages and the lessons


@each_page
def test_a_section_that_is_linked_has_the_heading_that_is_quoted(page):
    text = " ".join(page.read_text(encoding="utf-8").split())
    for name, section, heading, link in re.findall(r"\[(\w\d) §(\d+), \*(.+?)\*\]\((.+?)\)", text):
        assert heading == lesson(name).section(section).title
        assert (page.parent / link).resolve() == find(name).resolve()


@each_page
def test_minutes_of_exercises_are_those_of_their_sheets(page):
    text = " ".join(page.read_text(encoding="utf-8").split())
    for name, number, minutes in re.findall(r"exercise (\d\d)\.(\d)\s\((\d+) minutes\)", text):
        assert sheet(name)[int(number)] == int(minutes), f"exercise {name}.{number}"


@each_page
def test_a_number_in_this_type_is_printed_by_a_section_that_is_named_beside_it(page):
    if page in QUIZZES:
        return  # all their numbers are tested, below
    for block in blocks(words_of(page)):
        quoted = re.findall(r"`[−-]?([\d.,]*\d(?:e[+-]?\d+)?)`", block)
        known = set()
        for name, section in sections_in(block):
            known |= printed(name, section)
        for name in projects_in(block):  # a report says things that no cell prints
            for part in lesson(name).sections:
                known |= printed(name, part.name) | told(name, part.name)
        for number in quoted:
            assert "e" not in number, f"{number} should be in words, in: {block}"
            assert numbers(number) <= known, f"{number} in: {block}"


def test_what_the_writer_writes_on_a_slide_is_printed_by_a_section_named_beside_it():
    said = [block for page in ALL for block in blocks(words_of(page)) if "*Emma " in block]
    for block in said:
        cells = [cell for at in sections_in(block) for cell in lesson(at[0]).section(at[1]).cells]
        written = " ".join(output.text for cell in cells for output in cell.outputs)
        for sample in re.findall(r"(?<!\*)\*(Emma .+?)\*(?!\*)", block):
            assert sample in written, sample
    assert len(said) > 2


@each_page
def test_no_decimal_number_stands_without_its_lesson(page):
    if page in QUIZZES:
        return
    text = " ".join(words_of(page).split())
    for known in (FORMULA, r"`[^`]*`", r"\]\(\S+\)", FIGURES, r"exercises? \d\d\.\d"):
        text = re.sub(known, " ", text)
    assert not re.findall(r"\d+\.\d+", text)


# Lectures


def lessons_of(talk):
    """The lessons of a lecture, from its head."""
    return re.findall(r"esson \[(\d\d)\]", talk.opening)


def test_the_list_of_lectures_says_how_much_of_its_lessons_each_shows():
    row = (
        r"(?m)^\| \[(\d)\]\((.+?)\) \| ([\d, ]+) \| (\d+) minutes \| (\d+) of (\d+) \| .+ \| (\d+) "
    )
    rows = re.findall(row + "minutes", LECTURES)
    for (mark, link, pair, minutes, shows, there, home), talk in zip(rows, TALKS, strict=True):
        names = lessons_of(talk)
        assert (int(mark), link) == (talk.number, talk.path.name)
        assert pair.split(", ") == names
        assert int(minutes) == sum(lesson(name).minutes for name in names)
        assert int(shows) == sum(figure[:2] in names for figure in shown(talk))
        assert int(there) == sum(len(lesson(name).figures) for name in names)
        assert f"In all {home} minutes" in talk.reading
    read = [int(minutes) for _, _, _, minutes, *_ in rows]
    assert f"takes {min(read)} to {max(read)} minutes" in " ".join(LECTURES.split())


@each_lecture
def test_the_minutes_of_a_plan_and_of_its_homework_add_up(talk):
    assert sum(row.minutes for row in talk.rows) == 80
    given = [int(re.match(r"exercise .+?\((\d+) minutes\)", item)[1]) for item in talk.homework]
    assert f"In all {sum(given)} minutes." in talk.reading


@each_lecture
def test_what_the_plan_shows_is_listed_in_its_section_with_words_of_its_description(talk):
    listed = re.findall(
        r"- \*\*figure (\w\d)\.(\d+)\*\* \(\[(\w\d)(?: §(\d+))?, [^\]]+\]\(\S+\)\): \"(.+?)\"",
        " ".join(talk.chapters["Figures"].split()),
    )
    planned = shown(talk)
    assert len(planned) == len(set(planned))
    assert {f"{name}.{number}" for name, number, *_ in listed} == set(planned) == {*talk.figures}
    for name, number, again, section, words in listed:
        where, description = figures(name)[int(number) - 1]
        assert (name, section or "0") == (again, where)
        assert description.startswith(words), words


@each_lecture
def test_the_live_cell_fits_runs_and_prints_what_the_page_says(talk):
    assert max(map(len, talk.live.code.splitlines())) <= 81  # what a slide has room for
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-W", "error", "-c", talk.live.code]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)
    assert done.stderr == ""
    assert done.stdout.rstrip() == talk.live.prints
    quoted = numbers(" ".join(re.findall(r"`[^`]*`", talk.live.say)).replace("-", ""))
    assert quoted
    assert quoted <= numbers(talk.live.prints.replace("-", ""))


# The decks of lectures


@each_lecture
def test_a_deck_has_the_figures_of_its_plan_and_the_steps_of_the_board_in_order(talk):
    deck = slides.talked(talk)
    drawn = [(slide.title, slide.body) for slide in deck if slide.kind == "figure"]
    same = [slides.figure(number, talk, row) for row in talk.rows for number in row.figures]
    assert drawn == [(slide.title, slide.body) for slide in same]
    board = [piece for slide in deck if slide.kind == "board" for piece in slide.body]
    steps = [slides.said(f"**{n}** {said}", "fragment") for n, said in enumerate(talk.steps, 1)]
    assert [piece for piece in board if piece.startswith("<p class=fragment>")] == steps


@each_lecture
def test_the_title_of_a_figure_is_a_short_sentence_that_can_be_understood_alone(talk):
    titles = [re.sub("<[^>]*>", "", s.title) for s in slides.talked(talk) if s.kind == "figure"]
    headings = {part.title for number in shown(talk) for part in lesson(number[:2]).sections}
    for title in titles:
        assert title[-1] == "."
        assert slides.length(title) <= 90, f"above 90 letters: {title}"
        assert title[:-1] not in headings
        assert not re.match(FRAGMENT, title), title


@each_lecture
def test_a_deck_ends_with_the_homework_and_with_author_and_year_of_its_sources(talk):
    homework, sources = slides.talked(talk)[-2:]
    assert [homework.title, sources.title] == ["Homework", "Sources"]
    assert all(re.match("<ul>|<p>In all |<p>Next time: ", said) for said in homework.body)
    for name, said in zip(sorted({n[:2] for n in shown(talk)}), sources.body, strict=True):
        (text,) = lesson(name).section("Further reading").texts
        years = re.findall(r"references\.md#[\w-]+-(\d{4})", text)
        assert re.findall(r"\((\d{4})\)", said) == years


@each_lecture
def test_a_deck_asks_each_question_before_its_answer_and_tells_the_speaker_what_they_tend_to_say(
    talk,
):
    deck = slides.talked(talk)
    for ask in (*talk.asks.values(), talk.live):
        (at,) = [i for i, slide in enumerate(deck) if slide.body == [slides.said(ask.question)]]
        assert slides.said(f"They tend to say: {ask.tend}") in deck[at].notes
        then = deck[at + 1]
        so = slides.said(ask.say[0].upper() + ask.say[1:])
        assert so in then.body or (then.kind == "code" and slides.said(ask.say) in then.notes)


def test_a_page_that_departs_from_its_shape_is_refused_by_name():
    whole = TALKS[2].path.read_text(encoding="utf-8")
    for good, bad, fault in (
        ("## Live\n", "## Alive\n", "no chapter Live"),
        ("| 10 | 4 |", "| 11 | 4 |", "the row at minute 11 should begin at 10"),
        ("- **minute 55**", "- **minute 57**", "no row of the plan begins at minute 57"),
        ("*Say then:*", "*Say:*", "question and answers"),
        ("It prints", "It says", "a live cell"),
        ("**Orthogonal directions gain", "Orthogonal directions gain", "no title .* figure 05.4"),
    ):
        assert good in whole
        with pytest.raises(ValueError, match=fault):
            lectures.parse(whole.replace(good, bad))


# Projects


def rubric(text, columns):
    """{criterion: cells} of the table of a rubric, without the head."""
    rows = re.findall(r"(?m)^\| (Correctness|Measurement|Verdict|Code|Picture) \| (.+) \|$", text)
    found = {name: cells.split(" | ") for name, cells in rows}
    assert len(found) == 5
    assert {len(cells) for cells in found.values()} == {columns}
    return found


def test_the_rubric_has_the_points_of_the_projects_and_levels_that_fall():
    levels = rubric(PROJECTS, 4)
    assert sum(int(cells[0]) for cells in levels.values()) == 20
    for cells in levels.values():
        points, full, half, none = (int(re.match(r"\d+", cell)[0]) for cell in cells)
        assert points == full > half > none == 0
    for path in sorted((NOTEBOOKS / "projects").glob("p*.ipynb")):
        text = "\n".join(read(path).texts)
        points = {name: cells[0] for name, cells in rubric(text, 2).items()}
        assert points == {name: cells[0] for name, cells in levels.items()}


def test_the_hours_of_a_project_are_its_own():
    rows = re.findall(r"(?m)^\| \[p\d\]\((\S+)\) \| (\d) \|", PROJECTS)
    assert len(rows) == len(list((NOTEBOOKS / "projects").glob("p*.ipynb")))
    for link, hours in rows:
        assert f"**{hours} hours.**" in read((PAGES / link).resolve()).texts[0]


# Quizzes


def questions(page):
    """[(question, {letter: choice}, answer, {letter: reason}, {(lesson, section)})] of a quiz."""
    _, found = quizzes.read(page.read_text(encoding="utf-8"))
    return [(q.text, q.choices, q.right, q.reasons, sections_in(q.shown_in)) for q in found]


@pytest.mark.parametrize("page", QUIZZES, ids=lambda page: page.stem)
def test_a_quiz_has_five_questions_with_four_choices_one_right_and_a_reason_for_each(page):
    found = questions(page)
    assert len(found) == 5
    for question, choices, right, reasons, _ in found:
        assert list(choices) == list(reasons) == list("ABCD"), question
        assert len(set(choices.values())) == 4
        for letter, reason in reasons.items():
            assert reason.startswith("is right: " if letter == right else "tempts "), reason


@pytest.mark.parametrize("page", QUIZZES, ids=lambda page: page.stem)
def test_every_number_of_a_quiz_stands_in_the_section_that_its_answer_names(page):
    """Decimal numbers are printed there by a cell."""
    for question, choices, _, reasons, sections in questions(page):
        shown = set().union(*(printed(*section) for section in sections))
        known = shown.union(*(told(*section) for section in sections))

        def plain(*texts):
            return numbers(re.sub(rf"`[^`]*`|{FORMULA}|{COUNTED}", " ", " ".join(texts)))

        said = plain(question, *choices.values(), *reasons.values())
        assert said <= known, (said - known, question)
        decimal = {number for number in said if number % 1}
        assert decimal <= shown, (decimal - shown, question)


def test_each_part_ends_with_a_quiz_about_its_lessons_and_the_lecturer_finds_all():
    trees = re.findall(r"(?s):caption: (.+?)\n\n(.*?)\n```", site.contents(ROOT))
    parts = [(part, tree) for part, tree in trees if re.search(r"<notebooks/\w\d_", tree)]
    for page, (part, tree) in zip(QUIZZES, parts, strict=True):
        assert page.read_text(encoding="utf-8").startswith(f"# Quiz: {part}\n")
        assert tree.endswith(f"\nQuiz <{quizzes.FOLDER}/{page.stem}>")
        asked = [name for *_, sections in questions(page) for name, _ in sections]
        assert set(asked) <= set(re.findall(r"<notebooks/(\w\d)_", tree))
        assert f"](../quizzes/{page.name})" in LECTURES
        assert f"](quizzes/{page.name})" in WEEKS
