"""The language model itself, where it was fetched: its logits, and its record asked again."""

import csv

import numpy as np
import pytest

from performer_course import data, language
from tests.deep import language_logits
from tests.language_model import needs_language, real_language
from tools.record import language as record
from tools.record import language_methods as methods

pytestmark = needs_language


@pytest.fixture(scope="module")
def weights():
    return real_language()


def rows(name, **where):
    """The rows of a record with these values."""
    with open(data.FOLDER / f"language_{name}.csv", encoding="utf-8", newline="") as file:
        return [x for x in csv.DictReader(file) if {**x, **where} == x]


def test_tokens_and_logits_are_those_of_other_programs(weights):
    sizes = [weights[name] for name in ("blocks", "heads", "key heads", "base", "end")]
    assert sizes == [30, 9, 3, 1e5, 2]
    with np.load(language_logits.FILE) as stored:
        for n, text in enumerate(language_logits.TEXTS):
            tokens = language.encode(weights, text)
            np.testing.assert_array_equal(tokens, stored[f"tokens {n}"])
            assert language.decode(weights, tokens) == text
            found = language.logits(weights, tokens, every=language_logits.EVERY)
            expected = stored[f"logits {n}"]
            assert expected.std() > 2
            np.testing.assert_allclose(found[:, : language_logits.KEPT], expected, atol=2e-3)


def test_generating_with_a_cache_and_with_a_window_follows_the_prefill(weights):
    tokens = language.encode(weights, data.text()[2000:2800])[:100]
    near = methods.near(16, 4)
    for attend, memory in (
        (language.attend_exact, language.Cache),
        (near, lambda i: methods.Memory(near, i)),
    ):
        written = language.generate(weights, tokens, 4, memory)
        whole = language.logits(weights, np.append(tokens, written), attend)
        np.testing.assert_array_equal(whole[99:-1].argmax(axis=-1), written)


def test_a_window_of_the_record_is_found_again(weights):
    tokens = record.windows(weights, "judge")["technical 2"]
    for method, attend in (
        ("exact", language.attend_exact),
        ("window 64 + 4", methods.near(64, 4)),
    ):
        (kept,) = rows("nats", window="technical 2", method=method)
        lost = record.nats_of(weights, tokens, attend)
        assert abs(lost.mean() - float(kept["nats"])) < 2e-3
        assert abs(lost[:32].mean() - float(kept["0"])) < 4e-3


def test_an_error_and_a_retrieval_of_the_record_are_found_again(weights):
    tokens, where = record.sequence(weights, 2)
    near = methods.near(64, 4)
    attend = methods.hybrid({18, 23, 7, 17}, near)
    found = record.scores(weights, language._vectors(weights, tokens, attend), tokens, where)
    (kept,) = rows("recall", **{"sequence": "2", "exact blocks": "7 17 18 23"})
    assert all(abs(found[kind] - float(kept[kind])) < 0.01 for kind in record.KINDS)
    asked = list(record.windows(weights, "choose").values())[1:3]
    given = list(zip(*(record.heads(weights, x[:-1]) for x in asked), strict=True))[7]
    (kept,) = rows("errors", method="window 64 + 4", block="7")
    for value, name in zip(
        record.error(weights, near, given), ("error", "normalised"), strict=True
    ):
        assert abs(value / float(kept[name]) - 1) < 0.01
