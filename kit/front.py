"""The first page of the site: README, laid out for somebody who was sent a link.

README is what GitHub shows. Here its sections follow the title of the course, three buttons, the
pictures and a figure to move.
"""

import re

from kit import figures
from kit.head import first_words

BUTTONS = {
    "Start": "notebooks/00_start_here.html",
    "Run it in the browser": "kit/pages/in_the_browser.html",
    "Teach with it": "kit/pages/teach.html",
}
BROWSER = "Run it in the browser"
WINDOW = next(number for number, script in figures.SCRIPTS.items() if script == "window")
MOVE = (
    "Move the sliders: on the left are the attention weights of a speech recogniser, on the right "
    f"those of a cheaper approximation, which lesson {WINDOW[:2]} explains."
)
PICTURE = re.compile(r"(?ms)(!\[[^\]]+\]\(notebooks/picture_(\d)\.png\))\n\n(^\*\w.+?\*)$")
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
    for drawn, number, caption in PICTURE.findall(top):
        linked = f"[{drawn}](notebooks/00_start_here.ipynb#figure-00-{number})"
        head += [linked, caption]
    head += ["</div>", MOVE, figures.below(WINDOW, "_static"), rest, top[top.index("Afterwards") :]]
    return "\n\n".join([*head, ROW.sub(r"| [\1](\2) | [\3](\2) |", sections)])
