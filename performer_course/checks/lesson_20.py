"""Lesson 20, after the Performer."""

import numpy as np

from .. import theory
from ._judge import Hint, check, judge, numbers


@check
def strength_of_steps(strength):
    """strength(beta, key, steps): (1 − (1 − β‖k‖²)ⁿ)/‖k‖²."""
    rng = np.random.default_rng(2001)
    given = []
    for beta, length, steps in ((0.3, 0.7, 4), (0.25, 1.6, 3), (0.01, 1.0, 200), (0.6, 1.6, 3)):
        key = rng.normal(size=5)
        given.append((beta, length * key / np.linalg.norm(key), steps))
    given.append((0.4, 1.3 * np.eye(5)[1], 1))

    def made(formula):
        return [formula(beta, float(key @ key), steps) for beta, key, steps in given]

    judge(
        [_one_number(strength(*case)) for case in given],
        made(lambda b, s, n: (1 - (1 - b * s) ** n) / s),
        [
            (
                made(lambda b, s, n: n * b),
                "the second step sees a smaller error than the first: the steps do not add up.",
            ),
            (
                made(lambda b, s, n: 1 - (1 - b) ** n),
                "a step takes β‖k‖² of the error away, not β: keys may have any length.",
            ),
            (
                made(lambda b, s, n: 1 - (1 - b * s) ** n),
                "one step of strength β' takes β'‖k‖² of the error away: divide by ‖k‖².",
            ),
            (
                made(lambda b, s, n: (1 - (1 - b * s**0.5) ** n) / s**0.5),
                "‖k‖², not ‖k‖: the key stands in the error, and again in what is written.",
            ),
            (
                made(lambda b, s, n: (1 - b * s) ** n / s),
                "that is what is left of the error: the step takes the rest away.",
            ),
            (
                made(lambda b, s, n: (1 - b * s) ** n),
                "that is what is left of the error: the step takes the rest away.",
            ),
            (
                made(lambda b, s, n: 1 / s),
                "that is the limit of many steps: there are only `steps` of them.",
            ),
            (
                made(lambda b, s, n: (1 - abs(1 - b * s) ** n) / s),
                "1 − β‖k‖² may be negative, and a step then goes too far: keep its sign.",
            ),
            (
                made(lambda b, s, n: (1 - np.exp(-n * b * s)) / s),
                "that is for many small steps: these are whole ones, (1 − β‖k‖²)ⁿ.",
            ),
        ],
        cases=[f"β = {b}, ‖k‖² = {k @ k:.2f}, {n} steps" for b, k, n in given],
    )


def _one_number(found):
    """`found` as one number, or a hint."""
    array = numbers(found)
    if array.shape != ():
        raise Hint(f"return one number, got an array of shape {array.shape}.")
    return float(array)


