"""Directions that were trained for frozen heads: the gradient, the start, and what is kept."""

import csv

import numpy as np
import pytest
from scipy.special import logsumexp

from performer_course import antibody, attention, data
from tools.record import sequences as antibody_sequences
from tools.record.sequences import alike, drawn

SHAPES = [  # of q, k and both W
    ((5, 4), (5, 4), (6, 4)),
    ((3, 2), (7, 2), (1, 2)),
    ((2, 3, 6, 4), (2, 3, 6, 4), (2, 3, 8, 4)),
    ((4, 1, 3), (4, 9, 3), (4, 5, 3)),
]


def given(shapes, seed=0):
    rng = np.random.default_rng(seed)
    q, k, W = shapes
    return [rng.normal(size=shape) for shape in (q, k, W, W)]


def by_logarithms(q, k, W_q, W_k):
    """KL(A ‖ Â) of each row, (..., L), no number of which is ever larger than its logarithm."""
    x, y = (a * a.shape[-1] ** -0.25 for a in (q, k))
    t = x @ y.swapaxes(-1, -2)
    log_A = t - logsumexp(t, axis=-1, keepdims=True)
    g, h = x @ W_q.swapaxes(-1, -2), y @ W_k.swapaxes(-1, -2)
    h = h - (y**2).sum(axis=-1, keepdims=True) / 2
    log_w = logsumexp(g[..., :, None, :] + h[..., None, :, :], axis=-1)
    log_A_hat = log_w - logsumexp(log_w, axis=-1, keepdims=True)
    return (np.exp(log_A) * (log_A - log_A_hat)).sum(axis=-1)


# The divergence and its gradient


@pytest.mark.parametrize("shapes", SHAPES)
def test_the_divergence_is_the_mean_over_rows_of_each_head(shapes):
    arrays = given(shapes)
    kl, by_q, by_k = antibody.divergence(*arrays)
    assert (kl.shape, by_q.shape, by_k.shape) == (shapes[0][:-2], shapes[2], shapes[2])
    np.testing.assert_allclose(kl, by_logarithms(*arrays).mean(axis=-1), rtol=1e-10)


@pytest.mark.parametrize("longer", [False, True])
@pytest.mark.parametrize("shapes", SHAPES)
def test_the_gradient_in_closed_form_is_the_central_difference(shapes, longer):
    q, k, *W = given(shapes, seed=1)
    if longer:
        q, k = antibody.longer(q, k)
        W = [np.concatenate([w, w[..., :1]], axis=-1) for w in W]
    slopes, h = antibody.divergence(q, k, *W)[1:], 1e-5
    for n in range(2):
        for at in np.ndindex(W[n].shape):
            ends = []
            for end in (h, -h):
                moved = [w.copy() for w in W]
                moved[n][at] += end
                ends.append(antibody.divergence(q, k, *moved)[0].sum())
            assert abs(slopes[n][at] - (ends[0] - ends[1]) / (2 * h)) < 1e-8


@pytest.mark.parametrize("shapes", SHAPES)
def test_the_gradient_by_one_shared_w_is_what_jax_finds_through_favor_attention(shapes):
    jax = pytest.importorskip("jax", reason="where JAX is installed", exc_type=ImportError)
    q, k, W, _ = given(shapes, seed=2)

    def loss(W, q, k):
        eye = jax.numpy.broadcast_to(jax.numpy.eye(k.shape[-2]), (*k.shape[:-1], k.shape[-2]))
        A = jax.nn.softmax(q @ jax.numpy.matrix_transpose(k) / q.shape[-1] ** 0.5)
        A_hat = attention.favor_attention(q, k, eye, W)
        return (A * jax.numpy.log(A / A_hat)).sum(axis=-1).mean(axis=-1).sum()

    with jax.enable_x64(True):
        value, slope = jax.value_and_grad(loss)(*map(jax.numpy.asarray, (W, q, k)))
    kl, by_q, by_k = antibody.divergence(q, k, W, W)
    np.testing.assert_allclose(kl.sum(), float(value), rtol=1e-10)
    np.testing.assert_allclose(by_q + by_k, np.asarray(slope), rtol=1e-8, atol=1e-12)


def test_the_divergence_of_jax_arrays_is_that_of_numpy():
    jax = pytest.importorskip("jax", reason="where JAX is installed", exc_type=ImportError)
    arrays = given(SHAPES[2], seed=3)
    with jax.enable_x64(True):
        found = jax.jit(antibody.divergence)(*map(jax.numpy.asarray, arrays))
        for a, b in zip(found, antibody.divergence(*arrays), strict=True):
            np.testing.assert_allclose(np.asarray(a), b, rtol=1e-9, atol=1e-13)


def test_no_direction_is_better_than_features_that_are_exact():
    """Keys on the axes, each in a feature of its own, and queries with e^{qᵀk} of that key."""
    rng, d = np.random.default_rng(4), 5
    q, k = rng.normal(size=(7, d)), 3 * np.eye(d)
    W_q, W_k = k * d**-0.25, 100 * np.eye(d)
    kl, by_q, by_k = antibody.divergence(q, k, W_q, W_k)
    assert abs(kl) < 1e-12
    assert max(np.abs(by_q).max(), np.abs(by_k).max()) < 1e-12
    assert antibody.divergence(q, k, 0.9 * W_q, W_k)[0] > 1e-3


