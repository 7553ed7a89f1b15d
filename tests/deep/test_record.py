"""Each file of notebooks/data has its recorder, what is quick is recorded again and compared, and
what recorders compute by formulas of their own is right."""

import ast
import csv
import re

import numpy as np
import pytest

from performer_course import antibody, attention, data
from tests.real_model import needs_model, real_weights, small_weights
from tools.notebooks import NOTEBOOKS, ROOT, read
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


def test_each_file_has_a_recorder_that_writes_it():
    table = (data.FOLDER / "README.md").read_text(encoding="utf-8")
    rows = [line.strip("| ").split(" | ") for line in table.splitlines() if line.startswith("| `")]
    command = ""
    for names, _, made, _ in rows:
        command = command if made == "the same command" else made
        for name in re.findall(r"`([\w.]+)`", names):
            for recorder in re.findall(r"tools\.record\.(\w+)", command):
                source = (ROOT / f"tools/record/{recorder}.py").read_text(encoding="utf-8")
                assert name.removeprefix("antibody_").split(".")[0] in source, (name, recorder)
    named = set(re.findall(r"tools\.record\.(\w+)", table))
    recorders = {path.stem for path in (ROOT / "tools/record").glob("[!_]*.py")}
    parts = {"shared", "window", "language_methods", "language_trained"}
    assert recorders - named == parts


# What they share


def test_a_recorder_takes_from_the_lesson_what_it_defines_and_no_setting():
    """Such as the precision of JAX, which would change how they train."""
    cells = read(NOTEBOOKS / "17_move_a_real_model.py").cells
    cells = [c for c in cells if "methods" in c.metadata.get("tags", ())]
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


# The curve


@needs_model
@pytest.mark.parametrize(("way", "features"), [("window and mean(V)", 0), ("centred", 64)])
def test_a_row_of_the_curve_is_what_the_model_says_again(way, features, lesson):
    weights = real_weights()
    attend = curve.ways(lesson, curve.calibration(weights))[way, features, 0]
    found = np.exp(-lesson["scores"](weights, attend)[0].mean())
    kept = next(x for x in rows("curve") if (x["way"], x["features"]) == (way, str(features)))
    assert abs(found / float(kept["perplexity"]) - 1) < 5e-3


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


@needs_model
def test_a_line_of_the_anatomy_is_what_the_model_says_again():
    weights = real_weights()
    given = [antibody.encode(chain) for chain in shared.chains("test")]
    found = anatomy.means([antibody.heads(weights, tokens) for tokens in given])
    for n, row in enumerate(rows("anatomy")):
        for name in ("Var(t)", "keys", "near", "exponent", "ln of mean e^exponent"):
            assert abs(found[name].ravel()[n] / float(row[name]) - 1) < 2e-3


# The heads that are kept


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
    assert sequences.alike("KITTEN", "SITTING") == 1 - 3 / 7


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


@needs_model
@pytest.mark.parametrize(("way", "W"), [("trained, kept", "own"), ("FAVOR+, kept", "fresh 0")])
def test_what_the_record_begins_with_is_found_again(way, W, tuning, lesson):
    _, now, own = next(tuning.tuned(real_weights(), way, 0, shared.chains("test")))
    attend = tuning.attend_by(tuning.judges(way, own, 0)[W])
    log_p, right, _ = lesson["scores"](now, attend)
    kept = next(list(x.values()) for x in rows("tuning") if (x["way"], x["W"]) == (way, W))
    perplexity, error, _, _, hits = map(float, kept[4:])
    assert abs(np.exp(-log_p.mean()) / perplexity - 1) < 1e-3
    assert abs(log_p.std(ddof=1) / 702**0.5 / error - 1) < 1e-2
    assert abs(right.sum() - hits) <= 1


# Sentences


def test_the_sentences_that_are_kept_are_those_of_the_recorder():
    with open(data.FOLDER / "speech.tsv", encoding="utf-8") as file:
        kept = [line.rstrip("\n").split("\t")[1] for line in file][1:]
    assert kept == list(sentences.TEXTS.values())


# Recall


@pytest.fixture
def recall():
    """The recorder, where lessons can be trained, in float64."""
    jax = pytest.importorskip("jax", reason="trained where JAX is installed", exc_type=ImportError)
    pytest.importorskip("optax", reason="trained where optax is installed", exc_type=ImportError)
    from tools.record import recall

    with jax.enable_x64(True):
        yield recall


@pytest.mark.parametrize(("names", "rule", "d", "seed"), [(16, "delta", 8, 1), (4, "decay", 4, 2)])
def test_a_cell_of_the_table_of_recall_is_found_again(names, rule, d, seed, recall):
    with open(recall.FILE, encoding="utf-8", newline="") as file:
        kept = [
            float(row["right"])
            for row in csv.DictReader(file)
            if list(row.values())[:5] == [str(names), rule, str(d), "0.03", str(seed)]
        ]
    given = recall.names()
    right = given["answers"](rule, given["trained"](rule, d, seed, names), names)
    assert len(kept) == 1
    assert right.mean() == pytest.approx(kept[0], abs=2e-3)


def test_training_helps_adding_by_symbols_and_read_out_more_than_by_keys(recall):
    """With random keys that stay as they are, at d = 8: 0.64, of 0.66 with all of it trained."""
    given = recall.names()

    def keys_kept(params, *batch):
        fixed = {**params, "key": recall.jax.lax.stop_gradient(params["key"])}
        return given["loss"]("add", fixed, *batch)

    def shares():
        return [given["answers"]("add", given["trained"]("add", 8, s)).mean() for s in range(2)]

    whole = shares()
    given["LOSSES"]["add"] = keys_kept
    kept = shares()
    untrained = 0.56  # random keys and symbols
    assert min(whole) > max(kept)
    assert min(kept) - untrained > 2 * (max(whole) - min(kept))
