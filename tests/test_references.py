"""One bibliography, notebooks/references.md: all that is cited is in it, once."""

import re
import unicodedata

import pytest

from tools.notebooks import NOTEBOOKS, ROOT

LINK = re.compile(r"\[([^\]]+)\]\(references\.md#([^)]*)\)")
AUTHOR = r"(?:[^\W\d_]\.[ -]?)+(?:van den |von |[Dd]e )?[^\W\d_][\w-]+"
NAME = r"[A-ZÅŁ][^\W\d_]+(?:-[A-Z][^\W\d_]+)?"
YEAR = r"(?:1[89]\d\d|20[0-3]\d)"
# Yu et al. (2016) · (Yu et al., 2016) · Rahimi & Recht (2007) · (Mezzadri 2007, §4)
CITED = re.compile(
    rf"({NAME}(?: et al\.|(?:, {NAME})*(?:,? (?:&|and) {NAME})?))"
    rf"(?: \(({YEAR})\)|, ({YEAR})(?=[),.;:])|,? ({YEAR}), §)"
)


def folded(name):
    """A name in the letters of a key: Björck → bjorck."""
    plain = unicodedata.normalize("NFKD", name)
    return "".join(c for c in plain if not unicodedata.combining(c)).lower()


def entries(text):
    """[(key, the text below it, on one line)], as the file has them."""
    parts = re.split(r"(?m)^### (.+)$", text)[1:]
    return [
        (key, " ".join(entry.split())) for key, entry in zip(parts[::2], parts[1::2], strict=True)
    ]


def surnames(entry):
    """The surnames, or the firm, that an entry begins with; none where it is ill-formed."""
    found = re.match(rf"(?:{AUTHOR}(?:, {AUTHOR})*|[A-Z]\w+)(?=\. )", entry)
    names = found[0].split(", ") if found else []
    return [re.sub(r"^(?:[^\W\d_]\.[ -]?)+", "", name) for name in names]


def citations(text):
    """(names, year) of each work that a source, prose or code, cites by author and year."""
    text = re.sub(r"\s*\n\s*(?:#+ ?)?(?:> ?)?", " ", text)
    return [(names, next(filter(None, years))) for names, *years in CITED.findall(text)]


def fault(names, year):
    """What is wrong with a citation; empty where the bibliography has it under these names."""
    split = re.split(r",? (?:&|and) |, ", names.removesuffix(" et al."))
    authors = AUTHORS.get(f"{folded(split[0])}-{year}")
    if authors is None:
        return f"{names} ({year}) is not in references.md"
    fits = len(authors) > 2 if names.endswith(" et al.") else split == authors
    return "" if fits else f"{names} ({year}): the entry's authors are {', '.join(authors)}"


BIBLIOGRAPHY = (NOTEBOOKS / "references.md").read_text(encoding="utf-8")
AUTHORS = {key: surnames(entry) for key, entry in entries(BIBLIOGRAPHY)}
LESSONS = sorted(NOTEBOOKS.glob("*.py"))
CODE = [*NOTEBOOKS.glob("**/solutions/*.py"), *ROOT.glob("performer_course/**/*.py")]
CODE += ROOT.glob("benchmarks/*.py")
TEXTS = {path: path.read_text(encoding="utf-8") for path in [*LESSONS, *CODE]}

each_text = pytest.mark.parametrize("path", TEXTS, ids=lambda p: f"{p.parent.name}/{p.name}")
each_lesson = pytest.mark.parametrize("lesson", LESSONS, ids=lambda lesson: lesson.stem)


def test_entries_are_sorted_and_each_is_there_once():
    keys = [key for key, _ in entries(BIBLIOGRAPHY)]
    assert keys == sorted(set(keys))


@pytest.mark.parametrize(("key", "entry"), entries(BIBLIOGRAPHY), ids=list(AUTHORS))
def test_a_key_is_the_first_author_and_the_year(key, entry):
    assert AUTHORS[key], f"no authors at the beginning of {entry!r}"
    years = re.findall(rf"[( ]({YEAR})\)", entry)
    assert key == f"{folded(AUTHORS[key][0])}-{years[0]}"


@each_text
def test_what_is_cited_by_author_and_year_has_an_entry_with_these_authors(path):
    assert [f for names, year in citations(TEXTS[path]) if (f := fault(names, year))] == []


def test_citations_are_found_at_all():
    assert sum(len(citations(text)) for text in TEXTS.values()) > 300


@each_lesson
def test_each_link_leads_to_the_entry_that_it_names(lesson):
    for label, key in LINK.findall(TEXTS[lesson]):
        assert key in AUTHORS, f"{key} is not in references.md"
        (cited,) = citations(label)
        assert f"{folded(cited[0].split()[0].rstrip(','))}-{cited[1]}" == key
