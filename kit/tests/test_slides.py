"""The rules by which the deck of a lecture is made; `make test-kit` looks at the decks.

`test_lecturer.py` holds the decks to their plans.
"""

import html

import pytest

from kit import lectures, slides

TABLE = "   m   error   predicted\n   1   0.447       0.447\n  16   0.111       0.112\n"
TALKS = lectures.every()


def test_a_figure_has_its_words_in_the_notes_and_one_that_is_not_there_is_refused():
    talk = TALKS[2]
    slide = slides.figure("05.4", talk, talk.rows[0])
    assert slide.title == talk.titles["05.4"]
    assert slide.body[0].startswith('<img alt="The exact variance ratio')
    assert "The exact variance ratio" in slide.notes[-1]
    with pytest.raises(ValueError, match=r"no figure 05\.40"):
        slides.figure("05.40", talk, talk.rows[0])


def test_a_print_is_a_table_of_a_slide_where_it_can_be_read():
    assert html.unescape(slides.print_of(TABLE)).endswith(f"{TABLE.strip(chr(10))}</pre>")
    for other in ("one number: 1\n", "x" * 99 + TABLE, TABLE * 5):
        assert slides.print_of(other) == ""


def rows(show):
    """A lecture whose second row shows something else."""
    said = TALKS[2].path.read_text(encoding="utf-8")
    return lectures.parse(said.replace("| figure 05.1 |", f"| {show} |", 1), TALKS[2].path)


def test_a_row_shows_a_table_of_a_lesson_or_of_its_page_whole():
    table = next(slide for slide in slides.talked(rows("table 08 §1")) if slide.kind == "table")
    assert table.title == "Directions in the plane"
    assert "<pre" in table.body[0]
    table = next(slide for slide in slides.talked(rows("plan")) if slide.kind == "table")
    assert table.body[0].count("<tr>") == 1 + len(TALKS[2].rows)
    for show in ("table 05 §2", "picture", "table 08 §1 with words that it lacks"):
        with pytest.raises(ValueError, match=f"minute 3 has no table to show: {show}"):
            slides.talked(rows(show))


def test_a_row_with_nothing_to_show_is_refused():
    said = TALKS[2].path.read_text(encoding="utf-8")
    bare = said.replace("- **minute 0** (05 §1):", "- **minute 0** (05 §1): *Say:*", 1)
    with pytest.raises(ValueError, match=r"3_directions.md: minute 0 has nothing to show"):
        slides.talked(lectures.parse(bare, TALKS[2].path))


def test_no_link_leads_out_of_a_deck_and_no_comma_begins_a_line():
    said = slides.said("See [one](two.ipynb), `0.26` of $x$, and <b>so</b>.", "said")
    math = slides.inline("x")
    assert said == f'<p class=said>See one, 0.26 of <span class="whole">{math},</span> and so.</p>'
