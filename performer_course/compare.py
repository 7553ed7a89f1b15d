"""How the course compares attentions: an error, one bench of rivals, and features fitted to data.

q: (..., L, d), k: (..., S, d), v: (..., S, e), on the device; samples and everything computed from
them are on the host. `card` puts the bench to use on heads of one's own.
"""

import warnings
from collections.abc import Callable
from functools import partial
from math import comb
from typing import NamedTuple

import array_api_compat
import numpy as np
from jaxtyping import Bool, Float
from scipy.cluster.vq import kmeans2

from . import theory
from ._arguments import (
    check_array,
    check_attention,
    check_count,
    check_finite,
    check_heads,
    check_number,
    check_shape,
)
from ._shapes import Array
from .attention import favor_attention, softmax_attention, taylor_attention, uniform_attention
from .backend import to_host
from .near_far import joint_attention, near_field
from .projections import orthogonal

# Bound on samples and directions, so that products of four are finite: 2e40 on the host.
SAMPLE_POWER = 0.132
ROUNDING = 1e-6  # the least error that float32 lets one tell from 0
DRAWN = "window + centres", "clustered queries", "positive features"  # each draw is another


def normalised_error(
    output: Float[Array, "... L e"],
    exact: Float[Array, "... L e"],
    v: Float[Array, "... S e"],
    *,
    causal: bool = False,
    key_mask: Bool[Array, "... S"] | None = None,
) -> Float[np.ndarray, "..."]:
    """‖output − exact‖² / ‖mean(V) − exact‖² per head: 0 is exact, 1 no better than mean(V).

    mean(V) is over the keys that a row may see. Shape: (...), on the host, float64.
    Error: exact to rounding. Cost: O((L + S) e). Raises: ValueError for shapes that do not fit, and
    where mean(V) is exact, so that nothing can be better. Source: this course, lesson 06.
    """
    check_array(v, "v", "S, e")
    check_shape(exact, "exact", (..., "L", v.shape[-1]), v, "v", like=exact)
    check_shape(output, "output", exact.shape, exact, "exact", power=1.0)
    baseline = uniform_attention(exact, v, v, causal=causal, key_mask=key_mask)
    arrays = (np.asarray(to_host(x), dtype=float) for x in (output, exact, baseline))
    output, exact, baseline = arrays
    check_finite(output, "output")
    unit = ((baseline - exact) ** 2).sum((-2, -1))
    if not (unit > 0).all():
        heads = f"{(unit == 0).sum()} of {unit.size} heads"
        raise ValueError(f"exact must differ from mean(V), which is already exact in {heads}")
    return ((output - exact) ** 2).sum((-2, -1)) / unit


def moments(
    q: Float[Array, "... n d"], k: Float[Array, "... n d"]
) -> tuple[Float[np.ndarray, "... d"], Float[np.ndarray, "... d d"], Float[np.ndarray, "... d"]]:
    """(s, U, ρ) of a sample: a shift of the keys, axes as columns, and a ρ for each axis.

    s = mean q + mean k; U the eigenvectors of M = E zzᵀ, z = q' + k' − s', x' = x d^{−1/4}, over
    all pairs; ρ = `theory.best_rho` of its eigenvalues. A decoder needs a sample from another text,
    because a mean sees the future. Shape: (..., d), (..., d, d), (..., d), on the host.
    Error: that of the sample. Cost: O(n d² + d³). Source: Likhosherstov et al. (2023), dense map.
    """
    q, k, *_ = check_attention(q, k, k, None)
    q, k = to_host(q).astype(float), to_host(k).astype(float)
    check_finite(q, "q", power=SAMPLE_POWER)
    check_finite(k, "k", power=SAMPLE_POWER)
    scale = q.shape[-1] ** -0.25
    s = q.mean(axis=-2) + k.mean(axis=-2)
    x, y = q * scale, (k - s[..., None, :]) * scale
    a, b = x.mean(axis=-2)[..., :, None], y.mean(axis=-2)[..., :, None]
    cross = a @ b.swapaxes(-2, -1)  # (..., d, d)
    second = [z.swapaxes(-2, -1) @ z / z.shape[-2] for z in (x, y)]
    values, U = np.linalg.eigh(second[0] + second[1] + cross + cross.swapaxes(-2, -1))
    signs = np.where(U.sum(axis=-2, keepdims=True) < 0, -1.0, 1.0)  # each sign is arbitrary
    return s, U * signs, theory.best_rho(np.maximum(values, 0), 1)


def with_weight_column(
    q: Float[Array, "... L d"], k: Float[Array, "... S d"]
) -> tuple[Float[Array, "... L d+1"], Float[Array, "... S d+1"]]:
    """q and k with one more coordinate, for directions [ω, b] (..., m, d + 1): 0 in q, 1 in k.

    Both are also rescaled, because `favor_attention` then divides by (d + 1)^¼ instead of d^¼.
    Shape: (..., n, d + 1) each. Error: exact. Cost: a copy of both.
    """
    q, k, *_ = check_attention(q, k, k, None)
    xp, d = array_api_compat.array_namespace(q, k), q.shape[-1]
    grow, one = (1 + 1 / d) ** 0.25, xp.ones_like(k[..., :1])
    q = xp.concat([grow * q, xp.zeros_like(q[..., :1])], axis=-1)
    return q, xp.concat([grow * k, (d + 1) ** 0.25 * one], axis=-1)


