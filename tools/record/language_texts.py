"""Write notebooks/data/language_texts.json.gz: prose to train, to choose and to judge by.

    python -m tools.record.language_texts

From three novels by Jane Austen as Debian's package r-cran-janeaustenr 1.0.0-1 holds them, without
R. Nothing is changed but where an excerpt begins and ends.
"""

import gzip
import io
import json
import re
import struct
import subprocess
import tempfile
import zlib
from pathlib import Path

from performer_course import data

FILE = data.FOLDER / "language_texts.json.gz"
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


def main() -> None:
    texts = novels()
    found = {part: texts[novel][at:][:n].strip() for part, (novel, at, n) in EXCERPTS.items()}
    content = json.dumps(found, ensure_ascii=False, indent=0).encode()
    FILE.write_bytes(gzip.compress(content, mtime=0))


if __name__ == "__main__":
    main()
