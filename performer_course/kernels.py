"""The kernels, exactly: each function returns a Gram matrix, one entry for each pair of rows.

x: (..., n, d) and y: (..., p, d) give (..., n, p); leading axes broadcast. All are positive
definite (lesson 02). All raise ValueError for different widths d or libraries, empty, integer,
float128 or masked input, (on NumPy) non-finite entries or entries above 5e138 (float64), 2e17
(float32) or 147 (float16), and parameters out of range.
Parameters are numbers, not arrays: to learn γ, scale x and y.
"""

import math

from jaxtyping import Float

from ._arguments import check_array, check_count, check_lead, check_number, check_shape
from ._shapes import Array
from ._stable import squared_norm


def _check_pair(x, y):
    """The namespace of two sets of points of one width, and the points in one dtype."""
    check_array(x, "x", "n, d", wide=False)
    xp = check_shape(y, "y", (..., "p", x.shape[-1]), x, "x", like=y, wide=False)
    check_lead(x, y, names="x and y")
    dtype = xp.result_type(x, y)
    return xp, *(xp.astype(a, dtype, copy=False) for a in (x, y))


def polynomial(
    x: Float[Array, "... n d"], y: Float[Array, "... p d"], degree: int = 2, offset: float = 0.0
) -> Float[Array, "... n p"]:
    """(xᵀy + c)^p with p = `degree` ≥ 1 and c = `offset` ≥ 0 for each pair of rows.

    scikit-learn's `polynomial_kernel` with gamma=1 and coef0=c, which are not its defaults. Error:
    exact to rounding. Cost: O(n p (d + degree)). Source: Schölkopf & Smola (2002), Prop. 2.1; its
    features are `features.monomials`.
    """
    xp, x, y = _check_pair(x, y)
    degree = check_count(degree, "degree")
    offset = check_number(offset, "offset", least=0.0, like=x)
    base = x @ xp.matrix_transpose(y) + offset  # (..., n, p)
    # p − 1 products: for p > 2, NumPy's `**` takes logarithms, 3 to 12 times as slow for p = 3
    # and 5 on a CPU without AVX-512, and with other last bits.
    return math.prod([base] * (degree - 1), start=base)


def gaussian(
    x: Float[Array, "... n d"], y: Float[Array, "... p d"], gamma: float = 0.5
) -> Float[Array, "... n p"]:
    """exp(−γ ‖x − y‖²), γ = `gamma` > 0 in units of 1/length². Also called RBF.

    Error: exact up to rounding of about γ ε (‖x − c‖² + ‖y − c‖²), c the mean of y, ε the dtype's
    precision, because distances come from one matrix product. Cost: O(n p d). Source: Schölkopf &
    Smola (2002), §2.3.
    """
    xp, x, y = _check_pair(x, y)
    gamma = check_number(gamma, "gamma", above=0.0, like=x)
    centre = xp.mean(y, axis=-2, keepdims=True)  # (..., 1, d): a shift changes no distance
    x, y = x - centre, y - centre
    x_square = xp.expand_dims(squared_norm(xp, x), axis=-1)  # (..., n, 1)
    y_square = xp.expand_dims(squared_norm(xp, y), axis=-2)  # (..., 1, p)
    square = x_square + y_square - 2 * (x @ xp.matrix_transpose(y))  # (..., n, p)
    return xp.exp(-gamma * xp.where(square > 0, square, xp.zeros_like(square)))


def _differences(x, y):
    """x_i − y_i for i = 1 … d, one (..., n, p) array at a time: never n × p × d."""
    for i in range(x.shape[-1]):
        yield x[..., :, None, i] - y[..., None, :, i]


def laplacian(
    x: Float[Array, "... n d"], y: Float[Array, "... p d"], gamma: float = 1.0
) -> Float[Array, "... n p"]:
    """exp(−γ ‖x − y‖₁), γ = `gamma` > 0 in units of 1/length.

    The sum of |xᵢ − yᵢ|, not the length of x − y: for d > 1 another kernel than exp(−γ‖x − y‖).
    Error: exact to rounding. Cost: O(n p d) time, O(n p) memory.
    Source: Rahimi & Recht (2007), Fig. 1 (γ = 1).
    """
    xp, x, y = _check_pair(x, y)
    gamma = check_number(gamma, "gamma", above=0.0, like=x)
    distance = sum(xp.abs(difference) for difference in _differences(x, y))  # (..., n, p)
    return xp.exp(-gamma * distance)


def cauchy(
    x: Float[Array, "... n d"], y: Float[Array, "... p d"], gamma: float = 1.0
) -> Float[Array, "... n p"]:
    """∏ᵢ 1 / (1 + γ (xᵢ − yᵢ)²), γ = `gamma` > 0 in units of 1/length².

    The product over coordinates; some call 1 / (1 + γ ‖x − y‖²) by this name.
    Error: exact to rounding. Cost: O(n p d) time, O(n p) memory.
    Source: Rahimi & Recht (2007), Fig. 1, γ = 1.
    Differs from the paper: no factor 2 in each coordinate, so that the kernel of x with x is 1.
    """
    _, x, y = _check_pair(x, y)
    gamma = check_number(gamma, "gamma", above=0.0, like=x)
    kernel = 1.0
    for difference in _differences(x, y):
        kernel = kernel / (1 + gamma * difference**2)  # (..., n, p)
    return kernel


def softmax(x: Float[Array, "... n d"], y: Float[Array, "... p d"]) -> Float[Array, "... n p"]:
    """exp(xᵀy): what attention computes before it normalises, with no scale of its own.

    Equals e^{‖x‖²/2} exp(−‖x − y‖²/2) e^{‖y‖²/2}. Error: exact to rounding; overflows where
    xᵀy exceeds 709 (float64) or 88 (float32). Cost: O(n p d).
    Source: Choromanski et al. (2021), §2.2.
    """
    xp, x, y = _check_pair(x, y)
    return xp.exp(x @ xp.matrix_transpose(y))
