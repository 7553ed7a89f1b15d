"""The web site, built as for a reader, and looked at in a browser that reaches no other address."""

import csv
import html
import os
import re
import unicodedata
from pathlib import Path
from urllib.parse import quote, unquote

import pytest
from docutils import nodes
from docutils.utils import new_document
from sphinx import addnodes

from kit import front, handouts, lectures, links, pdf, site
from kit.chromium import served
from kit.head import TYPED
from tools.lesson import ANSWER, paths, questions, read
from tools.setting import ROOT

from .browser import barriers, opened

# A lesson with many formulas and figures, one of each other kind of page, and a long table.
SAMPLE = [
    "index",
    "notebooks/00_start_here",
    "notebooks/09_positive_features",
    "notebooks/exercises/01_polynomial_kernel",
    "notebooks/projects/p1_a_decoder_that_writes",
    "notebooks/references",
    "performer_course/attention",
    "kit/pages/quizzes/5_scale_and_after",
]
FORMULAS = """() => ({
    asked: document.querySelectorAll('.math').length,
    empty: [...document.querySelectorAll('.math')].filter(m => !m.querySelector('mjx-container'))
        .map(m => m.textContent),
    wrong: [...document.querySelectorAll('[data-mjx-error], mjx-merror')].map(m => m.textContent),
    bare: [...document.querySelectorAll('img:not([alt]), img[alt=""]')].map(i => i.src),
    width: document.documentElement.scrollWidth,
})"""
FOCUS = """async () => {
    const at = document.activeElement;
    const moving = [at, at.parentElement].flatMap(part => part?.getAnimations() ?? []);
    await Promise.all(moving.map(movement => movement.finished));
    const seen = at.querySelector(':scope > .toctree-toggle') ?? at;
    const box = seen.getBoundingClientRect(), look = getComputedStyle(seen);
    return {
        tag: at.tagName,
        text: (at.getAttribute('aria-label') ?? at.textContent).trim().slice(0, 60),
        within: Boolean(at.closest('article')),
        shown: box.width * box.height > 0 && box.bottom > 0 && box.top < innerHeight,
        ringed: look.outlineStyle !== 'none' && parseFloat(look.outlineWidth) > 0,
    };
}"""

LESSON = "notebooks/04_random_fourier_features"
LABELS = {"04 §3, Signs": (LESSON, None), "04 §99": (LESSON, None), "04 §3": (LESSON, "top")}
FILES = {"a file": "../Makefile#all", "a folder": "../tests"}
FILES |= {"first page": "../README.md", "gone": "05_gone.ipynb"}
OPEN = "document.querySelectorAll('article details').forEach(fold => { fold.open = true; })"


@pytest.fixture(scope="session")
def pages():
    """Every page of the site, built anew."""
    assert site.main() == 0
    found = sorted(p.relative_to(site.HTML) for p in site.HTML.rglob("*.html"))
    own = [p for p in found if p.parts[0] not in ("_static", site.LITE, site.SLIDES)]
    return [path.with_suffix("").as_posix() for path in own]


@pytest.fixture(scope="session")
def address(pages):
    with served(site.HTML) as address:
        yield address


def written(page):
    return (site.HTML / f"{page}.html").read_text(encoding="utf-8")


def test_each_page_asks_nothing_outside_sets_its_formulas_and_fits_a_phone(pages, address, browser):
    wrong, formulas = {}, 0
    for name in pages:
        with opened(browser, address, f"{name}.html", width=390) as (tab, faults):
            seen = tab.evaluate(FORMULAS)
            formulas += seen["asked"]
            faults += [f"no formula: {text}" for text in seen["empty"] + seen["wrong"]]
            faults += [f"no words for {source}" for source in seen["bare"]]
            faults += [f"{seen['width']} pixels wide on 390"] * (seen["width"] > 390)
            if faults:
                wrong[name] = faults
    assert wrong == {}
    assert len(pages) > 90
    assert formulas > 2000


def test_icons_are_letters_and_their_megabyte_of_script_is_not_loaded(pages, address, browser):
    assert not any("fontawesome.js" in written(page) for page in pages)
    with opened(browser, address, "index.html") as (tab, _):
        tab.wait_for_function("document.fonts.check('900 16px \"Font Awesome 7 Free\"', '\\uf002')")
        drawn = "getComputedStyle(document.querySelector('.fa-magnifying-glass'), '::before')"
        assert tab.evaluate(f"{drawn}.content").startswith('"\uf002"')


