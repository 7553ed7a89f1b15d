"""A deck of slides for each lesson, made by a rule from what the lesson says and shows.

    python -m kit.slides [09 …]     write build/slides: pages, and PDFs where a browser is there

Nothing is executed, and nothing is written for the slides alone. A sentence that a lesson sets in
bold, a *lead*, is a claim. A figure becomes a slide under its claim; so does a printed table, a
question before its answer, and the formulas of a section, which appear step by step. All else that
the lesson says goes into the speaker's notes. How many slides there are follows from the minutes in
the lesson's box: sections, formulas and figures come first, questions and tables fill the rest.

`read` makes a list of items of a notebook, `chosen` says which of them are shown, and `slides` puts
these onto slides. The page they go into lies in kit/look/slides. reveal.js shows it, MathJax sets
the formulas, the letters are Source Sans 3; npm brings all three, and no deck asks an address
outside.
"""

import asyncio
import json
import re
import shutil
import sys
from dataclasses import dataclass, field
from functools import cache
from html import escape
from importlib.util import find_spec
from pathlib import Path

from kit import chromium, npm
from kit.printed import tables
from kit.site import MATHJAX, alt, number, parts
from kit.steps import lines, tall
from tools.setting import NOTEBOOKS, ROOT

BUILD, SOURCES = ROOT / "build" / "slides", ROOT / "kit/look/slides"
LEAST, USUAL, MOST = 25 / 90, 36 / 90, 40 / 90  # slides a minute; `USUAL` leaves room for an edit
LEAD = (6, 28)  # words
SAID, SETTING = 24, 50  # words before a formula, and before a question, that are shown with it
ROWS, BROAD = 9, 92  # of a table that the last row can read: rows, and characters across
ROOM = 400  # pixels for formulas
LISTED = 700  # characters of a list on a slide
SHOWN, TOLD = ("figure", "table"), ("prose", "heading", "formula")
CLOSING, UNSHOWN = ("Take away", "Where it breaks"), ("Exercises", "Further reading")
QUESTION = re.compile(r"\*\*Before you (?:run this|read on|look)\b")
SENTENCE = re.compile(r"(?<=[.?!])\*{0,2}\s+(?=[A-Z*$\\])")
NUMERIC = re.compile(r"[<>±−+-]?\d\S*(?: ms| %)?|nan|inf|-")
FONT = "@fontsource/source-sans-3"
TABS = 3


@dataclass
class Item:
    """A piece of a lesson: prose, lead, question, formula, table or figure; or a `###` heading."""

    kind: str
    html: str = ""
    text: str = ""  # as it is written; the words of a figure
    cell: int = 0
    tags: frozenset = frozenset()
    said: str = ""  # before a formula
    rows: int = 0
    lead: str = ""  # of a figure or table


@dataclass
class Section:
    title: str
    items: list[Item] = field(default_factory=list)

    @property
    def leads(self) -> list[str]:
        return [item.html for item in self.items if item.kind == "lead"]


@dataclass
class Lesson:
    number: str
    title: str
    minutes: int
    box: list[str]
    opening: Section  # what stands before the first
    sections: list[Section]
    exercises: list[tuple[str, str]]  # title, "●○○ · 15 minutes"


@dataclass
class Slide:
    kind: str  # title, text, claim, question, table, figure, list
    title: str
    section: str = ""  # above the title
    body: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


# Reading


@cache
def markdown():
    """CommonMark with tables and formulas. A link is its words: a deck lies alone."""
    from markdown_it import MarkdownIt
    from mdit_py_plugins.dollarmath import dollarmath_plugin

    md = MarkdownIt("commonmark").enable("table").use(dollarmath_plugin)
    md.add_render_rule("math_inline", lambda _, tokens, i, *__: inline(tokens[i].content))
    md.add_render_rule("math_block", lambda _, tokens, i, *__: display(tokens[i].content))
    for name in ("link_open", "link_close", "image"):
        md.add_render_rule(name, lambda *_: "")
    md.add_render_rule("html_block", lambda _, t, i, *__: re.sub("<[^>]*>", "", t[i].content))
    md.add_render_rule("html_inline", lambda *_: "")
    return md


