"""The course on paper: a handout of each lesson and each lecture, and the whole of it as a book.

    python -m kit.handouts        write build/handouts: 01_….pdf, lecture_1.pdf …, and course.pdf

Nothing is executed: what is printed are the texts, the code and the outputs of the committed
notebooks. The words of a page are led and numbered as on the web (`kit.site.Site`). Then pandoc
turns each page into Typst once, and Typst sets the book and the handouts of these same pages, by
`kit/print/look.typ`. Code and outputs do not pass through pandoc. Code that draws is left out,
as it is folded on the site; so are solutions. A formula says its TeX to who cannot see it.

A second run writes the same bytes.
"""

import base64
import json
import os
import re
import shutil
import subprocess
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

from kit import lectures, need
from kit.head import description
from kit.lectures import Lecture
from kit.site import LINK, Site, called, lay_out, number, parts
from tools.lesson import Cell, find, read
from tools.setting import ROOT, edition

BUILD, OUT = ROOT / "build" / "pdf", ROOT / "build" / "handouts"
BOOK = "course"  # the name of its file
PRINT = ROOT / "kit" / "print"
STAGED = (
    *("notebooks/*.ipynb", "notebooks/exercises/*.ipynb", "notebooks/projects/*.ipynb"),
    *("notebooks/glossary.md", "notebooks/references.md", "notebooks/*.png"),
    *("notebooks/formulas/*.md", "kit/pages/quizzes/*.md", "kit/pages/twelve_weeks.md"),
    "kit/pages/lectures/*.md",
)
REFERENCES, GLOSSARY = "notebooks/references", "notebooks/glossary"
# What GitHub reads: CommonMark, tables and formulas. Pandoc puts in curly quotes and dashes.
READ = "commonmark+tex_math_dollars+pipe_tables+raw_attribute+smart"
HEAD = '#import "/look.typ": *\n'
KINDS = {"notebooks": "lesson", "exercises": "exercises", "projects": "project"}
PLACED = {"formulas": "formulas", "quizzes": "quiz", "lectures": "lecture"}  # pages by their folder
LECTURERS = ("lectures", "lecture-", "twelve_weeks", "quiz-")  # what their part has, in order
LEAST, MOST = 90, 400  # words that stay together at the end of a page
BESIDE = {"colab", "install"}  # cells that are of use on a screen alone
UNANSWERED = "YOUR ANSWER HERE"
FORMULA = re.compile(
    r"(?P<kept>^```[\s\S]*?^```|`[^`\n]*(?:\n[^`\n]+)*`)|\$\$[\s\S]*?\$\$|\$[^$\n]*(?:\n[^$\n]+)*\$",
    re.MULTILINE,
)
PICTURE = re.compile(r"!\[([^\]]*)\]\((?!\w+:)([^)\s]+)\)")


def quoted(text: str) -> str:
    """A string as Typst writes it: as JSON does."""
    return json.dumps(text, ensure_ascii=False)


def raw(typst: str) -> str:
    """A block of Markdown that pandoc hands on as it is."""
    return f"```{{=typst}}\n{typst}\n```"


def label(docname: str) -> str:
    """The name under which a page of the book is found: lesson-09, exercises-09, glossary."""
    path, mark = Path(docname), number(docname)
    home = path.parent.name
    if home in PLACED:
        return home if path.name == "index" else f"{PLACED[home]}-{path.name}"
    return f"{KINDS[home]}-{mark}" if mark else path.name


def inside(text: str, here: str, files) -> str:
    """`text` with its links led into the book, where what they name is in it, and to no file.

    What is nowhere at all is refused.
    """

    def lead(found):
        words, target, anchor = found.groups()
        path = Path(os.path.normpath(Path(here).parent / target))
        name = path.with_suffix("").as_posix()
        if name in files:
            return f"[{words}]({anchor if anchor and name == REFERENCES else '#' + label(name)})"
        if not path.name == "index.md" and not (ROOT / path).exists():
            raise ValueError(f"{here} leads to {target}, which is nowhere")
        return words

    def picture(found):
        words, target = found.groups()
        path = os.path.normpath(Path(here).parent / target)
        return f"![{words}](/{Path(path).as_posix()})"

    return PICTURE.sub(picture, LINK.sub(lead, text))


