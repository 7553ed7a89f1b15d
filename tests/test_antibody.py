"""A real model's weights, read without its framework (what is no file of them: test_models); the
model; and features trained for it.
"""

import numpy as np
import pytest
from scipy.special import log_softmax, logsumexp, softmax
from scipy.stats import norm as normal

from performer_course import compare, projections
from performer_course.models import antibody
from performer_course.teaching import data
from tests.support.real_model import INTEGERS, NUMBERS, small_weights, tensor, trusted, written

# A file of weights


def test_a_file_of_weights_is_read_exactly(tmp_path):
    """A state dict has _metadata beside its entries, and two entries may share a storage."""
    path = written(
        tmp_path / "weights.bin",
        whole=tensor((3, 4), (4, 1)),
        part=tensor((2, 3), (3, 1), offset=5),
        turned=tensor((4, 3), (1, 4)),
        number=tensor((), (), offset=11),
        integers=tensor((3,), kind="LongStorage", key=1),
    )
    found = trusted(antibody, path)
    expected = {
        "whole": NUMBERS.reshape(3, 4),
        "part": NUMBERS[5:11].reshape(2, 3),
        "turned": NUMBERS.reshape(3, 4).T,
        "number": NUMBERS[11],
        "integers": INTEGERS,
    }
    assert list(found) == list(expected)
    for name, array in expected.items():
        np.testing.assert_array_equal(found[name], array)
        assert (found[name].shape, found[name].dtype) == (array.shape, array.dtype)
        assert found[name].flags.owndata
        assert found[name].flags.writeable


# The model


def test_a_sequence_becomes_its_tokens_between_two_of_their_own():
    assert antibody.encode("ACY").tolist() == [2, 5, 6, 24, 3]
    for letter in antibody.RESIDUES:
        assert antibody.TOKENS[antibody.encode(letter)[1]] == letter
    assert antibody.RESIDUES == "ACDEFGHIKLMNPQRSTVWY"
    assert (antibody.TOKENS[0], antibody.TOKENS[antibody.MASK]) == ("[PAD]", "[MASK]")
    assert antibody.encode("A" * 510).shape == (512,)


WORDS = "bert.embeddings.word_embeddings.weight"


@pytest.fixture(scope="module")
def small():
    return small_weights()


def textbook(w, tokens):
    """Logits (L, 25) of one sequence, by other means: one head after the other."""

    def linear(name, x):
        return x @ w[f"{name}.weight"].T + w[f"{name}.bias"]

    def norm(name, x):
        x = (x - x.mean(axis=1, keepdims=True)) / (x.var(axis=1, keepdims=True) + 1e-12) ** 0.5
        return w[f"{name}.weight"] * x + w[f"{name}.bias"]

    def gelu(x):
        return x * normal.cdf(x)

    e, head = "bert.embeddings", "cls.predictions"
    x = w[f"{e}.word_embeddings.weight"][tokens] + w[f"{e}.token_type_embeddings.weight"][0]
    x = norm(f"{e}.LayerNorm", x + w[f"{e}.position_embeddings.weight"][: len(tokens)])
    for b in (f"bert.encoder.layer.{i}" for i in range(8)):
        names = (f"{b}.attention.self.{name}" for name in ("query", "key", "value"))
        qkv = (np.split(linear(name, x), 8, axis=1) for name in names)
        heads = [softmax(q @ k.T / 2**0.5, axis=1) @ v for q, k, v in zip(*qkv, strict=True)]
        x = x + linear(f"{b}.attention.output.dense", np.hstack(heads))
        y = norm(f"{b}.attention.output.LayerNorm", x)
        wide = gelu(linear(f"{b}.intermediate.dense", y))
        x = norm(f"{b}.output.LayerNorm", y + linear(f"{b}.output.dense", wide))
    x = norm(f"{head}.transform.LayerNorm", gelu(linear(f"{head}.transform.dense", x)))
    return linear(f"{head}.decoder", x)


def tokens(*lengths, seed=0):
    """A batch (len(lengths), L) of random residues, with [PAD] from each length on."""
    found = np.random.default_rng(seed).integers(5, 25, size=(len(lengths), max(lengths)))
    for row, n in zip(found, lengths, strict=True):
        row[n:] = antibody.PAD
    return found


def close(found, expected):
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)


