"""A formula in several lines, so that it fits a slide and can appear step by step.

A formula of WIDE characters or more is cut where its author has put a wide gap (\\qquad, or \\quad
before a word) between two formulas, and a line of LONG characters or more where a chain of
relations goes on: a = b = c.
"""

import re

WIDE, LONG = 34, 46
TOKEN = re.compile(r"\\[a-zA-Z]+|\\.|.", re.DOTALL)
OPENING = {"{", "(", "[", r"\left", r"\begin", r"\lceil", r"\langle"}
CLOSING = {"}", ")", "]", r"\right", r"\end", r"\rceil", r"\rangle"}
RELATIONS = {"=", r"\le", r"\ge", r"\approx"}
SILENT = re.compile(
    r"\\(?:math[a-z]*|operatorname|text|[Bb]igg?[lr]?|left|right|q?quad|[a-z]?frac)\b"
)


def lines(tex: str) -> list[str]:
    """`tex` as one formula or several, in order: all of it but the gaps between them."""
    tex = tex.strip()
    if r"\begin{aligned}" in tex:
        return [tex]
    parts = [tex]
    if width(tex) >= WIDE:
        spaced = re.sub(r"\\quad *(?=\\text\b)", r"\\qquad ", tex)
        parts = [part.strip() for part in _split(spaced, {r"\qquad"}, keep=False)]
    for at in reversed(range(len(parts) - 1)):  # a word between two formulas goes to the second
        if re.fullmatch(r"\\text *\{[^{}]*\}", parts[at]):
            parts[at : at + 2] = [rf"{parts[at]}\quad {parts[at + 1]}"]
    return [_chain(part) for part in parts if part]


def width(tex: str) -> int:
    """About how many characters wide `tex` is set: a fraction counts its longer side."""
    while found := re.search(r"\\[dt]?frac *\{([^{}]*)\} *\{([^{}]*)\}", tex):
        tex = tex[: found.start()] + max(found.groups(), key=len) + tex[found.end() :]
    tex = re.sub(r"\\[,;:! ]", "", SILENT.sub("", tex))
    return len(re.sub(r"\\[a-zA-Z]+|\\.", "x", tex).translate(dict.fromkeys(map(ord, "{}^_& \n"))))


def tall(tex: str) -> bool:
    """Whether a line of `tex` is higher than one of text."""
    return bool(re.search(r"\\(?:[dt]?frac|sum|prod|int|binom|under|begin|big|Big)", tex))


def _chain(tex: str) -> str:
    """A long chain of relations, each in a line of its own."""
    several = len(_split(tex.rstrip(" ,."), {","}, keep=False)) > 1
    first, *rest = _split(tex, RELATIONS, keep=True)
    if width(tex) < LONG or several or len(rest) < 2:
        return tex
    steps = [f"{first.rstrip()} &{rest[0]}", *(f"&{part}" for part in rest[1:])]
    return r"\begin{aligned}" + r" \\ ".join(map(str.strip, steps)) + r"\end{aligned}"


def _split(tex: str, marks: set[str], *, keep: bool) -> list[str]:
    """`tex` cut at each of `marks` that stands in no bracket; the whole where one is left open."""
    parts, depth = [""], 0
    for token in TOKEN.findall(tex):
        depth += (token in OPENING) - (token in CLOSING)
        if token in marks and depth == 0:
            parts.append(token if keep else "")
        else:
            parts[-1] += token
    return [tex] if depth else parts
