"""Figures: one style for every lesson, and `show`, which says in words what the figure shows.

Importing this module sets the style. With COURSE_STATIC=1 (building, testing, the static
pages) sliders become single pictures and warnings become errors.
"""

import io
import os
import warnings
from collections.abc import Callable

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
from PIL import Image

from .backend import to_host

# Okabe & Ito (2008): eight colours that readers with any colour vision tell apart. A second
# cue comes with each, the line style, so that a figure also survives a grey printer.
COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
DASHES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (1, 1)), (0, (8, 2)))

plt.rcParams.update(
    {
        "axes.grid": True,
        "axes.labelsize": 14,
        "axes.prop_cycle": mpl.cycler(color=COLORS) + mpl.cycler(linestyle=DASHES),
        "axes.spines.right": False,
        "axes.spines.top": False,
        "axes.titlesize": 14,
        "figure.constrained_layout.use": True,
        "figure.dpi": 100,
        "figure.figsize": (8, 4.5),
        "font.size": 13,
        "grid.alpha": 0.3,
        "image.cmap": "viridis",
        "legend.frameon": False,
        "lines.linewidth": 2.5,
        "lines.markersize": 7,
    }
)

if os.environ.get("COURSE_STATIC") == "1":
    warnings.simplefilter("error")


def show(fig, alt: str) -> None:
    """Put `fig` on the page with `alt`, the sentence that says what it shows.

    The picture goes out as a PNG; beside it, as text, go `alt` and the numbers drawn (`data`),
    so that a reader who cannot see it has it in words, and a test that compares text sees a
    curve that moved. Write `alt` as an f-string over the data. Closes the figure.
    Raises: ValueError where `alt` is empty or the figure draws nothing.
    """
    if not alt.strip():
        raise ValueError("alt must say what the figure shows, got an empty text")
    drawn = data(fig)
    if not drawn:
        raise ValueError("the figure draws no data: nothing to show")
    from IPython import get_ipython
    from IPython.display import display

    text = "\n".join([alt, *drawn])
    if get_ipython() is None:
        print(text)
    else:
        bundle = {"image/png": _png(fig), "text/plain": text}
        display(bundle, metadata={"image/png": {"alt": alt}}, raw=True)
    plt.close(fig)


def data(fig) -> list[str]:
    """One line for each thing drawn in `fig`: what it is, how many points, and where they lie."""
    lines = []
    for number, ax in enumerate(fig.axes, start=1):
        lines += [f"[{number}] {line}" for line in _drawn(ax)]
    return lines


def slider(f: Callable, **controls):
    """f with a slider for each of `controls`, as ipywidgets.interact takes them: (min, max).

    With COURSE_STATIC=1, f is called once, at the first value of each control.
    """
    if os.environ.get("COURSE_STATIC") == "1":
        f(**{name: values[0] for name, values in controls.items()})
        return
    from ipywidgets import interact

    interact(f, **controls)


def gram(ax, K, title: str = "", *, largest: float | None = None):
    """The Gram matrix K (n, p), of any library, as a picture in `ax`: rows down, columns across.

    Colours run from 0 to `largest` (default: the largest |entry|), the same for every picture
    that is given the same `largest`; a matrix with negative entries gets a two-sided scale.
    Returns the image, for a colour bar.
    """
    K = to_host(K)
    largest = np.abs(K).max() if largest is None else largest
    least, cmap = (-largest, "PuOr") if K.min() < 0 else (0, "viridis")
    ax.set(title=title, xticks=[], yticks=[])
    ax.grid(visible=False)
    return ax.imshow(K, vmin=least, vmax=largest, cmap=cmap, interpolation="nearest")


def _drawn(ax):
    """What `ax` draws, one line of text each. Guides (axhline and the like) are left out."""
    for line in ax.lines:
        points = line.get_data_3d() if hasattr(line, "get_data_3d") else line.get_data()
        yield _summary("line", line.get_label(), points)
    for collection in ax.collections:
        values = collection.get_array()
        if hasattr(collection, "_offsets3d"):
            points = collection._offsets3d
        elif len(collection.get_offsets()) > 1:
            points = np.ma.getdata(collection.get_offsets()).T
        elif hasattr(collection, "_vec"):  # a surface in 3-D
            points = collection._vec[:3]
        else:
            paths = collection.get_paths()
            points = np.concatenate([p.vertices for p in paths]).T if paths else ()
        if values is not None:
            points = [*points, np.ravel(values)]
        yield _summary("points", collection.get_label(), points)
    for image in ax.images:
        yield _summary(f"image {image.get_array().shape}", "", [np.ravel(image.get_array())])
    if ax.patches:
        boxes = [p.get_path().get_extents(p.get_patch_transform()) for p in ax.patches]
        yield _summary("patches", "", np.transpose([box.p1 for box in boxes]))


def _summary(kind, label, coordinates):
    """'line "K": 200 points; 0 to 1, mean .34, path 1.9; ...', one part a coordinate."""
    coordinates = [np.asarray(to_host(c), dtype=float).ravel() for c in coordinates]
    coordinates = [c[np.isfinite(c)] for c in coordinates]
    parts = [_numbers(c) for c in coordinates if c.size]
    name = f' "{label}"' if label and not str(label).startswith("_") else ""
    size = max((c.size for c in coordinates), default=0)
    return f"{kind}{name}: {size} points; " + "; ".join(parts)


def _numbers(values):
    """The range of `values`, their mean, and the length of the path through them, in order."""
    scale = np.abs(values).max()
    path = np.abs(np.diff(values)).sum()
    low, high, mean, path = (
        0.0 if abs(v) <= 1e-9 * scale else v
        for v in (values.min(), values.max(), values.mean(), path)
    )
    return f"{low:.3g} to {high:.3g}, mean {mean:.3g}, path {path:.3g}"


def _png(fig):
    """The figure as PNG bytes, the same on each run: no software stamp, at most 256 colours."""
    raw = io.BytesIO()
    fig.savefig(raw, format="png", metadata={"Software": None})
    small = io.BytesIO()
    image = Image.open(raw).convert("RGB").quantize(256, dither=Image.Dither.NONE)
    image.save(small, format="png", optimize=True)
    return small.getvalue()
