"""The quizzes: as pages to click on, and as files that systems for teaching read.

A quiz is Markdown in kit/pages/quizzes, first its questions and then their answers, and nothing of
it is written twice. On the site an answer lies folded below its question, and where scripts run a
choice is a button that tells its reason (`quiz.js`). GIFT is Moodle's own format of plain text. The
others read QTI 1.2: Canvas, Blackboard and Brightspace from a Common Cartridge, ILIAS as it is.
"""

import re
from dataclasses import dataclass
from html import escape
from pathlib import Path
from zipfile import ZipFile

from tools.setting import COURSE, ROOT

FOLDER = "kit/pages/quizzes"
SUMMARY = "<summary>The answer, with a reason for each choice</summary>"
SPECIAL = re.compile(r"[~=#{}:]")
FILES = {
    "gift": "Moodle (GIFT)",
    "imscc": "Canvas, Blackboard or Brightspace (Common Cartridge)",
    "xml": "ILIAS (QTI)",
}


@dataclass(frozen=True)
class Question:
    text: str
    choices: dict[str, str]  # by their letters
    right: str
    reasons: dict[str, str]
    shown_in: str  # the section that has it, as a link

    def why(self, letter: str) -> str:
        """What is said to one who has chosen."""
        return html(f"This {self.reasons[letter]} Shown in {self.shown_in}.")


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
    """What ends the page of the quiz `name`: links to its files, and the script."""
    links = ", ".join(
        f"<a href='{static}/quizzes/{name}.{kind}' download='{name}.{kind}'>{system}</a>"
        for kind, system in FILES.items()
    )
    return f"\nThis quiz as a file for {links}.\n\n<script defer src='{static}/quiz.js'></script>\n"


def title(text: str) -> str:
    return text.partition("\n")[0].removeprefix("# Quiz: ")


def html(text: str) -> str:
    """Markdown as the HTML of one line, formulas as MathJax finds them."""
    from markdown_it import MarkdownIt
    from mdit_py_plugins.dollarmath import dollarmath_plugin

    def formula(content, options):
        return rf"\({escape(content)}\)"

    made = MarkdownIt("commonmark").use(dollarmath_plugin, renderer=formula).renderInline(text)
    made = re.sub(r"</?(?:span|a)\b[^>]*>", "", made)  # a link leads nowhere from there
    return " ".join(made.split())


def escaped(text: str) -> str:
    """`text` without what GIFT would take for its own: and backslashes, or \\nu begins a line."""
    return SPECIAL.sub(r"\\\g<0>", text.replace("\\", "\\\\"))


def gift(text: str) -> str:
    """A quiz in GIFT: a category, and each question with a reason for each choice."""
    parts = [f"$CATEGORY: $course$/{COURSE}/{title(text)}"]
    for number, one in enumerate(read(text)[1], start=1):
        lines = [f"::{escaped(title(text))} {number}::[html]{escaped(html(one.text))} {{"]
        for letter, said in one.choices.items():
            mark = "=" if letter == one.right else "~"
            lines.append(f"{mark}{escaped(html(said))}#{escaped(one.why(letter))}")
        parts.append("\n".join([*lines, "}"]))
    return "\n\n".join(parts) + "\n"


def filled(template: str, name: str, text: str) -> str:
    """A template of kit/look/quizzes, filled with the quiz `name`."""
    from jinja2 import Template

    source = (ROOT / "kit/look/quizzes" / template).read_text(encoding="utf-8")
    told = {"name": name, "title": title(text), "questions": read(text)[1], "html": html}
    return Template(source, autoescape=True, trim_blocks=True, lstrip_blocks=True).render(told)


def write(folder: Path) -> None:
    """Each quiz in GIFT, in QTI and as a cartridge, into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for path in sorted((ROOT / FOLDER).glob("*.md")):
        text, name = path.read_text(encoding="utf-8"), path.stem
        qti = filled("qti.xml", name, text)
        (folder / f"{name}.gift").write_text(gift(text), encoding="utf-8", newline="\n")
        (folder / f"{name}.xml").write_text(qti, encoding="utf-8", newline="\n")
        with ZipFile(folder / f"{name}.imscc", "w") as cartridge:
            cartridge.writestr("imsmanifest.xml", filled("imsmanifest.xml", name, text))
            cartridge.writestr(f"{name}/{name}.xml", qti)
