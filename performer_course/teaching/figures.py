"""Figures: one style for all lessons, `show`, which also says in words what a figure shows, and
`fold`, for measurements that a reader opens.

Importing this module sets the style. With COURSE_STATIC=1 (builds, tests, static pages) sliders
become single pictures and warnings become errors.
"""

import contextlib
import html
import io
import os
import warnings
from collections.abc import Callable, Iterator

import numpy as np

from .._arguments import needed
from ..backend import to_host

with needed(__name__, "lessons"):
    import matplotlib as mpl
    import matplotlib.pyplot as plt
    from matplotlib.collections import PathCollection
    from matplotlib.quiver import Quiver
    from matplotlib.text import Text
    from PIL import Image

# Okabe & Ito (2008): colours that readers with any colour vision can tell apart. Line styles are a
# second cue, so that a figure can also be printed in grey.
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
    warnings.filterwarnings("default", module=r"ipykernel|zmq|tornado|jupyter_client")


def show(fig, alt: str, caption: str = "") -> None:
    """Put `fig` on the page with `alt`, a sentence that says what it shows, and a caption below.

    The picture is a PNG at two dots per pixel, with the `width` at which a page shows it. Next to
    it, as text, are `alt` and the numbers drawn (`data`), so that a reader who cannot see it has it
    in words, and a test that compares text notices when a curve changes. Write `alt` as an f-string
    over the data, and comparing words with `compared` or `trend`. Small letters are enlarged for
    the back row (`_readable`). Closes the figure. Raises: ValueError if `alt` is empty or the
    figure draws nothing.
    """
    if not alt.strip():
        raise ValueError("alt must say what the figure shows, got an empty text")
    _readable(fig)
    drawn = data(fig)
    if not drawn:
        raise ValueError("the figure draws no data: nothing to show")
    from IPython import get_ipython
    from IPython.display import display

    text = "\n".join([alt, *drawn])
    if get_ipython() is None:
        print(text)
    else:
        metadata = {"alt": alt, "width": round(fig.get_size_inches()[0] * fig.dpi)}
        metadata |= {"caption": caption} if caption else {}
        bundle = {"image/png": _png(fig), "text/plain": text}
        display(bundle, metadata={"image/png": metadata}, raw=True)
        if caption:
            display({"text/markdown": f"*{caption}*", "text/plain": caption}, raw=True)
    plt.close(fig)


@contextlib.contextmanager
def fold(title: str) -> Iterator[None]:
    """What is printed inside goes on the page behind `title`, which opens it with a click.

    As text it is the title and what was printed, so that it is read, searched and tested like any
    other output; outside a notebook it is printed so. Raises: ValueError if nothing is printed.
    """
    with contextlib.redirect_stdout(io.StringIO()) as inside:
        yield
    text = inside.getvalue().rstrip()
    if not text:
        raise ValueError(f"nothing was printed to fold under {title!r}")
    from IPython import get_ipython
    from IPython.display import display

    whole = f"{title}\n{text}"
    if get_ipython() is None:
        print(whole)
    else:
        title, text = html.escape(title, quote=False), html.escape(text, quote=False)
        page = f"<details class='fold'><summary>{title}</summary>\n<pre>{text}</pre></details>"
        display({"text/html": page, "text/plain": whole}, raw=True)


def data(fig) -> list[str]:
    """One line for each thing drawn in `fig`: what it is, how many points, and where they are."""
    fig.draw_without_rendering()
    lines = []
    axes = [part for ax in fig.axes for part in (ax, *ax.child_axes)]
    axes = [ax for ax in axes if ax.get_label() != "<colorbar>"]
    for number, ax in enumerate(axes, start=1):
        drawn = list(_drawn(ax))
        lines += [f"[{number}] {line}" for line in (_labels(ax), *drawn) if drawn and line]
    return lines


def compared(a, b, less: str = "below", greater: str = "above") -> str:
    """`less` if a < b everywhere, `greater` if a > b everywhere: a word for `alt`.

    a, b: numbers or arrays of any library, of shapes that broadcast. Error: exact, no tolerance.
    Raises: ValueError if neither holds, so a lesson stops when its data change their order.
    """
    a, b = np.broadcast_arrays(to_host(a), to_host(b))
    if a.size and (a < b).all():
        return less
    if a.size and (a > b).all():
        return greater
    raise ValueError(
        f"neither {less!r} nor {greater!r}: a < b in {(a < b).sum()} and a > b in "
        f"{(a > b).sum()} of {a.size} entries"
    )


def trend(y, down: str = "falls", up: str = "rises") -> str:
    """`down` if each entry of y (n,) is less than the one before, `up` if each is greater.

    Error: exact, no tolerance: for a curve that fluctuates give its two ends, y[[0, -1]]. Raises:
    ValueError if y goes both ways, or has fewer than two entries.
    """
    y = to_host(y)
    return compared(y[1:], y[:-1], down, up)


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
    """The Gram matrix K (n, p), of any library, as a picture in `ax`, rows down.

    Colours run from 0 to `largest` (default: the largest |entry|); pass one `largest` to make
    pictures comparable. A matrix with negative entries gets a two-sided scale. Returns the image,
    for a colour bar.
    """
    K = to_host(K)
    largest = np.abs(K).max() if largest is None else largest
    least, cmap = (-largest, "PuOr") if K.min() < 0 else (0, "viridis")
    ax.set(title=title, xticks=[], yticks=[])
    ax.grid(visible=False)
    return ax.imshow(K, vmin=least, vmax=largest, cmap=cmap, interpolation="nearest")


