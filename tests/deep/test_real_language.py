"""The language model itself, where it was fetched: its logits, and its record asked again."""

import numpy as np
import pytest
from scipy.special import log_softmax, softmax

from performer_course import near_far
from performer_course.models import language
from performer_course.transformer import join_heads
from tests.deep import language_logits
from tests.exercises.lesson_23 import row_by_row
from tests.support.language_model import needs_language, real_language, small_language
from tests.support.lessons import needs_training, table
from tools.record import language as record
from tools.record import language_methods as methods


@pytest.fixture(scope="module")
def weights():
    return real_language()


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
@pytest.mark.parametrize("method", ["exact", "window 64 + 4"])
def test_a_window_of_the_record_is_found_again(method, weights):
    tokens = record.windows(weights, "judge")["technical 2"]
    attend = methods.exact if method == "exact" else methods.near(64, 4)
    (kept,) = table("language_nats", window="technical 2", method=method)
    lost = record.nats_of(weights, tokens, attend)
    assert abs(lost.mean() - float(kept["nats"])) < 2e-3
    assert abs(lost[:32].mean() - float(kept["0"])) < 4e-3


@needs_language
def test_an_error_and_a_retrieval_of_the_record_are_found_again(weights):
    near = methods.near(64, 4)
    attend = methods.hybrid({18, 23, 7, 17}, near)
    (kept,) = table("language_recall", **{"sequence": "2", "exact blocks": "7 17 18 23"})
    found = record.scores(weights, *record.sequence(weights, 2), attend)
    np.testing.assert_allclose(found, [float(kept[kind]) for kind in record.KINDS], atol=0.01)
    given = record.heads(weights, *record.chosen(weights))[7]
    (kept,) = table("language_errors", method="window 64 + 4", block="7")
    kept = [float(kept[name]) for name in ("error", "normalised")]
    np.testing.assert_allclose(record.error(weights, near, 7, given), kept, rtol=0.01)


# What the recorders compute by formulas of their own


@pytest.fixture
def head():
    rng = np.random.default_rng(3)
    return [2 * rng.normal(size=(n, 300, 8)) for n in (6, 2, 2)]


def test_near_keys_sinks_and_mean_keys_are_those_of_the_package(head):
    for mean, function in (((), near_far.near_field), ((0,), near_far.joint_attention)):
        expected = function(*head, 15, sinks=4, causal=True)
        attend = methods.near(16, 4, mean=mean)
        np.testing.assert_allclose(attend(0, *head), expected, atol=1e-6)
        memory = methods.Memory(attend, 0)
        found = [memory.follow(*(x[:, p] for x in head)) for p in (slice(260), slice(260, 300))]
        np.testing.assert_allclose(np.hstack(found), expected, atol=1e-6)


def test_a_key_head_stays_exact_with_the_heads_that_share_it(head):
    near = methods.near(16, 4)
    found = methods.hybrid({(0, 1), (1, 1)}, near)(0, *head)
    np.testing.assert_array_equal(found[:3], near(0, *head)[:3])
    np.testing.assert_allclose(found[3:], methods.exact(0, *head)[3:], atol=1e-12)


def test_keys_with_short_values_stay_exact_for_the_heads_that_share_them(head):
    q, k, v = head
    norms, i = np.quantile(np.linalg.norm(v, axis=-1), 0.1, axis=1), np.arange(300)
    short = np.repeat(np.linalg.norm(v, axis=-1) < norms[:, None], 3, axis=0)[:, None]
    back, k3, v3 = i[:, None] - i, *(np.repeat(x, 3, axis=0) for x in (k, v))
    t = q @ k3.swapaxes(-1, -2) / 8**0.5
    t = np.where((back >= 0) & ((back < 16) | short), t, -np.inf)
    expected = softmax(t, axis=-1) @ v3
    np.testing.assert_allclose(methods.near(16, 0, norms[None])(0, q, k, v), expected, atol=1e-6)


