"""Exercises: a stub for each answer, and a check that tells right from each likely slip."""

import copy
import inspect
import itertools
import math
import re
import runpy

import numpy as np
import pytest
from nbclient import NotebookClient
from nbformat.v4 import new_code_cell, new_notebook
from nbgrader.nbgraderformat import MetadataValidator
from scipy import stats
from scipy.integrate import quad
from scipy.linalg import hadamard
from scipy.optimize import minimize_scalar
from scipy.special import logsumexp, softmax
from scipy.stats import ortho_group, special_ortho_group

from performer_course import (
    attention,
    checks,
    features,
    near_far,
    projections,
    theory,
    transformer,
)
from tools.notebooks import NOTEBOOKS, read, repository, sources, student, with_colab, write

SOLUTIONS = [source for source in sources() if source.parent.name == "solutions"]
WITHOUT_EXERCISES = [
    "00_start_here",  # its one check shows how checks answer
    "a2_a_published_figure",
    "a3_symbols_into_vectors",
]
WITHOUT_EXERCISE = ["variance_of_mean"]
STUB = "    # YOUR CODE HERE\n    raise NotImplementedError()"
EMPTY = (
    "YOUR ANSWER HERE"  # nbgrader's own stubs: a lecturer's generate_assignment needs no setting
)
BEGIN, END = "    ### BEGIN SOLUTION\n", "    ### END SOLUTION"

each_solution = pytest.mark.parametrize("source", SOLUTIONS, ids=lambda source: source.stem)


def marked(nb, key, kind="code"):
    """The cells that nbgrader knows as answers (key "solution") or as checks (key "grade")."""
    cells = [cell for cell in nb.cells if cell.metadata.get("nbgrader", {}).get(key)]
    return [cell for cell in cells if cell.cell_type == kind]


def sentences(text):
    """The sentences of a text whose displayed formulas are left out."""
    return re.split(r"(?<=[.?!])\s+", re.sub(r"(?s)\$\$.*?\$\$", "", text).strip())


# What the files hold


@each_solution
def test_each_answer_has_a_check_of_its_name(source):
    answers, judges = (marked(read(source), key) for key in ("solution", "grade"))
    names = [cell.metadata.nbgrader.grade_id for cell in answers]
    assert 1 <= len(names) <= 3
    assert [cell.source for cell in judges] == [f"checks.{name}({name})" for name in names]
    assert [cell.metadata.nbgrader.locked for cell in answers + judges] == (
        [False] * len(names) + [True] * len(names)
    )


@each_solution
def test_the_last_cell_answers_in_writing_what_the_one_before_gives_to_think_about(source):
    nb = read(source)
    assert nb.cells[-2].source.startswith("## To think about\n")
    assert marked(nb, "solution", "markdown") == marked(nb, "grade", "markdown") == nb.cells[-1:]
    assert len(sentences(nb.cells[-1].source)) >= 3
    assert nb.cells[-1].metadata.nbgrader.points == 0  # nobody has to grade it by hand


@each_solution
def test_nbgrader_accepts_the_metadata(source):
    for nb in (read(source), student(read(source))):
        MetadataValidator().validate_nb(nb)  # each cell, and no grade_id twice


@each_solution
def test_the_committed_exercise_is_what_the_solution_makes(source, tmp_path):
    asked = with_colab(student(read(source)), source.stem, repository())
    write(asked, tmp_path / "exercise.ipynb")
    committed = NOTEBOOKS / "exercises" / source.with_suffix(".ipynb").name
    assert (tmp_path / "exercise.ipynb").read_bytes() == committed.read_bytes()


@each_solution
def test_an_exercise_holds_stubs_and_neither_outputs_nor_answers(source):
    solved, asked = read(source), student(read(source))
    answers = [cell.id for cell in marked(solved, "solution")]
    written = solved.cells.pop().source
    assert asked.cells.pop().source == EMPTY
    shown = "\n".join(cell.source for cell in asked.cells)
    assert [sentence for sentence in sentences(written) if sentence in shown] == []
    for cell, answer in zip(asked.cells, solved.cells, strict=True):
        assert cell.get("outputs", []) == []
        assert cell.get("execution_count") is None
        head, begin, rest = answer.source.partition(BEGIN)
        _, _, tail = rest.partition(END)
        assert bool(begin) == (answer.id in answers)
        assert cell.source == (head + STUB + tail if begin else answer.source)


@each_solution
def test_an_unsolved_exercise_asks_for_its_answers_and_fails_nowhere_else(source, monkeypatch):
    monkeypatch.chdir(NOTEBOOKS / "exercises")
    asked = student(read(source))
    namespace, hints = {}, []
    for cell in asked.cells:
        try:
            exec(cell.source if cell.cell_type == "code" else "", namespace)
        except checks.Hint as hint:
            hints.append(str(hint))
    unwritten = "write the answer in place of `raise NotImplementedError()`."
    names = [cell.metadata.nbgrader.grade_id for cell in marked(asked, "solution")]
    assert hints == [f"{name}: {unwritten}" for name in names]


def test_each_exercise_has_a_solution_and_each_check_an_exercise():
    exercises = sorted(path.stem for path in (NOTEBOOKS / "exercises").glob("*.ipynb"))
    assert exercises == [source.stem for source in SOLUTIONS]
    used = [
        cell.metadata.nbgrader.grade_id for s in SOLUTIONS for cell in marked(read(s), "solution")
    ]
    assert sorted(used + WITHOUT_EXERCISE) == sorted(CHECKS)


def test_each_lesson_has_exercises_but_three_which_say_so():
    lessons = [source.stem for source in sources() if source.parent == NOTEBOOKS]
    solved = [source.stem for source in SOLUTIONS]
    assert [stem for stem in lessons if stem not in solved] == WITHOUT_EXERCISES
    for stem in WITHOUT_EXERCISES:
        text = (NOTEBOOKS / f"{stem}.py").read_text(encoding="utf-8")
        assert "# ## Exercises\n#\n# None here." in text


@each_solution
def test_the_solution_passes_its_checks(source, capsys):
    runpy.run_path(str(source))
    names = [cell.metadata.nbgrader.grade_id for cell in marked(read(source), "solution")]
    assert capsys.readouterr().out == "".join(f"{name}: right.\n" for name in names)


# Right answers in another form than the solution's

ANOTHER_RNG = np.random.default_rng(0)  # not the one that a check hands out

CHECKS = [name for name, _ in inspect.getmembers(checks, inspect.isfunction) if name[0] != "_"]


def every_product(x):
    return np.einsum("ni,nj->nij", x, x).reshape(len(x), -1)


def count_down(d, n):
    p = n  # at d = 1, F = p + 1; else more
    while features_up_to(d, p) > n:
        p -= 1
    return p


def features_up_to(d, p):
    """The monomials of degree 0, 1, … p, in d variables."""
    return math.prod(range(p + 1, p + d + 1)) // math.factorial(d)


def pair_by_pair(own, cross, gram):
    p = len(gram)
    weights = [1.0] + [-1 / p] * p  # of φ(x), φ(c_1), …
    found = []
    for kxx, row in zip(own, cross, strict=True):
        whole = np.block([[np.array([[kxx]]), row[None]], [row[:, None], gram]])
        found.append(weights @ whole @ weights)
    return found


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


def by_parts(K):
    """In the words of the definition: K is a Gram matrix where it has a root."""
    values, vectors = np.linalg.eigh((K + K.T) / 2)
    rows = vectors * np.sqrt(np.maximum(values, 0))
    return np.allclose(rows @ rows.T, K, rtol=0, atol=1e-9 * np.linalg.norm(K))


def no_negative_form(K):
    """zᵀKz of the eigenvectors, among which the least is."""
    _, vectors = np.linalg.eigh(K + K.T)
    forms = np.einsum("ij,ik,kj->j", vectors, K, vectors)
    return np.allclose(K, K.T, atol=0) and min(forms) > -1e-8 * max(abs(forms))


def divided_as_it_grows(x, degree):
    """Each power from the last one, which is divided by √(1·2·…) already."""
    powers = [np.ones(1)]
    for k in range(1, degree + 1):
        powers.append(np.multiply.outer(x, powers[-1]).reshape(-1) / np.sqrt(k))
    return np.hstack(powers)


def nested_outer(x, degree):
    power, parts = np.ones(1), [1.0]
    for k in range(1, degree + 1):
        power = np.outer(power, x).ravel() / math.sqrt(k)
        parts.extend(power)
    return parts


def box_muller(rng, m, d, gamma):
    u, v = rng.uniform(size=(2, m, d))
    return np.sqrt(-4 * gamma * np.log1p(-u)) * np.cos(2 * np.pi * v)


def polar_form(rng, m, d, gamma):
    """A uniform direction, times a χ length."""
    g = rng.standard_normal((m, d))
    lengths = np.sqrt(rng.gamma(d / 2, 4 * gamma, size=m))
    return g / np.linalg.norm(g, axis=1)[:, None] * lengths[:, None]


def trapezoid(k, omegas, factor=1 / (2 * np.pi), wave=np.cos, start=-20.0):
    delta = np.linspace(start, 20, 8001)
    return factor * np.trapezoid(wave(np.outer(omegas, delta)) * k(delta), delta, axis=1)


def quadrature(k, omegas):
    halves = [quad(k, 0, 20, weight="cos", wvar=w)[0] for w in omegas]
    return np.array(halves) / math.pi


def norms(x):
    return (x**2).sum(axis=1)


def in_pairs(W, first=0.0):
    """Each direction twice, one after the other, with the phases first and first + π/2."""
    b = first + np.arange(len(W))
    return np.repeat(W, 2, axis=0), np.stack([b, b + np.pi / 2], axis=1).ravel()


def on_a_circle(W, count=3):
    """Each direction `count` times, the angles 2b spread evenly."""
    b = np.pi / count * np.arange(count)
    return [np.tile(W, (count, 1)), np.repeat(b, len(W))]


def count_up(eps, r):
    m = 1
    while (1 - math.exp(-(r**2))) / math.sqrt(2 * m) > eps:
        m += 1
    return m


def fourier_variance(r):
    """Of one cosine: (1 + k(2r))/2 − k(r)²."""
    return (1 + math.exp(-2 * r * r)) / 2 - math.exp(-r * r)


def subtract_all(G):
    rows = np.zeros((0, G.shape[1]))
    for g in G:
        g = g - rows.T @ (rows @ g)
        rows = np.vstack([rows, g / np.linalg.norm(g)])
    return rows


def by_qr(Q, v):
    rows, R = np.linalg.qr(np.vstack([Q, v]).T)
    return rows[:, -1] * np.sign(R[-1, -1])


def by_null_space(Q, v):
    outside = np.linalg.svd(Q)[2][len(Q) :]  # (d − m, d)
    return unit(outside.T @ (outside @ v))


def row_by_row(Q, v):
    for u in [*Q, *Q]:
        v = v - (u @ v) * u
    return unit(v)


def haar(rng, d):
    Q, R = np.linalg.qr(rng.normal(size=(d, d)))
    return Q * np.sign(np.diag(R))


def repair_rows(rng, d):
    """Haar's law, too: LAPACK's reflections do not depend on the signs that R keeps."""
    Q, R = np.linalg.qr(rng.normal(size=(d, d)))
    return Q * np.sign(np.diag(R))[:, None]


def random_signs(rng, d):
    return np.linalg.qr(rng.normal(size=(d, d)))[0] * rng.choice([-1, 1], size=d)


def polar(rng, d):
    left, _, right = np.linalg.svd(rng.normal(size=(d, d)))
    return left @ right


def chi(rng, m, d):
    return np.sqrt(rng.chisquare(d, size=(m, 1)))