def joined(text: str) -> str:
    """`text` with each formula on one line: a line that began with - would begin a list."""

    def join(found):
        return found[0] if found["kept"] else re.sub(r"\n[ >]*", " ", found[0])

    return FORMULA.sub(join, text)


def titled(text: str, docname: str) -> str:
    """`text` with its number set apart in the title, and the name by which the book finds it."""
    text = re.sub(r"\A# (\d\d|[ap]\d) ", r'# `#number("\1")`{=typst} ', text)
    return re.sub(r"\A(# .*)", rf"\1 `<{label(docname)}>`{{=typst}}", text)


def printed(cell: Cell) -> list[str]:
    """The blocks of a code cell. Code that draws stays out of sight."""
    blocks = [] if cell.folded or not cell.source else [raw(f"#code({quoted(cell.source)})")]
    for output in cell.outputs:
        if figure := output.figure:
            told = (f"/pictures/{figure.number}.png", figure.number, figure.alt, figure.caption)
            blocks.append(raw(f"#picture({', '.join(map(quoted, told))})"))
        elif said := output.text.rstrip("\n"):
            blocks.append(raw(f"#printed({quoted(said)})"))
    return blocks


def together(text: str) -> str:
    """`text` with a sign before its last paragraphs, so many that they are no lonely page.

    A picture stays outside, and so does a heading without what is below it.
    """
    blocks = re.split(r"\n\n(?=[^\s>])", text.rstrip("\n"))
    first, words = len(blocks), 0
    while words < LEAST and first > 1 and "#picture(" not in blocks[first - 1]:
        first -= 1
        words += len(blocks[first].split())
    while first > 1 and blocks[first - 1].startswith("#"):
        first -= 1
    kept = "\n\n".join(blocks[first:])
    if first < 2 or words > MOST or kept.count("```") % 2:
        return text
    return "\n\n".join([*blocks[:first], raw("//together"), kept, ""])


def notebook(site: Site, here: str) -> str:
    """A lesson, an exercise sheet or a project in Markdown."""
    blocks = []
    for cell in read(site.files[here]).cells:
        if cell.id in BESIDE or cell.source.strip() == UNANSWERED:
            continue
        if cell.kind == "code":
            blocks += printed(cell)
            continue
        text = titled(site.title(cell.source, here), here) if not blocks else cell.source
        blocks.append(joined(inside(site.markdown(text, here), here, site.files)))
    return together("\n\n".join(blocks) + "\n")


def page(site: Site, here: str) -> str:
    """A page of Markdown alone."""
    text = titled(site.files[here].read_text(encoding="utf-8"), here)
    text = re.sub(r"\[([^\]]*)\]\(#[\w-]+\)", r"\1", text)  # to a heading of its own
    text = joined(inside(site.markdown(text, here), here, site.files))
    if "/quizzes/" in here:  # an answer is not seen beside its question
        text = text.replace("\n## Answers\n", f"\n{raw('#pagebreak()')}\n\n## Answers\n", 1)
    text = re.sub(r"(?m)^## (\S+-\d{4})$", lambda key: raw(f"//work {key[1]}"), text)
    return text if here in (GLOSSARY, REFERENCES) else together(text)


def works(typst: str) -> tuple[str, dict[str, str]]:
    """What stands above the references, and each entry by its key."""
    head, *entries = re.split(r"(?m)^//work (\S+)$", typst)
    found = zip(entries[::2], entries[1::2], strict=True)
    return head, {k: f"#work[#metadata(none) <{k}> {text.strip()}]\n" for k, text in found}


def cited(typst: str, keys) -> list[str]:
    """The works that a page in Typst leads to, in the order of `keys`."""
    named = set(re.findall(r"#link\(<([^>]+)>\)", typst))
    return [key for key in keys if key in named]


