"""Appendix a1, errata."""

import itertools
import math

import numpy as np
from scipy import special

from ._judge import Hint, check, judge, numbers, rounding


@check
def counterexample(witness):
    """witness(d) → x, y, ‖x−y‖ ≥ ¼, lengths ≤ 1: ½(1 − e^{−‖x−y‖²}) MSE⁺ under .1 of the true MSE.

    The true MSE of hyperbolic features is ½(1 − e^{−‖x+y‖²}) MSE⁺.
    """
    for d in (1, 3, 8):
        found = numbers(witness(d))
        if found.shape != (2, d):
            raise Hint(f"the result has shape {found.shape}; two vectors of width {d} are needed.")
        x, y = found
        if (found**2).sum(axis=1).max() > 1 + rounding(found):
            raise Hint("a length is above 1.")
        printed = -math.expm1(-((x - y) ** 2).sum())
        true = -math.expm1(-((x + y) ** 2).sum())
        if not found.any():
            raise Hint("at x = y = 0 both are 0: every draw is exact.")
        if np.linalg.norm(x - y) < 0.25 - rounding(found):
            raise Hint("the two vectors are less than ¼ apart.")
        if abs(x @ y) <= 1e-12 * np.linalg.norm(x) * np.linalg.norm(y):
            raise Hint("at right angles ‖x − y‖ = ‖x + y‖, and the formulas agree.")
        if x @ y < 0:
            raise Hint("here the printed value is too large, and too small is asked for.")
        if printed >= 0.1 * true:
            raise Hint(
                f"too small by a factor of {true / printed:.3g} only: bring y nearer to x, "
                "or make both longer."
            )


@check
def false_limit(witness):
    """witness(d, t) → 4, x, y: |κ − 1| ≤ t, and the squared relative error e^{‖x+y‖²} − 1 is ≥ 1.

    The others hold: e^{‖x+y‖²} − 1, half of it times 1 − e^{−‖x+y‖²}, and 2 sinh²(‖x−y‖²/2).
    """
    of = {1: "‖x + y‖", 2: "‖x + y‖", 3: "‖x − y‖"}
    for d, t in ((1, 1.0), (3, 0.1), (8, 1e-6)):
        answer = witness(d, t)
        if not isinstance(answer, list | tuple) or len(answer) != 3:
            if isinstance(answer, list | tuple):
                found = f"has {len(answer)} parts"
            else:
                found = "is None" if answer is None else f"is one {type(answer).__name__}"
            raise Hint(f"the result {found}; a number and two vectors are needed.")
        number, found = np.asarray(answer[0]).tolist(), numbers(answer[1:])
        if number in of:
            raise Hint(
                f"statement {number} is true: its error is a function of {of[number]} alone."
            )
        if number != 4:
            raise Hint(f"found statement {number!r}; there are four of them, 1 to 4.")
        if found.shape != (2, d):
            raise Hint(f"the result has shape {found.shape}; two vectors of width {d} are needed.")
        x, y = found
        off = abs(math.expm1(x @ y))
        if off > t * (1 + 1e-9):
            raise Hint(f"at t = {t:g}, |κ − 1| is {off:.3g}: bring xᵀy nearer to 0, not x and y.")
        if math.expm1(min(((x + y) ** 2).sum(), 700)) < 1 - 1e-9:
            raise Hint("the squared relative error is below 1: make one of them longer.")


@check
def repaired_attention(attend):
    """attend(q, k, v, W) = Σ_j Â_ij v_j / Σ_j Â_ij → (L, e), with hyperbolic features.

    Â_ij = e^{−‖y_j‖²/2} (1/m) Σ cosh(ωᵀ(x_i + y_j)), x = q d^{−1/4}, y = k d^{−1/4}.
    """
    errors = {
        "power": "the scale is d^{1/4} on each of q and k, so that their product has √d",
        "sign": "the second half needs exp(−x Wᵀ), or there is no cosh",
        "axis": "each query divides by its own sum over the keys, not by a sum over the queries",
    }
    rng = np.random.default_rng(1801)
    for L, d, e, m in ((5, 4, 2, 6), (4, 9, 3, 5)):
        q, k, v = (rng.normal(size=(L, width)) for width in (d, d, e))
        W = rng.normal(size=(m, d))

        def output(
            power=0.25,
            sign=-1,
            axis=1,
            norm=-0.5,
            shared=None,
            whole=False,
            divide=True,
            fold=False,
            q=q,
            k=k,
            v=v,
            W=W,
            d=d,
        ):
            x, y = (a / d**p for a, p in zip((q, k), shared or (power, power), strict=True))
            halves = [(np.exp(a @ W.T), np.exp(sign * (a @ W.T))) for a in (x, y)]
            both = [sum(pair) if fold else np.concatenate(pair, 1) for pair in halves]
            A = both[0] @ both[1].T * np.exp(norm * (y**2).sum(axis=1))
            if axis == 0 or whole or not divide:
                A = A * np.exp(norm * (x**2).sum(axis=1, keepdims=True))
            total = A.sum(axis=axis)[:, None]
            return A @ v / (total.sum() if whole else total if divide else 1)

        slips = []
        for left in [c for n in (3, 2, 1) for c in itertools.combinations(errors, n)]:
            as_printed = {"power": 0.5, "sign": 1, "axis": 0}
            value = output(**{error: as_printed[error] for error in left})
            count = ("one error is", "two errors are", "all three errors are")[len(left) - 1]
            slips.append(
                (value, f"{count} still there: {'; '.join(errors[error] for error in left)}.")
            )
        slips += [
            (
                output(norm=0.0),
                "the factor e^{−‖y‖²/2} belongs to the features, and is right as printed.",
            ),
            (output(norm=0.5), "the norm had the right sign: e^{−‖y‖²/2}."),
            (output(power=0.0), "the scale is gone: d^{1/4} on each of q and k."),
            (output(power=-0.25), "divide by d^{1/4}, do not multiply."),
            (output(norm=-1.0), "the ½ of the norm was right: e^{−‖y‖²/2}."),
            (output(shared=(0.5, 0.0)), "share the scale: d^{1/4} on q and on k."),
            (output(shared=(0.0, 0.5)), "share the scale: d^{1/4} on q and on k."),
            (output(whole=True), "each query divides by its own sum, not by that of all."),
            (output(divide=False), "the division by the sum over the keys was right: keep it."),
            (output(fold=True), "cosh of one side alone is no feature: keep both halves."),
            (
                special.softmax(q @ k.T / math.sqrt(d), axis=1) @ v,
                "this is exact attention: use the features of W.",
            ),
        ]
        judge(attend(q, k, v, W), output(), slips)
        unlike = rng.normal(size=(L + 2, d))  # more queries than keys
        judge(attend(unlike, k, v, W), output(q=unlike))
