"""Variants of lesson 05: orthogonal rows with drawn norms, alone or in pairs, and their moments."""

import numpy as np
from scipy import special

from kit.variants.parts import Derivation, Sheet, Task, picked, stream
from performer_course.checks._judge import Hint, advice, numbers_of_shape, only_rng
from performer_course.checks.lesson_05 import judge_rows, orthogonal

# In all laws the mean of ‖ω‖² is s²d; `second` is the mean of ‖ω‖⁴ over s⁴, `share` the part of
# ‖ω‖²/s² that lies below x.
LAWS = {
    "fixed": {
        "says": "every row has length ${s}\\sqrt d$",
        "draws": "np.full((m, 1), {s} * np.sqrt(d))",
        "second": "d**2",
        "tex": "s^4 d^2",
        "share": None,
    },
    "chi": {
        "says": "the squared length of each row is ${s2}$ times a $\\chi^2_d$, as `rng.chisquare(d)` draws it",
        "draws": "{s} * np.sqrt(rng.chisquare(d, size=(m, 1)))",
        "second": "d * (d + 2)",
        "tex": "s^4 d(d + 2)",
        "share": lambda x, d: special.chdtr(d, x),
    },
    "uniform": {
        "says": "the squared length of each row is uniform between 0 and ${twice}\\,d$",
        "draws": "np.sqrt(rng.uniform(0, {twice} * d, size=(m, 1)))",
        "second": "4 * d**2 / 3",
        "tex": "\\tfrac43 s^4 d^2",
        "share": lambda x, d: np.clip(x / (2 * d), 0, 1),
    },
    "exponential": {
        "says": "the squared length of each row is exponential with mean ${s2}\\,d$, as `rng.exponential` draws it",
        "draws": "np.sqrt(rng.exponential({s2} * d, size=(m, 1)))",
        "second": "2 * d**2",
        "tex": "2 s^4 d^2",
        "share": lambda x, d: 1 - np.exp(-x / d),
    },
}
SCALES = (0.5, 1.5, 2.0, 3.0)
HEAD = '''\
def directions(rng, m, d):
    """→ (m, d)."""'''
BLOCKS = """\
blocks = []
for _ in range(0, m, d):
    Q, R = np.linalg.qr(rng.normal(size=(d, d)))
    blocks.append(Q * np.sign(np.diag(R)))
W = np.concatenate(blocks)[:m]
return {norms} * W"""
PAIRED = """\
m = m // 2
{rows}
return np.concatenate([W, -W])"""


def _drawn(rng):
    """A law and a scale."""
    (law,), s = picked(rng, LAWS), float(rng.choice(SCALES))
    return law, {"s": s, "s2": s**2, "twice": 2 * s**2}


