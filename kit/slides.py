"""A deck of slides for each lecture and each lesson, made by a rule from what these say and show.

    python -m kit.slides [lecture_3 09 …]


writes build/slides: pages, and PDFs where a browser is there.

Nothing is executed, and nothing is written for the slides alone. The deck of a lecture goes along
the plan on its page (kit/lectures.py). In the deck of a lesson a section is a slide with its
first claim (a sentence in bold) and its formulas; a claim that answers a question comes after it.
A figure is a slide under its claim: the first claim after it and before the next figure, print or
question, else the first sentence of what answers a question, else the last claim before it. A later
claim may answer a question. What a cell prints is a slide where it answers a question, and the
question then has the slide before.
Where a question is answered, the first sentences of the answer stand below; the first is the title
of a print whose answer has no claim. If nothing shows the answer, its claim follows the question.
The lists of a text are slides, step by step, and its tables, the long ones on two or three. All
else that the lesson says goes into the speaker's notes.

The page they go into lies in kit/look/slides. reveal.js shows it, MathJax sets the formulas, the
letters are Source Sans 3; npm brings all three, and no deck asks an address outside.
"""

import re
import shutil
import sys
from dataclasses import dataclass, field
from functools import cache
from html import escape
from itertools import takewhile
from pathlib import Path

from kit import chromium, lectures, need, npm
from kit.lectures import Ask, Lecture, Row
from kit.site import MATHJAX, alt, parts
from tools.lesson import (
    ANSWER,
    ASK,
    Cell,
    Figure,
    Lesson,
    Section,
    claims,
    find,
    paths,
    questions,
    read,
    words,
)
from tools.setting import COURSE, NOTEBOOKS, ROOT, edition

BUILD, SOURCES = ROOT / "build" / "slides", ROOT / "kit/look/slides"
SAID, SETTING = 40, 50  # words beside a formula, and before a question, that are shown with it
ANSWERED = 55  # words of an answer that stand below what shows it
PART = re.compile(r"\?|\band (?:(?:by|for|from|near) )?(?:how|is|what|where|which)\b")
LINES, BROAD = (3, 11), 80  # of a print that is a table and can be read from the last row
ROWS, TABLE, LISTED = 9, 750, 700  # rows of a table; characters of a table and of a list on a slide
TABLES = 3  # slides of one table
FORMULAS, WIDE = 3, 90  # on a slide; letters of TeX that fit a line
STEPS = 4  # of a board on a slide
CLOSING, UNSHOWN = ("Take away", "Where it breaks"), ("Exercises", "Further reading")
NUMBER = r"(?:two|three|four|five|six|seven|eight|nine|ten|twelve|sixteen|\d+)"
OFF = re.compile(  # words that point to what is not on a slide, wherever they stand there
    r"\bhere\b|\bthe (?:cell|text|table|figure|picture|plot|panel|code)s?\b(?! of)"
    r"|\bon the (?:left|right)\b|\b(?:above|below)(?!,? (?:about )?(?:a |[\d\\−$]))",
    re.IGNORECASE,
)
BACK = re.compile(  # and those that point back, in its first sentence
    r"\b(?:this|these|such|again)\b|\bthose\b(?! (?:from|of|on|that|tried|trained|with)\b)"
    rf"|\b(?:the|our) {NUMBER}\b|\b(?:take|with|on) the same\b|\bwhich kind\b"
    r"|\b(?:of|on|in|at|with|from|by|than|to|beat|and) that (?!of\b)\w+"
    r"|^(?:so|now|but|and|then|not so)\b",
    re.IGNORECASE,
)
SENTENCE = re.compile(r"(?<=[.?!])\*{0,2}\s+(?=[A-Z*$\\])")


@dataclass
class Slide:
    kind: str  # title, text, claim, question, table, figure, steps, list, board, code
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
    md.add_render_rule("math_block", lambda _, tokens, i, *__: display(tokens[i].content))
    for name in ("link_open", "link_close", "image", "html_block", "html_inline"):
        md.add_render_rule(name, lambda *_: "")
    return md


def inline(tex: str) -> str:
    return rf'<span class="math">\({escape(tex, quote=False)}\)</span>'


def display(tex: str) -> str:
    """A formula; what is long is cut where its author put a wide gap between two."""
    tex = re.sub(r"(?<!\\)[,;]\s*$", "", tex)
    parts = [part.strip() for part in tex.split(r"\qquad") if part.strip()]
    whole = all(part.count("{") == part.count("}") and "&" not in part for part in parts)
    if len(parts) > 1 and len(tex) > WIDE and whole:
        tex = r"\begin{aligned}&" + r" \\[0.4em] &".join(parts) + r"\end{aligned}"
    return rf'<div class="math block">\[{escape(tex.strip(), quote=False)}\]</div>'