def inline(tex: str) -> str:
    return rf'<span class="math">\({escape(tex, quote=False)}\)</span>'


def display(tex: str) -> str:
    kind = "math block aligned" if r"\begin{aligned}" in tex else "math block"
    return rf'<div class="{kind}">\[{escape(tex.strip(), quote=False)}\]</div>'


def words(text: str) -> int:
    """The words of a sentence; a formula is one."""
    return len(re.sub(r"\$[^$]*\$", "formula", text).split())


def leads(text: str) -> list[str]:
    """The sentences in bold of a paragraph."""
    least, most = LEAD
    found = [" ".join(bold.split()) for bold in re.findall(r"(?s)\*\*(.+?)\*\*", text)]
    return [s for s in found if s[0].isupper() and s[-1] == "." and least <= words(s) <= most]


def read(path: Path) -> Lesson:
    """A lesson as its title, its box, and the items of its sections."""
    md, notebook = markdown(), json.loads(path.read_text(encoding="utf-8"))
    sections, title, box = [Section("")], "", []
    for count, cell in enumerate(notebook["cells"]):
        tags = frozenset(cell["metadata"].get("tags", ()))
        source = "".join(cell["source"])
        if cell["cell_type"] == "code":
            sections[-1].items += shown_by(cell, count, tags)
            continue
        before = ""
        for block in blocks(md.parse(source)):
            kind, text = block[0].type, block[1].content if len(block) > 1 else block[0].content
            html = md.renderer.render(block, md.options, {})
            if kind == "heading_open" and block[0].tag == "h1":
                title = md.renderInline(text)
            elif kind == "heading_open" and block[0].tag == "h2":
                sections.append(Section(md.renderInline(text)))
            elif kind == "blockquote_open" and title and not box:
                box = [t.content for t in block if t.type == "inline"]
            else:
                sections[-1].items += items(kind, html, text, before, count, tags)
            before = text if kind == "paragraph_open" else ""
    for section in sections:
        claims(section)
    opening, *rest = sections
    opening.title = title
    minutes = int(re.match(r"\*\*(\d+) minutes", box[0])[1])
    sheet = path.parent / "exercises" / path.name
    return Lesson(
        number(f"notebooks/{path.stem}"),
        title,
        minutes,
        [md.renderInline(text) for text in box],
        opening,
        rest,
        exercises(sheet) if sheet.exists() else [],
    )


def blocks(tokens):
    """The tokens of each block of a text."""
    start = 0
    for end, token in enumerate(tokens, 1):
        if token.level == 0 and token.nesting <= 0:
            yield tokens[start:end]
            start = end


def items(kind, html, text, before, cell, tags) -> list[Item]:
    """What a block of text is made of; the whole of it is prose, too."""
    md, given = markdown(), {"cell": cell, "tags": tags}
    if kind == "heading_open":
        return [Item("heading", f"<p><b>{md.renderInline(text)}</b></p>", text, **given)]
    if kind == "math_block":
        return [Item("formula", html, text.strip(), said=said(before), **given)]
    found = [Item("prose", html, text, **given)]
    if kind == "table_open":
        rows, size = html.count("<tr>") - 1, len(re.sub(r"<[^>]*>|\\[a-zA-Z]+", "", html))
        found.append(Item("table", html, text, rows=rows if size < LISTED else ROWS + 1, **given))
    if kind == "paragraph_open":
        if asked := QUESTION.search(text):
            question = re.sub(r"\A\*\*.*?\*\*[\s:,]*", "", text[asked.start() :])
            question, setting = question[0].upper() + question[1:], set_by(text[: asked.start()])
            html = f'<p class="said">{md.renderInline(setting)}</p>' if setting else ""
            html += f"<p>{md.renderInline(question)}</p>"
            found.append(Item("question", html, question, **given))
        found += [Item("lead", md.renderInline(lead), lead, **given) for lead in leads(text)]
    return found