def test_the_model_is_its_slow_textbook_loop_and_padding_is_not_seen(small):
    """At the end of a sequence, within it, in a batch of batches; each block is asked once."""
    batch = np.stack([tokens(6, 6), tokens(6, 4, seed=1)])  # (2, 2, 6)
    batch[0, 1, 2] = antibody.PAD
    seen = []

    def attend(i, q, k, v):
        seen.append((i, *k.shape))
        return antibody.attend_exact(i, q, k, v)

    found = antibody.forward(small, batch, attend)
    assert found.shape == (2, 2, 6, 25)
    assert seen == [(i, 8, n, 2) for i in range(8) for n in (6, 5, 6, 4)]
    close(found[0, 0], textbook(small, batch[0, 0]))
    close(found[1, 1, :4], textbook(small, batch[1, 1, :4]))
    seen, pair = [], tokens(4, 4, seed=2)
    close(antibody.forward(small, pair, attend)[1], textbook(small, pair[1]))
    assert seen == [(i, 2, 8, 4, 2) for i in range(8)]  # sequences of one length at once
    half = {name: a.astype(np.float32) for name, a in small.items()}
    again = antibody.forward(half, batch[0, 0], antibody.attend_exact)
    assert again.dtype == np.float32
    np.testing.assert_allclose(again, found[0, 0], atol=2e-3)
    other = small | {WORDS: small[WORDS] + (np.arange(25) == antibody.PAD)[:, None]}
    again = antibody.forward(other, batch, antibody.attend_exact)
    own = batch != antibody.PAD
    np.testing.assert_array_equal(again[own], found[own])


def test_on_another_chain_64_trained_directions_are_nearer_to_softmax_than_1024_drawn():
    (q, k, _), rng = data.antibody_heads(), np.random.default_rng(1)
    drawn = projections.orthogonal(rng, 1024, 64)
    W = antibody.directions()[[0, 0, 4, 4, 7, 7], [7, 5, 6, 3, 3, 6]]
    fitted = np.stack([compare.fitted_directions(drawn, q[i, 0], k[i, 0]) for i in range(6)])
    given = compare.with_weight_column(q[:, 1], k[:, 1])
    trained, other = (antibody.divergence(*given, of)[0] for of in (W, fitted))
    assert (trained < other).all()


def test_every_residue_is_masked_in_one_pass_and_passes_are_of_like_size():
    for n, passes in ((1, 8), (7, 8), (8, 8), (120, 8), (122, 3)):
        found = antibody.masks(np.random.default_rng(n), n, passes)
        assert (found.shape, found.dtype) == ((passes, n), bool)
        assert (found.sum(axis=0) == 1).all()
        assert np.ptp(found.sum(axis=1)) <= 1
    first, other = (antibody.masks(np.random.default_rng(seed), 120) for seed in (0, 1))
    assert (first != other).any()


def test_heads_are_what_the_unchanged_model_hands_on(small):
    given, seen = tokens(6)[0], []

    def attend(i, q, k, v):
        seen.append((q, k, v))
        return antibody.attend_exact(i, q, k, v)

    antibody.forward(small, given, attend)
    for n, found in enumerate(antibody.heads(small, given)):
        assert found.shape == (8, 8, 6, 2)
        np.testing.assert_array_equal(found, [one[n] for one in seen])


def test_a_guess_is_the_models_for_hidden_tokens_among_the_twenty(small):
    sequence = "EVQLVESGG"
    masked = np.zeros((2, 9), dtype=bool)
    masked[0, [1, 4]] = masked[1, 8] = True
    weights = small | {WORDS: 300 * small[WORDS]}  # so that it matters which token stands there
    found = antibody.guess(weights, sequence, masked, antibody.attend_exact)
    assert found.shape == (2, 9, 20)
    np.testing.assert_allclose(np.exp(found).sum(axis=-1), 1)
    tokens = antibody.encode(sequence)
    for row, places in zip(found, ([2, 5], [9]), strict=True):
        hidden = tokens.copy()
        hidden[places] = antibody.MASK
        np.testing.assert_allclose(row, log_softmax(textbook(weights, hidden)[1:-1, 5:], axis=-1))
    assert np.abs(found[0, 4] - found[1, 4]).max() > 1e-3


def forward(tokens):
    antibody.forward(small_weights(), tokens, antibody.attend_exact)


@pytest.mark.parametrize(
    ("function", "given", "words"),
    [
        (antibody.encode, "A" * 511, "1 to 510 letters, got 511"),
        (antibody.encode, "EVQXV", "got 'X' at position 3"),
        (antibody.encode, "evq", "got 'e' at position 0"),
        (antibody.encode, "EVQL\n", r"got '\\n' at position 4"),
        (forward, np.full(513, 5), r"L ≤ 512, got \(513,\)"),
        (forward, np.array([[2, 3], [0, 0]]), "one that is not"),
        (lambda i: antibody.attend_trained(i, *np.ones((3, 8, 5, 64))), -1, "^i must be "),
        (lambda i: antibody.attend_trained(i, *np.ones((3, 8, 5, 64))), 8, "^i must be "),
    ],
)
def test_what_is_not_known_is_refused_and_named(function, given, words):
    with pytest.raises(ValueError, match=words):
        function(given)


# Directions, trained


