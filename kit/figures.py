"""Figures that answer back: below which still figure the site has one, and what the page says.

Each is a script in kit/look/static/figures, beside `shared.js`, which all of them use. Where no
script runs the place stays empty, and the still figure stands alone.
"""

FOLDER = "figures"  # in kit/look/static, and so in the site's _static
SCRIPTS = {
    "03.3": "waves",
    "04.3": "gram",
    "09.2": "errors",
    "10.2": "brackets",
    "12.6": "fills",
    "15.3": "window",
    "18.3": "window",
    "20.1": "state",
}


def below(figure: str | None, static: str = "../_static") -> str:
    """The place for what answers back below a figure, "03.3", and its scripts; empty for others."""
    script = SCRIPTS.get(figure)
    if script is None:
        return ""
    home = f"<div class='answers-back' data-answers-back='{script}'></div>"
    names = (f"{static}/{FOLDER}/{name}.js" for name in ("shared", script))
    return home + "".join(f"<script defer src='{name}'></script>" for name in names)
