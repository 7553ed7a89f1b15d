"""Lesson 12, causal and streaming."""

import math

import numpy as np

from ._judge import Hint, averages, check, holds_at_most, judge, nearly, no_square, numbers


@check
def causal_by_chunks(attend):
    """attend(phi_q, phi_k, v, C): causal linear attention, (heads, L, e), for any chunk size.

    Memory is checked, not work: to go token by token, whatever C is, passes too, and so does
    a row of weights for each query, of L² products in all.
    """
    rng = np.random.default_rng(1101)
    for L, C in ((10, 4), (6, 3), (5, 8), (4, 1)):
        f, g = rng.uniform(0.1, 1.0, size=(2, 3, L, 5))
        v = rng.normal(size=(3, L, 2))
        row, column = np.indices((L, L))
        chunk_of_row, chunk_of_column = row // C, column // C
        pairs = np.einsum("hif,hjf->hij", f, g)

        def rows(seen, pairs=pairs, v=v):
            return averages(pairs * seen, v)

        past, near = column <= row, chunk_of_row == chunk_of_column
        before = chunk_of_column < chunk_of_row
        slips = [
            (pairs * past @ v, "the denominator is missing."),
            (rows(np.ones_like(past)), "every row sees every key: is there a mask?"),
            (rows(before | near), "rows see later keys of their own chunk: mask the product."),
            (rows(past & near), "what earlier chunks saw is lost: carry the state on."),
            (rows(before), "rows do not see their own chunk."),
            (rows(column < row), "row i must see key i too: np.tril keeps the diagonal."),
            (rows(before | (near & (column >= row))), "np.triu keeps the later keys; use np.tril."),
            (
                rows(past & near) + rows(before),
                "add numerators and denominators, then divide once.",
            ),
            (
                rows(past * 1.0 + near),
                "the chunk counts twice: read the state before it is updated.",
            ),
        ]
        if L % C and L > C:
            whole = L // C * C
            slips.append((rows(past)[:, :whole], "the last, shorter chunk is missing."))
        numerator, near_only = pairs * past @ v, (pairs * (past & near)).sum(axis=2, keepdims=True)
        slips.append(
            (numerator / near_only, "the denominator forgets earlier chunks: carry z too.")
        )
        slips.append(
            (
                pairs * (past & near) @ v / (pairs * past).sum(axis=2, keepdims=True),
                "the numerator forgets earlier chunks: carry S too.",
            )
        )
        found = attend(f, g, v, C)
        both = "the mask belongs to the numerator and to the denominator."
        plain = "no exponential: the weights are φ(q)ᵀφ(k) themselves."
        own = np.eye(3)[:, None, :, None] * (past & near)[:, None]  # (heads, L, heads, L)
        mixed = np.einsum("hif,gjf->higj", f, g) * (own + before[:, None])
        mixed = mixed.reshape(3, L, 3 * L)  # the keys of all heads
        last = near | (chunk_of_column == chunk_of_row - 1)
        slips += [
            (numerator / (pairs * (before | near)).sum(axis=2, keepdims=True), both),
            (rows(past & last), "the state holds the last chunk alone: add to it."),
            (rows(past * np.where(near, np.exp(pairs) / pairs, 1)), plain),
            (averages(np.exp(pairs) * past, v), plain),
            (averages(mixed, np.concatenate(v)), "each head has a state of its own."),
            nearly(found, rows(past)),
        ]
        judge(found, rows(past), slips)
    long = rng.uniform(0.1, 1.0, size=(3, 1, 1000, 3))
    no_square(lambda: attend(*long, 50), long, 1000)
    wide = rng.uniform(0.1, 1.0, size=(3, 1, 300, 40))
    each = ", a state (F, e) for each token: one state is enough, carried from chunk to chunk."
    holds_at_most(300 * 40 * 40 * 8, lambda: attend(*wide, 50), wide, each)


def _state_of(h, v):
    """(c, z, S) of logits h (n, m) and values v (n, e)."""
    c = h.max(axis=0)
    weights = np.exp(h - c)
    return c, weights.sum(axis=0), weights.T @ v


