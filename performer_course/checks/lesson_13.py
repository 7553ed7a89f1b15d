"""Lesson 13, the Performer."""

import math

import numpy as np

from ._judge import averages, check, judge, nearly, no_square


@check
def performer_layer(layer):
    """layer(x, W_q, W_k, W_v, W, heads): positive features, a head at a time, side by side."""
    rng = np.random.default_rng(1201)
    for L, heads, d, m in ((5, 3, 5, 6), (4, 2, 3, 5)):
        n = heads * d
        x, W = rng.normal(size=(L, n)), rng.normal(size=(m, d))
        parts = rng.normal(size=(3, n, n)) / math.sqrt(n)
        v = (x @ parts[2]).reshape(L, heads, d)
        sizes = (L, heads, d)

        def weights(
            power=-0.25,
            of_k=None,
            size=d,
            key_norm=0.5,
            order=(0, 1),
            query_norm=0.0,
            top=False,
            sizes=sizes,
            x=x,
            W=W,
            parts=parts,
        ):
            """φ(q)ᵀφ(k) of each head: (heads, L, L)."""
            of_k = power if of_k is None else of_k
            q, k = ((x @ parts[i]).reshape(sizes) for i in order)
            q, k = q * size**power, k * size**of_k
            log_q, log_k = (
                a @ W.T - norm * (a**2).sum(axis=2, keepdims=True)  # (L, heads, m)
                for a, norm in ((q, query_norm), (k, key_norm))
            )
            if top:
                log_k = log_k - log_k.max(axis=2, keepdims=True)
            return np.einsum("ihf,jhf->hij", np.exp(log_q), np.exp(log_k))

        def joined(A, v=v):
            mixed = np.einsum("hij,jhd->ihd", A, v)
            return mixed.reshape(len(mixed), -1)

        def shares(A):
            return A / A.sum(axis=2, keepdims=True)

        def rows(A):
            return joined(shares(A))

        def strided(sizes=(L, d, heads), x=x, W=W, parts=parts, d=d):
            """Head h owns every `heads`-th column."""
            q, k, v = ((x @ part).reshape(sizes).swapaxes(1, 2) for part in parts)
            q, k = q * d**-0.25, k * d**-0.25
            log_k = k @ W.T - (k**2).sum(axis=2)[..., None] / 2
            A = np.einsum("ihf,jhf->hij", np.exp(q @ W.T), np.exp(log_k))
            mixed = np.einsum("hij,jhd->ihd", shares(A), v)
            return mixed, mixed.swapaxes(1, 2)

        right, whole = weights(), weights(query_norm=0.5)  # whole: with the norm of the query
        q, k = ((x @ part).reshape(sizes) for part in parts[:2])
        t = np.einsum("ihd,jhd->hij", q, k) / math.sqrt(d)

        def unmoved(x=x, W=W, parts=parts, sizes=(heads, L, d), d=d):
            """(L, n) reshaped to (heads, L, d) in one step: (heads, L, d)."""
            q, k, v = ((x @ part).reshape(sizes) for part in parts)
            log_q, log_k = (a * d**-0.25 @ W.T for a in (q, k))
            log_k = log_k - (k**2).sum(axis=2, keepdims=True) / (2 * math.sqrt(d))
            return averages(np.exp(log_q) @ np.exp(log_k).swapaxes(1, 2), v)

        moved = "(L, n) is (L, heads, d) first: reshape to that, then swap the first two axes."
        shared = "all of the scale is on {}: unbiased, but share it, d^{{−1/4}} on each."
        found = layer(x, *parts, W, heads)
        judge(
            found,
            rows(right),
            [
                (unmoved().swapaxes(0, 1).reshape(L, n), moved),
                (unmoved().reshape(L, n), moved),
                (joined(whole), "the denominator is missing."),
                (joined(whole) / m, "the denominator is missing."),
                (joined(whole) / L, "divide by the sum of the weights, not by the number of keys."),
                (
                    joined(whole) / (m * L),
                    "divide by the sum of the weights, not by the number of keys.",
                ),
                (rows(np.tril(right)), "this is causal: all-to-all is asked for."),
                (rows(weights(-0.5, of_k=0.0)), shared.format("q")),
                (rows(weights(0.0, of_k=-0.5)), shared.format("k")),
                (rows(weights(of_k=0.0)), "k needs the factor d^{−1/4}, too."),
                (rows(weights(0.0, of_k=-0.25)), "q needs the factor d^{−1/4}, too."),
                (rows(weights(size=m)), "the scale is d^{−1/4}, of the width of a head, not of m."),
                (rows(weights(key_norm=0.5 * math.sqrt(d))), "‖k‖² is that of the scaled key."),
                (rows(weights(order=(1, 0))), "queries and keys have changed places."),
                (
                    rows(weights(top=True)),
                    "a maximum for each key changes its weight: one for all keys, or none.",
                ),
                (
                    joined(shares(right), x.reshape(sizes)),
                    "the values are x W_v, not x.",
                ),
                (rows(weights(size=n)), "the scale is that of a head: d^{−1/4}, d = n / heads."),
                (rows(weights(power=0.0)), "q and k are scaled by d^{−1/4} first."),
                (rows(weights(power=-0.5)), "d^{−1/4} on q and on k: the product has d^{−1/2}."),
                (rows(weights(key_norm=0.0)), "e^{−‖k‖²/2} is missing: of keys it matters."),
                (rows(weights(key_norm=1.0)), "the norm enters halved: e^{−‖k‖²/2}."),
                (rows(weights(key_norm=-0.5)), "a minus: e^{+‖k‖²/2} is for cos and sin."),
                (joined(right), "the denominator is missing."),
                (joined(right) / m, "the denominator is missing."),
                (
                    joined(right / right.sum(axis=(0, 2))[None, :, None]),
                    "each head has a denominator of its own.",
                ),
                (
                    joined(right / right.sum(axis=1, keepdims=True)),
                    "the sum runs over the keys of a query, not over queries.",
                ),
                (rows(right + weights(W=-W)), "hyperbolic features: positive ones are asked for."),
                (rows(np.exp(t)), "this is exact attention: use the features of W."),
                (rows(np.ones_like(t)), "this is mean(V): where are q and k?"),
                *(
                    (mixed.reshape(L, n), "head h owns d columns that stand side by side.")
                    for mixed in strided()
                ),
                (
                    np.einsum("hij,jhd->hid", shares(right), v).reshape(L, n),
                    "move the heads back beside their columns before you reshape.",
                ),
                nearly(found, rows(right)),
            ],
        )
    long, square = rng.normal(size=(500, 4)), np.eye(4)
    no_square(lambda: layer(long, square, square, square, square[:2, :2], 2), long, 500)


