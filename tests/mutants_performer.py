"""Defects to plant in what lesson 12 adds: sharper features, the ratio, a block."""

from tools.claims import Mutant

FEATURES = [
    ("sharp-sign", "a = (1/ρ − 1)/8", "(1 - 1 / rho) / 8", "(1 / rho - 1) / 8"),
    ("sharp-not-wider", "√(1−4a) left out of ωᵀx", "W * xp.sqrt(wider)", "W"),
    (
        "sharp-wider-twice",
        "1 − 4a for its root",
        "W * xp.sqrt(wider)",
        "W * wider",
    ),
    ("sharp-front", "(1−4a)^{1/2} for the root of it", "xp.log(wider)) / 4", "xp.log(wider)) / 2"),
    (
        "sharp-front-once",
        "the front factor of one axis for d",
        "xp.sum(xp.log(wider)) / 4",
        "xp.mean(xp.log(wider)) / 4",
    ),
    ("sharp-unweighted", "e^{aω²} left out", "(W * W) @ a + xp.sum", "xp.sum"),
    (
        "sharp-one-rho",
        "the mean of ρ on all axes",
        "rho = _check_rho(xp, rho, x)  # (d,)",
        "rho = xp.mean(_check_rho(xp, rho, x)) + 0 * x[..., 0, :]",
    ),
    (
        "norm-not-halved",
        "‖x‖² for ‖x‖²/2",
        "axis=-1) / 2",
        "axis=-1)",
    ),
]

THEORY = [
    ("sharp-mse-rho", "e^{ρz²} for e^{(1+ρ)z²}", "(1 + rho) * z2 +", "rho * z2 +"),
    ("sharp-mse-difference", "x − y for x + y", "z2 = (x + y) ** 2", "z2 = (x - y) ** 2"),
    (
        "sharp-mse-front",
        "(1+ρ)/2 without 1/√ρ",
        "rho) * z2 + np.log((1 + rho) / (2 * np.sqrt(rho)))",
        "rho) * z2 + np.log((1 + rho) / 2)",
    ),
    ("best-rho-d", "4dp for 8dp", "8 * d * p", "4 * d * p"),
    ("best-rho-p", "p for 2p", "2 * d / (2 * p + d", "2 * d / (p + d"),
    ("bias-sign", "the bias towards large g", "return -(pull @ v", "return (pull @ v"),
    (
        "bias-without-variance",
        "−Cov(N, D) alone",
        "(pull @ v - pull.sum(axis=1, keepdims=True) * o) / m",
        "(pull @ v) / m",
    ),
    ("bias-order", "1/m² for 1/m", "keepdims=True) * o) / m", "keepdims=True) * o) / m**2"),
    ("output-uncentred", "v_j for v_j − o", "a[:, None] * (v - mean)", "a[:, None] * v"),
    (
        "output-independent",
        "weights of one query taken for independent",
        "(_second_moments(row + y, rho) @ apart)",
        "(np.diag(np.diag(_second_moments(row + y, rho))) @ apart)",
    ),
    (
        "moments-of-keys",
        "k' for q' + k'",
        "np.stack([a * (_second_moments(row + y, rho) @ a)",
        "np.stack([a * (_second_moments(y, rho) @ a)",
    ),
    (
        "moments-rho",
        "ρ left out of the second moment",
        "w = z * np.sqrt((1 + rho) / 2)",
        "w = z",
    ),
    (
        "regularised-ratio",
        "z² for d z²",
        "return np.exp(-(z**2) / 2) * _bessel(d * z**2, d)",
        "return np.exp(-(z**2) / 2) * _bessel(z**2, d)",
    ),
]

TRANSFORMER = [
    (
        "block-forgets-input",
        "attention replaces x, and is not added",
        "x = x + _attend(normed, layer, config, key_mask, attend)",
        "x = _attend(normed, layer, config, key_mask, attend)",
    ),
    (
        "block-unnormed",
        "the map without its norm",
        'normed = layer_norm(x, layer["map gain"], layer["map shift"])',
        "normed = x",
    ),
    (
        "favor-not-causal",
        "features see later tokens",
        'favor_attention(q, k, v, layer["W"], causal=causal, key_mask=key_mask)',
        'favor_attention(q, k, v, layer["W"], key_mask=key_mask)',
    ),
    (
        "favor-unmasked",
        "features see padding",
        'favor_attention(q, k, v, layer["W"], causal=causal, key_mask=key_mask)',
        'favor_attention(q, k, v, layer["W"], causal=causal)',
    ),
    (
        "softmax-always",
        "the choice of attention is not looked at",
        "attend = attend or ATTENTIONS[config.attention]",
        'attend = attend or ATTENTIONS["softmax"]',
    ),
    (
        "heads-mixed",
        "heads joined without moving them back",
        "parts = xp.moveaxis(x, -3, -2)  # (..., L, heads, d)",
        "parts = x",
    ),
]

ATTENTION = [
    (
        "unscaled",
        "no d^{−1/4}: softmax(q kᵀ)",
        " * d**-0.25  # in",
        "  # in",
    ),
    (
        "variance-of-difference",
        "x − y for x + y in what to expect",
        "cross = 2 * x @ xp.matrix_transpose(y)",
        "cross = -2 * x @ xp.matrix_transpose(y)",
    ),
]

PROJECTIONS = [
    (
        "unsigned-qr",
        "Q as LAPACK leaves it",
        "return Q * signs[:, None, :]",
        "return Q",
    ),
    (
        "norms-squared",
        "χ² for χ",
        "np.sqrt(squares) * directions",
        "squares * directions",
    ),
]

MUTANTS = [
    Mutant(name, module, slip, old, new)
    for module, rows in (
        ("features", FEATURES),
        ("theory", THEORY),
        ("transformer", TRANSFORMER),
        ("attention", ATTENTION),
        ("projections", PROJECTIONS),
    )
    for name, slip, old, new in rows
]
