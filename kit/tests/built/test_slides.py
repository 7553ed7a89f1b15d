"""The decks, made as for a lecturer, and looked at slide by slide in a browser."""

import re
import subprocess
import sys
from itertools import pairwise

import pytest

from kit import lectures, slides
from kit.chromium import served
from tools.setting import ROOT

from .browser import barriers, opened

SAMPLE = "lecture_6"
KINDS = {"title", "text", "claim", "question", "figure", "table", "list", "board", "code"}
SEEN = """() => [...document.querySelectorAll('.slides > section')].map((section, at) => {
    Reveal.slide(at);
    const slide = section.querySelector('.slide'), edge = section.getBoundingClientRect();
    const kinds = 'p, li, h1, h2, th, td, table, pre, img, mjx-container';
    const parts = [...slide.querySelectorAll(kinds)];
    const out = parts.filter(part => {
        const box = part.getBoundingClientRect();
        return box.left < edge.left || box.right > edge.right + 1 || box.bottom > edge.bottom + 1;
    });
    const texts = document.createTreeWalker(slide, NodeFilter.SHOW_TEXT), sizes = [];
    while (texts.nextNode()) {
        const holder = texts.currentNode.parentElement;
        if (texts.currentNode.data.trim() && !holder.closest('mjx-container'))
            sizes.push(parseFloat(getComputedStyle(holder).fontSize));
    }
    for (const formula of slide.querySelectorAll('.math'))
        sizes.push(parseFloat(getComputedStyle(formula).fontSize));
    const picture = slide.querySelector('img');
    const box = picture && picture.getBoundingClientRect();
    const scale = picture && Math.min(
        box.width / picture.naturalWidth, box.height / picture.naturalHeight);
    return {
        at: at + 1, kind: section.className.split(' ')[0], title: slide.innerText.slice(0, 60),
        overflow: slide.scrollHeight > slide.clientHeight || slide.scrollWidth > slide.clientWidth,
        out: out.map(part => part.outerHTML.slice(0, 80)), smallest: Math.min(...sizes),
        unset: [...slide.querySelectorAll('.math')]
            .filter(formula => !formula.querySelector('mjx-container')).map(f => f.textContent),
        wrong: [...section.querySelectorAll('[data-mjx-error], merror, mjx-merror')]
            .map(formula => formula.outerHTML),
        raw: [...section.querySelectorAll('aside .math')]
            .filter(formula => !formula.querySelector('math')).map(f => f.textContent),
        high: picture && scale * picture.naturalHeight,
        wide: picture && scale * picture.naturalWidth,
    };
})"""


@pytest.fixture(scope="session")
def decks():
    """All decks and their PDFs, made anew."""
    subprocess.run([sys.executable, "-m", "kit.slides"], cwd=ROOT, check=True, timeout=600)
    return [talk.name for talk in lectures.every()]


@pytest.fixture(scope="session")
def address(decks):
    with served(slides.BUILD) as address:
        yield address


@pytest.fixture(scope="module")
def seen(decks, address, browser):
    """What a browser shows of each slide of each deck, and what went wrong."""
    found, wrong = {}, {}
    for name in decks:
        with opened(browser, address, f"{name}.html") as (tab, faults):
            tab.wait_for_selector("html[data-ready]")
            found[name] = tab.evaluate(SEEN)
            if faults:
                wrong[name] = faults
    return found, wrong


def each(seen):
    found = [(name, slide) for name in seen for slide in seen[name]]
    return [(f"{name} {slide['at']}: {slide['title']}", slide) for name, slide in found]


def test_no_deck_asks_an_address_outside_or_complains(seen):
    assert seen[1] == {}
    assert len(each(seen[0])) > 200


def test_every_formula_is_set_on_the_slides_and_in_the_notes(seen):
    faults = [
        (name, slide["unset"], slide["wrong"], slide["raw"])
        for name, slide in each(seen[0])
        if slide["unset"] or slide["wrong"] or slide["raw"]
    ]
    assert faults == []