def test_the_divergence_of_rows_that_are_alike_is_nought_whatever_the_directions():
    _, k, W_q, W_k = given(SHAPES[2], seed=5)
    q, k = np.zeros_like(k), k[..., :1, :] + np.zeros_like(k)
    kl, by_q, by_k = antibody.divergence(q, k, W_q, W_k)
    for found in (kl, by_q, by_k):
        np.testing.assert_allclose(found, 0, atol=1e-14)


def test_the_divergence_is_right_where_exponentials_would_overflow():
    q, k, W_q, W_k = given(((6, 4), (6, 4), (40, 4)), seed=6)
    arrays = 8 * q, 8 * k, 40 * W_q, 40 * W_k
    assert (arrays[1] @ arrays[3].T).max() / 4**0.25 > 710
    expected = by_logarithms(*arrays)
    assert expected.max() < 700  # so that no weight that counts is below 10⁻³⁰⁸
    np.testing.assert_allclose(antibody.divergence(*arrays)[0], expected.mean(), rtol=1e-9)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("size", [1e-6, 1.0, 30.0, 1e3, 1e6])
def test_the_divergence_and_its_gradient_are_finite_at_any_norm(size, dtype):
    for seed in range(5):
        q, k, W_q, W_k = (x.astype(dtype) for x in given(SHAPES[2], seed))
        found = antibody.divergence(*antibody.longer(size * q, size * k), *_longer(W_q, size * W_k))
        for array in found:
            assert array.dtype == dtype
            assert np.isfinite(array).all()
        assert found[0].min() > -100 * np.finfo(dtype).eps


def _longer(*W):
    return [np.concatenate([w, w[..., :1]], axis=-1) for w in W]


# Attention by them


def head(seed=7):
    rng = np.random.default_rng(seed)
    q, k, v = rng.normal(size=(3, 8, 9, 64))
    W = rng.normal(size=(2, 8, 8, 16, 65)) / 4
    return q, k, v, W


def by_hand(q, k, v, W_q, W_k):
    """Weights Σ_f e^{ω_fᵀq'} e^{υ_fᵀk' − ‖k'‖²/2 + b_f}, head by head, nothing subtracted."""
    x, y = q * 64**-0.25, k * 64**-0.25
    phi_q = np.exp(x @ W_q[..., :-1].swapaxes(-1, -2))
    logs = y @ W_k[..., :-1].swapaxes(-1, -2) - (y**2).sum(axis=-1, keepdims=True) / 2
    w = phi_q @ np.exp(logs + W_k[..., None, :, -1]).swapaxes(-1, -2)
    return w / w.sum(axis=-1, keepdims=True) @ v


def test_attention_by_two_sets_of_directions_is_that_of_features_by_hand():
    q, k, v, (W_q, W_k) = head()
    for i in (0, 5):
        found = antibody.attend_by(W_q, W_k)(i, q, k, v)
        np.testing.assert_allclose(found, by_hand(q, k, v, W_q[i], W_k[i]), rtol=1e-9, atol=1e-12)


def test_attention_by_twice_the_same_directions_is_favor_attention():
    q, k, v, (W, _) = head()
    found = antibody.attend_by(W, W)(3, q, k, v)
    expected = attention.favor_attention(*antibody.longer(q, k), v, W[3])
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(found, by_hand(q, k, v, W[3], W[3]), rtol=1e-9, atol=1e-12)


def test_two_sets_of_directions_are_one_for_queries_and_keys_with_places_of_their_own():
    q, k, v, (W_q, W_k) = head(8)
    q_, k_ = antibody.longer(q, k)
    wide = 2**0.25 * np.concatenate([q_, 0 * q_], axis=-1)
    keys = 2**0.25 * np.concatenate([0 * k_, k_], axis=-1)
    W = np.concatenate([W_q, W_k], axis=-1)[2]
    expected = attention.favor_attention(wide, keys, v, W)
    found = antibody.attend_by(W_q, W_k)(2, q, k, v)
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("size", [1e2, 1e4])
def test_attention_by_two_sets_of_directions_is_finite_and_among_the_values_at_any_norm(size):
    q, k, v, (W_q, W_k) = head(9)
    found = antibody.attend_by(W_q, size * W_k)(0, size * q, size * k, v)
    low, high = v.min(axis=-2, keepdims=True), v.max(axis=-2, keepdims=True)
    assert ((low - 1e-9 <= found) & (found <= high + 1e-9)).all()


# Training


