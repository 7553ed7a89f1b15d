"""A deck of slides for each lecture, made from the plan on its page and from the lessons it shows.

    python -m kit.slides

writes build/slides: pages, and PDFs where a browser is there.

Nothing is executed, and nothing is written for the slides alone. A deck goes along the plan
(kit/lectures.py): each row becomes a slide, followed by the row's figures, each under its
title in the plan, or its table. Questions, the board, the live cell and the homework have slides
of their own. What there is to say goes into the speaker's notes.

The page they go into lies in kit/look/slides. reveal.js shows it, MathJax sets the formulas, the
letters are Source Sans 3; npm brings all three, and no deck asks an address outside.
"""

import re
import shutil
from dataclasses import dataclass, field
from functools import cache
from html import escape
from pathlib import Path

from kit import chromium, lectures, need, npm, pdf
from kit.lectures import Ask, Lecture, Row
from kit.site import alt
from tools.lesson import Figure, find, read
from tools.setting import COURSE, ROOT, edition

BUILD, SOURCES = ROOT / "build" / "slides", ROOT / "kit/look/slides"
LINES, BROAD = (3, 11), 80  # of a print that is a table and can be read from the last row
READY = "() => document.querySelector('html[data-ready] .pdf-page')"  # to be printed
STEPS = 4  # of a board on a slide
SENTENCE = re.compile(r"(?<=[.?!])\*{0,2}\s+(?=[A-Z*$\\])")


@dataclass
class Slide:
    kind: str  # title, text, claim, question, table, figure, list, board, code
    title: str
    section: str = ""  # above the title
    body: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


# Text


@cache
def markdown():
    """CommonMark with tables and formulas. A link is its words: a deck lies alone."""
    from markdown_it import MarkdownIt
    from mdit_py_plugins.dollarmath import dollarmath_plugin

    md = MarkdownIt("commonmark").enable("table").use(dollarmath_plugin)
    md.add_render_rule("math_inline", lambda _, tokens, i, *__: inline(tokens[i].content))
    for name in ("link_open", "link_close", "image", "html_block", "html_inline"):
        md.add_render_rule(name, lambda *_: "")
    return md


def inline(tex: str) -> str:
    return rf'<span class="math">\({escape(tex, quote=False)}\)</span>'


def html(text: str) -> str:
    return markdown().renderInline(text)


def plain(text: str) -> str:
    """`text` without what is set in bold."""
    return re.sub(r"(?s)\*\*(.+?)\*\*", r"\1", text)


def length(text: str) -> int:
    """The letters of a text as a reader sees it, roughly: a command of TeX is one."""
    return len(re.sub(r"\\[a-zA-Z]+|[{}$^_\\]", "", text))


def said(text: str, *kind: str) -> str:
    """A paragraph of a lecturer's page, whose numbers need no mark here; no comma begins a line."""
    text = lectures.unmarked(text)
    whole = re.sub(
        r'(<span class="math">[^<]*</span>[.,;:?!)]+)', r'<span class="whole">\1</span>', html(text)
    )
    return f"<p{''.join(f' class={name}' for name in kind)}>{whole}</p>"


# What a lesson shows


def picture(figure: Figure) -> str:
    return f'<img alt="{escape(alt(figure.alt))}" src="data:image/png;base64,{figure.png}">'


def figure(number: str, talk: Lecture, row: Row) -> Slide:
    """A figure of a lesson under its title in the plan, with its words in the notes."""
    drawn = next((one for one in read(find(number[:2])).figures if one.number == number), None)
    if drawn is None:
        raise ValueError(f"there is no figure {number}")
    notes = [said(f"Figure {number}. {talk.figures[number]}")]
    notes += [f"<p>{escape(text)}</p>" for text in (drawn.caption, drawn.alt) if text]
    title = html(lectures.unmarked(talk.titles[number]))
    return Slide("figure", title, html(row.subject), [picture(drawn)], notes)


