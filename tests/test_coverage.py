"""COVERAGE.md is true: each section of the five documents leads to a heading that exists."""

import re
from pathlib import Path

import pytest

from tools import coverage
from tools.coverage import documents, headings, problems, prose, render, unsaid

LESSONS = {"01": (Path("01_toy.py"), {"1. A line": 3})}


def toy(**section):
    return [{"number": "000", "name": "A toy", "section": [{"title": "A line", **section}]}]


def test_each_section_leads_to_a_heading_or_says_why_not():
    found = problems(documents(), headings())
    assert not found, "\n".join(found)


def test_each_section_that_is_taught_is_told_in_words_that_stand_there():
    found = unsaid(documents(), headings())
    assert not found, "\n".join(found)


def test_the_words_of_a_section_are_its_own():
    """Words that stand almost anywhere would show nothing."""
    texts = [text for source, _ in headings().values() for text in prose(source).values()]
    words = {
        w for doc in documents() for section in doc["section"] for w in section.get("says", [])
    }
    often = {w: sum(bool(re.search(w, text, re.IGNORECASE)) for text in texts) for w in words}
    assert len(words) > 90
    assert {w: n for w, n in often.items() if n > len(texts) / 8} == {}


def test_the_page_is_what_the_lessons_make():
    page = render(documents(), headings())
    assert coverage.PAGE.read_text(encoding="utf-8") == page, "run `make coverage`"


def test_all_five_documents_are_there_and_no_section_twice():
    docs = documents()
    assert [document["number"] for document in docs] == ["000", "001", "002", "003", "004"]
    for document in docs:
        titles = [section["title"] for section in document["section"]]
        assert len(titles) == len(set(titles)) > 10
        assert not any("|" in title for title in titles)


def test_a_heading_is_found_with_the_number_of_its_cell(tmp_path):
    text = "# %% [markdown]\n# # Title\n\n# %%\nx = 1\n\n# %% [markdown]\n# ## 1. A line\n"
    (tmp_path / "01_toy.py").write_text(text, encoding="utf-8")
    assert headings(tmp_path)["01"][1] == {"1. A line": 3}


@pytest.mark.parametrize(
    ("section", "said"),
    [
        ({"taught": ["01: 1. A curve"]}, "has no heading '1. A curve'"),
        ({"taught": ["01:"]}, "which heading?"),
        ({"taught": ["07: 1. A line"]}, "no lesson 07"),
        ({}, "where it is taught"),
        ({"taught": ["01: 1. A line"], "left_out": "why not"}, "where it is taught"),
    ],
)
def test_a_section_that_leads_nowhere_is_reported(section, said):
    (found,) = problems(toy(**section), LESSONS)
    assert said in found


@pytest.mark.parametrize(
    "section",
    [{"taught": ["01: 1. A line"]}, {"taught": ["07:"]}, {"left_out": "a list of products"}],
)
def test_a_section_in_order_is_not_reported(section):
    assert problems(toy(**section), LESSONS) == []


@pytest.fixture
def lesson(tmp_path):
    """A lesson on disk, as `headings` knows lessons."""
    text = "# %% [markdown]\n# # Title\n# ## 1. A line\n# It is\n# straight.\n\n# %%\nbent = 1\n"
    text += (
        "\n# %% [markdown]\n# So far.\n#\n# ### Its slope\n# Steep.\n#\n# ## 2. A curve\n# Round.\n"
    )
    (tmp_path / "01_toy.py").write_text(text, encoding="utf-8")
    return headings(tmp_path)


def test_the_text_below_a_heading_ends_at_the_next_of_its_level(lesson):
    assert prose(lesson["01"][0]) == {
        "1. A line": "## 1. A line It is straight. So far. ### Its slope Steep.",
        "Its slope": "### Its slope Steep.",
        "2. A curve": "## 2. A curve Round.",
    }


@pytest.mark.parametrize(
    ("says", "said"),
    [
        (["it is straight"], None),
        (["steep|flat"], None),
        (["bent"], "does not say 'bent'"),
        (["round"], "does not say 'round'"),
        ([], "1 places, and words for 0"),
    ],
)
def test_words_that_do_not_stand_where_a_section_leads_are_reported(lesson, says, said):
    found = unsaid(toy(taught=["01: 1. A line"], says=says), lesson)
    assert len(found) == (said is not None)
    assert said is None or said in found[0]
