"""Each file of notebooks/data has its recorder; what is quick is recorded again and compared."""

import ast
import re

import numpy as np
import pytest

from performer_course.models import antibody
from performer_course.teaching import data
from tests.support.lessons import needs_training, table
from tests.support.real_model import needs_model, real_weights
from tools.notebooks import NOTEBOOKS, ROOT, read
from tools.record import anatomy, curve, heads, sequences, shared


@pytest.fixture(scope="module")
def lesson():
    return shared.lesson(17, tag="methods")


@pytest.fixture(scope="module")
def tuning():
    return needs_training("tools.record.tuning")[1]


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


WAYS = {"exact": 0, "mean(V)": 0, "window and mean(V)": 0, "centred": 64, "trained": 64}


@pytest.fixture(scope="module")
def ways(lesson):
    return curve.ways(lesson, curve.calibration(real_weights()))


@needs_model
@pytest.mark.parametrize("way", WAYS)
def test_a_row_of_the_curve_is_what_the_model_says_again(way, lesson, ways):
    kept = table("antibody_curve", way=way, features=str(WAYS[way]))[0]
    log_p, right, _ = lesson.scores(real_weights(), ways[way, WAYS[way], 0])
    close = 3e-4 if way in ("exact", "trained") else 5e-3
    assert abs(np.exp(-log_p.mean()) / float(kept["perplexity"]) - 1) < close
    assert way != "exact" or right.sum() == int(kept["right"])


@needs_model
def test_a_line_of_the_anatomy_is_what_the_model_says_again():
    weights = real_weights()
    given = [antibody.encode(chain) for chain in shared.chains("test")]
    found = anatomy.means([antibody.heads(weights, tokens) for tokens in given])
    for n, row in enumerate(table("antibody_anatomy")):
        for name in ("Var(t)", "keys", "near", "exponent", "ln of mean e^exponent"):
            assert abs(found[name].ravel()[n] / float(row[name]) - 1) < 2e-3


@needs_model
def test_the_kept_heads_are_those_of_the_model_chosen_by_the_rule():
    weights = real_weights()
    with np.load(data.FOLDER / "antibody_heads.npz") as stored:
        kept, places = [stored[name] for name in "qkv"], [tuple(at) for at in stored["heads"]]
    assert heads.chosen(weights) == places
    for chain, name in enumerate(heads.CHAINS):
        found = antibody.heads(weights, antibody.encode(data.antibodies()[name][0]))
        for a, b in zip(kept, found, strict=True):
            expected = [b[at] for at in places]
            np.testing.assert_allclose(a[:, chain], expected, rtol=2**-10, atol=1e-4)


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


@needs_model
@pytest.mark.parametrize(("way", "W"), [("trained, kept", "own"), ("FAVOR+, kept", "fresh 0")])
def test_what_the_record_begins_with_is_found_again(way, W, tuning, lesson):
    _, now, own = next(tuning.tuned(real_weights(), way, 0, shared.chains("test")))
    attend = tuning.attend_by(tuning.judges(way, own, 0)[W])
    log_p, right, _ = lesson.scores(now, attend)
    kept = [*table("antibody_tuning", way=way, W=W)[0].values()]
    perplexity, error, _, _, hits = map(float, kept[4:])
    assert abs(np.exp(-log_p.mean()) / perplexity - 1) < 1e-3
    assert abs(log_p.std(ddof=1) / 702**0.5 / error - 1) < 1e-2
    assert abs(right.sum() - hits) <= 1


# Recall


@pytest.fixture
def x64():
    """JAX, where lessons can be trained, in float64."""
    (jax,) = needs_training()
    with jax.enable_x64(True):
        yield jax


@pytest.mark.parametrize(("names", "rule", "d", "seed"), [(16, "delta", 8, 1), (4, "decay", 4, 2)])
def test_a_cell_of_the_table_of_recall_is_found_again(names, rule, d, seed, x64):
    run = {"names": str(names), "rule": rule, "d": str(d), "rate": "0.03", "seed": str(seed)}
    (kept,) = table("recall", **run)
    given = shared.lesson(21, tag="recall")
    right = given.answers(rule, given.trained(rule, d, seed, names), names)
    assert right.mean() == pytest.approx(float(kept["right"]), abs=2e-3)


def test_training_helps_adding_by_symbols_and_read_out_more_than_by_keys(x64):
    """With random keys that stay as they are, at d = 8: 0.64, of 0.66 with all of it trained."""
    given = shared.lesson(21, tag="recall")

    def keys_kept(params, *batch):
        fixed = {**params, "key": x64.lax.stop_gradient(params["key"])}
        return given.loss("add", fixed, *batch)

    def shares():
        return [given.answers("add", given.trained("add", 8, s)).mean() for s in range(2)]

    whole = shares()
    given.LOSSES["add"] = keys_kept
    kept = shares()
    untrained = 0.56  # random keys and symbols
    assert min(whole) > max(kept)
    assert min(kept) - untrained > 2 * (max(whole) - min(kept))