def set_by(text: str) -> str:
    """The last sentences before a question, as many as one reads at a glance; none about code."""
    kept = []
    for sentence in reversed(SENTENCE.split(re.sub(r"\*\*(.+?)\*\*", r"\1", text).strip())):
        if words(" ".join([sentence, *kept])) > SETTING or not sentence[:1].isupper():
            break
        kept[:0] = [] if "`" in sentence else [sentence]
    return " ".join(kept)


def said(paragraph: str) -> str:
    """The end of the sentence that a formula completes, where it is short; and what it is about."""
    if not paragraph:
        return ""
    md, about = markdown(), re.match(r"\*\*([^*]{1,40}\.)\*\*\s*", paragraph)
    last = SENTENCE.split(paragraph[about.end() if about else 0 :])[-1]
    last = re.sub(r"\*\*(.+?)\*\*", r"\1", last)
    whole = last.endswith((".", ")", "?")) or QUESTION.search(paragraph)
    shown = last if words(last) <= SAID and not whole else ""
    return md.renderInline(f"**{about[1]}** {shown}" if about else shown)


def shown_by(cell, count, tags) -> list[Item]:
    """The figures and tables among the outputs of a cell."""
    found, given = [], {"cell": count, "tags": tags}
    for output in cell["outputs"]:
        picture = output.get("data", {}).get("image/png")
        if picture:
            words = output["metadata"]["image/png"]["alt"]
            found.append(Item("figure", "".join(picture).strip(), words, **given))
        for table in tables("".join(output.get("text", ""))):
            rows = len(table.rows) if broad(table) <= BROAD else ROWS + 1
            found.append(Item("table", typeset(table), table.caption, rows=rows, **given))
    return found


def broad(table) -> int:
    """About how many characters wide a table is, where its head and first column may wrap."""
    heads = [max(map(len, head.split()), default=0) for head in table.head]
    columns = [max(map(len, column)) for column in zip(*table.rows, strict=True)]
    columns[0] = min(columns[0], 24)
    return sum(map(max, heads, columns)) + 3 * len(heads)


def typeset(table) -> str:
    """A printed table as HTML: its first column heads the rows, numbers end below each other."""
    numbers = [
        all(not cell or NUMERIC.fullmatch(cell) for cell in column)
        for column in zip(*table.rows, strict=True)
    ]

    def cell(text, i, scope=""):
        kind = "number" if numbers[i] else "one" if " " not in text else ""
        shape = f' class="{kind}"' * bool(kind) + f' scope="{scope}"' * bool(scope and text)
        name = "th" if scope and text else "td"
        return f"<{name}{shape}>{escape(text)}</{name}>"

    caption = f"<caption>{escape(table.caption)}</caption>" if table.caption else ""
    head = "".join(cell(text, i, "col") for i, text in enumerate(table.head))
    rows = ""
    for row in table.rows:
        cells = "".join(cell(text, i, "" if i else "row") for i, text in enumerate(row))
        rows += f"<tr>{cells}</tr>"
    inner = f"{caption}<thead><tr>{head}</tr></thead><tbody>{rows}</tbody>"
    return f'<table class="printed">{inner}</table>'


def claims(section: Section) -> None:
    """Give each figure and table its lead.

    It is the first that comes after it and before the next figure, table or heading; else the last
    before it; else the first of the section. What is shown with no word between is one exhibit.
    """
    found = [item for item in section.items if item.kind != "formula"]
    for at, item in enumerate(found):
        if item.kind not in SHOWN:
            continue
        before = [other.html for other in found[:at] if other.kind == "lead"]
        rest = found[at + 1 :]
        while rest and rest[0].kind in SHOWN and item.kind in SHOWN:
            rest.pop(0)
        after = []
        for other in rest:
            if other.kind in (*SHOWN, "heading"):
                break
            after += [other.html] if other.kind == "lead" else []
        item.lead = (after or before[-1:] or section.leads or [""])[0]