def test_no_slide_overflows(seen):
    faults = [(name, slide["out"]) for name, slide in each(seen[0]) if slide["overflow"]]
    faults += [(name, slide["out"]) for name, slide in each(seen[0]) if slide["out"]]
    assert faults == []


def test_no_letter_is_smaller_than_24_pixels_on_720_lines(seen):
    assert [(name, s["smallest"]) for name, s in each(seen[0]) if s["smallest"] < 24] == []


def test_a_figure_fills_two_thirds_of_the_height_or_the_whole_width(seen):
    figures = [(name, slide) for name, slide in each(seen[0]) if slide["high"]]
    assert len(figures) > 50
    small = [(n, s["high"], s["wide"]) for n, s in figures if s["high"] < 480 and s["wide"] < 1279]
    assert small == []


def test_on_a_phone_slides_lie_below_each_other_and_a_link_leads_to_one(address, browser):
    with opened(browser, address, f"{SAMPLE}.html#/6", width=390) as (tab, faults):
        tab.wait_for_selector("html[data-ready]")
        tops = tab.evaluate("Reveal.getSlides().map(slide => slide.getBoundingClientRect().top)")
        assert abs(tops[6]) < 40
        assert {200 < below - above < 240 for above, below in pairwise(tops)} == {True}
        assert tab.evaluate("document.documentElement.scrollWidth") == 390
    assert faults == []


def test_the_speakers_window_has_the_text_and_its_formulas(address, browser):
    with opened(browser, address, f"{SAMPLE}.html#/2") as (tab, _):
        tab.wait_for_selector("html[data-ready]")
        with tab.context.expect_page() as opening:
            tab.keyboard.press("s")
        window = opening.value
        window.wait_for_function("document.querySelector('.speaker-controls-notes .value math')")
        said = window.inner_text(".speaker-controls-notes .value")
        following = window.frame_locator("#upcoming-slide iframe")  # as narrow as a phone
        following.locator("html[data-ready]").wait_for()
        assert following.locator(".board .fragment").count() > 2
    assert "They tend to say: smaller" in said
    assert "\\varepsilon" not in said


def test_no_kind_of_slide_has_a_barrier_that_wcag_names(address, browser):
    wrong, kinds = {}, set()
    with opened(browser, address, f"{SAMPLE}.html") as (tab, _):
        tab.wait_for_selector("html[data-ready]")
        for at in range(tab.evaluate("Reveal.getTotalSlides()")):
            tab.evaluate(f"Reveal.slide({at})")
            kind = tab.evaluate("Reveal.getCurrentSlide().className.split(' ')[0]")
            if kind not in kinds:
                kinds.add(kind)
                if found := barriers(tab):
                    wrong[f"{at + 1}, {kind}"] = found
    assert wrong == {}
    assert kinds == KINDS


def test_the_steps_of_a_board_come_one_by_one(address, browser):
    with opened(browser, address, "lecture_3.html") as (tab, _):
        tab.wait_for_selector("html[data-ready]")
        tab.evaluate("Reveal.slide(Reveal.getSlides().findIndex(s => s.matches('.board')))")
        steps = tab.locator("section.present .fragment").count()
        visible = []
        for _ in range(steps + 1):
            visible.append(tab.locator("section.present .fragment.visible").count())
            tab.keyboard.press("ArrowRight")
    assert visible == list(range(steps + 1))
    assert steps >= 3


def test_each_deck_is_a_tagged_pdf_with_an_outline_and_a_page_a_slide(decks, seen):
    for name in decks:
        written = (slides.BUILD / f"{name}.pdf").read_bytes()
        assert len(re.findall(rb"/Type /Page\b", written)) == len(seen[0][name]), name
        for mark in (b"/StructTreeRoot", b"/Outlines", b"/Lang (en"):
            assert mark in written, (name, mark)
