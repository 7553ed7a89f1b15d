"""The net holds: each fault planted in a toy lesson turns red, and the report says where."""

import ast
import gc
import io
import os
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import matplotlib.pyplot as plt
import nbformat
import numpy as np
import pytest
from PIL import Image

from performer_course import figures
from tools import notebooks
from tools.kernels import AsyncKernel, Kernel
from tools.notebooks import ENVIRONMENT, ROOT, BuildError, build, problems, read, write

ALT = 'alt=f"a wave from {wave.min():.2f} to {wave.max():.2f}"'
TOY = f"""\
# %% [markdown]
# # Draw a wave

# %%
import time

import matplotlib.pyplot as plt
import numpy as np
from performer_course.figures import show

t = np.linspace(0, 1, 200)
wave = np.sin(2 * np.pi * t)
print(f"mean of the squares {{np.mean(wave**2):.4f}}")

# %%
fig, ax = plt.subplots()
ax.plot(t, wave)
show(fig, {ALT})

# %% tags=["nbval-ignore-output"]
print(time.perf_counter_ns())
"""
NUMBER, FIGURE, CLOCK = 1, 2, 3  # the code cells of TOY
SMALL = """\
# %%
import os

assert os.name == "nt" or get_ipython().kernel.parent.transport == "ipc"  # see tools/kernels.py
for i in range(300):
    print("line", i, flush=True)

# %% tags=["nbval-ignore-output"]
import time

print(time.perf_counter_ns())
"""


@pytest.fixture(scope="module")
def toy(tmp_path_factory):
    """The source of a lesson in good order, built."""
    source = tmp_path_factory.mktemp("toy") / "01_toy.py"
    source.write_text(TOY, encoding="utf-8")
    build(source)
    return source


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """The source of a lesson that builds in a second, built."""
    source = tmp_path_factory.mktemp("small") / "02_small.py"
    source.write_text(SMALL, encoding="utf-8")
    build(source)
    return source


def notebook(source):
    return nbformat.read(source.with_suffix(".ipynb"), as_version=4)


# What running the notebooks again catches


def replace(old, new):
    """A fault in the source of a cell, whose outputs stay."""

    def fault(cell):
        assert old in cell.source
        cell.source = cell.source.replace(old, new)

    return fault


RERUN = {  # the cell it strikes, the fault, what the report must hold
    "curve": (FIGURE, replace("wave)\n", "np.sin(6 * np.pi * t))\n"), ["path 4", "path 12"]),
    "number": (
        NUMBER,
        lambda cell: cell.outputs[0].update(text="mean of the squares 0.4985\n"),
        ["0.4985", "0.4975"],
    ),
    "output": (NUMBER, lambda cell: cell.outputs.clear(), ["Unexpected output"]),
    "name": (NUMBER, replace("import show", "import show, absent"), ["ImportError", "absent"]),
    "warning": (
        NUMBER,
        replace("print", "import warnings; warnings.warn('ah')\nprint"),
        ["UserWarning"],
    ),
}


def nbval(folder, *options):
    """A run of pytest over `folder`, with the options of `make test` and these."""
    (folder / "pytest.ini").write_text("[pytest]\n")
    always = [f"@{ROOT}/tests/whole.txt", f"--nbval-sanitize-with={ROOT}/tests/rounding.cfg"]
    always += ["-p", "no:cacheprovider", "--junitxml=report.xml"]
    command = [sys.executable, "-m", "pytest", *always, *options]
    plug_in = {"PYTHONPATH": str(ROOT), "PYTEST_PLUGINS": "tools.kernels"}
    environment = os.environ | ENVIRONMENT | plug_in
    return subprocess.Popen(command, cwd=folder, env=environment, stdout=subprocess.DEVNULL)


@pytest.fixture(scope="module")
def report(toy, small, tmp_path_factory):
    """{(notebook, cell): what is said, '' where it passed} for clean, faulty and dead ones."""
    folders = [tmp_path_factory.mktemp(name) for name in ("faults", "dead")]
    write(notebook(toy), folders[0] / "clean.ipynb")
    faulty = notebook(toy)
    for number, fault, _ in RERUN.values():
        cell = nbformat.from_dict(notebook(toy).cells[number])
        cell.id = f"cell-{len(faulty.cells)}"
        fault(cell)
        faulty.cells.append(cell)
    write(faulty, folders[0] / "faulty.ipynb")
    dead = notebook(small)
    dead.cells[1].source = "import os; os._exit(1)"
    write(dead, folders[1] / "dead.ipynb")
    runs = nbval(folders[0], "-n", "2"), nbval(folders[1], "-n", "0", "--nbval-cell-timeout=5")
    assert [run.wait() for run in runs] == [1, 1]
    return {
        (case.get("classname"), case.get("name")): "".join(said.text or "" for said in case)
        for folder in folders
        for case in ElementTree.parse(folder / "report.xml").iter("testcase")
    }


