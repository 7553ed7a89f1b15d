"""A page of formulas says what its lessons say, and the package computes it.

An entry is **Name**, its letters, the section that derives it, a function, and the formula. The
formula stands in that section, letter by letter. `HELD` has the name of each: a function that gets
the one of the package that the page names, and gives what it computes and what the formula says.
"""

import importlib
import itertools
import math
import re

import numpy as np
import pytest
from scipy.special import ndtri

from performer_course import attention, features, kernels, theory
from performer_course.recurrent import Affine
from tools.lesson import find, read
from tools.setting import NOTEBOOKS

PAGES = sorted((NOTEBOOKS / "formulas").glob("*.md"))
ENTRY = re.compile(
    r"(?ms)^\*\*(?P<name>[^*]+)\*\*(?P<letters>(?:(?!^\*\*).)*?)"
    r"\b(?P<lesson>\d\d) §(?P<section>\d+),\s`(?P<function>\w+\.\w+)`\.\n\n\$\$(?P<formula>.+?)\$\$"
)
RNG = np.random.default_rng(29)
X, Y = RNG.normal(size=(4, 3)) / 2, RNG.normal(size=(5, 3)) / 2
Q, K, V = RNG.normal(size=(6, 4)), RNG.normal(size=(6, 4)), RNG.normal(size=(6, 2))
W, SHORT = RNG.normal(size=(8, 4)), 4**-0.25  # SHORT times q is q'
HELD = {}
each_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)


def entries(page):
    return [found.groupdict() for found in ENTRY.finditer(page.read_text(encoding="utf-8"))]


ALL = {entry["name"].rstrip("."): entry for page in PAGES for entry in entries(page)}


def plain(formula):
    """A formula as one word, without the places at which its lines are aligned."""
    return re.sub(r"[\s&]", "", formula)


@each_page
def test_each_formula_of_a_page_has_a_name_its_section_and_a_function(page):
    said = page.read_text(encoding="utf-8")
    assert said.count("$$") // 2 == len(entries(page)) == said.count("\n**") >= 7
    first, last = re.search(r"\nLessons (\d\d) (?:to|and) (\d\d)\.", said).groups()
    named = [entry["lesson"] for entry in entries(page)]
    assert {f"{n:02d}" for n in range(int(first), int(last) + 1)} == set(named)


@each_page
def test_each_formula_of_a_page_stands_in_the_section_that_it_names(page):
    for entry in entries(page):
        section = read(find(entry["lesson"])).section(entry["section"])
        assert plain(entry["formula"]) in plain("\n".join(section.texts)), entry["name"]


def held(name):
    def keep(numbers):
        HELD[name] = numbers
        return numbers

    return keep


def test_a_number_is_held_for_each_formula_and_for_no_other():
    assert sorted(HELD) == sorted(ALL)


@pytest.mark.parametrize("name", ALL)
def test_the_function_that_a_page_names_computes_the_formula(name):
    room, function = ALL[name]["function"].split(".")
    computed = getattr(importlib.import_module(f"performer_course.{room}"), function)
    found, formula, *rtol = HELD[name](computed)
    np.testing.assert_allclose(found, formula, rtol=rtol[0] if rtol else 1e-8, atol=1e-10)


def squared(x):
    return (x**2).sum(axis=-1)


def softmax(t):
    return np.exp(t) / np.exp(t).sum(axis=-1, keepdims=True)


# Kernels


@held("Polynomial kernel")
def _(f):
    def by_products(x, y):
        return sum(
            x[list(i)].prod() * y[list(i)].prod() for i in itertools.product(range(3), repeat=3)
        )

    return f(X, Y, 3), [[by_products(x, y) for y in Y] for x in X]


@held("How many features")
def _(f):
    return [f(X, p, offset=1.0).shape[1] for p in range(1, 5)], [
        math.comb(3 + p, p) for p in range(1, 5)
    ]


