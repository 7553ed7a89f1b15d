"""Write notebooks/data/language_texts.json.gz and language_kinds.json.gz.

    python -m tools.record.language_texts

Prose to train, to choose and to judge by, from three novels by Jane Austen as Debian's package
r-cran-janeaustenr 1.0.0-1 holds them, without R: nothing is changed but where an excerpt begins
and ends. And to judge only: a licence, a manual, and two lessons of this course.
"""

import io
import json
import re
import struct
import subprocess
import tempfile
import zlib
from pathlib import Path

from tools.record.shared import recorder

FETCH = "apt-get download r-cran-janeaustenr=1.0.0-1; dpkg-deb -x *.deb ."
MEMBER = "usr/lib/R/site-library/janeaustenr/data/Rdata.rdb"
EXCERPTS = {  # part: (novel, first character, number of characters)
    "train": ("EMMA", 17_919, 240_000),
    "choose": ("Persuasion", 15_188, 60_000),
    "window 0": ("MANSFIELD PARK", 208_466, 9_400),
    "window 1": ("MANSFIELD PARK", 440_000, 9_400),
    "window 2": ("MANSFIELD PARK", 660_000, 9_400),
    "between": ("MANSFIELD PARK", 113_294, 40_000),
    "prompt": ("MANSFIELD PARK", 92_552, 6_082),
}
LICENCE = Path("/usr/share/common-licenses/LGPL-2.1")
MANUAL = """apt-get download curl=7.88.1-10+deb12u15; dpkg-deb -x *.deb .
MANWIDTH=80 man --nh --nj -l usr/share/man/man1/curl.1.gz | col -bx"""
LESSONS = "df78b62:notebooks/06_weighted_means.py", "df78b62:notebooks/14_near_and_far.py"


def novels() -> dict[str, str]:
    """{first line: text} of each novel of the package: strings of R, one for each line."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["sh", "-ec", FETCH], cwd=folder, check=True)
        left, found = Path(folder, MEMBER).read_bytes(), {}
    while left:
        unpack = zlib.decompressobj()  # each after its length, in four bytes
        file = io.BytesIO(unpack.decompress(left[4:]))
        left, lines = unpack.unused_data, []
        file.seek(re.search(rb"\0\0\0\x10(?=....\0\x04\0\x09)", file.getvalue(), re.S).end())
        for _ in range(struct.unpack(">I", file.read(4))[0]):
            _, size = struct.unpack(">Ii", file.read(8))
            lines.append(file.read(max(size, 0)).decode())
        found[lines[0]] = "\n".join(lines)
    return found


def manual() -> str:
    """The beginning of curl's manual page, 80 characters wide."""
    with tempfile.TemporaryDirectory() as folder:
        page = subprocess.run(["sh", "-ec", MANUAL], cwd=folder, check=True, capture_output=True)
    return page.stdout.decode()[page.stdout.index(b"curl(1)") :][:20_000]


def lessons() -> str:
    """The paragraphs of two lessons that are plain text, or hold no formula but names."""
    found = []
    for lesson in LESSONS:
        source = subprocess.run(["git", "show", lesson], check=True, capture_output=True, text=True)
        cells = re.findall(r"^# %% \[markdown\].*\n((?:#.*\n)+)", source.stdout, re.M)
        found += "\n#\n".join(cells).replace("\n# ", "\n").split("\n#\n")
    found = [x.removeprefix("# ").strip() for x in found if x.isascii()]
    return "\n\n".join(re.sub(r"[${}]", "", x) for x in found if not re.search(r"\\|\$\$|\|", x))


@recorder
def main():
    texts = novels()
    found = {part: texts[novel][at:][:n].strip() for part, (novel, at, n) in EXCERPTS.items()}
    kinds = {"licence": LICENCE.read_text("utf-8"), "manual": manual(), "lesson": lessons()}
    for name, content in ("language_texts", found), ("language_kinds", kinds):
        yield f"{name}.json.gz", json.dumps(content, ensure_ascii=False, indent=0)