def print_of(text: str) -> str:
    """What a cell printed, in letters as large as it leaves room for; empty where it is no table
    or too much."""
    lines = text.strip("\n").splitlines()
    broad = max(map(len, lines), default=0)
    if not LINES[0] <= len(lines) <= LINES[1] or broad > BROAD:
        return ""
    size = max(24, min(34, 1900 // broad, 340 // len(lines)))
    printed = "\n".join(lines)
    return f'<pre style="font-size: {size}px">{escape(printed)}</pre>'


# What a lecture shows


def board(talk: Lecture) -> list[Slide]:
    """What is derived, and its steps one by one, as many on a slide as can be read."""
    claim, where = re.match(r"\*\*(.+?)\*\*\s*(.*)", talk.derives).groups()
    count = -(-len(talk.steps) // STEPS)
    out = [Slide("board", html(claim), "On the board") for _ in range(count)]
    whole, before = sum(map(length, talk.steps)), 0
    for at, step in enumerate(talk.steps, 1):  # as much on one slide as on the other
        middle = before + length(step) / 2
        out[int(count * middle / whole)].body.append(said(f"**{at}** {step}", "fragment"))
        before += length(step)
    out[0].body.insert(0, said(where, "said"))
    return out


def asked(name: str, ask: Ask) -> Slide:
    """A question by itself; the speaker reads what students tend to say."""
    tend = said(f"They tend to say: {ask.tend}")
    return Slide("question", "Before you look", name, [said(ask.question)], [tend])


def replied(name: str, ask: Ask) -> Slide:
    so = ask.say[0].upper() + ask.say[1:]
    return Slide("text", "The answer", name, [said(ask.question, "said"), said(so)])


def ran(row: Row, ask: Ask) -> Slide:
    """The live cell, and then what it prints."""
    body = [f"<pre>{escape(ask.code)}</pre>", f'<pre class="fragment">{escape(ask.prints)}</pre>']
    return Slide("code", html(row.subject), "Live", body, [said(ask.say)])


def table(row: Row, talk: Lecture) -> Slide:
    """The first table that a section prints (and has the words given), or one of the page."""
    if named := re.fullmatch(r"table (\w\d) §(\d+)(?: with (.+))?", row.show):
        cells = read(find(named[1])).section(named[2]).cells
        texts = [output.text for cell in cells for output in cell.outputs]
        body = [print_of(text) for text in texts if (named[3] or "") in text]
    else:
        text = lectures.unmarked(talk.chapters.get(row.show[0].upper() + row.show[1:], ""))
        body = re.findall(r"(?s)<table>.*?</table>\n", markdown().render(text))
    if not any(body):
        raise ValueError(f"{talk.path.name}: minute {row.start} has no table to show: {row.show}")
    return Slide("table", html(row.subject), body=[next(filter(None, body))])


def homework(row: Row, talk: Lecture) -> Slide:
    given = "".join(f"<li>{html(item)}</li>" for item in talk.homework)
    body = [f"<ul>{given}</ul>", said(talk.reading)]
    body += [said(f"{row.subject}.")] * row.subject.startswith("Next time:")
    return Slide("list", "Homework", body=body)


def sources(talk: Lecture) -> Slide:
    """Author and year of what the lessons of the figures name under *Further reading*."""
    body = []
    for name in sorted({number[:2] for row in talk.rows for number in row.figures}):
        text = " ".join(read(find(name)).section("Further reading").texts)
        works = re.findall(r"\[([^]]+)\]\(references\.md#", lectures.flat(text))
        body.append(said(f"Lesson {name}: {'; '.join(works)}."))
    return Slide("list", "Sources", body=body)


def shown(row: Row, talk: Lecture) -> list[Slide]:
    """The slides of a row of the plan."""
    kind, out = row.kind, []
    if kind in talk.asks:
        out += [asked(kind, talk.asks[kind]), replied(kind, talk.asks[kind])]
    elif kind == "Live":
        out += [asked(kind, talk.live), ran(row, talk.live)]
    elif kind == "Board":
        out += board(talk)
    elif kind == "Their questions":
        out.append(Slide("claim", "Your questions"))
    aloud = [said(row.said)] * bool(row.said)
    if row.written and (row.figures or row.show == "–"):
        sentences = [said(one) for one in SENTENCE.split(row.written)]
        out.append(Slide("text", html(row.subject), body=sentences, notes=aloud))
    out += [figure(number, talk, row) for number in row.figures]
    if row.show != "–" and not row.figures:
        out.append(table(row, talk))
        out[-1].notes += [said(row.written), *aloud]
    if kind == "Homework":
        out.append(homework(row, talk))
    if not out:
        raise ValueError(f"{talk.path.name}: minute {row.start} has nothing to show")
    clock = f"From minute {row.start}, {row.minutes} minutes: {plain(row.what)}."
    clock += " Skip it when late." * (row.start in talk.late)
    for slide in out:
        slide.notes.insert(0, said(clock))
    return out


def talked(talk: Lecture) -> list[Slide]:
    """The deck of a lecture."""
    title = Slide("title", html(talk.title), f"Lecture {talk.number}")
    title.body = [said(talk.afterwards)]
    title.notes = [said(talk.opening), said(f"Left out: {talk.left}")]
    return [title, *(slide for row in talk.rows for slide in shown(row, talk)), sources(talk)]


# Writing


def page(title: str, made: list[Slide]) -> str:
    from jinja2 import Template

    source = (SOURCES / "deck.html").read_text(encoding="utf-8")
    title = re.sub(r"<[^>]*>|\\[()]", "", html(title))
    told = {"slides": made, "title": title, "course": COURSE, "edition": edition()}
    return Template(source, trim_blocks=True, lstrip_blocks=True).render(told)


def assets(folder: Path) -> None:
    """What all decks share: reveal.js, MathJax, letters, style."""
    folder.mkdir(parents=True)
    npm.copy("reveal.js", "dist/reveal.js", "dist/reveal.css", "dist/plugin/notes.js", to=folder)
    npm.formulas(to=folder)
    npm.letters(npm.SANS, to=folder)
    for name in ("deck.css", "deck.js"):
        shutil.copy(SOURCES / name, folder)


def main() -> int:
    need("slides")
    shutil.rmtree(BUILD, ignore_errors=True)
    assets(BUILD / "shared")
    names = []
    for talk in lectures.every():
        text = page(f"Lecture {talk.number}: {talk.title}", talked(talk))
        (BUILD / f"{talk.name}.html").write_text(text, encoding="utf-8")
        names.append(talk.name)
    print(f"{len(names)} decks: {BUILD.relative_to(ROOT)}")
    if chromium.PATH is None:
        print(f"no PDFs: {chromium.NONE}")
        return 0
    with chromium.served(BUILD) as address, chromium.started() as browser:
        for name in names:
            pdf.written(browser, address, name, BUILD, READY)
    print(f"{len(names)} PDFs beside them")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
