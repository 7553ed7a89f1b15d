"""Drawings that explain: fig, alt = drawings.two_orders(), then show(fig, alt=alt, caption=...).

Queries are blue, keys orange, values green and results purple; a label or a hatch says it again.
Positions and sizes are in half inches, written as text: "x y label; x y label".
"""

import numpy as np

from .figures import COLORS, mpl, plt

QUERY, KEY, VALUE, RESULT = COLORS[:4]
GREY, HATCH = "#666666", "//"
FRAME = {"facecolor": "none", "linewidth": 3}
NODE = {"size": 18, "bbox": {"boxstyle": "circle,pad=0.15", "facecolor": "white", "linewidth": 2}}


def scaled_dot_product():
    """Q and K make scores, a softmax per row makes weights of them, weights and V the output."""
    ax = _canvas(4.2)
    _cells(ax, "1.3 5.6 5 3", QUERY)
    _cells(ax, "3 2.2 6 3", KEY)
    _cells(ax, "12.6 2.2 6 2", VALUE)
    _cells(ax, "5.4 5.6 5 6; 14.9 5.6 5 2", RESULT)
    _cells(ax, "10.1 5.6 5 6", RESULT, sharp=5)
    _box(ax, "1.3 5.6 1.2 0.4; 5.4 5.6 2.4 0.4; 10.1 5.6 2.4 0.4; 14.9 5.6 0.8 0.4", **FRAME)
    _arrow(ax, "1.95 5.6 2.6 5.6; 3.4 5.6 4.15 5.6; 6.65 5.6 8.85 5.6; 11.35 5.6 12.2 5.6")
    _arrow(ax, "13 5.6 14.45 5.6; 3 3.5 3 5.2; 12.6 3.5 12.6 5.2")
    _say(ax, "1.3 7.05 Q; 1.3 4.15 (L, d); 3 0.55 K  (S, d); 3 5.6 ×; 5.4 7.05 scores QKᵀ / √d")
    _say(ax, "5.4 4.15 (L, S); 7.75 6.05 softmax; 7.75 5.15 per row; 10.1 7.05 weights; 12.6 5.6 ×")
    _say(ax, "10.1 4.15 (L, S); 12.6 0.55 V  (S, e); 14.9 7.05 output; 14.9 4.15 (L, e)")
    return _told(ax, scaled_dot_product)


def multi_head(heads: int = 4):
    """Queries, keys and values are split into heads, which attend, are concatenated and mixed."""
    ax, step = _canvas(4.2), 5.6 / heads
    _cells(ax, "0.95 4.1 5 3; 15.05 4.1 5 3", GREY)
    _box(ax, "3.2 4.1 1.7 4.4", GREY, facecolor="none")
    for head in range(1, heads + 1):
        start, y, end = 4.1 + np.array([0.6, step, 0.45]) * ((heads + 1) / 2 - head)
        side = 11.9 + 1.12 / heads * (head - (heads + 1) / 2)
        for i, name in enumerate("QKV"):
            part = f"{5.6 + 0.95 * i} {y} 0.85 {0.7 * step} ${name}_{head}$"
            _box(ax, f"3.2 {5.45 - 1.35 * i} 1.2 1.1 $W_{name}$; " * (head == 1) + part, COLORS[i])
        _box(ax, f"9.6 {y} 2.2 {0.7 * step} head {head}; {side} 4.1 {1.12 / heads} 2", RESULT)
        _arrow(ax, f"4.1 {start} 5.1 {y}; 8 {y} 8.45 {y}; 10.75 {y} 11.3 {end}")
    _box(ax, "13.45 4.1 1 1.1 $W_O$", GREY)
    _arrow(ax, "1.6 4.1 2.3 4.1; 12.5 4.1 12.9 4.1; 14 4.1 14.4 4.1")
    _say(ax, f"6.55 0.6 each (L, d); 9.6 0.6 d = n/{heads}; 11.9 2.6 (L, n)")
    _say(ax, "0.95 5.6 input; 0.95 2.6 (L, n); 15.05 5.6 output; 15.05 2.6 (L, n)")
    _say(ax, "3.2 7.8 *project; 6.55 7.8 *split; 9.6 7.8 *attend; 12.7 7.8 *concatenate")
    return _told(ax, multi_head)


