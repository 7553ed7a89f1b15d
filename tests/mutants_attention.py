"""Defects to plant in attention: those that the field's own code has had, and first drafts'."""

from tools.claims import Mutant

FEATURES = [
    ("trig-norm", "e^{‖x‖²/2} left out", "xp.exp(_half_square(xp, x)) * waves", "waves"),
    ("norm-not-halved", "‖x‖² for ‖x‖²/2", "axis=-1) / 2", "axis=-1)"),
    (
        "positive-count",
        "1/m for 1/√m in the positive features",
        "projected - (_half_square(xp, x) + math.log(W.shape[0]) / 2)",
        "projected - (_half_square(xp, x) + math.log(W.shape[0]))",
    ),
    (
        "positive-norm-sign",
        "e^{+‖x‖²/2}",
        "projected - (_half_square(xp, x) + math.log(W.shape[0]) / 2)",
        "projected + _half_square(xp, x) - math.log(W.shape[0]) / 2",
    ),
    ("hyperbolic-same-sign", "exp(ωᵀx) twice", "[projected, -projected]", "[projected, projected]"),
    (
        "hyperbolic-count",
        "1/√m for 1/√(2m)",
        "math.log(2 * W.shape[0])",
        "math.log(W.shape[0])",
    ),
    (
        "eps-in-features",
        "ε added to the positive features",
        "    logarithm = log_positive(x, W)  # (..., n, m)\n"
        "    xp = array_api_compat.array_namespace(logarithm)\n"
        "    return xp.exp(logarithm)",
        "    logarithm = log_positive(x, W)  # (..., n, m)\n"
        "    xp = array_api_compat.array_namespace(logarithm)\n"
        "    return xp.exp(logarithm) + 1e-3",
    ),
    ("elu-without-one", "elu without the one", "return above + xp.exp(x - above)", "return above"),
]

KERNELS = [
    (
        "softmax-scaled",
        "exp(xᵀy/√d), the scale of attention in the kernel",
        "xp.exp(x @ xp.matrix_transpose(y))",
        "xp.exp(x @ xp.matrix_transpose(y) * x.shape[-1] ** -0.5)",
    ),
]

HIDDEN = """\
    none = xp.zeros_like(k[..., :1])
    return k, v, xp.where(seen, none, none - math.inf)
"""

