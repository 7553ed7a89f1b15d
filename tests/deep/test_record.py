"""What recorders compute, held to the lesson's own functions, and what they have recorded."""

import ast
import csv
import itertools
import re

import numpy as np
import pytest
from scipy.io import wavfile

from performer_course import antibody, attention, compare, data
from tests.real_model import needs_model, real_weights, small_weights
from tools.notebooks import NOTEBOOKS, read
from tools.record import anatomy, curve, heads, sentences, sequences, shared


@pytest.fixture(scope="module")
def lesson():
    return shared.lesson_17()


@pytest.fixture(scope="module")
def tuning():
    pytest.importorskip("optax", reason="trained where optax is installed", exc_type=ImportError)
    from tools.record import tuning

    return tuning


def of_heads(*lengths, d=4, seed=0):
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


# What they share


def test_a_recorder_takes_from_the_lesson_what_it_defines_and_no_setting():
    """Such as the precision of JAX, by which they would train otherwise than they say."""
    cells = read(NOTEBOOKS / "17_move_a_real_model.py").cells
    cells = [c for c in cells if "ways" in c.metadata.get("tags", ())]
    assert len(cells) == 5
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


def test_a_line_of_a_table_holds_means_their_errors_and_pairs(tmp_path):
    rng, chain = np.random.default_rng(8), np.repeat([0, 1, 2], 5)
    found, other = (np.stack([rng.normal(size=15), rng.random(15) < 0.5, chain]) for _ in "ab")
    less = found[0] - other[0]
    errors = [f"{shared.over_chains(x, chain):.4f}" for x in (found[0], less)]
    line = {
        "residues": "15",
        "right": f"{found[1].sum():.0f}",
        "perplexity": f"{np.exp(-found[0].mean()):.4f}",
        "error of its ln": errors[0],
        "ln P less exact": f"{less.mean():.4f}",
        "error of ln P less exact": errors[1],
    }
    assert shared.beside(found, exact=other) == line
    shared.write(tmp_path / "table.csv", [line, line])
    text = (tmp_path / "table.csv").read_text(encoding="utf-8").splitlines()
    assert text == [",".join(line), *[",".join(line.values())] * 2]


# The curve


def test_the_share_of_a_window_is_the_best_on_a_grid(lesson):
    chains, near, far = of_heads(12, 15), lesson["window"](2), lesson["uniform"]
    share = curve.share(near, far, chains)
    grid = np.linspace(0, 1, 201)
    for i, h in ((0, 0), (3, 5), (7, 7)):
        lost = np.zeros(201)
        for given in chains:
            q, k, v = (x[i] for x in given)
            parts = [attend(i, q, k, v)[h] for attend in (near, far, antibody.attend_exact)]
            mixed = grid[:, None, None] * parts[0] + (1 - grid)[:, None, None] * parts[1]
            lost += ((mixed - parts[2]) ** 2).sum(axis=(1, 2))
        assert abs(share[i, h] - grid[lost.argmin()]) <= 0.0025 + 1e-9
    assert share.std() > 0.01


def test_centring_changes_no_softmax_and_is_the_shift_of_lesson_14(lesson):
    ((q, k, v),) = of_heads(7)
    exact = antibody.attend_exact(0, q, k, v)
    np.testing.assert_allclose(lesson["centred"](antibody.attend_exact)(0, q, k, v), exact)
    seen = []
    lesson["centred"](lambda i, q, k, v: seen.append(k))(0, q, k, v)
    shift = q.mean(axis=-2, keepdims=True) + k.mean(axis=-2, keepdims=True)
    np.testing.assert_allclose(seen[0], k - shift)


def test_the_curve_has_each_way_beside_softmax_and_mean_v_with_its_errors():
    lines = rows("curve")
    assert {(row["passes"], row["residues"]) for row in lines} == {("2", "702"), ("8", "2729")}
    references = {"exact": "exact", "window": "window and mean(V)"}
    for row in lines:
        assert float(row["error of its ln"]) > 0
        for name, way in references.items():
            less = np.log(recorded(way, passes=row["passes"])[0] / float(row["perplexity"]))
            assert abs(float(row[f"ln P less {name}"]) - less) < 3e-4
            assert (float(row[f"error of ln P less {name}"]) > 0) == (row["way"] != way)
    assert abs(recorded("exact")[0] - 1.5806) < 5e-4
    assert abs(recorded("mean(V)")[0] - 10.21) < 0.01
    for way, sizes in {"FAVOR+": 3, "centred": 3, "dense": 5}.items():
        counts = [row["features"] for row in lines if row["way"] == way and row["passes"] == "2"]
        assert (len(counts), len(set(counts))) == (3 * sizes, sizes)


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


