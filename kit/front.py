"""The first page of the site: README, laid out for those who were sent a link.

Only the words on the three buttons are written here. README is what GitHub shows; here its
sections follow the title of the course, the buttons and the pictures.
"""

import re

from kit.head import first_words
from tools.setting import ROOT

BUTTONS = {
    "Start": "notebooks/00_start_here.html",
    "Run it in the browser": "kit/pages/in_the_browser.html",
    "Teach with it": "kit/pages/teach.html",
}
BROWSER = "Run it in the browser"
PICTURE = re.compile(r"(?ms)(!\[[^\]]+\]\((notebooks/picture_(\d)\.png)\))\n\n(^\*\w.+?\*)$")
ROW = re.compile(r"(?m)^\| \[(\w\d)\]\((\S+)\) \| (.+?) \|")  # of a lesson


def buttons(browser: bool) -> str:
    links = {said: to for said, to in BUTTONS.items() if browser or said != BROWSER}
    made = [f"<a href='{to}'>{said}</a>" for said, to in links.items()]
    return f"<p class='buttons'>{' '.join(made)}</p>"


def page(readme: str, browser: bool) -> str:
    """The first page in Markdown; `browser` says whether lessons run in the browser."""
    top, sections = re.split(r"(?m)^(?=## )", readme, maxsplit=1)
    title, about = first_words(readme)
    lead, _, rest = about.partition(". ")
    head = [f"# {title}", f"{lead}.", buttons(browser), "<div class='pictures'>"]
    for drawn, path, number, caption in PICTURE.findall(top):
        wide = int.from_bytes((ROOT / path).read_bytes()[16:20]) // 2  # two dots per pixel
        linked = f"[{drawn}](notebooks/00_start_here.ipynb#figure-00-{number})"
        head += [f"<div class='drawn' style='--drawn: {wide}px'>", linked, caption, "</div>"]
    head += ["</div>", rest, top[top.index("Afterwards") :]]
    return "\n\n".join([*head, ROW.sub(r"| [\1](\2) | [\3](\2) |", sections)])
