"""Every claim about states that are gated or corrected, beside the defects it must catch."""

import itertools

import numpy as np

from tests.claims.harness import Part
from tests.claims.shared import agree
from tests.support.textbook import recurrent_matrix

PART = Part("After the Performer")
claim = PART.claim
L, D, E = 90, 6, 4  # more than one chunk of 64, and not a multiple of 7


def unit(rng, *shape):
    """Keys of length 1 in random directions."""
    x = rng.normal(size=shape)
    return x / np.linalg.norm(x, axis=-1, keepdims=True)


def tokens(rng, n=L, d=D, e=E):
    return rng.normal(size=(n, d)), unit(rng, n, d), rng.normal(size=(n, e))


def models(rng, k):
    """(β, log a, p) of each model: a number, per token, per channel; adding, the delta rule,
    and erasing by channels, p = b⊙k, apart from writing."""
    n, d = k.shape
    a, beta = -rng.exponential(size=(n, d)), rng.uniform(0, 2, size=n)
    rules = ((None, None), (beta, None), (beta, rng.uniform(size=(n, d)) * k))
    for (beta, erase), log_decay in itertools.product(rules, (0.0, -0.1, a[:, 0], a)):
        yield beta, log_decay, erase


def rows_of(p, q, k, v, beta, log_decay, erase=None, **options):
    r = p.recurrent
    if beta is None:
        return r.decay_attention(q, k, v, log_decay, **options)
    return r.delta_attention(q, k, v, beta, log_decay, erase=erase, **options)


@claim("""
    error-before-gate: the error is that of the state before it has decayed
        recurrent: u = u - p[..., here, :] @ S
            => u = u - p[..., here, :] @ (xp.exp(-xp.matrix_transpose(a[..., here, :])) * S)
    with-the-diagonal: a token corrects what it writes itself
        recurrent: solved = _inverse(xp, xp.tril(_products(xp, p, k, a), k=-1))
            => solved = xp.linalg.inv(xp.eye(k.shape[-2], dtype=k.dtype) + xp.tril(_products(xp,
                p, k, a)))
    erased-as-written: p = βk whatever is to be erased, in chunks of the strength alone
        recurrent: p = strength * k if p is None else p => p = strength * k
    no-decay-of-the-chunk: the state is handed on as if nothing had decayed
        recurrent: total = xp.exp(xp.matrix_transpose(_since(xp, a)[..., -1:, :]))
            => total = xp.exp(0 * xp.matrix_transpose(_since(xp, a)[..., -1:, :]))
    gate-of-the-key: a key also decays by its own gate
        recurrent: later = xp.concat([a[..., 1:, :], xp.zeros_like(a[..., :1, :])], axis=-2)
            => later = a
    inclusive-prefix: a chunk starts from the state after it
        recurrent: before.append(S)
            => before.append(_acted(maps.A[..., t, :, :], S) + maps.B[..., t, :, :])
    halves-swapped: the earlier half sees the later one
        recurrent: above = xp.concat([halves[..., 0, :, :], xp.zeros_like(far)], axis=-1)
            => above = xp.concat([halves[..., 0, :, :], xp.matrix_transpose(far)], axis=-1)
""")
def chunks_are_the_recurrence_and_the_matrix(p):
    """twelve models: no gate, one number, per token, per channel; adding, the delta rule, erasing
    apart from writing; chunks of 1, 7 and 64, from any state on: all to 1e-12"""
    rng = np.random.default_rng(100)
    q, k, v = tokens(rng)
    for beta, log_decay, erase in models(rng, k):
        M = recurrent_matrix(q, k, beta, log_decay, erase)
        _, slow = p.recurrent.recurrence(q, k, v, beta, log_decay, erase=erase)
        assert np.abs(slow - M @ v).max() < 1e-12
        S = rng.normal(size=(D, E))
        _, after = p.recurrent.recurrence(q, k, v, beta, log_decay, erase=erase, state=S)
        for chunk in (1, 7, 64):
            rows = rows_of(p, q, k, v, beta, log_decay, erase, chunk=chunk)
            assert np.abs(rows - M @ v).max() < 1e-12, (np.ndim(log_decay), chunk)
            rows = rows_of(p, q, k, v, beta, log_decay, erase, chunk=chunk, state=S)
            assert np.abs(rows - after).max() < 1e-12, (np.ndim(log_decay), chunk)