@needs_model
@pytest.mark.parametrize(("way", "features"), [("window and mean(V)", 0), ("centred", 64)])
def test_a_row_of_the_curve_is_what_the_model_says_again(way, features, lesson):
    weights = real_weights()
    attend = curve.ways(lesson, curve.calibration(weights))[way, features, 0]
    found = lesson["scores"](weights, attend)
    assert abs(np.exp(-found[0].mean()) / recorded(way, features)[0] - 1) < 5e-3


# The anatomy


def test_what_a_head_looks_at_is_counted_as_by_hand():
    ((q, k, v),) = of_heads(6, seed=5)
    found = anatomy.looks(q, k, v)
    near = np.abs(np.arange(6)[:, None] - np.arange(6)) <= 4
    for at in np.ndindex(8, 8):
        t = q[at] @ k[at].T / 2
        A = np.exp(t) / np.exp(t).sum(axis=1, keepdims=True)
        s = q[at].mean(axis=0) + k[at].mean(axis=0)
        z, z_centred = (((q[at][:, None] + k[at] - c) ** 2).sum(axis=-1) / 2 for c in (0, s))
        parts = np.sort(np.exp(z), axis=None)[::-1].cumsum()
        expected = {
            "Var(t)": t.var(axis=1).mean(),
            "keys": np.exp(-(A * np.log(A)).sum(axis=1).mean()),
            "near": A[near].sum() / 6,
            "ends": (A[:, 0] + A[:, 5]).mean(),
            "exponent": z.mean(),
            "ln of mean e^exponent": np.log(np.exp(z).mean()),
            "pairs of half": 1 + (parts < parts[-1] / 2).sum(),
            "exponent, centred": z_centred.mean(),
        }
        for name, value in expected.items():
            np.testing.assert_allclose(found[name][at], value)


def test_error_and_bias_are_those_of_an_estimator_that_is_known():
    """The exact output plus a constant miss and plus noise of known sizes."""
    chains, draws, noise = of_heads(6, 7), 3, 0.3

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
    total, bias = anatomy.errors(lambda draw: lambda i, q, k, v: v, 1, chains)
    np.testing.assert_array_equal(total, bias)  # no draw, so all of it is bias


def test_only_the_chosen_heads_are_swapped_in_the_orders_that_calibration_gives():
    ((q, k, v),) = of_heads(5)
    attend = anatomy.swapped([(2, 3), (2, 5)], lambda i, q, k, v: 0 * v)
    for i in (2, 4):
        expected = antibody.attend_exact(i, q[i], k[i], v[i])
        expected[[3, 5]] *= i != 2
        np.testing.assert_array_equal(attend(i, q[i], k[i], v[i]), expected)
    error, variance = np.random.default_rng(9).random((2, 8, 8))
    found = anatomy.orders(error, variance)
    assert len(found) == 5
    for order in found.values():
        assert sorted(order) == list(np.ndindex(8, 8))
    for name, values in (("error", error), ("relative variance", variance)):
        assert [values[at] for at in found[f"least {name} first"]] == sorted(values.ravel())
    assert found["at random 1"] != found["at random 2"]


def test_the_anatomy_is_of_64_heads_and_bias_is_a_part_of_the_error():
    lines = rows("anatomy")
    assert [(int(row["block"]), int(row["head"])) for row in lines] == list(np.ndindex(8, 8))
    biases = [name for name in lines[0] if name.endswith(", bias")]
    assert biases
    for name in biases:
        for row in lines:
            assert 0 < float(row[name]) <= float(row[name.removesuffix(", bias")]) + 1e-9


