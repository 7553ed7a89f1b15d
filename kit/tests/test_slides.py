"""The rules by which decks of slides are made of lessons; `make test-kit` looks at the decks."""

import html
import re

import pytest

from kit import slides
from tools.lesson import ANSWER, parse, paths, read
from tools.setting import COURSE, NOTEBOOKS, edition

from .toy import figure, notebook, prints, text

BOX = "# Weigh a *thing*\n\n> **9 minutes.** Needs: 01.\n>\n> Afterwards you can weigh.\n\nHi."
LEAD = "The second weight is twice as large as the first."
OTHER = "At length four the null answer is the better one."
HEAD = text(f"## 1. Scales\n\n**{LEAD}**")
TABLE = "   m   error   predicted\n   1   0.447       0.447\n  16   0.111       0.112\n"
ASKED = text("**Before you run this:** is it twice?")


def deck(*cells, number="77"):
    return slides.slides(parse(notebook(text(BOX), *cells), number))


def shown(made, *kinds):
    return [slide for slide in made if slide.kind in kinds]


@pytest.fixture(scope="module", params=paths(), ids=lambda path: path.stem)
def lesson(request):
    return read(request.param)


@pytest.fixture(scope="module")
def made(lesson):
    return slides.slides(lesson)


def test_the_first_slide_has_the_title_the_part_and_the_box():
    title = deck()[0]
    assert (title.kind, title.title) == ("title", "Weigh a <em>thing</em>")
    assert title.section == "Lesson 77 · Scale, and after"
    assert title.body == [
        "<p><strong>9 minutes.</strong> Needs: 01.</p>",
        "<p>Afterwards you can weigh.</p>",
    ]
    assert title.notes == ["<p>Hi.</p>\n"]


def test_a_section_has_its_name_its_claim_and_its_formulas_three_to_a_slide():
    said = f"## 1. Scales\n\n**{LEAD}** So\n\n$$a = b$$\n\nbecause.\n\n$$c$$\n\n$$d$$\n\n$$e$$"
    first, second = shown(deck(text(said)), "text")
    assert (first.title, first.section) == ("Scales", "")
    assert first.body[:3] == [LEAD, '<p class="said">So</p>', slides.display("a = b")]
    assert "".join(first.body).count("math block") == 3
    assert (second.title, second.section) == (LEAD, "Scales")
    assert [re.sub("<.*?>", "", note).strip() for note in first.notes[1:3]] == [
        r"\[a = b\]",
        "because.",
    ]


def test_a_long_formula_is_cut_at_its_gaps_and_nowhere_within_a_bracket():
    long = "x" * 90
    assert r"x \\[0.4em] &amp;b" in slides.display(rf"{long} \qquad b")
    for whole in (r"a \qquad b", rf"\text{{{long} \qquad b}}", long):
        assert "aligned" not in slides.display(whole)


def test_a_figure_stands_under_the_claim_that_answers_its_question():
    before, after = text(f"## 1. Scales\n\n**{OTHER}** {ASKED.source}"), text(f"Yes. **{LEAD}**")
    first, asked, drawn = deck(before, figure("It is 2.", caption="Twice."), after)[1:]
    said = '<p class="answer">Yes.</p>'
    assert (first.kind, first.body) == ("claim", [OTHER])
    assert (asked.kind, asked.section) == ("question", "Scales")
    assert asked.body == [f'<p class="said">{OTHER}</p>', "<p>Is it twice?</p>"]
    assert (drawn.kind, drawn.title, drawn.section) == ("figure", LEAD, "Scales")
    assert drawn.body == ['<img alt="It is 2." src="data:image/png;base64,aGk=">', said]
    assert drawn.notes == [
        "<p>Twice.</p>",
        "<p>It is 2.</p>",
        f"<p>Yes. <strong>{LEAD}</strong></p>\n",
    ]


def test_a_claim_ends_at_the_next_picture_and_is_then_the_one_before():
    found = deck(HEAD, figure("One."), text("Prose."), figure("Two."), text(f"So **{OTHER}**"))
    assert [slide.title for slide in shown(found, "figure")] == [LEAD, OTHER]


def test_a_claim_over_a_later_print_is_not_that_of_a_figure_before_it():
    later = text("Prose."), prints(TABLE), text(f"**{LEAD}**")
    found = deck(text("## 1. Scales\n\nTwo."), figure("One."), *later)
    assert [slide.title for slide in shown(found, "figure")] == ["Scales"]


