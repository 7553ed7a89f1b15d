"""Lesson 17, linearising a pretrained model."""

import numpy as np

from .. import attention, near_far
from ._judge import Hint, advice, check, compare, guarded, no_square, some, truth

# A decision for a head

TOKENS, M, DRAWS = 24, 256, 200


def _head(rng, size=1.0, of_q=None, mean_q=0.0, mean_k=0.0, follow=0.0, values=1.0, flat=0):
    """(q, k, v) of one chain of a synthetic head, (L, 4), (L, 4), (L, 3).

    size: of the entries of k, and of q unless `of_q` is given. mean_q, mean_k: how far all
    queries and all keys are from 0. follow: how far a value follows its key; values: their
    size; flat: how many queries are nearly 0.
    """
    q = rng.normal(size=(TOKENS, 4)) * (size if of_q is None else of_q)
    k = size * rng.normal(size=(TOKENS, 4))
    q[:flat] /= 100
    v = values * (rng.normal(size=(TOKENS, 3)) + follow * k[:, :3])
    return q + mean_q / 2, k + mean_k / 2, v


def _chains(seed, calibration=None, **new):
    """A head's two chains; `calibration`: what differs in the first."""
    rng = np.random.default_rng(seed)
    return _head(rng, **(new | (calibration or {}))), _head(rng, **new)


FOLLOWED = "features have a seventh of mean(V)'s error on this head: compare them with softmax."
SHARP = "you accept a sharp head, on which features have a larger error than mean(V)."
POOLED = "you average outputs of many draws, but a model has one draw: average their losses."
UNIFORM = "features err little here, but mean(V) errs less: compare the two over all draws."
ROWS = "a third of the rows equal mean(V) already: sum the errors of all rows before you divide."
OUTPUTS = "a few pairs or weights err badly, the output does not: measure outputs, of the given v."
HALF = "the bound is less than half of mean(V)'s squared error: take no other fraction and no root."
KEYS = "the keys are far from 0: softmax does not notice a shift of the keys, features do."
QUERIES = "the queries are far from 0: the shift that makes q' + k' short has a term for them."
ALIKE = "softmax notices a shift of the queries, which all look at the same keys: shift the keys."
NEW = "the head is sharp on one chain and not on the other: judge it on the new one."
BEFORE = "the shift is fixed before the new chain is known: take it from the calibration chain."
RUINED = f"most draws do well here, a few ruin it: take the mean of {DRAWS}, not the median."
UNSCALED = "you subtract the shift from k, not from k' = d^{−1/4} k: compute it from q and k."


def _heads():
    """[(both chains of a head, whether it can be replaced, the hint for a wrong answer)]."""
    return [
        (_chains(1, size=0.7, follow=3), True, FOLLOWED),
        (_chains(1, size=3), False, SHARP),
        (_chains(1, size=0.03, values=1000), False, POOLED),
        (_chains(2, size=0.05), False, UNIFORM),
        (_chains(1, size=0.8, follow=3, flat=8), True, ROWS),
        (_chains(1, size=1.0, follow=3), True, OUTPUTS),
        (_chains(2, size=0.9), True, HALF),
        (_chains(3, size=1.6, of_q=0.9, follow=3), True, OUTPUTS),
        (_chains(1, size=0.8, follow=3, mean_k=6), True, KEYS),
        (_chains(3, size=0.8, mean_q=7), True, QUERIES),
        (_chains(3, size=1.0, of_q=0.05, mean_q=5), True, ALIKE),
        (_chains(1, size=3, calibration={"size": 0.7, "follow": 3}), False, NEW),
        (_chains(2, size=0.7, follow=3, calibration={"size": 2, "follow": 0}), True, NEW),
        (_chains(1, size=0.8, follow=3, mean_k=-4, calibration={"mean_k": 4}), False, BEFORE),
        (_chains(2, size=1.6), False, HALF),
        *[(_chains(0, size=0.1), False, RUINED)] * 4,
        (_chains(3, size=0.6, follow=3, mean_k=30), True, UNSCALED),
    ]


@check(says=[OUTPUTS, KEYS])
def can_be_replaced(decide):
    """decide(calibration, new, m, rng, draws): whether features halve mean(V)'s squared error."""
    rng = np.random.default_rng(1701)
    for chains, right, hint in _heads():
        with advice("(calibration and new are (q, k, v) of one chain each, (L, d).)"):
            found = decide(*chains, M, rng, DRAWS)
        if truth(found) != right:
            raise Hint(hint)


# The baseline to beat


def _line(rng, L, d, e, sign):
    """A head whose queries attend to the nearer end of the line, or to the other end."""
    place, along = np.linspace(-1, 1, L)[:, None], rng.normal(size=d)
    along = along / np.linalg.norm(along) * d**0.25
    v = place * rng.normal(size=e) + 0.1 * rng.normal(size=(L, e))
    return 30 * sign * place * along, place * along, v