@pytest.mark.parametrize("sets", [1, 2])
def test_the_gradient_that_trains_is_the_one_that_jax_derives_from_the_loss(sets):
    jax = pytest.importorskip("jax", reason="trained where JAX is installed", exc_type=ImportError)
    from tools.record.directions import loss

    q, k, *W = given(((2, 3, 6, 4), (2, 3, 6, 4), (2, 3, 8, 5)), seed=10)

    def alone(params, q, k):
        W = params["W"]
        return antibody.divergence(*antibody.longer(q, k), W[0], W[-1])[0].sum()

    with jax.enable_x64(True):
        arrays = {"W": jax.numpy.asarray(W[:sets])}, jax.numpy.asarray(q), jax.numpy.asarray(k)
        value, slope = jax.value_and_grad(loss)(*arrays)
        expected, derived = jax.value_and_grad(alone)(*arrays)
    np.testing.assert_allclose(value, expected, rtol=1e-12)
    np.testing.assert_allclose(slope["W"], derived["W"], rtol=1e-8, atol=1e-12)


# Kept for everybody


def kept():
    with open(data.FOLDER / "antibody_trained.csv", encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_the_kept_directions_are_64_for_each_head_or_for_its_queries_and_its_keys_apart():
    for name, shape in (("", (8, 8, 64, 65)), ("_two", (2, 8, 8, 64, 65))):
        path = data.FOLDER / f"antibody_directions{name}.npz"
        with np.load(path) as stored:
            assert stored.files == ["W"]
            assert stored["W"].dtype == np.float16
            assert stored["W"].shape == shape
            assert np.isfinite(stored["W"]).all()
        assert path.stat().st_size < 1_000_000
    assert data.antibody_directions().shape == (8, 8, 64, 65)
    assert data.antibody_two_directions().dtype == np.float64
    assert not data.antibody_two_directions()[0, ..., -1].any()  # weights stand with the keys


def test_the_table_has_each_kind_and_number_of_directions_twice_and_all_of_them_learned():
    rows = kept()
    found = {(row["kind"], int(row["m"]), int(row["seed"])): row for row in rows}
    assert len(rows) == len(found)
    assert sorted(found) == [
        (kind, m, seed) for kind in ("shared", "two") for m in (16, 32, 64) for seed in (0, 1)
    ]
    for kind in ("shared", "two"):
        for seed in (0, 1):
            ends = [float(found[kind, m, seed]["KL at the end"]) for m in (64, 32, 16)]
            starts = [float(found[kind, m, seed]["KL at the start"]) for m in (64, 32, 16)]
            assert sorted(ends) == ends
            assert (np.array(ends) < 0.25 * np.array(starts)).all()
            for m in (32, 64):
                assert float(found[kind, m, seed]["perplexity"]) < 1.68


@pytest.mark.parametrize(
    ("shapes", "words"),
    [
        (((5, 4), (6, 3), (7, 4), (7, 4)), "rows of one width, got 4 and 3"),
        (((5, 4), (6, 4), (7, 3), (7, 4)), "W_q must have shape"),
        (((5, 4), (6, 4), (7, 4), (7, 3)), "W_k must have shape"),
        (((0, 4), (6, 4), (7, 4), (7, 4)), "q must"),
    ],
)
def test_a_divergence_of_what_does_not_fit_is_refused(shapes, words):
    with pytest.raises(ValueError, match=words):
        antibody.divergence(*(np.ones(shape) for shape in shapes))


# Chains to train by


def test_likeness_is_the_share_of_letters_that_need_no_edit():
    assert alike("ACDE", "ACDE") == 1
    assert alike("ACDE", "ACDF") == 0.75
    assert alike("ACDE", "CDE") == alike("CDE", "ACDE") == 0.75
    assert alike("KITTEN", "SITTING") == 1 - 3 / 7
    assert alike("AAAA", "CCC") == 0


def test_chains_to_train_by_are_less_than_nine_tenths_alike_to_any_that_judges():
    train = data.antibodies("training")
    judges = data.antibodies() | data.antibodies("calibration")
    assert len(train) == 48
    assert not set(train) & (set(judges) | set(antibody_sequences.KEPT.split()))
    chains = [chain for pair in train.values() for chain in pair]
    assert len(set(chains)) == 96
    assert {letter for chain in chains for letter in chain} == set(antibody.RESIDUES)
    worst = max(antibody_sequences.nearest(pair, judges.values()) for pair in train.values())
    assert 0.85 < worst < 0.9


def test_an_antibody_is_not_drawn_to_train_by_if_it_is_alike_repeats_or_has_other_letters():
    judges = {"J": ("ACDEFGHIKL", "LKIHGFEDCA")}
    good = {"G": ("WWWWWWWWWW", "YYYYYYYYYY")}
    bad = {
        "like heavy": ("ACDEFGHIKW", "VVVVVVVVVV"),
        "like light": ("VVVVVVVVVV", "LKIHGFEDCW"),
        "letter": ("WXWWWWWWWW", "VVVVVVVVVV"),
    }
    assert drawn(judges | good | bad, judges) == good
    twice = {"A": ("WWWWWWWWWW", "VVVVVVVVVV"), "B": ("WWWWWWWWWW", "TTTTTTTTTT")}
    assert len(drawn(twice, judges)) == 1
    assert len(drawn(good | {"A": ("TTTTTTTTTT", "VVVVVVVVVV")}, judges, many=1)) == 1