def transformer_block():
    """Attention, then a feed-forward network, each after a norm and added to what came in."""
    ax = _canvas(3.2)
    around = "1.4 2.5 1.4 4.9 7.4 4.9 7.4 2.9; 8.15 2.5 8.15 4.9 14.15 4.9 14.15 2.9"
    _box(ax, "2.6 2.5 1.5 1.6 layer\nnorm; 9.35 2.5 1.5 1.6 layer\nnorm", GREY)
    _box(ax, "5.15 2.5 2.95 1.6 multi-head\nattention", QUERY)
    _box(ax, "11.9 2.5 2.95 1.6 feed-forward\nnetwork", KEY)
    _arrow(ax, "0.2 2.5 1.85 2.5; 3.35 2.5 3.7 2.5; 6.65 2.5 7.05 2.5; 7.4 2.5 8.6 2.5")
    _arrow(ax, "10.1 2.5 10.45 2.5; 13.4 2.5 13.8 2.5; 14.15 2.5 15.35 2.5")
    _arrow(ax, around, color=VALUE, linewidth=3.5)
    _say(ax, "0.7 3 x; 0.7 2 (L, n); 4.4 5.4 residual connection; 5.15 1.1 between tokens")
    _say(ax, "11.15 5.4 residual connection; 11.9 1.1 within each token; 15.25 2 (L, n); 7.4 2.5 +")
    _say(ax, "14.15 2.5 +")
    return _told(ax, transformer_block)


def two_orders():
    """Brackets around φ(Q) φ(K)ᵀ make an L × S array, brackets around φ(K)ᵀ V a small F × e one."""
    ax = _canvas(5)  # L = S = 2.5, F = 0.9, e = 0.6
    _box(ax, "1.8 7.05 0.9 2.5; 8.2 2.1 0.9 2.5", QUERY)
    _box(ax, "4 7.05 2.5 0.9; 2.6 2.1 2.5 0.9", KEY)
    _box(ax, "10.9 7.05 0.6 2.5; 4.85 2.1 0.6 2.5", VALUE)
    _box(ax, "8.65 7.05 2.5 2.5; 9.9 2.1 0.6 0.9", RESULT, HATCH)
    _box(ax, "14.2 7.05 0.6 2.5; 13.5 2.1 0.6 2.5", GREY)
    _arrow(ax, "5.55 7.05 7.15 7.05; 11.7 7.05 13.3 7.05; 5.7 2.1 7.3 2.1; 11 2.1 12.6 2.1")
    _say(ax, "8 9.45 *(φ(Q) φ(K)ᵀ) V:  L·S·(F + e) multiplications; 1.8 8.65 φ(Q); 1.8 5.45 (L, F)")
    _say(ax, "4 7.85 φ(K)ᵀ; 4 6.25 (F, S); 6.3 7.45 L·S·F; 8.65 8.65 φ(Q) φ(K)ᵀ; 8.65 5.45 (L, S)")
    _say(ax, "10.9 8.65 V; 10.9 5.45 (S, e); 12.45 7.45 L·S·e; 14.2 8.65 output; 14.2 5.45 (L, e)")
    _say(ax, "8 4.5 *φ(Q) (φ(K)ᵀ V):  (L + S)·F·e multiplications; 2.6 2.9 φ(K)ᵀ; 2.6 1.3 (F, S)")
    _say(ax, "4.85 3.7 V; 4.85 0.5 (S, e); 6.45 2.5 S·F·e; 8.2 3.7 φ(Q); 8.2 0.5 (L, F)")
    _say(ax, "9.9 2.9 φ(K)ᵀ V; 9.9 1.3 (F, e); 11.75 2.5 L·F·e; 13.5 3.7 output; 13.5 0.5 (L, e)")
    return _told(ax, two_orders)