def fitted_directions(
    W: Float[Array, "... m d"], q: Float[Array, "... n d"], k: Float[Array, "... p d"]
) -> Float[np.ndarray, "... m d+1"]:
    """Directions [ω, b] made of W ~ N(0, I) for queries and keys like q and k, without training.

    From `moments`: keys are shifted by s; ω is stretched along U, ω ← U diag(√((1 + 1/ρ)/2)) ω; its
    feature is multiplied by e^b, b = ½ Σ (ω² (1 − 1/ρ)/2 + ln((1 + 1/ρ)/2)), ω as drawn. The shift
    is part of ω and b, as q'ᵀs' + ωᵀ(q' + k' − s') − ‖k' − s'‖²/2 = (ω + s')ᵀ(q' + k') − ‖k'‖²/2 −
    ωᵀs' − ‖s'‖²/2; another ½ makes up for the 1 that `with_weight_column` gives k'. So the estimate
    of e^{q'ᵀk'} is unbiased. Shape: on the host. Error: of a weight, `theory.sharp_mse`. Cost: O((n
    + m + d) d²). Raises: ValueError. Source: Likhosherstov et al. (2023), dense map; all in W: this
    course.
    """
    check_attention(q, k, k, None, W)
    s, U, rho = moments(q, k)
    W = to_host(W).astype(float)
    check_finite(W, "W", power=SAMPLE_POWER)
    s, rho = s[..., None, :] * W.shape[-1] ** -0.25, rho[..., None, :]  # (..., 1, d)
    wide = W * np.sqrt((1 + 1 / rho) / 2) @ U.swapaxes(-2, -1)  # (..., m, d)
    b = W**2 * (1 - 1 / rho) / 2 + np.log((1 + 1 / rho) / 2) - 2 * wide * s - s**2
    b = b.sum(axis=-1, keepdims=True) / 2 + 0.5
    return np.concatenate([wide + s, b], axis=-1)


class Rival(NamedTuple):
    """A cheap attention, sized to a budget and tuned on a sample: a row of the bench.

    cost: keys per query, a key being d + e multiplications. parameters: numbers that a head keeps
    for all texts. attends: attend(q, k, v, causal=…) of each draw. errors: (draws, H), on the text.
    """

    size: str
    cost: float
    parameters: int
    attends: list[Callable]
    errors: np.ndarray


