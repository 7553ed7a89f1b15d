"""How nbgrader marks answers in a notebook."""

import re

EMPTY = "YOUR ANSWER HERE"  # both are nbgrader's: generate_assignment needs no setting


def marked(nb, key, kind="code"):
    """The cells that nbgrader knows as answers (key "solution") or as checks (key "grade")."""
    cells = [cell for cell in nb.cells if cell.metadata.get("nbgrader", {}).get(key)]
    return [cell for cell in cells if cell.cell_type == kind]


def sentences(text):
    """The sentences of a text whose displayed formulas are left out."""
    return re.split(r"(?<=[.?!])\s+", re.sub(r"(?s)\$\$.*?\$\$", "", text).strip())