@claim("""
    factored-gate: (q eᵍ)(k e⁻ᵍ)ᵀ, g the sum of all gates so far
        recurrent: early = k[..., :h, :] * xp.exp(_until(xp, a[..., :h, :]))
            => g = _since(xp, a); late = q[..., h:, :] * xp.exp(g[..., h:, :]);
            early = k[..., :h, :] * xp.exp(-g[..., :h, :])
    midpoint
""")
def a_gate_may_close_to_any_depth(p):
    """float32, gates down to 1e-4 and 1e-12 a token and channel, and 0: every row finite, and the
    matrix's to 1e-5; textbook (q eᵍ)(k e⁻ᵍ)ᵀ overflows"""
    rng = np.random.default_rng(101)
    for depth, beta in itertools.product((1e-4, 1e-12, 0.0), (None, rng.uniform(size=128))):
        q, k, v = tokens(rng, n=128)
        gate = rng.uniform(size=(128, D))
        gate[rng.uniform(size=gate.shape) < 0.3] = depth
        with np.errstate(divide="ignore"):
            log_decay = np.log(gate)
        expected = recurrent_matrix(q, k, beta, log_decay) @ v
        single = [None if x is None else x.astype(np.float32) for x in (q, k, v, beta, log_decay)]
        with np.errstate(over="ignore", invalid="ignore"):
            rows = rows_of(p, *single)
        assert np.abs(rows - expected).max() < 1e-5 * np.abs(expected).max(), depth


@claim("""
    midpoint: both sides relative to the middle of the chunk, the later half masked
        recurrent: C, h = q.shape[-2], q.shape[-2] // 2
            => h, g = q.shape[-2] // 2, _since(xp, a); g = g - g[..., h : h + 1, :];
            return xp.tril((q * xp.exp(g)) @ xp.matrix_transpose(k * xp.exp(-g)))
""")
def no_later_token_moves_a_row_by_a_bit(p):
    """float32: query, key, value, β and gate of token 20, or of 70, changed; the rows before it
    keep every bit"""
    rng = np.random.default_rng(102)
    for beta, by_channel in itertools.product((False, True), repeat=2):
        q, k, v = tokens(rng, n=100)
        gate = -rng.exponential(size=(100, D) if by_channel else 100)
        given = [q, k, v, rng.uniform(0, 2, size=100) if beta else None, gate]
        given = [None if x is None else x.astype(np.float32) for x in given]
        rows = rows_of(p, *given)
        for at, name in itertools.product((20, 70), range(5)):
            if given[name] is not None:
                moved = [None if x is None else x.copy() for x in given]
                moved[name][at] *= 0.125 if name == 3 else 8  # β stays below 2
                found = rows_of(p, *moved)
                assert np.array_equal(found[:at], rows[:at]), (at, name)
                assert not np.array_equal(found[at:], rows[at:]), (at, name)


@claim("""
    joined-backwards: A₁A₂
        recurrent: return _acted(second.A, first.A), _acted(second.A, first.B) + second.B
            => return _acted(first.A, second.A), _acted(second.A, first.B) + second.B
    no-decay-of-the-chunk
""")
def a_run_of_tokens_is_a_map_and_maps_join(p):
    """cut anywhere, the maps of the parts join to the map of the whole, however they are bracketed
    (1e-12); that map takes any state where the recurrence does; swapped, they do not"""
    rng, r = np.random.default_rng(103), p.recurrent
    q, k, v = tokens(rng)
    for beta, log_decay, erase in models(rng, k):
        whole = r.chunk_map(k, v, beta, log_decay, erase=erase)
        S = rng.normal(size=(D, E))

        def part(start, stop, beta=beta, log_decay=log_decay, erase=erase):
            here = slice(start, stop)
            cut = (x if np.ndim(x) == 0 else x[here] for x in (k, v, beta, log_decay, erase))
            *cut, erase = cut
            return r.chunk_map(*cut, erase=erase)

        for i, j in ((1, 2), (30, 64), (65, 89)):
            a, b, c = part(0, i), part(i, j), part(j, L)
            left, right = r.then(r.then(a, b), c), r.then(a, r.then(b, c))
            for found in (left, right):
                assert np.abs(found.A - whole.A).max() < 1e-12
                assert np.abs(found.B - whole.B).max() < 1e-12
            if beta is not None or np.ndim(log_decay):
                swapped = r.then(c, r.then(b, a))
                assert np.abs(swapped.B - whole.B).max() > 1e-3
        after, _ = r.recurrence(q, k, v, beta, log_decay, erase=erase, state=S)
        A = whole.A if whole.A.shape[-1] > 1 else whole.A * np.eye(D)
        assert np.abs(A @ S + whole.B - after).max() < 1e-12


