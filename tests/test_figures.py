"""The style of figures: what the back row can read, and words that hold for the data."""

import io
import re
from itertools import combinations

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.axis import Axis
from matplotlib.patches import FancyBboxPatch
from matplotlib.text import Text
from PIL import Image

from performer_course.teaching import drawings, figures
from tests.support.examples import public_functions


def drawn(width, height, **style):
    """A figure with every kind of letter, as `show` leaves it: all its texts, after drawing."""
    fig, axes = plt.subplots(1, 2, figsize=(width, height))
    axes[0].plot(np.geomspace(1, 1e4, 50), label="a")
    axes[0].set(xlabel="x", ylabel="y", title="t", yscale="log")
    axes[0].tick_params(**style)
    axes[0].legend(title="of", fontsize=7)
    axes[0].text(1, 10, "here", fontsize=6)
    axes[1].set_xticks([0, 1], ["one", "two"], fontsize=5)
    fig.colorbar(axes[1].imshow(np.eye(3))).set_label("weight", fontsize=8)
    axes[1].inset_axes([0.5, 0.5, 0.4, 0.4]).plot([1, 2])
    fig.suptitle("above", fontsize=9)
    figures._readable(fig)
    axes[0].set_ylim(1e-9, 1e9)  # brings other ticks
    fig.draw_without_rendering()
    texts = [text for text in fig.findobj(Text) if text.get_text()]
    sizes = {text.get_text(): text.get_size() for text in texts}
    plt.close(fig)
    return sizes


@pytest.mark.parametrize("shape", [(8, 6), (13, 4)])
def test_no_letter_is_below_24_pixels_on_a_slide_that_the_figure_fills(shape):
    slide = min(1280 / (100 * shape[0]), 598 / (100 * shape[1]))
    pixels = {text: size * 100 / 72 * slide for text, size in drawn(*shape).items()}
    assert {"here", "of", "a", "one", "weight", "above", "x", "t"} <= pixels.keys()
    assert len(pixels) > 20
    assert min(pixels.values()) >= 23.99


def test_letters_that_are_large_stay_so():
    sizes = drawn(8, 4.5, labelsize=20)
    assert sizes["x"] == sizes["t"] == plt.rcParams["axes.labelsize"]
    assert sizes["40"] == 20


def test_what_is_shown_is_readable(monkeypatch, capsys):
    fig, ax = plt.subplots()
    ax.plot([0, 1])
    ax.set_title("small", fontsize=5)
    figures.show(fig, alt="a line")
    assert ax.title.get_size() == pytest.approx(17.28 * 4.5 / 5.98)


def test_a_caption_stands_below_its_figure_and_with_it(monkeypatch):
    fig, ax = plt.subplots()
    ax.plot([0, 1])
    shown = []
    monkeypatch.setattr("IPython.get_ipython", lambda: True)
    monkeypatch.setattr(
        "IPython.display.display", lambda *given, **kept: shown.append((given, kept))
    )
    figures.show(fig, alt="a line", caption="It rises.")
    (_, told), ((below,), _) = shown
    assert told["metadata"]["image/png"] == {"alt": "a line", "width": 800, "caption": "It rises."}
    assert below == {"text/markdown": "*It rises.*", "text/plain": "It rises."}


def test_what_is_printed_in_a_fold_is_behind_its_title_and_read_as_text(monkeypatch, capsys):
    shown = []
    with figures.fold("All heads"):
        print("a < b")
    assert capsys.readouterr().out == "All heads\na < b\n"
    monkeypatch.setattr("IPython.get_ipython", lambda: True)
    monkeypatch.setattr("IPython.display.display", lambda given, raw: shown.append(given))
    with figures.fold("All heads"):
        print("a < b")
    ((page, text),) = ((given["text/html"], given["text/plain"]) for given in shown)
    assert re.sub("<.*?>", "", page) == "All heads\na &lt; b"
    assert text == "All heads\na < b"
    assert capsys.readouterr().out == ""
    with pytest.raises(ValueError, match="to fold under 'Empty'"), figures.fold("Empty"):
        pass


