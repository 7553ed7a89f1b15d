"""Plants every mutant of every part and writes CLAIMS.md.

python -m tests.claims          plant all, write CLAIMS.md
python -m tests.claims --check  plant all, say whether CLAIMS.md is what comes out
"""

import importlib
import os
import sys

from tests.claims.harness import PAGE
from tools.setting import ENVIRONMENT

INTRODUCTION = """# What the tests claim, and what each claim catches

Written by `make claims`: every mutant below is planted in the package,
and the claims run against it. A claim is worth what it catches.
"""
PARTS = {
    name: importlib.import_module(f"tests.claims.test_{name}").PART
    for name in (
        "random_features",
        "softmax_kernel",
        "attention",
        "performer",
        "card",
        "near_far",
        "recurrent",
    )
}


def main(arguments) -> int:
    os.environ.update(ENVIRONMENT)  # on one thread, the one in which `executed` looks
    sections, missed = [INTRODUCTION], []
    for part in PARTS.values():
        caught = part.matrix()
        sections.append(part.render(caught))
        missed += part.missed(caught)
        print(f"{part.title}: {len(part.claims)} claims, {len(part.mutants)} mutants")
    page = "\n".join(sections)
    print("\n".join(missed) or "every claim catches what it names")
    if "--check" in arguments:
        stale = not PAGE.exists() or PAGE.read_text(encoding="utf-8") != page
        print("CLAIMS.md is stale: run `make claims`" if stale else "CLAIMS.md is true")
        return int(stale or bool(missed))
    PAGE.write_text(page, encoding="utf-8")
    return int(bool(missed))


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
