"""Build the notebooks, one way: lesson.py → executed lesson.ipynb, solution → exercise or project.

    python -m tools.notebooks            every lesson and solution, in parallel
    python -m tools.notebooks 01         the sources whose name starts with 01
    python -m tools.notebooks --check    run nothing, say what is not in sync with its source

A second run writes the same bytes: cell ids come from the source, nothing carries a time, and
cells tagged `nbval-ignore-output` (timings, device names) keep the outputs they have until the
source of one of them changes. Where another cell prints other numbers than before, a line says
which. A notebook whose run fails is not written; the one before stays.
"""

import argparse
import ast
import asyncio
import base64
import hashlib
import os
import re
import sys
import time
from concurrent.futures import ThreadPoolExecutor, as_completed
from difflib import SequenceMatcher
from pathlib import Path

import jupytext
import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, DeadKernelError

from tools import lesson, shape
from tools.kernels import AsyncKernel
from tools.lesson import VOLATILE
from tools.setting import ENVIRONMENT, METADATA, NOTEBOOKS, ROOT

BUDGET = 600_000  # bytes per lesson; GitHub shows one of up to a million
NUMBER = re.compile(r"(?<![\w.])[-−]?\d[\d,]*(?:\.\d+)?(?:e[-+]?\d+)?")


class BuildError(RuntimeError):
    """A lesson did not run; the text names the file, the cell and the error."""


def sources(folder: Path = NOTEBOOKS) -> list[Path]:
    """The lessons of a folder, then the solutions of exercises and of projects, in order."""
    places = (folder, folder / "solutions", folder / "projects/solutions")
    return [source for place in places for source in sorted(place.glob("*.py"))]


def handed_out(source: Path) -> Path:
    """What students get of a solution: exercises/NN_….ipynb, or projects/pN_….ipynb."""
    home = source.parent.parent
    folder = home if home.name == "projects" else home / "exercises"
    return folder / source.with_suffix(".ipynb").name


def read(source: Path) -> nbformat.NotebookNode:
    """The notebook that a py:percent source says, with cell ids that depend on it alone."""
    nb = jupytext.read(source, fmt="py:percent")
    nb.nbformat, nb.nbformat_minor, nb.metadata = 4, 5, nbformat.from_dict(METADATA)
    seen = {}
    for cell in nb.cells:
        key = hashlib.sha256(f"{cell.cell_type}\n{cell.source}".encode()).hexdigest()[:12]
        seen[key] = seen.get(key, 0) + 1
        cell.id = key if seen[key] == 1 else f"{key}-{seen[key]}"
    return nb


def execute(nb: nbformat.NotebookNode, source: Path) -> None:
    """Run every cell in order, in a fresh kernel, in the folder of its source."""
    begun = []
    client = NotebookClient(
        nb,
        timeout=300,
        kernel_name="python3",
        kernel_manager_class=AsyncKernel,
        resources={"metadata": {"path": str(source.parent)}},
        record_timing=False,
        coalesce_streams=True,
        extra_arguments=["--log-level=40"],
        on_cell_start=lambda cell, cell_index: begun.append(cell_index + 1),
    )
    try:
        with asyncio.Runner(loop_factory=asyncio.SelectorEventLoop) as runner:  # closes its loop
            runner.run(client.async_execute())
    except (CellExecutionError, DeadKernelError, TimeoutError) as error:
        place = f"{source.name}, cell {begun[-1]} of {len(nb.cells)}"
        raise BuildError(f"{place}: {error}") from error
    nb.metadata = nbformat.from_dict(METADATA)


def keep_volatile_outputs(nb, previous: nbformat.NotebookNode) -> None:
    """Give the volatile cells the outputs they had, where none of them has changed: all of a
    notebook are of one run, because two may print the same timing."""
    before = {cell.id: cell.outputs for cell in previous.cells if cell.cell_type == "code"}
    volatile = [cell for cell in nb.cells if VOLATILE in cell.metadata.get("tags", ())]
    if before.keys() >= {cell.id for cell in volatile}:
        for cell in volatile:
            cell.outputs = before[cell.id]