def exercises(sheet: Path) -> list[tuple[str, str]]:
    """Title, and difficulty and minutes, of each exercise of a sheet."""
    cells = json.loads(sheet.read_text(encoding="utf-8"))["cells"]
    texts = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown"]
    found = [re.match(r"## (\d+\. .+)\n+\*([●○]+ · \d+ minutes)\.\*", text) for text in texts]
    return [(markdown().renderInline(f[1].replace(". ", r"\. ", 1)), f[2]) for f in found if f]


# Choosing


def chosen(lesson: Lesson) -> set[int]:
    """The ids of the items that are shown.

    Formulas and figures are. A question that a figure answers costs one slide, one that a table
    answers two; then come other tables, and questions whose answer is in words. Of each kind every
    section gets one before any gets a second.
    """
    shown, wishes = set(), []
    for section in (lesson.opening, *lesson.sections):
        found = [item for item in section.items if item.kind not in ("prose", "lead", "heading")]
        found = [item for item in found if "slide-off" not in item.tags]
        seen = [0] * 5
        for item, after in zip(found, [*found[1:], None], strict=False):
            fits = item.kind != "table" or item.rows <= ROWS
            if item.kind in ("formula", "figure") or ("slide-on" in item.tags and fits):
                shown.add(id(item))
            elif item.kind == "question":
                kind = answer(found, item)
                table = after if kind == "table" and after.rows <= ROWS else None
                rank = 0 if kind == "figure" else 1 if table else 3
                wishes.append((rank, seen[rank], [item, table] if table else [item]))
                seen[rank] += 1
            elif item.kind == "table" and fits:
                rank = 4 if after and after.kind == "figure" and after.lead == item.lead else 2
                wishes.append((rank, seen[rank], [item]))
                seen[rank] += 1
    for _, _, group in sorted(wishes, key=lambda wish: wish[:2]):
        more = shown | set(map(id, group))
        if len(slides(lesson, more)) <= USUAL * lesson.minutes:
            shown = more
    return shown | unsaid(lesson, shown)


def answer(found: list[Item], question: Item) -> str:
    """What answers a question: a figure, a table that is not drawn right after, or words."""
    shown = []
    for item in found[found.index(question) + 1 :]:
        if item.kind not in SHOWN or (shown and item.lead != shown[0].lead):
            break
        shown.append(item)
    kinds = [item.kind for item in shown]
    return "figure" if "figure" in kinds else "table" if kinds else ""


def unsaid(lesson: Lesson, shown: set[int]) -> set[int]:
    """Leads that no slide carries, as many as are needed where there are too few slides."""
    more = set()
    for section in lesson.sections:
        for item in section.items:
            made = slides(lesson, shown | more)
            if len(made) >= LEAST * lesson.minutes:
                return more
            said = any(item.html in (slide.title, *slide.body) for slide in made)
            if item.kind == "lead" and not said and section.title not in CLOSING + UNSHOWN:
                more.add(id(item))
    return more


def slides(lesson: Lesson, shown: set[int]) -> list[Slide]:
    """The slides of a lesson of whose items these are shown."""
    part = next(part for part in parts([lesson.number]))
    kicker = f"Lesson {lesson.number}" if lesson.number.isdigit() else f"Appendix {lesson.number}"
    title = Slide("title", lesson.title, " · ".join(filter(None, (kicker, part))))
    title.body = [f"<p>{text}</p>" for text in lesson.box]
    out = walked(lesson.opening, shown, title)
    for section in lesson.sections:
        if section.title in CLOSING:
            out += listed(section)
        elif section.title in UNSHOWN:
            continue
        elif section.leads or any(id(item) in shown for item in section.items):
            out += walked(section, shown)
        else:  # nothing to show: it is told
            out[-1].notes += [item.html for item in section.items if item.kind in TOLD]
    if lesson.exercises:
        body = "".join(f"<li>{name} <small>{size}</small></li>" for name, size in lesson.exercises)
        out.append(Slide("list", "Exercises", body=[f"<ul class='plain'>{body}</ul>"]))
    return out


