"""Variants of lesson 01: the features of a drawn kernel, and geometry where nobody has features."""

import numpy as np

from kit.variants.parts import Derivation, Sheet, Task, example, picked, stream
from performer_course.checks._judge import inner_products

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


def _kernel_features(seed):
    rng = stream(seed, "01", "kernel_features")
    d = int(rng.integers(2, 4))
    w = rng.permutation(np.arange(2, 8))[:d].tolist()  # different, and none of them 1
    degrees = sorted(int(k) for k in rng.permutation(4)[:3])
    drawn = [int(rng.integers(2, 10)) if k in degrees else 0 for k in range(max(degrees) + 1)]
    lowest = [0 if k == degrees[0] else c for k, c in enumerate(drawn)]
    tex = " + ".join(f"{drawn[k]}\\,s^{k}" for k in degrees).replace("s^0", "")
    tex = tex.replace("\\, ", " ").replace("s^1", "s")
    weighed = " + ".join(f"{c}\\,x_{i} y_{i}" for i, c in enumerate(w, 1))

    def body(w=w, coefficients=drawn):
        return POWERS.format(w=w, coefficients=coefficients)

    def value(x, y):
        s = (x * w) @ y.T
        return sum(c * s**k for k, c in enumerate(drawn))

    def products(phi):
        return lambda x, y: inner_products(phi, x, y)

    roots = "the coefficients multiply the features: each side needs their root."
    wrong = (
        (body(coefficients=[c**2 for c in drawn]), roots),
        (body(w=[1] * d), "the weights of the coordinates are missing."),
        (body(w=[c**2 for c in w]), "the weights are on each side: each side needs their root."),
        (body(coefficients=lowest), "the term of the lowest degree is missing."),
        (body(coefficients=[2 * c for c in drawn]), "this is twice the kernel."),
        ("return x", "this is the plain inner product: which powers does the kernel have?"),
    )
    text = f"""Write a map $\\varphi$ whose inner products are the kernel

$$K(x, y) = {tex}$$

for $x, y \\in \\mathbb{{R}}^{d}$, with $s = {weighed}$. Any map with the right inner products counts."""
    rng, head = stream(seed, "01", "kernel_features", "inputs"), FEATURES.format(d=d)
    inputs = tuple(
        (rng.normal(size=(n, d)), rng.normal(size=(p, d))) for n, p in ((4, 6), (1, 3), (7, 2))
    )
    rng = stream(seed, "01", "kernel_features", "example")
    x, y = (np.round(rng.normal(size=(2, d)), 1) for _ in range(2))
    shown = example(head, body(), "kernel_features(x) @ kernel_features(y).T", x=x, y=y)
    task = Task(
        *("The features of a kernel", "●●○ · 25 minutes.", text, head, body(), wrong, shown),
        inputs=inputs,
        right=value,
        of=products,
        rtol=1e-8,
    )
    odd = " + ".join(f"{4 * drawn[k]}\\,S^{k}" for k in degrees if k % 2) or "0"
    derivation = Derivation(
        "A point and its opposite",
        f"""*On paper, 15 minutes.* Take the kernel of exercise 1, $K(x, y) = {tex}$, with $s = {weighed}$. Give
$\\|\\varphi(x)\\|^2$ and $\\|\\varphi(x) - \\varphi(-x)\\|^2$ as polynomials in $x$, from the kernel alone. For which
$x$ do the two images coincide, and what can a plane in feature space then not do?""",
        (
            "$\\|\\varphi(x)\\|^2 = K(x, x)$, written out",
            "$\\|\\varphi(x) - \\varphi(-x)\\|^2 = K(x, x) - 2K(x, -x) + K(-x, -x)$, with its reason",
            "the terms of even degree cancel, those of odd degree double",
            "where it is zero, and what this means for separating $x$ from $-x$",
        ),
        f"""With $S$ for $s$ at $y = x$: $\\|\\varphi(x)\\|^2 = K(x, x)$ is the kernel with
$S$ in it, and $K(-x, -x)$ is the same. In $K(x, -x)$ it changes its sign, so

$$\\|\\varphi(x) - \\varphi(-x)\\|^2 = 2 K(x, x) - 2 K(x, -x) = {odd} .$$

All weights are positive, so this is zero at the origin alone, unless no odd term is there: then it is zero
everywhere, each point has the image of its opposite, and no plane separates the two.""",
    )
    return task, derivation


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
        "write ‖φ(x) − μ‖² out, three terms.",
    ),
    "cosine": (
        "the cosine of the angle between $\\varphi(x_i)$ and $\\mu$",
        "cross @ a / np.sqrt(own * (a @ gram @ a))",
        ("cross @ a", "cross @ a / np.sqrt(own)", "cross @ a / (own * (a @ gram @ a))"),
        "aᵀb over both lengths, and a length is the root of a kernel value.",
    ),
    "line": (
        "the squared distance of $\\varphi(x_i)$ from the line of all $t \\mu$, $t \\in \\mathbb{R}$",
        "own - (cross @ a) ** 2 / (a @ gram @ a)",
        (
            "own - (cross @ a) ** 2",
            "own - 2 * cross @ a + a @ gram @ a",
            "own - cross @ a / (a @ gram @ a)",
        ),
        "the nearest tμ has t = φ(x)ᵀμ/‖μ‖²; what is left is ‖φ(x)‖² − t²‖μ‖².",
    ),
    "beyond": (
        "the squared distance $\\|2\\mu - \\varphi(x_i)\\|^2$ from the mirror image of the origin in $\\mu$",
        "own - 4 * cross @ a + 4 * (a @ gram @ a)",
        (
            "own - 2 * cross @ a + a @ gram @ a",
            "own - 4 * cross @ a + 2 * (a @ gram @ a)",
            "own - 4 * cross @ a",
        ),
        "write ‖2μ − φ(x)‖² out, three terms.",
    ),
}