def html(text: str) -> str:
    return markdown().renderInline(text)


def plain(text: str) -> str:
    """`text` without what is set in bold."""
    return re.sub(r"(?s)\*\*(.+?)\*\*", r"\1", text)


def blocks(text: str):
    """(kind, source, HTML) of each block of a text: paragraph, heading, math, table, …"""
    md = markdown()
    tokens, start = md.parse(text), 0
    for end, token in enumerate(tokens, 1):
        if token.level == 0 and token.nesting <= 0:
            block, start = tokens[start:end], end
            source = " ".join(inner.content for inner in block if inner.content)
            kind = block[0].type.removesuffix("_open").removesuffix("_block")
            yield kind, source, md.renderer.render(block, md.options, {})


def pointed(said: str) -> list[str]:
    """The words by which a text points beyond itself: to be understood alone, it has none."""
    first = SENTENCE.split(said)[0]
    back = []
    for found in BACK.finditer(first):
        number = found[0].split()[-1]
        named = re.search(rf"\b{number}\b", said[: found.start()])
        listed = re.match(
            r"(?: [^ ,.?]+){0,4}, (?!and|or)[^.?]*?\b(?:and|or)\b", first[found.end() :]
        )
        back += [] if re.fullmatch(NUMBER, number) and (named or listed) else [found[0]]
    return [found[0] for found in OFF.finditer(said)] + back


def set_by(text: str) -> str:
    """The last sentences before a question, as many as one reads at a glance; none about code, and
    none that points to what came before."""
    kept = []
    for sentence in reversed(SENTENCE.split(plain(text).strip())):
        if words(" ".join([sentence, *kept])) > SETTING or not sentence[:1].isupper():
            break
        kept[:0] = [] if "`" in sentence else [sentence]
    while kept and pointed(" ".join(kept)):
        kept.pop(0)
    return " ".join(kept)


def led_in(paragraph: str) -> str:
    """The sentence before a formula or a list, where it is short."""
    last = SENTENCE.split(paragraph)[-1]
    unsaid = ASK.search(paragraph) or claims(last) or words(last) > SAID
    return "" if unsaid else html(plain(last))


def led_out(paragraph: str) -> str:
    """The end of the sentence that a formula has begun, where it is short."""
    first = SENTENCE.split(paragraph)[0]
    return html(plain(first)) if first[:1].islower() and words(first) <= SAID else ""


