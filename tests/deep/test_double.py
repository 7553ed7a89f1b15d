"""Lessons say the same on the strict test double, and whatever signs LAPACK takes; no label of
their figures covers another."""

import base64
import io
from contextlib import redirect_stdout

import matplotlib.pyplot as plt
import nbformat
import numpy as np
import pytest
from PIL import Image

from performer_course import backend
from performer_course.teaching import figures
from tests.support.lessons import with_free_signs
from tests.support.strict_double import DEVICE, Namespace, poisoned
from tests.test_figures import overlaps
from tools.notebooks import NOTEBOOKS, VOLATILE, sources

LESSONS = [source for source in sources() if source.parent == NOTEBOOKS]
# Their subject is the signs of LAPACK's QR, and what published code made of them.
ABOUT_QR = {"05_orthogonal_features", "a1_errata"}


def said(cell):
    """What a committed cell printed, and its figures in words; a caption is a constant."""
    shown = [output for output in cell.outputs if "text/markdown" not in output.get("data", {})]
    return "\n".join(output.get("text") or output.data["text/plain"] for output in shown)


def lines(text):
    """The lines, sorted: what a cell prints before and after a figure is stored as one text."""
    return sorted(line for line in text.splitlines() if line.strip())


# They compute on JAX, whatever the backend is; deep/test_training.py and test_picture.py turn the
# signs of their axes.
ON_JAX = {"16_train_a_performer", "a4_a_picture_from_a_state"}
# Its tasks run in other processes, without a double; tests/test_lesson_19.py runs them on it here.
ON_WORKERS = {"19_beyond_one_machine"}
each_lesson_on_a_backend = pytest.mark.parametrize(
    "lesson",
    [lesson for lesson in LESSONS if lesson.stem not in ON_JAX | ON_WORKERS],
    ids=lambda lesson: lesson.stem,
)


def pictures(cell):
    """The pictures that a committed cell drew, as arrays."""
    found = (output.get("data", {}).get("image/png") for output in cell.outputs)
    return [pixels(base64.b64decode(png)) for png in found if png]


def pixels(png):
    with Image.open(io.BytesIO(png)) as image:
        return np.asarray(image.convert("RGB"), dtype=float)


def same(a, b):
    """Whether two pictures differ by smoothing alone: last bits move an edge by part of a pixel."""
    return a.shape == b.shape and np.mean(np.abs(a - b).max(axis=-1) > 64) < 1e-3


@each_lesson_on_a_backend
def test_a_lesson_says_and_draws_the_same_on_a_device_and_whatever_signs_lapack_takes(
    lesson, monkeypatch
):
    drawn, met, data = [], [], figures.data

    def seen(fig):
        said = data(fig)  # first, as `show` does: it lays the figure out
        met.extend(overlaps(fig))
        drawn.append(pixels(figures._png(fig)))
        return said

    monkeypatch.setattr(figures, "data", seen)
    monkeypatch.setitem(backend.BACKENDS, "double", lambda: Namespace(DEVICE))
    monkeypatch.setenv("PERFORMER_BACKEND", "double")
    monkeypatch.chdir(NOTEBOOKS)
    for name, factorise in with_free_signs(np.random.default_rng(0)).items():
        if name != "qr" or lesson.stem not in ABOUT_QR:
            monkeypatch.setattr(np.linalg, name, factorise)
    cells, namespace = nbformat.read(lesson.with_suffix(".ipynb"), as_version=4).cells, {}
    for number, cell in enumerate(cells, start=1):
        if cell.cell_type == "code":
            code = compile(cell.source, f"{lesson.name}, cell {number}", "exec")
            drawn.clear()
            with poisoned(), redirect_stdout(io.StringIO()) as printed:
                exec(code, namespace)
            assert met == [], f"labels of cell {number} overlap"
            # The double and its dtypes have names of their own.
            text = printed.getvalue().replace("'double', ", "").replace("array_api_strict.", "")
            if VOLATILE not in cell.metadata.get("tags", ()):
                assert lines(text) == lines(said(cell)), f"cell {number}"
                pairs = zip(drawn, pictures(cell), strict=True)
                assert all(same(*pair) for pair in pairs), f"the picture of cell {number} is old"
    plt.close("all")
