"""Exercises: a stub for each answer, and a check that tells right from each likely slip."""

import inspect
import math
import runpy

import numpy as np
import pytest
from nbgrader.nbgraderformat import MetadataValidator
from scipy.integrate import quad

from performer_course import checks, features
from tools.notebooks import NOTEBOOKS, read, sources, student, write

SOLUTIONS = [source for source in sources() if source.parent.name == "solutions"]
STUB = "    # YOUR CODE HERE\n    raise NotImplementedError()"
BEGIN, END = "    ### BEGIN SOLUTION\n", "    ### END SOLUTION"

each_solution = pytest.mark.parametrize("source", SOLUTIONS, ids=lambda source: source.stem)


def marked(nb, key):
    """The cells that nbgrader knows as answers (key "solution") or as checks (key "grade")."""
    return [cell for cell in nb.cells if cell.metadata.get("nbgrader", {}).get(key)]


# What the files hold


@each_solution
def test_each_answer_has_a_check_of_its_name(source):
    answers, judges = (marked(read(source), key) for key in ("solution", "grade"))
    names = [cell.metadata.nbgrader.grade_id for cell in answers]
    assert 2 <= len(names) <= 3
    assert [cell.source for cell in judges] == [f"checks.{name}({name})" for name in names]
    assert [cell.metadata.nbgrader.locked for cell in answers + judges] == (
        [False] * len(names) + [True] * len(names)
    )


@each_solution
def test_nbgrader_accepts_the_metadata(source):
    cells = marked(read(source), "solution") + marked(read(source), "grade")
    for cell in cells:
        MetadataValidator().validate_cell(cell)
    assert len({cell.metadata.nbgrader.grade_id for cell in cells}) == len(cells)


@each_solution
def test_the_committed_exercise_is_what_the_solution_makes(source, tmp_path):
    write(student(read(source)), tmp_path / "exercise.ipynb")
    committed = NOTEBOOKS / "exercises" / source.with_suffix(".ipynb").name
    assert (tmp_path / "exercise.ipynb").read_bytes() == committed.read_bytes()


@each_solution
def test_an_exercise_holds_stubs_and_neither_outputs_nor_answers(source):
    solved, asked = read(source), student(read(source))
    answers = [cell.id for cell in marked(solved, "solution")]
    for cell, answer in zip(asked.cells, solved.cells, strict=True):
        assert cell.get("outputs", []) == []
        assert cell.get("execution_count") is None
        head, begin, rest = answer.source.partition(BEGIN)
        _, _, tail = rest.partition(END)
        assert bool(begin) == (answer.id in answers)
        assert cell.source == (head + STUB + tail if begin else answer.source)


@each_solution
def test_an_unsolved_exercise_fails_with_not_implemented_and_nothing_else(source, monkeypatch):
    monkeypatch.chdir(NOTEBOOKS / "exercises")
    asked = student(read(source))
    namespace, errors = {}, []
    for cell in asked.cells:
        try:
            exec(cell.source if cell.cell_type == "code" else "", namespace)
        except Exception as error:
            errors.append(type(error))
    assert errors == [NotImplementedError] * len(marked(asked, "grade"))


def test_each_exercise_has_a_solution_and_each_check_an_exercise():
    exercises = sorted(path.stem for path in (NOTEBOOKS / "exercises").glob("*.ipynb"))
    assert exercises == [source.stem for source in SOLUTIONS]
    used = [
        cell.metadata.nbgrader.grade_id for s in SOLUTIONS for cell in marked(read(s), "solution")
    ]
    assert sorted(used) == sorted(CHECKS)


@each_solution
def test_the_solution_passes_its_checks(source, capsys):
    runpy.run_path(str(source))
    names = [cell.metadata.nbgrader.grade_id for cell in marked(read(source), "solution")]
    assert capsys.readouterr().out == "".join(f"{name}: right.\n" for name in names)


# Right answers in another form than the solution's

CHECKS = [name for name, _ in inspect.getmembers(checks, inspect.isfunction) if name[0] != "_"]


def every_product(x):
    return np.einsum("ni,nj->nij", x, x).reshape(len(x), -1)


def loop(c, labels, gram):
    pairs = [(i, j) for i in range(len(c)) for j in range(len(c))]
    return sum(c) - sum(c[i] * c[j] * labels[i] * labels[j] * gram[i, j] for i, j in pairs) / 2