@needs_model
def test_a_line_of_the_anatomy_is_what_the_model_says_again():
    weights = real_weights()
    given = [antibody.encode(chain) for chain in shared.chains("test")]
    found = anatomy.means([antibody.heads(weights, tokens) for tokens in given])
    for n, row in enumerate(rows("anatomy")):
        for name in ("Var(t)", "keys", "near", "exponent", "ln of mean e^exponent"):
            assert abs(found[name].ravel()[n] / float(row[name]) - 1) < 2e-3


# The heads that are kept


def test_the_kept_heads_are_one_easy_and_one_hard_of_three_blocks():
    q, k, v = data.antibody_heads()
    assert {a.shape for a in (q, k, v)} == {(6, 2, 122, 64)}
    with np.load(heads.FILE) as stored:
        assert {stored[name].dtype for name in "qkv"} == {np.dtype("float16")}
        assert stored["heads"].tolist() == [[0, 7], [0, 5], [4, 6], [4, 3], [7, 3], [7, 6]]
    rng, errors = np.random.default_rng(4), []
    for _ in range(4):
        errors.append(heads.error(q, k, v, rng.normal(size=(1024, 64))).mean(axis=1))
    easy, hard = np.mean(errors, axis=0).reshape(3, 2).T
    assert (easy < hard).all()
    assert easy.min() < 0.6


@needs_model
def test_the_kept_heads_are_those_of_the_model_chosen_by_the_rule():
    weights = real_weights()
    with np.load(heads.FILE) as stored:
        kept, places = [stored[name] for name in "qkv"], [tuple(at) for at in stored["heads"]]
    assert heads.chosen(weights) == places
    for chain, name in enumerate(heads.CHAINS):
        found = antibody.heads(weights, antibody.encode(data.antibodies()[name][0]))
        for a, b in zip(kept, found, strict=True):
            expected = [b[at] for at in places]
            np.testing.assert_allclose(a[:, chain], expected, rtol=2**-10, atol=1e-4)


# Directions that were trained


@pytest.mark.parametrize("sets", [1, 2])
def test_the_gradient_that_trains_is_the_one_that_jax_derives_from_the_loss(sets):
    jax = pytest.importorskip("jax", reason="trained where JAX is installed", exc_type=ImportError)
    from tools.record.directions import loss

    rng = np.random.default_rng(10)
    q, k, W = (rng.normal(size=size) for size in ((2, 3, 6, 4), (2, 3, 6, 4), (sets, 2, 3, 8, 5)))

    def alone(params, q, k):
        W = params["W"]
        return antibody.divergence(*compare.with_weight_column(q, k), W[0], W[-1])[0].sum()

    with jax.enable_x64(True):
        arrays = {"W": jax.numpy.asarray(W)}, jax.numpy.asarray(q), jax.numpy.asarray(k)
        value, slope = jax.value_and_grad(loss)(*arrays)
        expected, derived = jax.value_and_grad(alone)(*arrays)
    np.testing.assert_allclose(value, expected, rtol=1e-12)
    np.testing.assert_allclose(slope["W"], derived["W"], rtol=1e-8, atol=1e-12)


def test_the_kept_directions_are_64_for_each_head_or_for_its_queries_and_its_keys_apart():
    for name, shape in (("", (8, 8, 64, 65)), ("_two", (2, 8, 8, 64, 65))):
        with np.load(data.FOLDER / f"antibody_directions{name}.npz") as stored:
            assert stored.files == ["W"]
            assert (stored["W"].dtype, stored["W"].shape) == (np.float16, shape)
            assert np.isfinite(stored["W"]).all()
    assert data.antibody_directions().dtype == np.float64
    assert not data.antibody_two_directions()[0, ..., -1].any()  # weights stand with the keys


def test_the_table_has_each_kind_and_number_of_directions_twice_and_all_of_them_learned():
    found = {(row["kind"], int(row["m"]), int(row["seed"])): row for row in rows("trained")}
    kinds, sizes, seeds = ("shared", "two"), (64, 32, 16), (0, 1)
    assert len(rows("trained")) == len(found)
    assert found.keys() == set(itertools.product(kinds, sizes, seeds))
    for kind, seed in itertools.product(kinds, seeds):
        starts, ends = (
            np.array([float(found[kind, m, seed][f"KL at the {end}"]) for m in sizes])
            for end in ("start", "end")
        )
        assert (np.diff(ends) > 0).all()
        assert (ends < 0.25 * starts).all()
        assert all(float(found[kind, m, seed]["perplexity"]) < 1.68 for m in (32, 64))


