"""COVERAGE.md is true: what each section of the five documents says stands where it leads."""

import re

from tools.coverage import PAGE, below, lessons, page, sources

LESSON = {
    "01": (
        "01_toy.ipynb",
        "# Toy\n## 1. A line\nIt is\nstraight.\n### Its slope\nSteep.\n## 2. A curve\nRound.",
    )
}


def test_each_section_is_taught_in_words_that_stand_where_it_leads_and_the_page_says_so():
    text, wrong = page(sources(), lessons())
    assert not wrong, "\n".join(wrong)
    assert PAGE.read_text(encoding="utf-8") == text, "run `make coverage`"
    assert [len(sections) for sections in sources().values()] == [28, 23, 25, 17, 35]


def test_the_words_of_a_section_are_its_own():
    """Words that stand almost anywhere would show nothing."""
    texts = [
        below(heading, text)
        for _, text in lessons().values()
        for heading in re.findall(r"(?m)^##+ (.+)$", text)
    ]
    taught = [where for sections in sources().values() for where in sections.values()]
    words = {said for where in taught if not isinstance(where, str) for said in where.values()}
    assert len(words) > 90
    often = {said: sum(bool(re.search(said, text, re.I)) for text in texts) for said in words}
    assert {said: n for said, n in often.items() if n > len(texts) / 8} == {}


def test_a_place_that_does_not_exist_or_does_not_say_it_is_wrong():
    right = {"01: 1. A line": "it is straight", "01: Its slope": "steep|flat"}
    assert page({"0. Toy": {"A": right, "B": "a list"}}, LESSON)[1] == []
    for place, words in {
        "01: 1. A line": "round",
        "01: Its slope": "straight",
        "01: 3. None": "round",
        "07: 1. A line": "it",
    }.items():
        assert len(page({"0. Toy": {"A": {place: words}}}, LESSON)[1]) == 1
