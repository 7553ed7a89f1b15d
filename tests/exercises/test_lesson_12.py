"""Lesson 12, causal and streaming: right answers in any form, and slips with their hints."""

import numpy as np
from scipy.optimize import minimize_scalar

from performer_course import attention
from tests.exercises.shared import exercises

RIGHT, WRONG = {}, {}


# causal_by_chunks


def with_one(v):
    return np.concatenate([v, np.ones_like(v[..., :1])], axis=-1)


def quotient(total):
    return total[..., :-1] / np.where(total[..., -1:] == 0, 1, total[..., -1:])


def chunked(
    phi_q,
    phi_k,
    v,
    C,
    mask=np.tril,
    early=False,
    carry=(1, 1),
    near=1,
    whole=False,
    each=False,
    last=False,
    of_all=False,
):
    """Causal attention by chunks, with the slips a chunk invites."""
    values = with_one(v)
    state, rows = 0 * np.einsum("hlf,hle->hfe", phi_k, values), []
    length = v.shape[1] // C * C if whole and v.shape[1] > C else v.shape[1]
    for start in range(0, length, C):
        f, g, chunk = (x[:, start : start + C] for x in (phi_q, phi_k, values))
        after = state * (not last) + g.swapaxes(1, 2) @ chunk
        if of_all:
            after = state + (g.swapaxes(1, 2) @ chunk).sum(axis=0)
        far = f @ (after if early else state) * (v.shape[2] * [carry[0]] + [carry[1]])
        close = near * mask(f @ g.swapaxes(1, 2)) @ chunk
        rows.append(each(far, close) if each else quotient(far + close))
        state = after
    return np.concatenate(rows, axis=1)


