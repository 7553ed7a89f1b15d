"""Write notebooks/data/python_reference.txt.gz: the text that lesson 16 learns to write.

python -m tools.record.reference_text    with Python 3.11.7: other versions have other words
"""

import gzip
from pydoc_data import topics

from tools.setting import NOTEBOOKS

FILE = NOTEBOOKS / "data" / "python_reference.txt.gz"


def reference() -> bytes:
    """The topics of `help()` in the order of their names, compressed; no time is stored."""
    text = "\n".join(topics.topics[name] for name in sorted(topics.topics))
    return gzip.compress(text.encode(), mtime=0)


if __name__ == "__main__":
    FILE.write_bytes(reference())
