"""A real model tuned after a swap of its attention: the loss that it learns by, and the record."""

import csv
import itertools
import re

import numpy as np
import pytest

from performer_course import antibody, attention, data
from tests.real_model import needs_model, real_weights, small_weights

jax = pytest.importorskip("jax", reason="trained where JAX is installed", exc_type=ImportError)
pytest.importorskip("optax", reason="trained where optax is installed", exc_type=ImportError)

from tools.record import shared, tuning  # noqa: E402  what it imports may be missing
from tools.record.tuning import DECODER, WORDS  # noqa: E402


@pytest.fixture(scope="module")
def small():
    return small_weights()


@pytest.fixture(scope="module")
def weights():
    return real_weights()


CHAINS = "EVQLVESGG", "DIQMTQ", "QVQLVQSGAEV"


@pytest.fixture
def params(small, monkeypatch):
    """The small model's, two blocks alone, with words so large that it matters which it is."""
    monkeypatch.setattr(antibody, "BLOCKS", 2)
    own = {name: w for name, w in small.items() if not re.search(r"layer\.[2-7]", name)}
    del own[DECODER]
    return own | {WORDS: 300 * small[WORDS]}


def directions(*lead, width=2):
    """Six directions for each: (*lead, 6, width)."""
    return np.random.default_rng(1).normal(size=(*lead, 6, width))


def batch():
    """(tokens, hidden) of CHAINS, padded to a place more than the longest has."""
    tokens, hidden = np.full((3, 14), antibody.PAD), np.zeros((3, 14), dtype=bool)
    for row, chain in enumerate(CHAINS):
        tokens[row, : len(chain) + 2] = antibody.encode(chain)
        hidden[row, [1, 3 + row, len(chain)]] = True
    return tokens, hidden


# What learns


@pytest.mark.parametrize(
    "W",
    [None, directions(2), directions(2, 8), directions(2, 8, width=3)],
    ids=["softmax", "directions of a block", "of a head", "with weights"],
)
def test_the_loss_is_the_cross_entropy_of_what_the_model_guesses(W, params):
    def attend(i, q, k, v):
        if W is None:
            return attention.softmax_attention(q, k, v)
        if W.shape[-1] == 3:
            q, k = antibody.longer(q, k)
        return attention.favor_attention(q, k, v, W[i])

    tokens, hidden = batch()
    lost, tied = [], params | {DECODER: params[WORDS]}
    for row, chain in zip(hidden, CHAINS, strict=True):
        masked = row[None, 1 : len(chain) + 1]
        log_p = antibody.guess(tied, chain, masked, attend)[0]
        lost += [-log_p[n, antibody.RESIDUES.index(chain[n])] for n in np.flatnonzero(masked)]
    assert len(lost) == 9
    with jax.enable_x64(True):
        given = [jax.numpy.asarray(x) for x in (tokens, hidden)]
        found = jax.jit(tuning.loss)(params, *given, W)
    np.testing.assert_allclose(float(found), np.mean(lost), rtol=1e-9)


def test_the_slopes_of_the_loss_are_finite_and_central_differences(params):
    query = "bert.encoder.layer.1.attention.self.query.weight"
    first = "bert.encoder.layer.0.attention.output.dense.bias"
    with jax.enable_x64(True):
        given = [jax.numpy.asarray(x) for x in (*batch(), directions(2, 8, width=3))]
        loss = jax.jit(lambda p: tuning.loss(p, *given))
        slopes = jax.grad(loss)(params)
        assert all(np.isfinite(slope).all() for slope in slopes.values())
        # a word that is read and written, one that is only written, and two weights
        for name, at in [(WORDS, (22, 0)), (WORDS, (11, 3)), (query, (2, 5)), (first, (4,))]:
            ends = []
            for h in (1e-5, -1e-5):
                moved = params[name].copy()
                moved[at] += h
                ends.append(float(loss(params | {name: moved})))
            slope = (ends[0] - ends[1]) / 2e-5
            assert abs(slope) > 1e-4, name
            np.testing.assert_allclose(slopes[name][at], slope, rtol=1e-5, atol=1e-9)


def test_every_chain_comes_once_in_a_round_and_an_eighth_of_it_is_hidden():
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


def test_no_chain_that_is_learned_from_is_alike_to_a_test():
    from tools.record.sequences import nearest

    tests = data.antibodies().values()
    assert max(nearest(pair, tests) for pair in data.antibodies("training").values()) < 0.9