def shared_out(points: list[str]) -> list[list[str]]:
    """The points of a list, slide by slide, as much on one as on the other."""
    lengths = [len(re.sub(r"<[^>]*>|\\[a-z]+", "", point)) for point in points]
    most = sum(lengths) / -(-sum(lengths) // LISTED)
    out: list[list[str]] = []
    size = most
    for point, length in zip(points, lengths, strict=True):
        if size >= most or size + length > LISTED:
            out.append([])
            size = 0
        size += length
        out[-1].append(point)
    return out


def cut_up(table: str, source: str) -> list[str]:
    """A table of a text, slide by slide, each with its head; none of one too long for a deck."""
    head, rows = table.partition("<tbody>")[0], re.findall(r"(?s)<tr>.*?</tr>", table)[1:]
    count = max(-(-len(rows) // ROWS), -(-len(source) // TABLE))
    size = -(-len(rows) // count)
    parts = [rows[at : at + size] for at in range(0, len(rows), size)]
    whole = [f"{head}<tbody>{''.join(part)}</tbody></table>" for part in parts]
    return whole if count <= TABLES else []


# Slides


def claims_of(section: Section, cell: Cell) -> tuple[list[str], list[str]]:
    """The claims over what a cell shows: those after it and before the next cell that asks or
    shows something, and the last of its section before it. Later ones would answer a question."""
    at = section.cells.index(cell)
    after = section.cells[at + 1 :]
    while after and after[0].outputs:  # no word between: one exhibit
        after.pop(0)
    end = next((i for i, other in enumerate(after) if other.outputs), len(after))
    told = claims(ASK.split("\n\n".join(Section("", "", after[:end]).texts))[0])
    return told, Section("", "", section.cells[:at]).claims[-1:]


def answer(section: Section, cell: Cell) -> tuple[list[str], list[str]]:
    """The claims of the text that answers the question before a cell, and its first sentences, one
    for each part of the question; none of a claim, which is the title."""
    at = section.cells.index(cell)
    asks = next((c for c in section.cells[at::-1] if c.kind != "code"), None)
    text = next((c for c in section.cells[at + 1 :] if c.kind != "code" or c.figures), None)
    if not asks or not questions(asks) or not text or text.kind == "code":
        return [], []
    if text.source.startswith("1. "):  # a list is no sentence
        return [], []
    before = re.split(r"\*\*[A-Z]|\n\n", text.source)[0].strip()
    first, *rest = SENTENCE.split(before)
    kept = [first] * bool(first)
    for sentence in rest[: len(PART.findall(questions(asks)[-1])) - 1]:
        if words(" ".join([*kept, sentence])) <= ANSWERED:
            kept.append(sentence)
    return claims(text.source), kept


def picture(figure: Figure) -> str:
    return f'<img alt="{escape(alt(figure.alt))}" src="data:image/png;base64,{figure.png}">'


def print_of(text: str) -> str:
    """What a cell printed, in letters as large as it leaves room for; empty where it is no table
    or too much."""
    lines = text.strip("\n").splitlines()
    broad = max(map(len, lines), default=0)
    if not LINES[0] <= len(lines) <= LINES[1] or broad > BROAD:
        return ""
    size = max(24, min(34, 1900 // broad, 340 // len(lines)))
    said = "\n".join(lines)
    return f'<pre style="font-size: {size}px">{escape(said)}</pre>'


def shown_by(section: Section, cell: Cell, asked: bool) -> list[Slide]:
    """The slides of a code cell: its figures, and what it prints where that is asked for."""
    (told, before), (claimed, said) = claims_of(section, cell), answer(section, cell)
    if said and not claimed and not (told and cell.figures):
        told = [said.pop(0)]
    head = [html(one) for one in (*(told or before)[:1], section.title)]
    found: list[Slide] = []
    for output in cell.outputs:
        if figure := output.figure:
            notes = [f"<p>{escape(words)}</p>" for words in (figure.caption, figure.alt) if words]
            found.append(Slide("figure", *head, body=[picture(figure)], notes=notes))
        elif asked and (table := print_of(output.text)):
            found.append(Slide("table", *head, body=[table]))
    if found and said:
        found[-1].body.append(f'<p class="answer">{html(" ".join(said))}</p>')
    return found


def steps(rendered: str, words: str, *head: str) -> list[Slide]:
    """The slides of a list, a point at a time, below the sentence that leads to it."""
    kind, count, out = rendered[1:3], 1, []
    for part in shared_out(re.findall(r"(?s)<li>(.*?)</li>", rendered)):
        points = "".join(f'<li class="fragment">{point}</li>' for point in part)
        start = f' start="{count}"' if kind == "ol" else ""
        led = [f'<p class="said">{words}</p>'] * bool(words)
        out.append(Slide("steps", *head, body=[*led, f"<{kind}{start}>{points}</{kind}>"]))
        count += len(part)
    return out


def walked(section: Section, *begun: Slide) -> list[Slide]:
    """The slides of a section in the order of the lesson, after those that have begun it."""
    lead, title, out = html((section.claims or [""])[0]), html(section.title), [*begun]
    if not out:
        out.append(Slide("text", title))
    told = late = False  # the claim has come, and has come after a question that is shown
    asked: list[Slide] = []  # questions, until it is known that something is shown
    for at, cell in enumerate(section.cells):
        if cell.kind == "code":
            nearby = takewhile(lambda other: other.kind == "code", section.cells[at:])
            drawn = any(other.figures for other in nearby)
            made = shown_by(section, cell, bool(asked) and not drawn)
            out += [*asked, *made] if made else []
            asked = [] if made else asked
            continue
        claimed, said = answer(section, section.cells[at - 1]) if asked else ([], [])
        if claimed:  # and nothing shows the answer
            below = [f'<p class="answer">{html(" ".join(said))}</p>'] * bool(said)
            out += [*asked, Slide("claim", title, body=[html(claimed[0]), *below])]
        asked, before, last, own = [], "", "", False  # own: the claim stands in this text
        for kind, source, rendered in blocks(cell.source):
            if kind == "heading" and source.endswith(section.title):
                continue
            if not told and claims(source):
                told = own = True
                late = any(slide.kind == "question" for slide in [*out, *asked])
            head = [lead, title] if own else [title]
            if kind == "math":
                full = str(out[-1].body).count("math block") == FORMULAS
                if full or out[-1].kind != ("steps" if last.endswith("list") else "text"):
                    out.append(Slide("text", *head))
                words = led_in(before)
                out[-1].body += [f'<p class="said">{words}</p>'] * bool(words) + [rendered]
            elif kind == "table":
                again = lead in [slide.title for slide in out]
                named = head[-1:] if again else head
                out += [Slide("table", *named, body=[part]) for part in cut_up(rendered, source)]
            elif kind.endswith("list") and ANSWER not in cell.tags:
                out += steps(rendered, led_in(before), *head)
            elif kind == "paragraph" and ASK.search(source):
                asked.append(question(source, title))
            elif last == "math" and (words := led_out(source)):
                out[-1].body.append(f'<p class="said">{words}</p>')
            if not (kind == "blockquote" and begun):
                out[-1].notes.append(rendered)
            before, last = source if kind == "paragraph" else "", kind
    if not begun:
        first = out[0]
        first.body[:0] = [lead] if lead and not late else []
        if not any("math block" in piece for piece in first.body):
            first.kind = "claim"
            if len(out) > 1 and (not first.body or out[1].title == lead):  # said by the next
                out.pop(0)
                out[0].notes[:0] = first.notes
        if late and not any(lead in (slide.title, *slide.body) for slide in out):
            out.append(Slide("claim", title, body=[lead]))
    return out


def question(paragraph: str, title: str) -> Slide:
    before, asked = ASK.split(paragraph, maxsplit=1)
    asked, setting = asked.strip(), set_by(before)
    body = [f'<p class="said">{html(setting)}</p>'] * bool(setting)
    body.append(f"<p>{html(asked[0].upper() + asked[1:])}</p>")
    return Slide("question", "Before you look", title, body)


def listed(section: Section) -> list[Slide]:
    """The slides of a closing section: what it says, point by point, shared out evenly."""
    points = []
    for text in section.texts:
        for kind, _, rendered in blocks(text):
            if kind != "heading":
                points += re.findall(r"(?s)<li>.*?</li>", rendered) or [rendered]
    out = []
    for part in shared_out(points):
        said = re.sub(r"(?s)((?:<li>.*?</li>\s*)+)", r"<ul>\1</ul>", "".join(part))
        out.append(Slide("list", html(section.title), body=[said]))
    return out


def exercises(number: str) -> list[Slide]:
    """A slide with title, difficulty and minutes of each exercise of a lesson."""
    sheets = [*(NOTEBOOKS / "exercises").glob(f"{number}_*.ipynb")]
    texts = [text for sheet in sheets for text in read(sheet).texts]
    found = [re.match(r"## (\d+\. .+)\n+\*([●○]+ · \d+ minutes)\.\*", text) for text in texts]
    named = [(html(f[1].replace(".", r"\.", 1)), f[2]) for f in found if f]
    rows = "".join(f"<li>{name} <small>{size}</small></li>" for name, size in named)
    return [Slide("list", "Exercises", body=[f"<ul class='plain'>{rows}</ul>"])] if rows else []


def slides(lesson: Lesson) -> list[Slide]:
    part = next(iter(parts([lesson.number])))
    kicker = f"Lesson {lesson.number}" if lesson.number.isdigit() else f"Appendix {lesson.number}"
    title = Slide("title", html(lesson.title), " · ".join(filter(None, (kicker, part))))
    title.body = [f"<p>{html(text)}</p>" for text in lesson.box]
    opening, *sections = lesson.sections
    out = walked(opening, title)
    for section in sections:
        if section.title not in UNSHOWN:
            out += listed(section) if section.title in CLOSING else walked(section)
    return out + exercises(lesson.number)


# A lecture


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
    """A question as it stands alone; the speaker reads what students tend to say."""
    tend = said(f"They tend to say: {ask.tend}")
    return Slide("question", "Before you look", name, [said(ask.question)], [tend])


def replied(name: str, ask: Ask) -> Slide:
    so = ask.say[0].upper() + ask.say[1:]
    return Slide("text", "The answer", name, [said(ask.question, "said"), said(so)])


def ran(row: Row, ask: Ask) -> Slide:
    """The live cell, and then what it prints."""
    body = [f"<pre>{escape(ask.code)}</pre>", f'<pre class="fragment">{escape(ask.prints)}</pre>']
    return Slide("code", html(row.subject), "Live", body, [said(ask.say)])


def figure(number: str) -> Slide:
    """The slide that a figure has in the deck of its lesson, without an answer below it."""
    lesson = read(find(number.split(".")[0]))
    for section in lesson.sections:
        for cell in section.cells:
            drawn = [other.number for other in cell.figures]
            if number in drawn:
                made = [s for s in shown_by(section, cell, False) if s.kind == "figure"]
                slide = made[drawn.index(number)]
                slide.body = slide.body[:1]  # a lecture has answers of its own
                return slide
    raise ValueError(f"there is no figure {number}")


def table(row: Row, talk: Lecture) -> Slide:
    """The first table that a section prints, or the one in a chapter of the page."""
    if named := re.fullmatch(r"table (\w\d) §(\d+)", row.show):
        cells = read(find(named[1])).section(named[2]).cells
        body = [print_of(output.text) for cell in cells for output in cell.outputs]
    else:
        text = talk.chapters[row.show[0].upper() + row.show[1:]]
        body = [rendered for kind, _, rendered in blocks(text) if kind == "table"]
    return Slide("table", html(row.subject), body=[next(filter(None, body))])


def homework(row: Row, talk: Lecture) -> Slide:
    given = "".join(f"<li>{html(item)}</li>" for item in talk.homework)
    body = [f"<ul>{given}</ul>", said(talk.reading), said(row.subject + ".")]
    return Slide("list", "Homework", body=body)


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
    for number in row.figures:
        out.append(figure(number))
        out[-1].section = html(row.subject)
        out[-1].notes.insert(0, said(f"Figure {number}. {talk.figures[number]}"))
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
    return [title, *(slide for row in talk.rows for slide in shown(row, talk))]


# Writing


def page(title: str, made: list[Slide]) -> str:
    """The deck of a lesson or a lecture."""
    from jinja2 import Environment, FileSystemLoader

    template = Environment(loader=FileSystemLoader(SOURCES), trim_blocks=True, lstrip_blocks=True)
    title = re.sub(r"<[^>]*>|\\[()]", "", html(title))
    told = {"slides": made, "title": title, "course": COURSE, "edition": edition()}
    return template.get_template("deck.html").render(told)


def decks(*wanted: str) -> dict[str, str]:
    """The pages of all decks, or of some, by name: those of the lectures, then of the lessons."""
    talks = [talk for talk in lectures.every() if not wanted or talk.name in wanted]
    made = {t.name: page(f"Lecture {t.number}: {t.title}", talked(t)) for t in talks}
    for path in paths():
        if not wanted or path.stem.split("_")[0] in wanted:
            lesson = read(path)
            made[path.stem] = page(f"{lesson.number} {lesson.title}", slides(lesson))
    return made


def assets(folder: Path) -> None:
    """What all decks share: reveal.js, MathJax, letters, style."""
    folder.mkdir(parents=True)
    npm.copy("reveal.js", "dist/reveal.js", "dist/reveal.css", "dist/plugin/notes.js", to=folder)
    npm.copy("mathjax", MATHJAX, to=folder)
    npm.letters(npm.SANS, to=folder)
    for name in ("deck.css", "deck.js"):
        shutil.copy(SOURCES / name, folder)


def pdfs(names: list[str]) -> None:
    """Print decks in a browser."""
    with chromium.served(BUILD) as address, chromium.started() as browser:
        tab = browser.new_page(viewport={"width": 1280, "height": 720})
        for name in names:
            tab.goto(f"{address}{name}.html?print-pdf")
            tab.wait_for_selector("html[data-ready] .pdf-page")
            path = BUILD / f"{name}.pdf"
            tab.pdf(path=path, prefer_css_page_size=True, tagged=True, outline=True)


def main(*wanted: str) -> int:
    need(
        "slides",
        jinja2="jinja2",
        markdown_it="markdown-it-py",
        mdit_py_plugins="mdit-py-plugins",
        playwright="playwright",
    )
    shutil.rmtree(BUILD / "shared" if wanted else BUILD, ignore_errors=True)
    assets(BUILD / "shared")
    found = decks(*wanted)
    for name, text in found.items():
        (BUILD / f"{name}.html").write_text(text, encoding="utf-8")
    print(f"{len(found)} decks: {BUILD.relative_to(ROOT)}")
    if chromium.PATH is None:
        print(f"no PDFs: {chromium.NONE}")
        return 0
    pdfs([*found])
    print(f"{len(found)} PDFs beside them")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(*sys.argv[1:]))