def _model(rng, L, d, e):
    """q, k, v of a synthetic model, (3 blocks, 4 heads, L, ...): two plain heads, two lines."""
    heads = []
    for _ in range(3):
        q, k, v = rng.normal(size=(2, L, d)), rng.normal(size=(2, L, d)), rng.normal(size=(2, L, e))
        k, v = (np.cumsum(x, axis=1) / 2 for x in (k, v))  # neighbours are similar
        lines = [_line(rng, L, d, e, sign) for sign in (1, -1)]
        two = zip(*lines, strict=True)  # all q, all k, all v
        heads.append([np.stack([*x, *y]) for x, y in zip((q, k, v), two, strict=True)])
    return tuple(np.stack(x) for x in zip(*heads, strict=True))


def fraction(top, bottom):
    """top / bottom, 0 where that is 0/0."""
    return np.where(bottom > 0, top / np.where(bottom > 0, bottom, 1), 0)


def mixture(
    below=lambda added, missing: added * added,
    divide=fraction,
    clip=lambda p: np.clip(p, 0, 1),
    of_block=lambda p, i: p[i],
):
    """p N + (1 − p) U, p the sum of (N − U)(AV − U) over that of (N − U)²."""

    def fit(chains, band):
        top = bottom = 0.0
        for q, k, v in chains:
            u = attention.uniform_attention(q, k, v)
            added = near_far.near_field(q, k, v, band) - u  # what p multiplies
            missing = attention.softmax_attention(q, k, v) - u  # the goal
            top = top + (added * missing).sum(axis=(-2, -1))
            bottom = bottom + below(added, missing).sum(axis=(-2, -1))
        p = clip(divide(top, bottom))[..., None, None]  # (blocks, heads, 1, 1)

        def attend(i, q, k, v):
            near = near_far.near_field(q, k, v, band)
            part, mean = of_block(p, i), attention.uniform_attention(q, k, v)
            return part * near + (1 - part) * mean

        return attend

    return fit


def anew(chains, band):
    return lambda i, q, k, v: mixture()([(q[None], k[None], v[None])], band)(0, q, k, v)


def chain_by_chain(chains, band):
    """The mean of the chains' own fractions."""
    fractions = []
    for chain in chains:
        mixture(clip=lambda p: fractions.append(p) or p)([chain], band)
    return mixture(clip=lambda _: np.clip(np.mean(fractions, axis=0), 0, 1))(chains, band)


NO_WINDOW = "0/0 where the window equals mean(V) on all chains: take p = 0 there."
MISTAKES = [
    (mixture(divide=np.divide), NO_WINDOW),
    (mixture(clip=np.copy), "with p outside [0, 1] this is not an average: clip p."),
    (mixture(below=lambda added, missing: missing**2), "divide by the sum of (N − U)²."),
    (mixture(of_block=lambda p, i: p[0]), "block 1 gets the p of block 0: use i."),
    (mixture(clip=lambda p: 1 - np.clip(p, 0, 1)), "p and 1 − p are interchanged."),
    (
        mixture(divide=lambda a, b: fraction(a.sum(-1), b.sum(-1))[..., None] + 0 * a),
        "all heads of a block have the same p here: fit one p for each head.",
    ),
    (chain_by_chain, "sum over all chains before you divide: do not average one p for each chain."),
    (lambda chains, band: mixture()(chains, band + 1), "the window has |i − j| ≤ band."),
    (mixture(clip=np.ones_like), "this is the window alone: where is mean(V)?"),
    (mixture(clip=np.zeros_like), "this is mean(V) alone: where is the window?"),
    (anew, "you fit p again to the new chain, which needs its softmax: fit it once."),
]


@check(mistakes=MISTAKES)
def window_baseline(fit):
    """fit(chains, band): attend(i, q, k, v), p N + (1 − p) mean(V), with the best p in [0, 1]."""
    rng, inputs = np.random.default_rng(1702), []
    for d, e, band, lengths in ((3, 4, 2, (11, 14)), (5, 2, 1, (8, 13, 9))):
        chains = [_model(rng, L, d, e) for L in lengths]
        for _, _, v in chains:
            v[1, 0] = 0  # so window, softmax and mean(V) are equal
        new, other = _model(rng, 12, d, e), _model(rng, 12, d, e)
        batch = [np.stack(x, axis=1) for x in zip(new, other, strict=True)]  # (3, 2, 4, 12, ...)
        inputs += [(chains, band, i, *(x[i] for x in new)) for i in range(3)]
        inputs += [(chains, band, i, *(x[i] for x in batch)) for i in range(3)]

    def of(fit):
        def rows(chains, band, i, q, k, v):
            with advice(f"(q has shape {q.shape} there; `forward` may pass a batch.)"):
                return guarded(some(fit(chains, band)))(i, q, k, v)

        return rows

    mistakes = [(of(mistake), hint) for mistake, hint in MISTAKES]
    close = "close, but not equal: did you add an ε, round p or search a grid?"
    compare(of(fit), of(mixture()), inputs, mistakes, not_finite=NO_WINDOW, close=close)
    L = 2000
    long = tuple(rng.normal(size=(3, 1, 1, L, 2)))
    no_square(lambda: fit([long], 2), long, L)
    attend = guarded(fit([tuple(x[:, :, :9] for x in long)], 2))
    no_square(lambda: attend(0, *(x[0] for x in long)), long, L)