@pytest.mark.parametrize("way", tuning.WAYS)
def test_each_way_moves_what_it_says_and_nothing_else(way, params, monkeypatch):
    own = directions(2, 8, width=3).astype(np.float32)
    monkeypatch.setattr(data, "antibody_directions", lambda: own)
    monkeypatch.setattr(tuning, "drawn", lambda rng: np.float32(rng.normal(size=(2, 6, 2))))
    monkeypatch.setattr(tuning, "STEPS", (0, 2))
    monkeypatch.setattr(tuning, "CHAINS", 3)
    single = {name: w.astype(np.float32) for name, w in params.items()}
    single |= {DECODER: single[WORDS], "places": np.arange(9)}
    found = list(tuning.tuned(single, way, 0, list(CHAINS)))
    assert [steps for steps, _, _ in found] == [0, 2]
    (_, before, W), (_, after, later) = found
    assert before.keys() == single.keys() - {"places"}
    for name in before:
        np.testing.assert_array_equal(before[name], single[name])
        if way != "softmax" or not name.endswith("key.bias"):  # which moves all scores alike
            assert (after[name] != before[name]).any(), name
    np.testing.assert_array_equal(after[DECODER], after[WORDS])
    if way == "softmax":
        assert W is later is None
    else:
        assert (later != W).any() == (way == "FAVOR+, redrawn")
        assert W.shape == later.shape == ((2, 8, 6, 3) if way == "trained, kept" else (2, 6, 2))
        _, _, other = next(tuning.tuned(single, way, 1, list(CHAINS)))
        assert (other != W).any() == way.startswith("FAVOR+")


# The record


@pytest.fixture(scope="module")
def record():
    """{(way, W, seed, steps): its numbers}, as the file has them."""
    with open(tuning.FILE, encoding="utf-8", newline="") as file:
        _, *rows = csv.reader(file)
    found = {(way, W, int(seed), int(n)): [*map(float, rest)] for way, W, seed, n, *rest in rows}
    assert len(found) == len(rows)
    return found


def test_the_record_has_every_way_and_finite_numbers(record):
    fresh = {f"fresh {n}" for n in range(3)}
    expected = set()
    for way in tuning.WAYS:
        for seed, steps in itertools.product(range(2), (0, 10, 20, 40, 80)):
            names = {"softmax": {"none"}, "FAVOR+, redrawn": set()}.get(way, {"own"})
            if way.startswith("FAVOR+"):
                names = names | (fresh if steps in (0, 80) else {"fresh 0"})
            expected |= {(way, name, seed, steps) for name in names}
    assert record.keys() == expected
    for perplexity, error, less, its, right in record.values():
        assert np.isfinite([perplexity, error, less, its]).all()
        assert 1 < perplexity < 20
        assert 0 < error < 0.2
        assert 0 <= its < 0.2
        assert 0 < right <= 702
        exact = record["softmax", "none", 0, 0][0]
        assert abs(less + np.log(perplexity / exact)) < 2e-4


def test_the_record_begins_with_the_model_as_it_was(record):
    perplexity, _, less, its, right = record["softmax", "none", 0, 0]
    assert abs(perplexity - 1.5806) < 5e-4
    assert (less, its, right) == (0, 0, 627)


@needs_model
@pytest.mark.parametrize(("way", "W"), [("trained, kept", "own"), ("FAVOR+, kept", "fresh 0")])
def test_what_the_record_begins_with_is_found_again(way, W, weights, record):
    chains = shared.chains("test")
    _, now, own = next(tuning.tuned(weights, way, 0, chains))
    attend = tuning.attend_by(tuning.judges(way, own, 0)[W])
    log_p, right, _ = shared.lesson_17()["scores"](now, attend)
    perplexity, error, _, _, hits = record[way, W, 0, 0]
    assert abs(np.exp(-log_p.mean()) / perplexity - 1) < 1e-3
    assert abs(log_p.std(ddof=1) / 702**0.5 / error - 1) < 1e-2
    assert abs(right.sum() - hits) <= 1


def test_eighty_steps_win_most_back_with_directions_kept_and_less_with_any_others(record):
    perplexity = {run: numbers[0] for run, numbers in record.items()}
    exact = perplexity["softmax", "none", 0, 0]
    for seed in range(2):
        before, own = (perplexity["FAVOR+, kept", "own", seed, n] for n in (0, 80))
        assert before > 7
        assert np.log(own / exact) < np.log(before / exact) / 4
        for fresh in ("fresh 0", "fresh 1", "fresh 2"):
            redrawn = perplexity["FAVOR+, redrawn", fresh, seed, 80]
            assert own < 0.8 * redrawn
            assert redrawn < 0.9 * perplexity["FAVOR+, kept", fresh, seed, 80]


def test_trained_directions_are_ahead_before_any_step(record):
    trained = record["trained, kept", "own", 0, 0][0]
    for (way, _, _, steps), (perplexity, *_) in record.items():
        if way.startswith("FAVOR+"):
            assert trained < 0.8 * perplexity, (way, steps)