@pytest.fixture(scope="module")
def first(address, browser):
    """The first three pages that the search finds."""
    with opened(browser, address, "index.html") as (tab, faults):

        def pages(query):
            tab.goto(f"{address}search.html?q={quote(query)}")
            said = "document.querySelector('.search-summary')"
            tab.wait_for_function(f"{said}.textContent.match(/found|did not match/)")
            if "did not match" in tab.inner_text(".search-summary"):
                return []
            tab.wait_for_selector("#search-results .context")
            assert site.BESIDE not in "".join(tab.locator(".context").all_text_contents())
            links = tab.eval_on_selector_all("#search-results a", "all => all.map(a => a.href)")
            return [link.removeprefix(address).partition(".html")[0] for link in links[:3]]

        yield pages
        assert faults == []


@pytest.mark.parametrize(("page", "words"), TYPED.items())
def test_the_search_finds_the_page_of_a_word_among_the_first_three(first, page, words):
    page = f"notebooks/{page}_" if len(page) == 2 else page
    for word in words.split(", "):
        assert any(found.startswith(page) for found in first(word)), word


def test_nearly_all_that_people_typed_is_found_among_the_first_three(first):
    """What others wrote down, who had not seen the site, and which pages they would want."""
    with (Path(__file__).parent / "queries.csv").open(encoding="utf-8", newline="") as file:
        sought = {row["query"]: row["pages"].split(" or ") for row in csv.DictReader(file)}
    missed = [query for query, pages in sought.items() if not {*first(query)} & {*pages}]
    assert len(missed) < 0.05 * len(sought), missed
    assert len(sought) > 100


@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("dark", 1280), ("light", 390)])
def test_no_page_has_a_barrier_that_wcag_names(pages, address, browser, scheme, width):
    """A sample of pages, with all that folds open; every page where one says PAGES=all."""
    lecturers = [page for page in pages if page.startswith("kit/pages/")][:1]
    chosen = pages if os.environ.get("PAGES") == "all" else SAMPLE + lecturers
    assert set(chosen) <= set(pages)
    wrong = {}
    for name in chosen:
        with opened(browser, address, f"{name}.html", scheme=scheme, width=width) as (tab, _):
            assert tab.evaluate("document.documentElement.dataset.theme") == scheme
            tab.evaluate(OPEN)
            if found := barriers(tab):
                wrong[name] = found
    assert wrong == {}


def test_a_lesson_is_read_by_the_keyboard_alone(address, browser):
    """Tab comes to each fold, stops nowhere unseen, and leaves the page; Enter opens a fold."""
    with opened(browser, address, f"{SAMPLE[2]}.html") as (tab, faults):
        folds = tab.locator("article summary").count()
        stops, opened_folds = [], 0
        for _ in range(1000):
            tab.keyboard.press("Tab")
            at = tab.evaluate(FOCUS)
            if at["tag"] == "BODY":
                break
            stops.append(at)
            if at["tag"] == "SUMMARY" and at["within"]:
                tab.keyboard.press("Enter")
                opened_folds += tab.evaluate("document.activeElement.parentElement.open")
    assert at["tag"] == "BODY"
    assert [stop for stop in stops if not (stop["shown"] and stop["ringed"])] == []
    assert opened_folds == folds > 5
    assert sum(stop["tag"] == "MJX-CONTAINER" for stop in stops) < 10
    assert faults == []


def test_each_question_has_a_box_and_one_fold_that_holds_all_its_answer(pages):
    folds = 0
    for path in paths():
        page, cells = written(f"notebooks/{path.stem}"), read(path).cells
        asked = [at for at, cell in enumerate(cells) if questions(cell)]
        answered = [at for at in asked if ANSWER in cells[at + 1].tags]
        boxed = re.findall(r"</div>\s*<details class='answer'>", page)
        assert page.count("<div class='question'>") == len(asked)
        assert len(boxed) >= len(answered)
        folds += page.count("<details class='answer'>")
        assert "hide-output" not in page
    assert folds > 120


def test_every_figure_has_its_words_to_open_and_every_plot_is_folded(pages):
    opening = r"<details class='in-words'><summary>(.+) in words</summary>"
    for path in paths():
        page, lesson = html.unescape(written(f"notebooks/{path.stem}")), read(path)
        assert re.findall(opening, page) == [f"Figure {f.number}" for f in lesson.figures]
        for figure in lesson.figures:
            place = f'id="figure-{figure.number.replace(".", "-")}"'
            assert f'<img alt="{site.alt(figure.alt)}" {place} src=' in page
        folded = [cell for cell in lesson.cells if cell.folded]
        assert page.count('<details class="admonition hide above-input">') == len(folded)


def test_the_decision_card_and_the_lessons_of_the_path_are_cards_on_a_phone(pages):
    for page, kind in (("kit/pages/decision_card", "cards asks"), ("index", "cards")):
        assert re.search(rf'<table class="[^"]*\b{kind}\b', written(page)), page