def test_trained_directions_follow_the_kept_heads_and_as_many_drawn_ones_do_not():
    q, k, _ = data.antibody_heads()
    with np.load(heads.FILE) as stored:
        W = data.antibody_directions()[tuple(stored["heads"].T)][:, None]  # (6, 1, 64, 65)
    eye = np.broadcast_to(np.eye(122), (6, 2, 122, 122))  # so that the output is the weights
    A = attention.softmax_attention(q, k, eye)
    drawn = np.random.default_rng(5).normal(size=(64, 64))

    def lost(found):
        """The KL of all rows, over that of uniform weights, head by head."""
        kl, null = (A * np.log(A / found)).sum(axis=(1, 2, 3)), A * np.log(A * 122)
        return kl / null.sum(axis=(1, 2, 3))

    assert (lost(attention.favor_attention(*compare.with_weight_column(q, k), eye, W)) < 0.5).all()
    assert (lost(attention.favor_attention(q, k, eye, drawn)) > 1).all()


# Chains to train by


def test_chains_to_train_by_are_less_than_nine_tenths_alike_to_any_that_judges():
    train = data.antibodies("training")
    judges = data.antibodies() | data.antibodies("calibration")
    assert len(train) == 48
    assert not set(train) & (set(judges) | set(sequences.KEPT.split()))
    assert len(set(shared.chains("training"))) == 96
    assert set("".join(shared.chains("training"))) == set(antibody.RESIDUES)
    worst = max(sequences.nearest(pair, judges.values()) for pair in train.values())
    assert 0.85 < worst < 0.9
    edits = {("ACDE", "ACDE"): 0, ("ACDE", "ACDF"): 1, ("ACDE", "CDE"): 1, ("AAAA", "CCC"): 4}
    edits |= {("CDE", "ACDE"): 1, ("KITTEN", "SITTING"): 3}
    for (a, b), count in edits.items():
        assert sequences.alike(a, b) == 1 - count / max(len(a), len(b))


def test_an_antibody_is_not_drawn_to_train_by_if_it_is_alike_repeats_or_has_other_letters():
    judges = {"J": ("ACDEFGHIKL", "LKIHGFEDCA")}
    good = {"G": ("WWWWWWWWWW", "YYYYYYYYYY")}
    bad = {
        "like heavy": ("ACDEFGHIKW", "VVVVVVVVVV"),
        "like light": ("VVVVVVVVVV", "LKIHGFEDCW"),
        "letter": ("WXWWWWWWWW", "VVVVVVVVVV"),
    }
    assert sequences.drawn(judges | good | bad, judges) == good
    twice = {"A": ("WWWWWWWWWW", "VVVVVVVVVV"), "B": ("WWWWWWWWWW", "TTTTTTTTTT")}
    assert len(sequences.drawn(twice, judges)) == 1
    assert len(sequences.drawn(good | {"A": ("TTTTTTTTTT", "VVVVVVVVVV")}, judges, many=1)) == 1


# All weights learn on

CHAINS = "EVQLVESGG", "DIQMTQ", "QVQLVQSGAEV"


@pytest.fixture
def params(tuning, monkeypatch):
    """A small model's, two blocks alone, with words so large that it matters which it is."""
    monkeypatch.setattr(antibody, "BLOCKS", 2)
    small = small_weights()
    own = {name: w for name, w in small.items() if not re.search(r"layer\.[2-7]", name)}
    del own[tuning.DECODER]
    return own | {tuning.WORDS: 300 * small[tuning.WORDS]}


def directions(*lead, width=2):
    """Six directions for each: (*lead, 6, width)."""
    return np.random.default_rng(1).normal(size=(*lead, 6, width))