def pandoc(text: str, shift: int = 0) -> str:
    """Markdown → Typst. A warning is an error."""
    import pypandoc

    command = [pypandoc.get_pandoc_path(), "-f", READ, "-t", "typst", "--wrap=none"]
    command += ["--fail-if-warnings", f"--shift-heading-level-by={shift}"]
    command += [f"--lua-filter={PRINT / 'formulas.lua'}"]
    done = subprocess.run(
        command, input=text, capture_output=True, encoding="utf-8", timeout=300, check=False
    )
    if done.returncode:
        raise RuntimeError(f"pandoc: {done.stderr.strip()}")
    return done.stdout


def stage(folder: Path = BUILD) -> Site:
    """Copy what is printed, and how it is to look."""
    lay_out(STAGED, folder)
    shutil.copy(PRINT / "look.typ", folder)
    for name in ("pages", "pictures"):
        (folder / name).mkdir()
    return Site(folder)


def converted(here: str, folder: Path = BUILD) -> str:
    """Write one page in Typst into pages/, under its label, and its figures into pictures/."""
    site, name = Site(folder), label(here)
    if site.files[here].suffix == ".ipynb":
        text = notebook(site, here)
        for figure in read(site.files[here]).figures:
            content = base64.b64decode(figure.png)
            (folder / f"pictures/{figure.number}.png").write_bytes(content)
    else:
        text = page(site, here)
    typst = pandoc(text, shift=int(name.startswith("exercises")))
    if "//together\n" in typst:
        typst = typst.replace("//together\n", "#together[\n") + "]\n"
    (folder / f"pages/{name}.typ").write_text(HEAD + typst, encoding="utf-8", newline="\n")
    return typst


def first_words() -> dict[str, str]:
    """What the title page says, from where the repository says it."""
    readme, prose = (
        (ROOT / name).read_text(encoding="utf-8") for name in ("README.md", "LICENSE-prose")
    )
    title, about = re.search(r"(?s)\*\*(.+?)\.\*\*\s+(.+?)\n\n", readme).groups()
    words, path = PICTURE.search(readme).groups()
    licence, rights, *_ = prose.split("\n\n")
    found = {
        "title": title,
        "about": about,
        "picture": f"/{path}",
        "alt": words,
        "licence": licence,
        "rights": rights,
        "edition": edition(),
        "address": "",
    }
    return {name: " ".join(said.split()) for name, said in found.items()}


def arguments(words: dict[str, str]) -> str:
    return ", ".join(f"{name}: {quoted(said)}" for name, said in words.items())


def opened(site: Site, title: str, names: list[str]) -> str:
    """The page that a part begins with: what is in it, each with what it is about."""
    found = [read(site.files[name]) for name in names]
    rows = [
        ", ".join(map(quoted, (one.number, re.sub("[`$*]", "", one.title), description(one))))
        for one in found
    ]
    return f"#part({quoted(title)}, {', '.join(f'({row})' for row in rows)})\n"


def include(*names: str, below: bool = False) -> str:
    """Typst that takes pages in; below a part, their headings are one level deeper."""
    text = ["#{", *["set heading(offset: 1)"] * below]
    for name in names:  # a sheet of exercises begins a page, as it may be handed out alone
        text += [*["pagebreak(weak: true)"] * name.startswith("exercises")]
        text += [f'include "/pages/{name}.typ"']
    return "\n".join([*text, "}", ""])


def book(site: Site, pages: dict[str, str]) -> str:
    """The whole course in Typst: `pages` are what is converted, by label."""
    words = first_words()

    def chapter(mark):
        return [name for name in (f"lesson-{mark}", f"exercises-{mark}") if name in pages]

    text = [HEAD, f"#show: look.with(title: {quoted(words['title'])})\n"]
    text += [f"#cover({arguments(words)})\n#contents()\n"]
    for place, (part, marks) in enumerate(parts(site.lessons).items()):
        if part:
            text.append(opened(site, part, [site.lessons[mark] for mark in marks]))
        names = [name for mark in marks for name in chapter(mark)]
        names += [name for name in pages if name.startswith(f"formulas-{place}_")]
        text.append(include(*names, below=bool(part)))
    projects = {label(name): name for name in sorted(site.files) if "/projects/" in name}
    text += [opened(site, "Projects", [*projects.values()])] if projects else []
    text += [include(*projects, below=True)] if projects else []
    text += [include("glossary")] if "glossary" in pages else []
    head, entries = works(pages["references"])
    taught = [name for first in LECTURERS for name in pages if name.startswith(first)]
    last = [f"#part({quoted('For lecturers')})\n", include(*taught, below=True)] if taught else []
    return "".join([*text, head, *entries.values(), *last])


