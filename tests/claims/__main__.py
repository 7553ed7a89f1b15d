"""python -m tests.claims: plants every defect of every part, and says which claim misses one."""

import importlib
import os

from tools.setting import ENVIRONMENT

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


def main() -> int:
    os.environ.update(ENVIRONMENT)
    missed = []
    for part in PARTS.values():
        missed += part.missed()
        print(f"{part.title}: {len(part.claims)} claims, {len(part.mutants)} defects", flush=True)
    print("\n".join(missed) or "every claim catches what it names")
    return int(bool(missed))


if __name__ == "__main__":
    raise SystemExit(main())
