"""The small transformer: its parts beside the textbook's loops, and what it must not see."""

import math

import numpy as np
import pytest

from performer_course.transformer import ATTENTIONS, Config, block, forward, init, positions
from tests.support.textbook import favor_by_rows, softmax_by_rows

ENCODER = Config(vocabulary=11, width=12, heads=3, depth=2, causal=False)
DECODER = Config(vocabulary=11, width=12, heads=3, depth=2, causal=True)
each_kind = pytest.mark.parametrize("kind", ["softmax", "favor"])


def with_attention(config, kind, m=16):
    return Config(**{**vars(config), "attention": kind, "m": m})


def rng(seed=0):
    return np.random.default_rng(seed)


def tokens_of(*shape, seed=1):
    return rng(seed).integers(11, size=shape)


def by_rows(params, tokens, config):
    """ln P for one sequence, row by row and head by head."""
    n, d, L = config.width, config.width // config.heads, len(tokens)

    def norm(x, gain, shift):
        return gain * (x - x.mean()) / math.sqrt(x.var() + 1e-5) + shift

    x = np.array([params["embedding"][t] * math.sqrt(n) for t in tokens])
    for p in range(L):
        for i in range(n // 2):
            angle = p * 10000 ** (-2 * i / n)
            x[p, i] += math.sin(angle)
            x[p, n // 2 + i] += math.cos(angle)
    for b in range(config.depth):
        layer = {k: v[b] for k, v in params.items() if k not in ("embedding", "gain", "shift")}
        y = np.array([norm(r, layer["attention gain"], layer["attention shift"]) for r in x])
        q, k, v = (y @ layer[name] for name in ("query", "key", "value"))
        mixed = np.zeros_like(x)
        for h in range(config.heads):
            own = (slice(None), slice(h * d, (h + 1) * d))
            rows = q[own], k[own], v[own]
            if config.attention == "softmax":
                mixed[own] = softmax_by_rows(*rows, causal=config.causal)
            else:
                mixed[own] = favor_by_rows(*rows, layer["W"], causal=config.causal)
        x = x + mixed @ layer["heads"]
        y = np.array([norm(r, layer["map gain"], layer["map shift"]) for r in x])
        x = x + np.maximum(y @ layer["wider"], 0) @ layer["narrower"]
    x = np.array([norm(r, params["gain"], params["shift"]) for r in x])
    logits = x @ params["embedding"].T
    return logits - np.log(np.exp(logits).sum(1, keepdims=True))


@each_kind
@pytest.mark.parametrize("config", [ENCODER, DECODER], ids=["encoder", "decoder"])
def test_forward_equals_the_textbook(config, kind):
    config = with_attention(config, kind)
    params, tokens = init(rng(), config), tokens_of(4, 9)
    for name in (f"{part}{of}" for part in ("", "map ", "attention ") for of in ("gain", "shift")):
        params[name] = params[name] + 0.1 * rng(2).normal(size=params[name].shape)
    found = forward(params, tokens, config)
    assert found.shape == (4, 9, 11)
    for one, sequence in zip(found, tokens, strict=True):
        np.testing.assert_allclose(one, by_rows(params, sequence, config), rtol=1e-10)


@each_kind
@pytest.mark.parametrize("of", [ENCODER, DECODER], ids=["encoder", "decoder"])
def test_padding_on_either_side_is_invisible(kind, of):
    config, i = with_attention(of, kind), np.arange(9)
    params, tokens = init(rng(), config), tokens_of(3, 9)
    mask = np.stack([i < 6, i >= 0, i >= 4])
    found = forward(params, tokens, config, mask)
    for rows, text, seen in zip(found, tokens, mask, strict=True):
        np.testing.assert_allclose(rows[seen], forward(params, text[seen], config), rtol=1e-10)


@each_kind
@pytest.mark.parametrize("of", [ENCODER, DECODER], ids=["encoder", "decoder"])
def test_attend_takes_the_place_of_the_attention_of_every_block_and_is_given_what_it_needs(
    kind, of
):
    """q, k and v by heads, the layer with its W, causal and the mask: enough to be that kind."""
    other, config = (with_attention(of, name) for name in sorted(ATTENTIONS, key=kind.__eq__))
    params, tokens = init(rng(), config), tokens_of(2, 9)
    mask, given = np.arange(9) < np.array([[6], [9]]), []

    def attend(q, k, v, layer, *, causal, key_mask):
        given.append((layer["W"], q.shape, causal, key_mask))
        return ATTENTIONS[kind](q, k, v, layer, causal=causal, key_mask=key_mask)

    found = forward(params, tokens, other, mask, attend)
    np.testing.assert_array_equal(found, forward(params, tokens, config, mask))
    assert np.abs(found - forward(params, tokens, other, mask)).max() > 0.01
    assert len(given) == config.depth
    for directions, (W, shape, causal, key_mask) in zip(params["W"], given, strict=True):
        np.testing.assert_array_equal(W, directions)
        np.testing.assert_array_equal(key_mask, mask[:, None, :])
        assert (shape, causal) == ((2, 3, 9, 4), of.causal)
    layer = {name: x[0] for name, x in params.items() if x.ndim > 1}
    x = rng(3).normal(size=(2, 9, 12))
    found, expected = block(x, layer, other, mask, attend), block(x, layer, config, mask)
    np.testing.assert_array_equal(found, expected)


def test_parameters_do_not_depend_on_the_attention():
    first, second = (init(rng(), with_attention(DECODER, kind)) for kind in ("softmax", "favor"))
    assert first.keys() == second.keys()
    assert all(np.array_equal(first[name], second[name]) for name in first)
    assert all(x.dtype == np.float64 for x in first.values())
    assert first["W"].shape == (2, 16, 4)


def test_rows_keep_their_size_through_a_fresh_matrix():
    params = init(rng(), Config(vocabulary=5, width=256, heads=4, depth=1))
    x = rng(1).normal(size=(100, 256))
    for name in ("query", "key", "value", "heads", "wider"):
        assert abs((x @ params[name][0]).std() - 1) < 0.05


@pytest.mark.parametrize("width", [1, 2, 7, 12])
def test_positions_turn_by_a_fixed_angle(width):
    table = positions(np.zeros((50, width)))
    assert table.shape == (50, width)
    assert table.dtype == np.float64
    half = (width + 1) // 2
    angle = np.arange(50)[:, None] * 10000 ** (-2 * np.arange(half) / width)
    expected = np.concatenate([np.sin(angle), np.cos(angle)], axis=1)[:, :width]
    np.testing.assert_allclose(table, expected, atol=1e-12)


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ({"width": 10, "heads": 3}, "width must be a multiple of heads, got 10 and 3"),
        ({"depth": 0}, "depth must be an integer of at least 1, got 0"),
        ({"attention": "linear"}, "attention must be one of .* got 'linear'"),
    ],
)
def test_a_configuration_that_does_not_fit_is_refused(sizes, message):
    with pytest.raises(ValueError, match=message):
        Config(**{"vocabulary": 11, **sizes})


def test_what_belongs_to_another_configuration_is_refused_by_name():
    params = {name: x for name, x in init(rng(), DECODER).items() if name != "wider"}
    with pytest.raises(ValueError, match="params must have 'wider', got"):
        forward(params, tokens_of(2, 9), DECODER)
