"""Write antibody_curve.csv and antibody_guesses.npz: lesson 17's model, each way to attend.

    python -m tools.record.curve    after `make model`

All 64 heads use one method, by the lesson's own functions. First 2 of 8 passes, so a quarter of the
residues of the test chains; then all 8 for a few of the ways. Beside each perplexity the standard
error of its logarithm, over chains, and the mean of ln P less that of exact attention, and that of
a window with mean(V), residue by residue.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from threadpoolctl import threadpool_limits
from tqdm import tqdm

from performer_course import attention, features
from performer_course.models import antibody
from performer_course.teaching import data
from tools.record.shared import beside, chains, lesson_17, real_weights, write

FILE, GUESSES = data.FOLDER / "antibody_curve.csv", data.FOLDER / "antibody_guesses.npz"
DRAWS, BANDS, COUNTS, MORE = 3, (4, 8, 16), (64, 256, 1024), (64, 128, 256, 512, 1024)
Name = tuple[str, int, int]  # the name of a method, its features per head, its draw
SHOWN: tuple[Name, ...] = (  # the ways whose guesses are kept
    ("exact", 0, 0),
    ("mean(V)", 0, 0),
    ("FAVOR+", 1024, 0),
    ("trained", 64, 0),
)
WHOLE = (  # those that are asked for every residue
    *SHOWN,
    ("window and mean(V)", 0, 0),
    ("dense", 256, 0),
    ("dense", 1024, 0),
)


def calibration(weights: dict) -> list[tuple]:
    """q, k, v of every head on each chain to take moments from."""
    given = [antibody.encode(chain) for chain in chains("calibration")]
    return [antibody.heads(weights, tokens) for tokens in tqdm(given)]


def sample(heads: list[tuple]) -> list[np.ndarray]:
    """All queries, and all keys, of each head: (8, 8, n, 64) each."""
    return [np.concatenate([chain[n] for chain in heads], axis=2, dtype=float) for n in (0, 1)]


def by_place(heads: list[tuple]) -> np.ndarray:
    """The mean weight of each two places in each head, over the chains that have both."""
    longest = max(q.shape[2] for q, _, _ in heads)
    total, seen = np.zeros((8, 8, longest, longest)), np.zeros((longest, longest))
    for q, k, _ in heads:
        L = q.shape[2]
        eye = np.broadcast_to(np.eye(L, dtype=q.dtype), (8, 8, L, L))
        total[..., :L, :L] += attention.softmax_attention(q, k, eye)
        seen[:L, :L] += 1
    return total / np.maximum(seen, 1)


def share(near: Callable, far: Callable, heads: list, exact=antibody.attend_exact) -> np.ndarray:
    """The p in [0, 1] of each head for which p near + (1 − p) far is nearest to its softmax."""
    above, below = 0, 0
    for given in heads:
        blocks = list(enumerate(zip(*given, strict=True)))
        base, step, goal = (np.stack([of(i, *x) for i, x in blocks]) for of in (far, near, exact))
        step, goal = step - base, goal - base
        above = above + (step * goal).sum(axis=(-2, -1), dtype=float)
        below = below + (step * step).sum(axis=(-2, -1), dtype=float)
    return np.clip(above / below, 0, 1)


def ways(names: dict, heads: list[tuple]) -> dict[Name, Callable]:
    """{(method, features per head, draw): attend}, in the order of the table."""
    published, centred, taylor = (names[n] for n in ("published", "centred", "taylor"))
    window, mixture, uniform = (names[n] for n in ("window", "mixture", "uniform"))
    moments = sample(heads)
    found = {
        ("exact", 0, 0): antibody.attend_exact,
        ("mean(V)", 0, 0): uniform,
        ("by place", 0, 0): names["by_place"](by_place(heads)),
        ("ELU + 1", 64, 0): names["by_map"](features.elu_plus_one),
        ("ReLU", 64, 0): names["by_map"](features.relu),
    }
    found |= {("Taylor", 65, 0): taylor(1, False)}
    found |= {("Taylor, centred", n, 0): taylor(p, True) for p, n in ((1, 65), (2, 2145))}
    for draw in range(DRAWS):
        found |= {("FAVOR+", m, draw): published(m, draw) for m in COUNTS}
        found |= {("centred", m, draw): centred(published(m, draw)) for m in COUNTS}
        found |= {("dense", m, draw): names["of_moments"](m, draw, moments) for m in MORE}
    found |= {(f"window of {2 * b + 1}", 0, 0): window(b) for b in BANDS}
    near = window(BANDS[-1])
    parts = {
        ("window and mean(V)", 0, 0): (near, uniform),
        ("window and dense", 64, 0): (near, found["dense", 64, 0]),
        ("window and trained", 64, 0): (near, antibody.attend_trained),
        ("FAVOR+ and mean(V)", 1024, 0): (found["FAVOR+", 1024, 0], uniform),
        ("dense and mean(V)", 64, 0): (found["dense", 64, 0], uniform),
    }
    found |= {name: mixture(share(*two, heads), *two) for name, two in parts.items()}
    found["trained", 64, 0] = antibody.attend_trained
    return found


def main() -> None:
    weights, names = real_weights(), lesson_17()
    with threadpool_limits(1), ThreadPoolExecutor(2) as pool:
        every = ways(names, calibration(weights))
        rng = np.random.default_rng(0)
        whole = [(chain, antibody.masks(rng, len(chain))) for chain in names["TEST"]]
        jobs = [(n, 2, a, names["ASKED"]) for n, a in every.items()]
        jobs += [(n, 8, every[n], whole) for n in WHOLE]

        def run(job):
            _, _, attend, asked = job
            return names["scores"](weights, attend, asked)

        scores = list(tqdm(pool.map(run, jobs), total=len(jobs)))
        at = {(way, passes): s for ((way, *_), passes, *_), s in zip(jobs, scores, strict=True)}
        rows = [
            {
                "way": way,
                "features": m,
                "draw": draw,
                "passes": passes,
                **beside(s, exact=at["exact", passes], window=at["window and mean(V)", passes]),
            }
            for ((way, m, draw), passes, *_), s in zip(jobs, scores, strict=True)
        ]
        chain, masked = whole[0]
        once = masked.argmax(axis=0), np.arange(len(chain))  # the pass that hides each residue
        guesses = {n[0]: antibody.guess(weights, chain, masked, every[n])[once] for n in SHOWN}
    write(FILE, rows)
    np.savez_compressed(GUESSES, **guesses)


if __name__ == "__main__":
    main()
