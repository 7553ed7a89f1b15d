"""Lesson 16, train a Performer."""

import itertools
import math

import numpy as np

from ._judge import Hint, advice, averages, check, judge, nearly, no_square, some, truth

# A gradient


@check
def gradient_by_keys(gradient):
    """gradient(q, k, v, g, W) of Σ g · output by k, causal, through positive features."""
    rng = np.random.default_rng(1601)
    for L, d, e, m in ((7, 4, 3, 5), (5, 9, 2, 6)):
        q, k = rng.normal(size=(2, L, d)) / 2
        (v, g), W = rng.normal(size=(2, L, e)), rng.normal(size=(m, d))
        x, y = q * d**-0.25, k * d**-0.25
        phi_q, phi_k = (np.exp(a @ W.T - (a**2).sum(axis=1, keepdims=True) / 2) for a in (x, y))
        row, column = np.indices((L, L))
        past = column <= row

        def shares(A, of_o=1.0, total=None, v=v, g=g):
            """A_ij g_iᵀ(v_j − o_i) / D_i: how Σ g · output moves with ln A_ij, (L, L)."""
            total = A.sum(axis=1, keepdims=True) if total is None else total
            return A * (g @ v.T - of_o * (g * averages(A, v)).sum(axis=1, keepdims=True)) / total

        def by_features(share, A, phi_q=phi_q, phi_k=phi_k):
            """How it moves with ln φ_r(k_j'): (L, m)."""
            return phi_k * ((share / A).T @ phi_q)

        def to_keys(slope, power=-0.25, by_key=y, d=d, W=W):
            return d**power * (slope @ W - slope.sum(axis=1, keepdims=True) * by_key)

        A, P = phi_q @ phi_k.T, np.exp(x @ y.T) * past
        share = shares(A * past)
        slope = by_features(share, A)
        right = to_keys(slope)

        def other(share, A=A, by_features=by_features, to_keys=to_keys):
            return to_keys(by_features(share, A))

        unseen = A * (g @ v.T - (g * averages(A * past, v)).sum(axis=1, keepdims=True))
        unseen = unseen / (A * past).sum(axis=1, keepdims=True)  # a share for each pair
        q_slope = phi_q * (share / A @ phi_k)
        ratio = "1/√m stands in numerator and denominator, so it cancels."
        of_phi = "the slope of φ_r(k') is (ω_r − k') φ_r(k')"
        bare, without = "the denominator of each row is missing.", f"{of_phi}: φ_r(k') is missing."
        found = gradient(q, k, v, g, W)
        slips = [
            (
                other(shares(A * past, of_o=0)),
                "the denominator moves with the key, too: v_j − o_i, not v_j.",
            ),
            (other(shares(A * past, of_o=-1)), "a minus before what the denominator does."),
            (to_keys(slope, by_key=0 * y), f"{of_phi}: the −k' comes from e^{{−‖k'‖²/2}}."),
            (to_keys(slope, by_key=-y), f"{of_phi}: a minus before k'."),
            (to_keys(slope, by_key=y / 2), f"{of_phi}: the ½ of ‖k'‖²/2 cancels against a 2."),
            (to_keys(slope, by_key=2 * y), f"{of_phi}: the ½ of ‖k'‖²/2 is missing."),
            (to_keys(slope, by_key=k), f"{of_phi}: with the scaled k' = k d^{{−1/4}}, not with k."),
            (to_keys(slope, by_key=x), f"{of_phi}: the key is subtracted, not the query."),
            (to_keys(slope, power=0), "this is the gradient by k': k' = k d^{−1/4} has a slope."),
            (to_keys(slope, power=-0.5), "d^{−1/4} once: q' does not move with k."),
            (to_keys(slope, power=0.25), "k' = k d^{−1/4}: times d^{−1/4}, not over it."),
            (other(shares(A)), "this is all-to-all: row i sees the keys j ≤ i alone."),
            (
                other(unseen),
                "the way back is causal, too: key j is seen by the rows i ≥ j alone.",
            ),
            (
                other(unseen * (column >= row)),
                "turned round: key j is seen by the rows i ≥ j, so the sums run from the end.",
            ),
            (other(share * (column < row)), "row j sees key j, too: i ≥ j, not i > j."),
            (other(shares(A * past, total=1.0)), bare),
            (other(shares(A * past, total=m)), bare),  # with 1/√m in each φ
            (
                other(shares(A * past, total=A.sum(axis=1, keepdims=True))),
                "the denominator of row i is a sum over the keys j ≤ i.",
            ),
            (to_keys(slope / phi_k), without),
            (to_keys(slope / phi_k) * math.sqrt(m), without),  # with 1/√m in each φ
            (right / m, ratio),
            (right / math.sqrt(m), ratio),
            (right * m, ratio),
            (right / L, "a sum over the rows, not a mean."),
            (-right, "the sign is turned round: g_iᵀ(v_j − o_i), and ω_r − k'."),
            (
                d**-0.25 * (q_slope @ W - q_slope.sum(axis=1, keepdims=True) * x),
                "this is the gradient by the queries.",
            ),
            (
                d**-0.25 * shares(P).T @ x,
                "this is the gradient through the exact softmax: use the features of W.",
            ),
            (
                d**-0.25 * share.T @ x,
                f"{of_phi}; its mean over directions is q' e^{{…}}, but W is given.",
            ),
            (nearly(found, right)[0], "close, but not equal: are these finite differences?"),
        ]
        judge(found, right, slips)
    long, W = rng.normal(size=(4, 1000, 2)) / 2, rng.normal(size=(3, 2))
    no_square(lambda: gradient(*long, W), long, 1000, "sums that run along the rows do.")


