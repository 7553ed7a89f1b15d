"""One bibliography, notebooks/references.md: what is cited is in it, once, and nothing else is."""

import re

import pytest

from tools.references import CITED, YEAR, key, works
from tools.setting import NOTEBOOKS, ROOT

LINK = re.compile(r"\[([^\]]+)\]\(references\.md#([^)]*)\)")
SURNAME = r"(?:van den |von |[Dd]e )?[^\W\d_][\w-]+"
AUTHORS = works()
FILES = [*NOTEBOOKS.glob("*.py"), *NOTEBOOKS.glob("**/solutions/*.py")]
FILES += [*ROOT.glob("performer_course/**/*.py"), *ROOT.glob("benchmarks/*.py")]
TEXTS = {path: path.read_text(encoding="utf-8") for path in FILES}


def citations(text):
    """Each work that a source, prose or code, cites by author and year: Yu et al. (2016)."""
    return re.findall(CITED, re.sub(r"\s*\n\s*(?:#+ ?)?(?:> ?)?", " ", text))


def fault(cited):
    """What is wrong with a citation; empty where the bibliography has it under these names."""
    names = re.split(rf"[ ,(]+{YEAR}", cited)[0]
    split, authors = re.split(r",? (?:&|and) |, ", names), AUTHORS.get(key(cited))
    if authors is None:
        return f"{cited}: not in references.md"
    fits = len(authors) > 2 if names.endswith(" et al.") else split == authors
    return "" if fits else f"{cited}: the entry's authors are {', '.join(authors)}"


def test_entries_are_sorted_and_each_is_there_once_under_its_first_author_and_year():
    text = (NOTEBOOKS / "references.md").read_text(encoding="utf-8")
    parts = re.split(r"(?m)^### (.+)$", text)[1:]
    assert parts[::2] == sorted(AUTHORS)
    for name, entry in zip(parts[::2], parts[1::2], strict=True):
        year = re.search(rf"[(\s]({YEAR})\)", entry)[1]
        assert name == key(f"{AUTHORS[name][0]} ({year})")
        assert all(re.fullmatch(SURNAME, one) for one in AUTHORS[name]), entry


@pytest.mark.parametrize("path", TEXTS, ids=lambda p: f"{p.parent.name}/{p.name}")
def test_what_is_cited_by_author_and_year_has_an_entry_and_a_link_leads_to_it(path):
    assert [f for cited in citations(TEXTS[path]) if (f := fault(cited))] == []
    for label, linked in LINK.findall(TEXTS[path]):
        assert [key(cited) for cited in citations(label)] == [linked]


def test_each_work_is_cited():
    cited = [key(cited) for text in TEXTS.values() for cited in citations(text)]
    assert {*cited} == {*AUTHORS}
    assert len(cited) > 300
