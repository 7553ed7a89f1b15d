"""Variants of lesson 10: a drawn map, mask and weight; ranks in a drawn norm; a drawn fault."""

import numpy as np

from kit.variants.parts import Derivation, Sheet, Task, example, picked, stream
from performer_course.checks._judge import Hint, no_square, numbers

MAPS = {
    "exponential": (
        "\\varphi(x) = (e^{x/2}, e^{-x/2})",
        "np.concatenate([np.exp(x / 2), np.exp(-x / 2)], axis=1)",
    ),
    "softplus": ("\\varphi(x) = \\ln(1 + e^x)", "np.logaddexp(0, x)"),
    "squares": (
        "\\varphi(x) = (\\max(x, 0)^2 + 1, \\max(-x, 0)^2 + 1)",
        "np.concatenate([np.maximum(x, 0), np.maximum(-x, 0)], axis=1) ** 2 + 1",
    ),
    "hyperbola": ("\\varphi(x) = x + \\sqrt{x^2 + 1}", "x + np.sqrt(x**2 + 1)"),
    "logistic": ("\\varphi(x) = 1/(1 + e^{-x})", "1 / (1 + np.exp(-x))"),
}
WEIGHTS = {
    "halves": ("c_j = 2^{-j}", "0.5 ** np.arange(1, len(k) + 1)"),
    "thirds": ("c_j = 3^{j - S}", "3.0 ** (np.arange(1, len(k) + 1) - len(k))"),
    "harmonic": ("c_j = 1/j", "1 / np.arange(1, len(k) + 1)"),
    "rising": ("c_j = j", "np.arange(1.0, len(k) + 1)"),
}
MASKS = {"counts": ("is real", "mask"), "hidden": ("is hidden", "~mask")}
ATTEND = '''\
def attend(q, k, v, mask):
    """q (L, d), k (S, d), v (S, e), mask (S,) of True and False → (L, e)."""'''
BODY = """\
def phi(x):
    return {phi}

counts = {mask}
weight = {weight}
phi_k = np.where(counts[:, None], phi(k) * weight[:, None], 0)
v = np.where(counts[:, None], v, 0)
return phi(q) @ (phi_k.T @ v) / {below}"""
BELOW = "(phi(q) @ phi_k.sum(axis=0))[:, None]"


def _attend(seed):
    rng = stream(seed, "10", "attend")
    phi, weight, mask = picked(rng, MAPS, WEIGHTS, MASKS)

    def body(phi=MAPS[phi][1], weight=WEIGHTS[weight][1], mask=MASKS[mask][1], below=BELOW):
        return BODY.format(phi=phi, weight=weight, mask=mask, below=below)

    other = {"mask": "~mask", "~mask": "mask"}[MASKS[mask][1]]
    square = body().replace("phi(q) @ (phi_k.T @ v)", "(phi(q) @ phi_k.T) @ v")
    unweighted = "(phi(q) @ np.where(counts[:, None], phi(k), 0).sum(axis=0))[:, None]"
    wrong = (
        (body(mask=other), "the mask is inverted: read again what True means."),
        (body(weight="np.ones(len(k))"), "the weights c_j of the keys are missing."),
        (body(below=unweighted), "the weights c_j belong in the denominator as well."),
        (body(below="1"), "the denominator is missing."),
        (body(phi="np.exp(x)"), "these are the features e^x: which feature map is given?"),
        (body(mask="np.ones(len(k), dtype=bool)"), "the mask has no effect."),
        (square, "right, but it builds an L × S array."),
    )
    rng, inputs = stream(seed, "10", "attend", "inputs"), []
    for L, S, d, e in ((5, 8, 3, 2), (4, 6, 2, 3), (1, 9, 4, 1)):
        q, k, v = rng.normal(size=(L, d)), rng.normal(size=(S, d)), rng.normal(size=(S, e))
        inputs.append((q, k, v, rng.permutation(np.arange(S) % 3 > 0)))
    x = rng.normal(size=(500, 3))

    def also(found):
        right = task.answer(body())
        for q, k, v, drawn in inputs:
            hidden = ~drawn if MASKS[mask][1] == "mask" else drawn
            for junk in (1e20, np.nan):
                values = np.where(hidden[:, None], junk, v)
                if not np.allclose(numbers(found(q, k, values, drawn)), right(q, k, v, drawn)):
                    raise Hint(f"right, until a hidden value is {junk:g}.")
        no_square(lambda: found(x, x, x, np.arange(500) % 2 > 0), x, 500)

    text = f"""Write linear attention with the feature map, applied to each entry,

$${MAPS[phi][0]},$$

in which key $j = 1, \\dots, S$ also has a weight $c_j$: row $i$ of the output is the mean of the $v_j$ with weights
proportional to $c_j\\,\\varphi(q_i)^\\top \\varphi(k_j)$, where ${WEIGHTS[weight][0]}$. `mask` is True where a key
**{MASKS[mask][0]}**. Hidden values must not change the output, even if they are NaN. Do not build an
$L \\times S$ array."""
    rng = stream(seed, "10", "attend", "example")
    q, k, v = (np.round(rng.normal(size=shape), 1) for shape in ((2, 2), (4, 2), (4, 1)))
    shown = example(ATTEND, body(), q=q, k=k, v=v, mask=np.array([True, False, True, False]))
    title, level = "A map, a mask, and weights", "●●○ · 25 minutes."
    task = Task(title, level, text, ATTEND, body(), wrong, shown, tuple(inputs), also=also)
    return task


