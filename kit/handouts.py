"""The handout of each lecture: a page of the site, and two pages on paper.

It has what is derived on the board, the formulas of the slides, two figures, both questions
without their answers, and the homework. `kit/pdf.py` prints it.
"""

import base64
from pathlib import Path

from kit import lectures
from kit.lectures import Lecture
from tools.lesson import Figure, find, read


def name(number: int) -> str:
    """The page of a handout, relative to the root of the site: next to the page of its lecture."""
    return f"kit/pages/lectures/handout_{number}"


def figures(talk: Lecture) -> list[Figure]:
    """The figures on a handout."""
    lessons = dict.fromkeys(number.split(".")[0] for number in talk.paper)
    drawn = [figure for lesson in lessons for figure in read(find(lesson)).figures]
    return [figure for figure in drawn if figure.number in talk.paper]


def page(talk: Lecture) -> str:
    """A handout in Markdown."""
    steps = (f"{at}. {step}" for at, step in enumerate(talk.steps, 1))
    formulas = [
        f"- **{row.subject}.** {row.written}"
        for row in talk.rows
        if "$" in row.written and (row.figures or row.show == "–")
    ]
    drawn = (f"![{f.alt}]({f.number}.png)\n\nFigure {f.number}. {f.caption}" for f in figures(talk))
    asks = (f"{at}. {ask.question}" for at, ask in enumerate(talk.asks.values(), 1))
    homework = (f"- {item}" for item in talk.homework)
    blocks = [f"# Handout {talk.number}: {talk.title}"]
    blocks += ["## On the board", talk.derives, "\n".join(steps)]
    blocks += ["## Formulas", "\n".join(formulas)] if formulas else []
    blocks += [*drawn, "## Questions", "\n".join(asks)]
    blocks += ["## Homework", "\n".join(homework), talk.reading]
    return lectures.unmarked("\n\n".join(blocks)) + "\n"


def write(folder: Path) -> None:
    """Put the handouts and their figures among the pages of a site."""
    for talk in lectures.every():
        path = folder / f"{name(talk.number)}.md"
        path.write_text(page(talk), encoding="utf-8")
        for figure in figures(talk):
            path.with_name(f"{figure.number}.png").write_bytes(base64.b64decode(figure.png))
