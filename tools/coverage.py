"""Where each section of the five documents is taught: tools/sources.toml → COVERAGE.md."""

import re
import sys
import tomllib

from tools.lesson import paths, read
from tools.setting import ROOT

PAGE = ROOT / "COVERAGE.md"
INTRODUCTION = """# Where the five documents are taught

The course grew from five documents: two blog articles, the notes and the slides of two lectures,
and a note on a method. Each of their sections is listed below, with the sections that teach it.
Where a document is wrong, the lesson teaches what is right and says so. Acknowledgements and lists
of references are not counted.

Written by `make coverage` from `tools/sources.toml`; a test holds it to the lessons.
"""


def below(heading: str, text: str) -> str:
    """What stands below a heading, up to the next of its level or above; "" where there is none."""
    found = re.search(rf"(?m)^(##+) {re.escape(heading)}$", text)
    if not found:
        return ""
    end = re.search(rf"(?m)^#{{1,{len(found[1])}}} ", text[found.end() :])
    return text[found.start() :][: len(found[0]) + end.start() if end else None]


def page(sources: dict, texts: dict) -> tuple[str, list[str]]:
    """COVERAGE.md, and what is wrong: words that do not stand below the heading that is named.

    sources: document → section → {"lesson: heading": words there}, or why it is left out.
    texts: lesson → its path, and its text.
    """
    lines, wrong = [INTRODUCTION], []
    for document, sections in sources.items():
        lines += [f"## {document}", "", "| section | taught in |", "|---|---|"]
        for section, taught in sections.items():
            where = f"left out: {taught}" if isinstance(taught, str) else []
            for place, words in {} if isinstance(taught, str) else taught.items():
                lesson, _, heading = place.partition(": ")
                path, text = texts.get(lesson, ("", ""))
                if not re.search(words, " ".join(below(heading, text).split()), re.IGNORECASE):
                    wrong.append(f"{section}: {words!r} does not stand below {place!r}")
                where.append(f"[{place}]({path})")
            lines.append(f"| {section} | {where if isinstance(where, str) else '; '.join(where)} |")
        lines.append("")
    return "\n".join(lines), wrong


def lessons() -> dict:
    """lesson → its path from the root, and its text."""
    found = {path: read(path) for path in paths()}
    return {
        x.number: (p.relative_to(ROOT).as_posix(), "\n".join(x.texts)) for p, x in found.items()
    }


def sources() -> dict:
    return tomllib.loads((ROOT / "tools/sources.toml").read_text(encoding="utf-8"))


if __name__ == "__main__":
    text, wrong = page(sources(), lessons())
    if wrong:
        sys.exit("\n".join(wrong))
    PAGE.write_text(text, encoding="utf-8", newline="\n")
