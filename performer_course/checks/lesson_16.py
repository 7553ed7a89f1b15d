"""Lesson 16, training."""

from functools import partial

import numpy as np
from scipy import special

from ._judge import Hint, advice, averages, check, compare, no_square, truth

# A gradient


def whole(past):
    return np.ones_like(past)


def key_gradient(
    forward=np.copy,
    back=np.copy,
    under=np.copy,
    of_o=1.0,
    key=lambda k, x, y: y,
    factor=lambda d: d**-0.25,
):
    """With L × L arrays; forward, back and under say which of them apply the causal mask."""

    def gradient(q, k, v, g, W):
        past, d = np.tri(len(k)), k.shape[1]
        x, y = q * d**-0.25, k * d**-0.25
        phi_q, phi_k = (np.exp(a @ W.T - (a**2).sum(axis=1, keepdims=True) / 2) for a in (x, y))
        A = phi_q @ phi_k.T
        o = averages(A * forward(past), v)
        D = (A * under(past)).sum(axis=1, keepdims=True) if under else 1.0
        slope = g @ v.T - of_o * (g * o).sum(axis=1, keepdims=True)
        slope = slope * back(past) / D  # with respect to A
        moves = phi_k * (slope.T @ phi_q)  # with respect to ln φ_r(k_j'): (L, m)
        return factor(d) * (moves @ W - moves.sum(axis=1, keepdims=True) * key(k, x, y))

    return gradient


OF_PHI = "the gradient of φ_r(k') is (ω_r − k') φ_r(k')"
KEY_GRADIENTS = [
    (key_gradient(of_o=0), "the denominator also depends on the key: v_j − o_i, not v_j."),
    (key_gradient(key=lambda k, x, y: 0 * y), f"{OF_PHI}: the −k' comes from e^{{−‖k'‖²/2}}."),
    (key_gradient(key=lambda k, x, y: x), f"{OF_PHI}: for the keys subtract k', not q'."),
    (key_gradient(factor=lambda d: 1), "this is ∂/∂k', not ∂/∂k: multiply by d^{−1/4}."),
    (key_gradient(factor=lambda d: d**-0.5), "k' = k d^{−1/4} gives a factor d^{−1/4}, once."),
    (key_gradient(factor=lambda d: -(d**-0.25)), "the sign is wrong: it is v_j − o_i."),
    (key_gradient(whole, whole, whole), "this is not causal: row i sees only the keys j ≤ i."),
    (key_gradient(back=whole), "the backward pass is causal as well: only rows i ≥ j see key j."),
    (key_gradient(back=np.transpose), "rows i ≥ j see key j: sum from the last row backwards."),
    (key_gradient(under=None), "the denominator of each row is missing."),
]


@check(mistakes=KEY_GRADIENTS)
def gradient_by_keys(gradient):
    """gradient(q, k, v, g, W) of Σ g · output with respect to k, causal, positive features."""
    rng, inputs = np.random.default_rng(1601), []
    for L, d, e, m in ((7, 4, 3, 5), (5, 9, 2, 6)):
        q, k = rng.normal(size=(2, L, d)) / 2
        inputs.append((q, k, *rng.normal(size=(2, L, e)), rng.normal(size=(m, d))))
    close = "close, but not equal: are these finite differences?"
    compare(gradient, key_gradient(), inputs, KEY_GRADIENTS, close=close)
    long, W = rng.normal(size=(4, 1000, 2)) / 2, rng.normal(size=(3, 2))
    no_square(lambda: gradient(*long, W), long, 1000, "sums that run along the rows do.")


# A leak

log_softmax = partial(special.log_softmax, axis=1)

HONEST = "you say that an honest predictor leaks: token j may change row j and later rows."
NO_MASK = "you call a predictor without a mask honest: compare the rows before a change."
NEXT = "row i of a predictor sees token i + 1: also compare the row just before the change."
FAINT = "you overlook a leak in the fourth digit of log P: use a smaller tolerance."
BITS = "you call rounding a leak: it changes rows by 1e-16, so do not test for equal bits."
ONE_SYMBOL = "only one symbol marks the end of the text: try every symbol in place of a token."
INFINITE = "log P may be −∞: −∞ − (−∞) is NaN, and NaN > tolerance is False."
ONE_ROW = "one token leaks into one row only: change each token, and compare all earlier rows."


def _predictors(rng, symbols, end, n=8, d=4):
    """[(predict, whether it leaks, the hint if the answer is wrong)]."""
    E, U = rng.normal(size=(symbols, n)), rng.normal(size=(d, symbols))
    position, parts = rng.normal(size=(64, n)), rng.normal(size=(3, n, d)) / 2

    def model(ahead, shift=0.0):
        """Attention whose row i sees j ≤ i + ahead, of keys less `shift` times their mean."""

        def predict(tokens):
            q, k, v = ((E[tokens] + position[: len(tokens)]) @ part for part in parts)
            A = np.exp(q @ (k - shift * k.mean(axis=0)).T)
            return log_softmax(averages(np.tril(A, ahead), v) @ U)

        return predict

    honest, unmasked = model(0), model(64)

    def cooler(tokens):
        """Knows where the text ends, if it does."""
        length = np.argmax(np.append(tokens, end) == end)
        return log_softmax(honest(tokens) / (1 + length / 10))

    def peeping(row, later):
        """Honest except in one row, which is flatter the larger a later token is."""

        def predict(tokens):
            log_p = honest(tokens)
            if later < len(tokens):
                log_p[row] /= 1 + tokens[later] / 10
            return log_softmax(log_p)

        return predict

    def impossible(tokens):
        """One symbol, which never occurs, has probability 0."""
        return np.where(np.arange(symbols) == end, -np.inf, unmasked(tokens))

    def faint(tokens):
        return log_softmax(honest(tokens) + 3e-5 * (unmasked(tokens) - honest(tokens)))

    return [
        (honest, False, HONEST),
        (unmasked, True, NO_MASK),
        (model(1), True, NEXT),
        (faint, True, FAINT),
        (model(0, shift=1.0), False, BITS),  # which cancels in a softmax
        (cooler, True, ONE_SYMBOL),
        (impossible, True, INFINITE),
        *[(peeping(*at), True, ONE_ROW) for at in ((0, 1), (1, 9), (4, 5), (8, 9))],
    ]


@check(says=[HONEST, ONE_ROW])
def leaks(detect):
    """detect(predict, tokens, symbols): whether a row of log P changes with a later token."""
    rng = np.random.default_rng(1602)
    for _ in range(2):
        tokens, symbols = rng.integers(1, 4, size=10), 6  # 1, 2 and 3, where 0 to 5 are allowed
        for predict, leaking, hint in _predictors(rng, symbols, end=5):
            with advice(f"(tokens are whole numbers from 0 to {symbols - 1}.)"):
                found = detect(predict, tokens, symbols)
            if truth(found) != leaking:
                raise Hint(hint)