def factorises(K):
    jitter = 1e-10 * np.abs(K).max() * np.eye(len(K))
    try:
        np.linalg.cholesky(K + jitter)
    except np.linalg.LinAlgError:
        return False
    return np.allclose(K, K.T, rtol=1e-9, atol=0)


def largest_against_least(K):
    values = np.linalg.eigvals(K)
    size = np.abs(values).max()
    return np.abs(values.imag).max() < 1e-6 * size and values.real.min() > -1e-9 * size


def nested_outer(x, degree):
    power, parts = np.ones(1), [1.0]
    for k in range(1, degree + 1):
        power = np.outer(power, x).ravel() / math.sqrt(k)
        parts.extend(power)
    return parts


def box_muller(rng, m, d, gamma):
    u, v = rng.uniform(size=(2, m, d))
    return np.sqrt(-4 * gamma * np.log1p(-u)) * np.cos(2 * np.pi * v)


def trapezoid(k, omegas, factor=1 / (2 * np.pi), wave=np.cos, start=-20.0):
    delta = np.linspace(start, 20, 8001)
    return factor * np.trapezoid(wave(np.outer(omegas, delta)) * k(delta), delta, axis=1)


def quadrature(k, omegas):
    halves = [quad(k, 0, 20, weight="cos", wvar=w)[0] for w in omegas]
    return np.array(halves) / math.pi


def norms(x):
    return (x**2).sum(axis=1)


def at_once(c, labels, gram):
    return c.sum() - np.einsum("i,j,i,j,ij", c, c, labels, labels, gram) / 2


RIGHT = {
    "quadratic_features": [every_product, lambda x: -features.monomials(x, 2)],
    "count_features": [
        lambda d, p: math.comb(d + p, d),
        lambda d, p: sum(math.comb(d + k - 1, k) for k in range(p + 1)),
        lambda d, p: math.prod((d + k) / k for k in range(1, p + 1)),
    ],
    "dual_objective": [loop, at_once],
    "is_kernel_matrix": [factorises, largest_against_least],
    "softmax_from_gaussian": [
        lambda K, x, y: np.diag(np.exp(norms(x) / 2)) @ K @ np.diag(np.exp(norms(y) / 2)),
        lambda K, x, y: np.exp(np.log(K) + norms(x)[:, None] / 2 + norms(y) / 2),
    ],
    "taylor_features": [nested_outer, lambda x, degree: features.taylor(x[None], degree)[0]],
    "gaussian_frequencies": [
        box_muller,
        lambda rng, m, d, gamma: math.sqrt(2 * gamma) * rng.standard_normal((m, d)),
        lambda rng, m, d, gamma: rng.multivariate_normal(np.zeros(d), 2 * gamma * np.eye(d), m),
    ],
    "estimate_kernel": [
        lambda omega, delta: np.exp(1j * delta @ omega.T).mean(axis=1).real,
        lambda omega, delta: sum(np.cos(delta @ w) for w in omega) / len(omega),
    ],
    "spectral_density": [
        trapezoid,
        quadrature,
        lambda k, omegas: trapezoid(k, omegas, wave=lambda t: np.exp(-1j * t).real),
    ],
}


@pytest.mark.parametrize("name", CHECKS)
def test_a_right_answer_passes_in_any_form(name):
    for answer in RIGHT[name]:
        getattr(checks, name)(answer)


# Wrong answers, each with the part of a hint that is its own


def pairs(x, factor, k=0):
    """x_i x_j for i + k ≤ j, times `factor` where i < j."""
    i, j = np.triu_indices(x.shape[1], k)
    return x[:, i] * x[:, j] * np.where(i == j, 1, factor)


def dual(first, second):
    """first(c, y) − second(c, y, K)."""
    return lambda c, y, K: first(c, y) - second(c, y, K)


def total(c, y):
    return c.sum()


def least(tolerance, symmetric=False):
    """Whether the least eigenvalue is above −tolerance, and K symmetric where asked."""

    def decide(K):
        mirrored = np.array_equal(K, K.T) or not symmetric
        return bool(mirrored and np.linalg.eigvalsh(K).min() >= -tolerance)

    return decide


def weighed(a, b):
    """K e^{a(‖x‖²)} e^{b(‖y‖²)}."""
    return lambda K, x, y: K * np.exp(a(norms(x)))[:, None] * np.exp(b(norms(y)))


