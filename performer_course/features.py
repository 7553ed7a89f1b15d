"""Feature maps: the inner product of two rows φ(x), φ(y) gives a kernel, or estimates one.

x: (..., n, d) gives features (..., n, F). All raise ValueError for empty, integer or (on
NumPy) non-finite input and for parameters out of range.
"""

import math
from typing import Any

from jaxtyping import Float

from .backend import check_array, check_count, check_number

Array = Any


def _monomials_by_degree(xp, columns, degree):
    """For k = 0 … degree: the features x^α/√α! with |α| = k, as a (..., n, F_k) array.

    One variable enters at a time: a monomial of degree k is one of degree k − a in the
    variables before, times the a-th power of the new one.
    """
    blocks = [xp.ones_like(columns[0])] + [columns[0][..., :0]] * degree
    for column in columns:  # (..., n, 1)
        powers = [xp.ones_like(column)]  # columnᵃ / √a!
        for a in range(1, degree + 1):
            powers.append(powers[-1] * column / math.sqrt(a))
        blocks = [
            xp.concat([blocks[k - a] * powers[a] for a in range(k + 1)], axis=-1)
            for k in range(degree + 1)
        ]
    return blocks


def _columns(x):
    """The d coordinates of x, each (..., n, 1)."""
    return [x[..., i : i + 1] for i in range(x.shape[-1])]


def monomials(
    x: Float[Array, "... n d"], degree: int, offset: float = 0.0
) -> Float[Array, "... n F"]:
    """φ_α(x) = √(p!/α!) x^α over all |α| = p = `degree`: φ(x)ᵀφ(y) = (xᵀy + c)^p.

    An offset c > 0 enters as one more coordinate √c, and brings in the lower degrees. Two
    coordinates at degree 2 give (x₁², √2 x₁x₂, x₂²).
    Shape: F = C(d+p−1, p), or C(d+p, p) with an offset. Error: exact to rounding.
    Cost: O(n F). Source: Schölkopf & Smola (2002), Prop. 2.1; `kernels.polynomial`.
    """
    xp = check_array(x, "x", "n, d")
    degree = check_count(degree, "degree")
    offset = check_number(offset, "offset", least=0.0)
    columns = _columns(x)
    if offset > 0:
        columns.append(xp.full_like(columns[0], math.sqrt(offset)))
    return math.sqrt(math.factorial(degree)) * _monomials_by_degree(xp, columns, degree)[-1]


def taylor(x: Float[Array, "... n d"], degree: int) -> Float[Array, "... n F"]:
    """φ_α(x) = x^α/√α! over all |α| ≤ p = `degree`: φ(x)ᵀφ(y) = Σ_{k≤p} (xᵀy)^k / k!.

    The exponential series of the softmax kernel, cut after degree p; the same inner products
    as the tensor powers x^{⊗k}/√k!, with repeated entries merged.
    Shape: F = C(d+p, p). Error: |Σ − e^t| ≤ |t|^{p+1} e^{max(t, 0)}/(p+1)!, t = xᵀy.
    Cost: O(n F). Source: Cotter, Keshet & Srebro (2011), §3, without its norm factor.
    """
    xp = check_array(x, "x", "n, d")
    degree = check_count(degree, "degree")
    return xp.concat(_monomials_by_degree(xp, _columns(x), degree), axis=-1)