def test_a_claim_that_answers_a_question_comes_after_it():
    early = figure("Two scales."), ASKED, prints(TABLE), text(f"It is. **{LEAD}**")
    found = deck(text("## 1. Scales\n\nTwo weights."), *early)[1:]
    assert [slide.kind for slide in found] == ["figure", "question", "table"]
    assert [slide.title for slide in found] == ["Scales", "Before you look", LEAD]
    found = deck(text("## 1. Scales\n\nTwo weights."), *early[1:])[1:]
    assert [slide.kind for slide in found] == ["question", "table"]
    assert found[0].section == "Scales"
    assert LEAD not in str(found[0].body)
    assert found[0].notes[0] == "<p>Two weights.</p>\n"


def test_a_formula_before_the_claim_does_not_give_it_away():
    formulas = "\n\n".join(f"$$a = {i}$$" for i in range(4))
    found = deck(text(f"## 1. Scales\n\n{formulas}\n\n**{LEAD}**\n\n$$b$$\n\n- One.\n- Two."))
    assert [slide.title for slide in shown(found, "text", "steps")] == ["Scales", "Scales", LEAD]


def test_an_answer_has_a_sentence_for_each_part_of_its_question_below_what_shows_it():
    def below(answer, asked=ASKED, *shows):
        made = deck(HEAD, asked, *(shows or [figure("One.")]), text(answer), text(f"**{LEAD}**"))
        return shown(made, "figure", "table")[-1].body[1:]

    assert below("It is twice. So it is.") == ['<p class="answer">It is twice.</p>']
    both = text("**Before you look:** is it twice, and how much? And why?")
    said = "It is twice. It is 2. It is heavy. More."
    assert below(said, both) == ['<p class="answer">It is twice. It is 2. It is heavy.</p>']
    assert below(f"It is twice. {'Word ' * slides.ANSWERED}.", both) == below("It is twice.")
    assert below(f"**{LEAD}** More.") == []  # it is the title
    assert below("1. One.\n2. Two.") == []
    shows = figure("One."), figure("Two."), text("It is twice."), text(f"**{LEAD}**")
    two = shown(deck(HEAD, ASKED, *shows), "figure")
    assert [len(slide.body) for slide in two] == [1, 2]
    assert len(deck(HEAD, *shows)[-1].body) == 1
    both = figure("One.")
    both.outputs += figure("Two.").outputs  # of one cell
    assert below("It is twice.", ASKED, both) == ['<p class="answer">It is twice.</p>']


def test_a_figure_without_a_claim_of_its_own_stands_under_the_first_sentence_of_its_answer():
    answer = text("It is twice. So it is.")
    (found,) = shown(deck(HEAD, ASKED, figure("One."), answer), "figure")
    assert (found.title, found.body[1:]) == ("It is twice.", [])
    (found,) = shown(deck(HEAD, figure("One."), answer), "figure")
    assert found.title == LEAD


def test_a_print_stands_under_the_first_sentence_of_its_answer_where_that_has_no_claim():
    def after(*texts):
        return deck(text("## 1. Scales\n\nTwo."), ASKED, prints(TABLE), *map(text, texts))[2:]

    (table,) = after(f"It is twice. **{LEAD}**")
    assert (table.title, table.body[1:]) == (LEAD, ['<p class="answer">It is twice.</p>'])
    table, claim = after("It is twice. So it is.", f"**{LEAD}**")
    assert (table.kind, table.title, table.body[1:]) == ("table", "It is twice.", [])
    assert (claim.kind, claim.title, claim.body) == ("claim", "Scales", [LEAD])
    (_, _, table) = deck(HEAD, ASKED, prints(TABLE), text("It is twice."))[1:]
    assert table.title == "It is twice."


def test_a_question_whose_answer_nothing_shows_is_followed_by_its_claim():
    answered = prints("one number: 2\n"), text(f"It is twice. **{LEAD}**")
    asked, claim = deck(text("## 1. Scales\n\nTwo."), ASKED, *answered)[1:]
    assert (asked.kind, claim.kind, claim.title) == ("question", "claim", "Scales")
    assert claim.body == [LEAD, '<p class="answer">It is twice.</p>']
    assert not shown(deck(HEAD, ASKED, prints("2\n"), text("It is twice.")), "question")