@check
def strength_for(choose):
    """choose(n, d, odds, strengths): the strength of least expected error, or 0 to add."""

    def recent(n, horizon):
        odds = np.exp(-np.arange(n) / horizon)
        return odds / odds.sum()

    def window(n, first, last):
        odds = np.zeros(n)
        odds[first:last] = 1 / (last - first)
        return odds

    def two(n):
        """The newest half of the time, else one of the old ones."""
        odds = window(n, n // 2, n) / 2
        odds[0] += 0.5
        return odds

    tenths = np.arange(1, 11) / 10
    cases = {
        "the last few": (96, 24, recent(96, 5), tenths),
        "the last 15 or so": (96, 24, recent(96, 15), tenths),
        "any of few pairs": (10, 24, window(10, 0, 10), np.roll(tenths, 3)),
        "any of many pairs": (96, 24, window(96, 0, 96), tenths),
        "an old one of many": (96, 24, window(96, 80, 96), tenths[::-1]),
        "the newest or an old one": (60, 24, two(60), tenths),
        "any of few pairs, weak strengths": (6, 24, window(6, 0, 6), tenths[:2]),
        "an old one of many, great strengths": (96, 24, window(96, 80, 96), tenths[8:]),
        "one of age 12 to 20": (64, 16, window(64, 12, 20), tenths[::-1]),
    }
    laws = {
        name: {float(b): theory.delta_recall(n, d, float(b)) for b in strengths}
        for name, (n, d, _, strengths) in cases.items()
    }

    def made(
        expected=lambda odds, law: odds @ law,
        add=theory.scaled_recall,
        pick=np.argmin,
        no=0.0,
    ):
        found = []
        for name, (n, d, odds, strengths) in cases.items():
            errors = [expected(odds, law) for law in laws[name].values()]
            best = int(pick(errors))
            found.append(float(strengths[best]) if errors[best] < add(n, d) else no)
        return found

    places = [
        list(case[3]).index(best) if best else 0
        for case, best in zip(cases.values(), made(), strict=True)
    ]

    def add_never(n, d):
        return np.inf

    judge(
        [_one_number(choose(*case)) for case in cases.values()],
        made(),
        [
            (made(lambda odds, law: law.mean()), "weigh each age by its odds: is this the mean?"),
            (made(lambda odds, law: odds[::-1] @ law), "the newest pair has the age 0: turned?"),
            (made(add=add_never), "adding may be better than every strength: compare with it."),
            (
                made(add=theory.additive_recall),
                "adding may scale its answers: its error is then (n − 1)/(d + n − 1).",
            ),
            (
                made(add=theory.least_squares_recall),
                "this is the error of least squares: adding, scaled, has (n − 1)/(d + n − 1).",
            ),
            (made(add=lambda n, d: 1.0), "compare with adding, not with knowing nothing."),
            (
                made(lambda odds, law: law[np.argmax(odds)]),
                "the error is expected over all ages, not that of the likeliest one.",
            ),
            (
                made(lambda odds, law: law[round(float(odds @ np.arange(len(odds))))]),
                "the mean of the errors, not the error at the mean age.",
            ),
            (
                made(lambda odds, law: law[odds > 0].max()),
                "the expected error, not the worst.",
            ),
            (
                made(pick=lambda errors: 0),
                "is each of the strengths tried? They may come in any order.",
            ),
            (
                [0.0] * len(cases),
                "where the last few are asked for, correcting is better: is the least error "
                "taken, not the largest?",
            ),
            (places, "the strength itself is asked for, not its place among the strengths."),
            (made(no=1.0), "0 where adding is better."),
            (made(no=-1.0), "0 where adding is better."),
        ],
        rtol=1e-7,  # a strength may be a float32
        cases=list(cases),
    )


def _weights(q, k, a):
    """The weights in float64, fading each key from row to row."""
    q, faded, gates = (x.astype(float) for x in (q, k, np.exp(a.astype(float))))
    M = np.zeros((len(q), len(q)))
    for i in range(len(q)):
        faded[:i] *= gates[i]
        M[i, : i + 1] = faded[: i + 1] @ q[i]
    return M


def _halving_slips(q, k, a):
    """[(what a slip makes of the sums of logarithms before and behind each border, hint)]."""
    g, L = np.cumsum(a, axis=0), len(a)
    i, j = np.tril_indices(L, -1)
    apart = 2 ** np.array([int(x).bit_length() - 1 for x in i ^ j], dtype=int)
    border = i // apart * apart  # of the halves that i and j lie in
    until, since, own = g[border - 1] - g[j], g[i] - g[border - 1], a[j]

    def weights(exponent):
        M = np.diag((q * k).sum(axis=1))
        M[i, j] = (q[i] * np.exp(exponent) * k[j]).sum(axis=1)
        return M

    right = weights(until + since)
    return [
        (weights(until + since - a[border]), "the gate at the border is left out."),
        (weights(until + since - a[i]), "row i fades all earlier keys by its own gate."),
        (weights(until + since + own), "key j fades by its own gate, too: until begins at j + 1."),
        (weights(until), "the gates before the border alone: those from it to row i fade, too."),
        (weights(since), "the gates behind the border alone: those from key j to it fade, too."),
        (np.tril(right, -1), "the diagonal is empty: a row sees its own key, which no gate fades."),
        (right + np.tril(right, -1).T, "the matrix is symmetric: row i sees no key j > i."),
    ]


@check
def gated_weights(weigh):
    """weigh(q, k, log_decay): M (L, L), finite for any gate; no later gate moves a row."""
    rng = np.random.default_rng(2003)
    for L, d in ((8, 3), (1, 2), (2, 4), (32, 5)):
        q, k = rng.normal(size=(2, L, d))
        a = -rng.exponential(0.3, size=(L, d))
        right = _weights(q, k, a)
        half, pairs = L // 2, q @ k.T
        blocks = right.copy()
        blocks[half:, :half] = 0
        judge(
            weigh(q, k, a),
            right,
            [
                (np.tril(pairs), "nothing fades: where do the gates come in?"),
                (pairs, "nothing fades, and rows see later keys."),
                (right.T, "transposed: a row for each query."),
                *_halving_slips(q, k, a),
                (
                    _weights(q, k * np.exp(a), a),
                    "a key does not fade by its own gate, not even on the diagonal.",
                ),
                (_weights(q, k, a[::-1]), "the gates are taken in reverse."),
                (blocks, "the late half does not see the early one."),
                (
                    _weights(q, k, np.broadcast_to(a.mean(axis=1, keepdims=True), a.shape)),
                    "each channel has a gate of its own.",
                ),
            ],
            rtol=1e-5,
            atol=1e-7,
        )
    L, d = 64, 8
    q, k = rng.normal(size=(2, L, d)).astype(np.float32)
    for depth in (-28.0, -20_000.0, -np.inf):
        closed = rng.uniform(size=(L, d)) < 0.2
        a = np.where(closed, depth, -rng.exponential(0.05, size=(L, d))).astype(np.float32)
        found, right = np.asarray(weigh(q, k, a)), _weights(q, k, a)
        if found.shape != (L, L):
            raise Hint(f"the result has shape {found.shape}, and {(L, L)} is needed.")
        if not np.isfinite(found).all():
            if depth == -np.inf:
                raise Hint("−∞ − (−∞) is NaN: add logarithms, never subtract them.")
            raise Hint(f"not finite where ln a = {depth:g}: an exponent is positive.")
        if (found[right == 0] != 0).any():
            raise Hint(
                f"not exactly 0 behind gates with ln a = {depth:g}: is there a bound? e^−∞ is 0."
            )
        terms = _weights(np.abs(q), np.abs(k), a)  # what rounding is relative to
        if (np.abs(found - right) > 1e-4 * terms + 1e-36).any():
            raise Hint(
                f"digits are lost where ln a = {depth:g}: is there a bound, or a difference of "
                "long sums? Sum from the border on."
            )
    a = -rng.exponential(0.2, size=(L, d)).astype(np.float32)
    before = np.asarray(weigh(q, k, a))
    for at in (10, 20, 40, 50):
        other = a.copy()
        other[at] *= 3
        if not np.array_equal(np.asarray(weigh(q, k, other))[:at], before[:at]):
            raise Hint(
                f"a row before {at} moved when gate {at} did: it is computed relative to a "
                "later place."
            )