def test_a_lesson_in_good_order_passes_both_nets(toy, report):
    assert problems(toy) == []
    assert [report["clean.ipynb", f"Cell {n}"] for n in range(3)] == ["", "", ""]
    assert [report["faulty.ipynb", f"Cell {n}"] for n in range(3)] == ["", "", ""]


@pytest.mark.parametrize("name", RERUN)
def test_a_rerun_catches_the_fault_and_shows_old_and_new(report, name):
    number = 3 + list(RERUN).index(name)
    said = report["faulty.ipynb", f"Cell {number}"]
    assert [word for word in [f"Cell {number}", *RERUN[name][2]] if word not in said] == []


def test_a_rerun_reports_a_dead_kernel_after_the_time_a_cell_has(report):
    assert report["dead.ipynb", "Cell 0"] == ""
    assert "Cell 1: Timeout of 5 seconds" in report["dead.ipynb", "Cell 1"]


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such sockets")
def test_no_two_kernels_ask_for_the_same_address():
    """Ports are free when they are chosen, and may be taken when a kernel asks for them."""
    managers = Kernel(), AsyncKernel()
    assert [manager.transport for manager in managers] == ["ipc", "ipc"]
    folders = [Path(manager.ip).parent for manager in managers]
    assert folders[0] != folders[1]
    assert all(list(folder.iterdir()) == [] for folder in folders)
    del managers
    gc.collect()
    assert not any(folder.exists() for folder in folders)


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


def add_a_cell_to_the_source(nb, source):
    source.write_text(TOY + "\n# %%\nprint(1)\n", encoding="utf-8")


def struck(number, change):
    """A fault of one cell of the notebook."""
    return lambda nb, source: change(nb.cells[number])


def run_out_of_order(nb, source):
    nb.cells[NUMBER].execution_count, nb.cells[FIGURE].execution_count = 2, 1


def display_without_show(nb, source):
    nb.cells[NUMBER].outputs += notebook(source).cells[FIGURE].outputs
    nb.cells[NUMBER].outputs[-1].metadata = {}