def test_queries_that_look_at_one_distant_key_are_counted_row_by_row(head):
    q, k, _ = head
    q, d = 4 * q, k.shape[-1]
    found = record.single_far_keys(q, k, 16, 2)
    expected = [row_by_row(x * d**0.5 / 8, k[h // 3], 16, 2) for h, x in enumerate(q)]  # not √64
    assert np.array_equal(found, expected)
    assert 0.05 < found.mean() < 0.95


def test_the_loss_to_train_by_is_the_error_of_the_features(head):
    _, trained = needs_training("tools.record.language_trained")
    rng, (q, k, v) = np.random.default_rng(5), (head[0] / 4, *head[1:])  # far keys matter
    W, chosen = [rng.normal(size=(2, 5, 9)) / 9, rng.normal(size=(2, 3, 5, 9)) / 9], [100, 250, 299]
    W_o, far = rng.normal(size=(7, 48)), {"keys": W[:1], "queries": W[1].reshape(1, 6, 5, 9)}
    outputs = (f(0, q, k, v)[:, chosen] for f in (methods.exact, methods.near(64, 4, far=far)))
    exact, found = (join_heads(x) @ W_o.T for x in outputs)
    value = trained.loss(W, q.reshape(2, 3, 300, 8), k, v, W_o, np.array(chosen))
    np.testing.assert_allclose(value, ((found - exact) ** 2).sum() / (exact**2).sum(), rtol=1e-4)


@pytest.fixture
def imitated(monkeypatch):
    """The recorder of projections that learn, without rounding."""
    _, language_imitated = needs_training("tools.record.language_imitated")
    for name, value in {"KIND": np.float32, "PIECE": 128, "WINDOW": 7}.items():
        monkeypatch.setattr(language_imitated, name, value)
    return language_imitated


def test_the_loss_of_projections_is_the_divergence_from_the_exact_model(imitated):
    """And its gradient is the slope of differences, along a random direction."""
    import jax

    rng, small = np.random.default_rng(6), small_language()
    tokens = rng.integers(2, 200, size=128)
    exact, own = (
        log_softmax(language.logits(small, tokens, attend).astype(float), axis=-1)
        for attend in (methods.exact, methods.near(7, 4))
    )
    W, rest = imitated.stacked(small)
    slope = jax.jit(jax.value_and_grad(imitated.loss))
    value, found = slope(W, W, rest, tokens)
    expected = (np.exp(exact) * (exact - own)).sum(axis=-1).mean()
    np.testing.assert_allclose(value, expected, rtol=1e-3)
    for part in W:
        way = {x: rng.normal(size=W[x].shape) * (x == part) for x in W}
        ends = ({x: W[x] + h * way[x] for x in W} for h in (-4e-4, 4e-4))
        low, high = (float(slope(end, W, rest, tokens)[0]) for end in ends)
        np.testing.assert_allclose((found[part] * way[part]).sum(), (high - low) / 8e-4, rtol=0.03)


def test_training_changes_the_projections_alone_and_lowers_the_loss(imitated, monkeypatch):
    small = small_language()
    monkeypatch.setattr(
        record, "texts", lambda: {"train": "other " * 200, "reference 0": "in it " * 200}
    )
    for name, value in {"STEPS": (1, 20), "RATE": 1e-4}.items():
        monkeypatch.setattr(imitated, name, value)
    first, last = (now for _, now in imitated.trained(small, 0))
    tokens = next(imitated.pieces(small, 0))
    exact, rest = imitated.stacked(small)
    before, after = (
        imitated.loss(imitated.stacked(now)[0], exact, rest, tokens) for now in (first, last)
    )
    assert after < 0.8 * before
    changed = {name for name in small if small[name] is not last[name]}
    assert changed == {
        f"blk.{i}.attn_{x}.weight" for i in range(12) for x in ("q", "k", "v", "output")
    }
