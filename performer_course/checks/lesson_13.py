"""Lesson 13, the Performer."""

import math

import numpy as np

from ._judge import Hint, check, judge, numbers


@check
def features_or_exact(decide):
    """decide(q, k, L, error): m = ⌈½ mean(e^{‖z‖²} − 1)/(Var(t) · min(error, 0.3))⌉, or 0."""
    rng = np.random.default_rng(1201)
    samples = []
    for n, d, size in ((30, 5, 0.4), (24, 3, 0.5), (20, 6, 2.5)):
        q, k = size * rng.normal(size=(2, n, d))
        samples.append((q + 0.3 * size, k - 0.2 * size))

    def foretold(q, k, power=-0.25, minus=1.0, spread="rows", of="z"):
        """What one direction is foretold, over mean(V)'s error."""
        x, y = (a * a.shape[1] ** power for a in (q, k))
        t = x @ y.T
        if of == "i = j":
            squares = ((x + y[: len(x)]) ** 2).sum(axis=1)
        else:
            sign = -1 if of == "x − y" else 1
            squares = (x**2).sum(axis=1)[:, None] + (y**2).sum(axis=1) + sign * 2 * t
        grown = np.exp(squares)
        top = (np.median(grown) if of == "median" else grown.mean()) - minus
        variance = {
            "rows": t.var(axis=1).mean(),
            "all": t.var(),
            "queries": t.var(axis=0).mean(),
            "deviation": t.std(axis=1).mean(),
            "none": 1.0,
        }[spread]
        return top / (2 * variance)

    enough = math.ceil(foretold(*samples[1]) / 0.2)
    cases = {
        "a long text": (0, 10**6, 0.1),
        "a text of 2m tokens": (1, 2 * enough, 0.2),
        "a text of 2m − 1 tokens": (1, 2 * enough - 1, 0.2),
        "error = 0.9, above what is to be trusted": (0, 10**6, 0.9),
        "long queries and keys": (2, 10**6, 0.2),
    }

    def smaller(error):
        return min(error, 0.3)

    def made(half=1.0, aim=smaller, share=0.5, up=math.ceil, other=0, **options):
        """What an answer with these slips gives in each case."""
        found = []
        for which, L, error in cases.values():
            need = half * foretold(*samples[which], **options) / aim(error)
            m = up(need) if math.isfinite(need) else math.inf
            found.append(m if m <= share * L else other)
        return found

    judge(
        [numbers(decide(*samples[which], L, error)) for which, L, error in cases.values()],
        made(),
        [
            (made(half=2), "half of the relative variance: the other half cancels in the ratio."),
            (made(half=0.5), "the half is taken twice."),
            (made(spread="all"), "the variance over the keys of each query, and then their mean."),
            (made(spread="queries"), "the variance is over the keys of a query, not over queries."),
            (made(spread="deviation"), "divide by the variance of the scores, not its root."),
            (made(spread="none"), "divide by the variance of the scores: mean(V) is off by that."),
            (made(power=0.0), "q and k are scaled by d^{−1/4} first."),
            (made(power=-0.5), "d^{−1/4} on q and on k: the product has d^{−1/2}."),
            (made(minus=0.0), "the relative variance has e^{‖z‖²} − 1."),
            (made(of="x − y"), "z = q' + k': a plus."),
            (made(of="i = j"), "the mean runs over all pairs of a query and a key."),
            (made(of="median"), "the mean over the pairs, not the median."),
            (made(aim=lambda error: 0.3), "aim at the smaller of `error` and 0.3."),
            (made(aim=lambda error: max(error, 0.3)), "aim at the smaller of `error` and 0.3."),
            (made(aim=float), "aim at 0.3 where `error` is above: that far it is trusted."),
            (made(share=1.0), "m directions are worth it only where 2m ≤ L."),
            (made(share=math.inf), "0 where 2m > L: then exact attention is cheaper."),
            (made(up=math.floor), "round up, or the error is above the target."),
            (made(up=round), "round up, or the error is above the target."),
            (made(up=lambda need: need), "a number of directions is whole: round up."),
        ],
        cases=list(cases),
    )


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
                (
                    made(1, 0.25, every),
                    "half of the correction: the bias of all is half that of a half, so twice all.",
                ),
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


@check
def bias_and_noise(estimate):
    """estimate(outputs, exact): ‖mean − exact‖² − noise/N, noise = Σ var with N − 1."""
    rng = np.random.default_rng(1204)
    for N, L, e, near in ((3, 3, 4, 0.0), (7, 5, 2, 0.0), (2, 4, 3, 0.9)):
        exact = rng.normal(size=(L, e))
        outputs = exact + 0.4 * rng.normal(size=(L, e)) + rng.normal(size=(N, L, e))
        outputs += near * (exact - outputs.mean(axis=0))  # near 1 the first estimate is below 0
        each = ((outputs - outputs.mean(axis=0)) ** 2).sum(axis=0)
        spread, off = each.sum(), outputs.mean(axis=0) - exact
        noise = spread / (N - 1)
        far, whole = (off**2).sum(), ((outputs - exact) ** 2).sum() / N
        right = np.array([far - noise / N, noise])
        cut = np.maximum(off**2 - each / (N - 1) / N, 0).sum()
        about_exact = [[far - w / N, w] for w in (whole, whole * N / (N - 1))]
        below = "right on average it is only where it may be negative: it is cut off at 0."
        of_mean = "the variance is about the mean of the draws, not about the exact output."
        found, turned = (
            _two_numbers(estimate(draws, exact), "the squared bias and the variance")
            for draws in (outputs, np.roll(outputs, 1, axis=0))
        )
        judge(
            found,
            right,
            [
                (np.maximum(right, 0), below),
                ([cut, noise], below),
                *[(pair, of_mean) for pair in ([right[0], whole], *about_exact)],
                (
                    [far, noise],
                    "the mean of N outputs still has 1/N of the variance: subtract it.",
                ),
                ([far - spread / N**2, spread / N], "divide by N − 1: the mean was fitted."),
                ([far - noise / N, spread / N], "divide by N − 1: the mean was fitted."),
                ([far, spread / N], "neither is right on average: N − 1, and what the mean has."),
                ([far - noise, noise], "the mean has the variance over N, not all of it."),
                ([far - noise / N, noise / N], "the variance of one draw, not of the mean."),
                ([far + noise / N, noise], "subtract what the mean has of the variance."),
                (right / (L * e), "the sum over all entries, not their mean."),
                ([far / (L * e), noise / (L * e)], "the sum over all entries, not their mean."),
                (right[::-1], "the squared bias first, and then the variance."),
                ([whole, noise], "this is the whole error: bias and variance together."),
                (
                    [off.sum() ** 2 - noise / N, noise],
                    "square each entry, and then add them up.",
                ),
                ([math.sqrt(far), math.sqrt(noise)], "the squares are asked for, not the roots."),
                (
                    np.inf if np.allclose(found, turned) else found,
                    "other estimates where the draws change places: use all draws alike.",
                ),
            ],
        )


def _two_numbers(found, names):
    """`found` as an array of two numbers, or a hint that asks for the two by their `names`."""
    if isinstance(found, np.ndarray) and found.shape == (2,):
        found = list(found)
    if not isinstance(found, list | tuple) or len(found) != 2:
        got = "None" if found is None else f"a {type(found).__name__}"
        raise Hint(f"return {names}, two numbers, got {got}.")
    parts = [numbers(part) for part in found]
    for part in parts:
        if part.shape != ():
            raise Hint(f"return {names}, two numbers: one of them has shape {part.shape}.")
    return np.stack(parts)