def test_a_list_is_shown_a_step_at_a_time():
    long = "".join(f"{i}. {'word ' * 60}\n" for i in range(1, 4))
    led = f"## 1. Scales\n\n**{LEAD}** Three steps.\n\n"
    first, second = shown(deck(text(led + long)), "steps")
    assert (first.title, first.section) == (LEAD, "Scales")
    assert first.body[0] == '<p class="said">Three steps.</p>'
    assert first.body[1].startswith('<ol start="1"><li class="fragment">word')
    assert second.body[1].startswith('<ol start="3"><li class="fragment">word')
    answer = text("1. One.\n2. Two.", "answer")
    assert not shown(deck(HEAD, ASKED, prints(TABLE), answer), "steps")


def test_a_formula_stands_in_its_sentence():
    (found,) = shown(deck(text("## 1. S\n\nLong. One has\n\n$$a = b ,$$\n\nwith $b$. So.")), "text")
    assert found.body == [
        '<p class="said">One has</p>',
        slides.display("a = b"),
        rf'<p class="said">with {slides.inline("b")}.</p>',
    ]


def test_a_table_is_shown_where_it_answers_a_question_that_no_figure_answers():
    kinds = [slide.kind for slide in deck(HEAD, ASKED, prints(TABLE), text("Yes."))[1:]]
    assert kinds == ["claim", "question", "table"]
    assert not shown(deck(HEAD, prints(TABLE)), "table")
    assert not shown(deck(HEAD, ASKED, prints(TABLE), figure("One.")), "table")
    assert not shown(deck(HEAD, ASKED, prints("one number: 1\n")), "table", "question")
    assert not shown(deck(HEAD, ASKED, prints("x" * 99 + TABLE)), "table", "question")


def test_a_table_of_a_text_is_shown_whole_on_up_to_three_slides_or_not_at_all():
    def tables(words, count):
        table = "| a | b |\n|---|---|\n" + f"| {words} | {words} |\n" * count
        return [slide.body[0] for slide in shown(deck(HEAD, text(table)), "table")]

    assert [table.count("<tr>") for table in tables("few words", 9)] == [10]
    halves = [table.count("<tr>") for table in tables("few words", 13)]  # each with its head
    assert halves == [8, 7]
    assert [table.count("<tr>") for table in tables("too many words " * 10, 6)] == [3, 3, 3]
    assert tables("too many words " * 20, 6) == tables("few words", 40) == []


def test_no_code_is_shown_and_no_link():
    found = str(deck(text("## 1. Scales\n\nSee [one](two.ipynb)."), ASKED, prints(TABLE)))
    assert "See one." in found
    assert "two.ipynb" not in found
    assert "secret" not in found


def test_a_closing_list_is_shared_out_evenly():
    points = "\n".join(f"- {'word ' * 30}{i}." for i in range(6))
    found = shown(deck(text(f"## Take away\n\n{points}")), "list")[:2]
    assert [str(slide.body).count("<li>") for slide in found] == [3, 3]


# All lessons


def test_each_figure_of_a_lesson_is_shown_once_under_a_claim_with_its_words_in_the_notes(
    lesson, made
):
    found = shown(made, "figure")
    assert [slide.body[0] for slide in found] == [slides.picture(f) for f in lesson.figures]
    claims = {slides.html(claim) for section in lesson.sections for claim in section.claims}
    told = [cell.source for cell in lesson.cells if ANSWER in cell.tags and cell.kind != "code"]
    answers = {slides.html(slides.SENTENCE.split(said)[0]) for said in told}
    titles = {slides.html(section.title) for section in lesson.sections}
    assert {slide.title for slide in found} <= claims | answers | titles
    notes = [html.unescape("".join(slide.notes)) for slide in found]
    assert all(figure.alt in note for figure, note in zip(lesson.figures, notes, strict=True))


def test_no_text_is_lost(lesson, made):
    """It is in the notes, in the order of the lesson; the lists at the end are on slides."""
    notes = [note for slide in made for note in slide.notes]
    points = re.sub(r"</?ul>|\s", "", "".join(piece for slide in made for piece in slide.body))
    said = []
    for section in lesson.sections:
        rendered = [found for text in section.texts for found in slides.blocks(text)]
        rendered = [html for kind, _, html in rendered if kind not in ("heading", "blockquote")]
        if section.title in slides.CLOSING:
            assert all(re.sub(r"</?ul>|\s", "", html) in points for html in rendered)
        elif section.title not in slides.UNSHOWN:
            said += rendered
    assert [note for note in notes if note in set(said)] == said