def changes(nb: nbformat.NotebookNode, previous: nbformat.NotebookNode) -> list[str]:
    """Which numbers cells print that differ from before: "§6, cell 23: 0.300 → 0.200, 76 → 100"."""

    def told(notebook):
        sections = lesson.parse(notebook).sections
        cells = [(section.name, cell) for section in sections for cell in section.cells]
        return [(name, c) for name, c in cells if c.kind == "code" and VOLATILE not in c.tags]

    old, new = told(previous), told(nb)
    found = []
    for i, j, k, m in _blocks([cell.source for _, cell in old], [cell.source for _, cell in new]):
        for (_, before), (section, cell) in zip(old[i:j], new[k:m], strict=False):
            a, b = ([n for o in c.outputs for n in NUMBER.findall(o.text)] for c in (before, cell))
            if len(a) == len(b):
                pairs = [(x, y) for x, y in zip(a, b, strict=True) if x != y]
            else:
                pairs = [
                    (" ".join(a[p:q]), " ".join(b[r:t]))
                    for p, q, r, t in _blocks(a, b)
                    if a[p:q] != b[r:t]
                ]
            if pairs:
                said = ", ".join(f"{x or 'none'} → {y or 'none'}" for x, y in pairs)
                found.append(f"§{section}, cell {cell.number}: {said}")
    return found


def _blocks(a: list, b: list) -> list[tuple[int, int, int, int]]:
    """The parts of two lists that correspond, equal or not: a[i:j] is now b[k:m]."""
    return [at[1:] for at in SequenceMatcher(None, a, b, autojunk=False).get_opcodes()]


def student(nb: nbformat.NotebookNode) -> nbformat.NotebookNode:
    """The exercise that a solution makes: stubs for answers, no outputs."""
    from nbgrader.preprocessors import ClearOutput, ClearSolutions

    nb = nbformat.from_dict(nb)
    for preprocessor in (ClearSolutions(), ClearOutput()):
        nb, _ = preprocessor.preprocess(nb, {})
    nb.metadata = nbformat.from_dict(METADATA)
    return nb


def write(nb: nbformat.NotebookNode, path: Path) -> None:
    nbformat.validate(nb)
    path.parent.mkdir(exist_ok=True)
    path.write_text(nbformat.writes(nb).rstrip("\n") + "\n", encoding="utf-8", newline="\n")


def build(source: Path) -> tuple[float, list[str]]:
    """Execute one source and write what it makes: the seconds the run took, and its `changes`."""
    nb, path, changed = read(source), source.with_suffix(".ipynb"), []
    start = time.perf_counter()
    execute(nb, source)
    seconds = time.perf_counter() - start
    if path.exists():
        previous = nbformat.read(path, as_version=4)
        keep_volatile_outputs(nb, previous)
        changed = changes(nb, previous)
    write(nb, path)
    if source.parent.name == "solutions":
        write(student(nb), handed_out(source))
    of_readme = [cell for cell in nb.cells if "readme" in cell.metadata.get("tags", ())]
    for number, cell in enumerate(of_readme, start=1):
        shown = (output.get("data", {}) for output in cell.outputs)
        (drawn,) = [data["image/png"] for data in shown if "image/png" in data]
        (source.parent / f"picture_{number}.png").write_bytes(base64.b64decode(drawn))
    return seconds, changed


