"""Write antibody_anatomy.csv and antibody_swapped.csv: the 64 heads of lesson 17, one by one.

    python -m tools.record.anatomy    after `make model`

The first: what each head of the unchanged model looks at, on all test chains; and on the chains of
ANTIBODIES of them, the error of each way's output over that of mean(V), with the part of it that is
bias: what the mean of all draws still misses. The second: perplexity with some of the heads swapped
for FAVOR+, in orders that chains for calibration decide.
"""

import functools
from collections.abc import Callable, Iterable
from types import ModuleType

import numpy as np
from scipy.special import softmax
from threadpoolctl import threadpool_limits
from tqdm import tqdm

from performer_course import attention, features
from performer_course.compare import normalised_error
from performer_course.models import antibody
from tools.record.curve import calibration, of_directions
from tools.record.shared import beside, heads, in_threads, lesson, real_weights, recorder

DRAWS, ANTIBODIES = 8, 4
M = 256  # directions of the heads that are swapped
SOME = (16, 32, 48)  # how many


def looks(q, k, v) -> dict[str, np.ndarray]:
    """What the heads q, k, v (8, 8, L, 64) of a chain look at, and exponents: (8, 8) each."""
    L, d = q.shape[-2:]
    scores = q @ k.mT * d**-0.5
    A = softmax(scores, axis=-1)
    distance = np.abs(np.arange(L)[:, None] - np.arange(L))
    energy = np.linalg.svd(A - A.mean(axis=-2, keepdims=True), compute_uv=False) ** 2
    share = energy.cumsum(axis=-1) / energy.sum(axis=-1, keepdims=True)
    found = {
        "Var(t)": scores.var(axis=-1).mean(axis=-1),
        "keys": np.exp(-(A * np.log(A)).sum(axis=-1).mean(axis=-1)),
        "near": (A * (distance <= 4)).sum(axis=-1).mean(axis=-1),
        "ends": A[..., [0, -1]].sum(axis=-1).mean(axis=-1),
        "rank": 1 + (share < 0.9).sum(axis=-1),
        "error of rank 32": normalised_error(best(A, 32) @ v, A @ v, v),
    }
    shift = (q + k).mean(axis=-2, keepdims=True)
    for name, keys in (("", k), (", centred", k - shift)):
        z = (q * q).sum(-1)[..., :, None] + (keys * keys).sum(-1)[..., None, :] + 2 * q @ keys.mT
        z = np.sort((z * d**-0.5).reshape(8, 8, -1), axis=-1)[..., ::-1]  # ‖q' + k'‖², all pairs
        part = np.exp(z - z[..., :1]).cumsum(axis=-1)
        found[f"exponent{name}"] = z.mean(axis=-1)
        found[f"ln of mean e^exponent{name}"] = np.log(part[..., -1] / z.shape[-1]) + z[..., 0]
        found[f"pairs of half{name}"] = 1 + (part < part[..., -1:] / 2).sum(axis=-1)
    return found


def best(A, rank: int) -> np.ndarray:
    """The matrix of that rank that is nearest to A (..., L, L)."""
    U, sizes, V = np.linalg.svd(A)
    return U[..., :rank] * sizes[..., None, :rank] @ V[..., :rank, :]


def errors(way: Callable, draws: int, chains: list[tuple]) -> tuple[np.ndarray, np.ndarray]:
    """Normalised error of method(draw), the mean over draws, and the bias in it: (8, 8) each.

    The mean output of n draws misses the exact one by the bias and by a n-th of the variance.
    """
    total, bias, null = np.zeros((3, 8, 8))
    for given in chains:
        exact, mean, square = antibody.attend_exact(0, *given), 0, 0
        for draw in range(draws):
            attend = way(draw)
            out = np.stack([attend(i, *(x[i] for x in given)) for i in range(antibody.BLOCKS)])
            mean, square = mean + out / draws, square + ((out - exact) ** 2).sum((-2, -1)) / draws
        missed = ((mean - exact) ** 2).sum(axis=(-2, -1))
        scatter = (square - missed) / max(draws - 1, 1)  # of the mean of all draws
        total, bias = total + square, bias + missed - scatter
        null += ((attention.uniform_attention(*given) - exact) ** 2).sum(axis=(-2, -1))
    return total / null, bias / null