def test_no_formula_of_a_section_is_lost(lesson, made):
    bodies = "".join(piece for slide in made for piece in slide.body)
    for said in lesson.texts:
        for kind, _, rendered in slides.blocks(said):
            assert kind != "math" or rendered in bodies


def test_the_last_slides_are_take_away_where_it_breaks_and_the_exercises(lesson, made):
    titles = list(dict.fromkeys(slide.title for slide in shown(made, "list")))
    sheets = [*(NOTEBOOKS / "exercises").glob(f"{lesson.number}_*.ipynb")]
    assert titles == [*slides.CLOSING, *["Exercises"] * len(sheets)]
    assert not sheets or made[-1].body[0].count("<li>") in (2, 3)


def words_of(slide):
    return html.unescape(" ".join(re.sub("<[^>]*>", "", " ".join(slide.body)).split()))


def unclear(said):
    """Why a question cannot be understood by who sees its slide alone."""
    if "?" not in said or len(said.split()) < 10:
        return ["too little"]
    return slides.pointed(said)


def test_a_question_slide_stands_by_itself(made):
    asked = [words_of(slide) for slide in shown(made, "question")]
    assert [(said, why) for said in asked if (why := unclear(said))] == []


@pytest.mark.parametrize(
    "said",
    [
        "Write down seven answers.",
        "From which degree on do Taylor features beat that constant: 1, 2 or 5? And the slip?",
        "Which of the three comes nearest to the exact solution with 200 features?",
        "Which of the three is best at a distance of 1, and which gains nothing at all?",
        "Not so with one shared norm, which couples all blocks. Is the estimate still consistent?",
        "Is one denominator in a hundred negative, or one in twenty? The cell counts over draws.",
        "On which kind will Taylor features of degree 1, the weights 1 + t, be worst, and why?",
        "On the right, will the error with a smaller number be smaller, the same, or larger?",
        "Below is a head of the small decoder. Do you expect to recognise the pattern at 256?",
        "Above: independent and aligned normal data. Where do features win, and by how much?",
        "Which of these ten lines read a value?",
        "Which of these ten lines read a value, so that the host has to wait for the device?",
        "For which of the six does the order of two shards not matter, up to rounding?",
        "Do the rows from two processes equal those here up to rounding, or bit for bit?",
        "A layer sees letters. What does the text below do if the letter before it is hidden?",
        "How many do you find?",
        "Take the same 1,024 tokens and 64 directions. Is one denominator in a thousand negative?",
        "So the direction must matter. Is the error along an axis larger, or is it smaller?",
        "Trained for as long from such a start, will plain exponentials have a greater divergence?",
    ],
)
def test_a_question_that_points_beyond_its_slide_is_refused(said):
    assert unclear(said)


@pytest.mark.parametrize(
    "said",
    [
        "Which of the three kernels, Gaussian, Laplacian or Cauchy, has the most waves beyond 5?",
        "Two lines cross at random. How wide is the wider of the two angles between these lines?",
        "Is the median error with 512 directions below 1, or will it be above 1,000 on all heads?",
        "Is the error larger than that of the exact solution, or will it be about the same?",
    ],
)
def test_a_question_that_points_to_its_own_slide_is_not_refused(said):
    assert not unclear(said)


def test_a_setting_leaves_out_what_points_beyond_the_slide():
    assert slides.set_by("The table has a row a day. A day has 24 hours.") == "A day has 24 hours."


def rows(table):
    """The cells of a table on a slide, row by row: of a Markdown table, or of a print."""
    if "<pre" in table:
        return html.unescape(re.sub("<[^>]*>", "", table)).splitlines()
    found = re.findall(r"(?s)<tr>(.*?)</tr>", table)
    return [re.findall(r"(?s)<t[hd][^>]*>(.*?)</t[hd]>", row) for row in found]


