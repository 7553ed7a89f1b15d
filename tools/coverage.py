"""Where each section of the five documents is taught: reads tools/sources.toml, writes COVERAGE.md.

    python -m tools.coverage          write COVERAGE.md
    python -m tools.coverage --check  say whether COVERAGE.md is what comes out

A section names lessons and headings, and for each of these words that must stand below it: `says`
has one regular expression for each place. A heading that a lesson does not have is an error, and so
are words that do not stand there, and a section that leads nowhere; a lesson not yet written may
stand without a heading.
"""

import re
import sys
import tomllib
from pathlib import Path

from tools.notebooks import NOTEBOOKS, ROOT, read

SOURCES = ROOT / "tools" / "sources.toml"
PAGE = ROOT / "COVERAGE.md"
INTRODUCTION = """# Where the five documents are taught

The course grew from five documents: two blog articles, the notes and the slides of two lectures,
and a note on a method. Each of their sections is listed below, with the lesson that teaches it and
the cell where that begins, counted from the top of the notebook. Where a document is wrong, the
lesson teaches what is right and says so. Acknowledgements and lists of references are not counted.

Written by `make coverage` from `tools/sources.toml`; a test holds it to the lessons.
"""


def documents(path: Path = SOURCES) -> list[dict]:
    """The documents, each with number, name and sections."""
    return tomllib.loads(path.read_text(encoding="utf-8"))["document"]


def headings(folder: Path = NOTEBOOKS) -> dict:
    """lesson → its file and, for each heading below the title, the number of its cell."""
    found = {}
    for source in sorted(folder.glob("*.py")):
        cells = {}
        for number, cell in enumerate(read(source).cells, start=1):
            lines = cell.source.splitlines() if cell.cell_type == "markdown" else []
            for line in lines:
                if line.startswith(("## ", "### ")):
                    cells[line.lstrip("#").strip()] = number
        found[source.stem.split("_")[0]] = (source, cells)
    return found


def prose(source: Path) -> dict[str, str]:
    """heading → the text below it, up to the next heading of its level or above, on one line."""
    found, open_ = {}, []
    for cell in read(source).cells:
        lines = cell.source.splitlines() if cell.cell_type == "markdown" else []
        for line in lines:
            mark, _, heading = line.partition(" ")
            if mark in {"##", "###"}:
                open_ = [(level, name) for level, name in open_ if level < len(mark)]
                open_.append((len(mark), heading.strip()))
                found[heading.strip()] = ""
            for _, name in open_:
                found[name] += f"{line} "
    return {heading: " ".join(text.split()) for heading, text in found.items()}


def place(text: str) -> tuple[str, str]:
    """ "01: 2. A map" → ("01", "2. A map")."""
    lesson, _, heading = text.partition(":")
    return lesson.strip(), heading.strip()


def problems(docs: list[dict], lessons: dict) -> list[str]:
    """What is wrong with the list of sections, in words."""
    found = []
    for document in docs:
        for section in document["section"]:
            name = f"{document['number']}, {section['title']}"
            taught, left_out = section.get("taught", []), section.get("left_out", "")
            if bool(taught) == bool(left_out):
                found.append(f"{name}: say where it is taught, or why it is left out")
            for lesson, heading in map(place, taught):
                written = lessons.get(lesson)
                if written and not heading:
                    found.append(f"{name}: lesson {lesson} is written: which heading?")
                elif written and heading not in written[1]:
                    found.append(f"{name}: lesson {lesson} has no heading {heading!r}")
                elif heading and not written:
                    found.append(f"{name}: there is no lesson {lesson}")
    return found


def unsaid(docs: list[dict], lessons: dict) -> list[str]:
    """The places whose words are missing: in the list, or in the text."""
    found, texts = [], {lesson: prose(source) for lesson, (source, _) in lessons.items()}
    for document in docs:
        for section in document["section"]:
            name = f"{document['number']}, {section['title']}"
            taught, says = section.get("taught", []), section.get("says", [])
            if len(taught) != len(says):
                found.append(f"{name}: {len(taught)} places, and words for {len(says)}")
                continue
            for (lesson, heading), words in zip(map(place, taught), says, strict=True):
                text = texts.get(lesson, {}).get(heading, "")
                if not re.search(words, text, re.IGNORECASE):
                    found.append(f"{name}: {lesson}: {heading} does not say {words!r}")
    return found


def render(docs: list[dict], lessons: dict) -> str:
    """The page."""
    lines = [INTRODUCTION]
    for document in docs:
        lines += [f"## {document['number']}. {document['name']}", "", "| section | taught in |"]
        lines += ["|---|---|"]
        for section in document["section"]:
            where = [_link(*place(text), lessons) for text in section.get("taught", [])]
            text = "; ".join(where) or f"left out: {section['left_out']}"
            lines.append(f"| {section['title']} | {text} |")
        lines.append("")
    return "\n".join(lines)


def _link(lesson, heading, lessons):
    if lesson not in lessons:
        return f"lesson {lesson}, not written yet"
    source, cells = lessons[lesson]
    path = source.with_suffix(".ipynb").relative_to(ROOT).as_posix()
    return f"[{lesson}, cell {cells[heading]}]({path}): {heading}"


def main(arguments: list[str]) -> int:
    docs, lessons = documents(), headings()
    found = problems(docs, lessons) or unsaid(docs, lessons)
    if found:
        print("\n".join(found), file=sys.stderr)
        return 1
    page = render(docs, lessons)
    if "--check" in arguments:
        stale = not PAGE.exists() or PAGE.read_text(encoding="utf-8") != page
        print("COVERAGE.md is stale: run `make coverage`" if stale else "COVERAGE.md is true")
        return int(stale)
    PAGE.write_text(page, encoding="utf-8", newline="\n")
    sections = [section for document in docs for section in document["section"]]
    print(f"COVERAGE.md: {len(docs)} documents, {len(sections)} sections")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
