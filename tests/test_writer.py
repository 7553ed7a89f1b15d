"""The writer: its text, how it is judged, and what it is compared with."""

import csv
from collections import Counter
from itertools import pairwise

import numpy as np
import pytest

from performer_course import attention, features, projections, recurrent
from performer_course.teaching import data, writer


def test_what_is_judged_was_not_learned_and_every_character_but_the_first_is_predicted_once():
    learned, test = writer.text(), writer.text("test")
    assert writer.text("train") in learned
    assert not any(test[i : i + 60] in learned for i in range(0, len(test) - 60, 30))
    pieces = writer.pieces(test)
    assert (pieces[1:, 0] == pieces[:-1, -1]).all()
    read = np.append(pieces[0, 0], pieces[:, 1:])
    assert "".join(writer.symbols()[i] for i in read) == test[: len(read)]
    assert len(test) - len(read) < writer.LENGTH


def test_a_writer_that_knows_nothing_needs_the_logarithm_of_the_number_of_characters():
    params = writer.load()
    params["gain"], params["shift"] = 0 * params["gain"], 0 * params["shift"]
    assert np.allclose(writer.bits(params), np.log2(len(writer.symbols())), rtol=1e-6)


def test_counts_after_one_character_are_those_of_a_dictionary():
    learned, test = writer.text(), writer.text("test")
    one, two = Counter(learned), Counter(pairwise(learned))
    before, size = Counter(learned[:-1]), len(writer.symbols())

    def alone(b):
        return (one[b] + 40 / size) / (len(learned) + 40)

    P = [(two[a, b] + 40 * alone(b)) / (before[a] + 40) for a, b in pairwise(test)]
    assert writer.by_counts(1) == pytest.approx(-np.log2(P).mean(), rel=1e-12)
    assert writer.by_counts(0) == pytest.approx(-np.log2([*map(alone, test)]).mean(), rel=1e-12)


def test_it_writes_from_the_prompt_on_as_many_words_as_asked_and_by_the_seed():
    params = writer.load()
    found = writer.write(params, words=5, seed=1)
    assert found.startswith("Emma ")
    assert len(found.split()) == 5
    assert writer.write(params, words=5, seed=1) == found != writer.write(params, words=5, seed=2)


def test_a_character_and_an_attention_that_it_does_not_know_are_named():
    with pytest.raises(ValueError, match="text has 'π', which the writer does not know"):
        writer.encode("2π")
    with pytest.raises(ValueError, match=r"way must be one of .*'softmax'.* got 'none'"):
        writer.load("none")


LEVEL = ("softmax", "softmax, distance", "FAVOR+, forgets", "ELU + 1, forgets")
BITS = {}  # of each way, as recorded, for two seeds
with (data.FOLDER / "writer.csv").open(encoding="utf-8", newline="") as file:
    for row in csv.DictReader(file):
        BITS.setdefault(row["way"], []).append(float(row["bits"]))


def with_features(q, k, v, layer, **_):
    return attention.favor_attention(q, k, v, layer["W"], causal=True)


def forgetting(q, k, v, layer, **_):
    """`decay_attention` of the values and of ones, for the denominator."""
    phi_q, phi_k = features.elu_plus_one(q), features.elu_plus_one(k)
    log_decay = np.repeat(-np.logaddexp(0, layer["decay"])[:, None], q.shape[-2], axis=1)
    ones = np.ones_like(v[..., :1])
    sums = recurrent.decay_attention(phi_q, phi_k, np.concatenate([v, ones], -1), log_decay)
    return sums[..., :-1] / sums[..., -1:]


def test_exact_attention_needs_as_many_bits_as_counts_after_four_letters_and_more_than_after_six():
    bits = writer.bits(writer.load()).mean()
    assert bits == pytest.approx(BITS["softmax"][0], abs=0.002)
    assert abs(bits - writer.by_counts(4)) < 0.03
    assert writer.by_counts(6) < bits < writer.by_counts(3) - 0.1


def test_features_put_in_are_worse_than_letter_counts_and_trained_ones_beat_counts_of_pairs():
    W = np.stack([projections.orthogonal(np.random.default_rng(0), 64, 16) for _ in range(2)])
    W = {"W": W.astype(np.float32)}
    assert writer.bits(writer.load() | W, with_features).mean() > writer.by_counts(0) + 0.3
    trained = writer.bits(writer.load("FAVOR+") | W, with_features).mean()
    assert trained == pytest.approx(BITS["FAVOR+"][0], abs=0.05)
    for bits in (trained, *BITS["FAVOR+"]):
        assert writer.by_counts(3) + 0.1 < bits < writer.by_counts(2) - 0.1


def test_a_state_that_forgets_is_level_with_exact_attention_and_only_while_it_forgets():
    params = writer.load("ELU + 1, forgets")
    assert writer.bits(params, forgetting).mean() == pytest.approx(BITS[LEVEL[-1]][0], abs=0.002)
    never = params | {"decay": np.full_like(params["decay"], -50)}
    assert writer.bits(never, forgetting).mean() > np.log2(len(writer.symbols()))
    level = [bits for way in LEVEL for bits in BITS[way]]
    assert max(level) - min(level) < 0.04
    assert max(level) < min(BITS["FAVOR+"]) - 0.3