def handout(site: Site, docname: str, pages: dict[str, str]) -> str:
    """A lesson, its exercises and the works that they cite, in Typst."""
    mark, words = number(docname), first_words()
    names = [name for name in (f"lesson-{mark}", f"exercises-{mark}") if name in pages]
    title = called(Path(docname).name, site.stage)
    _, entries = works(pages["references"])
    needed = cited("".join(pages[name] for name in names), entries)
    text = [HEAD, f"#show: look.with(title: {quoted(title)}, course: {quoted(words['title'])})\n"]
    text += [include(*names), "== References\n" if needed else "", *[entries[k] for k in needed]]
    return "".join(text)


def lecture(talk: Lecture) -> str:
    """What students get of a lecture, in Typst: board, formulas, figures, questions, homework."""
    text = [f"## On the board\n\n{talk.derives}"]
    text += [f"{at}. {step}" for at, step in enumerate(talk.steps, 1)]
    slides = [row for row in talk.rows if "$" in row.written and (row.figures or row.show == "–")]
    text += ["## Formulas", *(f"- **{row.subject}.** {row.written}" for row in slides)]
    for mark in talk.paper:
        drawn = read(find(mark.split(".")[0])).figures
        (figure,) = [figure for figure in drawn if figure.number == mark]
        told = (f"/pictures/{mark}.png", mark, figure.alt, figure.caption)
        text.append(raw(f"#picture({', '.join(map(quoted, told))})"))
    text += [
        "## Questions",
        *(f"{n}. {ask.question}" for n, ask in enumerate(talk.asks.values(), 1)),
    ]
    text += ["## Homework", *(f"- {item}" for item in talk.homework), talk.reading]
    here = talk.path.relative_to(ROOT).as_posix()
    said = "\n\n".join(joined(inside(lectures.unmarked(part), here, {})) for part in text)
    words = {"title": f"Lecture {talk.number}: {talk.title}", "course": first_words()["title"]}
    return f"{HEAD}#show: sheet.with({arguments(words)})\n{pandoc(said)}"


def compiled(name: str, typst: str, folder: Path = BUILD, out: Path = OUT) -> int:
    """Set `typst` as a PDF, tagged as PDF/UA-1 asks; a warning is an error. Return its bytes.

    Fonts are those that come with Typst, so every machine sets the same pages.
    """
    import typst as compiler

    source = folder / f"{name}.typ"
    source.write_text(typst, encoding="utf-8", newline="\n")
    try:
        made, warnings = compiler.compile_with_warnings(
            source, root=folder, ignore_system_fonts=True, pdf_standards=["ua-1"]
        )
    except compiler.TypstError as error:
        raise RuntimeError(f"{name}: {error.diagnostic}") from error
    if warnings:
        raise RuntimeError(f"{name}: " + "; ".join(str(warning) for warning in warnings))
    (out / f"{name}.pdf").write_bytes(made)
    return len(made)


def main() -> int:
    need("pdf", pypandoc="pypandoc-binary", typst="typst")
    site = stage()
    shutil.rmtree(OUT, ignore_errors=True)
    OUT.mkdir(parents=True)
    with ProcessPoolExecutor(2, get_context("spawn")) as pool:  # forked, a thread may be lost
        names = sorted(site.files)
        pages = dict(zip(map(label, names), pool.map(converted, names), strict=True))
        documents = {BOOK: book(site, pages)}
        documents |= {Path(n).name: handout(site, n, pages) for n in site.lessons.values()}
        documents |= {talk.name: lecture(talk) for talk in lectures.every()}
        sizes = pool.map(compiled, documents, documents.values())
        print(f"{len(documents)} PDFs, {sum(sizes) / 2**20:.0f} MiB: {OUT.relative_to(ROOT)}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
