"""What several files of claims use: comparisons by z-score, data, and the mutants they share."""

import math

import numpy as np

from tests.claims.harness import Mutant

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


# Mutants

UNSIGNED_QR = Mutant(
    "unsigned-qr",
    "Q as LAPACK leaves it",
    module="projections",
    old="return Q * signs[:, None, :]",
    new="return Q",
)
NORMS_SQUARED = Mutant(
    "norms-squared",
    "χ² for χ",
    module="projections",
    old="np.sqrt(squares) * directions",
    new="squares * directions",
)
LAST_STEP_LOST = Mutant(
    "last-step-lost",
    "the last rows are not written",
    module="features",
    old="side_by_side(fill, range(0, n, rows), x)",
    new="side_by_side(fill, range(0, n - rows, rows), x)",
)
NORM_NOT_HALVED = Mutant(
    "norm-not-halved", "‖x‖² for ‖x‖²/2", module="features", old="axis=-1) / 2", new="axis=-1)"
)
POSITIVE_COUNT = Mutant(
    "positive-count",
    "1/m for 1/√m in the positive features",
    module="features",
    old="projected(xp, x, W) - (_half_square(xp, x) + math.log(W.shape[-2]) / 2)",
    new="projected(xp, x, W) - (_half_square(xp, x) + math.log(W.shape[-2]))",
)
POSITIVE_NORM_SIGN = Mutant(
    "positive-norm-sign",
    "e^{+‖x‖²/2}",
    module="features",
    old="projected(xp, x, W) - (_half_square(xp, x) + math.log(W.shape[-2]) / 2)",
    new="projected(xp, x, W) + _half_square(xp, x) - math.log(W.shape[-2]) / 2",
)
EPS_IN_FEATURES = Mutant(
    "eps-in-features",
    "ε added to the positive features",
    module="features",
    old=(
        "    logarithm = log_positive(x, W)  # (..., n, m)\n"
        "    xp = array_api_compat.array_namespace(logarithm)\n"
        "    return xp.exp(logarithm)"
    ),
    new=(
        "    logarithm = log_positive(x, W)  # (..., n, m)\n"
        "    xp = array_api_compat.array_namespace(logarithm)\n"
        "    return xp.exp(logarithm) + 1e-3"
    ),
)
ELU_WITHOUT_ONE = Mutant(
    "elu-without-one",
    "elu without the one",
    module="features",
    old="return above + xp.exp(x - above)",
    new="return above",
)
UNSCALED = Mutant(
    "unscaled",
    "no d^{−1/4}: softmax(q kᵀ)",
    module="_positive",
    old="dtype, copy=False) * W.shape[-1] ** -0.25",
    new="dtype, copy=False)",
)
OTHER_DIRECTIONS = Mutant(
    "other-directions",
    "queries and keys use different ω",
    module="_positive",
    old="add_in_place(projected(xp, keys, W), h",
    new="add_in_place(projected(xp, keys, W[::-1, ...]), h",
)
STATE_COUNTS_ONCE = Mutant(
    "state-counts-once",
    "each feature counts once, however many keys it saw",
    module="_positive",
    old="a, state.Sz).Sz",
    new="a, xp.concat([state.S, xp.ones_like(state.Sz[..., -1:])], axis=-1)).Sz",
)
VARIANCE_OF_DIFFERENCE = Mutant(
    "variance-of-difference",
    "x − y for x + y in what to expect",
    module="attention",
    old="cross = 2 * x @ xp.matrix_transpose(y)",
    new="cross = -2 * x @ xp.matrix_transpose(y)",
)
POSITIVE_MSE_ONCE = Mutant(
    "positive-mse-once",
    "SM for SM²",
    module="theory",
    old="return s, 2 * np.sum(x * y, axis=-1) + s",
    new="return s, np.sum(x * y, axis=-1) + s",
)
POSITIVE_MSE_DIFFERENCE = Mutant(
    "positive-mse-difference",
    "x − y for x + y in the last factor",
    module="theory",
    old="_raised(_over_square(s, m), power)",
    new="_raised(_over_square(_length_of(x - y) ** 2, m), power)",
)
