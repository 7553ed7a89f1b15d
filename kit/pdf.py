"""Pages of the site as PDFs, printed by Chromium.

    python -m kit.pdf                                    the handouts, and the path as one PDF
    python -m kit.pdf notebooks/05_orthogonal_features   any page of the site

The site has to be built first; the PDF of a page is put next to it. The print rules in
kit/look/static/course.css say how a page looks on paper, so a reader's own browser prints the same.
"""

import sys
from pathlib import Path

from kit import chromium, front, handouts, lectures, need
from tools.setting import COURSE, ROOT, address

HTML = ROOT / "build" / "site" / "html"
PATH = "the_path.pdf"
READY = """async () => {
    if (document.querySelector('.math')) await window.MathJax.startup.promise;
    document.querySelectorAll('img').forEach(picture => { picture.loading = 'eager'; });
    await document.fonts.ready;
    return [...document.images].every(picture => picture.complete);
}"""
# A link to another page would lead to the server that prints.
LINKS = """site => {
    const others = link => link.origin === location.origin && link.pathname !== location.pathname;
    for (const link of [...document.links].filter(others)) {
        if (site) link.href = site + link.pathname + link.hash;
        else link.replaceWith(...link.childNodes);
    }
}"""


def written(browser, home: str, page: str, folder=HTML, ready=READY, before: int = 0) -> Path:
    """Print a page of the folder that is served at `home`, its sheets counted from those before;
    return the path of its PDF."""
    path, tab = folder / f"{page}.pdf", browser.new_page()
    tab.goto(f"{home}{page}.html?print-pdf")  # which a deck asks for
    tab.wait_for_function(ready)
    tab.evaluate(LINKS, address("SITE"))
    tab.add_style_tag(content=f"html {{ counter-reset: page {before}; }}")
    tab.pdf(path=path, prefer_css_page_size=True, tagged=True, outline=True)
    tab.close()
    return path


def book(browser, home: str) -> Path:
    """Print the lessons of README's path as one PDF, with their outline."""
    from pypdf import PdfWriter

    whole = PdfWriter()
    for _, notebook, _ in front.ROW.findall((ROOT / "README.md").read_text(encoding="utf-8")):
        lesson = notebook.removesuffix(".ipynb")
        printed = written(browser, home, lesson, before=len(whole.pages))
        whole.append(printed)
        printed.unlink()
    whole.add_metadata({"/Title": COURSE})
    whole.write(HTML / PATH)
    return HTML / PATH


def main(*pages: str) -> int:
    need("pdf")
    if chromium.PATH is None:
        raise SystemExit(f"no PDFs: {chromium.NONE}")
    asked = pages or tuple(handouts.name(talk.number) for talk in lectures.every())
    if missing := [page for page in asked if not (HTML / f"{page}.html").is_file()]:
        raise SystemExit(f"{HTML.relative_to(ROOT)} has no {', '.join(missing)}: make site first")
    with chromium.served(HTML) as home, chromium.started() as browser:
        made = [written(browser, home, page) for page in asked]
        made += [] if pages else [book(browser, home)]
    print(*(path.relative_to(ROOT) for path in made), sep="\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(*sys.argv[1:]))
