"""Sizes of an experiment for the machine at hand: full ones, or small ones for a web browser.

Pyodide's NumPy has no BLAS, so that products of matrices take about 10 to 80 times as long there.
"""

from typing import TypeVar

import numpy as np

Sizes = TypeVar("Sizes", int, tuple[int, ...])


def _has_blas() -> bool:
    """Whether NumPy was built with a BLAS, as everywhere but in a browser. It says so itself."""
    return np.show_config(mode="dicts")["Build Dependencies"]["blas"].get("found", False)


def sizes(full: Sizes, small: Sizes, what: str) -> Sizes:
    """`full`; or `small` where NumPy has no BLAS, which is then printed. what: their unit.

    >>> sizes((1024, 4096), (256, 1024), "tokens")  # here, with BLAS
    (1024, 4096)
    """
    if _has_blas():
        return full
    print(f"NumPy has no BLAS here: {_listed(small)} {what} instead of {_listed(full)}.")
    return small


def _listed(numbers: Sizes) -> str:
    """1,024, 4,096 and 16,384."""
    *first, last = (f"{n:,}" for n in np.atleast_1d(numbers))
    return f"{', '.join(first)} and {last}" if first else last