def problems(source: Path) -> list[str]:
    """What is wrong with the committed notebook of a source that a re-run cannot see."""
    path, expected = source.with_suffix(".ipynb"), read(source)
    if not path.exists():
        return [f"{path.name} is missing: run `make notebooks`"]
    nb = nbformat.read(path, as_version=4)
    found = []
    for number, (cell, wanted) in enumerate(zip(nb.cells, expected.cells, strict=False), 1):
        keys = ("cell_type", "source", "id", "metadata")
        unlike = [key for key in keys if cell[key] != wanted[key]]
        if unlike:
            found.append(
                f"{path.name}, cell {number}: {', '.join(unlike)} differ from {source.name}: "
                "run `make notebooks`"
            )
            break
    if len(nb.cells) != len(expected.cells):
        counts = f"{len(nb.cells)} cells, {source.name} {len(expected.cells)}"
        found.append(f"{path.name} has {counts}: run `make notebooks`")
    code = [(n, cell) for n, cell in enumerate(nb.cells, 1) if cell.cell_type == "code"]
    for count, (number, cell) in enumerate(code, start=1):
        if cell.execution_count != count:
            found.append(
                f"{path.name}, cell {number}: execution count {cell.execution_count}, not "
                f"{count}: the notebook was not run in order from top to bottom"
            )
        found += [f"{path.name}, cell {number}: {text}" for text in _cell_problems(cell)]
    size = path.stat().st_size
    if size > BUDGET:
        found.append(f"{path.name} is {size:,} bytes, over the budget of {BUDGET:,}")
    return found


def _cell_problems(cell) -> list[str]:
    """What is wrong with one executed code cell."""
    found = []
    for output in cell.outputs:
        if output.output_type == "error" or output.get("name") == "stderr":
            found.append(f"it printed an error: {output.get('evalue') or output.get('text')}")
    text = "".join(str(output) for output in cell.outputs)
    paths = (str(ROOT), str(Path.home()))
    found += [f"its output holds the path {path}" for path in paths if path in text]
    found += [text for call in _shows(cell.source) for text in _alt_problems(call)]
    return found + _image_problems(cell)


def _shows(source: str) -> list[ast.Call]:
    """The calls of show(fig, alt=…) in the code of a cell."""
    calls = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)]
    return [c for c in calls if getattr(c.func, "attr", getattr(c.func, "id", "")) == "show"]


def _alt_problems(call: ast.Call) -> list[str]:
    """What is wrong with the alt text of one call of show."""
    alts = [k.value for k in call.keywords if k.arg == "alt"] + call.args[1:2]
    if not alts:
        return ["its figure has no alt text"]
    if any(isinstance(node, ast.Name) for node in ast.walk(alts[0])):
        return []
    return ["its alt text is a constant: compute it from the data, alt=f'…'"]


def _image_problems(cell) -> list[str]:
    """What is wrong with the images of a cell."""
    found = []
    for output in cell.outputs:
        if "image/png" in output.get("data", {}):
            alt = output.metadata.get("image/png", {}).get("alt", "")
            if not alt or not output.data.get("text/plain", "").startswith(alt):
                found.append("its image has no alt text, or not the one printed beside it")
    return found


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("names", nargs="*", help="starts of names, such as 01")
    parser.add_argument("--check", action="store_true", help="run nothing, say what is not in sync")
    given = parser.parse_args(arguments)
    chosen = [s for s in sources() if not given.names or s.name.startswith(tuple(given.names))]
    if not chosen:
        print(f"no lesson starts with {' or '.join(given.names)}", file=sys.stderr)
        return 2
    if given.check:
        found = [problem for source in chosen for problem in problems(source)]
        print("".join(f"{problem}\n" for problem in found), end="", file=sys.stderr)
        return int(bool(found))
    os.environ.update(ENVIRONMENT)
    start, failed = time.perf_counter(), 0
    with ThreadPoolExecutor(max_workers=os.cpu_count()) as pool:
        runs = {pool.submit(build, source): source for source in chosen}
        for number, run in enumerate(as_completed(runs), start=1):
            label = f"[{number}/{len(runs)}] {runs[run].relative_to(NOTEBOOKS)}"
            try:
                takes = f"{shape.minutes(lesson.parse(read(runs[run]))):5d} minutes to read"
                seconds, changed = run.result()
                print(f"{label:<50} {seconds:6.1f} s{takes}", *changed, sep="\n    ", flush=True)
            except BuildError as error:
                failed += 1
                print(f"{label:<50} FAILED\n{error}", file=sys.stderr, flush=True)
    total = time.perf_counter() - start
    print(f"{len(runs) - failed} notebooks in {total:.1f} s, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
