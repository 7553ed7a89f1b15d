"""The bibliography, notebooks/references.md, and how a text cites it: Rahimi & Recht (2007)."""

import re
import unicodedata

from tools.setting import NOTEBOOKS

GAP = r"[ \n]"
NAME = r"[A-ZÅŁ][^\W\d_]+(?:-[A-Z][^\W\d_]+)?"
NAMES = rf"{NAME}(?:{GAP}et al\.|(?:,{GAP}{NAME})*(?:,?{GAP}(?:&|and){GAP}{NAME})?)"
YEAR = r"(?:1[89]\d\d|20[0-3]\d)"
# Yu et al. (2016) · (Yu et al., 2016) · Rahimi & Recht (2007) · (Mezzadri 2007, §4)
CITED = rf"{NAMES}(?:{GAP}\({YEAR}\)|,{GAP}{YEAR}(?=[),.;:])|,?{GAP}{YEAR}(?=,{GAP}§))"
ENTRY = re.compile(r"(?m)^### (\S+)\n\n(.+(?:\n.+)*)")


def key(citation: str) -> str:
    """The key of a work that is cited: Björck et al. (1967) → bjorck-1967."""
    plain = unicodedata.normalize("NFKD", re.match(NAME, citation)[0])
    name = "".join(letter for letter in plain if not unicodedata.combining(letter)).lower()
    return f"{name}-{re.search(YEAR, citation)[0]}"


def authors(entry: str) -> list[str]:
    """The surnames, or the firm, that an entry begins with."""
    names = re.split(r"(?<=[^\W\d_]{2})\.\s", entry, maxsplit=1)[0].split(",")
    return [" ".join(re.sub(r"^\s*(?:\w\.\S*\s+)*", "", name).split()) for name in names]


def works(text: str = "") -> dict[str, list[str]]:
    """The authors of each work of the bibliography, by its key, in the order of the file."""
    text = text or (NOTEBOOKS / "references.md").read_text(encoding="utf-8")
    return {key: authors(entry) for key, entry in ENTRY.findall(text)}