def series(factor, start=0, stop=1, power=np.kron):
    """factor(k!) x^{⊗k} for k = start … degree − 1 + stop."""

    def phi(x, degree):
        blocks = [np.ones(1)]
        for _ in range(degree):
            blocks.append(power(blocks[-1], x))
        chosen = range(start, degree + stop)
        return np.concatenate([factor(math.factorial(k)) * blocks[k] for k in chosen])

    return phi


def root(factorial):
    return 1 / math.sqrt(factorial)


def normal(scale, mean=0.0):
    """Normal frequencies of standard deviation scale(γ)."""
    return lambda rng, m, d, gamma: rng.normal(mean, scale(gamma), (m, d))


def other(draw):
    """Frequencies of the right variance, draw(rng, size) having variance 1."""
    return lambda rng, m, d, gamma: math.sqrt(2 * gamma) * draw(rng, (m, d))


def waves(mean):
    """mean(ωᵀδ), the products (n, m)."""
    return lambda omega, delta: mean(delta @ omega.T)


WRONG = {
    "quadratic_features": [
        (lambda x: pairs(x, 1), "count half: is there a √2"),
        (lambda x: pairs(x, 2), "count twice: √2, not 2"),
        (lambda x: x**2, "only the squares"),
        (lambda x: pairs(x, math.sqrt(2), k=1), "only the products"),
        (lambda x: x, "this is xᵀy itself"),
        (lambda x: np.hstack([x, every_product(x)]), "the terms of degree 1 do not belong"),
        (lambda x: pairs(x, math.sqrt(2)).T, "one row a point"),
        (lambda x: pairs(x[:, :2], math.sqrt(2)), "only x₁ and x₂"),
        (lambda x: pairs(x, np.nan), "NaN or infinity"),
    ],
    "count_features": [
        (lambda d, p: d**p, "d^p counts"),
        (lambda d, p: math.comb(d + p - 1, p), "of degree exactly p"),
        (lambda d, p: math.comb(d, p), "a variable may come twice"),
        (lambda d, p: (p + 1) ** d, "their sum that is at most p"),
        (lambda d, p: math.comb(d + p, p) - 1, "the constant 1"),
        (lambda d, p: d * p, "found 320 at (19,), expected 1.124e+07"),
    ],
    "dual_objective": [
        (dual(total, lambda c, y, K: (c * y) @ K @ (c * y)), "a factor ½"),
        (dual(total, lambda c, y, K: c @ K @ c / 2), "the labels y_i y_j are missing"),
        (dual(total, lambda c, y, K: -(c * y) @ K @ (c * y) / 2), "is subtracted"),
        (dual(np.dot, lambda c, y, K: (c * y) @ K @ (c * y) / 2), "Σ c_i, without labels"),
        (dual(total, lambda c, y, K: c**2 @ np.diag(K) / 2), "pairs i ≠ j are missing"),
        (lambda c, y, K: c - K @ (c * y) * c * y / 2, "shape (3,), and () is needed"),
    ],
    "is_kernel_matrix": [
        (lambda K: bool((K >= 0).all()), "no negative entry, and the eigenvalue −1"),
        (lambda K: np.array_equal(K, K.T), "look at eigenvalues"),
        (lambda K: least(1e-9)(K) and (K >= 0).all(), "entries may be negative"),
        (least(0.0), "Zero is allowed"),
        (least(1e-11, symmetric=True), "the tolerance must grow"),
        (least(1e-6, symmetric=True), "the tolerance must shrink"),
        (lambda K: least(1e-9 * np.abs(K).max())(K), "is not symmetric"),
        (lambda K: np.linalg.eigvalsh(K) >= 0, "must be True or False"),
    ],
    "softmax_from_gaussian": [
        (weighed(lambda n: n, lambda n: n), "the ½ is missing"),
        (weighed(lambda n: -n / 2, lambda n: -n / 2), "this divides by it"),
        (weighed(lambda n: n / 2, np.zeros_like), "the factor of y is missing"),
        (weighed(np.zeros_like, lambda n: n / 2), "the factor of x is missing"),
        (weighed(lambda n: np.sqrt(n) / 2, lambda n: np.sqrt(n) / 2), "norms are squared"),
        (lambda K, x, y: RIGHT["softmax_from_gaussian"][0](K, y, x), "x belongs to the rows"),
        (lambda K, x, y: K * np.exp(norms(x) / 2) * np.exp(norms(y) / 2), "need shape (n, 1)"),
        (lambda K, x, y: K, "both factors are missing"),
    ],
    "taylor_features": [
        (series(root, power=np.multiply), "mixed products"),
        (series(lambda f: 1 / f), "divide by √(k!), not k!"),
        (series(lambda f: 1.0), "the factor 1/√(k!) is missing"),
        (series(root, start=1), "the constant 1"),
        (series(root, stop=0), "stops one short"),
        (lambda x, degree: features.taylor(x[None], degree), "one row of features, got (1, 3)"),
    ],
    "gaussian_frequencies": [
        (normal(lambda gamma: 2 * gamma), "2γ is the variance"),
        (normal(lambda gamma: math.sqrt(gamma)), "2γ, not γ"),
        (normal(lambda gamma: 1 / math.sqrt(2 * gamma)), "a narrow kernel needs high ω"),
        (normal(lambda gamma: 1.0), "must depend on γ"),
        (normal(lambda gamma: 2 * math.pi * math.sqrt(2 * gamma)), "a 2π too many"),
        (normal(lambda gamma: math.sqrt(2 * gamma) / 2 / math.pi), "divided by 2π"),
        (normal(lambda gamma: gamma), "the spread is not right"),
        (normal(lambda gamma: math.sqrt(2 * gamma), mean=0.1), "the mean is 0.1"),
        (other(lambda rng, size: math.sqrt(3) * rng.uniform(-1, 1, size)), "but not normal"),
        (other(lambda rng, size: rng.laplace(0, math.sqrt(0.5), size)), "but not normal"),
        (other(lambda rng, size: rng.normal(size=size[::-1])), "must give shape (40000, 3)"),
        (other(lambda rng, size: rng.normal(size=(size[0], 1)) * np.ones(size)), "independent"),
    ],
    "estimate_kernel": [
        (waves(lambda t: np.cos(t).sum(axis=1)), "a mean, not a sum"),
        (waves(lambda t: np.cos(2 * np.pi * t).mean(axis=1)), "a 2π inside the cosine?"),
        (waves(lambda t: np.sin(t).mean(axis=1)), "it is the cosine that stays"),
        (waves(lambda t: np.exp(t).mean(axis=1)), "lacks its i"),
        (waves(lambda t: np.cos(t.mean(axis=1))), "cosine first, then the mean"),
        (waves(lambda t: np.cos(t).mean()), "not over δ"),
        (waves(lambda t: np.exp(1j * t).mean(axis=1)), "take the real part"),
    ],
    "spectral_density": [
        (lambda k, w: trapezoid(k, w, factor=1), "the factor 1/(2π) is missing"),
        (lambda k, w: trapezoid(k, w, factor=1 / math.sqrt(2 * math.pi)), "not 1/√(2π)"),
        (lambda k, w: trapezoid(k, w, start=0.0), "twice too small"),
        (lambda k, w: trapezoid(k, w, factor=1 / math.pi), "twice too large"),
        (lambda k, w: trapezoid(k, 2 * math.pi * w), "a 2π inside the cosine"),
        (lambda k, w: trapezoid(k, 2 * math.pi * w, factor=1), "in cycles, not in radians"),
        (lambda k, w: trapezoid(k, w, wave=np.sin), "sine"),
    ],
}
SLIPS = [(name, *slip) for name in CHECKS for slip in WRONG[name]]


@pytest.mark.parametrize(
    ("name", "answer", "hint"), SLIPS, ids=[f"{name}: {hint}" for name, _, hint in SLIPS]
)
def test_a_slip_gets_its_own_hint(name, answer, hint, capsys):
    with np.errstate(invalid="ignore"), pytest.raises(checks.Hint) as raised:
        getattr(checks, name)(answer)
    assert str(raised.value).startswith(f"{name}: ")
    assert hint in str(raised.value)
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("name", CHECKS)
def test_an_answer_that_returns_nothing_is_told_so(name):
    with pytest.raises(checks.Hint, match="None"):
        getattr(checks, name)(lambda *arguments: None)


@pytest.mark.parametrize("name", CHECKS)
def test_an_answer_that_is_no_number_is_told_so(name):
    with pytest.raises(checks.Hint):
        getattr(checks, name)(lambda *arguments: {"answer": 1})


def test_every_check_has_right_answers_and_at_least_three_slips():
    assert sorted(RIGHT) == sorted(WRONG) == sorted(CHECKS)
    assert min(len(slips) for slips in WRONG.values()) >= 3