def rivals(q, k, v, *, budget, causal=False, sample=None, draws=3, seed=0) -> dict[str, Rival]:
    """{method: Rival}, simplest first: the bench on which the course compares its methods.

    mean(V); a window, alone, with sinks, a mean key, both, or centres of the sample's keys; Taylor
    features; if not causal, the output of the nearest centre of the sample's queries; positive
    features. Of heads q (H, L, d), k, v (G, L, d), G dividing H. Each takes at most `budget` keys
    per query, from 4 on, except for Taylor features, whose number is fixed. sample: (q, k, v) of
    these heads on another text, whose later half chooses sizes, fitted to its earlier half; without
    it, the earlier half is the sample, and the later half is judged. Features see keys k − s, s the
    mean key, for positive ones mean q + mean k: the text's own or, if causal, the sample's. errors:
    `normalised_error`, at least 1e-6; where mean(V) is exact, over 1e-6 of the variance of v.
    Shape: errors (draws, H). Error: few draws. Cost: O(H L² (d + e)): it measures, and saves
    nothing. Raises: ValueError. Source: Vyas et al. (2020), §3.2, clustered queries; the bench,
    this course.
    """
    budget, causal = check_number(budget, "budget", above=0), bool(causal)
    draws, seed = check_count(draws, "draws"), check_count(seed, "seed", least=0)
    if sample is not None and not (isinstance(sample, tuple | list) and len(sample) == 3):
        raise ValueError("sample must be (q, k, v) of another text")
    text = check_heads(q, k, v)
    half = 0 if sample else text[0].shape[1] // 2
    sample = check_heads(*sample, "sample ") if sample else [x[:, :half] for x in text]
    if [x.shape[::2] for x in sample] != [x.shape[::2] for x in text]:
        got = f"q {text[0].shape}, sample {sample[0].shape}"
        raise ValueError(f"sample must have the same heads and width as q, k and v, got {got}")
    early = [x[:, : x.shape[1] // 2] for x in sample]
    chosen, judged = _judge(sample, early[0].shape[1], causal), _judge(text, half, causal)

    def least(option):  # its error on the later half of the sample, fitted to the earlier
        return np.minimum(chosen(option[3](*early, np.random.default_rng(seed))), 1).mean()

    rows = {}
    for name, options in _methods(text, causal, budget).items():
        *of, fit = min(options, key=least) if len(options) > 1 else options[0]
        rngs = np.random.default_rng(seed).spawn(draws if name in DRAWN else 1)
        attends = [fit(*sample, rng) for rng in rngs]
        rows[name] = Rival(*of, attends, np.array([*map(judged, attends)]))
    return rows


def _methods(text, causal, budget):
    """{name: [(size, cost, parameters, fit), …]}; fit(q, k, v, rng), of a sample: attention."""
    (_, L, d), e = text[0].shape, text[2].shape[2]
    b = np.arange(L)
    seen = 1 + (2 - causal) * b * (1 - (b + 1) / (2 * L))  # keys per query, b on each side
    keys, centre = min(budget, seen[-1]), (2 * d + e) / (d + e)  # one looks for its centre
    m, n = max(1, int(keys / 2)), max(1, int(keys / centre))

    def near(part, sinks=0, mean=0, C=0):  # a window of `part` keys per query
        band = max(0, (seen <= part).sum() - 1)
        size = f"keys {1 + (2 - causal) * band}" + f", sinks {sinks}" * (sinks > 0)
        attend = partial(joint_attention if mean or C else near_field, band=band, sinks=sinks)
        cost = seen[band] + sinks + mean + C * centre
        if not C:
            return size, cost, 0, lambda *sample: attend
        size = f"{size}, centres {C}"
        return size, cost, C * d, lambda q, k, v, rng: partial(attend, centres=_centres(k, C, rng))

    def taylor(degree):
        F, attend = comb(d + degree, degree), partial(taylor_attention, degree=degree)
        cost = 2 * F * (1 + e) / (d + e)
        return [(f"features {F}", cost, d * causal, partial(_about, attend, lambda q, k: _mean(k)))]

    def drawn(q, k, v, rng):
        attend = partial(favor_attention, W=orthogonal(rng, m, d).astype(q.dtype))
        return _about(attend, lambda q, k: _mean(q) + _mean(k), q, k)

    some = [n for n in (1, 4, 16, 32, 64) if n < keys - 1] or [1]
    split = [(max(1, p * keys), n) for p in (0, 0.25, 0.5, 0.75) for n in (0, 4)]
    split = [(part, n, 0, int((keys - part - n) / centre)) for part, n in split]
    clustered = [(f"centres {n}", n * centre, n * d, partial(_clustered, n))]
    return {
        "mean(V)": [("all keys", e / (d + e), 0, lambda *sample: uniform_attention)],
        "window": [near(keys)],
        "window + sinks": [near(keys - n, n) for n in some],
        "window + mean key": [near(keys - 1, mean=1)],
        "window + sinks + mean key": [near(keys - n - 1, n, 1) for n in some],
        **{f"Taylor, degree {p}": taylor(p) for p in (1, 2)},
        "window + centres": [near(*x) for x in split if x[-1] > 0] or [near(1, C=1)],
        **({} if causal else {"clustered queries": clustered}),
        "positive features": [(f"features {m}", 2 * m, d * (m + causal), drawn)],
    }


def _mean(x):
    return x.mean(axis=-2, keepdims=True)


def _about(attend, shift, q, k, *_):
    """attend, of keys less shift(q, k): of the text itself or, if causal, of this sample."""
    known = shift(q, k)  # softmax attention does not see a shift of all keys

    def shifted(q, k, v, causal=False):
        return attend(q, k - (known if causal else shift(q, k)), v, causal=causal)

    return shifted


def _clustered(C, q, k, v, rng):
    """Attention of C centres of queries; each query takes the output of the nearest."""
    centres = _centres(q, C, rng)

    def attend(q, k, v, causal=False):
        nearest = q @ centres.swapaxes(-1, -2) - (centres**2).sum(-1)[..., None, :] / 2
        outputs = softmax_attention(centres, k, v)
        return np.take_along_axis(outputs, nearest.argmax(-1)[..., None], axis=-2)

    return attend


def _centres(x, C, rng):
    """C cluster centres of the rows of each head: (H, C, d)."""
    rows = x + ROUNDING * np.abs(x).max() * rng.normal(size=x.shape)  # no two are the same
    with warnings.catch_warnings(action="ignore"):  # a cluster may become empty
        found = [kmeans2(y, min(C, len(y)), minit="++", seed=rng)[0] for y in rows]
    return np.array(found, dtype=x.dtype)


def _judge(text, first, causal):
    """The function of an attention that gives its errors on the rows of a text from `first` on."""
    exact = softmax_attention(*text, causal=causal).astype(float)

    def squared(attend):
        return ((attend(*text, causal=causal) - exact)[:, first:] ** 2).sum((1, 2))

    spread = (exact.shape[1] - first) * text[2].astype(float).var(axis=1).sum(axis=1)
    unit = np.maximum(squared(uniform_attention), ROUNDING * spread)
    return lambda attend: np.maximum(squared(attend) / np.where(unit, unit, np.inf), ROUNDING)