def _labels(ax):
    """'title "A"; x "degree"; y "features", log scale', without missing parts."""
    parts = [f'title "{ax.get_title()}"'] if ax.get_title() else []
    for name in ("x", "y", "z")[: 3 if ax.name == "3d" else 2]:
        axis = getattr(ax, f"{name}axis")
        scale = "" if axis.get_scale() == "linear" else f", {axis.get_scale()} scale"
        if axis.get_label_text() or scale:
            parts.append(f'{name} "{axis.get_label_text()}"{scale}')
    return "; ".join(parts)


def _drawn(ax):
    """What `ax` draws, one line of text each."""
    for line in ax.lines:
        points = line.get_data_3d() if hasattr(line, "get_data_3d") else line.get_data()
        yield _summary("line", line.get_label(), points)
    for collection in ax.collections:
        yield _summary("points", collection.get_label(), _points(ax, collection))
    for image in ax.images:
        yield _summary(f"image {image.get_array().shape}", "", [np.ravel(image.get_array())])
    if ax.patches:
        paths = [p.get_path().transformed(p.get_patch_transform()) for p in ax.patches]
        corners = np.concatenate([path.vertices for path in paths]).T
        yield _summary(f"{len(paths)} patches", "", corners)
    for text in ax.texts:
        ends = [text.get_position(), getattr(text, "xy", text.get_position())]
        yield _summary("text", text.get_text(), np.transpose(ends))


def _points(ax, collection):
    """The coordinates of a scatter, or the corners of contours and surfaces; then values."""
    offsets, paths = np.ma.getdata(collection.get_offsets()), collection.get_paths()
    corners = np.concatenate([path.vertices for path in paths]) if paths else offsets
    scatter = isinstance(collection, PathCollection) or len(offsets) > 1
    points = offsets if scatter else corners
    if isinstance(collection, Quiver):
        points = np.column_stack([offsets, collection.U, collection.V])
    if ax.name == "3d":  # projected points are in order of depth: drop it
        points = np.sort(points, axis=0)
    values = collection.get_array()
    return [*np.transpose(points), *([] if values is None else [np.ravel(values)])]


def _summary(kind, label, coordinates):
    """'line "K": 200 points; 0 to 1, mean 0.34, ...; ...', one part per coordinate."""
    coordinates = [np.asarray(to_host(c), dtype=float).ravel() for c in coordinates]
    coordinates = [c[np.isfinite(c)] for c in coordinates]
    parts = [_numbers(c) for c in coordinates if c.size]
    name = f' "{label}"' if label and not str(label).startswith("_") else ""
    size = max((c.size for c in coordinates), default=0)
    return f"{kind}{name}: {size} points; " + "; ".join(parts)


def _numbers(values):
    """'0 to 1, mean 0.34, path 1.9, via 1 0.8 0.1 0 0': range, mean, path length, five samples.

    The length of the path through the values, in order, depends on the frequency; the samples,
    first to last, show whether a curve is mirrored or flipped.
    """
    via = values[np.linspace(0, values.size - 1, 5).round().astype(int)]
    path = np.abs(np.diff(values)).sum()
    scale = np.abs(values).max()
    numbers = [values.min(), values.max(), values.mean(), path, *via]
    low, high, mean, path, *via = (f"{0.0 if abs(v) <= 1e-12 * scale else v:.3g}" for v in numbers)
    return f"{low} to {high}, mean {mean}, path {path}, via {' '.join(via)}"


SLIDE = (12.8, 5.98)  # inches at 100 dots: a slide of 1280 × 720 below its claim
BACK_ROW = 24 * 72 / 100  # points that make 24 dots there


def _readable(fig):
    """Enlarge every text to 24 dots of a slide that the figure fills.

    A figure larger than the slide is shrunk there, so its letters must be larger in proportion: 13
    points where it is 8 × 4.5 inches, 17.6 where it is 13 wide.
    """
    width, height = fig.get_size_inches()
    least = BACK_ROW * max(width / SLIDE[0], height / SLIDE[1])
    for text in fig.findobj(Text):
        text.set_size(max(text.get_size(), least))


def _png(fig):
    """The figure as PNG bytes, two dots per pixel, the same on each run: no software stamp.

    Its 128 colours leave no colour far off and then move to the most frequent ones (`kmeans`), so
    that thin lines and rare bright entries keep their colour, and a uniform background its own.
    """
    raw = io.BytesIO()
    fig.savefig(raw, format="png", dpi=2 * fig.dpi, metadata={"Software": None})
    few = Image.open(raw).convert("RGB")
    few = few.quantize(128, method=Image.Quantize.MAXCOVERAGE, kmeans=1, dither=Image.Dither.NONE)
    small = io.BytesIO()
    few.save(small, format="png", optimize=True)
    return small.getvalue()
