"""Fill my/ with a learner's own copies of notebooks/; what a learner wrote is never overwritten.

    python -m tools.lab

my/ mirrors notebooks/ at the same depth, so every link leads on. Notebooks come without outputs
and with their answers folded, so that a number can be guessed before it is seen; their sources stay
behind. A copy in which nothing was written follows the course; any other is the learner's, and
stays. To run a lesson is not to write in it. my/.put.json has the hash of what was put there. A
copy for which it has none, even if the file is lost, is also the learner's.
"""

import contextlib
import hashlib
import json
import os
import re
import sys
from pathlib import Path

from tools.lesson import FOLD, fold_answers
from tools.setting import METADATA, NOTEBOOKS, ROOT

MY = ROOT / "my"
RECORD = ".put.json"
NEWS = "@jupyterlab/apputils-extension:notification"


def copies(notebooks: Path) -> dict[str, bytes]:
    """What belongs into my/, by name."""
    found = {}
    for path in sorted(notebooks.rglob("*.*")):
        name = path.relative_to(notebooks).as_posix()
        hidden = "/." in f"/{name}"  # such as an editor's checkpoints
        if path.is_file() and path.suffix != ".py" and not hidden:
            content = path.read_bytes()
            found[name] = cleared(content) if path.suffix == ".ipynb" else content
    return found


def cleared(notebook: bytes) -> bytes:
    """A notebook without its outputs, its answers folded."""
    nb = json.loads(notebook)
    fold_answers(nb)
    return unrun(nb)


def unrun(nb: dict) -> bytes:
    """A notebook as a file, without its outputs."""
    for cell in nb["cells"]:
        if cell["cell_type"] == "code":
            cell.update(execution_count=None, outputs=[])
    return (json.dumps(nb, indent=1, ensure_ascii=False) + "\n").encode()


def fill(notebooks: Path = NOTEBOOKS, my: Path = MY) -> tuple[list[str], list[str]]:
    """Bring my/ up to date. Returns the names written, and those that differ and were kept.

    A name is kept in silence while the course still has what was put there.
    """
    record, wanted = recorded(my), copies(notebooks)
    written, kept, put = [], [], {}
    for name, content in wanted.items():
        new, *before = digests(name, content)
        old, here = record.get(name), my / name
        old = new if old in before else old
        now = digests(name, here.read_bytes()) if here.exists() else []
        if now and not {old, new} & {*now}:  # the learner's
            put |= {name: old} if old else {}
            kept += [name] if old != new else []
            continue
        put[name] = new
        if new not in now:
            place(here, content)
            written.append(name)
    for name in record.keys() - wanted.keys():  # the course no longer has it
        here = my / name
        if here.exists() and record[name] in digests(name, here.read_bytes()):
            here.unlink()
    place(my / RECORD, json.dumps(put, indent=1).encode())
    return written, kept


def recorded(my: Path) -> dict[str, str]:
    """The hash of each copy as it was put into my/; of none where the record is lost or broken."""
    try:
        record = json.loads((my / RECORD).read_bytes())
    except (FileNotFoundError, ValueError):
        return {}
    return record if isinstance(record, dict) else {}


def done(my: Path = MY) -> str:
    """ "01 3 of 3, 02 1 of 3": the checks that have passed in each saved sheet of exercises."""
    found = []
    for sheet in sorted(my.glob("exercises/*.ipynb")):
        text = sheet.read_text(encoding="utf-8", errors="replace")
        names = {*re.findall(r"\bchecks\.(\w+)\(", text)}
        right = sum(f'"{name}: right' in text for name in names)
        found += [f"{sheet.stem.split('_')[0]} {right} of {len(names)}"] if right else []
    return ", ".join(found)


def no_news() -> None:
    """Keep this environment's JupyterLab from asking about news, if we may write there."""
    settings = Path(sys.prefix) / "share/jupyter/lab/settings/overrides.json"
    with contextlib.suppress(PermissionError):
        if not settings.exists():
            settings.parent.mkdir(parents=True, exist_ok=True)
            settings.write_text(json.dumps({NEWS: {"fetchNews": "false"}}))


def digests(name: str, content: bytes) -> list[str]:
    """The hash of a file; of a notebook, that of what a learner writes in it, which is neither
    outputs nor metadata, nor the empty cell that JupyterLab adds below the last.

    A notebook has a second one, which edition 0.1.0 recorded: of the whole as it was put there.
    """
    hashed = [content]
    with contextlib.suppress(KeyError, TypeError, ValueError):  # not a notebook, or a broken one
        nb = json.loads(content) if name.endswith(".ipynb") else {}
        nb["cells"] = [cell for cell in nb["cells"] if "".join(cell["source"]).strip()]
        nb["metadata"], parts = METADATA, []
        for cell in nb["cells"]:
            text = "".join(cell["source"])
            parts.append([text, cell["cell_type"], cell["id"], cell.get("attachments") or {}])
            cell["source"] = text if text.startswith(FOLD) else text.splitlines(keepends=True)
        hashed = [json.dumps(parts).encode(), unrun(nb)]
    return [hashlib.sha256(text).hexdigest() for text in hashed]


def place(path: Path, content: bytes) -> None:
    """Write a file whole or, if interrupted, not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.part")
    part.write_bytes(content)
    os.replace(part, path)


def main() -> int:
    try:
        written, kept = fill()
        no_news()
    except OSError as error:  # above all a full disk
        needs = sum(map(len, copies(NOTEBOOKS).values())) / 1e6
        print(
            f"{MY} needs {needs:.1f} MB, and could not be filled: {error}. What you wrote is safe."
        )
        print("Make room or choose another folder for the course, then run `make lab` again.")
        return 1
    if written:
        print(f"my/: {len(written)} files, your copies of the course, new or brought up to date.")
    if kept:
        print("my/: the course has other versions of these copies. Yours stay as they are:")
        print(*(f"  my/{name}" for name in kept), sep="\n")
        print("For the course's version, rename or delete yours, then run `make lab` again.")
    if right := done():
        print(f"Exercises done: {right}.")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
