"""The decision card of lesson 23: which cheap attention is worth trying in place of a head.

    performer-card head.npz --sample other.npz --causal    (or: python -m performer_course.card …)

head.npz holds q, k and v of one head (L, d), or of several (heads, L, d), rotated if the model uses
RoPE; k and v may have fewer heads. other.npz has the same heads on another text, to choose sizes
and centres on; without it, the earlier half serves, and only the later half is judged.
"""

import argparse
from time import process_time
from timeit import repeat

import numpy as np

from . import compare
from ._arguments import check_heads, check_number, reading
from .attention import softmax_attention

LARGEST_FILE = 2**30  # bytes
HOW = "np.savez('head.npz', q=q.float().numpy(), k=k.float().numpy(), v=v.float().numpy())"


def measure(q, k, v, *, causal=False, sample=None, budget=0.25, draws=3, seed=0) -> dict:
    """{method: (size, cost, time, errors)} of heads q (H, L, d), k, v (G, L, d), G dividing H.

    cost: multiplications as a fraction of exact attention's, at most `budget`, except for Taylor
    features, whose number is fixed. time: processor time as a fraction of exact attention's, in
    NumPy and float32; neither counts what is done once per head. Make one call at a time: it is the
    time of the whole process, whose warnings are silenced meanwhile. sample: (q, k, v) of these
    heads on another text; without it, the earlier half is the sample, and the later half is judged.
    errors: as `compare.rivals`. Shape: errors (draws, H). Error: few draws. Cost: O(H L² (d + e)).
    Raises: ValueError.
    """
    budget, causal = min(check_number(budget, "budget", above=0), 1.0), bool(causal)
    text = check_heads(q, k, v)
    L = text[0].shape[1]
    keys = (L + 1) / 2 if causal else L  # that a query sees
    known = {"causal": causal, "sample": sample, "draws": draws, "seed": seed}
    rows = compare.rivals(*text, budget=budget * keys, **known)

    def seconds(attend):
        return min(repeat(lambda: attend(*text, causal=causal), "", process_time, 5, 1))

    exact = max(seconds(softmax_attention), 1e-9)
    return {
        name: (row.size, row.cost / keys, seconds(row.attends[0]) / exact, row.errors)
        for name, row in rows.items()
    }


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