NORMS = {
    "entries": ("the root of the sum of all squared entries", "np.sqrt((s[F:] ** 2).sum())"),
    "largest": ("the largest singular value", "s[F:].max(initial=0)"),
    "sum": ("the sum of all singular values", "s[F:].sum()"),
    "fourth": (
        "the fourth root of the sum of the fourth powers of all singular values",
        "(s[F:] ** 4).sum() ** 0.25",
    ),
}
ASKED = {
    "least": (
        "Return the smallest $F$ for which *some* matrix $B$ of rank $F$ has $\\|A - B\\| \\le \\varepsilon \\|A\\|$.",
        "next(F for F in range(len(s) + 1) if left(F) <= eps * left(0))",
        "next(F for F in range(len(s) + 1) if left(F) <= eps * left(0)) + 1",
    ),
    "gap": (
        "Let $F$ be the smallest number for which *some* matrix $B$ of rank $F$ has $\\|A - B\\| \\le \\varepsilon \\|A\\|$. "
        "Return $\\|A - B\\| / \\|A\\|$ for the best $B$ of this rank.",
        "next(left(F) / left(0) for F in range(len(s) + 1) if left(F) <= eps * left(0))",
        "next(left(F) for F in range(len(s) + 1) if left(F) <= eps * left(0))",
    ),
}
RANK = '''\
def rank_needed(A, eps):
    """A (L, S), 0 < ε < 1 → a number."""'''


def _rank(seed):
    rng = stream(seed, "10", "rank_needed")
    norm, asked = picked(rng, NORMS, ASKED)
    words, tail = NORMS[norm]
    question, value, mistake = ASKED[asked]

    def body(tail=tail, value=value):
        return (
            "s = np.linalg.svd(A, compute_uv=False)\n\n"
            f"def left(F):\n    return {tail}\n\nreturn {value}"
        )

    last = "one too many." if asked == "least" else "relative to the norm of A: divide by it."
    wrong = [
        (body(tail), f"this is for another norm, {words}.")
        for name, (words, tail) in NORMS.items()
        if name != norm
    ]
    wrong.append((body(value=mistake), last))
    rng, inputs = stream(seed, "10", "rank_needed", "inputs"), []
    for L, S, sharp in ((12, 9, 1), (7, 11, 2), (20, 20, 0.5), (15, 6, 1)):
        logits = sharp * rng.normal(size=(L, 4)) @ rng.normal(size=(4, S))
        A = np.exp(logits - logits.max(axis=1, keepdims=True))
        inputs += [(A / A.sum(axis=1, keepdims=True), eps) for eps in (0.5, 0.2, 0.05, 0.01)]
    text = f"Let $\\|\\cdot\\|$ be {words}, and $A$ an attention matrix. {question}"
    rng = stream(seed, "10", "rank_needed", "example")
    A = np.round(rng.uniform(size=(4, 3)), 1)
    shown = example(RANK, body(), A=A, eps=0.3)
    title, level = "How many features are needed?", "●●○ · 20 minutes."
    told = (title, level, text, RANK, body(), tuple(wrong), shown, tuple(inputs))
    return Task(*told, rtol=1e-7)


FADING = '''\
def fading(phi_q, phi_k, v):
    """phi_q (L, F), phi_k (L, F), positive, v (L, e) → (L, e)."""'''
