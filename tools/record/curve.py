"""Write antibody_curve.csv and antibody_guesses.npz: lesson 17's model, each way to attend.

    python -m tools.record.curve    after `make model`

All 64 heads use one method, by the lesson's own functions. First 2 of 8 passes, so a quarter of the
residues of the test chains; then all 8 for a few of the ways. Beside each perplexity the standard
error of its logarithm, over chains, and the mean of ln P less that of exact attention, and that of
a window with mean(V), residue by residue.
"""

from collections.abc import Callable
from types import ModuleType

import numpy as np
from threadpoolctl import threadpool_limits

from performer_course import attention, features
from performer_course.models import antibody
from tools.record import shared
from tools.record.shared import beside, in_threads, lesson, real_weights, recorder

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
    return shared.heads(weights, shared.chains("calibration"))


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


def of_directions(lesson_17: ModuleType, heads: list[tuple]) -> dict[str, Callable]:
    """{method: (features per head, draw) → attend} of those that draw directions."""
    published, moments = lesson_17.published, sample(heads)
    return {
        "FAVOR+": published,
        "centred": lambda m, draw: lesson_17.centred(published(m, draw)),
        "dense": lambda m, draw: lesson_17.of_moments(m, draw, moments),
    }


def ways(lesson_17: ModuleType, heads: list[tuple]) -> dict[Name, Callable]:
    """{(method, features per head, draw): attend}, in the order of the table."""
    taylor, window, uniform = lesson_17.taylor, lesson_17.window, lesson_17.uniform
    found = {
        ("exact", 0, 0): antibody.attend_exact,
        ("mean(V)", 0, 0): uniform,
        ("by place", 0, 0): lesson_17.by_place(by_place(heads)),
        ("ELU + 1", 64, 0): lesson_17.by_map(features.elu_plus_one),
        ("ReLU", 64, 0): lesson_17.by_map(features.relu),
    }
    found |= {("Taylor", 65, 0): taylor(1, False)}
    found |= {("Taylor, centred", n, 0): taylor(p, True) for p, n in ((1, 65), (2, 2145))}
    for draw in range(DRAWS):
        for name, drawn in of_directions(lesson_17, heads).items():
            sizes = MORE if name == "dense" else COUNTS
            found |= {(name, m, draw): drawn(m, draw) for m in sizes}
    found |= {(f"window of {2 * b + 1}", 0, 0): window(b) for b in BANDS}
    near = window(BANDS[-1])
    parts = {
        ("window and mean(V)", 0, 0): (near, uniform),
        ("window and dense", 64, 0): (near, found["dense", 64, 0]),
        ("window and trained", 64, 0): (near, antibody.attend_trained),
        ("FAVOR+ and mean(V)", 1024, 0): (found["FAVOR+", 1024, 0], uniform),
        ("dense and mean(V)", 64, 0): (found["dense", 64, 0], uniform),
    }
    mixture = lesson_17.mixture
    found |= {name: mixture(share(*two, heads), *two) for name, two in parts.items()}
    found["trained", 64, 0] = antibody.attend_trained
    return found


@recorder
def main():
    weights, lesson_17, rng = real_weights(), lesson(17, tag="methods"), np.random.default_rng(0)
    with threadpool_limits(1):
        every = ways(lesson_17, calibration(weights))
        whole = [(chain, antibody.masks(rng, len(chain))) for chain in lesson_17.TEST]
        asked = {2: lesson_17.ASKED, 8: whole}
        jobs = [(*n, 2) for n in every] + [(*n, 8) for n in WHOLE]

        def run(job):
            return lesson_17.scores(weights, every[job[:3]], asked[job[3]])

        found, rows = dict(zip(jobs, in_threads(run, jobs), strict=True)), []
        for (way, m, draw, passes), scores in found.items():
            row = {"way": way, "features": m, "draw": draw, "passes": passes}
            exact, window = (found[n, 0, 0, passes] for n in ("exact", "window and mean(V)"))
            rows.append(row | beside(scores, exact=exact, window=window))
        chain, masked = whole[0]
        once = masked.argmax(axis=0), np.arange(len(chain))  # the pass that hides each residue
        guesses = {n[0]: antibody.guess(weights, chain, masked, every[n])[once] for n in SHOWN}
    yield "antibody_curve.csv", rows
    yield "antibody_guesses.npz", guesses
