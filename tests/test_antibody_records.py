"""The tools that record lesson 17, and what they recorded, held to the lesson's own functions."""

import ast
import csv

import numpy as np
import pytest

from performer_course import antibody, attention, data
from tests.real_model import needs_model, real_weights
from tools.notebooks import NOTEBOOKS, read
from tools.record import anatomy, curve, shared


@pytest.fixture(scope="module")
def lesson():
    return shared.lesson_17()


def heads(*lengths, d=4, seed=0):
    """q, k, v of every head on chains of these lengths: (8, 8, L, d) each."""
    rng = np.random.default_rng(seed)
    return [tuple(rng.normal(size=(3, 8, 8, L, d))) for L in lengths]


def rows(name):
    with open(data.FOLDER / f"antibody_{name}.csv", encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def recorded(way, features=0, passes="2"):
    found = [
        float(row["perplexity"])
        for row in rows("curve")
        if (row["way"], row["features"], row["passes"]) == (way, str(features), passes)
    ]
    assert found, (way, features)
    return np.array(found)


# What the tools compute


def test_the_tools_take_from_the_lesson_what_it_defines_and_no_setting():
    """Such as the precision of JAX, by which they would train otherwise than they say."""
    cells = [
        c
        for c in read(NOTEBOOKS / "17_move_a_real_model.py").cells
        if "ways" in c.metadata.get("tags", ())
    ]
    assert len(cells) == 4
    allowed = ast.Import, ast.ImportFrom, ast.FunctionDef, ast.Assign
    for cell in cells:
        assert all(isinstance(part, allowed) for part in ast.parse(cell.source).body), cell.source


@pytest.mark.parametrize("lengths", [[25] * 5, [20, 30] * 12])
def test_an_error_over_chains_is_that_of_a_mean_whose_chains_are_drawn(lengths):
    """Residues share an offset of their chain: the error, against the spread of many means."""
    rng, chain = np.random.default_rng(1), np.repeat(np.arange(len(lengths)), lengths)
    means, errors = [], []
    for _ in range(4000):
        values = rng.normal(size=len(lengths))[chain] + rng.normal(size=len(chain))
        means.append(values.mean())
        errors.append(shared.over_chains(values, chain))
    spread, found = np.std(means), np.sqrt(np.mean(np.square(errors)))
    assert abs(found / spread - 1) < 4 * (0.5 / 4000) ** 0.5
    alone = (2 / len(chain)) ** 0.5  # as if residues were independent
    assert found > 3 * alone


def test_weights_by_place_are_means_over_the_chains_that_reach_there():
    chains = heads(3, 5)
    found = curve.by_place(chains)
    eye = [np.broadcast_to(np.eye(L), (8, 8, L, L)) for L in (3, 5)]
    A = [attention.softmax_attention(q, k, e) for (q, k, _), e in zip(chains, eye, strict=True)]
    expected = A[1].copy()
    expected[..., :3, :3] = (A[0] + A[1][..., :3, :3]) / 2
    np.testing.assert_allclose(found, expected)


def test_attention_by_place_is_a_fixed_matrix_with_rows_that_sum_to_one(lesson):
    A = np.random.default_rng(2).random((8, 8, 6, 6))
    v = np.random.default_rng(3).normal(size=(8, 4, 3)).astype(np.float32)
    found = lesson["by_place"](A)(5, 9 * v, v, v)
    assert found.dtype == np.float32
    for h in range(8):
        rows = A[5, h, :4, :4] / A[5, h, :4, :4].sum(axis=1, keepdims=True)
        np.testing.assert_allclose(found[h], rows @ v[h], rtol=1e-5, atol=1e-6)


def test_the_share_of_a_window_is_the_best_on_a_grid(lesson):
    chains, near, far = heads(12, 15), lesson["window"](2), lesson["uniform"]
    share = curve.share(near, far, chains)
    assert share.shape == (8, 8)
    grid = np.linspace(0, 1, 201)
    for i, h in ((0, 0), (3, 5), (7, 7)):
        lost = np.zeros(201)
        for given in chains:
            q, k, v = (x[i] for x in given)
            parts = [attend(i, q, k, v)[h] for attend in (near, far, antibody.attend_exact)]
            for n, p in enumerate(grid):
                lost[n] += ((p * parts[0] + (1 - p) * parts[1] - parts[2]) ** 2).sum()
        assert abs(share[i, h] - grid[lost.argmin()]) <= 0.0025 + 1e-9
    assert share.std() > 0.01


@pytest.mark.parametrize(("reach", "best"), [(0.5, 1), (-1.0, 0), (2.0, 0.5)])
def test_a_share_never_leaves_zero_to_one(lesson, reach, best):
    """A near field that goes a part of the way to softmax, or past it, or the other way."""

    def near(i, q, k, v):
        base = far(i, q, k, v)
        return base + reach * (antibody.attend_exact(i, q, k, v) - base)

    far = lesson["uniform"]
    np.testing.assert_allclose(curve.share(near, far, heads(9)), best)


def test_a_mixture_gives_each_head_its_own_share(lesson):
    ((q, k, v),) = heads(7)
    shares = np.random.default_rng(4).random((8, 8))
    near, far = lesson["window"](1), lesson["uniform"]
    found = lesson["mixture"](shares, near, far)(6, q[6], k[6], v[6])
    for h in range(8):
        one = [attend(6, q[6], k[6], v[6])[h] for attend in (near, far)]
        np.testing.assert_allclose(found[h], shares[6, h] * one[0] + (1 - shares[6, h]) * one[1])


def test_centring_changes_no_softmax_and_is_the_shift_of_lesson_14(lesson):
    ((q, k, v),) = heads(7)
    exact = antibody.attend_exact(0, q, k, v)
    np.testing.assert_allclose(lesson["centred"](antibody.attend_exact)(0, q, k, v), exact)
    seen = []
    lesson["centred"](lambda i, q, k, v: seen.append(k))(0, q, k, v)
    shift = q.mean(axis=-2, keepdims=True) + k.mean(axis=-2, keepdims=True)
    np.testing.assert_allclose(seen[0], k - shift)


def test_what_a_head_looks_at_is_counted_as_by_hand():
    ((q, k, v),) = heads(6, seed=5)
    found = anatomy.looks(q, k, v)
    for i, h in ((0, 0), (2, 7)):
        t = q[i, h] @ k[i, h].T / 2
        A = np.exp(t) / np.exp(t).sum(axis=1, keepdims=True)
        z = ((q[i, h][:, None] + k[i, h]) ** 2).sum(axis=-1) / 2  # ‖q' + k'‖², d^{-1/4} each
        near = [[abs(a - b) <= 4 for a in range(6)] for b in range(6)]
        expected = {
            "Var(t)": t.var(axis=1).mean(),
            "keys": np.exp(-(A * np.log(A)).sum(axis=1).mean()),
            "near": A[np.array(near)].sum() / 6,
            "ends": (A[:, 0] + A[:, 5]).mean(),
            "exponent": z.mean(),
            "ln of mean e^exponent": np.log(np.exp(z).mean()),
        }
        for name, value in expected.items():
            np.testing.assert_allclose(found[name][i, h], value)
        s = q[i, h].mean(axis=0) + k[i, h].mean(axis=0)
        z = ((q[i, h][:, None] + k[i, h] - s) ** 2).sum(axis=-1) / 2
        np.testing.assert_allclose(found["exponent, centred"][i, h], z.mean())
    for i, h in np.ndindex(8, 8):
        z = ((q[i, h][:, None] + k[i, h]) ** 2).sum(axis=-1) / 2
        parts = np.sort(np.exp(z), axis=None)[::-1].cumsum()
        assert found["pairs of half"][i, h] == 1 + (parts < parts[-1] / 2).sum()
    relative = np.log1p(attention.relative_variance(q, k, 1))
    np.testing.assert_allclose(found["ln of mean e^exponent"], relative)


def test_the_directions_of_a_head_are_those_that_hold_nine_tenths():
    """Weights of rank two less their mean row: nine tenths in one, or in two, by their sizes."""
    L, d = 40, 4
    rng = np.random.default_rng(6)
    q, k = 0.02 * rng.normal(size=(2, 8, 8, L, d))
    q[..., 1:], k[..., 1:] = 0, 0  # scores of rank one, so small that A is nearly linear in them
    v = rng.normal(size=q.shape)
    found = anatomy.looks(q, k, v)
    assert (found["rank"] == 1).all()
    assert (found["error of rank 32"] < 1e-12).all()
    q, k = rng.normal(size=(2, 8, 8, L, d))
    assert (anatomy.looks(0.02 * q, 0.02 * k, v)["rank"] > 1).all()
    found = anatomy.looks(3 * q, 3 * k, v)
    A = attention.softmax_attention(3 * q[1, 2], 3 * k[1, 2], np.eye(L))
    U, sizes, V = np.linalg.svd(A)
    missed = (U[:, 32:] * sizes[32:] @ V[32:] @ v[1, 2]) ** 2
    null = (v[1, 2].mean(axis=0) - A @ v[1, 2]) ** 2
    np.testing.assert_allclose(found["error of rank 32"][1, 2], missed.sum() / null.sum())


def test_error_and_bias_are_those_of_an_estimator_that_is_known():
    """The exact output plus a constant miss and plus noise of known sizes."""
    chains, draws, noise = heads(6, 7), 3, 0.3

    def way(draw):
        rng = np.random.default_rng([7, draw])

        def attend(i, q, k, v):
            return antibody.attend_exact(i, q, k, v) + 0.1 + noise * rng.normal(size=v.shape)

        return attend

    total, bias = anatomy.errors(way, draws, chains)
    null = sum(
        ((attention.uniform_attention(*c) - attention.softmax_attention(*c)) ** 2).sum((-2, -1))
        for c in chains
    )
    entries = 64 * sum(v[0, 0].size for _, _, v in chains)
    of_mean = noise**2 / draws  # the variance of the mean of the draws
    spread = (4 * 0.01 * of_mean + 2 * of_mean**2 * draws / (draws - 1)) ** 0.5 / entries**0.5
    assert abs((bias * null).sum() / entries - 0.01) < 4 * spread
    spread = (4 * 0.01 * of_mean + 2 * noise**4 / draws) ** 0.5 / entries**0.5
    assert abs((total * null).sum() / entries - 0.01 - noise**2) < 4 * spread
    fixed = [anatomy.errors(lambda draw: lambda i, q, k, v: v, 1, chains) for _ in "ab"]
    np.testing.assert_array_equal(fixed[0][0], fixed[0][1])  # no draw, so all of it is bias


def test_only_the_chosen_heads_are_swapped():
    ((q, k, v),) = heads(5)
    attend = anatomy.swapped([(2, 3), (2, 5)], lambda i, q, k, v: 0 * v)
    for i in (2, 4):
        found, exact = attend(i, q[i], k[i], v[i]), antibody.attend_exact(i, q[i], k[i], v[i])
        for h in range(8):
            expected = 0 if (i, h) in ((2, 3), (2, 5)) else exact[h]
            np.testing.assert_array_equal(found[h], np.broadcast_to(expected, found[h].shape))


# What they recorded


def test_the_curve_has_each_way_beside_softmax_and_mean_v_with_its_errors():
    lines = rows("curve")
    assert {(row["passes"], row["residues"]) for row in lines} == {("2", "702"), ("8", "2729")}
    references = {"exact": "exact", "window": "window and mean(V)"}
    for row in lines:
        assert float(row["error of its ln"]) > 0
        for name, way in references.items():
            other = recorded(way, passes=row["passes"])[0]
            less = np.log(other / float(row["perplexity"]))
            assert abs(float(row[f"ln P less {name}"]) - less) < 3e-4
            assert (float(row[f"error of ln P less {name}"]) > 0) == (row["way"] != way)
    assert abs(recorded("exact")[0] - 1.5806) < 5e-4
    assert abs(recorded("mean(V)")[0] - 10.21) < 0.01
    for way, sizes in {"FAVOR+": 3, "centred": 3, "dense": 5}.items():
        counts = [row["features"] for row in lines if row["way"] == way and row["passes"] == "2"]
        assert len(counts) == 3 * sizes
        assert len(set(counts)) == sizes


def test_64_trained_directions_in_all_heads_stand_below_every_way_that_is_drawn():
    assert recorded("trained", 64)[0] <= 1.75
    assert recorded("trained, two W", 64)[0] <= 1.68
    window = recorded("window and mean(V)")[0]
    assert recorded("trained", 64)[0] < window < recorded("dense", 1024).min()
    assert window < recorded("FAVOR+", 1024).min() / 2
    assert recorded("centred", 1024).max() < 0.75 * recorded("FAVOR+", 1024).min()
    for way, m in (("FAVOR+", 1024), ("dense", 64)):  # less error, and less known
        assert recorded(f"{way} and mean(V)", m)[0] > 1.5 * recorded(way, m)[0]
    assert recorded("window and dense", 64)[0] < 0.97 * window
    for way in ("FAVOR+", "centred", "dense"):
        means = [recorded(way, m).mean() for m in (64, 256, 1024)]
        assert means == sorted(means, reverse=True)


def test_the_anatomy_is_of_64_heads_and_bias_is_a_part_of_the_error():
    lines = rows("anatomy")
    places = [(int(row["block"]), int(row["head"])) for row in lines]
    assert places == list(np.ndindex(8, 8))
    for name in lines[0]:
        if name.endswith(", bias"):
            total, bias = (
                np.array([float(row[n]) for row in lines]) for n in (name[: -len(", bias")], name)
            )
            assert (bias <= total + 1e-9).all()
            assert (bias > 0).all()


@needs_model
@pytest.mark.parametrize(
    ("way", "features"), [("mean(V)", 0), ("window and mean(V)", 0), ("dense", 64), ("centred", 64)]
)
def test_a_row_of_the_curve_is_what_the_model_says_again(way, features, lesson):
    weights = real_weights()
    attend = curve.ways(lesson, curve.calibration(weights))[way, features, 0]
    found = lesson["scores"](weights, attend)
    assert abs(np.exp(-found[0].mean()) / recorded(way, features)[0] - 1) < 5e-3


@needs_model
def test_a_line_of_the_anatomy_is_what_the_model_says_again():
    weights = real_weights()
    chains = [chain for pair in data.antibodies().values() for chain in pair]
    seen = []
    for chain in chains:
        seen.append(antibody.heads(weights, antibody.encode(chain)))
    found = anatomy.means(seen)
    for n, row in enumerate(rows("anatomy")):
        for name in ("Var(t)", "keys", "near", "exponent", "ln of mean e^exponent"):
            mean = found[name].ravel()[n]
            assert abs(mean / float(row[name]) - 1) < 2e-3


def test_a_line_of_a_table_holds_means_their_errors_and_pairs():
    rng, chain = np.random.default_rng(8), np.repeat([0, 1, 2], 5)
    found, other = (np.stack([rng.normal(size=15), rng.random(15) < 0.5, chain]) for _ in "ab")
    line = shared.beside(found, exact=other)
    assert (line["residues"], line["right"]) == ("15", f"{found[1].sum():.0f}")
    assert line["perplexity"] == f"{np.exp(-found[0].mean()):.4f}"
    less = found[0] - other[0]
    assert line["ln P less exact"] == f"{less.mean():.4f}"
    errors = [f"{shared.over_chains(x, chain):.4f}" for x in (found[0], less)]
    assert [line["error of its ln"], line["error of ln P less exact"]] == errors


def test_heads_are_swapped_in_the_orders_that_calibration_gives():
    rng = np.random.default_rng(9)
    error, variance = rng.random((2, 8, 8))
    found = anatomy.orders(error, variance)
    assert len(found) == 5
    for name, values in (("error", error), ("relative variance", variance)):
        order = found[f"least {name} first"]
        assert sorted(order) == list(np.ndindex(8, 8))
        assert [values[at] for at in order] == sorted(values.ravel())
    for seed in (1, 2, 3):
        assert sorted(found[f"at random {seed}"]) == list(np.ndindex(8, 8))
    assert found["at random 1"] != found["at random 2"]
