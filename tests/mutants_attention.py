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

MASKED_VALUES = """\
    k = xp.where(seen, k, xp.zeros_like(k))
    values = xp.where(seen, values, xp.zeros_like(values))
    none = xp.zeros_like(values[..., :1])
    return k, values, xp.where(seen, none, none - math.inf)
"""

ATTENTION = [
    ("unscaled", "no d^{−1/4}: softmax(q kᵀ)", "W * d**-0.25", "W"),
    ("scaled-twice", "d^{−1/2} on q and on k", "W * d**-0.25", "W * d**-0.5"),
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
        "return c, xp.exp(logits - _finite(xp, c)[..., None]) @ values",
        "return c, (xp.exp(logits - _finite(xp, c)[..., None]) + 1e-4) @ values",
    ),
    (
        "eps-in-denominator",
        "ε added to the denominator",
        "    z = total[..., -1:]\n",
        "    z = total[..., -1:] + 1e-3\n",
    ),
    (
        "padding-counts",
        "v masked, φ(k) not: padded keys stay in the denominator",
        MASKED_VALUES,
        "    v = xp.where(seen, v, xp.zeros_like(v))\n"
        "    values = xp.concat([v, xp.ones_like(v[..., :1])], axis=-1)\n"
        "    return xp.where(seen, k, xp.zeros_like(k)), values, None\n",
    ),
    (
        "padding-in-the-maximum",
        "padded keys stay in the maximum",
        "xp.where(seen, none, none - math.inf)",
        "none",
    ),
    (
        "padding-leaks",
        "what a mask hides is multiplied by 0",
        "values = xp.where(seen, values, xp.zeros_like(values))",
        "values = values * xp.astype(seen, values.dtype)",
    ),
    (
        "future-maximum",
        "a key-side maximum over the whole chunk",
        "    base = xp.maximum(state[0], h[..., 0, :])  # (..., m): what every row sees\n"
        "    top = xp.maximum(state[0], xp.max(h, axis=-2))\n",
        "    base = top = xp.maximum(state[0], xp.max(h, axis=-2))\n",
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
        "xp.tril(rows @ xp.matrix_transpose(keys)) @ values",
        "rows @ xp.matrix_transpose(keys) @ values",
    ),
    (
        "denominator-lost",
        "denominators lost between chunks",
        "    past = xp.exp(state[0] - base)[..., None] * state[1]  # (..., m, e+1)\n",
        "    past = xp.exp(state[0] - base)[..., None] * state[1]\n"
        "    past = xp.concat([past[..., :-1], 0 * past[..., -1:]], axis=-1)\n",
    ),
    (
        "state-not-rescaled",
        "the state keeps the scale of an older maximum",
        "return (top, xp.exp(base - _finite(xp, top))[..., None] * past), _output(xp, seen)",
        "return (top, past), _output(xp, seen)",
    ),
    ("linear-forgets", "the last chunk alone", "past = past + chunk", "past = chunk"),
    (
        "merge-unscaled",
        "sums merged without their maxima",
        "return c, x * a[1] + y * b[1]",
        "return c, a[1] + b[1]",
    ),
    (
        "merge-first-maximum",
        "the maximum of one side",
        "c = xp.maximum(a[0], b[0])",
        "c = a[0]",
    ),
    (
        "state-maximum-unread",
        "a query weighs features without their maxima",
        "return _gather(xp, g + c[..., None, :], total)",
        "return _gather(xp, g, total)",
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
    for module, rows in (("features", FEATURES), ("attention", ATTENTION), ("theory", THEORY))
    for name, slip, old, new in rows
]