def means(chains: list[tuple]) -> dict[str, np.ndarray]:
    """`looks`, the mean over chains."""
    seen = [looks(*(x.astype(float) for x in given)) for given in tqdm(chains)]
    return {name: np.mean([one[name] for one in seen], axis=0) for name in seen[0]}


def ways(lesson_17: ModuleType, given: list[tuple]) -> dict[tuple, tuple[Callable, int]]:
    """{(way, features): (draw → attend, draws)}."""
    drawn, counts = of_directions(lesson_17, given), (64, 256, 1024)
    one = {
        ("ELU + 1", 64): lesson_17.by_map(features.elu_plus_one),
        ("ReLU", 64): lesson_17.by_map(features.relu),
        ("Taylor, centred", 65): lesson_17.taylor(1, True),
        ("Taylor, centred", 2145): lesson_17.taylor(2, True),
        ("window of 33", 0): lesson_17.window(16),
        ("trained", 64): antibody.attend_trained,
    }
    found = {name: (lambda draw, attend=attend: attend, 1) for name, attend in one.items()}
    several = [("FAVOR+", m) for m in (*counts, 4096)]
    several += [(name, m) for m in counts for name in ("centred", "dense")]
    return found | {(n, m): (functools.partial(drawn[n], m), DRAWS) for n, m in several}


def swapped(heads: Iterable[tuple[int, int]], attend: Callable) -> Callable:
    """`attend` in these heads, softmax in all others."""
    chosen = np.zeros((8, 8, 1, 1), dtype=bool)
    for head in heads:
        chosen[head] = True

    def mixed(i, q, k, v):
        return np.where(chosen[i], attend(i, q, k, v), antibody.attend_exact(i, q, k, v))

    return mixed


def orders(error: np.ndarray, variance: np.ndarray) -> dict[str, list[tuple[int, int]]]:
    """Heads in the order in which they are swapped, by what chains for calibration say of them."""
    everyone = list(np.ndindex(8, 8))
    found = {
        "least error first": np.argsort(error, axis=None),
        "least relative variance first": np.argsort(variance, axis=None),
    }
    for seed in range(3):
        found[f"at random {seed + 1}"] = np.random.default_rng(seed).permutation(64)
    return {name: [everyone[n] for n in order] for name, order in found.items()}


@recorder
def main():
    weights, lesson_17 = real_weights(), lesson(17, tag="methods")
    with threadpool_limits(1):
        of_calibration, chains = calibration(weights), heads(weights, lesson_17.TEST)
        table, every = means(chains), ways(lesson_17, of_calibration)
        judged = chains[: 2 * ANTIBODIES]
        found = in_threads(lambda way: errors(*way, judged), every.values())
        for (name, m), (total, bias) in zip(every, found, strict=True):
            table[f"{name} {m}"], table[f"{name} {m}, bias"] = total, bias
        attend = lesson_17.published(M, 0)
        first = errors(*every["FAVOR+", M], of_calibration[: 2 * ANTIBODIES])[0]
        listed = orders(first, means(of_calibration)["ln of mean e^exponent"])
        jobs = [(order, n) for order in listed for n in SOME]
        mixed = [swapped(listed[order][:n], attend) for order, n in jobs]
        scores = in_threads(functools.partial(lesson_17.scores, weights), mixed)
    at = np.ndindex(8, 8)
    rows = ({"block": i, "head": h} | {n: x[i, h] for n, x in table.items()} for i, h in at)
    yield "antibody_anatomy.csv", rows, ".4g"
    exact = lesson_17.scores(weights, antibody.attend_exact)
    rows = zip(jobs, scores, strict=True)
    rows = ({"order": order, "heads": n} | beside(s, exact=exact) for (order, n), s in rows)
    yield "antibody_swapped.csv", rows
