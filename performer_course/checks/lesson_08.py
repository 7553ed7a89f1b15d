"""Lesson 08, the softmax kernel."""

import functools
import math

import numpy as np
from scipy import special

from ._judge import Hint, averages, check, judge, nearly, no_square, numbers, two_arrays


@check
def smoother_as_attention(queries_and_keys):
    """queries_and_keys(x, centres, gamma) → q (n, w), k (p, w): softmax(q kᵀ/√w) smooths.

    Its weights are exp(−γ‖x_i − c_j‖²) over their sum, for x (n, d) and centres (p, d).
    """
    rng = np.random.default_rng(801)
    for d, gamma in ((4, 1.2), (1, 0.3)):
        x, c = rng.normal(size=(4, d)), rng.normal(size=(6, d))
        q, k = two_arrays(queries_and_keys(x, c, gamma), "q and k")
        if q.ndim != 2 or k.ndim != 2 or (len(q), len(k)) != (4, 6) or q.shape[1] != k.shape[1]:
            raise Hint(
                f"4 points and 6 centres must give q (4, w) and k (6, w), "
                f"got {q.shape} and {k.shape}."
            )
        inner, square = x @ c.T, (c**2).sum(axis=1)
        logits = 2 * gamma * inner - gamma * square  # up to a term of x alone
        w = q.shape[1]
        twice = "each of q and k takes w^{1/4}, or one of them √w."
        half = "the norm of a centre has half the factor of the cross term: γ, where that has 2γ."
        width = "with 1/(2h²) for γ."
        slips = [
            (logits / math.sqrt(w), "attention divides by √w: multiply q or k by it."),
            (logits / w, "attention divides by √w: multiply q or k by it."),
            (logits / w**0.25, twice),
            (logits * math.sqrt(w), twice),
            (logits * math.sqrt(2 / w), "2^{1/4} on each is the lesson's, for its width 2."),
            (logits * math.sqrt(d / w), f"√w for the width w = {w} that you chose, not √d."),
            (logits * math.sqrt((d + 1) / w), f"√w for the width w = {w} that you chose."),
            (inner / math.sqrt(w), "these are the points: γ and the norms of centres are missing."),
            (2 * gamma * inner - 2 * gamma * square, half),
            (inner / gamma**2 - square / (2 * gamma**2), f"γ is no bandwidth h: begin {width}"),
            (inner / gamma - square / (2 * gamma), f"γ is no bandwidth h², either: begin {width}"),
            (2 * gamma**2 * inner - gamma * square, "γ comes once in the product: in q or in k."),
            (4 * gamma**2 * inner - gamma * square, "2γ comes once in the product: in q or in k."),
            (2 * gamma * inner, "the norms of the centres are missing: long keys win."),
            (2 * gamma * inner + gamma * square, "the norm of a centre is subtracted."),
            (gamma * inner - gamma * square, "the cross term of −γ‖x − c‖² is 2γ xᵀc."),
            (2 * gamma * inner - square, "the norm of a centre has the factor γ, too."),
            (logits / (2 * gamma), "the weights must depend on γ: this has γ = ½."),
            (logits / 2, "γ is halved: exp(−γ‖x − c‖²) has no ½ of its own."),
            (2 * gamma * inner - gamma * np.sqrt(square), "the norm of a centre is squared."),
            (-logits, "the signs are turned: far centres win."),
        ]
        judge(
            special.softmax(q @ k.T / math.sqrt(w), axis=1),
            special.softmax(logits, axis=1),
            [(special.softmax(wrong, axis=1), hint) for wrong, hint in slips],
        )


