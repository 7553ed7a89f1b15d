"""The course as a web site, which Sphinx makes from the files of the repository.

    python -m kit.site        write build/site/html

Nothing is executed and nothing is written twice. The committed notebooks are copied as they are,
so that what a reader downloads is what the tests have seen; the words for the web (a number before
a title, buttons, and the places where links end) are put in by `Site.on_page` while Sphinx reads;
then `links.py` puts a link wherever a lesson, a section, a figure or a work is named.
The pages of the package come from its docstrings (Sphinx's autodoc). A page asks no address
outside: MathJax, which sets the formulas, and the fonts are among its files.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from itertools import count, groupby
from pathlib import Path

from kit import chromium, figures, front, handouts, hints, lectures, need, npm, pdf, quizzes
from kit.published import filled, offer
from kit.reference import pages as package_pages
from tools.lesson import ANSWER, ASK, Lesson, read
from tools.references import CITED, ENTRY, GAP, authors, key, works
from tools.setting import ROOT

BUILD = ROOT / "build" / "site"
STAGE, HTML, STATIC = BUILD / "source", pdf.HTML, BUILD / "static"

BROWSER = "kit/pages/in_the_browser"
BELOW = {  # what a page lists, as Sphinx's toctree takes it; those of notebooks/ are made here
    "notebooks/exercises/index": "*\n../solutions/index",  # two steps from a lesson
    "notebooks/solutions/index": "*",
    "notebooks/projects/index": "*\nsolutions/*",
    "kit/pages/lectures/index": "*",
    "kit/pages/how_we_know": "/CONTRIBUTING\n/notebooks/coverage\n/notebooks/errata_list",
}
LECTURE = "kit/pages/lectures/\\d_"  # pages of lectures
COPIED = (
    *("notebooks/*.ipynb", "notebooks/*/*.ipynb", "notebooks/projects/solutions/*.ipynb"),
    *("notebooks/*.md", "notebooks/*.png", "kit/pages/**/*.md", "kit/pages/**/*.png"),
    *("README.md", "CONTRIBUTING.md", "CHANGELOG.md"),
    "benchmarks/*.png",
)
SLIDES = "slides"  # the site includes what `make slides` has made, and lists it on a page
LINKED = r"notebooks/(?:exercises/)?(?:\d\d|a\d)_"  # pages with places that links lead to
HEADING = r"(?m)^(?=## (\d+)\. )"  # of a section that has a number
LITE = "lite"  # the same for the lessons that run in a browser, from `make lite`
BESIDE = "See also: "  # begins a line of links, which the search leaves out
MOVES = "This lesson has a figure to move: "  # the same
ACROSS = 100  # characters; a longer printed line gets smaller letters
PROSE = 200  # characters; a longer printed line is not a row of a table
LONG = 250  # characters; a longer alt text is cut to its first sentence

# What is named in prose becomes a link: lessons 05 and 06; figure 05.3; 05 §3; a work.
PLACE = r"\b(?:\d\d|a\d)(?:\.\d+)?(?![\w%])"
NAMED = re.compile(
    rf"\b(?P<kind>[Ll]esson|[Aa]ppendi|[Ff]igure|[Ee]xercise)(?:s|x|ces)?{GAP}{PLACE}"
    rf"(?:(?:,|{GAP}and|{GAP}to){GAP}{PLACE})*|\b(?:\d\d|a\d) §\d+|(?P<work>{CITED})"
)
KINDS = {"": "section", "appendi": "lesson"}


def alt(description: str) -> str:
    """The alt text of a figure: its description, or the first sentence of a long one."""
    if len(description) <= LONG:
        return description
    return re.split(r"(?<=[.!?])\s+(?=[^\W\d_])", description, maxsplit=1)[0]


def number(docname: str) -> str:
    """The number of a lesson, exercise, solution or project: 01, a1, p1; empty for other pages."""
    found = re.match(r"notebooks/(?:[a-z]+/)*(\d\d|[ap]\d)_", docname)
    return found[1] if found else ""


def lessons(docnames) -> dict[str, str]:
    """number → docname of each lesson and appendix, in order."""
    names = sorted(name for name in docnames if re.match(r"notebooks/(?:\d\d|a\d)_\w+$", name))
    return {number(name): name for name in names}


def heading(docname: str) -> str:
    """What the numbered headings of a page are."""
    return "exercise" if "/exercises/" in docname else "section"


def places(docname: str, lesson: Lesson) -> list[str]:
    """The places in a lesson or its exercises that can be linked: section-05-3, figure-05-3, …"""
    mark, kind = number(docname), heading(docname)
    found = [f"{kind}-{mark}-{part.number}" for part in lesson.sections[1:] if part.number]
    if kind == "section":
        found += [f"figure-{figure.number.replace('.', '-')}" for figure in lesson.figures]
    return found


def relative(target: str, here: str) -> str:
    """The relative path from the page `here` to the file `target`, both given from the root."""
    return Path(os.path.relpath(target, Path(here).parent)).as_posix()


def by_authors(references: str) -> str:
    """The list of works, each with a heading as it is cited, Rahimi & Recht (2007), not its key."""

    def headed(found):
        name, entry = found.groups()
        names = authors(entry)
        said = " & ".join(names) if len(names) < 3 else f"{names[0]} et al."
        return f"({name})=\n## {said} ({name[-4:]})\n\n{entry}"

    return ENTRY.sub(headed, references)


def decks(name: str, here: str, built: Path = BUILD.parent, label: str = SLIDES) -> list[str]:
    """Links from the page `here` to the deck of a lecture and its PDF, if they exist."""
    said = {"html": label, "pdf": "slides as PDF"}
    files = {f"{SLIDES}/{name}.{suffix}": words for suffix, words in said.items()}
    return [_download(relative(f, here), s) for f, s in files.items() if (built / f).is_file()]


def runs(name: str, built: Path = BUILD.parent) -> str:
    """Where the notebook `name` runs in the browser, from the root; empty if it does not."""
    there = (built / LITE / "files" / "my" / name).is_file()
    return f"{LITE}/lab/index.html?path=my/{name}" if there else ""


def _download(target: str, label: str, name: str = "") -> str:
    """A link to a file that Sphinx does not know; `name` is what it is saved as."""
    saved = f" download='{name}'" if name else ""
    return f"<a href='{target}'{saved}>{label}</a>"


def below_title(text: str, line: str) -> str:
    """`text`, which begins with a title, with a line of links below it, if there is one."""
    title, _, rest = text.partition("\n")
    return f"{title}\n\n{line}\n{rest}" if line else text


def boxed(text: str) -> str:
    """`text` with the question at its end in a box, below its label."""
    if not (asked := ASK.search(text)):
        return text
    label, said = asked[0].strip("*:, "), text[asked.end() :].strip()
    said = said[0].upper() + said[1:]
    head = text[: asked.start()].rstrip()
    return f"{head}\n\n<div class='question'>\n\n**{label}**\n\n{said}\n\n</div>"


def answers_out_of_sight(notebook: dict) -> None:
    """Fold the answer to a question, code, output and text, into one line; an interactive figure
    follows the fold, or the cell, with its still figure."""
    cells, ids = [], count()

    def put(*sources):
        made = {"cell_type": "markdown", "metadata": {}}
        cells.extend(made | {"id": f"put-{next(ids)}", "source": source} for source in sources)

    tagged = groupby(notebook["cells"], lambda cell: ANSWER in cell["metadata"].get("tags", []))
    for answers, grouped in tagged:
        run = list(grouped)
        for part in [run] if answers else [[cell] for cell in run]:
            put(*["<details class='answer'><summary>Show the answer</summary>"] * answers)
            cells += part
            put(*["</details>"] * answers)
            drawn = [told.get("figure") for cell in part for told in pictures(cell)]
            put(*(figures.below(figure) for figure in drawn if figure in figures.SCRIPTS))
    notebook["cells"] = cells


def pictures(cell: dict) -> list[dict]:
    """The metadata of each figure of a cell, to read or to add to."""
    shown = [output for output in cell.get("outputs", []) if "image/png" in output.get("data", {})]
    return [out.setdefault("metadata", {}).setdefault("image/png", {}) for out in shown]


def fit_outputs(notebook: dict) -> None:
    """Keep a caption only with its figure, and tag the cells that print long lines or prose."""
    for cell in notebook["cells"]:
        outputs = cell.get("outputs", [])
        kept = [output for output in outputs if "text/markdown" not in output.get("data", {})]
        lines = "".join("".join(output.get("text", [])) for output in kept).split("\n")
        if outputs:
            cell["outputs"] = kept
        longest = max(map(len, lines))
        tags = ["broad"] * (longest > ACROSS) + ["prose"] * (longest > PROSE)
        cell["metadata"]["tags"] = [*cell["metadata"].get("tags", []), *tags]


class Site:
    """What a page needs to know about the others: lessons, places in them, works."""

    def __init__(self, stage: Path = STAGE, built: Path = BUILD.parent):
        self.stage, self.built = stage, built
        files = [path for kind in ("ipynb", "md") for path in stage.rglob(f"*.{kind}")]
        self.files = {f.relative_to(stage).with_suffix("").as_posix(): f for f in files}
        self.lessons = lessons(self.files)
        self.ends = {f"lesson-{mark}": (name, "") for mark, name in self.lessons.items()}
        for name in self.files:
            if re.match(LINKED, name):
                found = places(name, read(self.files[name]))
                self.ends |= {place: (name, place) for place in found}
        if references := self.files.get("notebooks/references"):
            listed = works(references.read_text(encoding="utf-8"))
            self.ends |= {work: ("notebooks/references", work) for work in listed}

    def link(self, label: str, docname: str, here: str) -> str:
        """A link from the page `here` to another."""
        suffix = self.files[docname].suffix
        return f"[{label}]({relative(docname + suffix, here)})"

    def named(self, text: str, here: str) -> list[tuple[int, int, str, str]]:
        """What prose of the page `here` names, and each can be a link: where the words begin and
        end, and the page and the place in it that they lead to. A page does not lead to itself."""
        links = []
        for found in NAMED.finditer(text):
            kind, spans = (found["kind"] or "").lower(), [found.span()]
            if kind:  # each of several
                names = [name.span() for name in re.compile(PLACE).finditer(text, *found.span())]
                spans = names if len(names) > 1 else spans
            for begin, end in spans:
                words = [KINDS.get(kind, kind), *re.findall(r"a?\d+", text[begin:end])]
                end_of = self.ends.get(key(found[0]) if found["work"] else "-".join(words))
                if end_of and end_of != (here, ""):
                    links.append((begin, end, *end_of))
        return links

    def title(self, text: str, here: str) -> str:
        """`text` with the number of a lesson or project before its title."""
        mark = number(here)
        if "/solutions/" in here:
            text = re.sub(r"\A# Exercises", "# Solutions", text)
            text = re.sub(r"\A# (?!Solutions)", f"# Solution of {mark}: ", text)
        elif mark and not text.startswith("# Exercises"):
            text = re.sub(r"\A# ", f"# {mark} ", text)
        return text

    def beside(self, here: str) -> str:
        """Buttons and links to what belongs to a lesson, an exercise, a solution or a project."""
        mark, stem = number(here), here.rpartition("/")[2]
        if not mark:
            return ""
        home = "notebooks/projects" if mark.startswith("p") else "notebooks"
        project = home == "notebooks/projects"
        near = {
            "Project" if project else "Lesson": f"{home}/{stem}",
            "Exercises": f"{home}/exercises/{stem}",
        }
        address = runs(f"{here.removeprefix('notebooks/')}.ipynb", self.built)
        buttons = [_download(relative(address, here), front.BROWSER)] if address else []
        buttons += [
            _download(relative(f"{name}.html", here), label)
            for label, name in near.items()
            if name in self.files and name != here
        ]
        links, solved = [], f"{home}/solutions/{stem}"
        if solved in self.files and solved != here:
            links.append(self.link("solution" if project else "solutions", solved, here))
        file = f"{here.removeprefix('notebooks/').replace('/', '_')}.ipynb"
        links.append(_download(relative(f"_sources/{here}.ipynb", here), "notebook", file))
        row = f"<p class='buttons beside'>{' '.join(buttons)}</p>\n\n" if buttons else ""
        moves = [name for name in figures.SCRIPTS if here == self.lessons.get(name[:2])]
        ends = [_download(f"#{figures.place(name)}", f"figure&#160;{name}") for name in moves]
        said = f"\n\n{MOVES}{', '.join(ends)}." if ends else ""
        return f"{row}{BESIDE}{' · '.join(links)}{said}"

    def of_lecture(self, text: str, here: str) -> str:
        """The page of a lecture, with links below its title to its deck and its handout."""
        number = Path(here).name.partition("_")[0]
        links, handout = decks(f"lecture_{number}", here, self.built), handouts.name(number)
        if handout in self.files:
            links.append(self.link("handout", handout, here))
            if chromium.PRINTS:  # it is printed once the site is built
                links.append(_download(relative(f"{handout}.pdf", here), "handout as PDF"))
        return below_title(text, f"{BESIDE}{' · '.join(links)}" if links else "")

    def to_run(self, text: str, here: str) -> str:
        """The page about the browser, with links below its title to the lessons that run there."""
        names = {mark: f"{Path(name).name}.ipynb" for mark, name in self.lessons.items()}
        found = {mark: runs(name, self.built) for mark, name in names.items()}
        links = [_download(relative(to, here), mark) for mark, to in found.items() if to]
        return below_title(text, f"**Open lesson** {' · '.join(links)}" if links else "")

    def on_page(self, text: str, here: str) -> str:
        """What Sphinx reads for the page `here`, whose file contains `text`."""
        path = self.files.get(here)
        if path is None or path.suffix != ".ipynb":
            text = filled(text)
            if here.startswith(f"{quizzes.FOLDER}/"):
                return quizzes.page(text) + quizzes.below(Path(here).name)
            if here == "notebooks/references":
                return by_authors(text)
            if re.match(LECTURE, here):
                return self.of_lecture(text, here)
            return self.to_run(text, here) if here == BROWSER else text
        notebook = json.loads(text)
        marked = re.match(LINKED, here)
        if marked and heading(here) == "section":
            drawn = [told for cell in notebook["cells"] for told in pictures(cell)]
            for count, told in enumerate(drawn, start=1):
                told["figure"] = f"{number(here)}.{count}"
        answers_out_of_sight(notebook)
        fit_outputs(notebook)
        solutions = self.files.get(here.replace("/exercises/", "/solutions/"))
        if "/exercises/" in here and solutions:
            hints.below(notebook, solutions)
        cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "markdown"]
        titled = False
        for cell in cells:
            said = "".join(cell["source"])
            if said.startswith("# ") and not titled:
                titled, said = True, below_title(self.title(said, here), self.beside(here))
            if marked:
                said = re.sub(HEADING, rf"({heading(here)}-{number(here)}-\1)=\n", said)
            cell["source"] = boxed(said)
        return json.dumps(notebook)


def lay_out(patterns, folder: Path) -> None:
    """Copy the files of the repository that match the patterns into an empty folder."""
    shutil.rmtree(folder, ignore_errors=True)
    for path in sorted({path for pattern in patterns for path in ROOT.glob(pattern)}):
        copy = folder / path.relative_to(ROOT)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, copy)


def stage(folder: Path = STAGE) -> None:
    """Lay the sources out as in the repository, with the pages that are made here."""
    lay_out(COPIED, folder)
    handouts.write(folder)
    pages = {f"performer_course/{name}": text for name, text in package_pages().items()}
    for name, below in BELOW.items():
        path, said, hidden = folder / f"{name}.md", f"# {Path(name).parent.name.capitalize()}\n", ""
        if path.exists():
            said, hidden = path.read_text(encoding="utf-8"), ":hidden:\n"
        pages[f"{name}.md"] = f"{said}\n```{{toctree}}\n:glob:\n{hidden}\n{below}\n```\n"
    if any((BUILD.parent / SLIDES).glob("*.html")):
        pages[f"{SLIDES}.md"] = listing()
    readme = (folder / "README.md").rename(folder / "index.md")
    browser = (BUILD.parent / LITE / "index.html").exists()
    first = front.page(readme.read_text(encoding="utf-8"), browser)
    if chromium.PRINTS:  # once the site is built
        top, heading, path = first.partition("## The path\n")
        first = f"{top}{heading}\n{_download(pdf.PATH, 'The path as one PDF')}\n{path}"
    for name, text in pages.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    (folder / "index.md").write_text(f"{first}\n{contents(folder)}", encoding="utf-8")


def listing() -> str:
    """The page with links to all decks, below how to use them."""
    head = (ROOT / "kit/look/slides/index.md").read_text(encoding="utf-8")
    titles = {talk.name: f"Lecture {talk.number}: {talk.title}" for talk in lectures.every()}
    links = (" · ".join(decks(name, SLIDES, label=title)) for name, title in titles.items())
    return "\n".join([head, *(f"- {both}" for both in links if both), ""])


def short(name: str, folder: Path) -> str:
    """An entry of the side bar: what the title of a page says before a colon."""
    if (lesson := folder / f"{name}.ipynb").is_file():
        return f"{number(name)} {read(lesson).subject} <{name}>"
    title = (folder / f"{name}.md").read_text(encoding="utf-8").partition("\n")[0]
    subject, colon, _ = title.removeprefix("# ").partition(":")
    return f"{subject} <{name}>" if colon else name


def contents(folder: Path) -> str:
    """The toctrees of the side bar: look/contents.md, each pattern with the pages that no line
    before it has."""
    listed = []

    def pages(pattern):
        paths = sorted(folder.glob(f"{pattern[1]}.[im]*"))
        names = [path.relative_to(folder).with_suffix("").as_posix() for path in paths]
        listed.extend(new := [name for name in names if name not in listed])
        return "".join(f"{short(name, folder)}\n" for name in new)

    text = (ROOT / "kit/look/contents.md").read_text(encoding="utf-8")
    return re.sub(r"(?m)^([\w/?*[\]-]+)\n", pages, text)


def assets(folder: Path = STATIC) -> None:
    """The style sheets and scripts of the site, MathJax, and fonts."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(ROOT / "kit/look/static", folder)
    (folder / "mathjax").mkdir()
    npm.formulas(to=folder / "mathjax")
    npm.letters(npm.SANS, npm.CODE, to=folder / "letters")
    quizzes.write(folder / "quizzes")


def main() -> int:
    need("site")
    stage()
    assets()
    shutil.rmtree(HTML, ignore_errors=True)
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-j", "auto"]
    command += ["-b", "html", "-c", "kit/look", "-d", BUILD / "doctrees", STAGE, HTML]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    code = subprocess.run(command, cwd=ROOT, env=environment).returncode
    if not code:
        for name, files in {SLIDES: "*.html", LITE: "index.html"}.items():
            if any((BUILD.parent / name).glob(files)):
                shutil.copytree(BUILD.parent / name, HTML / name)
            else:
                print(f"without {name}: `make {name}` first, or `make publish` makes all in order")
        offer(HTML)
        pages = [path.relative_to(HTML) for path in HTML.rglob("*.html")]
        own = [path for path in pages if path.parts[0] != LITE]
        print(f"{len(own)} pages: {(HTML / 'index.html').relative_to(ROOT)}")
        if chromium.PRINTS:
            return pdf.main()
        print("no handouts as PDF: they need Chromium, and what `make publish` installs")
    return code


if __name__ == "__main__":
    raise SystemExit(main())
