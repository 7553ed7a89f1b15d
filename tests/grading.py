"""How nbgrader marks answers in a notebook, and what lies in folders while they are graded."""

import hashlib
import re

EMPTY = "YOUR ANSWER HERE"  # both are nbgrader's: generate_assignment needs no setting
BEGIN, END = "    ### BEGIN SOLUTION\n", "    ### END SOLUTION"


def marked(nb, key, kind="code"):
    """The cells that nbgrader knows as answers (key "solution") or as checks (key "grade")."""
    cells = [cell for cell in nb.cells if cell.metadata.get("nbgrader", {}).get(key)]
    return [cell for cell in cells if cell.cell_type == kind]


def sentences(text):
    """The sentences of a text whose displayed formulas are left out."""
    return re.split(r"(?<=[.?!])\s+", re.sub(r"(?s)\$\$.*?\$\$", "", text).strip())


def digests(*folders, leave=()):
    """What each file below the folders holds."""
    found = {}
    for folder in folders:
        for path in sorted(folder.rglob("*")):
            inside = path.relative_to(folder).parts
            if path.is_file() and inside[0] not in leave and "__pycache__" not in inside:
                found[path] = hashlib.sha256(path.read_bytes()).hexdigest()
    return found
