"""Pages of the site as PDFs, printed by Chromium.

    python -m kit.pdf                                    the handouts of all lectures
    python -m kit.pdf notebooks/05_orthogonal_features   any page of the site

The site has to be built first; each PDF is put next to its page. The print rules in
kit/look/static/course.css say how a page looks on paper, so a reader's own browser prints the same.
"""

import sys
from pathlib import Path

from kit import chromium, handouts, lectures, need
from tools.setting import ROOT

HTML = ROOT / "build" / "site" / "html"
READY = """async () => {
    if (document.querySelector('.math')) await window.MathJax.startup.promise;
    document.querySelectorAll('img').forEach(picture => { picture.loading = 'eager'; });
    await document.fonts.ready;
    return [...document.images].every(picture => picture.complete);
}"""


def written(browser, address: str, page: str, folder: Path = HTML, ready: str = READY) -> Path:
    """Print a page of the folder that is served at an address; return the path of its PDF."""
    path, tab = folder / f"{page}.pdf", browser.new_page()
    tab.goto(f"{address}{page}.html?print-pdf")  # which a deck asks for
    tab.wait_for_function(ready)
    tab.pdf(path=path, prefer_css_page_size=True, tagged=True, outline=True)
    tab.close()
    return path


def main(*pages: str) -> int:
    need("pdf")
    if chromium.PATH is None:
        raise SystemExit(f"no PDFs: {chromium.NONE}")
    pages = pages or tuple(handouts.name(talk.number) for talk in lectures.every())
    if missing := [page for page in pages if not (HTML / f"{page}.html").is_file()]:
        raise SystemExit(f"{HTML.relative_to(ROOT)} has no {', '.join(missing)}: make site first")
    with chromium.served(HTML) as address, chromium.started() as browser:
        for page in pages:
            print(written(browser, address, page).relative_to(ROOT))
    return 0


if __name__ == "__main__":
    raise SystemExit(main(*sys.argv[1:]))
