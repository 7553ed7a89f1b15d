"""What the recorders share: a lesson's own functions, the real model, its chains, tables as files.

Each module beside this one writes files of notebooks/data/, such as `python -m tools.record.curve`.
"""

import csv
import io
import itertools
import os
from collections.abc import Callable, Iterable
from contextlib import redirect_stdout
from pathlib import Path

import numpy as np
from tqdm import tqdm

from performer_course.models import antibody
from performer_course.teaching import data
from tools.notebooks import read
from tools.setting import ENVIRONMENT, NOTEBOOKS


def lesson(name: str, tag: str = "", until: str = "") -> dict:
    """What the code cells of a lesson define: those tagged `tag`, or up to the one with `until`."""
    os.environ.update(ENVIRONMENT)
    names = {}
    with redirect_stdout(io.StringIO()):
        for cell in read(NOTEBOOKS / name).cells:
            tagged = not tag or tag in cell.metadata.get("tags", ())
            if cell.cell_type == "code" and tagged and until not in names:
                exec(compile(cell.source, name, "exec"), names)
    return names


def lesson_16(until: str) -> dict:
    """The names of lesson 16 after the cell that defines `until`; what it trains is trained."""
    return lesson("16_train_a_performer.py", until=until)


def seeded(names: dict, seed: int) -> tuple[Callable, dict]:
    """The lesson's rng(n) for a seed, 0 its own, and a start; `bits` judges by its windows."""

    def rng(n):
        return np.random.default_rng(n if seed == 0 else [n, seed])

    start = names["transformer"].init(rng(6), names["config"])
    del start["W"]
    names["test"] = names["windows"](rng(3), names["held_out"], 320)
    return rng, start


def chosen(names: dict, ways: Iterable, rates: Iterable, bits: Callable) -> tuple[dict, list]:
    """The best rate of each way by bits(way, rate) on a tenth of the training blocks, set aside
    while it learns from the others; and a line for each trial."""
    whole = {name: names[name] for name in ("held_out", "to_learn")}
    names["held_out"] = whole["to_learn"][4::10]
    names["to_learn"] = np.delete(whole["to_learn"], np.s_[4::10], axis=0)
    trials = {(way, rate): bits(way, rate) for way in tqdm(ways) for rate in rates}
    names.update(whole)
    rows = [{"attention": a, "rate": n, "bits": f"{x:.6f}"} for (a, n), x in trials.items()]
    return {way: min(rates, key=lambda rate: trials[way, rate]) for way in ways}, rows


def moments_of(names: dict, rng: Callable, soft: dict) -> tuple:
    """The moments of each head of a decoder, from 64 windows of training text."""
    sample = names["windows"](rng(8), names["to_learn"], 64)[0]
    return names["moments"](*names["heads"](soft, sample)[:2])


def trained(names: dict, seed: int, rng: Callable, start: dict, steps: int) -> tuple:
    """Bits a character with softmax and what is beside it, the decoder, and its moments."""
    train, bits, by_map = names["train"], names["bits"], names["by_map"]
    none, mean = (names["MAPS"][n] for n in ("no attention", "mean(V)"))
    soft, _ = train(start, steps, seed=seed)
    alone, _ = train(start, steps, attend=by_map, fixed=lambda _: none, seed=seed)
    result = {
        "softmax": bits(soft),
        "trained without attention": bits(alone, none, by_map),
        "mean(V) swapped in": bits(soft, mean, by_map),
    }
    result |= {label: bits(soft, attend=attend) for label, attend in names["WINDOWS"].items()}
    return result, soft, moments_of(names, rng, soft)


def lesson_17() -> dict:
    """The ways to attend of lesson 17, and `scores`, which judges them."""
    return lesson("17_move_a_real_model.py", tag="methods")


def real_weights() -> dict[str, np.ndarray]:
    """The weights of the model, or a word on how to get them."""
    path = antibody.find()
    if path is None:
        raise SystemExit("the model is not here: run `make model`")
    return antibody.load(path)


def chains(part: str) -> list[str]:
    """Heavy, then light, of each antibody of a part."""
    return [chain for pair in data.antibodies(part).values() for chain in pair]


def write(path: Path, rows: Iterable[dict]) -> None:
    """A table as a file, a line for each dict, as soon as it is there."""
    rows = iter(rows)
    first = next(rows)
    with path.open("w", encoding="utf-8", newline="") as file:
        out = csv.DictWriter(file, first, lineterminator="\n")
        out.writeheader()
        for row in itertools.chain([first], rows):
            out.writerow(row)
            file.flush()


def over_chains(values: np.ndarray, chain: np.ndarray) -> float:
    """The standard error of the mean of values whose chains, not they, are independent."""
    sums = np.bincount(chain, values - values.mean())
    return float(np.sqrt((sums**2).sum() * len(sums) / (len(sums) - 1)) / len(values))


def beside(found: np.ndarray, **others: np.ndarray) -> dict[str, str]:
    """A line of a table, of `scores` of the lesson and of those of the ways to compare with."""
    log_p, right, chain = found
    chain = chain.astype(int)
    numbers = {
        "residues": str(len(log_p)),
        "right": f"{right.sum():.0f}",
        "perplexity": f"{np.exp(-log_p.mean()):.4f}",
        "error of its ln": f"{over_chains(log_p, chain):.4f}",
    }
    for name, other in others.items():
        less = log_p - other[0]
        numbers[f"ln P less {name}"] = f"{less.mean():.4f}"
        numbers[f"error of ln P less {name}"] = f"{over_chains(less, chain):.4f}"
    return numbers


def with_error(x: np.ndarray) -> tuple[float, float]:
    """The mean, and its standard error."""
    return x.mean(), x.std(ddof=1) / len(x) ** 0.5


def halves(qkv: Iterable, name: str = "") -> dict[str, np.ndarray]:
    """q, k and v by their names, as float16."""
    return {f"{name}{n}": np.stack(x).astype(np.float16) for n, x in zip("qkv", qkv, strict=True)}