@check
def trigonometric_attention(attend):
    """attend(q, k, v, W) = Σ_j Â_ij v_j / Σ_j Â_ij → (L, e), with d^{−1/4} on q and on k.

    Â_ij = e^{(‖x_i‖² + ‖y_j‖²)/2} (1/m) Σ cos(ωᵀ(x_i − y_j)), x = q d^{−1/4}, y = k d^{−1/4}.
    """
    rng = np.random.default_rng(802)
    for L, S, d, e, m, size in ((5, 7, 6, 2, 40, 0.6), (3, 4, 9, 3, 30, 0.6), (6, 5, 3, 2, 2, 3.0)):
        q, k = size * rng.normal(size=(L, d)), size * rng.normal(size=(S, d))
        v, W = rng.normal(size=(S, e)), rng.normal(size=(m, d))

        def weights(scale=(-0.25, -0.25), turn=1.0, norm=0.5, q=q, k=k, W=W, d=d, sign=1, power=2):
            x, y = q * d ** scale[0], k * d ** scale[1]
            phase = turn * ((x @ W.T)[:, None] - sign * (y @ W.T)[None])  # (L, S, m)
            norms = (y**2).sum(axis=1) ** (power / 2)
            return np.cos(phase).mean(axis=-1) * np.exp(norm * norms)

        output = functools.partial(averages, v=v)
        A = weights()
        x, y = q * d**-0.25, k * d**-0.25
        full = A * np.exp((x**2).sum(axis=1, keepdims=True) / 2)  # with the factor of the query
        key_norms = np.exp((y**2).sum(axis=1) / 2)

        def waves(*parts, x=x @ W.T, y=y @ W.T, key_norms=key_norms):
            """The features of one wave or a sum of waves, weighed with the norms of keys."""
            a, b = (sum(part(phase) for part in parts) for phase in (x, y))
            return a @ b.T * key_norms

        positive = np.exp(x @ W.T) @ np.exp(y @ W.T).T / key_norms
        logits = q @ k.T / math.sqrt(d)
        scale_hint = "the scale is missing: d^{−1/4} on q and on k."
        shared = "all of the scale is on {}: unbiased, but share it, d^{{−1/4}} on each."
        found = attend(q, k, v, W)
        judge(
            found,
            output(A),
            [
                (output(weights(scale=(-0.5, 0))), shared.format("q")),
                (output(weights(scale=(0, -0.5))), shared.format("k")),
                (output(weights(scale=(0.25, 0.25))), "divide by d^{1/4}, do not multiply."),
                (output(weights(norm=0.5 * math.sqrt(d))), "‖y‖² is that of the scaled key."),
                (output(weights(power=1)), "the norm enters squared: e^{‖y‖²/2}."),
                (output(weights(sign=-1)), "the cosine is of ωᵀ(x − y): the sines have a plus."),
                (output(waves(np.sin)), "sines alone: the cosines are missing."),
                (output(waves(np.cos, np.sin)), "cos and sin are two features: do not add them."),
                (output(positive), "these are positive features: cos and sin are asked for."),
                (full @ v / full.sum(), "each row has a sum of weights of its own."),
                (output(weights(scale=(0, 0))), scale_hint),
                (output(weights(scale=(-0.5, -0.5))), "d^{−1/4} on each, not d^{−1/2}."),
                (output(weights(scale=(-0.25, 0))), "k needs the factor d^{−1/4}, too."),
                (output(weights(scale=(0, -0.25))), "q needs the factor d^{−1/4}, too."),
                (output(weights(turn=2 * np.pi)), "there is a 2π inside: W is in radians."),
                (output(weights(norm=0.0)), "e^{‖y‖²/2} is missing: of keys, it does not cancel."),
                (output(weights(norm=-0.5)), "e^{+‖y‖²/2}: the minus is that of other features."),
                (output(weights(norm=1.0)), "the norm enters halved: e^{‖y‖²/2}."),
                (output(waves(np.cos)), "cosines alone: the sines are missing."),
                (full @ v, "divide each row by the sum of its weights."),
                (m * full @ v, "divide each row by the sum of its weights."),
                (A @ v, "divide each row by the sum of its weights."),
                (full @ v / S, "divide by the sum of the weights, not by the number of keys."),
                ((full / full.sum(axis=0)) @ v, "divide by the sum over keys, not over queries."),
                (np.tile(v.mean(axis=0), (L, 1)), "this is mean(V): nothing of the query is left."),
                (
                    special.softmax(logits, axis=1) @ v,
                    "this is exact attention: use the features of W.",
                ),
                nearly(found, output(A)),
                (
                    found if size > 1 else np.inf,
                    "right where the sums of weights are positive: divide by a negative one, too.",
                ),
            ],
        )
    long = rng.normal(size=(500, 2))
    no_square(lambda: attend(long, long, long, long[:1]), long, 500)


@check
def nearer_keys(move):
    """move(q, k) → (S, d): keys of the same attention, as near to the queries as can be.

    The mean of ‖q_i − k_j‖² over all pairs is least; L > d queries leave one answer.
    """
    rng = np.random.default_rng(803)
    for L, S, d in ((7, 5, 4), (4, 9, 2)):
        q, k = 1 + rng.normal(size=(L, d)), rng.normal(size=(S, d)) - 0.5
        right = k + q.mean(axis=0) - k.mean(axis=0)
        found = move(q, k)
        if isinstance(found, tuple):
            raise Hint("the queries stay: return the keys alone.")
        found = numbers(found)
        slips = [
            (q.mean(axis=0) - k.mean(axis=0), "this is the shift: add it to the keys."),
            (k, "these are the keys as they came: they can come nearer."),
            (k - k.mean(axis=0), "centred at 0. But the queries are not around 0."),
            (k + q.mean(axis=0), "where is the mean of the keys, before and after?"),
            (k + k.mean(axis=0) - q.mean(axis=0), "the sign is turned: this is further away."),
            (k + q.mean() - k.mean(), "a mean for each coordinate: axis 0."),
            (
                k + np.median(q, axis=0) - np.median(k, axis=0),
                "a mean of squares is least at the mean, not at the median.",
            ),
            (
                np.tile(q.mean(axis=0), (S, 1)),
                "near, but all keys are one: attention is uniform now.",
            ),
        ]
        if found.shape == k.shape:
            weights = [special.softmax(q @ keys.T / math.sqrt(d), axis=1) for keys in (k, found)]
            if np.allclose(*weights, rtol=1e-9, atol=1e-12):
                near = (((q[:, None] - keys) ** 2).sum(-1).mean() for keys in (found, right))
                text = "the same attention, but the mean of ‖q − k‖² is {:.4g}, and can be {:.4g}."
                slips.append((found, text.format(*near)))
            else:
                slips.append(
                    (
                        found,
                        "this changes attention. What may be added to a key, so that all weights "
                        "of a query get the same factor?",
                    )
                )
        judge(found, right, slips, atol=1e-6)  # a search for the least comes that near