def _judge_state(found, a, b, expected, is_empty):
    """Pass where the three arrays are right; else the hint of the likely slip."""
    names = ("c", "z", "S")
    for part, label, right in zip(found, names, expected, strict=True):
        if part is None:
            raise Hint(f"{label} is None.")
        if np.shape(part) != right.shape:
            raise Hint(f"{label} has shape {np.shape(part)}, and {right.shape} is needed.")
        if is_empty and np.isnan(np.asarray(part, dtype=float)).any():
            raise Hint(
                "the empty state must change nothing, and gives NaN. Is it −∞ − (−∞)? "
                "Take exponents relative to 0 where c is −∞."
            )
    (ca, za, Sa), (cb, zb, Sb) = a, b
    x, y = np.exp(ca - expected[0]), np.exp(cb - expected[0])
    slips = {
        "c": [
            (np.minimum(ca, cb), "c is the larger of the two, for each feature."),
            (np.full(4, expected[0].max()), "one maximum for each feature, not one for all."),
            (ca + cb, "c is the larger of the two, not their sum."),
            (np.logaddexp(ca, cb), "c is the larger of the two, not the log of a sum."),
            (ca, "c is the larger of the two, not that of the first."),
            (cb, "c is the larger of the two, not that of the second."),
            ((ca + cb) / 2, "c is the larger of the two, not their mean."),
        ],
        "z": [
            (za + zb, "rescale z before you add: they are relative to different maxima."),
            (y * za + x * zb, "each z is rescaled by its own e^{c_own − c}."),
            (za / x + zb / y, "the sign of the exponent is turned: e^{c_own − c} ≤ 1."),
            ((x * za + y * zb) / 2, "add; do not average."),
        ],
        "S": [
            (Sa + Sb, "rescale S as you rescale z."),
            (za[:, None] * Sa + zb[:, None] * Sb, "S is rescaled by e^{c_own − c}, not by z."),
            (y[:, None] * Sa + x[:, None] * Sb, "each S is rescaled by its own e^{c_own − c}."),
            ((x[:, None] * Sa + y[:, None] * Sb) / 2, "add; do not average."),
            (
                (x[:, None] * Sa + y[:, None] * Sb) / (x * za + y * zb)[:, None],
                "do not divide by z: a query does that, after it has weighed the features.",
            ),
        ],
    }
    for part, label, right in zip(found, names, expected, strict=True):
        known = [(value, hint) for value, hint in slips[label] if np.isfinite(value).all()]
        if is_empty and not np.allclose(np.asarray(part, dtype=float), right):
            raise Hint(f"the empty state must change nothing, and {label} has changed.")
        if not is_empty:
            judge(part, right, known)


@check
def merge_states(merge):
    """merge(a, b) = (c, z, S) over the keys of both; the empty state changes nothing."""
    rng = np.random.default_rng(1102)
    for shift in (0.0, 800.0):
        h, v = 3 * rng.normal(size=(9, 4)), rng.normal(size=(9, 3))
        h[5:] += shift * np.array([1, -1, 1, -1])
        a, b, right = _state_of(h[:5], v[:5]), _state_of(h[5:], v[5:]), _state_of(h, v)
        empty = np.full(4, -np.inf), np.zeros(4), np.zeros((4, 3))
        cases = [(a, b, right)]
        cases += [(a, empty, a), (empty, b, b), (empty, empty, empty)] * (shift == 0)
        for first, second, expected in cases:
            found = merge(first, second)
            if not isinstance(found, tuple | list) or len(found) != 3:
                numbers(found)
                raise Hint("return the three arrays c, z and S as a tuple.")
            is_empty = first is empty or second is empty
            _judge_state(found, first, second, expected, is_empty)


@check
def shrunk_recall(best):
    """best(n, d) = (a, error): the a of least E‖a Sᵀk − v‖², and that over E‖v‖²."""
    for n, d in ((40, 16), (3, 8), (17, 16), (1, 5)):
        noise = (n - 1) / d

        def pair(a, noise=noise):
            return a, (1 - a) ** 2 + a**2 * noise

        right = pair(1 / (1 + noise))
        off = n / d
        found = best(n, d)
        first, _ = numbers(found) if np.shape(found) == (2,) else (math.nan, 0)
        judge(
            found,
            right,
            [
                (pair(1.0), "this is the plain read, a = 1: find the a that is better."),
                ((right[0], noise), "the error at a = 1; put the best a into the error."),
                ((right[0], right[0] ** 2 * noise), "the signal shrinks too: (1 − a)² is missing."),
                ((right[0], (1 - right[0]) ** 2), "the noise is missing: a² (n − 1)/d."),
                ((1 / (1 + off), off / (1 + off)), "a key is no noise to itself: n − 1, not n."),
                (right[::-1], "first the factor a, then the error."),
                (right[0], "return two numbers: the factor and the error."),
                (
                    (1 / (1 + noise**0.5), noise**0.5 / (1 + noise**0.5)),
                    "(n − 1)/d is a variance already: no root.",
                ),
                (pair(1 / (1 + noise**0.5)), "(n − 1)/d is a variance already: no root."),
                ((right[0], right[1] ** 0.5), "the squared error is asked for: no root."),
                (
                    pair(first),
                    "the error of this a, but another a has less: where is the derivative 0?",
                ),
                (
                    found if np.isclose(first, right[0]) else np.inf,
                    "the factor is right, but not the error: put a into (1 − a)² + a² (n − 1)/d.",
                ),
            ],
        )