@held("Kernel ridge regression")
def _(f):
    t, phi = RNG.normal(size=len(X)), features.monomials(X, 2, offset=1.0)
    w = np.linalg.solve(phi.T @ phi + 0.3 * np.eye(phi.shape[1]), phi.T @ t)
    c = np.linalg.solve(f(X, X, 2, offset=1.0) + 0.3 * np.eye(len(X)), t)
    return f(Y, X, 2, offset=1.0) @ c, features.monomials(Y, 2, offset=1.0) @ w


@held("What makes a kernel")
def _(f):
    c = RNG.normal(size=len(X))
    return c @ f(X, X, 2) @ c, squared(c @ features.monomials(X, 2))


@held("Taylor features")
def _(f):
    def powers(x):
        parts = [np.ones(1)]
        for k in range(1, 5):
            parts.append(np.multiply.outer(parts[-1], x).ravel() / math.sqrt(k))
        return np.concatenate(parts)

    return f(X, 4) @ f(Y, 4).T, [[powers(x) @ powers(y) for y in Y] for x in X]


@held("Softmax is a Gaussian between two norms")
def _(f):
    x, y = np.exp(squared(X) / 2), np.exp(squared(Y) / 2)
    return f(X, Y), x[:, None] * kernels.gaussian(X, Y, 0.5) * y


@held("Bochner's theorem")
def _(f):
    waves = np.cos(f(np.random.default_rng(3), 200_000, 3, 0.7) @ (X[0] - Y[0]))
    return waves.mean(), kernels.gaussian(X[:1], Y[:1], 0.7)[0, 0], 0.01


@held("The mean of $m$ drawn waves")
def _(f):
    k, k2 = 0.6, 0.2
    return f(k, k2, 7), ((1 + k2) / 2 - k**2) / 7


# Random features


@held("Fourier features")
def _(f):
    waves = [[np.cos(W[:, :3] @ (x - y)).mean() for y in Y] for x in X]
    return f(X, W[:, :3]) @ f(Y, W[:, :3]).T, waves


@held("With a phase")
def _(f):
    w, b = W[:, :3], RNG.uniform(0, 2 * np.pi, size=8)
    both = [[(np.cos(w @ (x - y)) + np.cos(w @ (x + y) + 2 * b)).mean() for y in Y] for x in X]
    return f(X, w, b) @ f(Y, w, b).T, both


