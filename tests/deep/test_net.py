"""The net holds: each fault planted in a toy lesson turns red, and the report says where."""

import matplotlib.pyplot as plt
import nbformat
import pytest

from performer_course.teaching import figures
from tools.notebooks import ROOT, BuildError, build, problems, read, write

ALT = 'alt=f"a wave from {wave.min():.2f} to {wave.max():.2f}"'
TOY = f"""\
# %% [markdown]
# # Draw a wave

# %%
import time

import matplotlib.pyplot as plt
import numpy as np
from performer_course.teaching.figures import show

t = np.linspace(0, 1, 200)
wave = np.sin(2 * np.pi * t)
print(f"mean of the squares {{np.mean(wave**2):.4f}}")

# %%
fig, ax = plt.subplots()
ax.plot(t, wave)
show(fig, {ALT})

# %% tags=["nbval-ignore-output"]
import os

assert os.name == "nt" or get_ipython().kernel.parent.transport == "ipc"  # see tools/kernels.py
for i in range(300):
    print("line", i, time.perf_counter_ns(), flush=True)
"""
NUMBER, FIGURE, CLOCK = 1, 2, 3  # the code cells of TOY


@pytest.fixture(scope="module")
def toy(tmp_path_factory):
    """The source of a lesson in good order, built."""
    source = tmp_path_factory.mktemp("toy") / "01_toy.py"
    source.write_text(TOY, encoding="utf-8")
    build(source)
    return source


def notebook(source):
    return nbformat.read(source.with_suffix(".ipynb"), as_version=4)


# What a look at the notebook catches, without running it


def in_both(old, new):
    """A fault in the source that the notebook shares, its outputs apart."""
    assert old in TOY

    def fault(nb, source):
        source.write_text(TOY.replace(old, new), encoding="utf-8")
        for cell, wanted in zip(nb.cells, read(source).cells, strict=True):
            cell.source, cell.id = wanted.source, wanted.id

    return fault


def change_the_source(nb, source):
    source.write_text(TOY.replace("200", "300"), encoding="utf-8")


def struck(number, change):
    """A fault of one cell of the notebook."""
    return lambda nb, source: change(nb.cells[number])


def run_out_of_order(nb, source):
    nb.cells[NUMBER].execution_count, nb.cells[FIGURE].execution_count = 2, 1


OUCH = nbformat.v4.new_output("stream", name="stderr", text="ouch")
LOOK = [
    ("01_toy.ipynb, cell 2: source, id differ from 01_toy.py", change_the_source),
    ("cell 4: metadata differ", struck(CLOCK, lambda cell: cell.metadata.pop("tags"))),
    ("cell 2: execution count 2, not 1", run_out_of_order),
    ("cell 3: its figure has no alt text", in_both(f", {ALT}", "")),
    ("cell 3: its alt text is a constant", in_both(ALT, 'alt="a wave"')),
    ("cell 3: its image has no alt text", struck(FIGURE, lambda c: c.outputs[0].metadata.clear())),
    ("cell 2: it printed an error: ouch", struck(NUMBER, lambda cell: cell.outputs.append(OUCH))),
    (
        "cell 2: its output holds the path",
        struck(NUMBER, lambda cell: cell.outputs[0].update(text=str(ROOT / "notebooks"))),
    ),
    (
        "bytes, over the budget of 600,000",
        struck(CLOCK, lambda cell: cell.outputs[0].update(text="x" * 610_000)),
    ),
]


@pytest.mark.parametrize(("said", "fault"), LOOK, ids=[said for said, _ in LOOK])
def test_a_look_catches_the_fault_and_names_file_and_cell(toy, tmp_path, said, fault):
    source = tmp_path / toy.name
    source.write_text(TOY, encoding="utf-8")
    write(notebook(toy), source.with_suffix(".ipynb"))
    nb = notebook(source)
    fault(nb, source)
    write(nb, source.with_suffix(".ipynb"))
    found = problems(source)
    assert [text for text in found if text.startswith("01_toy.ipynb") and said in text], found


# The builder


def test_building_again_writes_the_same_bytes(toy):
    before = toy.with_suffix(".ipynb").read_bytes()
    build(toy)
    assert toy.with_suffix(".ipynb").read_bytes() == before


def test_a_failing_build_names_the_cell_and_leaves_the_notebook(toy, tmp_path):
    source = tmp_path / toy.name
    source.write_text("# %% [markdown]\n# Text.\n\n# %%\n1 / 0\n", encoding="utf-8")
    path = source.with_suffix(".ipynb")
    write(notebook(toy), path)
    before = path.read_bytes()
    with pytest.raises(BuildError, match=r"(?s)01_toy\.py, cell 2 of 2: .*ZeroDivisionError"):
        build(source)
    assert path.read_bytes() == before


def test_a_figure_without_data_or_without_words_is_refused():
    fig, ax = plt.subplots()
    ax.set(xlabel="x", title="nothing")
    with pytest.raises(ValueError, match="draws no data"):
        figures.show(fig, alt="a wave")
    with pytest.raises(ValueError, match="alt must say"):
        figures.show(fig, alt=" ")
    plt.close(fig)