SHAPES = [  # of q, k and W
    ((5, 4), (5, 4), (6, 4)),
    ((3, 2), (7, 2), (1, 2)),
    ((2, 3, 6, 4), (2, 3, 6, 4), (2, 3, 8, 4)),
    ((4, 1, 3), (4, 9, 3), (4, 5, 3)),
]


def given(shapes, seed=0):
    rng = np.random.default_rng(seed)
    return [rng.normal(size=shape) for shape in shapes]


def by_logarithms(q, k, W):
    """KL(A ‖ Â) of each row, (..., L), no number of which is ever larger than its logarithm."""
    x, y = (a * a.shape[-1] ** -0.25 for a in (q, k))
    t = x @ y.mT
    log_A = t - logsumexp(t, axis=-1, keepdims=True)
    g, h = x @ W.mT, y @ W.mT - (y**2).sum(axis=-1, keepdims=True) / 2
    log_w = logsumexp(g[..., :, None, :] + h[..., None, :, :], axis=-1)
    log_A_hat = log_w - logsumexp(log_w, axis=-1, keepdims=True)
    return (np.exp(log_A) * (log_A - log_A_hat)).sum(axis=-1)


@pytest.mark.parametrize("shapes", SHAPES)
def test_the_divergence_is_the_mean_over_rows_and_its_gradient_the_central_difference(shapes):
    q, k, W = given(shapes)
    kl, slope = antibody.divergence(q, k, W)
    assert (kl.shape, slope.shape) == (shapes[0][:-2], shapes[2])
    np.testing.assert_allclose(kl, by_logarithms(q, k, W).mean(axis=-1), rtol=1e-10)
    for at in np.ndindex(W.shape):
        up, down = W.copy(), W.copy()
        up[at], down[at] = W[at] + 1e-5, W[at] - 1e-5
        ends = [antibody.divergence(q, k, end)[0].sum() for end in (up, down)]
        assert abs(slope[at] - (ends[0] - ends[1]) / 2e-5) < 1e-8


def test_the_divergence_is_right_where_exponentials_would_overflow():
    q, k, W = given(((6, 4), (6, 4), (40, 4)), seed=3)
    arrays = 4 * q, 4 * k, 40 * W
    assert (arrays[1] @ arrays[2].T).max() / 4**0.25 > 710
    expected = by_logarithms(*arrays)
    assert expected.max() < 700  # so that no weight that counts is below 10⁻³⁰⁸
    np.testing.assert_allclose(antibody.divergence(*arrays)[0], expected.mean(), rtol=1e-9)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("size", [1e-6, 1.0, 30.0, 1e3, 1e6])
def test_the_divergence_and_its_gradient_are_finite_at_any_norm(size, dtype):
    for seed in range(5):
        q, k, W = (x.astype(dtype) for x in given(SHAPES[2], seed))
        longer = size * np.concatenate([W, W[..., :1]], axis=-1)
        found = antibody.divergence(*compare.with_weight_column(size * q, size * k), longer)
        for array in found:
            assert array.dtype == dtype
            assert np.isfinite(array).all()
        assert found[0].min() > -100 * np.finfo(dtype).eps


@pytest.mark.parametrize("i", [0, 5, 7])
def test_attention_by_trained_directions_is_that_of_features_by_hand(i):
    """Weights Σ_f e^{ω_fᵀq'} e^{ω_fᵀk' − ‖k'‖²/2 + b_f}, head by head, nothing subtracted."""
    q, k, v = np.random.default_rng(7).normal(size=(3, 8, 9, 64))
    W = antibody.directions()[i]
    x, y = q * 64**-0.25, k * 64**-0.25
    logs = y @ W[..., :-1].mT - (y**2).sum(axis=-1, keepdims=True) / 2
    w = np.exp(x @ W[..., :-1].mT) @ np.exp(logs + W[..., None, :, -1]).mT
    expected = w / w.sum(axis=-1, keepdims=True) @ v
    found = antibody.attend_trained(i, q, k, v)
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)


# Kept for everybody


def test_antibodies_are_twelve_to_judge_by_and_twelve_others():
    parts = [data.antibodies(), data.antibodies("calibration")]
    assert [len(part) for part in parts] == [12, 12]
    assert not set(parts[0]) & set(parts[1])
    chains = [chain for part in parts for pair in part.values() for chain in pair]
    assert len(set(chains)) == 48
    assert {letter for chain in chains for letter in chain} == set(antibody.RESIDUES)
    assert (min(map(len, chains)), max(map(len, chains))) == (104, 127)
    heavy, light = data.antibodies()["Trastuzumab"]
    assert heavy.endswith("CSRWGGDGFYAMDYWGQGTLVTVSS")
    assert light.startswith("DIQMTQSPSSLSASVGDRVTITCRASQDVNTAVAWYQQKPGKAPKLLIYSASFLYS")
