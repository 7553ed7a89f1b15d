"""The rules by which decks of slides are made of lessons; `make test-kit` looks at the decks."""

import html
import re

import pytest

from kit import slides
from tools.lesson import parse, paths, read
from tools.setting import NOTEBOOKS, edition

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
    assert (first.kind, first.body) == ("claim", [OTHER])
    assert (asked.kind, asked.section) == ("question", "Scales")
    assert asked.body == [f'<p class="said">{OTHER}</p>', "<p>Is it twice?</p>"]
    assert (drawn.kind, drawn.title, drawn.section) == ("figure", LEAD, "Scales")
    assert drawn.body == ['<img alt="It is 2." src="data:image/png;base64,aGk=">']
    assert drawn.notes == [
        "<p>Twice.</p>",
        "<p>It is 2.</p>",
        f"<p>Yes. <strong>{LEAD}</strong></p>\n",
    ]


def test_a_claim_ends_at_the_next_picture_and_is_then_the_one_before():
    found = deck(HEAD, figure("One."), text("Prose."), figure("Two."), text(f"So **{OTHER}**"))
    assert [slide.title for slide in shown(found, "figure")] == [LEAD, OTHER]


def test_a_table_is_shown_where_it_answers_a_question_that_no_figure_answers():
    kinds = [slide.kind for slide in deck(HEAD, ASKED, prints(TABLE), text("Yes."))[1:]]
    assert kinds == ["claim", "question", "table"]
    assert not shown(deck(HEAD, prints(TABLE)), "table")
    assert not shown(deck(HEAD, ASKED, prints(TABLE), figure("One.")), "table")
    assert not shown(deck(HEAD, ASKED, prints("one number: 1\n")), "table", "question")
    assert not shown(deck(HEAD, ASKED, prints("x" * 99 + TABLE)), "table", "question")


def test_a_table_of_a_text_is_shown_whole_or_not_at_all():
    def rows(words):
        return text("| a | b |\n|---|---|\n" + f"| {words} | {words} |\n" * 3)

    assert len(shown(deck(HEAD, rows("few words")), "table")) == 1
    assert not shown(deck(HEAD, rows("too many words " * 20)), "table")


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
    assert [slide.body for slide in found] == [[slides.picture(f)] for f in lesson.figures]
    claims = {slides.html(claim) for section in lesson.sections for claim in section.claims}
    assert {slide.title for slide in found} <= claims
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


# The page


def test_a_deck_is_a_page_with_a_language_a_title_headings_and_notes():
    lesson = read(NOTEBOOKS / "09_positive_features.ipynb")
    page = slides.page(lesson)
    assert '<html lang="en"' in page
    assert f"<title>09 {lesson.title}</title>" in page
    assert page.count("<h1>") == page.count(f'<p class="edition">{edition()}</p>') == 1
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
