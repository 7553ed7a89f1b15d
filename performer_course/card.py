"""The decision card of lesson 15: which cheap attention suits one head, and what it costs.

    python -m performer_course.card head.npz --sample other.npz --causal

head.npz holds q and k (L, d), rotated if the model uses RoPE, and v (L, e); other.npz holds q and k
of the same head on another text, for moments and cluster centres. Prints a table, smallest error
first, and draws it into card.png.
"""

import argparse
import zipfile

import numpy as np
from scipy.cluster.vq import kmeans2

from ._arguments import (
    check_attention,
    check_count,
    check_finite,
    check_number,
    check_shape,
    check_tokens,
    reading,
)
from .attention import favor_attention, softmax_attention, taylor_attention
from .compare import SAMPLE_POWER, fitted_directions, moments, normalised_error, with_weight_column
from .figures import COLORS, plt
from .near_far import joint_attention, joint_favor_attention, near_field
from .projections import orthogonal

LARGEST_FILE = 2**28  # bytes of all arrays, unpacked: 170,000 tokens of width 128 in float32


def card(q, k, v, *, causal=False, sample=None, share=0.25, draws=3, seed=0) -> dict[str, tuple]:
    """{method: (size, cost, errors)} of one head q, k (L, d), v (L, e), NumPy arrays.

    cost: a fraction of exact attention's multiplications, without what is done once per head, such
    as clustering. Each method is as large as the fraction `share` allows, half of it near and half
    far; Taylor features have a fixed size. errors: `normalised_error`, one for each draw of
    directions or start of the clustering. sample: (q, k) of the same head on another text, for
    moments and centres; a causal head needs one, because its own means would see the future. Shape:
    errors (draws,) or (1,). Error: that of few draws. Cost: O(L² (d + e)). Raises: ValueError.
    Source: this course.
    """
    q, k, v, _, _ = check_attention(q, k, v, None)
    check_tokens(q, k)
    if q.ndim != 2 or not isinstance(q, np.ndarray):
        raise ValueError(f"q must be one head on NumPy, (L, d), got shape {tuple(q.shape)}")
    pair = isinstance(sample, tuple | list) and len(sample) == 2
    if not (pair or (sample is None and not causal)):
        raise ValueError("sample must be (q, k) of another text; a causal head needs it")
    q, k, v = (x.astype(float) for x in (q, k, v))  # `kmeans2` takes no half precision
    check_finite(v, "v", power=SAMPLE_POWER / 2)  # Taylor weights may sum to almost 0
    for x in sample or ():
        check_shape(x, "sample", ("n", q.shape[1]), q, "q", power=SAMPLE_POWER)
    share, draws = check_number(share, "share", above=0), check_count(draws, "draws")
    if share > 1000:
        raise ValueError(f"share must be at most 1000 of exact attention's cost, got {share:g}")
    seed, causal = check_count(seed, "seed", least=0), bool(causal)
    (L, d), e, rng = q.shape, v.shape[1], np.random.default_rng(seed)
    q0, k0 = (x.astype(float) for x in sample or (q, k))
    s = moments(q0, k0)[0]

    # Costs, in keys per query: a key takes d multiplications for its weight and e for its value.
    b = np.arange(L)
    seen = 1 + (2 - causal) * b * (1 - (b + 1) / (2 * L))  # for b keys on each side
    budget, half = share * seen[-1], share * seen[-1] / 2
    w, w_key, w_half = (max(0, (seen <= x).sum() - 1) for x in (budget, budget - 1, half))
    centre = (2 * d + e) / (d + e)  # each key also looks for its nearest centre
    C, C_half = (int(np.clip(x / centre, 1, len(k0))) for x in (budget - 1, half))
    m, m_half = (max(1, int(x / 2)) for x in (budget, half))
    F = {1: d + 1, 2: (d + 1) * (d + 2) // 2}
    taylor = 2 * (1 + e) / (d + e)  # of one Taylor feature

    def near(w, C=0):
        far = {"centres": kmeans2(k0, C, minit="++", seed=rng)[0]} if C else {}
        return joint_attention(q, k, v, w, causal=causal, **far)

    def drawn(s):
        return favor_attention(q, k - s, v, orthogonal(rng, m, d), causal=causal)

    def dense(m, attend, *band):
        W = fitted_directions(orthogonal(rng, m, d), q0, k0)
        return attend(*with_weight_column(q, k), v, W, *band, causal=causal)

    def series(degree):
        return taylor_attention(q, k - k0.mean(axis=0), v, degree, causal=causal)

    methods = [  # (name, size, cost, runs, function)
        ("window", f"{w} a side", seen[w], 1, lambda: near_field(q, k, v, w, causal=causal)),
        ("window, mean key", f"{w_key} a side", seen[w_key] + 1, 1, lambda: near(w_key)),
        ("window, centres", f"{w_half}, {C_half}", seen[w_half] + C_half * centre, draws,
         lambda: near(w_half, C_half)),
        ("window, dense", f"{w_half}, m = {m_half}", seen[w_half] + 2 * m_half, draws,
         lambda: dense(m_half, joint_favor_attention, w_half)),
        ("centres", f"{C}", 1 + C * centre, draws, lambda: near(0, C)),
        ("Taylor 1", f"F = {F[1]}", F[1] * taylor, 1, lambda: series(1)),
        ("Taylor 2", f"F = {F[2]}", F[2] * taylor, 1, lambda: series(2)),
        ("features", f"m = {m}", 2 * m, draws, lambda: drawn(0)),
        ("features, centred", f"m = {m}", 2 * m, draws, lambda: drawn(s)),
        ("features, dense", f"m = {m}", 2 * m, draws, lambda: dense(m, favor_attention)),
    ]  # fmt: skip
    exact, rows = softmax_attention(q, k, v, causal=causal), {}
    for name, size, cost, runs, output in methods:
        errors = [normalised_error(output(), exact, v, causal=causal) for _ in range(runs)]
        rows[name] = (size, cost / seen[-1], np.array(errors))
    return rows


def _picture(rows: dict[str, tuple]):
    """The figure of a `card`; dots are full where a method is cheaper than exact attention."""
    fig, ax = plt.subplots(figsize=(8, 5))
    for row, (_, cost, errors) in enumerate(rows.values()):
        face = COLORS[0] if cost < 1 else "none"
        ax.plot(errors, [row] * len(errors), "o", ms=9, mfc=face, mec=COLORS[0])
    ax.axvline(1, color=COLORS[1], ls="--", label="mean(V)")
    ax.set(xscale="log", xlabel="normalised error")
    ax.set_yticks(range(len(rows)), rows)
    ax.invert_yaxis()
    ax.legend()
    return fig


def _read(path, names):
    """These arrays of a file, in float64. Raises: ValueError, FileNotFoundError."""
    with reading(path, f"npz file with {', '.join(names)}") as file:
        if sum(entry.file_size for entry in zipfile.ZipFile(file).filelist) > LARGEST_FILE:
            raise ValueError(f"its arrays take more than {LARGEST_FILE >> 20} MiB")
        stored = dict(np.load(file))
    got = ", ".join(f"{name} {x.dtype}{list(x.shape)}" for name, x in stored.items())
    for name in names:
        if name not in stored or stored[name].dtype.kind != "f":
            raise ValueError(
                f"{path} must hold the values of {name} in float32, float64 or float16 "
                f"(of a PyTorch tensor, x.float().numpy()), got {got or 'nothing'}"
            )
    return [stored[name].astype(float) for name in names]


def main() -> None:
    """Read a head, print its card and draw it."""
    parser = argparse.ArgumentParser(prog="python -m performer_course.card", description=__doc__)
    parser.add_argument("head")
    parser.add_argument("--sample")
    parser.add_argument("--causal", action="store_true")
    parser.add_argument("--share", type=float, default=0.25)
    args = parser.parse_args()
    sample = _read(args.sample, "qk") if args.sample else None
    rows = card(*_read(args.head, "qkv"), causal=args.causal, sample=sample, share=args.share)
    print("size: keys on each side of a window, cluster centres, directions m or features F")
    print("cost: fraction of exact attention's multiplications; dense: directions fitted to data")
    print("method               size               cost   normalised error: median, min, max")
    for name, (size, cost, errors) in sorted(rows.items(), key=lambda row: np.median(row[1][2])):
        spread = f"{np.median(errors):9.3g} {errors.min():9.3g} {errors.max():9.3g}"
        note = "   no cheaper than exact" if cost >= 1 else ""
        print(f"{name:20} {size:15} {cost:7.2f}   {spread}{note}")
    try:
        _picture(rows).savefig("card.png")
    except OSError as error:  # a folder that cannot be written
        parser.exit(1, f"card.png could not be written: {error}\n")


if __name__ == "__main__":
    main()
