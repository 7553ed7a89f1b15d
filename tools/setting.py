"""Where the course lies, and what its lessons run under.

Nothing but Python's own is imported here, so that tests can start where there is no Jupyter, as
on a bare machine with a GPU.
"""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
NOTEBOOKS = ROOT / "notebooks"
COURSE = "How kernels became linear attention"  # its name

# What every kernel that builds or tests a lesson runs under: one thread, since the last bits of
# a sum change with their number, and the static form of sliders.
ENVIRONMENT = {
    "COURSE_STATIC": "1",
    "JUPYTER_PLATFORM_DIRS": "1",
    "MKL_NUM_THREADS": "1",
    "MPLBACKEND": "agg",
    "MPLCONFIGDIR": str(ROOT / "build/matplotlib"),  # not in a home folder: it may be read-only
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "PERFORMER_BACKEND": "numpy",
    "PYTHONHASHSEED": "0",
    "VECLIB_MAXIMUM_THREADS": "1",
}

METADATA = {  # of each notebook
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}


def edition(root: Path = ROOT) -> str:
    """The newest edition in CHANGELOG.md, as pages and decks name it."""
    said = (root / "CHANGELOG.md").read_text(encoding="utf-8")
    version, date = re.search(r"(?m)^## (\d+\.\d+\.\d+), (\d\d? \w+ \d{4})$", said).groups()
    return f"Edition {version}, {date}"