RIGHT["causal_by_chunks"] = [
    chunked,
    lambda f, g, v, C: chunked(f, g, v, max(C // 2, 1)),
    lambda f, g, v, C: np.stack(
        [chunked(*(x[None] for x in head), C)[0] for head in zip(f, g, v, strict=True)]
    ),
]


def slipped(**options):
    return lambda *arguments: chunked(*arguments, **options)


def masked_rows(phi_q, phi_k, v, C):
    weights = np.tril(phi_q @ phi_k.swapaxes(1, 2))
    return weights @ v / weights.sum(axis=2, keepdims=True)


def masked_above(phi_q, phi_k, v, C):
    """The mask on the numerator alone: a row divides by its whole chunk."""
    ends = np.minimum((np.arange(v.shape[1]) // C + 1) * C, v.shape[1]) - 1
    below = np.einsum("hif,hif->hi", phi_q, phi_k.cumsum(axis=1)[:, ends])
    return np.tril(phi_q @ phi_k.swapaxes(1, 2)) @ v / below[..., None]


def prefix_states(phi_q, phi_k, v, C):
    """A state for each token."""
    states = np.cumsum(phi_k[..., None] * with_one(v)[:, :, None], axis=1)
    return quotient(np.einsum("hlf,hlfe->hle", phi_q, states))


WRONG["causal_by_chunks"] = [
    (lambda f, g, v, C: np.tril(f @ g.swapaxes(1, 2)) @ v, "the denominator is missing"),
    (lambda f, g, v, C: quotient(f @ (g.swapaxes(1, 2) @ with_one(v))), "is there a mask?"),
    (slipped(mask=lambda w: w), "mask the product"),
    (slipped(early=True, near=0), "mask the product"),
    (slipped(carry=(0, 0)), "carry the state on"),
    (slipped(carry=(1, 0)), "carry z too"),
    (slipped(carry=(0, 1)), "carry S too"),
    (slipped(last=True), "the last chunk alone"),
    (slipped(mask=lambda w: np.tril(np.exp(w))), "no exponential"),
    (
        lambda f, g, v, C: quotient(np.tril(np.exp(f @ g.swapaxes(1, 2))) @ with_one(v)),
        "no exponential",
    ),
    (slipped(of_all=True), "each head has a state of its own"),
    (masked_above, "to the numerator and to the denominator"),
    (lambda f, g, v, C: chunked(f, g, v, C) * (1 + 1e-6), "is an ε added"),
    (prefix_states, "one state is enough"),
    (slipped(near=0), "do not see their own chunk"),
    (slipped(mask=lambda w: np.tril(w, -1)), "row i must see key i too"),
    (slipped(mask=np.triu), "np.triu keeps the later keys"),
    (slipped(early=True), "the chunk counts twice"),
    (slipped(whole=True), "the last, shorter chunk is missing"),
    (slipped(each=lambda x, y: quotient(x) + quotient(y)), "then divide once"),
    (lambda f, g, v, C: chunked(f, g, v, C).swapaxes(0, 1), "shape (10, 3, 2)"),
    (masked_rows, "that is an L × L array"),
]


# merge_states


def over_nothing(c):
    """c, but 0 where it is −∞."""
    return np.where(np.isneginf(c), 0.0, c)


def merged(
    rescale=lambda own, other, c: np.exp(own - c), top=np.maximum, divide=1, finite=over_nothing
):
    """merge(a, b), with the slips it invites."""

    def merge(a, b):
        c = top(a[0], b[0])
        base = finite(c)
        x, y = rescale(a[0], b[0], base), rescale(b[0], a[0], base)
        z, S = x * a[1] + y * b[1], x[:, None] * a[2] + y[:, None] * b[2]
        return c, z / divide, S / divide

    return merge


def merged_by_log(a, b):
    c = np.maximum(a[0], b[0])
    total = np.logaddexp(np.log(a[1]) + a[0], np.log(b[1]) + b[0])
    base = over_nothing(c)
    S = [np.exp(x[0] - base)[:, None] * x[2] for x in (a, b)]
    return [c, np.exp(total - base), S[0] + S[1]]


def merged_by_the_package(a, b):
    """The package keeps S and z side by side."""
    states = [attention.State(c, np.concat([S, z[:, None]], axis=1)) for c, z, S in (b, a)]
    both = attention.merge(*states)
    return both.c, both.z, both.S


RIGHT["merge_states"] = [merged(), merged_by_log, merged_by_the_package]


def but(place, change):
    """The right merge, with one of its three arrays changed."""

    def merge(a, b):
        found = list(merged()(a, b))
        found[place] = change(found, a, b)
        return tuple(found)

    return merge


WRONG["merge_states"] = [
    (merged(lambda own, other, c: np.ones_like(c)), "rescale z before you add"),
    (merged(top=np.minimum), "c is the larger of the two, for"),
    (merged(top=np.add), "not their sum"),
    (but(0, lambda found, a, b: a[0]), "not that of the first"),
    (but(0, lambda found, a, b: b[0]), "not that of the second"),
    (but(0, lambda found, a, b: (a[0] + b[0]) / 2), "not their mean"),
    (but(2, lambda found, a, b: a[1][:, None] * a[2] + b[1][:, None] * b[2]), "not by z"),
    (merged(top=np.logaddexp), "not the log of a sum"),
    (merged(top=lambda a, b: np.full(4, max(a.max(), b.max()))), "one maximum for each"),
    (merged(lambda own, other, c: np.exp(other - c)), "by its own e^{c_own − c}"),
    (merged(lambda own, other, c: np.exp(c - own)), "the sign of the exponent"),
    (merged(divide=2), "add; do not average"),
    (but(2, lambda found, a, b: a[2] + b[2]), "rescale S as you rescale z"),
    (but(2, lambda found, a, b: found[2] / found[1][:, None]), "do not divide by z"),
    (
        but(
            2,
            lambda found, a, b: found[2] + np.where(np.isinf(a[0] + b[0]), np.nan, 0)[:, None],
        ),
        "the empty state must change nothing, and gives NaN",
    ),
    (merged(finite=lambda c: c), "Is it −∞ − (−∞)?"),
    (
        but(1, lambda found, a, b: found[1] + np.isinf(a[0] + b[0])),
        "the empty state must change nothing, and z has changed",
    ),
    (but(0, lambda found, a, b: None), "c is None"),
    (but(1, lambda found, a, b: found[1][:, None]), "z has shape (4, 1)"),
    (lambda a, b: merged()(a, b)[1], "return the three arrays"),
]


# shrunk_recall


def searched(n, d):
    noise = (n - 1) / d
    found = minimize_scalar(lambda a: (1 - a) ** 2 + a**2 * noise, bracket=(0, 1))
    return np.array([d / (d + n - 1), found.fun])


def with_factor(factor, error=lambda a, r: (1 - a) ** 2 + a**2 * r):
    """Answers (a, error) from a = factor(r), r = (n − 1)/d."""
    return lambda n, d: (factor((n - 1) / d), error(factor((n - 1) / d), (n - 1) / d))


def shrinkage(noise):
    return 1 / (1 + noise)


RIGHT["shrunk_recall"] = [
    with_factor(shrinkage),
    searched,
    lambda n, d: [d / (n + d - 1), (n - 1) / (n + d - 1)],
]

WRONG["shrunk_recall"] = [
    (with_factor(lambda r: 1.0), "this is the plain read"),
    (with_factor(shrinkage, lambda a, r: r), "the error at a = 1"),
    (with_factor(shrinkage, lambda a, r: a**2 * r), "the signal shrinks too"),
    (with_factor(shrinkage, lambda a, r: (1 - a) ** 2), "the noise is missing"),
    (lambda n, d: (d / (d + n), n / (d + n)), "n − 1, not n"),
    (lambda n, d: with_factor(shrinkage)(n, d)[::-1], "first the factor"),
    (lambda n, d: d / (d + n - 1), "return two numbers"),
    (with_factor(lambda r: shrinkage(r**0.5)), "no root"),
    (with_factor(lambda r: shrinkage(r**0.5), lambda a, r: 1 - a), "no root"),
    (with_factor(lambda r: 0.0), "another a has less"),
    (with_factor(lambda r: 1 / max(r, 1)), "another a has less"),
    (lambda n, d: (d / (d + n - 1), ((n - 1) / (d + n - 1)) ** 0.5), "no root."),
    (lambda n, d: (d / (d + n - 1), 1.0), "the factor is right, but not the error"),
    (lambda n, d: [d / (d + n - 1)] * 3, "shape (3,), and (2,) is needed"),
]


TestExercises = exercises(RIGHT, WRONG)