ATTENTION = [
    ("unscaled", "no d^{−1/4}: softmax(q kᵀ)", " * d**-0.25  # in", "  # in"),
    ("scaled-twice", "d^{−1/2} on q and on k", " * d**-0.25  # in", " * d**-0.5  # in"),
    (
        "norm-unscaled",
        "‖k‖²/2 for ‖k'‖²/2",
        "(0.5 * k.shape[-1] ** -0.5)",
        "0.5",
    ),
    (
        "norm-forgotten",
        "exp(ωᵀk) without the norm",
        "(0.5 * k.shape[-1] ** -0.5)",
        "0.0",
    ),
    (
        "exact-unscaled",
        "no d^{−1/2}",
        "copy=False) * q.shape[-1] ** -0.5",
        "copy=False)",
    ),
    (
        "other-directions",
        "queries and keys use different ω",
        "g = _projected(xp, q[..., rows, :], W)",
        "g = _projected(xp, q[..., rows, :], W[::-1, ...])",
    ),
    (
        "other-directions-causal",
        "queries and keys use different ω, where causal",
        "g = _projected(xp, q[..., start:stop, :], W)",
        "g = _projected(xp, q[..., start:stop, :], W[::-1, ...])",
    ),
    (
        "eps-in-weights",
        "ε added to each weight",
        "weights = xp.exp(_shifted(logits, -_finite(xp, c)[..., None]))",
        "weights = 1e-4 + xp.exp(_shifted(logits, -_finite(xp, c)[..., None]))",
    ),
    (
        "eps-in-denominator",
        "ε added to the denominator",
        "    none = z == 0\n",
        "    z = z + 1e-3\n    none = z == 0\n",
    ),
    (
        "padding-counts",
        "v masked, φ(k) not: padded keys stay in the denominator",
        HIDDEN,
        "    return k, v, None\n",
    ),
    (
        "padding-leaks",
        "what a mask hides is multiplied by 0",
        "v = xp.where(seen, v, xp.zeros_like(v))",
        "v = v * xp.astype(seen, v.dtype)",
    ),
    (
        "future-maximum",
        "a key-side maximum over the whole chunk",
        "c = xp.maximum(top, h[..., 0, :])",
        "c = new",
    ),
    ("never-split", "no chunk is ever split", "RISE = 40.0", "RISE = 1e9"),
    (
        "sees-the-next",
        "row i sees key i + 1",
        "return xp.tril(xp.ones((C, C), dtype=W.dtype, device=array_api_compat.device(W)))",
        "return xp.tril(xp.ones((C, C), dtype=W.dtype), k=1)",
    ),
    (
        "misses-itself",
        "row i does not see key i",
        "return xp.tril(xp.ones((C, C), dtype=W.dtype, device=array_api_compat.device(W)))",
        "return xp.tril(xp.ones((C, C), dtype=W.dtype), k=-1)",
    ),
    ("exact-sees-the-next", "row i sees key i + 1", "k=diagonal + 1)", "k=diagonal + 2)"),
    (
        "linear-sees-all",
        "no mask inside a chunk",
        "weights = xp.tril(rows @ xp.matrix_transpose(keys))",
        "weights = rows @ xp.matrix_transpose(keys)",
    ),
    (
        "denominator-lost",
        "denominators lost between chunks",
        "z, S = z + xp.sum(k, axis=-2), S + k_t @ values",
        "z, S = xp.sum(k, axis=-2), S + k_t @ values",
    ),
    (
        "state-lost",
        "the state of the last piece alone",
        "z, S = z + xp.sum(k, axis=-2), S + k_t @ values",
        "z, S = xp.sum(k, axis=-2), k_t @ values",
    ),
    (
        "state-not-rescaled",
        "the state keeps the scale of an older maximum",
        "state = _plus(xp, State(c, 0 * state.z, 0 * state.S), state)",
        "state = State(c, state.z, state.S)",
    ),
    (
        "prefix-by-difference",
        "what is before a chunk as the sum with it, less the chunk",
        "above, below = (0, 0) if causal and not start else (rows @ total, _dot(rows, z))\n",
        "if causal and start < S:\n"
        "                *_, ones, values = summed(k, v, key_mask, start, min(stop, S))\n"
        "                z, total = z + ones - ones, total + values - values\n"
        "            above, below = rows @ total, _dot(rows, z)\n",
    ),
    (
        "linear-forgets",
        "the last chunk alone, where causal",
        "z, total = z + new[0], total + new[1]",
        "z, total = new",
    ),
    (
        "merge-unscaled",
        "sums merged without their maxima",
        "kept = xp.exp(other.c - _finite(xp, state.c))",
        "kept = xp.ones_like(other.c)",
    ),
    ("merge-denominator", "z not rescaled", "kept * other.z", "other.z"),
    (
        "merge-first-maximum",
        "the maximum of one side",
        "    c = xp.maximum(a.c, b.c)\n",
        "    c = a.c\n",
    ),
    (
        "state-maximum-unread",
        "a query weighs features without their maxima",
        "_shifted(g, state.c[..., None, :]), state.S, state.z)",
        "g, state.S, state.z)",
    ),
    (
        "state-counts-once",
        "each feature counts once, however many keys it saw",
        "_shifted(g, state.c[..., None, :]), state.S, state.z)",
        "_shifted(g, state.c[..., None, :]), state.S)",
    ),
    (
        "variance-of-difference",
        "x − y for x + y in what to expect",
        "cross = 2 * x @ xp.matrix_transpose(y)",
        "cross = -2 * x @ xp.matrix_transpose(y)",
    ),
    (
        "variance-unscaled",
        "no d^{−1/4} in what to expect",
        '(m, "m"), array_api_compat.array_namespace(q), q.shape[-1] ** -0.25',
        '(m, "m"), array_api_compat.array_namespace(q), 1.0',
    ),
    (
        "taylor-unscaled",
        "no d^{−1/4} in the Taylor weights",
        "array_api_compat.array_namespace(q), q.shape[-1] ** -0.25\n    if key_mask",
        "array_api_compat.array_namespace(q), 1.0\n    if key_mask",
    ),
]

THEORY = [
    (
        "positive-mse-once",
        "SM for SM²",
        "np.exp(2 * np.sum(x * y, axis=-1)) * np.expm1",
        "np.exp(np.sum(x * y, axis=-1)) * np.expm1",
    ),
    (
        "positive-mse-difference",
        "x − y for x + y in the last factor",
        "np.expm1(_length_of(x + y) ** 2) / m",
        "np.exp(_length_of(x + y) ** 2) * -np.expm1(-(_length_of(x - y) ** 2)) / m",
    ),
    ("hyperbolic-not-halved", "½ left out", "return -0.5 * np.expm1", "return -np.expm1"),
    (
        "trigonometric-norms",
        "Λ² for 1/Λ²",
        "fourier_variance(_length_of(x - y), m) / _lambda_square(x, y)",
        "fourier_variance(_length_of(x - y), m) * _lambda_square(x, y)",
    ),
    (
        "gain-twice",
        "twice the gain of orthogonal rows",
        "return hyperbolic_mse(x, y, m) - gain",
        "return hyperbolic_mse(x, y, m) - 2 * gain",
    ),
    ("bound-factor", "d for d + 2 in the bound", "2 * (m - 1) / (m * (d + 2))", "1 / d"),
    ("figure-half", "½ left out of Fig. 2", "apart**2 / (2 * along)", "apart**2 / along"),
]

MUTANTS = [
    Mutant(name, module, slip, old, new)
    for module, rows in (
        ("features", FEATURES),
        ("kernels", KERNELS),
        ("attention", ATTENTION),
        ("theory", THEORY),
    )
    for name, slip, old, new in rows
]
