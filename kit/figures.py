"""Interactive figures: which still figures have one below them.

Each is a script in kit/look/static/figures; all of them use `shared.js` there. Without JavaScript
its place stays empty, and only the still figure is shown.
"""

FOLDER = "figures"  # in kit/look/static, and so in the site's _static
SCRIPTS = {
    "03.3": "waves",
    "04.3": "gram",
    "09.2": "errors",
    "10.2": "brackets",
    "12.5": "fills",
    "15.3": "window",
    "18.3": "window",
    "20.1": "state",
}


def place(figure: str) -> str:
    """Where a link to the interactive figure ends."""
    return f"move-{figure.replace('.', '-')}"


def below(figure: str | None, static: str = "../_static") -> str:
    """The place of the interactive figure below a figure, "03.3", and its scripts; or nothing."""
    script = SCRIPTS.get(figure)
    if script is None:
        return ""
    home = f'<div class="answers-back" id="{place(figure)}" data-answers-back="{script}"></div>'
    names = (f"{static}/{FOLDER}/{name}.js" for name in ("shared", script))
    return home + "".join(f"<script defer src='{name}'></script>" for name in names)