@claim("""
    all-pairs: n/d: a pair is also noise to itself
        theory: return (check_count(n, "n") - 1) / check_count(d, "d")
            => return check_count(n, "n") / check_count(d, "d")
    unscaled-optimum: the error where nothing is scaled
        theory: return error / (1 + error) => return error
    rank-forgotten: d/n for 1 − d/n
        theory: return max(0.0, 1 - d / n) => return min(1.0, d / n)
    state-that-only-grows: s + β²
        theory: s = s * (1 - (2 * beta - beta**2) / d) + beta**2 => s = s + beta**2
""")
def what_a_state_recalls_is_known(p):
    """n unit keys in random directions, 4,000 states: additive (n−1)/d, scaled at best
    (n−1)/(d+n−1), delta by age, least squares 1 − d/n: |z| < 5"""
    rng, t, N = np.random.default_rng(104), p.theory, 4000

    def recalled(k, v, beta):  # (N, n), the newest first
        return ((k @ p.recurrent.recurrence(k, k, v, beta)[0] - v) ** 2).sum(-1)[:, ::-1]

    for n, d, beta in ((20, 8, 1.0), (12, 8, 0.5), (5, 3, 1.5)):
        k, v = unit(rng, N, n, d), unit(rng, N, n, 6)
        spread = np.sqrt(N)
        errors = recalled(k, v, beta)
        agree(errors.mean(0), t.delta_recall(n, d, beta), errors.std(0) / spread + 1e-12, "delta")
        errors = recalled(k, v, None).mean(1)
        agree(errors.mean(), t.additive_recall(n, d), errors.std() / spread, "additive")
        c = d / (d + n - 1)
        answers = k @ (np.swapaxes(k, 1, 2) @ v)
        for off, least in ((0.9, False), (1.0, True), (1.1, False)):
            errors = ((off * c * answers - v) ** 2).sum(-1).mean(1)
            if least:
                agree(errors.mean(), t.scaled_recall(n, d), errors.std() / spread, "scaled")
            else:
                assert errors.mean() > t.scaled_recall(n, d)
        fit = k @ (np.linalg.pinv(k) @ v)
        errors = ((fit - v) ** 2).sum(-1).mean(1)
        agree(errors.mean(), t.least_squares_recall(n, d), errors.std() / spread + 1e-12, "squares")
    assert t.least_squares_recall(8, 8) == 0


@claim("""
    features-too-few: (1 − K²)²/m, as if each direction gave one feature
        theory: (1 - 2 * second + fourth) / (2 * m)) => (1 - 2 * second + fourth) / m)
""")
def fourier_features_recall_as_their_kernel_says(p):
    """an additive state of 2m Fourier features of unit keys times ρ, n = 30, d = 16: |z| < 5"""
    rng, errors = np.random.default_rng(105), []
    n, d, m = 30, 16, 32
    for radius in (0.7, 1.5, 4.0):
        errors = []
        for _ in range(600):
            W, k, v = p.projections.iid(rng, m, d), unit(rng, n, d), unit(rng, n, 6)
            phi = p.features.fourier(radius * k, W)
            errors.append(((phi @ (phi.T @ v) - v) ** 2).sum(-1).mean())
        expected = p.theory.fourier_recall(n, d, m, radius)
        agree(np.mean(errors), expected, np.std(errors) / np.sqrt(600), f"ρ = {radius}")


test_claim = PART.test()