OUCH = nbformat.v4.new_output("stream", name="stderr", text="ouch")
ALONE = {"image/png": {"alt": "a straight line"}}
LOOK = [
    ("01_toy.ipynb, cell 2: source, id differ from 01_toy.py", change_the_source),
    ("01_toy.ipynb has 4 cells, 01_toy.py 5", add_a_cell_to_the_source),
    ("cell 4: metadata differ", struck(CLOCK, lambda cell: cell.metadata.pop("tags"))),
    (
        "execution count None, not 1",
        struck(NUMBER, lambda c: c.update(execution_count=None)),
    ),
    ("cell 2: execution count 2, not 1", run_out_of_order),
    ("cell 3: its figure has no alt text", in_both(f", {ALT}", "")),
    ("cell 3: its alt text is a constant", in_both(ALT, 'alt="a wave"')),
    ("cell 3: its alt text is a constant", in_both(ALT, 'alt="a " + f"wave"')),
    (
        "its figure has no image",
        struck(FIGURE, lambda c: c.outputs[0].data.pop("image/png")),
    ),
    ("cell 3: its image has no alt text", struck(FIGURE, lambda c: c.outputs[0].metadata.clear())),
    (
        "cell 3: its image has no alt text, or not the one printed beside it",
        struck(FIGURE, lambda cell: cell.outputs[0].metadata.update(ALONE)),
    ),
    ("cell 2: its image has no alt text", display_without_show),
    (
        "cell 3: its image has not two dots for each pixel of its width",
        struck(FIGURE, lambda c: c.outputs[0].metadata["image/png"].update(width=801)),
    ),
    (
        "cell 3: its image has not two dots for each pixel of its width",
        struck(FIGURE, lambda c: c.outputs[0].metadata["image/png"].pop("width")),
    ),
    ("cell 2: it printed an error: ouch", struck(NUMBER, lambda cell: cell.outputs.append(OUCH))),
    (
        "cell 2: its output holds the path",
        struck(NUMBER, lambda cell: cell.outputs[0].update(text=str(ROOT / "notebooks"))),
    ),
    (
        "bytes, over the budget of 600,000",
        struck(CLOCK, lambda cell: cell.outputs[0].update(text="x" * 610_000)),
    ),
    ("figures.absent does not exist", in_both("import show", "import show, absent")),
    ("performer_course.absent.show does not exist", in_both("course.figures", "course.absent")),
    (
        "performer_course.checks.absent does not exist",
        in_both("course.figures import show", "course import checks\nchecks.absent"),
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


def test_a_file_beside_the_checkout_with_its_name_is_no_module_of_the_course(tmp_path, monkeypatch):
    (tmp_path / "course.py").touch()
    monkeypatch.setattr(notebooks, "ROOT", tmp_path / "course")
    assert notebooks.missing_names(ast.parse("wave.mean()")) == []


def test_a_curve_that_changed_with_its_source_is_left_to_the_rerun(toy, tmp_path):
    source = tmp_path / toy.name
    nb = notebook(toy)
    in_both("2 * np.pi", "6 * np.pi")(nb, source)
    write(nb, source.with_suffix(".ipynb"))
    assert problems(source) == []


def test_a_figure_drawn_by_a_function_of_an_earlier_cell_is_in_order(toy, tmp_path):
    source = tmp_path / toy.name
    indented = TOY.replace("\nfig, ax", "\ndef draw():\n    fig, ax")
    indented = indented.replace("\nax.", "\n    ax.").replace("\nshow", "\n    show")
    source.write_text(indented + "\n# %%\ndraw()\n", encoding="utf-8")
    nb, built = read(source), notebook(toy).cells
    for count, (cell, old) in enumerate(
        zip(nb.cells[1:], [*built[1:], built[FIGURE]], strict=True)
    ):
        cell.outputs, cell.execution_count = old.outputs, count + 1
    nb.cells[FIGURE].outputs = []
    write(nb, source.with_suffix(".ipynb"))
    assert problems(source) == []


# The builder


def test_building_again_writes_the_same_bytes(toy):
    before = toy.with_suffix(".ipynb").read_bytes()
    build(toy)
    assert toy.with_suffix(".ipynb").read_bytes() == before


def test_a_volatile_cell_gets_a_new_output_with_a_new_source(small, tmp_path):
    source = tmp_path / small.name
    source.write_text(SMALL.replace("perf_counter_ns()", "time_ns()"), encoding="utf-8")
    write(notebook(small), source.with_suffix(".ipynb"))
    build(source)
    assert notebook(source).cells[1].outputs != notebook(small).cells[1].outputs


def test_many_prints_make_one_output(small):
    (output,) = notebook(small).cells[0].outputs
    assert output.text.count("\n") == 300


@pytest.mark.parametrize(
    ("line", "error"), [("1 / 0", "ZeroDivisionError"), ("import os; os._exit(1)", "died")]
)
def test_a_failing_build_names_the_cell_and_leaves_the_notebook(small, tmp_path, line, error):
    source = tmp_path / small.name
    source.write_text(SMALL + f"\n# %% [markdown]\n# Text.\n\n# %%\n{line}\n", encoding="utf-8")
    path = source.with_suffix(".ipynb")
    write(notebook(small), path)
    before = path.read_bytes()
    with pytest.raises(BuildError, match=rf"(?s)02_small\.py, cell 4 of 4: .*{error}"):
        build(source)
    assert path.read_bytes() == before


def test_a_failing_lesson_does_not_stop_the_others(small, tmp_path, monkeypatch, capsys):
    lessons = [tmp_path / "01_good.py", tmp_path / "02_bad.py"]
    for source, line in zip(lessons, ["6 * 7", "1 / 0"], strict=True):
        source.write_text(f"# %%\n{line}\n", encoding="utf-8")
    monkeypatch.setattr(notebooks, "NOTEBOOKS", tmp_path)
    monkeypatch.setattr(notebooks, "sources", lambda: lessons)
    assert notebooks.main([]) == 1
    assert [path.name for path in tmp_path.glob("*.ipynb")] == ["01_good.ipynb"]
    said = capsys.readouterr()
    assert said.out.splitlines()[-1].endswith("1 failed")
    assert "02_bad.py, cell 1 of 1" in said.err


def test_a_lesson_that_does_not_exist_is_an_error_in_words(capsys):
    assert notebooks.main(["99"]) == 2
    assert capsys.readouterr().err == "no lesson starts with 99\n"


def test_a_check_prints_what_it_finds_and_fails(toy, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(notebooks, "sources", lambda: [toy])
    assert (notebooks.main(["--check"]), capsys.readouterr().err) == (0, "")
    monkeypatch.setattr(notebooks, "sources", lambda: [toy, tmp_path / "new.py"])
    (tmp_path / "new.py").write_text(SMALL, encoding="utf-8")
    assert notebooks.main(["--check"]) == 1
    assert capsys.readouterr().err == "new.ipynb is missing: run `make notebooks`\n"


# The words beside a figure say what it shows

T = np.linspace(0, 1, 41)
X, Y = np.meshgrid(T, T)


def solid(ax, height):
    ax.figure.add_subplot(projection="3d").plot_surface(X, Y, height)


def annotated(ax, text, tip=1.0, title=""):
    ax.plot(T, T)
    ax.set_title(title)
    ax.annotate(text, (tip, tip), (0.5, 0.5), arrowprops={"arrowstyle": "->"})


def inset(ax, values):
    ax.plot(T, T)
    ax.inset_axes([0.5, 0.1, 0.4, 0.4]).plot(T, values)


PAIRS = {
    "a curve mirrored": [lambda ax, s=s: ax.plot(T, np.exp(T[::s])) for s in (1, -1)],
    "a curve flipped": [lambda ax, s=s: ax.plot(T, s * np.sin(7 * T)) for s in (1, -1)],
    "a curve tripled": [lambda ax, s=s: ax.plot(T, np.sin(s * T)) for s in (6, 18)],
    "an axis made logarithmic": [lambda ax, f=f: getattr(ax, f)(T + 1) for f in ("plot", "loglog")],
    "a small value beside a large": [lambda ax, s=s: ax.semilogy([s, 1e14]) for s in (1e3, 2e3)],
    "a point moved": [lambda ax, s=s: ax.scatter([s], [0]) for s in (1, 2)],
    "a cloud bent": [lambda ax, s=s: ax.scatter(T, T**s) for s in (1, 2)],
    "a bar that hangs": [lambda ax, s=s: ax.bar([0, 1], [s, 2]) for s in (-1, -2)],
    "a histogram": [lambda ax, s=s: ax.hist(T**s) for s in (1, 2)],
    "steps": [lambda ax, s=s: ax.stairs(T**s) for s in (1, 2)],
    "error bars": [lambda ax, s=s: ax.errorbar(T, T, yerr=s) for s in (1, 2)],
    "a band": [lambda ax, s=s: ax.fill_between(T, T**s) for s in (1, 2)],
    "a contour": [lambda ax, s=s: ax.contour(X**s + Y, levels=[0.7]) for s in (1, 2)],
    "a mesh": [lambda ax, s=s: ax.pcolormesh(X**s + Y) for s in (1, 2)],
    "a Gram matrix": [lambda ax, s=s: figures.gram(ax, np.exp(-s * X * Y)) for s in (1, 2)],
    "a surface": [lambda ax, s=s: solid(ax, X**s * Y) for s in (1, 2)],
    "arrows": [lambda ax, s=s: ax.quiver([0, 1], [0, 1], [1, 1], [s, s]) for s in (1, -1)],
    "a text": [lambda ax, s=s: annotated(ax, s) for s in ("0.1", "0.2")],
    "the tip of an arrow": [lambda ax, s=s: annotated(ax, "", s) for s in (1, 2)],
    "a title": [lambda ax, s=s: annotated(ax, "", 1, s) for s in ("m = 8", "m = 9")],
    "an inset": [lambda ax, s=s: inset(ax, T**s) for s in (1, 2)],
}


def words(draw):
    fig, ax = plt.subplots()
    draw(ax)
    said = figures.data(fig)
    plt.close(fig)
    return said


@pytest.mark.parametrize("what", PAIRS)
def test_the_words_beside_a_figure_change_with(what):
    before, after = PAIRS[what]
    assert words(before) == words(before) != words(after)


def test_a_figure_without_data_or_without_words_is_refused():
    fig, ax = plt.subplots()
    ax.set(xlabel="x", title="nothing")
    with pytest.raises(ValueError, match="draws no data"):
        figures.show(fig, alt="a wave")
    with pytest.raises(ValueError, match="alt must say"):
        figures.show(fig, alt=" ")
    plt.close(fig)


def test_a_colour_map_keeps_its_steps_even_where_few_entries_lie():
    fig, ax = plt.subplots()
    image = figures.gram(ax, np.linspace(0, 1, 1600).reshape(40, 40) ** 6)
    fig.colorbar(image, ax=ax)
    pixels = np.asarray(Image.open(io.BytesIO(figures._png(fig))).convert("RGB"))
    drawn = np.unique(pixels.reshape(-1, 3), axis=0).astype(int)
    steps = plt.cm.viridis(np.linspace(0, 1, 256), bytes=True)[:, :3].astype(int)
    off = np.abs(steps[:, None] - drawn).max(axis=2).min(axis=1)  # from the nearest colour drawn
    assert len(drawn) <= 128
    assert off.max() <= 5  # of 255; with 64 colours, or a palette of the commonest, 10
    plt.close(fig)


def test_a_picture_that_did_not_change_keeps_its_bytes():
    fig, ax = plt.subplots()
    ax.plot(T, T)
    assert figures._png(fig) == figures._png(fig)
    plt.close(fig)
