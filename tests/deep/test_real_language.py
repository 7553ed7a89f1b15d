"""The language model itself, where it was fetched: its logits, and its record asked again."""

import csv

import numpy as np
import pytest
from scipy.special import softmax

from performer_course import data, language, near_far
from tests.deep import language_logits
from tests.language_model import needs_language, real_language
from tools.record import language as record
from tools.record import language_methods as methods
from tools.record import language_trained


@pytest.fixture(scope="module")
def weights():
    return real_language()


def rows(name, **where):
    """The rows of a record with these values."""
    with open(data.FOLDER / f"language_{name}.csv", encoding="utf-8", newline="") as file:
        return [x for x in csv.DictReader(file) if {**x, **where} == x]


@needs_language
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


@needs_language
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


@needs_language
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


@needs_language
def test_an_error_and_a_retrieval_of_the_record_are_found_again(weights):
    tokens, where = record.sequence(weights, 2)
    near = methods.near(64, 4)
    attend = methods.hybrid({18, 23, 7, 17}, near)
    found = record.scores(weights, language._vectors(weights, tokens, attend), tokens, where)
    (kept,) = rows("recall", **{"sequence": "2", "exact blocks": "7 17 18 23"})
    np.testing.assert_allclose(found, [float(kept[kind]) for kind in record.KINDS], atol=0.01)
    given = record.chosen(weights)[0][7]
    (kept,) = rows("errors", method="window 64 + 4", block="7")
    for value, name in zip(
        record.error(weights, near, given), ("error", "normalised"), strict=True
    ):
        assert abs(value / float(kept[name]) - 1) < 0.01


# What the recorders compute by formulas of their own


@pytest.fixture
def head():
    rng = np.random.default_rng(3)
    return [rng.normal(size=(n, 300, 8)).astype("f4") * 2 for n in (6, 2, 2)]


def test_near_keys_sinks_mean_keys_and_clusters_are_those_of_the_package(head):
    given = {"band": 15, "sinks": 4, "causal": True}
    centres = np.random.default_rng(4).normal(size=(1, 2, 5, 8)).astype("f4")
    pairs = (
        (methods.near(16, 4), near_far.near_field(*head, **given)),
        (methods.near(16, 4, mean=(0,)), near_far.joint_attention(*head, **given)),
        (
            methods.near(16, 4, far=methods.clusters(centres)),
            near_far.joint_attention(*head, centres=np.repeat(centres[0], 3, axis=0), **given),
        ),
    )
    for attend, expected in pairs:
        np.testing.assert_allclose(attend(0, *head), expected, atol=1e-5)
        q, k, v = head
        np.testing.assert_allclose(attend(0, q[:, -7:], k, v), expected[:, -7:], atol=1e-5)


def test_short_values_and_features_are_their_dense_formula_and_its_gradient_is_right(head):
    rng, (q, k, v) = np.random.default_rng(5), (x.astype(float) for x in head)
    W = {"keys": rng.normal(size=(1, 2, 5, 9)) / 9, "queries": rng.normal(size=(1, 6, 5, 9)) / 9}
    norms = np.quantile(np.linalg.norm(v, axis=-1), 0.1, axis=1)[None]
    attend = methods.near(16, 4, norms, far=methods.features(W))
    exact, rows, i = [], [], np.arange(300)
    for h in range(6):
        key, value, A, B = k[h // 3], v[h // 3], W["keys"][0, h // 3], W["queries"][0, h]
        phi = softmax(key @ A[:, :-1].T + A[:, -1], axis=1)
        far = np.exp(q[h] @ B[:, :-1].T / 8**0.5 + B[:, -1]) @ phi.T
        back, w = i[:, None] - i, np.exp(q[h] @ key.T / 8**0.5)
        for near, to in (
            ((back < 16) | (i < 4) | (np.linalg.norm(value, axis=1) < norms[0, h // 3]), rows),
            (back > -1, exact),
        ):
            w_near = np.where(back >= 0, np.where(near, w, far), 0)
            to.append(w_near @ value / w_near.sum(axis=1, keepdims=True))
    np.testing.assert_allclose(attend(0, q, k, v), rows, atol=1e-6)
    W_o, given = rng.normal(size=(7, 48)), (q.reshape(2, 3, 300, 8), k, v)
    W = [W["keys"][0], W["queries"][0].reshape(2, 3, 5, 9)]
    chosen = np.array([100, 250, 299])
    _, slopes = language_trained.loss(W, *given, chosen, W_o)
    for x, slope in zip(W, slopes, strict=True):
        for at in ((1, *(0,) * (x.ndim - 3), 2, 3), (0, *(1,) * (x.ndim - 3), 4, 8)):
            sides = []
            for step in (1e-5, -2e-5):
                x[at] += step
                sides.append(language_trained.loss(W, *given, chosen, W_o)[0])
            x[at] += 1e-5
            assert abs((sides[0] - sides[1]) / 2e-5 / slope[at] - 1) < 1e-4