def walked(section: Section, shown: set[int], *begun: Slide) -> list[Slide]:
    """The slides of a section, in the order of the lesson, after those that have begun it."""
    first, out, before = (section.leads or [""])[0], [*begun], []
    seen = [item for item in section.items if id(item) in shown]
    if not out and not any(item.lead == first for item in seen if item.kind in SHOWN):
        out.append(text_slide(section, first))
    for item in section.items:
        if item.kind == "formula" and id(item) in shown:
            if not out or out[-1].kind != "text":
                out.append(text_slide(section, first, again=bool(out)))
            if not put(item, out[-1]):
                out.append(text_slide(section, first, again=True))
                put(item, out[-1])
        if item.kind in TOLD:
            (out[-1].notes if out else before).append(item.html)
        elif id(item) in shown and item.kind == "lead":
            out.append(Slide("claim", item.html, section.title))
        elif id(item) in shown and item.kind == "question":
            out.append(Slide("question", "Before you look", section.title, [item.html]))
        elif id(item) in shown:
            head = (item.lead, section.title) if item.lead else (section.title, "")
            out.append(Slide(item.kind, *head))
            figure = item.kind == "figure"
            out[-1].body = [picture(item) if figure else item.html]
            out[-1].notes = [f"<p>{escape(item.text)}</p>"] if figure else []
    if not out:
        out.append(text_slide(section, first))
    out[0].notes[:0] = before
    for slide in out:
        if slide.kind == "text" and not any("step" in piece for piece in slide.body):
            slide.kind = "claim"
    return out


def text_slide(section: Section, lead: str, *, again: bool = False) -> Slide:
    """A slide for the formulas of a section: its name and lead, or the lead alone the next time."""
    if again and lead:
        return Slide("text", lead, section.title)
    return Slide("text", section.title, body=[lead] if lead else [])


def put(item: Item, slide: Slide) -> bool:
    """Put a formula onto a slide, line by line, if there is room for it."""
    steps = [display(line) for line in lines(item.text)]
    steps[0] = f'<p class="said">{item.said}</p>{steps[0]}' if item.said else steps[0]
    steps = [f'<div class="step fragment">{step}</div>' for step in steps]
    old = [step for step in slide.body if 'class="step' in step]
    if old and sum(map(height, old + steps)) > ROOM:
        return False
    slide.body += steps
    return True


def height(step: str) -> int:
    """About how high a formula is, in pixels."""
    rows = step.count(r"\\ ") + 1
    return rows * (88 if tall(step) else 56) + 40 * ("said" in step)


def picture(item: Item) -> str:
    return f'<img alt="{escape(alt(item.text))}" src="data:image/png;base64,{item.html}">'