@held("Two variances")
def _(f):
    k, k2, F = 0.6, 0.2, 8
    both = [(1 + k2 - 2 * k**2) / F, (1 + k2 / 2 - k**2) / F]
    return [theory.shift_invariant_variance(k, k2, F // 2), f(k, k2, F)], both


@held("How many waves")
def _(f):
    return f(20.0, round(1 / (2 * 0.05**2))), 0.05**2


@held("Directions that depend on one another")
def _(f):
    one, two = f(1.2, 1, 4), f(1.2, 2, 4)
    covariance = 2 * two - one
    return [f(1.2, m, 4) for m in (3, 4)], [one / m + (m - 1) / m * covariance for m in (3, 4)]


@held("What orthogonal directions leave")
def _(f):
    left = [f(0.01, m, 6) / theory.fourier_variance(0.01, m) for m in (2, 4, 6)]
    return left, [1 - 1 / 8, 1 - 3 / 8, 3 / 8], 1e-3


@held("The exact variance")
def _(f):
    r, m, d = 1.3, 3, 5
    terms = [math.prod((d + i) / (d / 2 + i) / (i + 1) for i in range(k)) for k in range(60)]
    series = sum(term * (-(r**2) / 2) ** k for k, term in enumerate(terms))
    first = (1 - math.exp(-(r**2))) ** 2 / (2 * m)
    return f(r, m, d), first + (m - 1) / m * (series - math.exp(-(r**2)))


# Attention


@held("Attention")
def _(f):
    A = np.exp(Q @ K.T / np.sqrt(4))
    return f(Q, K, V), np.diag(1 / A.sum(axis=1)) @ A @ V


@held("The unit of error")
def _(f):
    exact, found = RNG.normal(size=(2, 6, 2))
    return f(found, exact, V), squared(found - exact).sum() / squared(V.mean(axis=0) - exact).sum()


@held("The norm of a row")
def _(f):
    gain, shift = RNG.normal(size=(2, 4))
    mean, deviation = Q.mean(axis=1, keepdims=True), np.sqrt(Q.var(axis=1, keepdims=True) + 1e-5)
    return f(Q, gain, shift), gain * (Q - mean) / deviation + shift


@held("Cosines and sines for the softmax kernel")
def _(f):
    x, y = X[0], Y[0]
    near = (1 - np.exp(-squared(x - y))) ** 2 / 18
    return np.ravel(f(x, y, 9)), [np.exp(squared(x) + squared(y)) * near]


@held("Positive features")
def _(f):
    evenly = ndtri((np.arange(20_000) + 0.5) / 20_000)[:, None]  # (m, 1), no draw
    x, y = np.array([[0.4]]), np.array([[0.7], [-0.5]])
    return f(x, evenly) @ f(y, evenly).T, np.exp(x @ y.T), 1e-3


@held("Three errors")
def _(f):
    x, y, m = X[0], Y[0], 9
    waves, both = 2 / m * np.sinh(squared(x - y) / 2) ** 2, 2 / m * np.sinh(squared(x + y) / 2) ** 2
    found = [g(x, y, m) for g in (theory.trigonometric_mse, theory.hyperbolic_mse, f)]
    positive = (np.exp(squared(x + y)) - 1) / m
    return np.ravel(found) / np.exp(2 * x @ y), [waves, both, positive]


@held("The brackets move")
def _(f):
    phi_q, phi_k = np.exp(Q), np.exp(K)
    S, z = sum(np.outer(k, v) for k, v in zip(phi_k, V, strict=True)), phi_k.sum(axis=0)
    return f(phi_q, phi_k, V), [q @ S / (q @ z) for q in phi_q]


@held("Finite at any norm")
def _(f):
    q, k = 30 * Q, 30 * K
    h = k * SHORT @ W.T - squared(k * SHORT)[:, None] / 2  # from −900 on
    c = h.max(axis=0)
    z, S = np.exp(h - c).sum(axis=0), np.exp(h - c).T @ V
    a = q * SHORT @ W.T + c
    p = np.exp(a - a.max(axis=1, keepdims=True))
    return f(q, k, V, W), p @ S / (p @ z)[:, None]


@held("Causal attention is a recurrence")
def _(f):
    phi_q, phi_k, rows = np.exp(Q), np.exp(K), []
    S, z = np.zeros((4, 2)), np.zeros(4)
    for q, k, v in zip(phi_q, phi_k, V, strict=True):
        S, z = S + np.outer(k, v), z + k
        rows.append(S.T @ q / (z @ q))
    return f(phi_q, phi_k, V, causal=True), rows


def states(*cuts):
    parts = [(K[a:b], V[a:b]) for a, b in itertools.pairwise(cuts)]
    return [attention.absorb(attention.init_state(k, v, W), k, v, W) for k, v in parts]


@held("Two States are joined")
def _(f):
    a, b = states(0, 2, 6)
    c, found = np.maximum(a.c, b.c), f(a, b)
    z, S = (np.exp(a.c - c), np.exp(b.c - c)), (a.S, b.S)
    joined = z[0][:, None] * S[0] + z[1][:, None] * S[1]
    return np.c_[found.z, found.S], np.c_[z[0] * a.z + z[1] * b.z, joined]


@held("What a state forgets")
def _(f):
    """Three keys, each drawn from the axes, which is as uniform as it takes; all draws of them."""
    d, values, errors = 2, np.eye(3), []
    for axes in itertools.product(np.eye(d), repeat=3):
        S = sum(np.outer(k, v) for k, v in zip(axes, values, strict=True))
        errors.append(squared(S.T @ axes[0] - values[0]))
    return f(3, d), np.mean(errors)


# Performers


@held("A Performer's layer")
def _(f):
    phi_q, phi_k = features.positive(Q * SHORT, W), features.positive(K * SHORT, W)
    weights = phi_q @ phi_k.T
    return f(Q, K, V, W), weights @ V / weights.sum(axis=1, keepdims=True)


@held("How many directions")
def _(f):
    z, t = SHORT * (Q[:, None] + K), Q @ K.T / 2
    m = (np.exp(squared(z)).mean() - 1) / t.var()
    return f(Q, K, 1000) / 2 / t.var() * 1000 / m, 0.5  # the error over mean(V)'s, at that m


@held("The ratio is biased")
def _(f):
    x, y = SHORT * Q / 2, SHORT * K / 2
    biases = []
    for q, A in zip(x, softmax(x @ y.T), strict=True):
        g, o = np.exp((q + y) @ (q + y).T) @ A, A @ V
        biases.append(-(A * g) @ (V - o) / 7)
    return f(x, y, V, 7), biases


@held("Shift the keys")
def _(f):
    s, elsewhere = SHORT * f(Q, K)[0], X.ravel()[:4]
    z = SHORT * (Q[:, None] + K)
    apart = squared(z - s).mean() + squared(s - elsewhere)
    return apart, squared(z - elsewhere).mean()


@held("Sharp features")
def _(f):
    rho, x = np.array([0.3, 0.5, 0.9, 1.0]), SHORT * Q
    sigma = np.sqrt((1 + 1 / rho) / 2)
    inside = x @ (sigma * W).T - W**2 @ (sigma**2 - 1) / 4 - squared(x)[:, None] / 2
    return f(x, W, rho), np.sqrt(sigma.prod() / 8) * np.exp(inside)


@held("Their relative variance")
def _(f):
    rho, x, y = np.array([0.4, 0.6, 0.9]), X[0], Y[0]
    each = (1 + rho) / (2 * np.sqrt(rho)) * np.exp(rho * (x + y) ** 2)
    return np.ravel(f(x, y, 9, rho))[0] / np.exp(2 * x @ y), (each.prod() - 1) / 9


def near(band):
    return abs(np.subtract.outer(range(6), range(6))) <= band


@held("Near and far in one denominator")
def _(f):
    c = K.mean(axis=0)
    weights = np.where(near(1), np.exp(Q @ K.T / 2), np.exp(Q @ c / 2)[:, None])
    return f(Q, K, V, 1), weights @ V / weights.sum(axis=1, keepdims=True)


@held("The gradient of attention")
def _(f):
    def rows(x):
        return f(x / SHORT, K, V)

    steps = 1e-6 * np.eye(4)
    found = np.stack([(rows(Q * SHORT + h) - rows(Q * SHORT - h)) / 2e-6 for h in steps], axis=-1)
    A = softmax(Q @ K.T / 2)
    expected = [
        sum(a * np.outer(v - row @ V, k * SHORT) for a, v, k in zip(row, V, K, strict=True))
        for row in A
    ]
    return found, expected, 1e-5


@held("What trained directions lower")
def _(f):
    A = softmax(Q @ K.T / 2)
    w = features.positive(Q * SHORT, W) @ features.positive(K * SHORT, W).T
    hat = w / w.sum(axis=1, keepdims=True)
    return f(Q, K, W, W)[0], (A * np.log(A / hat)).sum() / 6


# Scale, and after


@held("One mean key")
def _(f):
    mean, far = np.exp(Q @ K.mean(axis=0) / 2), ~near(2)
    above = np.where(near(2), np.exp(Q @ K.T / 2), 0) @ V + mean[:, None] * (far @ V)
    below = np.where(near(2), np.exp(Q @ K.T / 2), 0).sum(axis=1) + far.sum(axis=1) * mean
    return f(Q, K, V, 2), above / below[:, None]


@held("Shards may be joined in any grouping")
def _(f):
    a, b, c = states(0, 1, 4, 6)
    left, right = f(f(a, b), c), f(a, f(b, c))
    return np.c_[left.c, left.z, left.S], np.c_[right.c, right.z, right.S]


@held("Two maps $S \\mapsto AS + B$ make one")
def _(f):
    A, B, S = RNG.normal(size=(2, 4, 4)), RNG.normal(size=(2, 4, 2)), RNG.normal(size=(4, 2))
    both = f(Affine(A[0], B[0]), Affine(A[1], B[1]))
    return both.A @ S + both.B, A[1] @ (A[0] @ S + B[0]) + B[1]


START = RNG.normal(size=(4, 2))
UNIT = K / np.linalg.norm(K, axis=1, keepdims=True)


@held("Three rules to write")
def _(f):
    k, v, one = UNIT[0], V[0], (Q[:1], UNIT[:1], V[:1])
    found = [f(*one, state=START), f(*one, log_decay=math.log(0.7), state=START)]
    found.append(f(*one, beta=0.6, state=START))
    rules = [START + np.outer(k, v), 0.7 * START + np.outer(k, v)]
    rules.append(START + 0.6 * np.outer(k, v - START.T @ k))
    return [state for state, _ in found], rules


@held("Gates")
def _(f):
    a = RNG.uniform(0.3, 1, size=(6, 4))
    M = [
        [Q[i] @ (a[j + 1 : i + 1].prod(axis=0) * K[j]) * (j <= i) for j in range(6)]
        for i in range(6)
    ]
    return f(Q, K, np.eye(6), np.log(a)), M


@held("The delta rule is a step of gradient descent")
def _(f):
    k, v, beta = UNIT[0], V[0], 0.6
    A, B = f(UNIT[:1], V[:1], beta)
    return A @ START + B, START - beta * np.outer(k, START.T @ k - v)


@held("One line for ten models")
def _(f):
    k, v, p, w, a = UNIT[0], V[0], UNIT[1] / 2, np.array([0.3, 0.8]), 0.9
    found, _ = f(Q[:1], UNIT[:1], V[:1] * w, None, math.log(a), erase=p[None], state=START)
    return found, a * START + np.outer(k, w * v - (a * START).T @ p)


@held("A chunk of the delta rule")
def _(f):
    beta, a = RNG.uniform(0.2, 1, size=6), RNG.uniform(0.3, 1, size=6)
    g, U, rows = np.cumsum(np.log(a)), np.zeros((6, 2)), []
    for i, k in enumerate(UNIT):
        seen = sum((np.exp(g[i] - g[j]) * (k @ UNIT[j]) * U[j] for j in range(i)), np.zeros(2))
        U[i] = beta[i] * (V[i] - np.exp(g[i]) * START.T @ k) - beta[i] * seen
        parts = [np.exp(g[i] - g[j]) * np.outer(UNIT[j], U[j]) for j in range(i + 1)]
        rows.append((np.exp(g[i]) * START + sum(parts)).T @ Q[i])
    return f(Q, UNIT, V, beta, np.log(a), state=START), rows


@held("What is left of a value")
def _(f):
    """Of a value of 1, after two more keys, each drawn from the axes; the mean over all draws."""
    d, beta, left = 3, 0.7, []
    for later in itertools.product(np.eye(d), repeat=2):
        k = np.array([UNIT[0, :3] / np.linalg.norm(UNIT[0, :3]), *later])
        rows = f(np.repeat(k[:1], 3, axis=0), k, np.array([[1.0], [0.0], [0.0]]), beta)
        left.append(rows[:, 0])
    return np.mean(left, axis=0), [beta * (1 - beta / d) ** age for age in range(3)]
