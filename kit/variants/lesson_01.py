"""Variants of lesson 01: the features of a drawn kernel, and geometry where nobody has features."""

import numpy as np

from kit.variants.parts import Derivation, Sheet, Task, answer, example, stream
from performer_course.checks._judge import check, inner_products, judge

FEATURES = '''\
def kernel_features(x):
    """x (n, {d}) → φ(x) (n, F)."""'''
POWERS = """\
x = x * np.sqrt({w})
parts, power = [], np.ones((len(x), 1))
for c in {coefficients}:  # of degree 0, 1, 2, …
    parts.append(np.sqrt(c) * power)
    power = (power[:, :, None] * x[:, None, :]).reshape(len(x), -1)
return np.concatenate(parts, axis=1)"""


def _weights(rng, d):
    """Different whole numbers, none of them 1."""
    return [int(w) for w in rng.permutation(np.arange(2, 8))[:d]]


def _weighed(w, x="x", y="y"):
    """Σ wᵢ xᵢ yᵢ in TeX."""
    return " + ".join(f"{c}\\,{x}_{i} {y}_{i}" for i, c in enumerate(w, 1))


def _kernel(rng):
    """(d, its TeX, where, solution, value(x, y), slips, its part that is odd in x, in TeX)."""
    d = int(rng.integers(2, 4))
    w = _weights(rng, d)
    degrees = sorted(int(k) for k in rng.permutation(4)[:3])
    drawn = [int(rng.integers(2, 10)) if k in degrees else 0 for k in range(max(degrees) + 1)]
    lowest = [0 if k == degrees[0] else c for k, c in enumerate(drawn)]
    tex = " + ".join(f"{drawn[k]}\\,s^{k}" for k in degrees).replace("s^0", "")
    tex = tex.replace("\\, ", " ").replace("s^1", "s")

    def body(w=w, coefficients=drawn):
        return POWERS.format(w=w, coefficients=coefficients)

    def value(x, y):
        s = (x * w) @ y.T
        return sum(c * s**k for k, c in enumerate(drawn))

    slips = (
        (
            body(coefficients=[c**2 for c in drawn]),
            "the coefficients stand on the features: on each side belongs their root.",
        ),
        (body(w=[1] * d), "the weights of the coordinates are missing."),
        (
            body(w=[c**2 for c in w]),
            "the weights stand on each side: there belongs their root.",
        ),
        (body(coefficients=lowest), "the term of the lowest degree is missing."),
    )
    odd = " + ".join(f"{4 * drawn[k]}\\,S^{k}" for k in degrees if k % 2) or "0"
    return d, tex, f"$s = {_weighed(w)}$", body(), value, slips, odd


def _features(seed):
    rng = stream(seed, "01", "kernel_features")
    d, tex, where, solution, value, told, odd = _kernel(rng)
    wrong = tuple(text for text, _ in told)
    head = FEATURES.format(d=d)

    @check
    def kernel_features(phi):
        rng = stream(seed, "01", "kernel_features", "inputs")
        for n, p in ((4, 6), (1, 3), (7, 2)):
            x, y = rng.normal(size=(n, d)), rng.normal(size=(p, d))
            plain, found = x @ y.T, inner_products(phi, x, y)
            slips = [
                (2 * value(x, y), "this is twice the kernel."),
                (plain, "this is the plain inner product: which powers does the kernel have?"),
            ]
            slips += [(inner_products(answer(task, text), x, y), hint) for text, hint in told]
            judge(found, value(x, y), slips, rtol=1e-8)

    text = f"""Write a map $\\varphi$ whose inner products are the kernel

$$K(x, y) = {tex}$$

for $x, y \\in \\mathbb{{R}}^{d}$, with {where}. Any map with the right inner products counts."""
    inputs = stream(seed, "01", "kernel_features", "example")
    x, y = (np.round(inputs.normal(size=(2, d)), 1) for _ in range(2))
    call = "kernel_features(x) @ kernel_features(y).T"
    shown = example(head, solution, call, x=x, y=y)
    level = "●●○ · 25 minutes."
    title = "The features of a kernel"
    task = Task(
        "kernel_features", title, level, text, head, solution, kernel_features, shown, wrong
    )
    return task, (f"K(x, y) = {tex}", where, odd)


# Geometry

PLACE = '''\
def place(own, cross, gram):
    """own (n,): K(x_i, x_i), cross (n, p): K(x_i, c_j), gram (p, p): K(c_j, c_l) → (n,)."""'''