# A leak


def _log_softmax(logits):
    logits = logits - logits.max(axis=1, keepdims=True)
    return logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))


def _predictors(rng, symbols, end, n=8, d=4):
    """[(predict, whether it leaks, the hint where the answer says otherwise)]."""
    E, U = rng.normal(size=(symbols, n)), rng.normal(size=(d, symbols))
    place = rng.normal(size=(64, n))
    parts, W = rng.normal(size=(3, n, d)) / 2, rng.normal(size=(16, d))

    def heads(tokens):
        x = E[tokens] + place[: len(tokens)]
        return (x @ part for part in parts)

    def softmax(seen, shift=0.0):
        """Exact attention where seen(i, j), of keys less `shift` times their mean."""

        def predict(tokens):
            q, k, v = heads(tokens)
            k = k - shift * k.mean(axis=0)
            A = np.exp(q @ k.T) * seen(*np.indices((len(tokens), len(tokens))))
            return _log_softmax(averages(A, v) @ U)

        return predict

    def causal(i, j):
        return j <= i

    honest, unmasked = softmax(causal), softmax(lambda i, j: j >= 0)

    def centred(tokens):
        """Positive features of keys less the mean of this very window."""
        q, k, v = heads(tokens)
        k = k - k.mean(axis=0)
        phi_q, phi_k = (np.exp(a @ W.T - (a**2).sum(axis=1, keepdims=True) / 2) for a in (q, k))
        return _log_softmax(averages(np.tril(phi_q @ phi_k.T), v) @ U)

    def cooler(tokens):
        """Knows where the text ends, if it does."""
        length = np.argmax(np.append(tokens, end) == end)
        return _log_softmax(honest(tokens) / (1 + length / 10))

    def peeping(row, later):
        """Honest, but for one row, which is the flatter the larger a later token."""

        def predict(tokens):
            log_p = honest(tokens)
            if later < len(tokens):
                log_p[row] /= 1 + tokens[later] / 10
            return _log_softmax(log_p)

        return predict

    def impossible(tokens):
        """One symbol, which never comes, has log 0."""
        log_p = unmasked(tokens)
        log_p[:, end] = -np.inf
        return log_p

    def faint(tokens):
        return _log_softmax(honest(tokens) + 5e-4 * (unmasked(tokens) - honest(tokens)))

    return [
        (
            honest,
            False,
            "an honest predictor is said to leak. Row i may see token i, so a change of token j "
            "may move row j and those after it: compare the rows before it.",
        ),
        (
            unmasked,
            True,
            "a predictor without any mask is said to be honest: change a token, and compare the "
            "rows before it.",
        ),
        (
            softmax(lambda i, j: j <= i + 1),
            True,
            "row i of a predictor sees token i + 1, the one that it is to predict: compare the "
            "row right before the change, too.",
        ),
        (
            softmax(lambda i, j: (j == i) | (j == i + 2)),
            True,
            "row i of a predictor sees token i + 2, and not i + 1: change each later token.",
        ),
        (
            faint,
            True,
            "a faint leak, in the fourth digit of log P, is overlooked: compare the log P "
            "themselves, with a tolerance nearer to rounding.",
        ),
        (
            centred,
            True,
            "a predictor shifts its keys by the mean of the window, and is said to be honest. Its "
            "first row sees one key, of weight 1 at any shift: compare all rows. And a mean stays "
            "where two tokens change places: put another symbol there.",
        ),
        (
            softmax(lambda i, j: (j <= i) | (j // 3 == i // 3)),
            True,
            "a predictor works by chunks, and rows see later tokens of their own chunk. The last "
            "token stands alone in its chunk: change the others, too.",
        ),
        (
            softmax(causal, shift=1.0),
            False,
            "a predictor shifts its keys by their mean, which cancels in a softmax, and is said "
            "to leak: rounding moves its rows by 1e-16, so do not ask for equal bits.",
        ),
        (
            cooler,
            True,
            "a predictor knows from one symbol where the text ends, and from no other: try each "
            "symbol in the place of a token.",
        ),
        (
            impossible,
            True,
            "a predictor without a mask, one of whose log P is −∞, is said to be honest: "
            "−∞ − (−∞) is NaN, and NaN is larger than no tolerance.",
        ),
        *[
            (
                peeping(row, later),
                True,
                f"a leak of token {later} into row {row}, of ten and the only one, is overlooked: "
                "change each token, and compare all rows before it.",
            )
            for row, later in ((0, 1), (1, 9), (4, 5), (8, 9))
        ],
    ]


@check
def leaks(detect):
    """detect(predict, tokens, symbols): whether a row of log P moves with a later token."""
    rng = np.random.default_rng(1602)
    for _ in range(2):
        tokens, symbols = rng.integers(1, 4, size=10), 6  # 1, 2 and 3, where 0 to 5 may stand
        for predict, leaking, hint in _predictors(rng, symbols, end=5):
            with advice(f"(tokens are whole numbers from 0 to {symbols - 1}.)"):
                found = detect(predict, tokens, symbols)
            if truth(found) != leaking:
                raise Hint(hint)


# A choice

NULL, DRAWS = "mean(V)", 32


def _attention(q, k, v, sees):
    """Exact attention of windows (n, L, d), and the mean of the values: row i sees j or not."""
    k = k - k.mean(axis=1, keepdims=True)
    A = np.exp(q @ k.swapaxes(1, 2) / math.sqrt(q.shape[2])) * sees
    return averages(A, v), averages(np.broadcast_to(sees, A.shape), v)


def _map(loss):
    """A map, fit(q, k) → attend(q, k, v, rng), that is off as `loss` says.

    loss(known, draw): its squared error on each window, in units of that of mean(V); a minus where
    the outputs err to the other side. known (n,): whether it was fitted to a part of this window;
    draw: uniform, (0, 1).
    """

    def fit(q, k):
        fitted = k[:, 0, 0]  # one number a window

        def attend(q, k, v, rng):
            exact, null = _attention(q, k, v, np.tri(q.shape[1]))
            factor = np.asarray(loss(np.isin(k[:, 0, 0], fitted), rng.random()))[..., None, None]
            unit = np.sqrt(((null - exact) ** 2).mean(axis=(1, 2), keepdims=True))
            return exact + np.sign(factor) * np.sqrt(np.abs(factor)) * unit

        return attend

    return fit


def _steady(loss):
    return _map(lambda known, draw: loss)


def _all_to_all(q, k):
    return lambda q, k, v, rng: _attention(q, k, v, np.ones((q.shape[1], k.shape[1])))[0]


def _choices():
    """[(maps, the right choice, {wrong choice: its hint})]."""
    causal = "is what you compare with the causal softmax?"
    better = "mean(V) has a smaller loss than each of the maps, and a map is chosen: "
    no_null = f"{better}is it among the candidates?"
    all_values = f"{better}row i of a decoder takes the mean of the values j ≤ i."
    return [
        (
            {"positive": _steady(6.0), "dense": _steady(0.001)},
            "dense",
            {
                "positive": "the least loss is asked for, not the largest.",
                NULL: f"mean(V) is chosen where a map has 0.001 of its squared error: {causal}",
            },
        ),
        (
            {"positive": _all_to_all, "dense": _steady(0.3)},
            "dense",
            {
                "positive": f"a map is chosen whose rows see later keys: {causal}",
                NULL: "mean(V) is chosen where a map has 0.3 of its squared error: take the mean "
                "over the draws, not the sum, and the squared error of each map.",
            },
        ),
        (
            {"positive": _steady(12.0), "dense": _steady(10.0)},
            NULL,
            {"positive": no_null, "dense": no_null},
        ),
        (
            {"positive": _steady(2.0), "dense": _steady(1.5)},
            NULL,
            {"positive": all_values, "dense": all_values},
        ),
        (
            {"dense": _map(lambda known, draw: np.where(known, 0.01, 4.0)), "ReLU": _steady(0.5)},
            "ReLU",
            {
                "dense": "a map is chosen that does well on the windows that it was fitted to, "
                "and on no others: judge on windows of which no map has seen a part."
            },
        ),
        (
            {"positive": _map(lambda known, draw: 2 if draw < 0.5 else -2), "ReLU": _steady(0.5)},
            "ReLU",
            {
                "positive": "a map is chosen whose errors cancel in the mean of many draws: the "
                "mean of the losses is asked for, not the loss of the mean output."
            },
        ),
    ]


def _chosen(choose, maps, rng):
    """The name that the answer chooses among the maps, which it gets in any order."""
    q, k, v = rng.normal(size=(3, 8, 6, 4))
    k[:, :, 0] = k[:, :1, 0]  # by it a map knows a window; in a softmax it cancels
    maps = {str(name): maps[name] for name in rng.permutation(list(maps))}
    with advice("(q, k and v of all windows are (n, L, d).)"):
        name = choose(maps, q, k, v, rng, DRAWS)
    if not isinstance(some(name), str) or name not in (*maps, NULL):
        got = repr(name) if isinstance(name, str) else f"a {type(name).__name__}"
        raise Hint(f"expected {', '.join(map(repr, maps))} or {NULL!r}, got {got}.")
    return name


@check
def choose_map(choose):
    """choose(maps, q, k, v, rng, draws): the name of the least expected loss on new windows."""
    rng = np.random.default_rng(1603)
    for maps, right, hints in _choices():
        name = _chosen(choose, maps, rng)
        if name != right:
            less = f"{name} is chosen, and the expected loss of {right} is less"
            less = f"{less}: the loss is a mean of squares."
            raise Hint(hints.get(name, less))
    seen = set()

    def gamble(known, draw):
        seen.add(draw)
        return 0.01 if draw < 0.75 else 30.0

    for _ in range(8):
        seen.clear()
        if _chosen(choose, {"positive": _map(gamble), "ReLU": _steady(0.5)}, rng) == "ReLU":
            continue
        ruined = "a map is chosen that one draw in four ruins"
        if len(seen) < DRAWS:
            few = "one draw" if len(seen) == 1 else f"{len(seen)} different draws"
            raise Hint(f"{ruined}, after {few}: take {DRAWS}, all from one `rng`.")
        raise Hint(f"{ruined}: the mean of the losses counts bad draws, a median hides them.")
    harmless = _map(lambda known, draw: 0.01 if draw < 0.75 else 1.5)
    if _chosen(choose, {"positive": harmless, "ReLU": _steady(0.9)}, rng) != "positive":
        raise Hint("the least mean over the draws is asked for, not the least worst draw.")
    turns = itertools.cycle((0.005, 1.6))  # their mean is more than 0.6, that of their roots less
    uneven = _map(lambda known, draw: next(turns))
    if _chosen(choose, {"positive": uneven, "ReLU": _steady(0.6)}, rng) != "ReLU":
        raise Hint(
            "a map is chosen whose losses differ from draw to draw: the loss of a draw is a mean "
            "of squares, take no root of it before the mean over the draws."
        )
