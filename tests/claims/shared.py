"""What several files of claims use: comparisons by z-score, data, and the defects they share."""

import math

import numpy as np

from tests.claims.harness import defects

BOUND = 5.0  # |z| of any comparison


def agree(found, expected, error, what):
    """|found − expected| < BOUND standard errors, entry by entry."""
    z = (np.asarray(found) - expected) / error
    worst = np.abs(z).max()
    assert worst < BOUND, f"{what}: z = {worst:.1f}, found {found}, expected {expected}"


def agrees(estimates, truth, variance, bias=0.0):
    """estimates (N, ...) have mean truth + bias and squared error variance + bias²."""
    N = len(estimates)
    square = (estimates - truth) ** 2
    agree(estimates.mean(0), truth + bias, np.sqrt(variance / N), "mean")
    agree(square.mean(0), variance + bias**2, square.std(0) / math.sqrt(N), "squared error")


def vectors(rng, d, *lengths):
    """One vector of each length, in random directions."""
    x = rng.normal(size=(len(lengths), d))
    return x * (np.array(lengths) / np.linalg.norm(x, axis=1))[:, None]


def kernel_estimates(feature_map, x, y, W, blocks):
    """From W (N, m, d): N estimates φ(x)ᵀφ(y), for maps of `blocks` m features."""
    N, m, d = W.shape
    phi = feature_map(np.stack([x, y]), W.reshape(N * m, d)).reshape(2, blocks, N, m)
    return N * (phi[0] * phi[1]).sum((0, 2))


def problem(rng, L, d, scale=1.0, e=4):
    """Queries and keys of the given scale, and values."""
    return [scale * rng.normal(size=(L, d)) for _ in "qk"] + [rng.normal(size=(L, e))]


def favor(p, q, k, v, W, **options):
    return p.attention.favor_attention(q, k, v, W, **options)


SHARED = defects("""
    norms-squared: χ² for χ
        projections: np.sqrt(squares) * directions => squares * directions
    last-step-lost: the last rows are not written
        features: side_by_side(fill, range(0, n, rows), x)
            => side_by_side(fill, range(0, n - rows, rows), x)
    norm-not-halved: ‖x‖² for ‖x‖²/2
        features: axis=-1) / 2 => axis=-1)
    positive-count: 1/m for 1/√m in the positive features
        features: projected(xp, x, W) - (_half_square(xp, x) + math.log(W.shape[-2]) / 2)
            => projected(xp, x, W) - (_half_square(xp, x) + math.log(W.shape[-2]))
    positive-norm-sign: e^{+‖x‖²/2}
        features: projected(xp, x, W) - (_half_square(xp, x) + math.log(W.shape[-2]) / 2)
            => projected(xp, x, W) + _half_square(xp, x) - math.log(W.shape[-2]) / 2
    eps-in-features: ε added to the positive features
        features: logarithm = log_positive(x, W)  # (..., n, m)
            => xp = array_api_compat.array_namespace(x); return xp.exp(log_positive(x, W)) + 1e-3
    elu-without-one: elu without the one
        features: return above + xp.exp(x - above) => return above
    unscaled: no d^{−1/4}: softmax(q kᵀ)
        _positive: dtype, copy=False) * W.shape[-1] ** -0.25 => dtype, copy=False)
    other-directions: queries and keys use different ω
        _positive: plus(projected(xp, keys, W), h
            => plus(projected(xp, keys, W[::-1, ...]), h
    state-counts-once: each feature counts once, however many keys it saw
        _positive: a, state.Sz).Sz
            => a, xp.concat([state.S, xp.ones_like(state.Sz[..., -1:])], axis=-1)).Sz
    variance-of-difference: x − y for x + y in what to expect
        attention: cross = 2 * x @ xp.matrix_transpose(y) => cross = -2 * x @ xp.matrix_transpose(y)
    positive-mse-once: SM for SM²
        theory: return s, 2 * np.sum(x * y, axis=-1) + s => return s, np.sum(x * y, axis=-1) + s
    positive-mse-difference: x − y for x + y in the last factor
        theory: _raised(_over_square(s, m), power)
            => _raised(_over_square(_length_of(x - y) ** 2, m), power)
""")