LOOP = """\
S, z, rows = np.zeros((phi_k.shape[1], v.shape[1])), np.zeros(phi_k.shape[1]), []
for query, key, value in zip(phi_q, phi_k, v):
    S = {decay} * S + np.outer(key, value)
    z = {decay} * z + key
    rows.append(query @ S / (query @ z))
return np.array(rows)"""
FAULTS = (
    ("z = {decay} * z + key", "z = z + key"),
    ("S = {decay} * S + np.outer(key, value)", "S = S + np.outer(key, value)"),
    ("z = {decay} * z + key", "z = {decay} * (z + key)"),
    ("np.outer(key, value)", "np.outer(query, value)"),
    ("S = {decay} * S + np.outer(key, value)", "S = {decay} * (S + np.outer(key, value))"),
    ("(query @ z)", "(key @ z)"),
)


def _fading(seed):
    rng = stream(seed, "10", "fading")
    decay, fault = int(rng.integers(10, 20)) / 20, int(rng.integers(len(FAULTS)))
    right = LOOP.format(decay=decay)
    bodies = [LOOP.replace(*change).format(decay=decay) for change in FAULTS]
    hints = ["one mistake is gone, but another has appeared."] * len(FAULTS)
    hints[fault] = "this is the function as it was given, with its mistake."
    rng, inputs = stream(seed, "10", "fading", "inputs"), []
    for L, F, e in ((6, 3, 2), (9, 4, 1), (1, 2, 3), (12, 5, 5)):
        phi_q, phi_k = (rng.uniform(0.1, 2, size=(L, F)) for _ in range(2))
        inputs.append((phi_q, phi_k, rng.normal(size=(L, e))))
    faulty = "\n".join(f"    {line}" for line in bodies[fault].split("\n"))
    text = f"""With exponential decay, query $i$ gives key $j \\le i$ a weight proportional to
${decay}^{{\\,i-j}} \\varphi(q_i)^\\top \\varphi(k_j)$, and no weight to the other keys. Here is a function that reads
from left to right; one of its lines is wrong. Return the corrected function.

```python
{FADING.replace("fading", "faulty")}
{faulty}
```"""
    rng = stream(seed, "10", "fading", "example")
    names = ("phi_q", "phi_k", "v")
    shown = example(
        FADING, right, **{name: np.round(rng.uniform(0.1, 2, size=(3, 2)), 1) for name in names}
    )
    title, level = "One line is wrong", "●○○ · 15 minutes."
    wrong = tuple(zip(bodies, hints, strict=True))
    return Task(title, level, text, FADING, right, wrong, shown, tuple(inputs))


def _derivation(seed):
    rng = stream(seed, "10", "derivation")
    a = int(rng.integers(2, 7))
    return Derivation(
        "One more feature",
        f"""*On paper, 15 minutes.* All keys and all queries get one more feature, the constant ${a}$, besides
their positive features. Show that each row of the attention weights becomes a mixture of the original row and of
equal weights, and find the fraction of each for query $i$ and $S$ keys. What happens as $S$ grows, if
$\\varphi(q_i)^\\top \\varphi(k_j)$ stays within fixed bounds above 0?""",
        (
            f"the new weight is $\\varphi(q_i)^\\top \\varphi(k_j) + {a * a}$ before it is divided",
            "the new denominator, with the number of keys in it",
            "both combined to a mixture, with fractions that add up to 1",
            "numerator and denominator of the fraction grow at the same rate, so it stays within bounds",
        ),
        f"""The product of the features becomes $\\varphi(q_i)^\\top \\varphi(k_j) + {a * a}$. Let
$D_i = \\sum_j \\varphi(q_i)^\\top \\varphi(k_j)$. The denominator is $D_i + {a * a} S$, so the new weight is

$$\\frac{{D_i}}{{D_i + {a * a} S}} A_{{ij}} + \\frac{{{a * a} S}}{{D_i + {a * a} S}} \\cdot \\frac1S ,$$

a mixture of the old weight and of $1/S$, with fractions that add up to 1. If each product lies between two
positive bounds, $D_i$ lies between $S$ times each, so neither fraction goes to 0 as $S$ grows: the blur
from the constant feature does not vanish with the length.""",
    )


def sheet(seed: str) -> Sheet:
    tasks = (_attend(seed), _rank(seed), _fading(seed))
    return Sheet("10", "linear attention", tasks, _derivation(seed))