def _place(seed):
    rng = stream(seed, "01", "place")
    mean, quantity = picked(rng, MEANS, QUANTITIES)
    other = "rising" if mean == "equal" else "equal"
    words, value, mistakes, mend = QUANTITIES[quantity]

    def body(mean=mean, value=value):
        return f"p = len(gram)\na = {MEANS[mean][1]}\nreturn {value}"

    wrong = [(body(value=mistake), f"one part is not right: {mend}") for mistake in mistakes]
    wrong.append((body(other), "these are other a_j."))
    rng, inputs = stream(seed, "01", "place", "inputs"), []
    for n, p in ((4, 5), (6, 3), (1, 2)):
        x, c = rng.normal(size=(n, 3)), rng.normal(size=(p, 3))
        inputs.append((((x**2).sum(1) + 1) ** 2, (x @ c.T + 1) ** 2, (c @ c.T + 1) ** 2))
    text = f"""There are points $c_1, \\dots, c_p$, and $\\mu = \\sum_j a_j \\varphi(c_j)$ with
${MEANS[mean][0]}$. Give {words} for each point $x_i$, from values of the kernel alone:
$\\varphi$ may have infinitely many coordinates."""
    rng = stream(seed, "01", "place", "example")
    x, c = np.round(rng.normal(size=(2, 2)), 1), np.round(rng.normal(size=(3, 2)), 1)
    given = {"own": (x**2).sum(1) + 1, "cross": x @ c.T + 1, "gram": c @ c.T + 1}
    shown = example(PLACE, body(), **{name: np.round(v, 2) for name, v in given.items()})
    title, level = "Geometry without features", "●●○ · 20 minutes."
    return Task(title, level, text, PLACE, body(), tuple(wrong), shown, tuple(inputs))


def sheet(seed: str) -> Sheet:
    features, derivation = _kernel_features(seed)
    return Sheet("01", "features and kernels", (features, _place(seed)), derivation)