@check
def less_biased(combine):
    """combine(attend, W): the terms β/m of outputs drop out, all 2m directions count alike."""
    rng = np.random.default_rng(1203)
    for m, shape in ((3, (4, 2)), (8, (2, 5))):
        o, beta = rng.normal(size=(2, *shape))
        W, u = rng.normal(size=(2 * m, 3)), rng.normal(size=(3, *shape))

        def noise(W, u=u):
            """What a draw adds: a mean over its directions."""
            return np.tensordot(W.mean(axis=0), u, axes=1)

        def attend(W, o=o, beta=beta, noise=noise):
            return o + beta / len(W) + noise(W)

        def made(truth, bias, share, o=o, beta=beta, m=m):
            return truth * o + bias * beta / m + share

        every, first, last = noise(W), noise(W[:m]), noise(W[m:])
        judge(
            combine(attend, W),
            made(1, 0, every),
            [
                (made(1, 0.5, every), "all directions at once: the bias is β/(2m), not 0."),
                (made(1, 1, every), "a mean of the two halves has the bias of one half, β/m."),
                (made(1, 1, first), "half of the directions is not used."),
                (made(1, 1, last), "half of the directions is not used."),
                (
                    made(1, 1.5, every),
                    "turned round: twice the output of all, minus the mean of halves.",
                ),
                (made(0, -1, 0 * o), "halve the sum of the two halves: a mean is subtracted."),
                (made(0, -0.5, 0 * o), "this is the bias alone: subtract it from the output."),
                (made(0, 0.5, 0 * o), "this is the bias alone: subtract it from the output."),
                (made(1, 0, 2 * every - first), "use both halves: one alone adds noise."),
                (made(1, 0, 2 * every - last), "use both halves: one alone adds noise."),
                (made(1, 0, 2 * every - noise(W[::2])), "use both halves: one alone adds noise."),
                (
                    made(1, 1.5, 2 * first - every),
                    "turned round: twice the output of all, minus half of both.",
                ),
                (made(2, 0, 2 * every), "the weights must add up to 1."),
                (made(2, 2, 2 * every), "the weights must add up to 1."),
            ],
        )