def cut(made, lesson):
    """The tables on slides that are not, row for row, what the lesson prints or writes."""
    whole = [o.text.strip("\n").splitlines() for cell in lesson.cells for o in cell.outputs]
    for lines in re.findall(r"(?m)^\|.*(?:\n\|.*)+", "\n\n".join(lesson.texts)):
        written = [re.split(r"(?<!\\)\|", line.strip().strip("|")) for line in lines.splitlines()]
        written.pop(1)  # the rule below the head
        whole.append([[slides.html(cell.strip()) for cell in row] for row in written])
    tables: list[list] = []
    for slide in shown(made, "table"):
        head, *others = rows(slide.body[0])
        if "<pre" not in slide.body[0] and tables and tables[-1][0] == head:  # it goes on
            tables[-1] += others
        else:
            tables.append([head, *others])
    return [table for table in tables if table not in whole]


def test_a_table_on_a_slide_has_all_rows_of_its_lesson(lesson, made):
    assert cut(made, lesson) == []


def test_a_table_stands_under_the_claim_of_its_own_text_unless_that_is_over_a_figure():
    table = "| a | b |\n|---|---|\n" + "| one | two |\n" * 3
    own = text(f"**{LEAD}**\n\n{table}")
    (alone,) = shown(deck(text("## 1. Scales\n\nTwo."), own), "table")
    assert (alone.title, alone.section) == (LEAD, "Scales")
    for before in ((HEAD, prints("2\n"), text(table)), (HEAD, figure("One."), own)):
        (later,) = shown(deck(*before), "table")
        assert (later.title, later.section) == ("Scales", "")


def test_a_table_that_lost_its_last_rows_is_found(monkeypatch):
    ways = [
        "FAVOR+, 1,024   3.90 (3.75 to 4.04)",
        "window   1.82",
        "mean(V)   8.99",
        "by place   3.9",
    ]
    cells = HEAD, ASKED, prints("way   perplexity\n" + "\n".join(ways) + "\n")
    table = text("## 2. Rows\n\n| a | b |\n|---|---|\n" + "| 3.90 (3.75 to 4.04) | $x$ |\n" * 3)
    lesson = parse(notebook(text(BOX), *cells, text("Yes."), table), "77")
    made = slides.slides(lesson)
    assert len(shown(made, "table")) == 2
    assert cut(made, lesson) == []
    for slide, row in zip(shown(made, "table"), (f"\n{ways[-1]}", "<tr>"), strict=True):
        body = slide.body[0]
        at = body.rindex(row)
        slide.body[0] = body[:at] + body[body.index("</", at) :]
    assert len(cut(made, lesson)) == 2


def test_the_first_claim_of_each_section_is_on_its_slides(lesson, made):
    for section in lesson.sections[1:]:
        if section.title not in (*slides.CLOSING, *slides.UNSHOWN):
            for claim in section.claims[:1]:
                assert any(slides.html(claim) in (s.title, *s.body) for s in made), claim


def test_no_slide_of_a_section_is_a_bare_heading(made):
    assert [slide.title for slide in made if not "".join(slide.body).strip()] == []


# The page


def test_a_deck_is_a_page_with_a_language_a_title_headings_and_notes():
    lesson = read(NOTEBOOKS / "09_positive_features.ipynb")
    page = slides.page(f"{lesson.number} {lesson.title}", slides.slides(lesson))
    assert '<html lang="en"' in page
    assert f"<title>09 {lesson.title} · {COURSE}</title>" in page
    assert page.count("<h1>") == page.count(f'<p class="edition">{COURSE} · {edition()}</p>') == 1
    assert page.count("<section") == page.count("<h1>") + page.count("<h2>")
    assert page.count('<aside class="notes">') == sum(bool(s.notes) for s in slides.slides(lesson))


def test_without_chromium_decks_are_made_and_one_is_told_how_to_get_pdfs(
    tmp_path, monkeypatch, capsys
):
    pytest.importorskip("playwright", reason="decks are made where the extra `slides` is installed")
    monkeypatch.setattr(slides, "BUILD", tmp_path)
    monkeypatch.setattr(slides, "ROOT", tmp_path.parent)
    monkeypatch.setattr(slides, "assets", lambda folder: None)
    monkeypatch.setattr(slides.chromium, "PATH", None)
    assert slides.main("a2") == 0
    assert (tmp_path / "a2_a_published_figure.html").is_file()
    assert "apt install chromium" in capsys.readouterr().out