def test_what_a_reader_downloads_is_what_is_committed(pages):
    for name in pages:
        if (ROOT / f"{name}.ipynb").exists():
            copy = site.HTML / "_sources" / f"{name}.ipynb"
            assert copy.read_bytes() == (ROOT / f"{name}.ipynb").read_bytes()


def test_every_link_within_the_site_leads_to_a_file_and_to_a_place_in_it(pages):
    ids = {page: set(re.findall(r'\bid="([^"]+)"', written(page))) for page in pages}
    dead, count = [], 0
    for page in pages:
        for target in re.findall(r"<a\b[^>]*?\bhref=[\"']([^\"']+)[\"']", written(page)):
            if re.match(r"\w+:", target):
                continue
            file, _, place = unquote(html.unescape(target)).partition("#")
            file, _, query = file.partition("?")
            path = (site.HTML / page).parent / file if file else site.HTML / f"{page}.html"
            whole = path.resolve()
            known = ids.get(whole.with_suffix("").relative_to(site.HTML).as_posix())
            count += 1
            opens = site.HTML / site.LITE / "files" / query.removeprefix("path=")  # JupyterLite
            if query and not opens.is_file():
                dead.append(f"{page}: {target}")
            if not whole.is_file() or (place and known is not None and place not in known):
                dead.append(f"{page}: {target}")
    assert dead == []
    assert count > 5000


def test_prose_is_led_what_is_apart_stays_and_a_file_that_is_not_there_keeps_its_words(pages):
    name, page = "04_random_fourier_features.ipynb", new_document("")
    apart = (nodes.title, nodes.literal, nodes.math, nodes.literal_block, nodes.reference)
    page += [kind("lesson 04", "lesson 04") for kind in (*apart, nodes.paragraph, nodes.strong)]
    page += nodes.container("", nodes.paragraph("", "lesson 04"), classes=["cell_output"])
    page += [nodes.literal("", name)]
    page += nodes.paragraph("", "", *map(nodes.Text, ("of exercise", "\n", "04.2.")))
    for label, to in LABELS.items():
        page += nodes.paragraph("", "", links.link([nodes.Text(label)], "", *to))
    for label, file in FILES.items():
        page += nodes.paragraph("", "", xref := links.link([nodes.Text(label)], "", file, ""))
        xref["refdomain"] = None
    links.put(site.Site(), page, "notebooks/09_positive_features")
    found = [*page.findall(addnodes.pending_xref)]
    assert [(x.astext(), x["reftarget"], x["reftargetid"]) for x in found] == [
        *[("lesson 04", LESSON, None)] * 2,
        (name, LESSON, None),
        ("exercise\n04.2", LESSON.replace("/", "/exercises/"), "exercise-04-2"),
        ("04 §3, Signs", LESSON, "section-04-3"),
        *[(label, *to) for label, to in LABELS.items()][1:],
        ("first page", "index", None),
        ("gone", "05_gone.ipynb", None),
    ]
    assert "a file\n\na folder" in page.astext()


def test_the_pages_of_the_package_have_shapes_links_and_their_source(pages):
    whole = written("performer_course/attention")
    page = re.sub(r"<[^>]+>", "", html.unescape(whole))
    assert re.search(r"favor_attention\(q: Float\[Any, '... L d'\], k: ", page)
    assert re.search(r"\ncausal: row i sees keys j ≤ i", page)
    assert "O((L + S) m (d + e))" in page
    assert 'href="naive.html#performer_course.naive.favor_attention"' in whole
    assert 'href="../notebooks/references.html#choromanski-2021"' in whole
    assert 'href="../_modules/performer_course/attention.html#favor_attention"' in whole
    assert 'id="favor_attention"' in written("_modules/performer_course/attention")
    assert "distance_to_mean(" in written("performer_course/checks").replace("</span>", "")


def test_the_licence_of_each_package_of_npm_goes_out_with_its_files(pages):
    found = (path.stem.removeprefix("LICENSE-") for path in site.HTML.rglob("LICENSE-*.txt"))
    assert {*found} >= {"mathjax", "source-sans-3", "source-code-pro"}


QUIZ = "kit/pages/quizzes/1_kernels"