MEANS = {
    "equal": ("a_j = 1/p", "np.full(p, 1 / p)"),
    "rising": ("a_j = 2j/(p(p+1))", "2 * np.arange(1, p + 1) / (p * (p + 1))"),
    "alternating": ("a_j = (-1)^j/p", "(-1.0) ** np.arange(1, p + 1) / p"),
    "first": ("a_1 = 1 - p, \\; a_j = 1 \\text{ for } j > 1", "np.r_[1.0 - p, np.ones(p - 1)]"),
}
QUANTITIES = {
    "distance": (
        "the squared distance $\\|\\varphi(x_i) - \\mu\\|^2$",
        "own - 2 * cross @ a + a @ gram @ a",
        (
            "own - cross @ a + a @ gram @ a",
            "own - 2 * cross @ a",
            "own + 2 * cross @ a + a @ gram @ a",
        ),
    ),
    "cosine": (
        "the cosine of the angle between $\\varphi(x_i)$ and $\\mu$",
        "cross @ a / np.sqrt(own * (a @ gram @ a))",
        ("cross @ a", "cross @ a / np.sqrt(own)", "cross @ a / (own * (a @ gram @ a))"),
    ),
    "line": (
        "the squared distance of $\\varphi(x_i)$ from the line of all $t \\mu$, $t \\in \\mathbb{R}$",
        "own - (cross @ a) ** 2 / (a @ gram @ a)",
        (
            "own - (cross @ a) ** 2",
            "own - 2 * cross @ a + a @ gram @ a",
            "own - cross @ a / (a @ gram @ a)",
        ),
    ),
    "beyond": (
        "the squared distance $\\|2\\mu - \\varphi(x_i)\\|^2$ from the mirror image of the origin in $\\mu$",
        "own - 4 * cross @ a + 4 * (a @ gram @ a)",
        (
            "own - 2 * cross @ a + a @ gram @ a",
            "own - 4 * cross @ a + 2 * (a @ gram @ a)",
            "own - 4 * cross @ a",
        ),
    ),
}

MENDS = {
    "distance": "write ‖φ(x) − μ‖² out, three terms.",
    "cosine": "aᵀb over both lengths, and a length is the root of a kernel value.",
    "line": "the nearest tμ has t = φ(x)ᵀμ/‖μ‖²; what is left is ‖φ(x)‖² − t²‖μ‖².",
    "beyond": "write ‖2μ − φ(x)‖² out, three terms.",
}


def _place(seed):
    rng = stream(seed, "01", "place")
    mean, quantity = str(rng.choice(list(MEANS))), str(rng.choice(list(QUANTITIES)))
    other = "rising" if mean == "equal" else "equal"
    words, value, slips = QUANTITIES[quantity]

    def body(mean=mean, value=value):
        return f"p = len(gram)\na = {MEANS[mean][1]}\nreturn {value}"

    wrong = (*(body(value=slip) for slip in slips), body(other))
    said = (*(f"one part is not right: {MENDS[quantity]}" for _ in slips), "these are other a_j.")

    @check
    def place(found):
        rng = stream(seed, "01", "place", "inputs")
        for n, p in ((4, 5), (6, 3), (1, 2)):
            x, c = rng.normal(size=(n, 3)), rng.normal(size=(p, 3))
            given = ((x**2).sum(1) + 1) ** 2, (x @ c.T + 1) ** 2, (c @ c.T + 1) ** 2

            hints = [
                (answer(task, text)(*given), hint) for text, hint in zip(wrong, said, strict=True)
            ]
            judge(found(*given), answer(task, body())(*given), hints)

    text = f"""There are points $c_1, \\dots, c_p$, and $\\mu = \\sum_j a_j \\varphi(c_j)$ with
${MEANS[mean][0]}$. Give {words} for each point $x_i$, from values of the kernel alone:
$\\varphi$ may have infinitely many coordinates."""
    rng = stream(seed, "01", "place", "example")
    x, c = np.round(rng.normal(size=(2, 2)), 1), np.round(rng.normal(size=(3, 2)), 1)
    given = {"own": (x**2).sum(1) + 1, "cross": x @ c.T + 1, "gram": c @ c.T + 1}
    given = {name: np.round(values, 2) for name, values in given.items()}
    shown = example(PLACE, body(), "place(own, cross, gram)", **given)
    title, level = "Geometry without features", "●●○ · 20 minutes."
    task = Task("place", title, level, text, PLACE, body(), place, shown, wrong)
    return task


def sheet(seed: str) -> Sheet:
    features, (tex, where, odd) = _features(seed)
    derivation = Derivation(
        "A point and its opposite",
        f"""*On paper, 15 minutes.* Take the kernel of exercise 1, ${tex}$, with {where}. Give
$\\|\\varphi(x)\\|^2$ and $\\|\\varphi(x) - \\varphi(-x)\\|^2$ as polynomials in $x$, from the kernel alone. For which
$x$ do the two images coincide, and what can a plane in feature space then not do?""",
        (
            (1, "$\\|\\varphi(x)\\|^2 = K(x, x)$, written out"),
            (
                1,
                "$\\|\\varphi(x) - \\varphi(-x)\\|^2 = K(x, x) - 2K(x, -x) + K(-x, -x)$, with its reason",
            ),
            (1, "the terms of even degree cancel, those of odd degree double"),
            (1, "where it is zero, and what this means for separating $x$ from $-x$"),
        ),
        f"""With $S$ for $s$ at $y = x$: $\\|\\varphi(x)\\|^2 = K(x, x)$ is the kernel with
$S$ in it, and $K(-x, -x)$ is the same. In $K(x, -x)$ it changes its sign, so

$$\\|\\varphi(x) - \\varphi(-x)\\|^2 = 2 K(x, x) - 2 K(x, -x) = {odd} .$$

All weights are positive, so this is zero at the origin alone, unless no odd term is there: then it is zero
everywhere, each point has the image of its opposite, and no plane separates the two.""",
    )
    return Sheet("01", "features and kernels", (features, _place(seed)), derivation)
