"""Write notebooks/data/python_reference.txt.gz: the text that lesson 16 learns to write.

python -m tools.record.reference_text    with Python 3.11.7: other versions have other words
"""

from pydoc_data import topics

from tools.record.shared import recorder


@recorder
def main():
    """The topics of `help()` in the order of their names."""
    text = "\n".join(topics.topics[name] for name in sorted(topics.topics))
    yield "python_reference.txt.gz", text