def test_a_quiz_is_answered_by_the_keyboard_and_says_why(address, browser):
    with opened(browser, address, f"{QUIZ}.html") as (tab, faults):
        reasons, told = tab.locator("details.quiz li"), tab.locator(".told")
        assert [told.nth(k).text_content() for k in range(5)] == [""] * 5
        assert not any(reasons.nth(k).is_visible() for k in range(20))
        said = ["Wrong. A tempts", "Wrong. B tempts", "Wrong. C tempts", "D is right: "]
        for choice, begins in enumerate(said):
            tab.locator("ul.choices button").nth(choice).focus()
            tab.keyboard.press("Enter")
            assert told.first.text_content().startswith(begins)
            assert told.first.get_attribute("role") == "status"
            pressed = tab.locator("ul.choices button[aria-pressed=true]")
            assert (pressed.count(), pressed.get_attribute("data-right")) == (
                1,
                str(choice == 3).lower(),
            )
        assert barriers(tab) == []
    assert faults == []


def test_a_quiz_without_scripts_has_its_answers_folded(address, browser):
    context = browser.new_context(java_script_enabled=False)
    tab = context.new_page()
    tab.goto(f"{address}{QUIZ}.html")
    assert not any(one.is_visible() for one in tab.locator("details.quiz li").all())
    tab.locator("details.quiz summary").first.click()
    assert tab.locator("details.quiz li").first.is_visible()
    context.close()


# On paper


def squeezed(text):
    """`text` without white space, and without the marks above letters."""
    return re.sub(r"[\s\u200b\u0300-\u036f]", "", unicodedata.normalize("NFKD", text))


def sheets(page):
    """The text of each sheet of paper of a printed page, squeezed, and the file as it was read."""
    from pypdf import PdfReader

    printed = PdfReader(site.HTML / f"{page}.pdf")
    return [squeezed(sheet.extract_text()) for sheet in printed.pages], printed


def opening(text):
    """The first words, up to a formula, a link or a quotation."""
    return squeezed(" ".join(re.split("[$*`\"'\\[]", lectures.unmarked(text))[0].split()[:4]))


@pytest.mark.parametrize("talk", lectures.every(), ids=lambda talk: talk.name)
def test_a_handout_is_a_readable_pdf_of_two_sheets_without_an_answer(pages, talk):
    found, printed = sheets(handouts.name(talk.number))
    root, whole = printed.trailer["/Root"], "".join(found)
    assert len(found) == 2
    assert root["/MarkInfo"]["/Marked"]
    assert root["/Lang"] == "en"
    assert printed.metadata.title.startswith(f"Handout {talk.number}: ")
    assert printed.outline[0].title.startswith("Handout")
    assert sum(len(sheet.images) for sheet in printed.pages) == 2
    for text in (*talk.steps, *talk.homework, *(ask.question for ask in talk.asks.values())):
        assert opening(text) in whole, text
    for ask in talk.asks.values():
        assert opening(ask.say) not in whole


def test_the_path_is_one_pdf_with_an_outline_its_sheets_counted_and_no_link_to_the_printer(pages):
    found, printed = sheets("the_path")
    rows = front.ROW.findall((ROOT / "README.md").read_text(encoding="utf-8"))
    titles = [one.title.replace("’", "'") for one in printed.outline if not isinstance(one, list)]
    assert [*map(squeezed, titles)] == [squeezed(number + title) for number, _, title in rows]
    assert all(text.startswith(str(at)) for at, text in enumerate(found, start=1))
    notes = [note.get_object() for sheet in printed.pages for note in sheet.get("/Annots", [])]
    assert not any("127.0.0.1" in str(note) for note in notes)


def test_a_lesson_on_paper_has_its_code_prints_and_answers_and_nothing_of_the_screen(
    address, browser
):
    page = "notebooks/05_orthogonal_features"
    pdf.written(browser, address, page)
    found, printed = sheets(page)
    lesson, whole = read(ROOT / f"{page}.ipynb"), "".join(found)
    for cell in lesson.cells:
        said = [output.text for output in cell.outputs if not output.figure]
        for text in [cell.source] * (cell.kind == "code" and not cell.folded) + said:
            assert all(squeezed(line) in whole for line in text.splitlines()), text
    answers = [cell.source for cell in lesson.cells if ANSWER in cell.tags and cell.kind != "code"]
    assert all(opening(answer) in whole for answer in answers)
    assert sum(len(sheet.images) for sheet in printed.pages) == len(lesson.figures)
    for seen in ("Showtheanswer", "Seealso", "inwords", "Contents"):
        assert seen not in whole


def test_an_exercise_sheet_on_paper_has_no_hint_and_no_solution(address, browser):
    page = "notebooks/exercises/05_orthogonal_features"
    pdf.written(browser, address, page)
    whole = "".join(sheets(page)[0])
    assert whole.count("raiseNotImplementedError()") == 3
    assert "Whatthechecksays" not in whole
    assert "blocks,last=divmod(m,d)" not in whole