def _directions(seed):
    rng = stream(seed, "05", "directions")
    law, scales = _drawn(rng)
    paired, s = bool(rng.random() < 0.5), scales["s"]
    norms = LAWS[law]["draws"].format(**scales)

    def body(norms=norms, rows=BLOCKS, paired=paired):
        rows = rows.format(norms=norms)
        if not paired:
            return rows
        return PAIRED.format(rows=rows.replace("return ", "W = "))

    another = "chi" if law == "fixed" else "fixed"
    unit = "W = rng.normal(size=(m, d))\nW /= np.linalg.norm(W, axis=1, keepdims=True)"
    bodies = (
        body(LAWS[another]["draws"].format(**scales)),
        body(f"{s} * ({norms})"),
        body(rows=f"{unit}\nreturn {{norms}} * W"),
        body(paired=not paired),
        body(rows=BLOCKS.replace(" * np.sign(np.diag(R))", "")),
        body(rows=BLOCKS.replace("rng.normal", "np.random.default_rng(0).normal")),
    )

    def judged(draw):
        rng, each = stream(seed, "05", "directions", "inputs"), 2 if paired else 1
        for m, d in ((2, 3), (6, 3), (8, 4), (14, 3), (4, 2)):
            given = f"m = {m}, d = {d}"
            with advice(f"That was {given}."):
                W = numbers_of_shape((m, d), draw(rng, m, d), given)
            if paired and not np.allclose(W[: m // 2], -W[m // 2 :]):
                raise Hint("the second half of the rows must be the first with the other sign.")
            first = W[: m // each]
            if not all(orthogonal(first[start : start + d]) for start in range(0, len(first), d)):
                raise Hint("the rows of a block are not orthogonal.")
        only_rng(lambda rng: draw(rng, 8 * each, 4))
        share = LAWS[law]["share"]
        draws = np.array([draw(rng, 8 * each, 4)[:8] for _ in range(1000)])
        judge_rows(draws, 4 * s**2, share and (lambda x: share(x / s**2, 4)))

    pairs = (
        "\n$m$ is even, and the rows come in pairs: the second half of them is the first half times $-1$, in the same\n"
        "order, and what follows is about the first half."
    )
    text = f"""Draw $m$ rows for any $m$ in $\\mathbb{{R}}^d$: orthogonal within blocks of $d$ rows, blocks
independent, each row in any direction alike, its length drawn apart from its direction and from the
other lengths: {LAWS[law]["says"].format(**scales)}.{pairs if paired else ""}
All randomness comes from `rng`; without `performer_course.projections`."""
    shown = (
        "W = directions(np.random.default_rng(0), 6, 3)\n"
        "assert W.shape == (6, 3)\n"
        "np.testing.assert_allclose(W[0] @ W[1], 0, atol=1e-9)\n"
        "print('The example is right. What else is asked for decides.')"
    )
    title, level = "Orthogonal rows with lengths of their own", "●●○ · 25 minutes."
    wrong = tuple((text, "") for text in bodies)  # `judged` finds the hint
    return Task(title, level, text, HEAD, body(), wrong, shown, also=judged), law


# Moments

MOMENT = '''\
def moment(d):
    """d ≥ 2 → a number."""'''
ASKED = {
    "covariance": (
        "the covariance of $(\\omega_1^\\top u)^2$ and $(\\omega_2^\\top u)^2$",
        "mean**2 / (d * (d + 2)) - (mean / d) ** 2",
        ("0.0 * d", "mean**2 / (d * (d + 2))", "mean**2 / (d * (d + 1)) - (mean / d) ** 2"),
    ),
    "variance": (
        "the variance of $(\\omega_1^\\top u)^2$",
        "3 * second / (d * (d + 2)) - (mean / d) ** 2",
        ("2 * mean**2", "3 * second / (d * (d + 2))", "second / (d * (d + 2)) - (mean / d) ** 2"),
    ),
    "sum": (
        "the variance of $(\\omega_1^\\top u)^2 + (\\omega_2^\\top u)^2$",
        "(6 * second + 2 * mean**2) / (d * (d + 2)) - 4 * (mean / d) ** 2",
        (
            "6 * second / (d * (d + 2)) - 2 * (mean / d) ** 2",
            "(6 * second + 2 * mean**2) / (d * (d + 2))",
            "(3 * second + 2 * mean**2) / (d * (d + 2)) - 4 * (mean / d) ** 2",
        ),
    ),
    "difference": (
        "the mean of $\\bigl((\\omega_1^\\top u)^2 - (\\omega_2^\\top u)^2\\bigr)^2$",
        "(6 * second - 2 * mean**2) / (d * (d + 2))",
        (
            "6 * second / (d * (d + 2)) - 2 * (mean / d) ** 2",
            "(6 * second + 2 * mean**2) / (d * (d + 2))",
            "4 * mean**2 / (d * (d + 2))",
        ),
    ),
}


def _moment(seed, not_law):
    rng = stream(seed, "05", "moment")
    law, scales = _drawn(rng)
    while law == not_law:
        law, scales = _drawn(rng)
    words, value, mistakes = ASKED[picked(rng, ASKED)[0]]
    s2 = scales["s2"]

    def body(value=value, s2=s2):
        return f"mean = {s2} * d\nsecond = {s2**2} * ({LAWS[law]['second']})\nreturn {value}"

    hint = "which moments of lengths, and which of directions, are needed?"
    wrong = tuple((text, hint) for text in (*map(body, mistakes), body(s2=scales["s"])))
    text = f"""Let $\\omega_1, \\omega_2$ be two rows of one block in $\\mathbb{{R}}^d$, $d \\ge 2$: orthogonal, with uniform
directions, and {LAWS[law]["says"].format(**scales)}, drawn independently of the direction and of the other length. Let
$u$ be a fixed unit vector. Give {words}, exactly, for any $d$."""
    title, level = "A moment of two rows", "●●● · 30 minutes."
    shown = f"assert np.ndim(moment(5)) == 0\n{CLOSED}"
    inputs = tuple((d,) for d in (2, 3, 4, 7, 16, 65))
    task = Task(title, level, text, MOMENT, body(), wrong, shown, inputs, case="d = {}")
    return task, words, law, value


CLOSED = "print('That is a number. Whether it is the right one is not said here.')"


def sheet(seed: str) -> Sheet:
    rows, law = _directions(seed)
    moment, words, law, value = _moment(seed, law)
    derivation = Derivation(
        "Where the moment comes from",
        f"""*On paper, 20 minutes.* Derive what you gave in exercise 2, {words}, from these facts alone: lengths
and directions are independent, and the frame of the directions is turned at random. Check it in one case that you
can see without the formula.""",
        (
            "each $(\\omega_i^\\top u)^2$ is a squared length times $\\theta_i^2$, and the mean of a product factorises",
            "$\\theta$ is a uniform unit vector: $\\mathbb{E}\\theta_1^4 = 3/(d(d+2))$, with a reason",
            "$\\mathbb{E}\\theta_1^2\\theta_2^2 = 1/(d(d+2))$, from $\\sum_i \\theta_i^2 = 1$ or else",
            "the moments of the lengths, of this law",
            "the result, and a case that checks it",
        ),
        f"""Turn the frame of the directions into the axes: then $u$ is a uniform point $\\theta$ of the sphere, and
$(\\omega_i^\\top u)^2 = \\|\\omega_i\\|^2 \\theta_i^2$. Lengths are independent of $\\theta$ and of each other, so means of
products factorise. From $\\mathbb{{E}}\\theta_i^4 = 3\\,\\mathbb{{E}}\\theta_1^2\\theta_2^2$ (write $\\theta = g/\\|g\\|$
with a normal $g$, whose length is independent of $\\theta$) and $\\mathbb{{E}}(\\sum_i \\theta_i^2)^2 = 1$ follows
$d \\cdot 3c + d(d-1)\\,c = 1$, so $c = \\mathbb{{E}}\\theta_1^2\\theta_2^2 = 1/(d(d+2))$, and
$\\mathbb{{E}}\\theta_i^2 = 1/d$. The lengths have $\\mathbb{{E}}\\|\\omega\\|^2 = s^2 d$ (`mean`) and
$\\mathbb{{E}}\\|\\omega\\|^4 = {LAWS[law]["tex"]}$ (`second`). Put together this is `{value}`. A case to see: for
lengths $\\chi$ the row is normal, so its variance is $2s^4$; for $d = 2$ and fixed lengths the two
squares add up to $2s^2$, so the variance of their sum is 0 and their covariance is minus their variance.""",
    )
    return Sheet("05", "orthogonal directions", (rows, moment), derivation)
