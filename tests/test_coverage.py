"""notebooks/coverage.md is true: each section of the five documents is taught where it says.

Behind each of its links is a comment, a regular expression that is found below that heading.
"""

import re

from tools.lesson import paths, read
from tools.setting import NOTEBOOKS

PAGE = (NOTEBOOKS / "coverage.md").read_text(encoding="utf-8")
ROW = re.compile(r"(?m)^\| (?!section|---)(.+) \| (.+) \|$")
PLACE = re.compile(r"\[(\w\w): ([^\]]+)\]\((\w+\.ipynb)\)<!-- (.+?) -->(?:; |$)")
TEXTS = {path.name: "\n".join(read(path).texts) for path in paths()}


def below(heading: str, text: str) -> str:
    """What is below a heading, up to the next of its level or above; "" where there is none."""
    found = re.search(rf"(?m)^(##+) {re.escape(heading)}$", text)
    if not found:
        return ""
    end = re.search(rf"(?m)^#{{1,{len(found[1])}}} ", text[found.end() :])
    return " ".join(text[found.start() :][: len(found[0]) + end.start() if end else None].split())


def wrong(page: str, texts: dict) -> list[str]:
    """What is wrong with the rows of a page, in words; texts: the text of each file."""
    found = []
    for section, taught in ROW.findall(page):
        if taught.startswith("left out: "):
            continue
        if PLACE.sub("", taught):
            found.append(f"{section}: neither places nor “left out: …”")
        for lesson, heading, file, words in PLACE.findall(taught):
            text = texts.get(file, "") if file.startswith(f"{lesson}_") else ""
            if not re.search(words, below(heading, text), re.IGNORECASE):
                found.append(f"{section}: “{words}” is not below “{heading}” of {file}")
    return found


def test_each_section_is_taught_where_the_page_says():
    assert wrong(PAGE, TEXTS) == []
    documents = PAGE.split("\n## ")[1:]
    assert [len(ROW.findall(document)) for document in documents] == [28, 23, 25, 17, 35]