def listed(section: Section) -> list[Slide]:
    """The slides of a closing section: what it says, point by point."""
    points = []
    for item in section.items:
        if item.kind in ("prose", "formula"):
            points += re.findall(r"(?s)<li>.*?</li>", item.html) or [item.html]
    lengths = [len(re.sub(r"<[^>]*>|\\[a-z]+", "", point)) for point in points]
    most = sum(lengths) / -(-sum(lengths) // LISTED)  # as much on one slide as on the other
    out, size = [], most
    for point, length in zip(points, lengths, strict=True):
        if size >= most or size + length > LISTED:
            out.append(Slide("list", section.title))
            size = 0
        size += length
        out[-1].body.append(point)
    for slide in out:
        body = "".join(slide.body)
        slide.body = [re.sub(r"(?s)((?:<li>.*?</li>\s*)+)", r"<ul>\1</ul>", body)]
    return out


# Writing


def page(lesson: Lesson) -> str:
    """The deck of a lesson."""
    from jinja2 import Environment, FileSystemLoader

    made = slides(lesson, chosen(lesson))
    template = Environment(loader=FileSystemLoader(SOURCES), trim_blocks=True, lstrip_blocks=True)
    plain = re.sub(r"<[^>]*>|\\[()]", "", lesson.title)
    return template.get_template("deck.html").render(
        lesson=lesson, slides=made, title=f"{lesson.number} {plain}"
    )


def assets(folder: Path) -> None:
    """What all decks share: reveal.js, MathJax, letters, style."""
    folder.mkdir(parents=True)
    npm.copy("reveal.js", "dist/reveal.js", "dist/reveal.css", "dist/plugin/notes.js", to=folder)
    npm.copy("mathjax", MATHJAX, to=folder)
    styles = [npm.package(FONT) / f"{weight}.css" for weight in ("400", "400-italic", "600")]
    text = "\n".join(style.read_text(encoding="utf-8") for style in styles)
    text = re.sub(r", url\([^)]*\.woff\) format\('woff'\)", "", text)
    (folder / "files").mkdir()
    npm.copy(FONT, *re.findall(r"url\(\./(files/[^)]*)\)", text), to=folder / "files")
    (folder / "fonts.css").write_text(text, encoding="utf-8")
    for name in ("deck.css", "deck.js"):
        shutil.copy(SOURCES / name, folder)


def lessons(wanted=()) -> list[Path]:
    """The lessons, or those of these numbers."""
    found = sorted(NOTEBOOKS.glob("[0-9a]*.ipynb"))
    return [path for path in found if not wanted or path.name.split("_")[0] in wanted]


async def pdfs(names: list[str]) -> None:
    """Print decks, a few at a time, in one browser."""
    from playwright.async_api import async_playwright

    left = list(reversed(names))

    async def work(browser, address):
        tab = await browser.new_page(viewport={"width": 1280, "height": 720})
        while left:
            name = left.pop()
            await tab.goto(f"{address}{name}.html?print-pdf")
            await tab.wait_for_selector("html[data-ready] .pdf-page")
            path = BUILD / f"{name}.pdf"
            await tab.pdf(path=path, prefer_css_page_size=True, tagged=True, outline=True)
        await tab.close()

    with chromium.served(BUILD) as address:
        async with async_playwright() as playwright:
            start = playwright.chromium.launch
            browser = await start(executable_path=chromium.PATH, args=chromium.FLAGS)
            await asyncio.gather(*(work(browser, address) for _ in range(TABS)))
            await browser.close()


def main(*wanted: str) -> int:
    needed = {
        "jinja2": "jinja2",
        "markdown_it": "markdown-it-py",
        "mdit_py_plugins": "mdit-py-plugins",
        "playwright": "playwright",
    }
    missing = [name for module, name in needed.items() if not find_spec(module)]
    if missing:
        raise SystemExit(
            f"{', '.join(missing)} missing: `make slides` installs the extra `slides`, and so does "
            "pip install -c constraints.txt -e '.[slides]'"
        )
    shutil.rmtree(BUILD / "shared" if wanted else BUILD, ignore_errors=True)
    assets(BUILD / "shared")
    found = lessons(wanted)
    for path in found:
        (BUILD / f"{path.stem}.html").write_text(page(read(path)), encoding="utf-8")
    print(f"{len(found)} decks: {BUILD.relative_to(ROOT)}")
    if chromium.PATH is None:
        print(f"no PDFs: {chromium.NONE}")
        return 0
    asyncio.run(pdfs([path.stem for path in found]))
    print(f"{len(found)} PDFs beside them")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(*sys.argv[1:]))
