"""The quizzes: as pages to click on, and as files that Moodle reads.

A quiz is Markdown in kit/pages/quizzes, first its questions and then their answers, and nothing of
it is written twice. On the site an answer lies folded below its question, and where scripts run a
choice is a button that tells its reason (`quiz.js`). GIFT is Moodle's own format of plain text.
"""

import re
from dataclasses import dataclass
from html import escape
from pathlib import Path

from tools.setting import COURSE, ROOT

FOLDER = "kit/pages/quizzes"
SUMMARY = "<summary>The answer, with a reason for each choice</summary>"
SPECIAL = re.compile(r"[~=#{}:]")


@dataclass(frozen=True)
class Question:
    text: str
    choices: dict[str, str]  # by their letters
    right: str
    reasons: dict[str, str]
    shown_in: str  # the section that has it, as a link


def read(text: str) -> tuple[str, list[Question]]:
    """The text above the questions of a quiz, and the questions."""
    head, asked, answered = re.split(r"\n## (?:Questions|Answers)\n", text)
    asked, answered = (re.split(r"\n### \w+ \d", part)[1:] for part in (asked, answered))
    found = []
    for question, answer in zip(asked, answered, strict=True):
        choices = dict(re.findall(r"(?m)^- \*\*([A-Z])\.\*\* (.+)$", question))
        reasons = dict(re.findall(r"(?m)^- \*\*([A-Z])\*\* (.+)$", answer))
        right = re.match(r": ([A-Z])\n", answer)[1]
        (shown_in,) = re.findall(r"(?m)^Shown in (.+)\.$", answer)
        said = re.split(r"(?m)^- \*\*A\.\*\* ", question)[0].strip()
        found.append(Question(said, choices, right, reasons, shown_in))
    return head.strip(), found


def page(text: str) -> str:
    """A quiz as a page of the site: each answer folded below its question."""
    head, questions = read(text)
    parts = [head]
    for number, one in enumerate(questions, start=1):
        choices = "\n".join(f"- **{letter}.** {said}" for letter, said in one.choices.items())
        reasons = "\n".join(f"- **{letter}** {said}" for letter, said in one.reasons.items())
        parts += [f"## Question {number}", one.text, choices]
        parts += [f"<details class='answer quiz'>{SUMMARY}", reasons]
        parts += [f"Shown in {one.shown_in}.", "</details>"]
    return "\n\n".join(parts) + "\n"


def below(name: str, static: str = "../../../_static") -> str:
    """What ends the page of the quiz `name`: a link to its file, and the script."""
    link = f"<a href='{static}/quizzes/{name}.gift' download='{name}.gift'>this quiz as GIFT</a>"
    return f"\nFor Moodle: {link}.\n\n<script defer src='{static}/quiz.js'></script>\n"


def escaped(text: str) -> str:
    """`text` without what GIFT or HTML in it would be: and backslashes, or \\nu begins a line."""
    return SPECIAL.sub(r"\\\g<0>", text.replace("\\", "\\\\"))


def moodle(text: str) -> str:
    """Markdown as the HTML of one line, formulas as Moodle's filter finds them, for GIFT."""
    from markdown_it import MarkdownIt
    from mdit_py_plugins.dollarmath import dollarmath_plugin

    def formula(content, options):
        return rf"\({escape(content)}\)"

    html = MarkdownIt("commonmark").use(dollarmath_plugin, renderer=formula).renderInline(text)
    html = re.sub(r"</?(?:span|a)\b[^>]*>", "", html)  # a link leads nowhere from there
    return escaped(" ".join(html.split()))


def gift(text: str) -> str:
    """A quiz in GIFT: a category, and each question with a reason for each choice."""
    head, questions = read(text)
    title = head.split("\n")[0].removeprefix("# Quiz: ")
    parts = [f"$CATEGORY: $course$/{COURSE}/{title}"]
    for number, one in enumerate(questions, start=1):
        lines = [f"::{escaped(title)} {number}::[html]{moodle(one.text)} {{"]
        for letter, said in one.choices.items():
            mark, reason = "=" if letter == one.right else "~", f"This {one.reasons[letter]}"
            lines.append(f"{mark}{moodle(said)}#{moodle(reason)}")
        lines.append(f"####{moodle(f'Shown in {one.shown_in}.')}")
        parts.append("\n".join([*lines, "}"]))
    return "\n\n".join(parts) + "\n"


def write(folder: Path) -> list[Path]:
    """Each quiz in GIFT, into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    made = []
    for path in sorted((ROOT / FOLDER).glob("*.md")):
        made.append(folder / f"{path.stem}.gift")
        made[-1].write_text(gift(path.read_text(encoding="utf-8")), encoding="utf-8", newline="\n")
    return made