@pytest.mark.parametrize(
    "W",
    [None, directions(2), directions(2, 8, width=3)],
    ids=["softmax", "directions of a block", "of a head, with weights"],
)
def test_the_loss_is_the_cross_entropy_of_what_the_model_guesses(W, tuning, params):
    import jax

    tokens, hidden = np.full((3, 14), antibody.PAD), np.zeros((3, 14), dtype=bool)
    lost, tied = [], params | {tuning.DECODER: params[tuning.WORDS]}
    for row, chain in enumerate(CHAINS):
        tokens[row, : len(chain) + 2] = antibody.encode(chain)
        hidden[row, [1, 3 + row, len(chain)]] = True
        masked = hidden[[row], 1 : len(chain) + 1]
        log_p = antibody.guess(tied, chain, masked, tuning.attend_by(W))[0]
        lost += [-log_p[n, antibody.RESIDUES.index(chain[n])] for n in np.flatnonzero(masked)]
    with jax.enable_x64(True):
        given = [jax.numpy.asarray(x) for x in (tokens, hidden)]
        found = jax.jit(tuning.loss)(params, *given, W)
    np.testing.assert_allclose(float(found), np.mean(lost), rtol=1e-9)


def test_every_chain_comes_once_in_a_round_and_an_eighth_of_it_is_hidden(tuning):
    chains = shared.chains("training")
    given = tuning.batches(chains, np.random.default_rng(0))
    rounds = []
    for _ in range(2):
        seen = []
        for tokens, hidden in itertools.islice(given, len(chains) // 8):
            assert tokens.shape == hidden.shape == (8, max(map(len, chains)) + 2)
            assert not (hidden & (tokens < 5)).any()  # the first five are no residues
            for row, masked in zip(tokens, hidden, strict=True):
                seen.append("".join(antibody.TOKENS[token] for token in row if token >= 5))
                assert 0 <= masked.sum() - len(seen[-1]) // 8 <= 1
        assert sorted(seen) == sorted(chains)
        rounds.append(seen)
    assert rounds[0] != rounds[1]


@pytest.mark.parametrize("way", ["softmax", "FAVOR+, kept", "FAVOR+, redrawn", "trained, kept"])
def test_each_way_moves_what_it_says_and_nothing_else(way, tuning, params, monkeypatch):
    own = directions(2, 8, width=3).astype(np.float32)
    monkeypatch.setattr(data, "antibody_directions", lambda: own)
    monkeypatch.setattr(tuning, "drawn", lambda rng: np.float32(rng.normal(size=(2, 6, 2))))
    monkeypatch.setattr(tuning, "STEPS", (0, 2))
    monkeypatch.setattr(tuning, "CHAINS", 3)
    single = {name: w.astype(np.float32) for name, w in params.items()}
    single |= {tuning.DECODER: single[tuning.WORDS], "places": np.arange(9)}
    (_, before, W), (_, after, later) = tuning.tuned(single, way, 0, list(CHAINS))
    assert before.keys() == single.keys() - {"places"}
    for name in before:
        np.testing.assert_array_equal(before[name], single[name])
        if way != "softmax" or not name.endswith("key.bias"):  # which moves all scores alike
            assert (after[name] != before[name]).any(), name
    np.testing.assert_array_equal(after[tuning.DECODER], after[tuning.WORDS])
    if way == "softmax":
        assert W is later is None
    else:
        assert (later != W).any() == (way == "FAVOR+, redrawn")
        _, _, other = next(tuning.tuned(single, way, 1, list(CHAINS)))
        assert (other != W).any() == way.startswith("FAVOR+")


def test_the_lines_of_a_run_are_those_of_the_file(tuning, monkeypatch):
    """A model of no layers, judged by scores that are given: each way, its W and its numbers."""
    monkeypatch.setattr(tuning, "tuned", lambda *given: [(n, n, None) for n in tuning.STEPS])
    scores = np.array([[-1.0, -2.0, -3.0], [1, 0, 1], [0, 0, 1]])
    found = []
    for way, seed in itertools.product(tuning.WAYS, range(tuning.SEEDS)):
        found += tuning.rows({}, way, seed, lambda *given: scores)
    kept = rows("tuning")
    for name in ("way", "W", "seed", "steps"):
        assert [str(row[name]) for row in found] == [row[name] for row in kept]
    assert list(found[0]) == list(kept[0])
    numbers = ["7.3891", "0.5774", "0.0000", "0.0000", "2"]
    assert [list(row.values())[4:] for row in found] == [numbers] * len(found)


@pytest.fixture(scope="module")
def record():
    """{(way, W, seed, steps): its numbers}, as the file has them."""
    lines = [list(row.values()) for row in rows("tuning")]
    return {(way, W, int(s), int(n)): [*map(float, rest)] for way, W, s, n, *rest in lines}


def test_the_record_is_finite_and_begins_with_the_model_as_it_was(record):
    assert record["softmax", "none", 0, 0][2:] == [0, 0, 627]
    exact = record["softmax", "none", 0, 0][0]
    assert abs(exact - 1.5806) < 5e-4
    for perplexity, error, less, its, right in record.values():
        assert 1 < perplexity < 20
        assert 0 < error < 0.2
        assert 0 <= its < 0.2
        assert 0 < right <= 702
        assert abs(less + np.log(perplexity / exact)) < 2e-4


def test_eighty_steps_win_most_back_with_directions_kept_and_less_with_any_others(record):
    perplexity = {run: numbers[0] for run, numbers in record.items()}
    exact, trained = perplexity["softmax", "none", 0, 0], perplexity["trained, kept", "own", 0, 0]
    drawn = [p for (way, *_), p in perplexity.items() if way.startswith("FAVOR+")]
    assert trained < 0.8 * min(drawn)  # before any step
    for seed in range(2):
        before, own = (perplexity["FAVOR+, kept", "own", seed, n] for n in (0, 80))
        assert before > 7
        assert np.log(own / exact) < np.log(before / exact) / 4
        for fresh in ("fresh 0", "fresh 1", "fresh 2"):
            redrawn = perplexity["FAVOR+, redrawn", fresh, seed, 80]
            assert own < 0.8 * redrawn
            assert redrawn < 0.9 * perplexity["FAVOR+, kept", fresh, seed, 80]


@needs_model
@pytest.mark.parametrize(("way", "W"), [("trained, kept", "own"), ("FAVOR+, kept", "fresh 0")])
def test_what_the_record_begins_with_is_found_again(way, W, tuning, record, lesson):
    _, now, own = next(tuning.tuned(real_weights(), way, 0, shared.chains("test")))
    attend = tuning.attend_by(tuning.judges(way, own, 0)[W])
    log_p, right, _ = lesson["scores"](now, attend)
    perplexity, error, _, _, hits = record[way, W, 0, 0]
    assert abs(np.exp(-log_p.mean()) / perplexity - 1) < 1e-3
    assert abs(log_p.std(ddof=1) / 702**0.5 / error - 1) < 1e-2
    assert abs(right.sum() - hits) <= 1


# Sentences


def recordings(folder, **changed):
    """A folder as Debian has it, with small sounds; {end of a name: what it is said to say}."""
    said = {
        "0870": "and mister john dashwood had then leisure to consider how much there might be "
    }
    said["0870"] += "prudently in his power to do for them"
    said["0880"] = "he was not an ill disposed young man"
    said["0890"] = "unless to be rather cold hearted and rather selfish is to be ill disposed"
    said["0920"] = "had he married a more a amiable woman he might have been made still more "
    said["0920"] += "respectable than he was"
    said["0930"] = "he might even have been made amiable himself"
    lines = [f"<s> {words} </s> (a_{end})\n" for end, words in (said | changed).items()]
    (folder / "transcription").write_text("".join(lines), encoding="utf-8")
    for n, end in enumerate(said):
        wavfile.write(folder / f"a_{end}.wav", 16_000, np.arange(n, 5 * n + 3, dtype=np.int16))
    return folder


def test_sentences_are_kept_sample_by_sample_with_their_texts(tmp_path, monkeypatch):
    found = sentences.read(recordings(tmp_path))
    sentences.write(found, tmp_path)
    monkeypatch.setattr(data, "FOLDER", tmp_path)
    read_back = data.sentences()
    assert [text for _, text in read_back] == list(sentences.TEXTS.values())
    for n, (sound, _) in enumerate(read_back):
        np.testing.assert_array_equal(sound * 2**15, np.arange(n, 5 * n + 3))


def test_the_sentences_that_are_kept_are_those_of_the_recorder():
    with open(data.FOLDER / "speech.tsv", encoding="utf-8") as file:
        kept = [line.rstrip("\n").split("\t")[1] for line in file][1:]
    assert kept == list(sentences.TEXTS.values())


@pytest.mark.parametrize("said", ["he was not an old disposed young man", "he was not"])
def test_a_recording_that_says_something_else_is_refused(said, tmp_path):
    with pytest.raises(ValueError, match=r"a_0880\.wav must say 'He was not an ill-disposed"):
        sentences.read(recordings(tmp_path, **{"0880": said}))


@pytest.mark.parametrize("fault", ["rate", "channels", "floats"])
def test_a_recording_of_another_kind_is_refused(fault, tmp_path):
    folder, samples = recordings(tmp_path), np.zeros(9, np.int16)
    samples = {"channels": np.zeros((9, 2), np.int16), "floats": np.zeros(9)}.get(fault, samples)
    wavfile.write(folder / "a_0890.wav", 8000 if fault == "rate" else 16_000, samples)
    with pytest.raises(ValueError, match=r"a_0890\.wav must have 16000 int16 a second, got"):
        sentences.read(folder)


# Recall


@pytest.mark.parametrize(("names", "rule", "d", "seed"), [(16, "delta", 8, 1), (4, "decay", 4, 2)])
def test_a_cell_of_the_table_of_recall_is_found_again(names, rule, d, seed):
    jax = pytest.importorskip("jax", reason="trained where JAX is installed", exc_type=ImportError)
    pytest.importorskip("optax", reason="trained where optax is installed", exc_type=ImportError)
    from tools.record import recall

    with open(recall.FILE, encoding="utf-8", newline="") as file:
        kept = [
            float(row["right"])
            for row in csv.DictReader(file)
            if list(row.values())[:4] == [str(names), rule, str(d), str(seed)]
        ]
    with jax.enable_x64(True):
        _, right = recall.names()["trained"](rule, d, seed, names)
    assert len(kept) == 1
    assert right.mean() == pytest.approx(kept[0], abs=2e-3)


def test_training_helps_adding_by_symbols_and_read_out_more_than_by_keys():
    """With random keys that stay as they are, at d = 8: 0.64, of 0.66 with all of it trained."""
    jax = pytest.importorskip("jax", reason="trained where JAX is installed", exc_type=ImportError)
    pytest.importorskip("optax", reason="trained where optax is installed", exc_type=ImportError)
    from tools.record import recall

    with jax.enable_x64(True):
        given = recall.names()

        def keys_kept(params, *batch):
            fixed = {**params, "key": jax.lax.stop_gradient(params["key"])}
            return given["loss"]("add", fixed, *batch)

        whole = [given["trained"]("add", 8, seed)[1].mean() for seed in range(2)]
        given["LOSSES"]["add"] = keys_kept
        kept = [given["trained"]("add", 8, seed)[1].mean() for seed in range(2)]
    untrained = 0.56  # random keys and symbols
    assert min(whole) > max(kept)
    assert min(kept) - untrained > 2 * (max(whole) - min(kept))


def test_at_three_times_the_rate_delta_gains_a_little_and_no_rule_changes_its_place():
    jax = pytest.importorskip("jax", reason="trained where JAX is installed", exc_type=ImportError)
    pytest.importorskip("optax", reason="trained where optax is installed", exc_type=ImportError)
    from performer_course import training
    from tools.record import recall

    with open(recall.FILE, encoding="utf-8", newline="") as file:
        kept = {
            (x["names"], x["rule"], x["seed"]): x for x in csv.DictReader(file) if x["d"] == "8"
        }
    with jax.enable_x64(True):
        given = recall.names()

        def faster(loss, params, batches, steps, rate):
            return training.train(loss, params, batches, steps, 1e-1)

        given["training"] = type("Faster", (), {"train": staticmethod(faster)})
        found = {
            (names, rule): given["trained"](rule, 8, 0, names)[1].mean()
            for names in (16, 4)
            for rule in given["STATES"]
        }
    gain = {(n, r): x - float(kept[str(n), r, "0"]["right"]) for (n, r), x in found.items()}
    assert 0.01 < gain[16, "delta"] < 0.03
    assert max(abs(x) for at, x in gain.items() if at != (16, "delta")) < 0.02
    assert found[16, "add"] + 0.1 < found[16, "window and state"] < found[16, "softmax"]
    order = ("add", "softmax", "window and state", "decay", "delta", "softmax, slope")
    assert sorted(order, key=lambda rule: found[4, rule]) == list(order)