def causal_forms():
    """The same rows by three schedules: sums at once, a state between chunks, a state in a loop."""
    ax = _canvas(4.2)
    for i in range(9):
        y, width = 6.8 - 0.56 * i, 0.56 * (i + 1)
        _box(ax, f"{1.5 + width / 2} {y} {width - 0.1} 0.46", RESULT, HATCH)
        for j in range(i // 3 * 3, i + 1):
            _box(ax, f"{7.18 + 0.56 * j} {y} 0.46 0.46", KEY)
    _box(ax, "7.74 4.56 1.58 1.58 state; 8.58 2.88 3.26 1.58 state", RESULT, HATCH)
    _box(ax, "13.9 4.8 1.8 1.4 state", RESULT, HATCH)
    _box(ax, "3.74 2.88 4.48 0.56; 9.14 2.88 4.48 0.56", **FRAME)
    _arrow(ax, "13.9 3.3 13.9 4.05; 13.9 5.5 13.9 6.25; 14.8 4.4 15.7 4.4 15.7 5.2 14.85 5.2")
    _say(ax, "0.7 2.88 row 8; 13.9 2.9 token 8; 13.9 6.65 row 8; 4 0.9 all rows at once")
    _say(ax, "9.4 0.9 chunk by chunk; 13.9 0.9 token by token; 4 7.8 *prefix sums; 9.4 7.8 *chunks")
    _say(ax, "13.9 7.8 *recurrence")
    return _told(ax, causal_forms)


def state_and_cache():
    """A KV cache has a row of K and V for each token so far; a state keeps its size."""
    ax = _canvas(4.5)
    for x, count, name in ((4.6, 1, "1"), (7.2, 2, "2"), (9.8, 3, "3"), (14.2, 9, "t")):
        for y in 4.3 + 0.38 * np.arange(count):
            _box(ax, f"{x - 0.5} {y} 0.9 0.3", KEY)
            _box(ax, f"{x + 0.5} {y} 0.9 0.3", VALUE)
        _box(ax, f"{x - 0.8} 2 0.3 1.5; {x - 0.35} 2 0.3 1.5; {x + 0.45} 2 1 1.5", RESULT, HATCH)
        _say(ax, f"{x} 8.4 *{name}; {x - 0.8} 0.9 c; {x - 0.35} 0.9 z; {x + 0.45} 0.9 S")
    _say(ax, "1.7 5.6 *KV cache; 1.7 2.6 *state; 12 8.4 *…; 1.7 8.4 after token; 1.7 4.9 K (t, d)")
    _say(ax, "1.7 4.3 V (t, e); 1.7 1.9 c, z (m,); 1.7 1.3 S (m, e)")
    return _told(ax, state_and_cache)


def methods():
    """One row of causal weights by eight methods: which keys are exact, approximated or dropped."""
    ax, rng, j = _canvas(5), np.random.default_rng(0), np.arange(24)
    window, sinks = j > 17, j < 2
    logits = 0.8 * rng.normal(size=24) + 0.9 * window + 1.9 * (j == 0)
    rough, thirds = logits + rng.normal(size=24), np.argsort(np.argsort(logits[2:18])) * 3 // 16
    levels = [logits[2:18][thirds == cluster].mean() for cluster in thirds]
    centres, no, mean = np.pad(levels, (2, 6)), -np.inf, logits[2:18].mean()
    rows = {
        "exact attention": (j >= 0, no),
        "window": (window, no),
        "window, sinks": (window | sinks, no),
        "window, sinks, mean key": (window | sinks, mean),
        "window, sinks, centres": (window | sinks, centres),
        "window, sinks, features": (window | sinks, rough),
        "features": (j < 0, rough),
        "mean(V)": (j < 0, 0),
    }
    looks = [(QUERY, "", (QUERY, 0.8)), (KEY, HATCH, (KEY, 0.3)), (GREY, "", GREY)]
    for y, (name, (exact, other)) in zip(9.05 - 1.1 * np.arange(8), rows.items(), strict=True):
        weights = np.exp(np.where(exact, logits, other))
        for key, height in enumerate(3 * weights / weights.sum()):
            color, hatch, face = looks[0 if exact[key] else 1 if height else 2]
            cell = f"{6.1 + 0.4 * key} {y + height / 2} 0.32 {max(height, 0.03)}"
            _box(ax, cell, color, hatch, facecolor=face, linewidth=1)
        _say(ax, f"0.2 {y + 0.2} {name}", ha="left")
    for x, (color, hatch, face) in zip((6, 9, 12.8), looks, strict=True):
        _box(ax, f"{x} 0.5 0.4 {0.03 if color == GREY else 0.5}", color, hatch, facecolor=face)
    _say(ax, "6.4 0.5 exact; 9.4 0.5 approximated; 13.2 0.5 no weight", ha="left")
    return _told(ax, methods)


def delta_rule():
    """The delta rule reads what the state answers for k, erases it, and writes v in its place."""
    ax = _canvas(4.5)
    for x in (3.3, 8.6, 13.9):
        _box(ax, f"{x - 2.2} 6.3 0.6 0.65 k", KEY)
        for y in (7.1, 5.5, 4.7):
            _box(ax, f"{x} {y} 3 0.65; {x - 2.2} {y} 0.6 0.65", GREY)
    _box(ax, "3.3 6.3 3 0.65 old answer", RESULT, HATCH)
    _box(ax, "13.9 6.3 3 0.65 v", VALUE, "..")
    _arrow(ax, "5.05 5.9 5.85 5.9; 10.35 5.9 11.15 5.9")
    _say(ax, "8 2 S ← S + βk (v − Sᵀk)ᵀ", size=22)
    _say(ax, "3 8.3 *1. read; 8.3 8.3 *2. erase; 13.6 8.3 *3. write; 8.6 6.3 erased; 3 3.6 Sᵀk")
    _say(ax, "8.3 3.6 − βk (Sᵀk)ᵀ; 13.6 3.6 + βk vᵀ")
    _say(ax, "8 0.7 k (d,)    v (e,)    S (d, e)    here β = 1, ‖k‖ = 1")
    return _told(ax, delta_rule)


def _canvas(height):
    ax = plt.figure(figsize=(8, height), layout="none").add_axes((0, 0, 1, 1))
    ax.set(xlim=(0, 16), ylim=(0, 2 * height))
    ax.axis("off")
    return ax


def _told(ax, drawing):
    """The figure and its alternative text: what `drawing` says of itself, then the labels."""
    labels = (" ".join(text.get_text().replace("$", "").split()) for text in ax.texts)
    return ax.figure, f"{drawing.__doc__} Labels: {'; '.join(dict.fromkeys(labels))}."


def _say(ax, texts, **style):
    """Texts, "x y label; ...", centred at (x, y); *label is bold, and × or + in a circle."""
    style = {"ha": "center", "va": "center", "size": 15} | style
    for x, y, label in (text.split(maxsplit=2) for text in texts.split(";")):
        look = NODE if label in "×+" else {"weight": "bold" if label[0] == "*" else "normal"}
        ax.text(float(x), float(y), label.removeprefix("*"), **style | look)


def _box(ax, boxes, color="#000000", hatch="", **style):
    """Rounded boxes, "x y width height label; ...", centred at (x, y)."""
    ground = {"facecolor": "white", "edgecolor": "none", "pad": 2} if hatch else None
    look = {"facecolor": (color, 0.15), "edgecolor": color, "hatch": hatch, "linewidth": 2} | style
    for x, y, width, height, *label in (box.split(maxsplit=4) for box in boxes.split(";")):
        size = np.array([width, height], dtype=float)
        look["boxstyle"] = f"round,pad=0,rounding_size={min(0.15, size[1] / 4)}"
        corner = np.array([x, y], dtype=float) - size / 2
        ax.add_patch(mpl.patches.FancyBboxPatch(corner, *size, **look))
        if label:
            _say(ax, f"{x} {y} {label[0]}", bbox=ground)


def _cells(ax, matrices, color, sharp=1):
    """Matrices, "x y rows columns; ...", centred at (x, y), their entries from light to dark."""
    for x, y, rows, columns in (map(float, matrix.split()) for matrix in matrices.split(";")):
        for i, j in np.ndindex(int(rows), int(columns)):
            at = f"{x + 0.4 * j - 0.2 * (columns - 1)} {y - 0.4 * i + 0.2 * (rows - 1)}"
            shade = 0.1 + 0.6 * abs(np.sin((6 * i + j) ** 2 * 1.7)) ** sharp
            _box(ax, f"{at} 0.36 0.36", color, facecolor=(color, shade), linewidth=1)


def _arrow(ax, arrows, **style):
    """Arrows through points, "x y x y ...; ...", round at their corners, which are right angles."""
    look = {"color": "black", "linewidth": 2, "mutation_scale": 16, "arrowstyle": "-|>"} | style
    for arrow in arrows.split(";"):
        path = np.array(arrow.split(), dtype=float).reshape(-1, 2)
        points = [path[0]]
        for before, corner, after in zip(path, path[1:-1], path[2:], strict=False):
            points += [corner + 0.4 * np.sign(end - corner) for end in (before, corner, after)]
        round_path = mpl.path.Path([*points, path[-1]], [1, *[2, 3, 3] * (len(path) - 2), 2])
        ax.add_patch(mpl.patches.FancyArrowPatch(path=round_path, shrinkA=0, shrinkB=0, **look))