def test_a_picture_has_two_dots_a_pixel_and_keeps_its_colours():
    fig, ax = plt.subplots(figsize=(7.5, 4))
    ax.set_facecolor("0.85")  # as much as anything
    red, green = np.meshgrid(np.linspace(0, 1, 100), np.linspace(0, 1, 40))  # many
    ax.imshow(np.stack([red, green, 1 - red * green], axis=-1))
    ax.plot([0, 99], [20, 20], color=figures.COLORS[3], linewidth=0.8)  # little
    ax.set(xlim=(-60, 160))
    raw = io.BytesIO()
    fig.savefig(raw, dpi=200)
    with Image.open(raw) as image:
        drawn = np.asarray(image.convert("RGB"), dtype=int)
    with Image.open(io.BytesIO(figures._png(fig))) as image:
        kept = np.asarray(image.convert("RGB"), dtype=int)
    plt.close(fig)
    assert kept.shape == drawn.shape == (800, 1500, 3)
    off = np.abs(kept - drawn).max(axis=-1)
    ground = (drawn == drawn[400, 200]).all(axis=-1)
    assert ground.mean() > 0.1
    assert off[ground].max() <= 2
    assert off.max() <= 24


@pytest.mark.parametrize(
    ("a", "b", "word"), [([1, 2, 3], [2, 3, 4], "below"), (np.array([3.0, 4.0]), 2, "above")]
)
def test_a_comparing_word_is_the_one_that_holds_everywhere(a, b, word):
    assert figures.compared(a, b) == word
    other = figures.compared(b, a, "lower", "higher")
    assert other == {"below": "higher", "above": "lower"}[word]


@pytest.mark.parametrize(
    ("a", "b", "counts"),
    [
        ([1, 3], 2, "a < b in 1 and a > b in 1 of 2"),
        ([1, 2], 2, "a < b in 1 and a > b in 0 of 2"),  # a tie is no comparison
        ([1, np.nan], 2, "a < b in 1 and a > b in 0 of 2"),
        ([], 2, "of 0 entries"),
    ],
)
def test_where_no_word_holds_everywhere_none_is_given(a, b, counts):
    with pytest.raises(ValueError, match=counts):
        figures.compared(a, b)


def test_the_word_of_a_trend_holds_for_every_step():
    assert figures.trend([3, 2, -1]) == "falls"
    assert figures.trend(np.array([1.0, 1.5, 4.0])) == "rises"
    assert figures.trend((1, 2), "shrinks", "grows") == "grows"
    for y in ([1, 2, 1], [2, 1, 3], [1, 2, 2], [2, 1, 1], [1, np.nan], [1]):
        with pytest.raises(ValueError, match="neither 'falls' nor 'rises'"):
            figures.trend(y)


def overlaps(fig):
    """Which texts of a figure, once drawn, meet; without the numbers at the ticks of an axis."""
    ticks = {tick for axis in fig.findobj(Axis) for tick in axis.get_ticklabels(which="both")}
    texts = [t for t in fig.findobj(Text) if t.get_text() and t.get_visible() and t not in ticks]
    boxes = [(text.get_text(), text.get_window_extent()) for text in texts]
    return [(a, b) for (a, at), (b, there) in combinations(boxes, 2) if at.overlaps(there)]


def clashes(fig):
    """Which labels overlap each other, or the edge of a box or of the picture."""
    fig.draw_without_rendering()
    found = overlaps(fig)
    labels = [text.get_window_extent() for text in fig.axes[0].texts]
    edges = [part.get_window_extent() for part in [fig, *fig.findobj(FancyBboxPatch)]]
    cuts = [(a, b) for a in labels for b in edges if b.union([a, b]).bounds != b.bounds]
    return found + [(a, b) for a, b in cuts if a.overlaps(b)]


@pytest.mark.parametrize("draw", public_functions(drawings))
def test_no_label_of_a_drawing_meets_another_or_an_edge_on_a_slide(draw):
    fig, alt = draw()
    figures._readable(fig)
    assert clashes(fig) == []
    first, second, *_ = labels = fig.axes[0].texts
    assert all(label.get_text().replace("$", "").split()[-1] in alt for label in labels)
    first.set_position(second.get_position())
    assert clashes(fig)
    plt.close(fig)
