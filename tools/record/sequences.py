"""Add the part "training" to notebooks/data/antibodies.tsv: chains that directions may learn from.

    python -m tools.record.sequences TABLE    TheraSAbDab_clean.tsv, see notebooks/data/README.md

Of the table's whole antibodies, in an order drawn by a seed, the first MANY that are of the twenty
letters, repeat no chain, and of whose chains neither is alike to one that is there to judge by: to
any of the parts "test" and "calibration" or of KEPT, of its kind, by BOUND or more. Rows that
stand in the file stay as they are; run again, it writes the same.
"""

import csv

import numpy as np

from performer_course.models import antibody
from performer_course.teaching import data
from tools.record.shared import recorder

MANY, BOUND, SEED = 48, 0.9, 0
KEPT = """Abituzumab Bentracimab Bersanlimab Dacetuzumab Dafsolimab Daxdilimab Demcizumab
Dezamizumab Foralumab Idactamab Inclacumab Inebilizumab Itolizumab Orticumab Relatlimab
Vesencumab"""  # to judge once more, by antibodies that no part has


def alike(a: str, b: str) -> float:
    """1 − (letters to change, insert or delete to make b of a) / (letters of the longer)."""
    places = np.arange(len(b) + 1)
    row, letters = places, np.array(list(b))
    for letter in a:  # row[j]: from the letters of a so far to the first j of b
        kept = np.minimum(row[1:] + 1, row[:-1] + (letters != letter))
        row = np.minimum.accumulate(np.append(row[0] + 1, kept) - places) + places
    return 1 - row[-1] / max(len(a), len(b))


def nearest(pair: tuple[str, str], others) -> float:
    """How alike the heavy or the light chain of a pair is at most to one of its kind in others."""
    return max(alike(a, b) for other in others for a, b in zip(pair, other, strict=True))


def drawn(table: dict, judges: dict, many: int = MANY, bound: float = BOUND) -> dict:
    """{name: (heavy, light)} of the first `many` of the table, in a drawn order, that may train."""
    found, seen = {}, {chain for pair in judges.values() for chain in pair}
    for name in np.random.default_rng(SEED).permutation(sorted(set(table) - set(judges))):
        pair = table[name]
        good = set("".join(pair)) <= set(antibody.RESIDUES) and not seen & set(pair)
        if len(found) < many and good and nearest(pair, judges.values()) < bound:
            found[str(name)] = pair
            seen |= set(pair)
    return found


@recorder
def main(path):
    with open(path, encoding="utf-8", newline="") as file:
        table = {
            row["Therapeutic"]: (row["Heavy Sequence"], row["Light Sequence"])
            for row in csv.DictReader(file, delimiter="\t")
            if row["Format"] == "Whole mAb"
        }
    judges = data.antibodies() | data.antibodies("calibration")
    judges |= {name: table[name] for name in KEPT.split()}
    lines = (data.FOLDER / "antibodies.tsv").read_text(encoding="utf-8").splitlines()
    lines = [line for line in lines if line.split("\t")[1] != "training"]
    tests = data.antibodies().values()
    for bound in (np.inf, BOUND):
        found = drawn(table, judges, bound=bound)
        for kind, of in enumerate(("heavy", "light")):
            near = [max(alike(pair[kind], t[kind]) for pair in found.values()) for t in tests]
            print(f"below {bound}: test chains, {of}: nearest {np.round(near, 2)}")
    rows = ["\t".join([name, "training", *pair]) for name, pair in found.items()]
    yield "antibodies.tsv", "\n".join([*lines, *rows, ""])
