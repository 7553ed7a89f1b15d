"""The lecturer's pages say what the lessons say: figures, sections, minutes and numbers.

The pages are Markdown in kit/pages; test_site.py sees that each place they name is there. A figure
is named by its lesson and its place in it. A number in `this type` is printed by a section of a
lesson, or by the solution of a project, that is named in the same paragraph; a figure names its
section, too. Below a live cell a number is printed by the cell, which is run.
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
# These are about tools, and quote no lesson.
TOOLS = ("grading", "in_the_browser", "in_your_own_model")
ALL = sorted(page for page in PAGES.rglob("*.md") if page.stem not in TOOLS)
FIGURES = r"figures? ((?:\w\d\.\d+(?:, | and )?)+)"
FORMULA = r"\$[^$]*\$"
# What counts lessons and sections is no number that a section tells.
COUNTED = r"(?m:^#+ .*$)|\b(?:[Ll]essons?|[Ss]ections?|[Ee]xercises?|[Ff]igures?)\s+\d[\d., and]*"

each_page = pytest.mark.parametrize("page", ALL, ids=lambda page: page.stem)


def numbers(text):
    """The numbers that stand in a text, without their signs."""
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
    """The minutes of each exercise of lesson `name`, as they stand in what students get."""
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


def chapters(text, pattern):
    """{name: text} of the parts of a page whose headings are "## <pattern>"."""
    parts = re.split(rf"(?m)^## (?={pattern})", text)[1:]
    return {part.split("\n")[0]: part.split("\n## ")[0] for part in parts}


TALKS = lectures.every()
WEEK = chapters(WEEKS, r"Week \d")
each_lecture = pytest.mark.parametrize("talk", TALKS, ids=lambda talk: talk.name)
each_week = pytest.mark.parametrize("week", WEEK, ids=lambda name: name.split(":")[0])


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
def test_minutes_of_lessons_and_exercises_are_those_of_boxes_and_sheets(page):
    text = " ".join(page.read_text(encoding="utf-8").split())
    for name, minutes in re.findall(r"(?:esson|ppendix) \[(\w\d)\]\(\S+\) \((\d+) minutes\)", text):
        assert lesson(name).minutes == int(minutes), name
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
            assert numbers(number) <= known, f"{number} in: {block}"


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


def test_the_first_seven_lectures_take_two_lessons_each_in_order_and_the_eighth_what_came_after():
    pairs = [lessons_of(talk) for talk in TALKS]
    assert pairs == [[f"{n:02d}", f"{n + 1:02d}"] for n in (*range(1, 14, 2), 19)]
    assert [talk.number for talk in TALKS] == list(range(1, 9))
    assert [int(talk.path.name[0]) for talk in TALKS] == list(range(1, 9))
    assert LECTURES.startswith("# Seven lectures, and an eighth\n")


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
def test_a_lecture_lasts_eighty_minutes_with_room_for_questions_of_theirs(talk):
    assert sum(row.minutes for row in talk.rows) == 80
    kinds = [row.kind for row in talk.rows if row.kind]
    assert sorted(kinds) == ["Ask 1", "Ask 2", "Board", "Homework", "Live", "Their questions"]
    assert [row.minutes for row in talk.rows if row.kind == "Their questions"] == [4]


@each_lecture
def test_nothing_in_a_plan_goes_faster_than_one_can_talk(talk):
    for row in talk.rows:
        least = {"Board": 1.5 * len(talk.steps), "Live": 5}.get(row.kind, 0)
        least += (5 if row.kind in talk.asks else 0) + (2 if row.kind else 3) * len(row.figures)
        least += len(f"{row.written} {row.said}".split()) / 120 if row.kind != "Homework" else 0
        assert row.minutes >= least, (row.start, row.what, least)


@each_lecture
def test_what_the_plan_shows_is_listed_in_its_section_with_words_of_its_description(talk):
    listed = re.findall(
        r"- \*\*figure (\w\d)\.(\d+)\*\* \(\[(\w\d)(?: §(\d+))?, [^\]]+\]\(\S+\)\): \"(.+?)\"",
        " ".join(talk.chapters["Figures"].split()),
    )
    planned = shown(talk)
    assert len(planned) == len(set(planned)) >= 7
    assert {f"{name}.{number}" for name, number, *_ in listed} == set(planned) == {*talk.figures}
    for name, number, again, section, words in listed:
        where, description = figures(name)[int(number) - 1]
        assert (name, section or "0") == (again, where)
        assert description.startswith(words), words


@each_lecture
def test_a_row_of_the_plan_without_a_figure_has_something_to_write(talk):
    for row in talk.rows:
        assert row.written or row.kind or row.figures, row.what


@each_lecture
def test_the_handout_has_two_figures_of_the_plan_that_answer_no_question(talk):
    answers = {figure for row in talk.rows if row.kind in talk.asks for figure in row.figures}
    assert len(talk.paper) == 2
    assert {*talk.paper} <= {*shown(talk)} - answers


@each_lecture
def test_homework_adds_up_and_what_is_left_out_is_said(talk):
    given = [int(re.match(r"exercise .+?\((\d+) minutes\)", item)[1]) for item in talk.homework]
    assert len(given) == 3
    assert f"In all {sum(given)} minutes." in talk.reading
    assert "Reading:" in talk.reading
    assert len(talk.left.split()) > 20


@each_lecture
def test_who_runs_late_knows_which_rows_to_skip(talk):
    skipped = [row for row in talk.rows if row.start in talk.late]
    saved = sum(row.minutes for row in skipped)
    assert (
        f"Skip the rows at minutes {skipped[0].start} and {skipped[1].start}: {saved} minutes."
        in talk.left
    )
    assert saved >= 8
    assert [row.kind for row in skipped] == ["", ""]


@each_lecture
def test_the_live_cell_is_short_runs_and_prints_what_the_page_says(talk):
    lines = talk.live.code.splitlines()
    assert len([line for line in lines if line]) <= 12
    assert max(map(len, lines)) <= 81  # what a slide has room for
    assert "from performer_course import" in talk.live.code
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-W", "error", "-c", talk.live.code]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)
    assert done.stderr == ""
    assert done.stdout.rstrip() == talk.live.prints
    quoted = numbers(" ".join(re.findall(r"`[^`]*`", talk.live.say)).replace("-", ""))
    assert quoted
    assert quoted <= numbers(talk.live.prints.replace("-", ""))


@each_lecture
def test_a_question_stands_by_itself(talk):
    for ask in (*talk.asks.values(), talk.live):
        assert "?" in ask.question
        assert not re.search(r"\bfigure\b", ask.question)


# The decks of lectures


def squeezed(piece):
    return " ".join(re.sub(r"<[^>]*>", "", piece).split())


@each_lecture
def test_a_deck_has_the_figures_of_its_plan_in_order_and_ends_with_the_homework(talk):
    deck = slides.talked(talk)
    drawn = [(slide.title, slide.body) for slide in deck if slide.kind == "figure"]
    same = [slides.figure(number) for number in shown(talk)]
    assert drawn == [(slide.title, slide.body) for slide in same]
    assert deck[0].kind == "title"
    assert squeezed(deck[0].body[0]).startswith("Afterwards students can")
    assert (deck[-1].title, str(deck[-1].body).count("<li>")) == ("Homework", 3)


@each_lecture
def test_a_deck_has_each_step_of_the_board_as_a_fragment(talk):
    steps = [
        piece for slide in slides.talked(talk) if slide.kind == "board" for piece in slide.body
    ]
    steps = [piece for piece in steps if piece.startswith("<p class=fragment>")]
    assert steps == [slides.said(f"**{n}** {s}", "fragment") for n, s in enumerate(talk.steps, 1)]


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


@each_lecture
def test_each_slide_of_a_deck_tells_the_speaker_its_minutes(talk):
    clocks = [
        re.search(r"From minute (\d+), (\d+) minutes", s.notes[0]) for s in slides.talked(talk)
    ]
    assert clocks[0] is None
    found = list(dict.fromkeys((int(clock[1]), int(clock[2])) for clock in clocks[1:]))
    assert found == [(row.start, row.minutes) for row in talk.rows]


def test_a_page_that_departs_from_its_shape_is_refused_by_name():
    whole = TALKS[2].path.read_text(encoding="utf-8")
    for good, bad, fault in (
        ("## Live\n", "## Alive\n", "no chapter Live"),
        ("| 10 | 4 |", "| 11 | 4 |", "the row at minute 11 should begin at 10"),
        ("- **minute 60**", "- **minute 62**", "no row of the plan begins at minute 62"),
        ("*Say then:*", "*Say:*", "question and answers"),
        ("It prints", "It says", "a live cell"),
    ):
        assert good in whole
        with pytest.raises(ValueError, match=fault):
            lectures.parse(whole.replace(good, bad))


# Where one starts


def test_who_teaches_starts_at_one_page_and_reaches_all_of_them_from_there():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    (section,) = re.findall(r"(?ms)^## How to teach with it\n(.+?)^## ", readme)
    assert re.search(r"\]\((.+?)\)", section)[1] == "kit/pages/teach.md"
    reached, new = set(), {PAGES / "teach.md"}
    while new:
        reached |= new
        links = [
            (page.parent / link.partition("#")[0]).resolve()
            for page in new
            for link in re.findall(r"\]\((\S+?\.md[^)\s]*)\)", page.read_text(encoding="utf-8"))
        ]
        new = {link for link in links if link.is_relative_to(PAGES)} - reached
    assert reached == set(PAGES.rglob("*.md"))


def test_a_lecture_in_thirty_minutes_takes_thirty():
    said = (PAGES / "teach.md").read_text(encoding="utf-8")
    (steps,) = re.findall(r"(?s)## A lecture in 30 minutes\n(.+?)\n## ", said)
    assert sum(map(int, re.findall(r": (\d+) minutes\.", steps))) == 30


def test_a_lecture_that_is_made_of_two_begins_after_their_questions():
    said = (PAGES / "teach.md").read_text(encoding="utf-8")
    parts = re.findall(r"lecture\s(\d)\sfrom\sminute\s(\d+)", said)
    rows = [talk.rows for number, _ in parts for talk in TALKS if talk.number == int(number)]
    asked = [row.start + 4 for some in rows for row in some if row.kind == "Their questions"]
    assert asked == [int(minute) for _, minute in parts]
    assert 75 <= sum(80 - start for start in asked) <= 80


# Weeks


@each_week
def test_a_week_has_ninety_minutes_of_lecture_and_ninety_of_lab(week):
    rows = re.findall(r"(?m)^\| (lecture|lab) \| (\d+) \| (.+) \|$", WEEK[week])
    for part in ("lecture", "lab"):
        assert sum(int(minutes) for kind, minutes, _ in rows if kind == part) == 90, part
    for kind, minutes, what in rows:
        given = re.findall(r"exercise \d\d\.\d \((\d+) minutes\)", what)
        if given:
            assert (kind, sum(map(int, given))) == ("lab", int(minutes))
        assert int(minutes) >= 3 * len(named(what)) + 5 * len(re.findall(r"\bAsk \d", what)), what


def test_the_weeks_are_twelve_and_teach_every_lesson_in_order():
    assert [int(re.match(r"Week (\d+)", week)[1]) for week in WEEK] == list(range(1, 13))
    taught = [re.findall(r"esson\s\[(\d\d)\]\(", text.split("| part")[0]) for text in WEEK.values()]
    assert [name for pair in taught for name in pair] == [f"{n:02d}" for n in range(1, 21)]
    rows = re.findall(r"(?m)^\| \d+ \| ([\d, ]+) \|", WEEKS.split("\n## ")[0])
    assert [row.split(", ") for row in rows] == taught


def test_each_exercise_of_the_lessons_is_given_once_in_the_twelve_weeks():
    given = re.findall(r"exercise (\d\d\.\d) \(\d+ minutes\)", " ".join(WEEKS.split()))
    there = [f"{n:02d}.{k}" for n in range(1, 21) for k in sheet(f"{n:02d}")]
    assert sorted(given) == sorted(there)


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


def test_each_project_has_a_brief_what_full_marks_look_like_and_two_questions():
    rows = re.findall(r"(?m)^\| \[(p\d)\]\((\S+)\) \| (\d) \| ([\d, ]+) \|", PROJECTS)
    briefs = chapters(PROJECTS, r"Project p\d")
    assert [f"Project {name}" for name, *_ in rows] == [brief[:10] for brief in briefs]
    assert len(rows) == len(list((NOTEBOOKS / "projects").glob("p*.ipynb")))
    for (name, link, hours, needs), (title, text) in zip(rows, briefs.items(), strict=True):
        first = read((PAGES / link).resolve()).texts[0]
        assert f"# {title.split(': ', 1)[1]}\n" in first
        assert f"**{hours} hours.**" in first
        assert set(re.findall(r"\b\d\d\b", first.split("Needs: ")[1].split("\n")[0])) == set(
            needs.split(", ")
        )
        for part in ("**Brief.**", f"**What full marks look like ({name}).**", "**To ask.**"):
            assert text.count(part) == 1
        assert text.count('\n- "') == 2


# Quizzes


def questions(page):
    """[(question, {letter: choice}, answer, {letter: reason}, {(lesson, section)})] of a quiz."""
    _, found = quizzes.read(page.read_text(encoding="utf-8"))
    return [(q.text, q.choices, q.right, q.reasons, sections_in(q.shown_in)) for q in found]


@pytest.mark.parametrize("page", QUIZZES, ids=lambda page: page.stem)
def test_a_quiz_has_five_questions_with_four_choices_one_right_and_a_reason_for_each(page):
    found = questions(page)
    assert len(found) == 5
    assert len({right for _, _, right, *_ in found}) >= 3  # no letter that always wins
    for question, choices, right, reasons, _ in found:
        assert list(choices) == list(reasons) == list("ABCD"), question
        assert len(set(choices.values())) == 4
        for letter, reason in reasons.items():
            assert reason.startswith("is right: " if letter == right else "tempts "), reason
            assert len(reason.split()) >= 12, reason


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


def test_there_is_a_quiz_for_each_part_about_its_lessons_and_the_lecturer_finds_all():
    every = [path.stem[:2] for path in sorted(NOTEBOOKS.glob("[0-9a]*_*.py"))]
    parts = site.parts(every)
    assert parts.pop("") == ["00"]
    titles = [page.read_text(encoding="utf-8").split("\n")[0] for page in QUIZZES]
    assert [title.removeprefix("# Quiz: ") for title in titles] == list(parts)
    for page, names in zip(QUIZZES, parts.values(), strict=True):
        asked = [name for *_, sections in questions(page) for name, _ in sections]
        assert set(asked) <= set(names)
        assert len(set(asked)) == min(len(names), 5)
        assert f"](../quizzes/{page.name})" in LECTURES
        assert f"](quizzes/{page.name})" in WEEKS