def blocks(rotation, norms=chi):
    """Blocks rotation(rng, d), stacked and cut to m rows of the norms (m, 1)."""
    return lambda rng, m, d: (
        norms(rng, m, d) * np.concatenate([rotation(rng, d) for _ in range(-(-m // d))])[:m]
    )


def keep_norms(rng, m, d):
    G = rng.normal(size=(m, d))
    turned = [subtract_all(G[i : i + d]) for i in range(0, m, d)]
    return np.sqrt(norms(G))[:, None] * np.concatenate(turned)


def column_norms(rng, m, d):
    """The columns' norms in G = QR are those of R, which does not go with Q."""
    rows = []
    for _ in range(0, m, d):
        G = rng.normal(size=(d, d))
        Q, R = np.linalg.qr(G)
        rows.append(Q * np.sign(np.diag(R)) * np.linalg.norm(G, axis=0)[:, None])
    return np.concatenate(rows)[:m]


def one_by_one(rng, m, d):
    rows = []
    while len(rows) < m:
        rows.extend(ortho_group.rvs(d, random_state=rng) if d > 1 else [[1.0]])
    return [u * np.linalg.norm(rng.normal(size=d)) for u in rows[:m]]


def butterflies(x):
    width = 1
    while width < len(x):
        for i in range(len(x)):
            if not i & width:
                x[i], x[i + width] = x[i] + x[i + width], x[i] - x[i + width]
        width *= 2
    x /= math.sqrt(len(x))
    return x


def from_the_widest(x):
    width = len(x) // 2
    while width:
        for i in range(0, len(x), 2 * width):
            a, b = x[i : i + width], x[i + width : i + 2 * width]  # views
            a += b
            b *= -2
            b += a
            x[i : i + 2 * width] /= math.sqrt(2)
        width //= 2
    return x


def halved(x):
    """Each half by itself, in place, and then their sum and difference."""
    half = len(x) // 2
    if half:
        halved(x[:half])
        halved(x[half:])
        x[:half], x[half:] = (x[:half] + x[half:]) / 2**0.5, (x[:half] - x[half:]) / 2**0.5
    return x


def always_even_and_odd(x):
    """One step, each time: sums of neighbours first, differences after. The places turn round."""
    for _ in range(len(x).bit_length() - 1):
        x[...] = np.concatenate([x[::2] + x[1::2], x[::2] - x[1::2]]) / math.sqrt(2)
    return x


def written(transform):
    """The answer that writes transform(x) into x."""

    def answer(x):
        x[...] = transform(x)
        return x

    return answer


def three_matrices(signs, x):
    H = hadamard(len(x)) / math.sqrt(len(x))
    return math.sqrt(len(x)) * np.linalg.multi_dot([H * row for row in signs]) @ x


def project_columns(signs, x):
    return projections.hadamard_transform(signs[None], x[:, None])[:, 0]


def simplex_gram(d, cosine):
    return np.eye(d) * (1 - cosine) + cosine


def root_of_gram(d):
    values, vectors = np.linalg.eigh(simplex_gram(d, -1 / (d - 1)))
    return vectors * np.sqrt(np.maximum(values, 0))


def corner_loop(d):
    corners = [[(i == j) - 1 / d for j in range(d)] for i in range(d)]
    return [[c / math.hypot(*row) for c in row] for row in corners]


def root_d(W, logits):
    return logits / math.sqrt(W.shape[1])


def query_by_query(x, y, W_q, W_k, W_v):
    """One query after the other; a softmax does not change when all logits move alike."""
    found = []
    for row in x:
        logits = root_d(W_q, y @ W_k @ (row @ W_q))
        weights = np.exp(logits - max(logits))
        found.append(sum(w * (token @ W_v) for w, token in zip(weights, y, strict=True)))
        found[-1] = found[-1] / sum(weights)
    return found


def real(lengths, L):
    """(B, L), True where there is a token and no filler."""
    return np.arange(L) < np.asarray(lengths)[:, None]


def by_waves(x):
    """a + ib times e^{ipω}."""
    n = x.shape[1]
    z = (x[:, : n // 2] + 1j * x[:, n // 2 :]) * np.exp(1j * angles(*x.shape))
    return np.concatenate([z.real, z.imag], axis=1)


def by_matrices(x):
    """Row p times the p-th power of the matrix of one step."""
    c, s = (np.diag(f(frequencies(x.shape[1]))) for f in (np.cos, np.sin))
    step = np.block([[c, s], [-s, c]])
    return [row @ np.linalg.matrix_power(step, p) for p, row in enumerate(x)]


def angles(L, n, power=-2.0):
    return np.arange(L)[:, None] * frequencies(n, power)


def frequencies(n, power=-2.0):
    return 10000 ** (power * np.arange(n // 2) / n)


def chunked(
    phi_q,
    phi_k,
    v,
    C,
    mask=np.tril,
    early=False,
    carry=(1, 1),
    near=1,
    whole=False,
    each=False,
    last=False,
    of_all=False,
):
    """Causal attention by chunks, with the slips a chunk invites."""
    values = with_one(v)
    state, rows = 0 * np.einsum("hlf,hle->hfe", phi_k, values), []
    length = v.shape[1] // C * C if whole and v.shape[1] > C else v.shape[1]
    for start in range(0, length, C):
        f, g, chunk = (x[:, start : start + C] for x in (phi_q, phi_k, values))
        after = state * (not last) + g.swapaxes(1, 2) @ chunk
        if of_all:
            after = state + (g.swapaxes(1, 2) @ chunk).sum(axis=0)
        far = f @ (after if early else state) * (v.shape[2] * [carry[0]] + [carry[1]])
        close = near * mask(f @ g.swapaxes(1, 2)) @ chunk
        rows.append(each(far, close) if each else quotient(far + close))
        state = after
    return np.concatenate(rows, axis=1)


def with_one(v):
    return np.concatenate([v, np.ones_like(v[..., :1])], axis=-1)


def quotient(total):
    return total[..., :-1] / np.where(total[..., -1:] == 0, 1, total[..., -1:])


def slipped(**options):
    return lambda *arguments: chunked(*arguments, **options)


def masked_rows(phi_q, phi_k, v, C):
    weights = np.tril(phi_q @ phi_k.swapaxes(1, 2))
    return weights @ v / weights.sum(axis=2, keepdims=True)


def masked_above(phi_q, phi_k, v, C):
    """The mask on the numerator alone: a row divides by its whole chunk."""
    ends = np.minimum((np.arange(v.shape[1]) // C + 1) * C, v.shape[1]) - 1
    below = np.einsum("hif,hif->hi", phi_q, phi_k.cumsum(axis=1)[:, ends])
    return np.tril(phi_q @ phi_k.swapaxes(1, 2)) @ v / below[..., None]


def prefix_states(phi_q, phi_k, v, C):
    """A state for each token."""
    states = np.cumsum(phi_k[..., None] * with_one(v)[:, :, None], axis=1)
    return quotient(np.einsum("hlf,hlfe->hle", phi_q, states))


def over_nothing(c):
    """c, but 0 where it is −∞."""
    return np.where(np.isneginf(c), 0.0, c)


def merged(
    rescale=lambda own, other, c: np.exp(own - c), top=np.maximum, divide=1, finite=over_nothing
):
    """merge(a, b), with the slips it invites."""

    def merge(a, b):
        c = top(a[0], b[0])
        base = finite(c)
        x, y = rescale(a[0], b[0], base), rescale(b[0], a[0], base)
        z, S = x * a[1] + y * b[1], x[:, None] * a[2] + y[:, None] * b[2]
        return c, z / divide, S / divide

    return merge


def merged_by_log(a, b):
    c = np.maximum(a[0], b[0])
    total = np.logaddexp(np.log(a[1]) + a[0], np.log(b[1]) + b[0])
    base = over_nothing(c)
    S = [np.exp(x[0] - base)[:, None] * x[2] for x in (a, b)]
    return [c, np.exp(total - base), S[0] + S[1]]


def but(place, change):
    """The right merge, with one of its three arrays changed."""

    def merge(a, b):
        found = list(merged()(a, b))
        found[place] = change(found, a, b)
        return tuple(found)

    return merge


def searched(n, d):
    noise = (n - 1) / d
    found = minimize_scalar(lambda a: (1 - a) ** 2 + a**2 * noise, bracket=(0, 1))
    return np.array([d / (d + n - 1), found.fun])


def with_factor(factor, error=lambda a, r: (1 - a) ** 2 + a**2 * r):
    """Answers (a, error) from a = factor(r), r = (n − 1)/d."""
    return lambda n, d: (factor((n - 1) / d), error(factor((n - 1) / d), (n - 1) / d))


def shrinkage(noise):
    return 1 / (1 + noise)


def lifted_whole(x, centres, gamma):
    """The whole square, −γ‖x − c‖², as an inner product of width d + 2."""
    q = np.column_stack([2 * gamma * x, -gamma * norms(x), np.ones(len(x))])
    k = np.column_stack([centres, np.ones(len(centres)), -gamma * norms(centres)])
    return q.shape[1] ** 0.25 * q, q.shape[1] ** 0.25 * k


def rescaled(x, centres, gamma):
    """γ put into the points: a = √γ x, b = √γ c, and 2aᵀb − ‖b‖²."""
    a, b = math.sqrt(gamma) * x, math.sqrt(gamma) * centres
    q = np.column_stack([2 * a, np.ones(len(x))])
    return [math.sqrt(q.shape[1]) * q, np.column_stack([b, -norms(b)])]


def trigonometric_loop(q, k, v, W):
    x, y = q * q.shape[1] ** -0.25, k * k.shape[1] ** -0.25
    rows = []
    for point in x:
        weights = np.cos((point - y) @ W.T).sum(axis=1) * np.exp(norms(y) / 2)
        rows.append(weights @ v / weights.sum())
    return rows


def trigonometric_package(q, k, v, W):
    phi_q, phi_k = (features.trigonometric(t / math.sqrt(math.sqrt(t.shape[1])), W) for t in (q, k))
    return attention.linear_attention(phi_q, phi_k, v)


def trigonometric_complex(q, k, v, W):
    root = math.sqrt(q.shape[1])
    a, b = np.exp(1j * q @ W.T / math.sqrt(root)), np.exp(1j * k @ W.T / math.sqrt(root))
    b = b.conj() * np.exp(norms(k) / 2 / root)[:, None]
    return (a @ (b.T @ v)).real / (a @ b.sum(axis=0)).real[:, None]


def mean_of_pairs(q, k):
    return k + (q[:, None] - k).mean(axis=(0, 1))


def by_minimisation(q, k):
    """Coordinate by coordinate, the least of a parabola."""

    def least(c):
        return minimize_scalar(lambda u: ((q[:, None, c] - k[:, c] - u) ** 2).sum()).x

    return [[key[c] + u for c, u in enumerate(map(least, range(len(key))))] for key in k]


def scaled_positive(q, W):
    return features.positive(q * q.shape[1] ** -0.25, W)


def square_of_sum(q, W):
    """e^{(‖ω‖² − ‖x − ω‖²)/2}: the exponent completed to a square."""
    x = q / math.sqrt(math.sqrt(q.shape[1]))
    return [[math.exp((w @ w - (p - w) @ (p - w)) / 2) / math.sqrt(len(W)) for w in W] for p in x]


def log_feature_pairs(x, y, W):
    log_x, log_y = features.log_positive(x, W), features.log_positive(y, W)
    return np.array([[np.logaddexp.reduce(a + b) for b in log_y] for a in log_x])


def rescaled_product(x, y, W):
    """exp of the waves of x and of y, each relative to its own largest: one matrix product."""
    a, b = x @ W.T, y @ W.T
    top_a, top_b = a.max(axis=1, keepdims=True), b.max(axis=1, keepdims=True)
    total = np.exp(a - top_a) @ np.exp(b - top_b).T / len(W)
    return np.log(total) + top_a - norms(x)[:, None] / 2 + (top_b.T - norms(y) / 2)


def from_theory(x, y, eps):
    errors = (theory.trigonometric_mse, theory.positive_mse, theory.hyperbolic_mse)
    m = [math.ceil(float(f(x, y, 1)) / math.exp(2 * x @ y) / eps**2) for f in errors]
    return [2 * max(m[0], 1), max(m[1], 1), 2 * max(m[2], 1)]


def by_search(x, y, eps):
    plus, minus = (x + y) @ (x + y), (x - y) @ (x - y)
    variances = (math.cosh(minus) - 1, math.exp(plus) - 1, math.cosh(plus) - 1)
    found = []
    for variance, each in zip(variances, (2, 1, 2), strict=True):
        m = 1
        while variance > m * eps**2:
            m += 1
        found.append(each * m)
    return np.array(found)


def attention_loop(phi_q, phi_k, v, key_mask):
    rows = []
    for query in phi_q:
        weights = {j: query @ phi_k[j] for j in np.flatnonzero(key_mask)}
        rows.append(sum(w * v[j] for j, w in weights.items()) / sum(weights.values()))
    return rows


def ones_column(phi_q, phi_k, v, key_mask):
    values = np.where(key_mask[:, None], np.hstack([v, np.ones((len(v), 1))]), 0)
    total = phi_q @ (np.where(key_mask[:, None], phi_k, 0).T @ values)
    return total[:, :-1] / total[:, -1:]


def state_first(phi_q, phi_k, v, key_mask):
    """Key after key into φ(K)ᵀV and φ(K)ᵀ1."""
    S, z = np.zeros((phi_k.shape[1], v.shape[1])), np.zeros(phi_k.shape[1])
    for key, value, seen in zip(phi_k, v, key_mask, strict=True):
        if seen:
            S, z = S + np.outer(key, value), z + key
    return phi_q @ S / (phi_q @ z)[:, None]


def keys_first(of_k=np.multiply, of_v=lambda v, mask: v, eps=0.0):
    """Linear attention with of_k(φ(K), mask) and of_v(V, mask)."""

    def attend(phi_q, phi_k, v, key_mask):
        with np.errstate(all="ignore"):
            phi_k, v = of_k(phi_k, key_mask[:, None]), of_v(v, key_mask[:, None])
            return phi_q @ (phi_k.T @ v) / (phi_q @ phi_k.sum(axis=0) + eps)[:, None]

    return attend


def seen_alone(x, mask):
    return x[mask[:, 0]]


def log_of_feature_sums(g, h):
    return logsumexp(g + logsumexp(h, axis=0), axis=1)


def log_of_pairs(g, h):
    return [logsumexp(row + h) for row in g]


def relative_variance_loop(q, k, target):
    root = math.sqrt(math.sqrt(q.shape[1]))
    squares = [sum(((a + b) / root) ** 2) for a in q for b in k]
    mean, m = sum(map(math.expm1, squares)) / len(squares), 1
    while mean / m > target:
        m += 1
    return m


def layer_of(
    scale=lambda d, n: d**-0.25,
    key_norm=0.5,
    divide=None,
    weigh=None,
    cut=None,
    of_k=None,
    query_norm=0.0,
):
    """A Performer layer, head by head in a loop."""

    def answer(x, W_q, W_k, W_v, W, heads):
        n, outs = x.shape[1], []
        d = n // heads
        for h in range(heads):
            own = slice(h * d, (h + 1) * d) if cut is None else slice(h, n, heads)
            q, k, v = ((x @ part)[:, own] for part in (W_q, W_k, W_v))
            q, k = q * scale(d, n), k * (of_k or scale)(d, n)
            phi_q, phi_k = (
                np.exp(a @ W.T - norm * norms(a)[:, None])
                for a, norm in ((q, query_norm), (k, key_norm))
            )
            A = (weigh or np.matmul)(phi_q, phi_k.T)
            outs.append((divide or by_its_sum)(A) @ v)
        whole = np.concatenate(outs, axis=1)
        return whole if cut is None else cut(whole, heads)

    return answer


def by_its_sum(A):
    return A / A.sum(axis=1, keepdims=True)


def head_by_head(x, W_q, W_k, W_v, W, heads):
    outs = []
    for parts in zip(*(np.split(part, heads, axis=1) for part in (W_q, W_k, W_v)), strict=True):
        q, k, v = (x @ part for part in parts)
        phi_q, phi_k = (features.positive(a / a.shape[1] ** 0.25, W) for a in (q, k))
        outs.append(phi_q @ (phi_k.T @ v) / (phi_q @ phi_k.sum(axis=0))[:, None])
    return np.hstack(outs)


def layer_by_package(x, W_q, W_k, W_v, W, heads):
    q, k, v = (transformer.split_heads(x @ part, heads) for part in (W_q, W_k, W_v))
    return transformer.join_heads(attention.favor_attention(q, k, v, W))


def centred_products(x, y, b, c, W, rest=lambda x, y, b, c: y @ b + ((x - b) @ c)[:, None]):
    """Estimates of exp((x − b)ᵀ(y − c)), times e^rest."""
    return np.exp(rest(x, y, b, c)) * (features.positive(x - b, W) @ features.positive(y - c, W).T)


def with_rest(rest):
    return lambda *arguments: centred_products(*arguments, rest=rest)


def centred_pair_by_pair(x, y, b, c, W):
    return [
        [
            np.mean(np.exp(W @ (p + q - b - c) - (p - b) @ (p - b) / 2 - (q - c) @ (q - c) / 2))
            * np.exp(p @ q - (p - b) @ (q - c))
            for q in y
        ]
        for p in x
    ]


def combined(all_, first, last):
    """all_ attend(W) + first attend(first half) + last attend(last half)."""

    def answer(attend, W):
        m = len(W) // 2
        return all_ * attend(W) + first * attend(W[:m]) + last * attend(W[m:])

    return answer


def jackknife(attend, W):
    """By odd and even rows."""
    return 2 * attend(W) - np.mean([attend(W[::2]), attend(W[1::2])], axis=0)


def shifted_by_matrix(M, c, new):
    order = range(len(M))
    rows = [[math.comb(p, k) * (c - new) ** max(p - k, 0) for k in order] for p in order]
    return np.array(rows) @ M


def shifted_by_polynomials(M, c, new):
    y_from_new = np.polynomial.Polynomial([c - new, 1])
    return [(y_from_new**p).coef @ M[: p + 1] for p in range(len(M))]


def banded_loop(q, k, v, band):
    rows = []
    for i, query in enumerate(q):
        keys = slice(max(0, i - band), i + band + 1)
        rows.append(softmax(k[keys] @ query / math.sqrt(len(query))) @ v[keys])
    return rows


def gathered(q, k, v, band, inside=lambda at, L: (at >= 0) & (at < L), start=np.take):
    """The keys of each row side by side: (L, 2 band + 1, d)."""
    L, d = q.shape
    at = np.arange(L)[:, None] + np.arange(-band, band + 1)
    keys, values = (start(x, at, axis=0, mode="clip") for x in (k, v))
    logits = np.einsum("id,ijd->ij", q, keys) / math.sqrt(d)
    weights = softmax(np.where(inside(at, L), logits, -np.inf), axis=1)
    return np.einsum("ij,ije->ie", weights, values)


def padded(x, at, **_):
    """x (L, d) with rows of zeros beyond its ends, at the places `at`."""
    inside = (at >= 0) & (at < len(x))
    return np.where(inside[..., None], x[at % len(x)], 0)


def near_and_rest_loop(q, k, v, phi_q, phi_k, band):
    rows = []
    for i in range(len(q)):
        weights = phi_k @ phi_q[i]
        keys = slice(max(0, i - band), i + band + 1)
        weights[keys] = np.exp(k[keys] @ q[i] / math.sqrt(q.shape[1]))
        rows.append(weights @ v / weights.sum())
    return np.array(rows)


def two_sums(q, k, v, phi_q, phi_k, band):
    one = np.hstack([v, np.ones((len(v), 1))])
    total = phi_q @ (phi_k.T @ one)
    for i in range(len(q)):
        keys = slice(max(0, i - band), i + band + 1)
        weights = np.exp(k[keys] @ q[i] / math.sqrt(q.shape[1]))
        total[i] += (weights - phi_k[keys] @ phi_q[i]) @ one[keys]
    return total[:, :-1] / total[:, -1:]


def hiding(count=lambda L, C: math.ceil(L / C), late=lambda a, b: a > b, grow=lambda C: 2 * C):
    """The smallest chunk whose launches are hidden, by trying."""

    def choose(L, kernels, cost, work):
        C = 1
        while C < L and late(count(L, C) * kernels * cost, work):
            C = grow(C)
        return C

    return choose


def over_largest(largest=lambda xp, x: xp.max(xp.abs(x), axis=-1, keepdims=True), sign=1):
    """Rows over `largest`, or over 1 where that is 0."""

    def scale(xp, x):
        size = largest(xp, x)
        return sign * x / xp.where(size > 0, size, xp.ones_like(size))

    return scale


def in_place(xp, x):
    x /= xp.where((size := largest_of_row(xp, x)) > 0, size, 1.0)[:, None]
    return x


def largest_of_row(xp, x):
    return xp.max(abs(x), axis=-1)


def with_ones_at(where):
    """Rows over their largest entry, after a 1 is written `where` that is 0."""

    def scale(xp, x):
        size = largest_of_row(xp, x)
        size[where(xp, size)] = 1
        return x / size[:, None]

    return scale


def but_all_zeros(are_zeros):
    """x as it is if all of it is 0."""
    return lambda xp, x: x if are_zeros(xp, x) else over_largest()(xp, x)


def by_loop(xp, x):
    rows = []
    for row in x:
        size = xp.max(xp.abs(row))
        rows.append(row / xp.where(size > 0, size, xp.ones_like(size)))
    return xp.stack(rows)


def by_row_number(xp, x):
    rows = [x[i] for i in range(x.shape[0])]
    sizes = [xp.max(xp.abs(row)) for row in rows]
    return xp.stack(
        [
            row / xp.where(size > 0, size, xp.ones_like(size))
            for row, size in zip(rows, sizes, strict=True)
        ]
    )


def by_mask(xp, x):
    size = xp.max(xp.abs(x), axis=-1)
    keep, out = size > 0, 0 * x
    out[keep] = x[keep] / size[keep][:, None]
    return out


def by_if(xp, x):
    rows = []
    for i in range(x.shape[0]):
        size = xp.max(xp.abs(x[i]))
        rows.append(x[i] / size if size > 0 else x[i])
    return xp.stack(rows)


def by_float(xp, x):
    sizes = [float(xp.max(xp.abs(x[i]))) or 1.0 for i in range(x.shape[0])]
    return xp.stack([x[i] / size for i, size in enumerate(sizes)])


def decoded(
    project=4,
    state=5,
    S=2,
    W=1,
    bytes_of=lambda b: b,
    fold=max,
    other=lambda heads, m, d, e: 0,
    intensity=lambda flops, moved, P, B: flops / moved,
):
    """The roof of a decoding step, counted so."""

    def bound(heads, m, d, e, b, P, B):
        flops = heads * (project * m * d + state * m * e)
        moved = bytes_of(b) * (S * heads * m * e + W * m * d + other(heads, m, d, e))
        return fold(flops / P, moved / B), intensity(flops, moved, P, B)

    return bound


def listing(power=0.25, sign=-1, axis=1, norm=-0.5, of_k=None, divide=None, halves=None):
    """The listing of appendix a1, with its three errors mended or not."""

    def attend(q, k, v, W):
        d = q.shape[1]
        x, y = q / d**power, k / d ** (power if of_k is None else of_k)
        phi_x, phi_y = (
            np.exp(norm * (a**2).sum(axis=1, keepdims=True))
            * (halves or np.hstack)([np.exp(a @ W.T), np.exp(sign * a @ W.T)])
            for a in (x, y)
        )
        A = phi_x @ phi_y.T
        return A @ v / (divide(A) if divide else A.sum(axis=axis)[:, None])

    return attend


def cosh_by_pairs(q, k, v, W):
    x, y = (a / math.sqrt(math.sqrt(q.shape[1])) for a in (q, k))
    rows = []
    for a in x:
        weights = np.array([np.exp(-(b @ b) / 2) * np.cosh(W @ (a + b)).sum() for b in y])
        rows.append(weights @ v / sum(weights))
    return rows


def by_package(q, k, v, W):
    x, y = (features.hyperbolic(a * a.shape[1] ** -0.25, W) for a in (q, k))
    return attention.linear_attention(x, y, v)


def turned_pair(angle, length=1.0):
    """Two vectors of a length, at an angle in the plane of the first and the last axis."""

    def witness(d):
        x, y = np.zeros((2, d))
        x[0] = y[0] = length
        if d > 1:
            y[0], y[-1] = length * math.cos(angle), length * math.sin(angle)
        return x, y

    return witness


RIGHT = {
    "variance_of_mean": [
        lambda variance, m: sum([variance] * m) / m**2,
        lambda variance, m: np.float64(variance) / m,
    ],
    "quadratic_features": [
        every_product,
        lambda x: -features.monomials(x, 2),
        lambda x: [np.kron(row, row) for row in x],
        lambda x: np.hstack([math.sqrt(2) * pairs(x, 1, k=1), x * x]),
    ],
    "highest_degree": [
        count_down,
        lambda d, n: sum(features_up_to(d, p) <= n for p in range(1, n)),
        lambda d, n: int(np.searchsorted([math.comb(d + p, d) for p in range(n)], n, "right")) - 1,
    ],
    "distance_to_mean": [
        pair_by_pair,
        lambda own, cross, gram: (
            own + (gram.sum() / len(gram) - 2 * cross.sum(axis=1)) / cross.shape[1]
        ),
        lambda own, cross, gram: (
            own - cross.mean(axis=1) - (cross - gram.mean(axis=0)).mean(axis=1)
        ),
    ],
    "is_kernel_matrix": [
        factorises,
        largest_against_least,
        by_parts,
        no_negative_form,
        lambda K: np.allclose(K, K.T) and (np.linalg.eigvalsh(K) >= -1e-6 * np.trace(K)).all(),
        lambda K: least(1e-12 * len(K) * np.linalg.norm(K), symmetric=True)(K),
    ],
    "softmax_from_gaussian": [
        lambda K, x, y: np.diag(np.exp(norms(x) / 2)) @ K @ np.diag(np.exp(norms(y) / 2)),
        lambda K, x, y: np.exp(np.log(K) + norms(x)[:, None] / 2 + norms(y) / 2),
        lambda K, x, y: K / np.exp(-(norms(x)[:, None] + norms(y)) / 2),
        lambda K, x, y: (K.T * np.exp(np.diag(x @ x.T) / 2)).T * np.exp(np.diag(y @ y.T) / 2),
    ],
    "taylor_features": [
        nested_outer,
        divided_as_it_grows,
        lambda x, degree: features.taylor(x[None], degree)[0],
        lambda x, degree: features.taylor(x[None], degree)[0][::-1],
    ],
    "gaussian_frequencies": [
        box_muller,
        lambda rng, m, d, gamma: math.sqrt(2 * gamma) * rng.standard_normal((m, d)),
        lambda rng, m, d, gamma: math.sqrt(2 * gamma) * rng.standard_normal((m, d), np.float32),
        lambda rng, m, d, gamma: rng.multivariate_normal(np.zeros(d), 2 * gamma * np.eye(d), m),
        polar_form,
        lambda rng, m, d, gamma: [rng.normal(0, math.sqrt(2 * gamma), d) for _ in range(m)],
        lambda rng, m, d, gamma: stats.norm.rvs(0, (2 * gamma) ** 0.5, (m, d), random_state=rng),
    ],
    "estimate_kernel": [
        lambda omega, delta: np.exp(1j * delta @ omega.T).mean(axis=1).real,
        lambda omega, delta: sum(np.cos(delta @ w) for w in omega) / len(omega),
        lambda omega, delta: np.cos(np.einsum("mj,nj->mn", omega, delta)).mean(axis=0),
        lambda omega, delta: (
            features.fourier(delta, omega) @ features.fourier(0 * delta[:1], omega)[0]
        ),
    ],
    "spectral_density": [
        trapezoid,
        quadrature,
        lambda k, omegas: trapezoid(k, omegas, wave=lambda t: np.exp(-1j * t).real),
        lambda k, omegas: 2 * trapezoid(k, omegas, start=0.0),
        lambda k, omegas: [
            quad(lambda t, w=w: k(t) * np.cos(w * t), -20, 20)[0] / 2 / np.pi for w in omegas
        ],
    ],
    "without_leftover": [
        in_pairs,
        on_a_circle,
        lambda W: on_a_circle(W, 4),
        lambda W: in_pairs(W, first=-0.7),
        lambda W: (np.concatenate([W, -W]), np.repeat([0.3, np.pi / 2 - 0.3], len(W))),
    ],
    "product_directions": [
        lambda V, W: V + W,
        lambda V, W: W - V,
        lambda V, W: np.stack([V, W[::-1]]).sum(axis=0),
        lambda V, W: V + ANOTHER_RNG.permutation(W),
        lambda V, W: [-v - w for v, w in zip(V, np.roll(W, 1, axis=0), strict=True)],
    ],
    "directions_needed": [
        count_up,
        lambda eps, r: max(1, -int(-(np.expm1(-(r**2)) ** 2) / eps**2 // 2)),
        lambda eps, r: np.ceil(max((1 - np.exp(-r * r)) / eps / math.sqrt(2), 0.1) ** 2),
        lambda eps, r: max(1, math.ceil(0.5 * ((1 - math.exp(-(r**2))) / eps) ** 2)),
        lambda eps, r: next(m for m in range(1, 10**4) if fourier_variance(r) / m <= eps**2),
    ],
    "one_more_row": [
        by_qr,
        by_null_space,
        row_by_row,
        lambda Q, v: unit(rest(Q, rest(Q, rest(Q, v)))),
        lambda Q, v: unit(rest(Q, unit(v - np.linalg.lstsq(Q.T, v)[0] @ Q))),
    ],
    "uniform_orthogonal": [
        repair_rows,
        random_signs,
        polar,
        lambda rng, d: haar(rng, d).T,
        lambda rng, d: subtract_all(rng.normal(size=(d, d))),
        lambda rng, d: ortho_group.rvs(d, random_state=rng),
        lambda rng, d: (
            special_ortho_group.rvs(d, random_state=rng) * ([rng.choice([-1, 1])] + [1] * (d - 1))
        ),
    ],
    "orthogonal_directions": [
        keep_norms,
        column_norms,
        one_by_one,
        projections.orthogonal,
        blocks(repair_rows),
        blocks(polar, lambda rng, m, d: np.sqrt(norms(rng.normal(size=(m, d))))[:, None]),
    ],
    "walsh_hadamard": [
        butterflies,
        from_the_widest,
        halved,
        always_even_and_odd,
        written(projections.fwht),
    ],
    "structured_projection": [
        three_matrices,
        project_columns,
        lambda s, x: (
            math.sqrt(len(x)) * butterflies(s[0] * butterflies(s[1] * butterflies(s[2] * x)))
        ),
    ],
    "simplex_corners": [
        root_of_gram,
        corner_loop,
        lambda d: [-unit(row) for row in centred(d)],
        lambda d: math.sqrt(d / (d - 1)) * (1 / d - np.eye(d)) @ haar(np.random.default_rng(1), d),
    ],
    "masked_linear_attention": [
        state_first,
        attention_loop,
        ones_column,
        keys_first(seen_alone, seen_alone),
        lambda phi_q, phi_k, v, mask: attention.linear_attention(phi_q, phi_k, v, key_mask=mask),
    ],
    "log_denominator": [log_of_feature_sums, log_of_pairs],
    "directions_for_attention": [
        relative_variance_loop,
        lambda q, k, target: float(
            pairwise(lambda s: (np.exp(s) - 1).sum() / s.size)(q, k, target)
        ),
        lambda q, k, target: max(1, np.ceil(attention.relative_variance(q, k, 1) / target)),
    ],
    "causal_by_chunks": [
        chunked,
        lambda f, g, v, C: chunked(f, g, v, max(C // 2, 1)),
        lambda f, g, v, C: np.stack(
            [chunked(*(x[None] for x in head), C)[0] for head in zip(f, g, v, strict=True)]
        ),
    ],
    "shift_moments": [shifted_by_matrix, shifted_by_polynomials],
    "banded_attention": [banded_loop, near_far.near_field, gathered],
    "near_and_rest": [near_and_rest_loop, two_sums],
    "merge_states": [
        merged(),
        merged_by_log,
        lambda a, b: attention.merge(attention.State(*b), attention.State(*a)),
    ],
    "shrunk_recall": [
        with_factor(shrinkage),
        searched,
        lambda n, d: [d / (n + d - 1), (n - 1) / (n + d - 1)],
    ],
    "cross_attention": [
        query_by_query,
        lambda x, y, W_q, W_k, W_v: attention.softmax_attention(x @ W_q, y @ W_k, y @ W_v),
        lambda x, y, W_q, W_k, W_v: softmax(root_d(W_q, x @ W_q @ W_k.T @ y.T), 1) @ y @ W_v,
    ],
    "decoder_mask": [
        lambda lengths, L: [
            [[j <= i and j < length for j in range(L)] for i in range(L)] for length in lengths
        ],
        lambda lengths, L: np.tril(np.repeat(real(lengths, L)[:, None], L, axis=1)),
        lambda lengths, L: np.arange(L) < np.minimum(lengths[:, None], 1 + np.arange(L))[..., None],
        lambda lengths, L: 1.0 * np.einsum("bj,ij->bij", real(lengths, L), np.tri(L)),
    ],
    "rotary": [
        by_waves,
        by_matrices,
        lambda x: (
            x * np.cos(np.tile(angles(*x.shape), 2))
            + np.roll(x, x.shape[1] // 2, axis=1)
            * np.concatenate([-np.sin(angles(*x.shape)), np.sin(angles(*x.shape))], axis=1)
        ),
    ],
    "smoother_as_attention": [
        lifted_whole,
        rescaled,
        lambda x, c, gamma: (  # a pair of columns for each coordinate
            math.sqrt(2 * x.shape[1]) * np.hstack([2 * gamma * x, np.ones_like(x)]),
            np.hstack([c, -gamma * c**2]),
        ),
        lambda x, c, gamma: [
            part.tolist() for part in rescaled(x - c.mean(axis=0), c - c.mean(axis=0), gamma)
        ],
    ],
    "trigonometric_attention": [
        trigonometric_loop,
        trigonometric_package,
        trigonometric_complex,
        lambda q, k, v, W: linear(scale=(0, 0), norm=0.5 * q.shape[1] ** -0.5)(
            q, k, v, W * q.shape[1] ** -0.25
        ),
    ],
    "nearer_keys": [mean_of_pairs, by_minimisation],
    "attention_features": [
        scaled_positive,
        square_of_sum,
        lambda q, W: scaled_positive(q, W)[:, ::-1],
    ],
    "log_estimates": [
        log_feature_pairs,
        rescaled_product,
        lambda x, y, W: logsumexp(
            (x[:, None] + y) @ W.T - (norms(x)[:, None] + norms(y))[..., None] / 2,
            axis=-1,
            b=1 / len(W),
        ),
    ],
    "features_needed": [
        from_theory,
        by_search,
        lambda x, y, eps: three(lambda p, m: np.array(relative(p, m)))(x, y, eps),
    ],
    "performer_layer": [head_by_head, layer_by_package],
    "centred_estimates": [
        centred_products,
        centred_pair_by_pair,
        with_rest(lambda x, y, b, c: (y - c) @ b + (x @ c)[:, None]),
    ],
    "less_biased": [
        combined(2, -0.5, -0.5),
        jackknife,
        lambda attend, W: (  # each row left out once
            len(W) * attend(W)
            - (len(W) - 1) * np.mean([attend(np.delete(W, i, 0)) for i in range(len(W))], axis=0)
        ),
    ],
    "smallest_chunk": [
        hiding(),
        lambda L, n, a, w: next(
            (C for C in (2**p for p in range(40)) if C >= L or -(-L // C) * n * a <= w), None
        ),
    ],
    "bounded": [
        over_largest(),
        over_largest(
            lambda xp, x: xp.maximum(
                xp.max(x, axis=1, keepdims=True), -xp.min(x, axis=1, keepdims=True)
            )
        ),
        lambda xp, x: x / (largest_of_row(xp, x) + (largest_of_row(xp, x) == 0))[:, None],
        over_largest(lambda xp, x: xp.max(np.abs(x), axis=-1, keepdims=True)),
        over_largest(lambda xp, x: np.sqrt(xp.max(np.square(x), axis=-1, keepdims=True))),
        over_largest(lambda xp, x: xp.linalg.vector_norm(x, axis=-1, keepdims=True, ord=math.inf)),
        in_place,
        with_ones_at(lambda xp, size: size == 0),
        lambda xp, x: over_largest(lambda xp, x: xp.max(xp.abs(x), axis=0))(xp, x.T).T,
        lambda xp, x: over_largest(lambda xp, x: xp.max(xp.abs(x), axis=0))(xp, x.mT).mT,
        lambda xp, x: xp.zeros(x.shape, device=x.device) + over_largest()(xp, x),
        lambda xp, x: over_largest()(xp, xp.reshape(x, (xp.shape(x)[0], xp.size(x) // len(x)))),
        lambda xp, x: xp.broadcast_arrays(over_largest()(xp, x), x)[0],
    ],
    "decoding_roof": [
        decoded(),
        lambda *arguments: np.array(decoded()(*arguments)),
    ],
    "counterexample": [
        lambda d: turned_pair(0.28)(d) if d > 1 else ([-1.0], [-0.75]),
        lambda d: np.full((2, d), d**-0.5) * [[1], [0.75]],
        lambda d: np.eye(d)[[-1, -1]] * [[0.7], [0.98]],
    ],
    "repaired_attention": [listing(), cosh_by_pairs, by_package],
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


def off_diagonal(x):
    """x_i x_j for all i ≠ j."""
    return every_product(x)[:, ~np.eye(x.shape[1], dtype=bool).ravel()]


def last_degree(fits):
    """The last p = 0, 1, 2, … before fits(d, n, p) fails."""

    def degree(d, n):
        p = -1
        while fits(d, n, p + 1):
            p += 1
        return p

    return degree


def apart(mixed=2.0, square=np.mean, mean=lambda cross: cross.mean(axis=1), own=1.0):
    """own K(x, x) − mixed mean(cross) + square(gram)."""
    return lambda kxx, cross, gram: own * kxx - mixed * mean(cross) + square(gram)


def least(tolerance, symmetric=False):
    """Whether the least eigenvalue is above −tolerance, and K symmetric where asked."""

    def decide(K):
        mirrored = np.array_equal(K, K.T) or not symmetric
        return bool(mirrored and np.linalg.eigvalsh(K).min() >= -tolerance)

    return decide


def seen_by(test):
    """K is symmetric, and what `test` looks at is True."""
    return lambda K: np.array_equal(K, K.T) and bool(np.all(test(K)))


def random_forms(K):
    z = np.random.default_rng(5).normal(size=(1000, len(K)))
    return np.einsum("zi,ij,zj->z", z, K, z) >= -1e-9 * abs(K).max()


def minors(K):
    return np.array([np.linalg.det(K[:i, :i] / abs(K).max()) for i in range(1, len(K) + 1)])


def half_norms(x):
    return norms(x) / 2


def gaussian(x, y):
    return np.exp(-((x[:, None] - y) ** 2).sum(axis=2) / 2)


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


def piled(factor):
    """A power that is multiplied by factor(k!) goes into the next."""

    def phi(x, degree):
        blocks = [np.ones(1)]
        for k in range(1, degree + 1):
            blocks.append(factor(math.factorial(k)) * np.kron(blocks[-1], x))
        return np.concatenate(blocks)

    return phi


def by_degree(factor):
    """factor(k) x^{⊗k}, and 1."""

    def phi(x, degree):
        blocks = [np.ones(1)]
        for _ in range(degree):
            blocks.append(np.kron(blocks[-1], x))
        return np.concatenate([factor(max(k, 1)) * block for k, block in enumerate(blocks)])

    return phi


def each_monomial_once(x, degree):
    return [
        math.prod(chosen) / math.sqrt(math.factorial(k))
        for k in range(degree + 1)
        for chosen in itertools.combinations_with_replacement(x, k)
    ]


def root(factorial):
    return 1 / math.sqrt(factorial)


def normal(scale, mean=0.0):
    """Normal frequencies of standard deviation scale(γ)."""
    return lambda rng, m, d, gamma: rng.normal(mean, scale(gamma), (m, d))


def other(draw):
    """Frequencies of the right variance, draw(rng, size) having variance 1."""
    return lambda rng, m, d, gamma: math.sqrt(2 * gamma) * draw(rng, (m, d))


def one_size_for_two(rng, size):
    """|ω₁| = |ω₂|, with signs of their own."""
    g = rng.normal(size=size)
    g[:, 1] = np.abs(g[:, 0]) * rng.choice([-1, 1], size=len(g))
    return g


def rolled_half(rng, size):
    """A half of the rows, and again with the coordinates in turn."""
    half = rng.normal(size=(size[0] // 2, size[1]))
    return np.concatenate([half, np.roll(half, 1, axis=1)])


def waves(mean):
    """mean(ωᵀδ), the products (n, m)."""
    return lambda omega, delta: mean(delta @ omega.T)


def mean_root(m):
    return 1 / math.sqrt(m)


def both_numbers(k, omegas, end):
    """What quad returns for [−end, end]: integrals and errors, (n, 2)."""
    return np.array(
        [quad(lambda t, w=w: k(t) * np.cos(w * t) / 2 / np.pi, -end, end) for w in omegas]
    )


def twofold(second, first=0.0, directions=lambda W: np.concatenate([W, W])):
    """Phases first, then first + second, for W and W again."""
    return lambda W: (directions(W), first + np.repeat([0, second], len(W)))


def every_other(V, W):
    """A row of one or of the other."""
    return np.where(np.arange(len(V))[:, None] % 2 == 0, V, W)


def rounded(ratio, whole=math.ceil, least=1):
    """ratio(ε, 1 − k²), rounded, and at least `least`."""
    return lambda eps, r: max(least, whole(ratio(eps, 1 - math.exp(-(r**2)))))


def half_variance(eps, gap):
    return gap**2 / (2 * eps**2)


def normed(part):
    """part(Q, v), divided by its length."""
    return lambda Q, v: unit(part(Q, v))


def rest(Q, v):
    return v - Q.T @ (Q @ v)


def unit(g):
    return g / np.linalg.norm(g)


def plain_qr(noise, sign=lambda Q, R, rng: 1.0):
    """Q of noise(rng, size), times sign(Q, R, rng)."""

    def rotation(rng, d):
        Q, R = np.linalg.qr(noise(rng, (d, d)))
        return Q * sign(Q, R, rng)

    return rotation


def gauss(rng, size):
    return rng.normal(size=size)


def flat(rng, size):
    return rng.uniform(-1, 1, size)


def own_seed(rng, *sizes):
    return blocks(haar)(np.random.default_rng(1), sizes[0], sizes[-1])


def signed_permutation(rng, d):
    return np.eye(d)[rng.permutation(d)] * rng.choice([-1, 1], size=d)


def norms_of_the_same(rng, m, d):
    """Q of a QR of G, and the norms of the rows of that G."""
    rows = []
    for _ in range(0, m, d):
        G = rng.normal(size=(d, d))
        Q, R = np.linalg.qr(G)
        rows.append(Q * np.sign(np.diag(R)) * np.sqrt(norms(G))[:, None])
    return np.concatenate(rows)[:m]


def one_block(rng, m, d):
    return chi(rng, m, d) * haar(rng, d)[:m]


def by_index(rng, m, d):
    Q = haar(rng, d)
    return [Q[i] * chi(rng, 1, d)[0] for i in range(m)]


def uncut(rng, m, d):
    return blocks(haar)(rng, d * -(-m // d), d)


def then_iid(rng, m, d):
    return np.vstack([blocks(haar)(rng, min(m, d), d), rng.normal(size=(max(m - d, 0), d))])


def repeated(rng, m, d):
    Q = haar(rng, d)
    return blocks(lambda rng, d: Q)(rng, m, d)


def shuffled(rng, m, d):
    Q = haar(rng, d)
    return blocks(lambda rng, d: rng.permutation(Q))(rng, m, d)


def block_norms(rng, m, d):
    return chi(rng, m, d)[np.arange(m) // d]


def tiled_norms(rng, m, d):
    return chi(rng, d, d)[np.arange(m) % d]


def two_norms(rng, m, d):
    """‖ω‖² = d ± √(2d), of mean d and variance 2d."""
    return np.sqrt(d + math.sqrt(2 * d) * rng.choice([-1, 1], size=(m, 1)))


def normal_squares(rng, m, d):
    """‖ω‖² from N(d, 2d), cut at 0."""
    return np.sqrt(rng.normal(d, math.sqrt(2 * d), size=(m, 1)).clip(1e-9))


def widths(
    scale=lambda D: 1 / math.sqrt(D), first=1, last=1, pair=lambda a, b: (a + b, a - b), used=False
):
    """Butterflies pair(a, b) at the widths first … D // (2 last), times scale(D).

    used: the second is computed after the first is written.
    """

    def transform(x):
        D, width = len(x), first
        while width <= D // 2 // last:
            parts = x.reshape(D // (2 * width), 2, width, -1)
            a, b = parts[:, 0], parts[:, 1]
            if used:
                a[...] = pair(a, b)[0]
                b[...] = pair(a, b)[1]
            else:
                a[...], b[...] = pair(a, b)
            width *= 2
        x *= scale(D)
        return x

    return transform


def pairing(pairs, scale=lambda D: 1.0):
    """Sums and differences of the same pairs of rows at each stage, scale(D) too large."""

    def transform(x):
        for _ in range(len(x).bit_length() - 1):
            a, b = pairs(x)
            a[...], b[...] = a + b, a - b
        x *= scale(len(x)) / math.sqrt(len(x))
        return x

    return transform


def chain(scale, stages=(2, 1, 0), stage=lambda s, x: projections.fwht(s * x)):
    """scale(d) times the stages, the first named acting first."""

    def project(signs, x):
        for i in stages:
            x = stage(signs[i], x)
        return scale(len(signs[0])) * x

    return project


def by_fwht(s, x):
    return projections.fwht(s * x)


def unscaled(s, x):
    return hadamard(len(x)) @ (s * x)


def centred(d):
    return np.eye(d) - 1 / d


def attends(weigh, scale=root_d, order=lambda x, y: (x, y, y), swap=False):
    """weigh(logits) @ values, for logits scale(W_q, q kᵀ) and q, k, v from order(x, y)."""

    def answer(x, y, W_q, W_k, W_v):
        asks, asked, summed = order(x, y)
        W_q, W_k = (W_k, W_q) if swap else (W_q, W_k)
        return weigh(scale(W_q, asks @ W_q @ (asked @ W_k).T)) @ (summed @ W_v)

    return answer


def by_keys(logits):
    return softmax(logits, axis=1)


def divided(logits, keepdims=True, shift=lambda logits: 0.0):
    weights = np.exp(logits - shift(logits))
    return weights / weights.sum(axis=1, keepdims=keepdims)


def both(rule):
    """The mask rule(i, j, length), for all sequences and pairs."""
    return lambda lengths, L: np.array(
        [[[rule(i, j, length) for j in range(L)] for i in range(L)] for length in lengths]
    )


def turns(angle, mix=lambda a, b, c, s: (a * c - b * s, a * s + b * c)):
    """A turn of each pair of x (L, n) by angle(L, n)."""

    def turn(x):
        by, half = angle(*x.shape), x.shape[1] // 2
        return np.concatenate(mix(x[:, :half], x[:, half:], np.cos(by), np.sin(by)), axis=1)

    return turn


def neighbours(x):
    """The pairs (x_0, x_1), (x_2, x_3), …"""
    z = (x[:, ::2] + 1j * x[:, 1::2]) * np.exp(1j * angles(*x.shape))
    return np.stack([z.real, z.imag], axis=2).reshape(x.shape)


def half_turned(spread):
    """x cos + (−second half, first half) sin, the angles (L, n/2) spread to (L, n)."""

    def turn(x):
        by, half = spread(angles(*x.shape)), x.shape[1] // 2
        return x * np.cos(by) + np.hstack([-x[:, half:], x[:, :half]]) * np.sin(by)

    return turn


def added(*waves):
    return lambda x: x + np.concatenate([wave(angles(*x.shape)) for wave in waves], axis=1)


def smoothing(cross, norm=lambda c, gamma: -gamma * norms(c), width=lambda w: math.sqrt(w)):
    """Queries (cross x, 1) and keys (c, norm), q times width(w)."""

    def queries_and_keys(x, centres, gamma):
        factor = cross(gamma) if callable(cross) else cross
        q = np.column_stack([factor * x, np.ones(len(x))])
        return width(q.shape[1]) * q, np.column_stack([centres, norm(centres, gamma)])

    return queries_and_keys


def twice(gamma):
    return 2 * gamma


def linear(scale=(-0.25, -0.25), norm=0.5, turn=1.0, divide=None, parts=(np.cos, np.sin)):
    """Trigonometric attention with a slip; divide(φ(q), φ(k), v) → the output."""

    def attend(q, k, v, W):
        rows, columns = (
            np.exp(norm * norms(x))[:, None] * np.hstack([part(turn * x @ W.T) for part in parts])
            for x in (t * t.shape[1] ** power for t, power in zip((q, k), scale, strict=True))
        )
        if divide is not None:
            return divide(rows / math.sqrt(len(W)), columns / math.sqrt(len(W)), v)
        return rows @ (columns.T @ v) / (rows @ columns.sum(axis=0))[:, None]

    return attend


def weighed_waves(weight, sign=1):
    """Σ cos(ωᵀ(x − sign y)) weight(‖y‖), over its sum."""

    def attend(q, k, v, W):
        x, y = (a * a.shape[1] ** -0.25 @ W.T for a in (q, k))
        cosines = np.cos(x[:, None] - sign * y).mean(axis=2)
        return by_its_sum(cosines * weight(np.sqrt(norms(k * k.shape[1] ** -0.25)))) @ v

    return attend


def by_column(rows, columns, v):
    A = rows @ columns.T
    return A / A.sum(axis=0) @ v


def by_logarithm(change):
    """Positive features from change(ωᵀx, ‖x‖²), x = q d^{−1/4}, in place of ωᵀx − ‖x‖²/2."""

    def phi(q, W):
        x = q * q.shape[1] ** -0.25
        return np.exp(change(x @ W.T, norms(x)[:, None])) / math.sqrt(len(W))

    return phi


def without_maximum(axis):
    def change(waves, squares):
        logs = waves - squares / 2
        return logs - logs.max(axis=axis, keepdims=True)

    return by_logarithm(change)


def exponential(wave=0.25, norm=0.5, half=0.5, scale=mean_root):
    """scale(m) exp(ωᵀq / d^wave − half ‖q‖² / d^norm)."""

    def phi(q, W):
        d, m = q.shape[1], len(W)
        return scale(m) * np.exp(q @ W.T / d**wave - half * norms(q)[:, None] / d**norm)

    return phi


def logarithm(waves=1.0, half=0.5, shift=lambda m: -math.log(m), plain=False):
    """ln Σ exp(ωᵀ(x + y)) with changes; `plain` takes exp before ln, without a maximum."""

    def estimate(x, y, W):
        h = waves * ((x @ W.T)[:, None] + (y @ W.T)[None])
        norm = half * (norms(x)[:, None] + norms(y))
        if plain:
            return np.log(np.exp(h - norm[..., None]).mean(axis=-1))
        return np.logaddexp.reduce(h, axis=-1) - norm + shift(len(W))

    return estimate


def largest(x, y, W):
    return ((x @ W.T)[:, None] + (y @ W.T)[None]).max(axis=-1)


def three(errors, each=(2, 1, 2), whole=math.ceil, least=1, power=2):
    """errors(‖x+y‖², ‖x−y‖²) / ε^power, rounded, times the features of a direction."""

    def needed(x, y, eps):
        values = errors((x + y) @ (x + y), (x - y) @ (x - y))
        return [e * max(least, whole(v / eps**power)) for v, e in zip(values, each, strict=True)]

    return needed


def relative(plus, minus):
    return math.cosh(minus) - 1, math.expm1(plus), math.cosh(plus) - 1


def one_error(place, error):
    """`relative` with error(‖x+y‖², ‖x−y‖²) at one place."""

    def errors(plus, minus):
        found = list(relative(plus, minus))
        found[place] = error(plus, minus)
        return found

    return errors


def waves_of(change):
    return lambda plus, minus: (change(minus), math.expm1(plus), change(plus))


def absolute(x, y, eps):
    errors = (theory.trigonometric_mse, theory.positive_mse, theory.hyperbolic_mse)
    m = [max(1, math.ceil(float(f(x, y, 1)) / eps**2)) for f in errors]
    return 2 * m[0], m[1], 2 * m[2]


def scaled_by(first, second, third):
    return lambda plus, minus: np.array([first, second, third]) * relative(plus, minus)


def attends_masked(weigh=np.multiply, above=None, below=None):
    """weigh(φ(Q)φ(K)ᵀ, mask) in numerator and denominator, or two weights of their own."""

    def attend(phi_q, phi_k, v, mask):
        weights = phi_q @ phi_k.T
        top, bottom = ((part or weigh)(weights, mask) for part in (above, below))
        return top @ v / bottom.sum(axis=1, keepdims=True)

    return attend


def unmasked(weights, mask):
    return weights


def plus(eps):
    """Masked weights with eps added to each."""
    return lambda weights, mask: (weights + eps) * mask


def hidden_subtracted(phi_q, phi_k, v, mask):
    weights = phi_q @ phi_k.T
    hidden = weights * ~mask
    top, bottom = weights @ v - hidden @ v, weights.sum(axis=1) - hidden.sum(axis=1)
    return top / np.maximum(bottom, 1e-300)[:, None]


def stable_logs(add=lambda top: top, count=lambda z: z, back=lambda c: c, last=np.log):
    """The solution of `log_denominator` with its parts to exchange."""

    def logarithm(g, h):
        c = h.max(axis=0)
        z, a = count(np.exp(h - c).sum(axis=0)), g + back(c)
        top = a.max(axis=1)
        return add(top) + last(np.exp(a - top[:, None]) @ z)

    return logarithm


def one_maximum(g, h):
    rows, top = g.max(axis=1), h.max()
    return rows + top + np.log(np.exp(g - rows[:, None]) @ np.exp(h - top).sum(axis=0))


def minus_log(size):
    """The right logarithm, of a mean over size(h) things."""
    return lambda g, h: log_of_feature_sums(g, h) - math.log(size(h))


def pairwise(mean=lambda s: np.expm1(s).mean(), power=-0.25, sign=1, whole=math.ceil, least=1):
    """whole(mean(‖q' ± k'‖²) / target), q' = q d^power, and at least `least`."""

    def needed(q, k, target):
        z = (q[:, None] + sign * k) * q.shape[1] ** power
        return max(least, whole(mean((z**2).sum(axis=-1)) / target))

    return needed


def without_product(q, k, target):
    root = math.sqrt(q.shape[1])
    return max(1, math.ceil(np.expm1((norms(q)[:, None] + norms(k)) / root).mean() / target))


def of_absolute_error(q, k, target):
    x, y = (a * a.shape[1] ** -0.25 for a in (q, k))
    return max(1, math.ceil(theory.positive_mse(x[:, None], y, 1).mean() / target))


def summed_over_heads(x, W_q, W_k, W_v, W, heads):
    """One denominator for all heads."""
    parts = layer_of(divide=lambda A: A)(x, W_q, W_k, W_v, W, heads)
    d = x.shape[1] // heads
    total = 0
    for h in range(heads):
        q, k = ((x @ part)[:, h * d : (h + 1) * d] * d**-0.25 for part in (W_q, W_k))
        A = np.exp(q @ W.T) @ np.exp(k @ W.T - norms(k)[:, None] / 2).T
        total = total + A.sum(axis=1, keepdims=True)
    return parts / total


def exact_layer(x, W_q, W_k, W_v, W, heads):
    q, k, v = (transformer.split_heads(x @ part, heads) for part in (W_q, W_k, W_v))
    return transformer.join_heads(attention.softmax_attention(q, k, v))


def interleaved(whole, heads):
    """Columns back to where they came from, `heads` apart."""
    parts = whole.reshape(len(whole), heads, -1)
    return parts.swapaxes(1, 2).reshape(whole.shape)


def unmoved(join=lambda outs: outs.reshape(outs.shape[1], -1)):
    """(L, n) reshaped to (heads, L, d) in one step."""

    def layer(x, W_q, W_k, W_v, W, heads):
        q, k, v = ((x @ part).reshape(heads, len(x), -1) for part in (W_q, W_k, W_v))
        return join(attention.favor_attention(q, k, v, W))

    return layer


def one_sided(of_q, of_k):
    return layer_of(lambda d, n: d**of_q, of_k=lambda d, n: d**of_k)


def heads_first(x, W_q, W_k, W_v, W, heads):
    whole = layer_of()(x, W_q, W_k, W_v, W, heads)
    return whole.reshape(len(x), heads, -1).swapaxes(0, 1).reshape(whole.shape)


def halves_of_norms(half):
    def answer(x, y, b, c, W):
        log_x, log_y = (z @ W.T - half * norms(z)[:, None] for z in (x - b, y - c))
        return np.exp(y @ b + ((x - b) @ c)[:, None]) * (np.exp(log_x) @ np.exp(log_y).T) / len(W)

    return answer


def shifted(term, last=lambda M, total: total):
    """Σ_k term(p, k, c − new) M_k for each p, then `last`."""

    def shift(M, c, new):
        rows = [[term(p, k, c - new) * M[k] for k in range(p + 1)] for p in range(len(M))]
        return last(M, np.array([sum(row) for row in rows]))

    return shift


def translated(p, k, gap):
    return math.comb(p, k) * gap ** (p - k)


def banded(seen=lambda gap, band, L: abs(gap) <= band, fill=-np.inf, scale=-0.5, after=None):
    """Attention in a band with its parts to exchange, by way of a full matrix."""

    def attend(q, k, v, band):
        i, j = np.indices((len(q), len(q)))
        near, logits = seen(j - i, band, len(q)), q @ k.T * q.shape[1] ** scale
        if after is not None:
            return after(np.exp(logits), near, v)
        return softmax(np.where(near, logits, fill), axis=1) @ v

    return attend


def in_blocks(q, k, v, band):
    cuts = range(band + 1, len(q), band + 1)
    parts = zip(*(np.split(x, cuts) for x in (q, k, v)), strict=True)
    return np.concatenate(
        [softmax(a @ b.T / math.sqrt(q.shape[1]), axis=1) @ c for a, b, c in parts]
    )


def safe_rows(E, near, v):
    total = (E * near).sum(axis=1, keepdims=True)
    return E * near @ v / np.where(total == 0, 1, total)


def near_far_rows(weights, above=None, below=None):
    """near_and_rest from weights(exact, by features, in the band), by way of full matrices."""

    def attend(q, k, v, phi_q, phi_k, band):
        i, j = np.indices((len(q), len(q)))
        parts = np.exp(q @ k.T / math.sqrt(q.shape[1])), phi_q @ phi_k.T, abs(i - j) <= band
        top, bottom = (f(*parts) for f in (above or weights, below or weights))
        total = bottom.sum(axis=1, keepdims=True)
        return top @ v / np.where(total == 0, 1, total)

    return attend


def by_row(weights, reduce):
    return reduce(weights, axis=1, keepdims=True)


def right_weights(E, G, near):
    return np.where(near, E, G)


def near_twice(E, G, near):
    return E * near + G


def near_alone(E, G, near):
    return E * near


def features_alone(E, G, near):
    return G


def two_denominators(divide):
    near, far = near_far_rows(near_alone), near_far_rows(features_alone)
    return lambda *data: (near(*data) + far(*data)) / divide


WRONG = {
    "shift_moments": [
        (shifted(lambda p, k, gap: translated(p, k, -gap)), "the sign: y − new"),
        (shifted(lambda p, k, gap: gap ** (p - k)), "binomial coefficients are missing"),
        (
            shifted(lambda p, k, gap: (k == p) + (k == 0 < p) * gap**p),
            "not the first and the last",
        ),
        (lambda M, c, new: M, "the moments depend on the centre"),
        (shifted(lambda p, k, gap: math.comb(p, k) * gap**k), "have changed places"),
        (shifted(translated, lambda M, total: total - M), "range(p + 1)"),
        (lambda M, c, new: shifted(translated)(M, 0.0, new), "c − c', not c' alone"),
        (
            shifted(lambda p, k, gap: gap ** (p - k) / math.factorial(p - k)),
            "one factorial is not enough",
        ),
        (shifted(translated, lambda M, total: total / M[0]), "sums, not means"),
        (shifted(translated, lambda M, total: total[::-1]), "the order is turned round"),
        (
            shifted(translated, lambda M, total: np.append(0, total[:-1])),
            "the powers start with p = 0",
        ),
        (shifted(lambda p, k, gap: (k == p) * gap**p), "a power of a sum is not a product"),
        (lambda M, c, new: M + (c - new) ** np.arange(len(M)), "is not a sum of powers"),
        (shifted(translated, lambda M, total: total[:-1]), "shape (4,), and (5,) is needed"),
    ],
    "banded_attention": [
        (banded(fill=0), "0 outside the band keeps weight e^0"),
        (
            banded(after=lambda E, near, v: E * near / E.sum(1, keepdims=True) @ v),
            "the sum is over the band, too",
        ),
        (banded(after=lambda E, near, v: E * near @ v), "the denominator is missing"),
        (banded(lambda gap, band, L: gap == gap), "where is the band?"),
        (banded(lambda gap, band, L: np.minimum(gap % L, -gap % L) <= band), "ends are joined"),
        (banded(lambda gap, band, L: abs(gap) < band, after=safe_rows), "belongs to the band"),
        (banded(lambda gap, band, L: abs(gap) <= band + 1), "one key too many"),
        (banded(lambda gap, band, L: (-band <= gap) & (gap <= 0)), "this is causal"),
        (banded(lambda gap, band, L: (gap >= 0) & (gap <= band)), "keys j < i count"),
        (
            banded(lambda gap, band, L: (-band <= gap) & (gap < band), after=safe_rows),
            "range(i − b, i + b)",
        ),
        (in_blocks, "blocks: a row at the edge"),
        (
            lambda *data: gathered(*data, inside=lambda at, L: at == at, start=padded),
            "beyond the ends there is no key",
        ),
        (lambda *data: gathered(*data, inside=lambda at, L: at == at), "count more than once"),
        (lambda *data: banded_loop(*data) * np.float64(1 + 1e-6), "is an ε added"),
        (banded(scale=0), "the scale 1/√d is missing"),
        (banded(scale=-1), "is 1/√d, not 1/d"),
        (banded(after=lambda E, near, v: safe_rows(1, near, v)), "a mean over the band"),
        (lambda q, k, v, band: banded()(k, q, v, band), "have changed places"),
        (banded(), "that is an L × L array"),
    ],
    "near_and_rest": [
        (near_far_rows(near_twice), "near keys count twice: take"),
        (two_denominators(1), "two denominators"),
        (two_denominators(2), "two denominators"),
        (
            near_far_rows(lambda E, G, near: np.where(near, E / by_row(E * near, np.max), G)),
            "a maximum taken out of near keys alone",
        ),
        (
            near_far_rows(lambda E, G, near: np.where(near, E / by_row(E * near, np.sum), G)),
            "two denominators",
        ),
        (near_far_rows(lambda E, G, near: np.where(np.tril(near), E, G)), "near keys j > i"),
        (near_far_rows(lambda E, G, near: np.where(np.triu(near), E, G)), "near keys j < i"),
        (lambda *data: near_and_rest_loop(*data[:-1], data[-1] - 1), "belongs to the band"),
        (lambda *data: near_and_rest_loop(*data[:-1], data[-1] + 1), "one key too many"),
        (near_far_rows(lambda E, G, near: np.where(near, E, np.exp(G))), "of the far"),
        (lambda *data: near_and_rest_loop(*data) * (1 + 1e-6), "is an ε added"),
        (near_far_rows(near_alone), "the far keys are missing"),
        (near_far_rows(lambda E, G, near: G * ~near), "the near keys are missing"),
        (near_far_rows(features_alone), "not their features"),
        (near_far_rows(lambda E, G, near: E), "outside the band weigh by their features"),
        (near_far_rows(lambda E, G, near: np.where(near, G, E)), "have changed places"),
        (near_far_rows(lambda E, G, near: np.where(near, E**2, G)), "1/√d is missing"),
        (near_far_rows(lambda E, G, near: np.where(near, np.log(E), G)), "the exponential"),
        (
            near_far_rows(right_weights, below=lambda E, G, near: np.eye(len(E))),
            "the denominator is missing",
        ),
        (near_far_rows(right_weights, below=features_alone), "still has the features of the"),
        (near_far_rows(right_weights, above=near_twice), "near keys count twice in the numerator"),
        (near_far_rows(right_weights), "that is an L × L array"),
    ],
    "variance_of_mean": [
        (lambda variance, m: variance / math.sqrt(m), "√m belongs to the standard deviation"),
        (lambda variance, m: math.sqrt(variance / m), "this is the standard deviation"),
        (lambda variance, m: variance, "the variance of one number"),
        (lambda variance, m: variance * m, "the variance of the sum"),
        (lambda variance, m: variance / m**2, "divide that by m²"),
        (lambda variance, m: math.sqrt(variance) / m, "take its variance"),
        (lambda variance, m: 1 / m, "must enter"),
        (
            lambda variance, m: variance * (1 + 1e-6) / m,
            "found 4.000004 for variance = 4, m = 1, expected 4.",
        ),
    ],
    "quadratic_features": [
        (lambda x: pairs(x, 1), "count half: is there a √2"),
        (lambda x: pairs(x, math.sqrt(0.5)), "count a quarter"),
        (lambda x: pairs(x, 2), "count twice: √2, not 2"),
        (lambda x: np.hstack([x**2, math.sqrt(2) * off_diagonal(x)]), "each pair i < j once"),
        (lambda x: math.sqrt(2) * every_product(x), "a √2 on every feature"),
        (lambda x: math.sqrt(2) * pairs(x, 1), "no √2 on x_i²"),
        (lambda x: np.hstack([x**2, math.sqrt(2) * x[:, :1] * x[:, 1:2]]), "x₁x₂ is one product"),
        (lambda x: np.hstack([x**2, math.sqrt(2) * x[:, 1:] * x[:, :-1]]), "only neighbours"),
        (lambda x: np.insert(every_product(x), 0, 1, axis=1), "the constant 1 does not belong"),
        (lambda x: every_product(np.insert(x, 0, 1, axis=1)), "this is (xᵀy + 1)²"),
        (lambda x: x**2, "only the squares"),
        (lambda x: pairs(x, math.sqrt(2), k=1), "only the products"),
        (lambda x: x, "this is xᵀy itself"),
        (lambda x: np.hstack([x, every_product(x)]), "the terms of degree 1 do not belong"),
        (lambda x: pairs(x, math.sqrt(2)).T, "one row a point"),
        (lambda x: (x @ x.T) ** 2, "must not depend on that of points"),
        (lambda x: pairs(x[:, :2], math.sqrt(2)), "only x₁ and x₂"),
        (lambda x: pairs(x, np.nan), "NaN or infinity"),
    ],
    "highest_degree": [
        (lambda d, n: count_down(d, n) + 1, "the first degree that takes too many"),
        (lambda d, n: count_down(d, n) - 1, "one degree more still takes"),
        (last_degree(lambda d, n, p: math.comb(d + p, p) <= (n + 1) / 2), "not its triangle"),
        (lambda d, n: max(count_down(d, n), 1), "the degree 0 is left"),
        (last_degree(lambda d, n, p: sum(d**k for k in range(p + 1)) <= n), "1 + d + d² + …"),
        (last_degree(lambda d, n, p: 1 + d * p <= n), "the mixed products are missing"),
        (last_degree(lambda d, n, p: math.comb(d + p, p) < n), "≤, not <"),
        (last_degree(lambda d, n, p: math.comb(d + p - 1, p) <= n), "of degree exactly p"),
        (last_degree(lambda d, n, p: d**p <= n), "d^p counts"),
        (last_degree(lambda d, n, p: (p + 1) ** d <= n), "their sum that is at most p"),
        (last_degree(lambda d, n, p: p <= d and math.comb(d, p) <= n), "may come twice"),
        (last_degree(lambda d, n, p: math.comb(d + p, p) - 1 <= n), "the constant 1"),
        (last_degree(lambda d, n, p: math.comb(d + p, p) <= n**2), "that is compared with n²"),
        (last_degree(lambda d, n, p: math.comb(d + p, p) <= n / 2), "not the half of it"),
        (lambda d, n: n / d, "found 2500 for d = 2, n = 5000, expected 98"),
    ],
    "distance_to_mean": [
        (lambda *values: np.sqrt(apart()(*values)), "without the root"),
        (apart(mixed=1.0), "comes twice"),
        (apart(mixed=-2.0), "this is ‖a + b‖²"),
        (apart(square=lambda gram: 0.0), "the squared length of the mean, is missing"),
        (apart(mixed=0.0), "the mixed term −2 φ(x)ᵀμ is missing"),
        (apart(square=lambda gram: -gram.mean()), "‖μ‖² is added"),
        (apart(square=lambda gram: gram.mean() ** 2), "do not square it"),
        (apart(square=lambda gram: math.sqrt(gram.mean())), "no root"),
        (lambda own, cross, gram: own - cross.mean(axis=1) ** 2, "three terms"),
        (apart(square=lambda gram: gram.mean(axis=0)), "‖μ‖² is one number"),
        (apart(own=0.0), "it differs from point to point"),
        (apart(square=lambda gram: np.diag(gram).mean()), "has the pairs j ≠ l as well"),
        (apart(square=np.sum, mean=lambda cross: cross.sum(axis=1)), "divide by p"),
        (apart(square=lambda gram: gram.sum() / len(gram)), "over p² pairs"),
        (apart(square=lambda gram: (gram - np.diag(np.diag(gram))).mean()), "j = l among them"),
        (lambda own, *rest: apart()(own.mean(), *rest), "no mean over own"),
        (apart(mean=np.mean), "not over the x_i"),
        (apart(mean=lambda cross: cross.mean(axis=0)), "x belongs to the rows"),
        (apart(-1.0, lambda gram: 0.0, own=0.0), "how large is ‖φ(x) − μ‖²?"),
    ],
    "is_kernel_matrix": [
        (lambda K: bool((K >= 0).all()), "no negative entry, and the eigenvalue −1"),
        (lambda K: bool((K > 0).all()), "the identity is one"),
        (lambda K: np.array_equal(K, K.T), "look at eigenvalues"),
        (lambda K: least(1e-9)(K) and (K >= 0).all(), "entries may be negative"),
        (lambda K: (2 * K.diagonal() >= abs(K).sum(axis=1)).all(), "less than the rest of its row"),
        (lambda K: least(0.3 * abs(np.linalg.eigvalsh(K)).max())(K), "is no rounding"),
        (lambda K: least(1e-2)(K), "is no rounding"),
        (seen_by(lambda K: K.diagonal()[:, None] + K.diagonal() >= 2 * abs(K)), "0 and ±1 alone"),
        (seen_by(lambda K: np.outer(*[K.diagonal()] * 2) >= K**2 - 1e-12), "each pair"),
        (
            seen_by(
                lambda K: np.outer(*[K.diagonal()] * 2) / K.max() ** 2 > -1e-9 + (K / K.max()) ** 2
            ),
            "each pair",
        ),
        (seen_by(lambda K: np.linalg.det(K / abs(K).max()) >= -1e-12), "not at their product"),
        (seen_by(lambda K: np.linalg.det(K) >= -1e-12), "not at their product"),
        (seen_by(random_forms), "a z drawn at random"),
        (seen_by(lambda K: minors(K).min() >= -1e-12), "decide nothing"),
        (seen_by(lambda K: minors(K).min() > 0), "Zero is allowed"),
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
        (lambda K, x, y: K * np.exp((x**2).sum(axis=0) / 2), "the norms of x, one a row, need"),
        (lambda K, x, y: np.exp(x @ y.T), "take it from K"),
        (lambda K, x, y: RIGHT["softmax_from_gaussian"][0](gaussian(x, y), x, y), "take it from K"),
        (lambda K, x, y: softmax(x @ y.T, axis=1), "the rows are normalised"),
        (lambda K, x, y: softmax(x @ y.T), "nothing is to be normalised"),
        (lambda K, x, y: K / K.sum(axis=1, keepdims=True), "nothing is to be normalised"),
        (lambda K, x, y: 1 / K, "turns the sign"),
        (lambda K, x, y: x @ y.T, "the logarithm of what"),
        (lambda K, x, y: K * np.exp(x @ y.T), "K holds the factor e^{xᵀy} already"),
        (lambda K, x, y: np.exp(K + half_norms(x)[:, None] + half_norms(y)), "outside of exp"),
        (lambda K, x, y: K + np.exp(half_norms(x)[:, None] + half_norms(y)), "a product of"),
        (
            lambda K, x, y: K * (np.exp(half_norms(x))[:, None] + np.exp(half_norms(y))),
            "is a product, not a sum",
        ),
        (lambda K, x, y: K * np.exp(np.outer(norms(x), norms(y)) / 2), "add the squared norms"),
        (lambda K, x, y: K * np.exp(np.outer(norms(x), norms(y)) ** 0.5), "add the squared norms"),
        (lambda K, x, y: K * np.exp(half_norms(x).sum() + half_norms(y).sum()), "for each row"),
        (
            lambda K, x, y: K * np.exp((np.linalg.norm(x) + np.linalg.norm(y)) / 2),
            "for each row",
        ),
    ],
    "taylor_features": [
        (series(root, power=np.multiply), "mixed products"),
        (series(lambda f: 1 / f), "divide by √(k!), not k!"),
        (series(lambda f: 1.0), "the factor 1/√(k!) is missing"),
        (series(root, start=1), "the constant 1"),
        (series(root, stop=0), "stops one short"),
        (lambda x, degree: series(root)(x, degree + 1), "one degree too many"),
        (piled(lambda f: 1 / math.sqrt(f)), "the factorials pile up: a power divided"),
        (piled(lambda f: 1 / f), "the factorials pile up, and k!"),
        (by_degree(lambda k: 1 / math.sqrt(k)), "not by √k alone"),
        (by_degree(lambda k: 1 / k), "not by k alone"),
        (by_degree(lambda k: 1 / math.sqrt(math.factorial(k - 1))), "not √((k−1)!)"),
        (
            lambda x, degree: (
                series(lambda f: 1 / math.sqrt(f))(x, degree)
                / np.sqrt(1 + np.repeat(range(degree + 1), len(x) ** np.arange(degree + 1)))
            ),
            "not √((k+1)!)",
        ),
        (each_monomial_once, "a √ of the count is missing"),
        (lambda x, degree: series(root, start=degree)(x, degree), "the last term alone"),
        (lambda x, degree: features.taylor(x[None], degree), "one row of features, got (1, 10)"),
    ],
    "gaussian_frequencies": [
        (normal(lambda gamma: 2 * gamma), "2γ is the variance"),
        (normal(lambda gamma: math.sqrt(gamma)), "2γ, not γ"),
        (normal(lambda gamma: 1 / math.sqrt(2 * gamma)), "a narrow kernel needs high ω"),
        (normal(lambda gamma: 1.0), "must depend on γ"),
        (normal(lambda gamma: 2 * math.pi * math.sqrt(2 * gamma)), "a 2π too many"),
        (normal(lambda gamma: math.sqrt(2 * gamma) / 2 / math.pi), "divided by 2π"),
        (normal(lambda gamma: gamma), "γ is no standard deviation"),
        (normal(lambda gamma: (2 * gamma) ** 0.25), "and here it is the variance"),
        (normal(lambda gamma: 1.0, mean=0.5), "the mean is 0.5"),
        (lambda rng, m, d, gamma: np.tile(box_muller(rng, m // 2, d, gamma), (2, 1)), "come twice"),
        (
            lambda rng, m, d, gamma: np.kron([[1], [-1]], box_muller(rng, m // 2, d, gamma)),
            "both signs",
        ),
        (normal(lambda gamma: 1 / (2 * gamma)), "the variance of the kernel's bell in δ"),
        (normal(lambda gamma: math.sqrt(gamma / 2)), "not γ/2"),
        (normal(lambda gamma: 2 * math.sqrt(gamma)), "is there a 2 too many?"),
        (normal(lambda gamma: 3 + gamma), "the spread is not right"),
        (
            lambda rng, m, d, gamma: box_muller(ANOTHER_RNG, m, d, gamma),
            "two generators of one seed",
        ),
        (
            lambda rng, m, d, gamma: box_muller(np.random.default_rng(0), m, d, gamma),
            "of different seeds",
        ),
        (normal(lambda gamma: math.sqrt(2 * gamma), mean=0.1), "the mean is 0.1"),
        (other(lambda rng, size: math.sqrt(3) * rng.uniform(-1, 1, size)), "but not normal"),
        (other(lambda rng, size: rng.laplace(0, math.sqrt(0.5), size)), "but not normal"),
        (other(lambda rng, size: rng.normal(size=size[::-1])), "must give shape (40000, 3)"),
        (other(lambda rng, size: rng.normal(size=(size[0], 1)) * np.ones(size)), "independent"),
        (other(lambda rng, size: rng.normal(size=size) * [1.05, 1, 0.95]), "each must have 2γ"),
        (other(lambda rng, size: rng.normal([0.1, 0, -0.1], size=size)), "must be 0"),
        (other(one_size_for_two), "the sizes of the coordinates go together"),
        (other(rolled_half), "coordinates in another order"),
    ],
    "estimate_kernel": [
        (waves(lambda t: np.cos(t).sum(axis=1)), "a mean, not a sum"),
        (waves(lambda t: np.cos(2 * np.pi * t).mean(axis=1)), "a 2π inside the cosine?"),
        (waves(lambda t: np.sin(t).mean(axis=1)), "it is the cosine that stays"),
        (waves(lambda t: np.exp(t).mean(axis=1)), "lacks its i"),
        (waves(lambda t: np.cos(t.mean(axis=1))), "cosine first, then the mean"),
        (waves(lambda t: np.cos(t).mean()), "not over δ"),
        (waves(lambda t: np.cos(t).mean(axis=0)), "one number for each δ"),
        (waves(lambda t: abs(np.cos(t).mean(axis=1))), "no absolute value"),
        (waves(lambda t: abs(np.exp(1j * t).mean(axis=1))), "the modulus"),
        (waves(lambda t: np.maximum(np.cos(t).mean(axis=1), 0)), "may be negative: keep it"),
        (lambda omega, delta: np.exp(-norms(delta) / 2), "the Gaussian kernel itself"),
        (waves(lambda t: (np.cos(t) ** 2).mean(axis=1)), "not of cos²"),
        (waves(lambda t: np.cos(t).mean(axis=1) ** 2), "not its square"),
        (waves(lambda t: np.cos(t).mean(axis=1) / 2), "no ½"),
        (lambda omega, delta: [np.cos(omega * x).mean() for x in delta], "first ωᵀδ, the sum"),
        (lambda omega, delta: [np.cos(omega * x).prod(1).mean() for x in delta], "no product of"),
        (waves(lambda t: 2 * np.cos(t).mean(axis=1)), "the 2 belongs to phases"),
        (waves(lambda t: np.cos(t).sum(axis=1) / math.sqrt(t.shape[1])), "not by √m"),
        (waves(np.cos), "take the mean over ω."),
        (waves(lambda t: np.cos(t).T), "take the mean over ω."),
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
        (lambda k, w: both_numbers(k, w, 20), "take [0]"),
        (lambda k, w: both_numbers(k, w, np.pi)[:, 0], "beyond [−π, π]"),
        (lambda k, w: trapezoid(k, w, wave=np.ones_like), "where is cos(ωδ)?"),
    ],
    "without_leftover": [
        (lambda W: (W, np.full(len(W), np.pi / 4)), "take each direction twice"),
        (lambda W: (W, np.linspace(0, 6, len(W))), "take each direction twice"),
        (twofold(np.pi), "2b, not b, is in the leftover"),
        (twofold(0.0), "2b, not b, is in the leftover"),
        (twofold(np.pi / 4), "Draw the angles 2b on a circle"),
        (
            lambda W: (np.repeat(W, 2, axis=0), twofold(np.pi / 2)(W)[1]),
            "is the order the same?",
        ),
        (twofold(np.pi / 2, directions=lambda W: np.concatenate([W, 2 * W])), "those of W"),
        (
            lambda W: in_pairs(np.concatenate([W, W[:1]])),
            "all of them equally often",
        ),
        (lambda W: (W, np.zeros(2 * len(W))), "got (5, 3) and (10,)"),
        (lambda W: W, "two arrays, got a ndarray"),
        (lambda W: (W, np.nan * W[:, 0]), "NaN or infinity"),
    ],
    "product_directions": [
        (lambda V, W: np.concatenate([V, W]), "2m directions, those of both kernels"),
        (every_other, "rows of one or of the other"),
        (lambda V, W: V, "this is k₁ alone"),
        (lambda V, W: W, "this is k₂ alone"),
        (lambda V, W: V * W, "not the mean at a product"),
        (lambda V, W: (V + W) / 2, "twice as narrow"),
        (lambda V, W: (V + W) / math.sqrt(2), "do not divide by √2"),
        (np.hypot, "has no sign"),
        (lambda V, W: np.hstack([V, W]), "must give shape (4, 2), got (4, 4)"),
        (lambda V, W: (V[:, None] + W).reshape(-1, 2), "must give shape (4, 2), got (16, 2)"),
        (lambda V, W: 2 * V, "expected 0.6"),
        (
            lambda V, W: np.concatenate([V[::2] + W[::2], V[::2] - W[::2]]),
            "a row of V enters 2 rows",
        ),
        (lambda V, W: V + W.mean(axis=0), "a row of W enters 40 rows"),
        (lambda V, W: V + ANOTHER_RNG.choice(W, len(W)), "a row of W enters"),
    ],
    "directions_needed": [
        (rounded(lambda eps, gap: gap**2 / (2 * eps)), "not ε."),
        (rounded(lambda eps, gap: gap**2 / eps**2), "the variance has 1/(2m)"),
        (rounded(lambda eps, gap: gap / (2 * eps**2)), "enters squared"),
        (rounded(lambda eps, gap: gap / (math.sqrt(2) * eps)), "falls like 1/√m"),
        (lambda eps, r: RIGHT["directions_needed"][0](eps, math.sqrt(r)), "with r squared"),
        (rounded(lambda eps, gap: (1 - math.sqrt(1 - gap)) ** 2 / (2 * eps**2)), "k² = e^{−r²}"),
        (rounded(lambda eps, gap: 1 / (2 * eps**2)), "near points need fewer"),
        (rounded(half_variance, math.floor), "round up."),
        (rounded(half_variance, float), "is a whole number"),
        (rounded(half_variance, least=0), "at least one direction"),
        (rounded(lambda eps, gap: 1 / eps), "found 77 for ε = 0.013, r = 3, expected 2958"),
        (lambda eps, r: [RIGHT["directions_needed"][0](eps, r)], "(13,) is needed"),
        (
            lambda eps, r: math.floor(half_variance(eps, 1 - math.exp(-(r**2)))) + 1,
            "floor(…) + 1 has one too many",
        ),
        (lambda eps, r: count_up(eps, r) + 1, "this is one more"),
        (lambda eps, r: 2 * count_up(eps, r), "this counts features"),
        (
            rounded(lambda eps, gap: (1 + (1 - gap) ** 2 / 2 - (1 - gap)) / eps**2),
            "with random phases",
        ),
        (rounded(half_variance, round), "rounding to the nearest"),
        (rounded(half_variance, float, least=0), "and at least 1: round up"),
        (rounded(half_variance, math.floor, least=0), "rounding down"),
    ],
    "one_more_row": [
        (normed(rest), "subtract once more, from what is left"),
        (lambda Q, v: row_by_row(Q[:0], unit(rest(Q, v))), "rounding errors of the size of v"),
        (lambda Q, v: -by_qr(Q, v), "the sign is turned"),
        (lambda Q, v: np.linalg.qr(np.vstack([Q, v]).T)[0][:, -1], "the sign is turned"),
        (lambda Q, v: unit(v), "still has its projections"),
        (lambda Q, v: v, "still has its projections"),
        (rest, "divide by the norm"),
        (lambda Q, v: rest(Q, unit(v)), "divide by the norm"),
        (lambda Q, v: 1.00001 * by_qr(Q, v), "the right direction, but not of length one"),
        (normed(lambda Q, v: Q.T @ (Q @ v)), "the part inside the span"),
        (normed(lambda Q, v: v + Q.T @ (Q @ v)), "do not add them"),
        (lambda Q, v: Q.T @ (Q @ v), "the part inside the span"),
        (normed(lambda Q, v: 2 * rest(Q, v) - v), "are subtracted twice"),
        (normed(lambda Q, v: rest(Q[-1:], v)), "the last row alone"),
        (lambda Q, v: np.vstack([Q, by_qr(Q, v)]), "shape (4, 6), and (6,) is needed"),
    ],
    "uniform_orthogonal": [
        (plain_qr(gauss), "the signs of R's diagonal"),
        (plain_qr(gauss, lambda Q, R, rng: np.sign(np.diag(Q))), "the signs of R's diagonal"),
        (plain_qr(lambda rng, size: rng.random(size)), "is the matrix Gaussian, and"),
        (plain_qr(gauss, lambda Q, R, rng: np.diag(R)), "Q Qᵀ is not the identity"),
        (lambda rng, d: rng.normal(size=(d, d)), "Q Qᵀ is not the identity"),
        (lambda rng, d: haar(np.random.default_rng(1), d), "of different seeds"),
        (lambda rng, d: ortho_group.rvs(d), "two generators of one seed"),
        (
            lambda rng, d: special_ortho_group.rvs(d, random_state=rng) * rng.choice([-1, 1]),
            "equally likely",
        ),
        (lambda rng, d: special_ortho_group.rvs(d, random_state=rng), "equally likely"),
        (plain_qr(gauss, lambda Q, R, rng: rng.choice([-1, 1])), "a random sign of its own"),
        (plain_qr(flat, lambda Q, R, rng: np.sign(np.diag(R))), "the rows prefer some directions"),
        (signed_permutation, "1.67 times Haar's"),
        (lambda rng, d: np.linalg.qr(gauss(rng, (d, d))), "must give shape (3, 3), got (2, 3, 3)"),
    ],
    "orthogonal_directions": [
        (one_block, "stack ⌈m/d⌉ blocks"),
        (by_index, "stack ⌈m/d⌉ blocks"),
        (uncut, "cut the last one"),
        (lambda rng, m, d: rng.normal(size=(m, d)), "the first block are not orthogonal"),
        (lambda rng, m, d: haar(rng, d)[:m] * chi(rng, d, d).T, "its columns are"),
        (norms_of_the_same, "coordinates have variances from 0.7"),
        (
            blocks(haar, lambda rng, m, d: chi(np.random.default_rng(1), m, d)),
            "the norms are the same at each call",
        ),
        (lambda rng, m, d: blocks(lambda _, d: ortho_group.rvs(d))(rng, m, d), "two generators"),
        (then_iid, "the second block are not orthogonal"),
        (blocks(haar, lambda rng, m, d: math.sqrt(d)), "all norms are 2:"),
        (blocks(haar, lambda rng, m, d: 1.0), "all norms are 1:"),
        (blocks(haar, lambda rng, m, d: chi(rng, 1, d)), "all rows share one norm"),
        (blocks(haar, block_norms), "some rows share their norm"),
        (blocks(haar, tiled_norms), "some rows share their norm"),
        (blocks(haar, lambda rng, m, d: chi(rng, m, d) ** 2), "the root of chisquare(d)?"),
        (blocks(haar, lambda rng, m, d: 2 * rng.normal(size=(m, 1))), "that of χ²_d is 8"),
        (blocks(haar, two_norms), "but another law"),
        (blocks(haar, normal_squares), "but another law"),
        (blocks(plain_qr(gauss)), "are QR's signs repaired?"),
        (repeated, "the blocks repeat one another"),
        (shuffled, "the blocks repeat one another"),
        (blocks(signed_permutation), "the rows prefer some directions"),
        (own_seed, "of different seeds"),
    ],
    "walsh_hadamard": [
        (widths(lambda D: 1.0), "the factor 1/√D is missing"),
        (widths(lambda D: 1 / D), "by √D, not by D"),
        (widths(lambda D: math.prod(2**-k for k in np.arange(1, D.bit_length()) / 2)), "root of"),
        (widths(first=4, last=2), "this is one stage"),
        (widths(last=8), "this is one stage"),
        (widths(lambda D: 1.0, first=8), "this is one stage"),
        (widths(last=2), "one stage is missing"),
        (widths(first=2), "one stage is missing"),
        (widths(used=True), "overwritten before the other has used it"),
        (widths(lambda D: 1.0, used=True), "overwritten before the other has used it"),
        (lambda x: x @ hadamard(4) / 2, "on columns, not on rows"),
        (lambda x: projections.fwht(x) @ hadamard(4) / 2, "along the leading axis alone"),
        (widths(pair=lambda a, b: (a - b, a + b)), "right values, wrong order"),
        (widths(pair=lambda a, b: (a + b, b - a)), "right up to signs"),
        (projections.fwht, "x itself holds what it held"),
        (lambda x: widths(lambda D: 1.0)(x) / math.sqrt(len(x)), "holds H x without its factor"),
        (written(lambda x: hadamard(len(x)) @ x / len(x) ** 0.5), "that is a D × D array"),
        (pairing(lambda x: (x[::2], x[1::2])), "this is x again"),
        (pairing(lambda x: np.split(x, 2), math.sqrt), "each stage pairs the same rows"),
        (lambda x: x, "this is x again"),
        (lambda x: widths()(x) + 0 + 0 * widths(float)(x), "x itself holds something else"),
        (lambda x: butterflies(x)[:1], "shape (1, 4), and (16, 4) is needed"),
    ],
    "structured_projection": [
        (chain(lambda d: 1.0), "the factor √d is missing: rows"),
        (chain(math.sqrt, (0, 1, 2)), "the order is turned round"),
        (chain(lambda d: 1.0, (0, 1, 2)), "D₃ acts first, and the factor"),
        (chain(math.sqrt, (1, 0)), "a stage is missing"),
        (chain(math.sqrt, (2, 1)), "a stage is missing"),
        (chain(math.sqrt, stage=lambda s, x: s * projections.fwht(x)), "the signs come before H"),
        (
            chain(lambda d: 1.0, stage=lambda s, x: s * projections.fwht(x)),
            "the signs come before H",
        ),
        (
            chain(math.sqrt, (0, 1, 2), lambda s, x: s * projections.fwht(x)),
            "this is Wᵀx",
        ),
        (
            chain(lambda d: 1.0, (0, 1, 2), lambda s, x: s * projections.fwht(x)),
            "this is Wᵀx",
        ),
        (chain(math.sqrt, (2,)), "a stage is missing"),
        (lambda signs, x: 4 * by_fwht(signs[0], by_fwht(signs[1], projections.fwht(x))), "D₃ is"),
        (lambda signs, x: 4 * by_fwht(signs[0], by_fwht(1, by_fwht(signs[2], x))), "D₂ is"),
        (lambda signs, x: 4 * by_fwht(1, by_fwht(signs[1], by_fwht(signs[2], x))), "D₁ is"),
        (lambda signs, x: chain(math.sqrt)(signs, projections.fwht(x)), "three H are enough"),
        (lambda signs, x: signs[0] * chain(math.sqrt, (2, 1))(signs, x), "an H is missing"),
        (lambda signs, x: 4 * by_fwht(signs.prod(axis=0), x), "do not come at once"),
        (chain(math.sqrt, stage=lambda s, x: s * x), "H is missing"),
        (chain(math.sqrt, (1, 1, 1)), "signs of its own"),
        (chain(math.sqrt, stage=lambda s, x: projections.fwht(x)), "the signs are missing"),
        (chain(lambda d: d**1.5), "and √d comes once"),
        (chain(math.sqrt, stage=unscaled), "H has the factor 1/√d"),
        (chain(lambda d: 1.0, stage=unscaled), "H has the factor 1/√d"),
        (chain(float), "by √d, not by d"),
        (lambda signs, x: signs * x, "shape (3, 16), and (16,) is needed"),
    ],
    "simplex_corners": [
        (centred, "the angles are right"),
        (lambda d: unit(centred(d)), "not by that of the whole matrix"),
        (lambda d: simplex_gram(d, -1 / (d - 1)), "these are the cosines themselves"),
        (lambda d: 3 * np.array(root_of_gram(d)), "the angles are right"),
        (lambda d: [unit(row) for row in np.eye(d) - 1 / (d - 1)], "not 1/(d − 1)"),
        (np.eye, "subtract their centre"),
        (lambda d: np.linalg.cholesky(simplex_gram(d, -1 / d)), "d corners, not d + 1"),
        (lambda d: [unit(row) for row in np.eye(d) + 1 / d], "apart, not together"),
        (lambda d: [unit(row) for row in np.eye(d) - 1], "apart, not together"),
        (lambda d: root_of_gram(d + 1), "must give shape (3, 3), got (4, 4)"),
        (lambda d: -np.eye(d)[::-1], "subtract their centre"),
    ],
    "cross_attention": [
        (attends(by_keys, lambda W, logits: logits), "the logits are not scaled"),
        (attends(by_keys, lambda W, logits: logits / W.shape[1]), "by √d, not by d"),
        (attends(by_keys, lambda W, logits: logits / len(W) ** 0.5), "the width of the queries"),
        (attends(by_keys, lambda W, logits: logits / 3**0.5), "not of values"),
        (attends(by_keys, lambda W, logits: logits * W.shape[1] ** 0.5), "do not multiply"),
        (lambda x, y, *Ws: attends(by_keys)(x, y, *Ws[:2], np.eye(y.shape[1])), "not y itself"),
        (lambda x, y, W_q, W_k, W_v: attends(by_keys)(x, y, W_q, W_k, W_k), "means of the keys"),
        (lambda x, y, W_q, W_k, W_v: by_keys(root_d(W_q, x @ W_q @ W_k.T @ y.T)), "the weights:"),
        (lambda x, y, W_q, W_k, W_v: attends(by_keys)(x, y, W_q, W_q, W_v), "the keys take W_k"),
        (lambda x, y, W_q, W_k, W_v: attends(by_keys)(x, y, W_k, W_k, W_v), "queries take W_q"),
        (attends(lambda t: by_keys(t - t.max(axis=0))), "that of a column moves"),
        (attends(lambda t: by_keys(np.where(np.tri(*t.shape) > 0, t, -np.inf))), "no mask here"),
        (
            lambda x, y, W_q, W_k, W_v: by_keys(root_d(W_q, x @ y.T)) @ y @ W_v,
            "products of x and y.",
        ),
        (attends(lambda logits: divided(logits, keepdims=False)), "keepdims=True"),
        (attends(lambda logits: divided(np.minimum(logits, 700))), "cut logits are others"),
        (attends(lambda logits: softmax(logits, axis=0)), "runs over the keys"),
        (attends(by_keys, swap=True), "W_q belongs to the tokens that ask"),
        (attends(by_keys, order=lambda x, y: (x, x, x)), "keys and values come from y"),
        (attends(by_keys, order=lambda x, y: (y, y, y)), "the queries come from x"),
        (attends(by_keys, order=lambda x, y: (y, x, x)), "x and y are swapped"),
        (attends(np.exp), "add up to 1"),
        (attends(lambda logits: np.exp(logits) / np.exp(logits).sum()), "a sum of its own"),
        (attends(lambda logits: logits), "the softmax is missing"),
        (attends(divided), "large logits overflow"),
        (attends(lambda logits: divided(logits, shift=np.max)), "the largest of each row"),
        (lambda *args: attends(by_keys)(*args).T, "shape (3, 5), and (5, 3) is needed"),
    ],
    "decoder_mask": [
        (both(lambda i, j, n: not (j <= i and j < n)), "this is the opposite"),
        (both(lambda i, j, n: j < i and j < n), "a token sees itself"),
        (both(lambda i, j, n: j >= i and j < n), "j ≤ i, not j ≥ i"),
        (both(lambda i, j, n: j > i and j < n), "j ≤ i, not j > i"),
        (both(lambda i, j, n: j <= i + 1 and j < n), "one key ahead"),
        (both(lambda i, j, n: (j <= i and j < n) or j == i), "not for itself either"),
        (both(lambda i, j, n: i <= j and i < n), "transposed"),
        (both(lambda i, j, n: j < n), "must not look ahead"),
        (both(lambda i, j, n: j <= i), "the fillers are seen"),
        (both(lambda i, j, n: j <= i and i < n), "hides keys (columns)"),
        (both(lambda i, j, n: j <= i and i < n and j < n), "the rows of fillers are empty"),
        (both(lambda i, j, n: j <= i and j <= n), "one filler is seen"),
        (both(lambda i, j, n: j <= i and j < n - 1), "the last token is hidden"),
        (
            lambda lengths, L: np.tril(real(lengths, L)[:, None, ::-1] & np.ones((L, 1), bool)),
            "the fillers are at the end",
        ),
        (both(lambda i, j, n: 0.0 if j <= i and j < n else -np.inf), "not numbers to add"),
        (both(lambda i, j, n: j <= i or j < n), "and, not or"),
        (lambda lengths, L: real(lengths, L), "shape (3, 5), and (3, 5, 5) is needed"),
    ],
    "rotary": [
        (turns(lambda L, n: -angles(L, n)), "the other direction"),
        (turns(lambda L, n: np.tile(frequencies(n), (L, 1))), "all rows are turned by one angle"),
        (turns(lambda L, n: np.arange(L)[:, None]), "all pairs are turned by one angle"),
        (turns(lambda L, n: angles(L + 1, n)[1:]), "places count from 0"),
        (turns(lambda L, n: angles(L, n, -1)), "the 2 is missing"),
        (turns(lambda L, n: angles(L, n, -4)), "the width of x, not n/2"),
        (turns(lambda L, n: angles(L, n, 2)), "the exponent of ω is negative"),
        (neighbours, "not neighbours"),
        (added(np.sin, np.cos), "the positions are added"),
        (added(np.cos, np.sin), "the positions are added"),
        (lambda x: x, "nothing is turned"),
        (lambda x: np.roll(by_waves(x), x.shape[1] // 2, axis=1), "have changed places"),
        (turns(angles, lambda a, b, c, s: (a * c, b * c)), "the sines are missing"),
        (
            lambda x: by_waves(x).reshape(len(x), 2, -1).swapaxes(1, 2).reshape(x.shape),
            "wrong order",
        ),
        (half_turned(lambda angle: np.repeat(angle, 2, axis=1)), "tiled, not repeated"),
        (half_turned(lambda angle: np.hstack([angle, angle * 0.0001])), "i runs from 0 to n/2 − 1"),
        (turns(lambda L, n: 2 * np.pi * angles(L, n)), "without a 2π"),
        (lambda x: np.hstack([neighbours(x)[:, ::2], neighbours(x)[:, 1::2]]), "not neighbours"),
        (
            turns(lambda L, n: np.outer(range(L), 1e4 ** (-2 * np.arange(1, 1 + n // 2) / n))),
            "i counts",
        ),
        (
            turns(angles, lambda a, b, c, s: (a * c - b * s, (a * c - b * s) * s + b * c)),
            "overwritten",
        ),
        (turns(angles, lambda a, b, c, s: (a * s - b * c, a * c + b * s)), "cos and sin have"),
        (turns(angles, lambda a, b, c, s: (a * c - b * s, a * s - b * c)), "at p = 0 nothing"),
        (turns(angles, lambda a, b, c, s: (a * c + b * s, a * s + b * c)), "keeps the length"),
        (turns(angles, lambda a, b, c, s: (a * c - b * s, b * c - a * s)), "keeps the length"),
        (lambda x: by_waves(x).T, "shape (8, 5), and (5, 8) is needed"),
    ],
    "causal_by_chunks": [
        (lambda f, g, v, C: np.tril(f @ g.swapaxes(1, 2)) @ v, "the denominator is missing"),
        (lambda f, g, v, C: quotient(f @ (g.swapaxes(1, 2) @ with_one(v))), "is there a mask?"),
        (slipped(mask=lambda w: w), "mask the product"),
        (slipped(early=True, near=0), "mask the product"),
        (slipped(carry=(0, 0)), "carry the state on"),
        (slipped(carry=(1, 0)), "carry z too"),
        (slipped(carry=(0, 1)), "carry S too"),
        (slipped(last=True), "the last chunk alone"),
        (slipped(mask=lambda w: np.tril(np.exp(w))), "no exponential"),
        (
            lambda f, g, v, C: quotient(np.tril(np.exp(f @ g.swapaxes(1, 2))) @ with_one(v)),
            "no exponential",
        ),
        (slipped(of_all=True), "each head has a state of its own"),
        (masked_above, "to the numerator and to the denominator"),
        (lambda f, g, v, C: chunked(f, g, v, C) * (1 + 1e-6), "is an ε added"),
        (prefix_states, "one state is enough"),
        (slipped(near=0), "do not see their own chunk"),
        (slipped(mask=lambda w: np.tril(w, -1)), "row i must see key i too"),
        (slipped(mask=np.triu), "np.triu keeps the later keys"),
        (slipped(early=True), "the chunk counts twice"),
        (slipped(whole=True), "the last, shorter chunk is missing"),
        (slipped(each=lambda x, y: quotient(x) + quotient(y)), "then divide once"),
        (lambda f, g, v, C: chunked(f, g, v, C).swapaxes(0, 1), "shape (10, 3, 2)"),
        (masked_rows, "that is an L × L array"),
    ],
    "merge_states": [
        (merged(lambda own, other, c: np.ones_like(c)), "rescale z before you add"),
        (merged(top=np.minimum), "c is the larger of the two, for"),
        (merged(top=np.add), "not their sum"),
        (but(0, lambda found, a, b: a[0]), "not that of the first"),
        (but(0, lambda found, a, b: b[0]), "not that of the second"),
        (but(0, lambda found, a, b: (a[0] + b[0]) / 2), "not their mean"),
        (but(2, lambda found, a, b: a[1][:, None] * a[2] + b[1][:, None] * b[2]), "not by z"),
        (merged(top=np.logaddexp), "not the log of a sum"),
        (merged(top=lambda a, b: np.full(4, max(a.max(), b.max()))), "one maximum for each"),
        (merged(lambda own, other, c: np.exp(other - c)), "by its own e^{c_own − c}"),
        (merged(lambda own, other, c: np.exp(c - own)), "the sign of the exponent"),
        (merged(divide=2), "add; do not average"),
        (but(2, lambda found, a, b: a[2] + b[2]), "rescale S as you rescale z"),
        (but(2, lambda found, a, b: found[2] / found[1][:, None]), "do not divide by z"),
        (
            but(
                2,
                lambda found, a, b: found[2] + np.where(np.isinf(a[0] + b[0]), np.nan, 0)[:, None],
            ),
            "the empty state must change nothing, and gives NaN",
        ),
        (merged(finite=lambda c: c), "Is it −∞ − (−∞)?"),
        (
            but(1, lambda found, a, b: found[1] + np.isinf(a[0] + b[0])),
            "the empty state must change nothing, and z has changed",
        ),
        (but(0, lambda found, a, b: None), "c is None"),
        (but(1, lambda found, a, b: found[1][:, None]), "z has shape (4, 1)"),
        (lambda a, b: merged()(a, b)[1], "return the three arrays"),
    ],
    "shrunk_recall": [
        (with_factor(lambda r: 1.0), "this is the plain read"),
        (with_factor(shrinkage, lambda a, r: r), "the error at a = 1"),
        (with_factor(shrinkage, lambda a, r: a**2 * r), "the signal shrinks too"),
        (with_factor(shrinkage, lambda a, r: (1 - a) ** 2), "the noise is missing"),
        (lambda n, d: (d / (d + n), n / (d + n)), "n − 1, not n"),
        (lambda n, d: with_factor(shrinkage)(n, d)[::-1], "first the factor"),
        (lambda n, d: d / (d + n - 1), "return two numbers"),
        (with_factor(lambda r: shrinkage(r**0.5)), "no root"),
        (with_factor(lambda r: shrinkage(r**0.5), lambda a, r: 1 - a), "no root"),
        (with_factor(lambda r: 0.0), "another a has less"),
        (with_factor(lambda r: 1 / max(r, 1)), "another a has less"),
        (lambda n, d: (d / (d + n - 1), ((n - 1) / (d + n - 1)) ** 0.5), "no root."),
        (lambda n, d: (d / (d + n - 1), 1.0), "the factor is right, but not the error"),
        (lambda n, d: [d / (d + n - 1)] * 3, "shape (3,), and (2,) is needed"),
    ],
    "smoother_as_attention": [
        (smoothing(twice, width=lambda w: 1.0), "attention divides by √w"),
        (smoothing(twice, width=lambda w: w**0.25), "each of q and k takes w^{1/4}"),
        (smoothing(twice, width=lambda w: math.sqrt(w - 1)), "not √d"),
        (smoothing(twice, width=lambda w: 1 / math.sqrt(w)), "attention divides by √w"),
        (smoothing(twice, width=lambda w: w), "each of q and k takes w^{1/4}"),
        (smoothing(twice, width=lambda w: math.sqrt(2)), "the lesson's, for its width 2"),
        (
            lambda *arguments: [(5 / 6) ** 0.25 * part for part in lifted_whole(*arguments)],
            "√w for the width w = 6 that you chose.",
        ),
        (lambda x, centres, gamma: (x, centres), "these are the points"),
        (smoothing(twice, lambda c, gamma: -2 * gamma * norms(c)), "has half the factor"),
        (smoothing(lambda h: h**-2, lambda c, h: -norms(c) / (2 * h**2)), "no bandwidth h:"),
        (smoothing(lambda h: 1 / h, lambda c, h: -norms(c) / (2 * h)), "no bandwidth h², either"),
        (smoothing(lambda gamma: 2 * gamma**2), ": γ comes once in the product"),
        (smoothing(lambda gamma: 4 * gamma**2), ": 2γ comes once in the product"),
        (smoothing(twice, lambda c, gamma: 0 * norms(c)), "long keys win"),
        (smoothing(twice, lambda c, gamma: gamma * norms(c)), "is subtracted"),
        (smoothing(lambda gamma: gamma), "the cross term"),
        (smoothing(twice, lambda c, gamma: -norms(c)), "has the factor γ, too"),
        (smoothing(1.0, lambda c, gamma: -norms(c) / 2), "must depend on γ"),
        (smoothing(lambda gamma: gamma, lambda c, gamma: -gamma * norms(c) / 2), "γ is halved"),
        (smoothing(twice, lambda c, gamma: -gamma * np.sqrt(norms(c))), "is squared"),
        (smoothing(lambda g: -2 * g, lambda c, gamma: gamma * norms(c)), "far centres win"),
        (lambda x, centres, gamma: x @ centres.T, "return q and k, two arrays, got a ndarray"),
        (lambda x, centres, gamma: (x.T, centres.T), "got (4, 4) and (4, 6)"),
        (lambda x, centres, gamma: (x, np.hstack([centres, centres])), "got (4, 4) and (6, 8)"),
        (lambda x, centres, gamma: (np.inf * x, centres), "NaN or infinity"),
    ],
    "trigonometric_attention": [
        (linear(scale=(0, 0)), "the scale is missing"),
        (linear(scale=(-0.5, -0.5)), "not d^{−1/2}"),
        (linear(scale=(-0.25, 0)), "k needs the factor"),
        (linear(scale=(0, -0.25)), "q needs the factor"),
        (linear(turn=2 * math.pi), "a 2π inside"),
        (linear(norm=0.0), "of keys, it does not cancel"),
        (linear(norm=-0.5), "that of other features"),
        (linear(norm=1.0), "the norm enters halved"),
        (linear(parts=(np.cos,)), "the sines are missing"),
        (linear(parts=(np.sin,)), "the cosines are missing"),
        (linear(parts=(lambda wave: np.cos(wave) + np.sin(wave),)), "do not add them"),
        (linear(scale=(-0.5, 0)), "all of the scale is on q"),
        (linear(scale=(0, -0.5)), "all of the scale is on k"),
        (linear(scale=(0.25, 0.25)), "do not multiply"),
        (linear(norm=0.5 * math.sqrt(6)), "that of the scaled key"),
        (weighed_waves(lambda r: np.exp(r / 2)), "the norm enters squared"),
        (weighed_waves(lambda r: np.exp(r**2 / 2), -1), "the sines have a plus"),
        (lambda *data: attention.favor_attention(*data), "these are positive features"),
        (linear(divide=lambda r, c, v: r @ (c.T @ v) / (r @ c.sum(0)).sum()), "of its own"),
        (linear(divide=lambda r, c, v: r @ (c.T @ v) / abs(r @ c.sum(0))[:, None]), "negative one"),
        (linear(divide=lambda r, c, v: r @ (c.T @ v) / (r @ c.sum(0) + 1e-6)[:, None]), "an ε"),
        (linear(divide=lambda r, c, v: by_its_sum(r @ c.T) @ v), "that is an L × L array"),
        (linear(divide=lambda r, c, v: r @ (c.T @ v)), "by the sum of its weights"),
        (linear(divide=lambda r, c, v: r @ (c.T @ v) / len(v)), "not by the number of keys"),
        (linear(divide=by_column), "not over queries"),
        (lambda q, k, v, W: attention.uniform_attention(q, k, v), "this is mean(V)"),
        (lambda q, k, v, W: attention.softmax_attention(q, k, v), "this is exact attention"),
        (lambda q, k, v, W: linear()(q, k, v, W).T, "shape (2, 5), and (5, 2) is needed"),
    ],
    "nearer_keys": [
        (lambda q, k: k, "they can come nearer"),
        (lambda q, k: q.mean(axis=0) - k.mean(axis=0), "this is the shift"),
        (lambda q, k: (q - q.mean(axis=0), k - k.mean(axis=0)), "return the keys alone"),
        (lambda q, k: k - k.mean(axis=0), "the queries are not around 0"),
        (lambda q, k: k + q.mean(axis=0), "where is the mean of the keys"),
        (lambda q, k: k + k.mean(axis=0) - q.mean(axis=0), "the sign is turned"),
        (lambda q, k: k + q.mean() - k.mean(), "axis 0"),
        (lambda q, k: k + np.median(q, axis=0) - np.median(k, axis=0), "not at the median"),
        (lambda q, k: np.tile(q.mean(axis=0), (len(k), 1)), "attention is uniform now"),
        (lambda q, k: k + q[0] - k[0], "the same attention, but the mean"),
        (lambda q, k: k / 2, "this changes attention"),
        (lambda q, k: (k - k.mean(axis=0)) / k.std() + q.mean(axis=0), "this changes attention"),
        (lambda q, k: q - q.mean(axis=0), "shape (7, 4), and (5, 4) is needed"),
    ],
    "attention_features": [
        (features.positive, "this estimates exp(qᵀk)"),
        (lambda q, W: features.positive(q / math.sqrt(q.shape[1]), W), "their product by √d"),
        (exponential(norm=0), "divide q first, then square"),
        (exponential(norm=0.25), "the scale d^(1/4) enters squared"),
        (exponential(wave=0), "ωᵀq needs the scale d^(1/4), too"),
        (exponential(half=1), "the ½ is missing"),
        (exponential(half=-0.5), "plus is for cos and sin"),
        (exponential(half=0), "the factor exp(−‖x‖²/2) is missing"),
        (lambda q, W: features.hyperbolic(q * q.shape[1] ** -0.25, W), "this is hyperbolic"),
        (exponential(scale=lambda m: 1.0), "must become a mean"),
        (exponential(scale=lambda m: 1 / m), "by √m, not by m"),
        (without_maximum(0), "no maximum is taken out here"),
        (without_maximum(1), "no maximum is taken out here"),
        (without_maximum(None), "no maximum is taken out here"),
        (by_logarithm(lambda waves, squares: waves - np.sqrt(squares) / 2), "enters squared"),
        (by_logarithm(lambda waves, squares: waves - squares.sum() / 2), "a norm of its own"),
        (by_logarithm(lambda waves, squares: 2 * np.pi * waves - squares / 2), "a 2π inside"),
        (lambda q, W: features.trigonometric(q * q.shape[1] ** -0.25, W), "these are cos and sin"),
        (lambda q, W: features.positive(q * q.shape[1] ** 0.25, W), "do not multiply"),
        (lambda q, W: scaled_positive(q, W) + 1e-6, "is an ε added"),
        (lambda q, W: -scaled_positive(q, W), "must not be negative"),
        (lambda q, W: scaled_positive(q, W).T, "4 points give an array of shape (5, 4)"),
    ],
    "log_estimates": [
        (logarithm(plain=True), "not finite at ‖x‖ = 40"),
        (lambda x, y, W: features.positive(x, W) @ features.positive(y, W).T, "its logarithm"),
        (logarithm(shift=lambda m: 0.0), "the mean over the directions, not the sum"),
        (logarithm(shift=lambda m: -2 * math.log(m)), "subtracted twice"),
        (logarithm(shift=lambda m: -math.log(m) / 2), "each of the two φ"),
        (logarithm(half=0), "the factors exp(−‖x‖²/2) and exp(−‖y‖²/2) are missing"),
        (logarithm(half=1), "the ½ is missing"),
        (logarithm(half=-0.5), "plus is for cos and sin"),
        (lambda x, y, W: logarithm()(x, y, W) - largest(x, y, W), "is not added again"),
        (
            lambda x, y, W: logarithm(half=0)(x, y, W) - largest(x, y, W),
            "is not added again",
        ),
        (
            lambda x, y, W: largest(x, y, W) + logarithm(waves=0)(x, y, W) - math.log(len(W)),
            "the largest term alone",
        ),
        (
            lambda x, y, W: (
                ((x @ W.T).mean(1) - norms(x) / 2)[:, None] + ((y @ W.T).mean(1) - norms(y) / 2)
            ),
            "the logarithm of the mean",
        ),
        (lambda x, y, W: x @ y.T, "use W"),
        (lambda x, y, W: x @ y.T - norms(x)[:, None] / 2 - norms(y) / 2, "the Gaussian"),
        (
            lambda x, y, W: logarithm()(*(a * a.shape[1] ** -0.25 for a in (x, y)), W),
            "no d^{−1/4} here",
        ),
        (lambda x, y, W: logarithm()(x, y, W) + norms(x)[:, None] / 2, "one of exp(−‖x‖²/2)"),
        (lambda x, y, W: logarithm()(x, y, W) + norms(y) / 2, "one of exp(−‖x‖²/2)"),
        (
            lambda x, y, W: (
                logarithm(half=0)(x, y, W) - (norms(x)[:, None] ** 0.5 + norms(y) ** 0.5) / 2
            ),
            "‖x‖ enters squared",
        ),
        (
            lambda x, y, W: logarithm(half=1)(x, -y, W) + (norms(x)[:, None] + norms(y)) / 2,
            "a sum, not x − y",
        ),
        (
            lambda x, y, W: logarithm()(x, 0 * y, W) + logarithm()(0 * x, y, W),
            "not a product of sums",
        ),
        (
            lambda x, y, W: np.log(1e-300 + features.positive(x, W) @ features.positive(y, W).T),
            "right at small norms",
        ),
        (lambda x, y, W: logarithm()(x, y, W).T, "shape (4, 3), and (3, 4) is needed"),
    ],
    "features_needed": [
        (three(relative, each=(1, 1, 1)), "these are directions"),
        (three(relative, each=(2, 2, 2)), "one for each direction"),
        (three(relative, each=(2, 1, 1)), "hyperbolic features are two"),
        (three(relative, each=(1, 1, 2)), "trigonometric features are two"),
        (
            three(lambda p, m: (math.cosh(m) - 1, math.exp(p) * -math.expm1(-m), math.cosh(p) - 1)),
            "a known misprint",
        ),
        (three(lambda p, m: relative(m, p)), "have changed places"),
        (absolute, "divide by SM²"),
        (three(lambda p, m: relative(math.sqrt(p), math.sqrt(m))), "enters squared"),
        (three(scaled_by(2, 1, 2)), "the MSE has 1/(2m), not 1/m"),
        (three(scaled_by(0.5, 1, 0.5)), "a factor 2 is missing before sinh²"),
        (three(scaled_by(1, 2, 1)), "positive: the MSE has 1/m"),
        (three(relative, power=1), "ε² is the relative"),
        (three(relative, whole=math.floor), "round up."),
        (three(relative, whole=float), "is a whole number"),
        (three(relative, least=0), "at least one direction"),
        (
            lambda x, y, eps: np.maximum(
                [2, 1, 2], np.ceil(three(relative, whole=float, least=0)(x, y, eps))
            ),
            "then count their features",
        ),
        (three(relative, whole=round), "the nearest number"),
        (three(waves_of(lambda s: 2 * math.sinh(s / 2))), "sinh enters squared"),
        (three(waves_of(lambda s: 2 * math.sinh(s) ** 2)), "sinh takes half"),
        (
            three(one_error(1, lambda p, m: math.exp(p))),
            "positive: e^{‖x+y‖²} − 1: the −1, the square of the mean, is missing",
        ),
        (three(one_error(2, lambda p, m: math.cosh(m) - 1)), "depends on x + y"),
        (three(one_error(0, lambda p, m: math.cosh(p) - 1)), "depends on x − y"),
        (three(one_error(2, lambda p, m: math.expm1(p) / 2)), "not half the error of positive"),
        (lambda x, y, eps: three(relative)(x / 2**0.5, y / 2**0.5, eps), "no d^{−1/4} here"),
        (
            lambda x, y, eps: three(lambda p, m: np.exp(x @ y) * np.array(relative(p, m)))(
                x, y, eps
            ),
            "divide by SM²",
        ),
        (lambda x, y, eps: three(relative)(x, y, 1 / eps), "divide by ε²"),
        (lambda x, y, eps: three(relative)(x, y, eps)[::-1], "the order"),
        (
            lambda x, y, eps: np.maximum(
                1, np.ceil(three(relative, whole=float, least=0)(x, y, eps))
            ),
            "then count their features",
        ),
        (lambda x, y, eps: from_theory(x, y, eps)[::2] + from_theory(x, y, eps)[1:2], "the order"),
        (lambda x, y, eps: from_theory(x, y, eps)[1], "shape (14,), and (14, 3) is needed"),
    ],
    "masked_linear_attention": [
        (attends_masked(unmasked), "the mask does nothing"),
        (attends_masked(below=unmasked), "still in the denominator"),
        (attends_masked(above=unmasked), "still in the numerator"),
        (
            attends_masked(below=lambda weights, mask: weights**0 * mask),
            "not by the number of keys",
        ),
        (
            attends_masked(below=lambda weights, mask: np.eye(1)),
            "the denominator φ(Q)(φ(K)ᵀ1) is missing",
        ),
        (attends_masked(lambda weights, mask: weights * ~mask), "the mask is turned round"),
        (attends_masked(lambda weights, mask: np.exp(weights) * mask), "no exponential here"),
        (attends_masked(plus(1e-4)), "close, but not equal"),
        (keys_first(seen_alone, seen_alone, eps=1e-20), "small features give another result"),
        (hidden_subtracted, "right, until 1e+20 stands at a hidden key"),
        (keys_first(), "right, until nan stands at a hidden key in φ(K)"),
        (keys_first(of_v=np.multiply), "right, until nan stands at a hidden key in φ(K)"),
        (
            keys_first(lambda phi_k, mask: np.where(mask, phi_k, 0)),
            "right, until nan stands at a hidden key in v",
        ),
        (
            keys_first(
                lambda phi_k, mask: np.where(np.isnan(phi_k), 0, phi_k) * mask,
                lambda v, mask: np.where(mask, v, 0),
            ),
            "right, until inf stands at a hidden key in φ(K)",
        ),
        (
            lambda *data: attends_masked()(*data) / math.sqrt(data[0].shape[1]),
            "no scale here",
        ),
        (
            lambda phi_q, phi_k, v, mask: (
                phi_q @ (phi_k[mask].T @ v[mask]) / (phi_q @ phi_k[mask].sum(axis=0)).sum()
            ),
            "a denominator of its own",
        ),
        (
            lambda phi_q, phi_k, v, mask: (
                phi_q @ (phi_k[mask].T @ v[mask]) / phi_q.sum(axis=1)[:, None] / mask.sum()
            ),
            "the features of the keys are missing",
        ),
        (
            lambda phi_q, phi_k, v, mask: attends_masked()(phi_q, phi_k[mask], v[mask], mask[mask]),
            "that is an L × L array",
        ),
        (lambda *arguments: attention_loop(*arguments)[:-1], "and (5, 2) is needed"),
        (attends_masked(lambda weights, mask: weights * np.nan), "NaN or infinity"),
    ],
    "log_denominator": [
        (lambda g, h: np.log(np.exp(g) @ np.exp(h).sum(axis=0)), "an exponential over- or"),
        (one_maximum, "an exponential over- or"),
        (stable_logs(np.zeros_like), "add the largest a back"),
        (stable_logs(count=np.ones_like), "z is missing"),
        (stable_logs(back=np.zeros_like), "c is missing"),
        (
            lambda g, h: (
                stable_logs(count=np.ones_like)(g, h) + np.log(np.exp(h - h.max(axis=0)).sum())
            ),
            "inside the sum over features",
        ),
        (lambda g, h: logsumexp(g, axis=1) + logsumexp(h), "g and h share the feature f"),
        (lambda g, h: logsumexp(g[:, None] + h), "over j and f alone"),
        (lambda g, h: logsumexp(g[:, None] + h, axis=2), "sum over the keys, too"),
        (lambda g, h: logsumexp(g[:, None] + h, axis=1), "sum over the features, too"),
        (stable_logs(last=lambda total: np.log(total + 1e-6)), "is an ε added"),
        (lambda g, h: (g[:, None] + h).max(axis=(1, 2)), "the largest term is not the sum"),
        (minus_log(len), "over the keys, not a mean"),
        (minus_log(lambda h: h.shape[1]), "over the features, not a mean"),
        (minus_log(np.size), "sums, not means"),
        (stable_logs(np.zeros_like, last=lambda total: total), "the logarithm is asked for"),
        (lambda g, h: np.exp(g) @ np.exp(h).sum(axis=0), "the logarithm is asked for"),
        (lambda g, h: log_of_feature_sums(g, h)[:, None], "shape (4, 1), and (4,) is needed"),
        (
            lambda g, h: logsumexp(
                [logsumexp(g[:, None, f] + h[:, f], 1) for f in range(g.shape[1])], 0
            ),
            "that is an L × L array",
        ),
    ],
    "directions_for_attention": [
        (pairwise(power=0.0), "scaled by d^{−1/4} first"),
        (pairwise(power=-0.5), "the product has d^{−1/2}"),
        (pairwise(sign=-1), "not q' − k'"),
        (pairwise(lambda s: np.exp(s).mean()), "the −1, the square of the mean, is missing"),
        (pairwise(lambda s: math.expm1(s.mean())), "the mean of the exponentials"),
        (pairwise(lambda s: np.expm1(s / 2).mean()), "without the ½"),
        (pairwise(lambda s: np.expm1(s**0.5).mean()), "the norm enters squared"),
        (pairwise(lambda s: np.expm1(s).max()), "not the max"),
        (pairwise(lambda s: np.expm1(s).sum()), "not the sum"),
        (lambda q, k, target: pairwise()(q, k, target**2), "do not square it"),
        (pairwise(whole=math.floor), "round up."),
        (pairwise(whole=float), "is a whole number"),
        (pairwise(least=0), "at least one direction"),
        (pairwise(whole=math.floor, least=0), "round up."),
        (pairwise(whole=round), "the nearest number"),
        (lambda q, k, target: pairwise()(q, k, 1 / target), "a small one needs more"),
        (lambda q, k, target: pairwise()(q, k, target**0.5), "no root"),
        (pairwise(lambda s: np.median(np.expm1(s))), "not the median"),
        (pairwise(lambda s: np.expm1(np.diag(s)).mean()), "not q_i with k_i alone"),
        (pairwise(lambda s: np.expm1(s).mean(axis=1).max()), "the worst query"),
        (lambda q, k, target: pairwise(power=0)(q / q.shape[1] ** 0.5, k, target), "share"),
        (lambda q, k, target: pairwise(power=0)(q, k / k.shape[1] ** 0.5, target), "share"),
        (pairwise(lambda s: (np.cosh(s) - 1).mean()), "of hyperbolic features"),
        (pairwise(lambda s: (np.cosh(s) - 1).mean(), sign=-1), "of trigonometric features"),
        (
            lambda q, k, target: pairwise()(q.mean(0)[None], k.mean(0)[None], target),
            "not of the queries and of the keys",
        ),
        (without_product, "has the product"),
        (of_absolute_error, "over the square of the weight"),
    ],
    "performer_layer": [
        (layer_of(lambda d, n: n**-0.25), "the scale is that of a head"),
        (layer_of(lambda d, n: 1.0), "scaled by d^{−1/4} first"),
        (layer_of(lambda d, n: d**-0.5), "the product has d^{−1/2}"),
        (layer_of(key_norm=0.0), "of keys it matters"),
        (layer_of(key_norm=1.0), "the norm enters halved"),
        (layer_of(key_norm=-0.5), "is for cos and sin"),
        (layer_of(divide=lambda A: A), "the denominator is missing"),
        (layer_of(divide=lambda A: A / A.sum(axis=0)), "not over queries"),
        (summed_over_heads, "a denominator of its own"),
        (layer_of(weigh=lambda q, k: np.ones((len(q), len(q)))), "this is mean(V)"),
        (exact_layer, "this is exact attention"),
        (layer_of(cut=lambda whole, heads: whole), "stand side by side"),
        (layer_of(cut=interleaved), "stand side by side"),
        (heads_first, "move the heads back"),
        (lambda *arguments: layer_of()(*arguments)[:-1], "(5, 15) is needed"),
        (layer_of(), "that is an L × L array"),
        (lambda *data: 2 * head_by_head(*data), ", expected "),
        (unmoved(), "(L, n) is (L, heads, d) first"),
        (unmoved(transformer.join_heads), "(L, n) is (L, heads, d) first"),
        (layer_of(divide=lambda A: A, query_norm=0.5), "the denominator is missing"),
        (layer_of(divide=lambda A: A / len(A), query_norm=0.5), "not by the number of keys"),
        (layer_of(divide=lambda A: by_its_sum(np.tril(A))), "this is causal"),
        (one_sided(-0.5, 0), "all of the scale is on q"),
        (one_sided(0, -0.5), "all of the scale is on k"),
        (one_sided(-0.25, 0), "k needs the factor"),
        (one_sided(0, -0.25), "q needs the factor"),
        (lambda x, *a: layer_of(lambda d, n: len(a[3]) ** -0.25)(x, *a), "not of m"),
        (
            lambda x, *a: layer_of(key_norm=0.5 * math.sqrt(x.shape[1] / a[-1]))(x, *a),
            "‖k‖² is that of the scaled key",
        ),
        (lambda x, W_q, W_k, *a: layer_of()(x, W_k, W_q, *a), "have changed places"),
        (layer_of(weigh=lambda q, k: q @ (k / k.max(axis=0))), "a maximum for each key"),
        (lambda x, W_q, W_k, W_v, *a: layer_of()(x, W_q, W_k, np.eye(len(W_v)), *a), "not x"),
        (lambda *a: layer_of()(*a[:4], np.vstack([a[4], -a[4]]), a[5]), "hyperbolic features"),
        (layer_of(divide=lambda A: A / (A.sum(axis=1, keepdims=True) + 1e-6)), "an ε added"),
    ],
    "centred_estimates": [
        (with_rest(lambda x, y, b, c: 0), "what is left of xᵀy"),
        (with_rest(lambda x, y, b, c: y @ b), "it cancels in a ratio"),
        (with_rest(lambda x, y, b, c: ((x - b) @ c)[:, None]), "not even cancel"),
        (with_rest(lambda x, y, b, c: y @ b + (x @ c)[:, None]), "counted twice"),
        (with_rest(lambda x, y, b, c: y @ b + (x @ c)[:, None] + b @ c), "with a minus"),
        (with_rest(lambda x, y, b, c: y @ c + (x @ b)[:, None] - b @ c), "b multiplies y"),
        (
            lambda x, y, b, c, W: (
                with_rest(lambda *_: 0)(x, y, b, c, W) + np.exp(y @ b + ((x - b) @ c)[:, None])
            ),
            "do not add them",
        ),
        (
            lambda *arguments: centred_products(*arguments) * math.sqrt(len(arguments[-1])),
            "1/m together",
        ),
        (lambda x, y, b, c, W: centred_products(x, y, b, 0 * c, W), "c is not used"),
        (lambda x, y, b, c, W: centred_products(x, y, 0 * b, c, W), "b is not used"),
        (halves_of_norms(-0.5), "plus is for cos"),
        (with_rest(lambda x, y, b, c: (y - c) @ b + ((x - b) @ c)[:, None]), "left out"),
        (with_rest(lambda x, y, b, c: -(y @ b) - ((x - b) @ c)[:, None]), "turned round"),
        (
            lambda x, y, b, c, W: centred_products(
                x, y, c, b, W, lambda *_: y @ b + ((x - b) @ c)[:, None]
            ),
            "b belongs to x",
        ),
        (
            lambda x, y, b, c, W: centred_products(
                x, y, -b, -c, W, lambda *_: y @ b + ((x - b) @ c)[:, None]
            ),
            "do not add them",
        ),
        (lambda x, y, b, c, W: centred_products(x, y, 0 * b, 0 * c, W), "are not used"),
        (lambda *arguments: len(arguments[-1]) * centred_products(*arguments), "not a sum: 1/m"),
        (lambda *arguments: centred_products(*arguments) / len(arguments[-1]), "1/m together"),
        (lambda x, y, b, c, W: np.exp(x @ y.T), "this is exact"),
        (halves_of_norms(0.0), "are missing"),
        (halves_of_norms(1.0), "the ½ is missing"),
    ],
    "less_biased": [
        (combined(1, 0, 0), "is β/(2m), not 0"),
        (combined(0, 0.5, 0.5), "the bias of one half"),
        (combined(0, 1, 0), "half of the directions is not used"),
        (combined(0, 0, 1), "half of the directions is not used"),
        (combined(-1, 1, 1), "turned round"),
        (combined(2, -1, -1), "halve the sum"),
        (combined(1, -0.5, -0.5), "this is the bias alone"),
        (combined(-1, 0.5, 0.5), "this is the bias alone"),
        (combined(2, -1, 0), "one alone adds noise"),
        (combined(2, 0, -1), "one alone adds noise"),
        (lambda attend, W: 2 * attend(W) - attend(W[::2]), "one alone adds noise"),
        (combined(-1, 2, 0), "turned round"),
        (combined(0, 1, 1), "must add up to 1"),
        (combined(4, -1, -1), "must add up to 1"),
    ],
    "smallest_chunk": [
        (hiding(count=lambda L, C: L // C), "round up"),
        (hiding(count=lambda L, C: L / C), "round up"),
        (hiding(late=lambda a, b: a >= b), "equal is enough"),
        (hiding(grow=lambda C: C + 1), "powers of two only"),
        (lambda L, n, a, w: 2 ** math.ceil(math.log2(L)), "the smallest chunk"),
        (lambda L, n, a, w: min(L, hiding()(L, n, a, w)), "also beyond L"),
        (
            lambda L, n, a, w: min(2 ** int(math.log2(L)), hiding()(L, n, a, w)),
            "may be beyond L",
        ),
        (
            lambda L, n, a, w: 2 ** max(0, math.ceil(math.log2(L * n * a / w))),
            "the number of chunks is whole",
        ),
        (hiding(count=lambda L, C: C), "there are fewer of them"),
        (lambda L, n, a, w: hiding()(L, 1, a, w), "not one"),
        (lambda L, *a: math.ceil(L / hiding()(L, *a)), "this is the number of chunks"),
        (lambda *a: math.log2(hiding()(*a)), "this is the exponent"),
        (lambda *a: 2 * hiding()(*a), "the half of it is enough"),
        (lambda *a: max(1, hiding()(*a) // 2), "one step too early"),
        (lambda *a: max(2, hiding()(*a)), "the powers start with 1"),
        (lambda L, n, a, w: hiding()(L, n, a, 2 * w), "expected"),
    ],
    "bounded": [
        (lambda xp, x: x / xp.max(xp.abs(x), axis=-1, keepdims=True), "gives 0/0"),
        (
            lambda xp, x: x / xp.where((s := xp.max(x, axis=1)) == 0, xp.ones_like(s), s)[:, None],
            "take xp.abs first",
        ),
        (over_largest(lambda xp, x: xp.max(xp.abs(x), axis=-1)), "keepdims=True keeps (n, 1)"),
        (
            lambda xp, x: x / (xp.max(xp.abs(x), axis=-1, keepdims=True) + 1e-8),
            "an ε changes small rows",
        ),
        (
            lambda xp, x: x / (xp.max(xp.abs(x), axis=-1, keepdims=True) + 0.1),
            "an ε changes small rows",
        ),
        (lambda xp, x: x / xp.max(xp.abs(x)), "by its own largest"),
        (
            over_largest(lambda xp, x: xp.max(xp.abs(x), axis=0, keepdims=True)),
            "goes along a row",
        ),
        (
            over_largest(lambda xp, x: xp.sqrt(xp.sum(x * x, axis=-1, keepdims=True))),
            "this is the length of the row",
        ),
        (over_largest(lambda xp, x: xp.sum(xp.abs(x), axis=-1, keepdims=True)), "not sum"),
        (lambda xp, x: abs(over_largest()(xp, x)), "the signs are to stay"),
        (
            lambda xp, x: x / xp.clip(xp.max(xp.abs(x), axis=-1, keepdims=True), 1e-2, None),
            "changes small rows",
        ),
        (
            lambda xp, x: x / xp.clip(xp.max(xp.abs(x), axis=-1, keepdims=True), 1, None),
            "rows below 1",
        ),
        (lambda xp, x: xp.max(xp.abs(x), axis=-1, keepdims=True), "the rows over their"),
        (lambda xp, x: over_largest()(xp, x)[:-1], "and (5, 3) is needed"),
        (by_loop, "a loop over rows launches"),
        (by_row_number, "each row launches kernels"),
        (over_largest(lambda xp, x: abs(x).max(axis=-1, keepdims=True)), "has x.max: use xp's"),
        (
            over_largest(
                lambda xp, x: xp.max(x, axis=1, keepdims=True) - xp.min(x, axis=1, keepdims=True)
            ),
            "not max x − min x",
        ),
        (over_largest(lambda xp, x: abs(xp.max(x, axis=1, keepdims=True))), "xp.abs comes first"),
        (lambda xp, x: over_largest()(xp, np.asarray(x)), "a NumPy function on an array of xp"),
        (
            over_largest(lambda xp, x: np.maximum.reduce(np.abs(x), axis=1, keepdims=True)),
            "a NumPy function on an array of xp",
        ),
        (by_mask, "a mask as an index"),
        (with_ones_at(lambda xp, size: xp.nonzero(size == 0)), "how many xp.nonzero finds"),
        (with_ones_at(lambda xp, size: xp.where(size == 0)), "how many xp.where finds"),
        (with_ones_at(lambda xp, size: xp.argwhere(size == 0)[:, 0]), "how many xp.argwhere finds"),
        (with_ones_at(lambda xp, size: xp.flatnonzero(size == 0)), "how many xp.flatnonzero finds"),
        (
            with_ones_at(lambda xp, size: xp.extract(size == 0, xp.arange(len(size)))),
            "how many xp.extract finds",
        ),
        (
            with_ones_at(lambda xp, size: xp.compress(size == 0, xp.arange(len(size)))),
            "how many xp.compress finds",
        ),
        (
            lambda xp, x: (xp.unique_values(x), over_largest()(xp, x))[1],
            "how many xp.unique_values finds",
        ),
        (but_all_zeros(lambda xp, x: xp.allclose(x, 0)), "xp.allclose hands Python a bool"),
        (
            but_all_zeros(lambda xp, x: xp.array_equal(x, 0 * x)),
            "xp.array_equal hands Python a bool",
        ),
        (
            lambda xp, x: (math.exp(-xp.unstack(x, axis=0)[1][0]), over_largest()(xp, x))[1],
            "`float` reads",
        ),
        (by_if, "look at a value"),
        (by_float, "`float` reads"),
        (lambda xp, x: over_largest()(np, x), "a NumPy function on an array of xp"),
        (lambda xp, x: (f"{x}", over_largest()(xp, x))[1], "printing reads"),
        (
            lambda xp, x: (xp.max(x).item(), over_largest()(xp, x))[1],
            "`.item()` reads",
        ),
        (
            lambda xp, x: over_largest()(np, getattr(x, "data", x) if xp is not np else x),
            "the result left the device",
        ),
    ],
    "decoding_roof": [
        (lambda *a: decoded()(*a)[0], "return two numbers"),
        (lambda *a: decoded()(*a)[::-1], "first the seconds"),
        (decoded(fold=lambda x, y: x + y), "not the sum"),
        (decoded(fold=min), "not the faster"),
        (decoded(S=1), "read and written"),
        (decoded(W=0), "W is read, too"),
        (lambda h, *a: decoded(W=h)(h, *a), "the same for all heads"),
        (decoded(W=2), "W is only read"),
        (decoded(bytes_of=lambda b: 1), "`itemsize` bytes"),
        (decoded(project=2), "two projections"),
        (decoded(project=2, state=3.5), "multiply, add"),
        (lambda heads, *a: decoded()(1, *a), "all heads count"),
        (decoded(state=4), "scale, multiply, add"),
        (decoded(state=6), "and the product with S two"),
        (lambda h, m, d, e, *a: decoded()(h, m, e, d, *a), "d and e have changed places"),
        (decoded(project=0, state=9), "a projection has 2md FLOPs"),
        (decoded(other=lambda h, m, d, e: 2 * m * e - 2 * h * m * e), "each head has a state"),
        (decoded(other=lambda h, m, d, e: 2 * h * (d + e)), "q, k and v are a few numbers"),
        (decoded(other=lambda h, m, d, e: 4 * h * m), "c and z have m entries"),
        (decoded(intensity=lambda flops, moved, P, B: P / B), "the ratio of the device"),
        (decoded(state=3), "the product with S is missing"),
        (decoded(state=2), "the update of S is missing"),
        (lambda *a: (decoded()(*a)[0], 1 / decoded()(*a)[1]), "not bytes for a FLOP"),
        (decoded(fold=lambda x, y: x), "the memory sets a bound"),
        (decoded(fold=lambda x, y: y), "the arithmetic sets a bound"),
    ],
    "counterexample": [
        (lambda d: (np.eye(d)[0], -np.eye(d)[0]), "too large, and too small is asked for"),
        (lambda d: np.zeros((2, d)), "every draw is exact"),
        (lambda d: (np.eye(d)[0], np.zeros(d)), "the formulas agree"),
        (lambda d: np.ones((2, d)) * 1.1, "a length is above 1"),
        (turned_pair(0.0), "less than ¼ apart"),
        (turned_pair(0.05), "less than ¼ apart"),
        (lambda d: np.eye(d)[[0, 0]] * [[1], [0.4]], "bring y nearer to x"),
        (lambda d: np.eye(d)[[0, 0]] * [[0.3], [0.05]], "or make both longer"),
        (lambda d: np.eye(d)[0], "two vectors of width 1"),
        (lambda d: np.full((2, d), np.nan), "NaN or infinity"),
    ],
    "repaired_attention": [
        (listing(0.5, 1, 0), "all three errors are still there"),
        (listing(0.5, 1), "two errors are still there: the scale"),
        (listing(0.5, axis=0), "two errors are still there: the scale"),
        (listing(sign=1, axis=0), "two errors are still there: the second half"),
        (listing(0.5), "one error is still there: the scale"),
        (listing(sign=1), "one error is still there: the second half"),
        (listing(axis=0), "one error is still there: each query"),
        (listing(norm=0.0), "is right as printed"),
        (listing(norm=0.5), "the norm had the right sign"),
        (listing(0.0), "the scale is gone"),
        (listing(-0.25), "do not multiply"),
        (listing(norm=-1.0), "the ½ of the norm was right"),
        (listing(0.5, of_k=0.0), "share the scale"),
        (listing(0.0, of_k=0.5), "share the scale"),
        (listing(divide=np.sum), "not by that of all"),
        (listing(divide=lambda A: 1.0), "was right: keep it"),
        (listing(halves=sum), "keep both halves"),
        (
            lambda q, k, v, W: softmax(q @ k.T / math.sqrt(q.shape[1]), 1) @ v,
            "this is exact attention",
        ),
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


def scribbling(answer):
    """`answer`, which uses its arguments as scratch once it is done."""

    def call(*arguments):
        result = copy.deepcopy(answer(*arguments))
        for array in [x for a in arguments for x in (a if isinstance(a, tuple) else (a,))]:
            if isinstance(array, np.ndarray):
                array[...] = 7
        return result

    return call


@pytest.mark.parametrize("name", sorted({*CHECKS} - {"walsh_hadamard"}))  # that one is in place
def test_an_answer_may_use_its_arguments_as_scratch(name, capsys):
    getattr(checks, name)(scribbling(RIGHT[name][0]))
    assert capsys.readouterr().out == f"{name}: right.\n"


IN_A_NOTEBOOK = {
    "def phi(x):\n    return x**2\nchecks.quadratic_features(phi)": (
        "quadratic_features: only the squares x_i² are there: the products x_i x_j are missing."
    ),
    "def phi(x):\n    raise NotImplementedError()\nchecks.quadratic_features(phi)": (
        "quadratic_features: write the answer in place of `raise NotImplementedError()`."
    ),
    "def halve(x):\n    return x / tow  # typed badly\ndef phi(x):\n    return halve(x) ** 2": None,
    "checks.quadratic_features(phi)": (
        "quadratic_features: the answer raised NameError: name 'tow' is not defined, in the line "
        "`return x / tow  # typed badly`."
    ),
    "checks.quadratic_features(lambda x: np.linalg.inv(x))": (
        "quadratic_features: the answer raised LinAlgError: Last 2 dimensions of the array must be "
        "square, in the line `checks.quadratic_features(lambda x: np.linalg.inv(x))`."
    ),
    "checks.quadratic_features(lambda x: x / 0)": (  # and NumPy's warning is not shown
        "quadratic_features: the result holds NaN or infinity."
    ),
    "checks.quadratic_features(3)": (
        "quadratic_features: expected a function, got 3: give its name."
    ),
    "checks.quadratic_features(lambda x: 1 + np.zeros((len(x), 1)) * x[0, 0])": (
        "quadratic_features: found 1 at (0, 3), expected 14.92."
    ),
}


def test_a_notebook_shows_a_hint_in_one_line_and_no_line_of_a_check():
    cells = [new_code_cell("import numpy as np\nfrom performer_course import checks")]
    cells += [new_code_cell(source) for source in IN_A_NOTEBOOK]
    nb = new_notebook(cells=cells)
    NotebookClient(
        nb, allow_errors=True, resources={"metadata": {"path": str(NOTEBOOKS)}}
    ).execute()
    shown = [
        line
        for cell in nb.cells
        for output in cell.outputs
        for line in output.get("traceback", ["no error"])
    ]
    assert shown == [f"Hint: {hint}" for hint in IN_A_NOTEBOOK.values() if hint]


@pytest.mark.parametrize("name", CHECKS)
def test_an_answer_that_returns_nothing_is_told_so(name):
    with pytest.raises(checks.Hint, match="None"):
        getattr(checks, name)(lambda *arguments: None)


@pytest.mark.parametrize("name", CHECKS)
def test_an_answer_that_is_no_number_is_told_so(name):
    with pytest.raises(checks.Hint):
        getattr(checks, name)(lambda *arguments: {"answer": 1})


@pytest.mark.parametrize("shape", [(), (0,), (1,), (4,), (4, 5), (3, 3), (2, 3, 4)])
@pytest.mark.parametrize("name", CHECKS)
def test_an_answer_of_the_wrong_shape_gets_a_hint(name, shape):
    with pytest.raises(checks.Hint):
        getattr(checks, name)(lambda *arguments: np.ones(shape))


def test_every_check_has_right_answers_and_at_least_three_slips():
    assert sorted(RIGHT) == sorted(WRONG) == sorted(CHECKS)
    assert min(len(slips) for slips in WRONG.values()) >= 3
