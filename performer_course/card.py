"""The decision card of lesson 23: which cheap attention is worth trying in place of a head.

    performer-card head.npz --sample other.npz --causal    (or: python -m performer_course.card …)

head.npz holds q, k and v of one head (L, d), or of several (heads, L, d), rotated if the model uses
RoPE; k and v may have fewer heads. other.npz has the same heads on another text, to choose sizes,
means and centres on; without it, the earlier half serves, and only the later half is judged.
"""

import argparse
import warnings
from functools import partial
from math import comb
from time import process_time
from timeit import repeat

import numpy as np
from scipy.cluster.vq import kmeans2

from ._arguments import check_array, check_attention, check_count, check_number, reading
from .attention import favor_attention, softmax_attention, taylor_attention, uniform_attention
from .near_far import joint_attention, near_field
from .projections import orthogonal

LARGEST_FILE, SHORTEST, WIDEST, ROUNDING = 2**30, 32, 256, 1e-6  # bytes, tokens, numbers, error
HOW = "np.savez('head.npz', q=q.float().numpy(), k=k.float().numpy(), v=v.float().numpy())"
DRAWN = ("window + centres", "positive features")


def measure(q, k, v, *, causal=False, sample=None, budget=0.25, draws=3, seed=0) -> dict:
    """{method: (size, cost, time, errors)} of heads q (H, L, d), k, v (G, L, d), G dividing H.

    cost: multiplications as a fraction of exact attention's, at most `budget`, except for Taylor
    features, whose number is fixed. time: processor time as a fraction of exact attention's, in
    NumPy and float32; neither counts what is done once per head. Make one call at a time: it is the
    time of the whole process, whose warnings are silenced meanwhile. sample: (q, k, v) of these
    heads on another text; without it, the earlier half is the sample, and the later half is judged.
    errors: normalised, at least 1e-6; where mean(V) is exact, over 1e-6 of the variance of v.
    Shape: errors (draws, H). Error: few draws. Cost: O(H L² (d + e)). Raises: ValueError.
    """
    budget, causal = min(check_number(budget, "budget", above=0), 1.0), bool(causal)
    draws, seed = check_count(draws, "draws"), check_count(seed, "seed", least=0)
    if sample is not None and not (isinstance(sample, tuple | list) and len(sample) == 3):
        raise ValueError("sample must be (q, k, v) of another text")
    text = _heads(q, k, v)
    half = 0 if sample else text[0].shape[1] // 2
    sample = _heads(*sample, "sample ") if sample else [x[:, :half] for x in text]
    if [x.shape[::2] for x in sample] != [x.shape[::2] for x in text]:
        got = f"q {text[0].shape}, sample {sample[0].shape}"
        raise ValueError(f"sample must have the same heads and width as q, k and v, got {got}")
    early = [x[:, : x.shape[1] // 2] for x in sample]
    chosen, judged = _errors(sample, early[0].shape[1], causal), _errors(text, half, causal)

    def least(option):  # its error on the later half of the sample, fitted to the earlier
        return np.minimum(chosen(option[2](*early, np.random.default_rng(seed))), 1).mean()

    def seconds(attend):
        return min(repeat(lambda: attend(*text, causal=causal), "", process_time, 5, 1))

    exact, rows = max(seconds(softmax_attention), 1e-9), {}
    for name, options in _methods(text, causal, budget).items():
        size, cost, fit = min(options, key=least) if len(options) > 1 else options[0]
        rngs = np.random.default_rng(seed).spawn(draws if name in DRAWN else 1)
        attends = [fit(*sample, rng) for rng in rngs]
        rows[name] = size, cost, seconds(attends[0]) / exact, np.array([*map(judged, attends)])
    return rows


def _methods(text, causal, budget):
    """{name, simplest first: [(size, cost, fit), …]}; fit(q, k, v, rng), of a sample: attention."""
    (_, L, d), e = text[0].shape, text[2].shape[2]
    b = np.arange(L)
    seen = 1 + (2 - causal) * b * (1 - (b + 1) / (2 * L))  # keys per query, b on each side
    keys, centre = budget * seen[-1], (2 * d + e) / (d + e)  # a key also looks for its centre
    m = max(1, int(keys / 2))

    def near(part, sinks=0, mean=0, C=0):  # a window of `part` keys per query
        band = max(0, (seen <= part).sum() - 1)
        size = f"keys {1 + (2 - causal) * band}" + f", sinks {sinks}" * (sinks > 0)
        attend = partial(joint_attention if mean or C else near_field, band=band, sinks=sinks)
        cost = (seen[band] + sinks + mean + C * centre) / seen[-1]
        if not C:
            return size, cost, lambda *sample: attend
        return f"{size}, centres {C}", cost, partial(_with_centres, attend, C)

    def about(shift, attend):  # softmax attention does not see a shift of all keys
        return lambda q, k, v, **how: attend(q, k - shift[:, None], v, **how)

    def taylor(degree):
        F, attend = comb(d + degree, degree), partial(taylor_attention, degree=degree)
        cost = 2 * F * (1 + e) / (d + e) / seen[-1]
        return [(f"features {F}", cost, lambda q, k, v, rng: about(k.mean(axis=1), attend))]

    def drawn(q, k, v, rng):
        attend = partial(favor_attention, W=orthogonal(rng, m, d).astype(q.dtype))
        return about(q.mean(axis=1) + k.mean(axis=1), attend)

    some = [n for n in (1, 4, 16) if n < keys - 1] or [1]
    split = [(max(1, p * keys), n) for p in (0, 0.25, 0.5, 0.75) for n in (0, 4)]
    split = [(part, n, 0, int((keys - part - n) / centre)) for part, n in split]
    return {
        "mean(V)": [("all keys", e / (d + e) / seen[-1], lambda *sample: uniform_attention)],
        "window": [near(keys)],
        "window + sinks": [near(keys - n, n) for n in some],
        "window + mean key": [near(keys - 1, mean=1)],
        "window + sinks + mean key": [near(keys - n - 1, n, 1) for n in some],
        **{f"Taylor, degree {p}": taylor(p) for p in (1, 2)},
        "window + centres": [near(*x) for x in split if x[-1] > 0] or [near(1, C=1)],
        "positive features": [(f"features {m}", 2 * m / seen[-1], drawn)],
    }


def _with_centres(attend, C, q, k, v, rng):
    """attend with C cluster centres of the keys of each head: (H, C, d)."""
    keys = k + ROUNDING * np.abs(k).max() * rng.normal(size=k.shape)  # no two are the same
    with warnings.catch_warnings(action="ignore"):  # a cluster may become empty
        centres = [kmeans2(x, min(C, len(x)), minit="++", seed=rng)[0] for x in keys]
    return partial(attend, centres=np.array(centres, dtype=k.dtype))


def _errors(text, first, causal):
    """The function of an attention that gives its errors on the rows of a text from `first` on."""
    exact = softmax_attention(*text, causal=causal).astype(float)

    def squared(attend):
        return ((attend(*text, causal=causal) - exact)[:, first:] ** 2).sum((1, 2))

    spread = (exact.shape[1] - first) * text[2].astype(float).var(axis=1).sum(axis=1)
    unit = np.maximum(squared(uniform_attention), ROUNDING * spread)
    return lambda attend: np.maximum(squared(attend) / np.where(unit, unit, np.inf), ROUNDING)


def verdict(rows: dict, *, budget=0.25, bar=0.1, faster=0.9) -> str:
    """The method to try first, or `keep exact attention`, with the reason.

    Candidates cost at most `budget`, take at most `faster` of the time, and have a median error of
    at most `bar` on as many heads as any other. The answer is the simplest one whose error is at
    most 1.5 times the least, or a tenth of `bar`.
    """
    errors = {n: np.median(row[3], axis=0) for n, row in rows.items() if row[1] <= budget}
    good = {n: np.flatnonzero(x <= bar).tolist() for n, x in errors.items()}
    typical = {n: np.median(x[good[n]] if good[n] else x) for n, x in errors.items()}
    quick = [n for n in errors if good[n] and rows[n][2] <= faster]
    most = max(len(good[n]) for n in quick or errors)
    best = [n for n in quick or errors if len(good[n]) == most]
    least = min(typical[n] for n in best)
    best = next(n for n in best if typical[n] <= (max(bar / 10, 1.5 * least) if most else least))
    told = f"{best} ({rows[best][0]}): error {typical[best]:.2g}, time {rows[best][2]:.2f}"
    if not quick:
        slow = f"nothing good enough takes at most {faster:g} of its time"
        why = slow if good[best] else f"no error is {bar:g} or less"
        return f"keep exact attention: {why}; the best is {told}"
    some = f", on heads {good[best]}; keep exact attention on the others"
    return told + some * (most < len(errors[best]))


def _heads(q, k, v, name=""):
    """q, k, v of a text as (H, L, d) in float32, with H heads each. Raises: ValueError."""
    for x, letter in ((q, "q"), (k, "k"), (v, "v")):
        if not isinstance(x, np.ndarray):
            raise ValueError(f"{name}{letter} must be a NumPy array, got {type(x).__name__}")
        check_array(x, name + letter, "L, d", power=0.2, like=np.ones(1, np.float32))
    q, k, v = (x.reshape(-1, *x.shape[-2:]) if x.ndim == 2 or len(x) == 1 else x for x in (q, k, v))
    got = f"got {name}q {list(q.shape)}, k {list(k.shape)}, v {list(v.shape)}"
    if {q.ndim, k.ndim, v.ndim} != {3} or len(q) % len(k) or k.shape[:2] != (len(v), q.shape[1]):
        rule = "of one text and one L, the heads of q a multiple of those of k and v"
        raise ValueError(f"q, k and v must be (L, d) or (heads, L, d), {rule}, {got}")
    if q.shape[1] < max(SHORTEST, len(q)) or q.shape[2] > WIDEST:
        sizes = f"{SHORTEST} tokens or more, not fewer than heads, d at most {WIDEST}"
        turn = "x.reshape(L, heads, d).swapaxes(0, 1) puts the heads first"
        raise ValueError(f"q must be (heads, L, d), {sizes}, {got}: {turn}")
    k, v = (np.repeat(x, len(q) // len(k), axis=0) for x in (k, v))
    check_attention(q, k, v, None, names=(name + "q", name + "k"))
    return [x.astype(np.float32) for x in (q, k, v)]


def _read(path):
    """q, k and v of an npz file; bfloat16 as float32. Raises: ValueError, FileNotFoundError."""
    with reading(path, f"npz file ({HOW})") as file:
        stored = np.load(file)
        if isinstance(stored, np.ndarray):
            raise ValueError("it is a single array; use np.savez")
        if sum(entry.file_size for entry in stored.zip.filelist) > LARGEST_FILE:
            raise ValueError(f"its arrays take more than {LARGEST_FILE >> 20} MiB")
        arrays = [stored[name] for name in "qkv" if name in stored.files]
    for i, x in enumerate(arrays):
        if x.dtype.itemsize == 2 and x.dtype.kind in "Vui":  # bfloat16, the upper half of float32
            bits = (x.view(np.uint16).astype(np.uint32) << 16).view(np.float32)
            if not 0 < np.nanmax(abs(bits), initial=0) < 1e-30:  # else they are counts, say
                arrays[i] = bits
    if [x.dtype.kind for x in arrays] != ["f"] * 3:
        got = ", ".join(stored.files) or "no arrays"
        got += f" (numbers: {', '.join(str(x.dtype) for x in arrays)})" if arrays else ""
        raise ValueError(f"{path} must hold real numbers named q, k and v ({HOW}), got {got}")
    return arrays


def main() -> None:
    """Read heads, print their card and the verdict."""
    known = {"description": __doc__, "formatter_class": argparse.RawDescriptionHelpFormatter}
    parser = argparse.ArgumentParser("performer-card", **known)
    parser.add_argument("head", help="npz file of q, k and v")
    parser.add_argument("--sample", help="npz file of the same heads on another text")
    parser.add_argument("--causal", action="store_true", help="for a decoder")
    cost = "part of exact attention's multiplications that a method may take (0.25)"
    parser.add_argument("--budget", type=float, default=0.25, help=cost)
    args = parser.parse_args()
    try:
        text, sample = _read(args.head), args.sample and _read(args.sample)
        rows = measure(*text, causal=args.causal, sample=sample, budget=args.budget)
    except (ValueError, OSError) as error:
        parser.exit(1, f"{error}\n")
    where = args.sample or "the earlier half, errors on the later half"
    print(f"Cost and time: relative to exact attention in NumPy. Sizes and centres from {where}")
    print(f"{'method':26} {'size':30} cost  time   normalised error: median, min, max")
    for above in (False, True):
        print("--- above the budget ---\n" * above, end="")
        for name, row in sorted(rows.items(), key=lambda x: np.median(x[1][3])):
            if (row[1] > args.budget) == above:
                spread = "".join(f"{f(row[3]):10.2g}" for f in (np.median, np.min, np.max))
                print(f"{name:26} {row[0]:30} {row[1]:4.2f} {row[2]:5.2f}{spread}")
    end = verdict(rows, budget=args.budget)
    if not end.startswith("keep"):
        print("Next: use it in the model and measure the model; errors of heads do not rank models")
    print("Verdict:", end)


if __name__ == "__main__":
    main()
