"""The window with sinks inside transformers, on small decoders; skipped where it is not installed.

pip install torch==2.13.0 transformers==5.23.0
"""

import functools
import itertools

import numpy as np
import pytest

from performer_course import card

torch = pytest.importorskip("torch", reason="checked where torch is", exc_type=ImportError)
of = pytest.importorskip("transformers", reason="checked where it is", exc_type=ImportError)

from performer_course import huggingface  # noqa: E402
from performer_course.huggingface import constant_cache, register, store_heads  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
WINDOW, SINKS, TOKENS = 8, 2, 60
SIZES = {"vocab_size": 50, "hidden_size": 48, "intermediate_size": 64, "num_hidden_layers": 3}
SIZES |= {"num_attention_heads": 6, "num_key_value_heads": 2}
close = functools.partial(torch.testing.assert_close, rtol=0, atol=1e-4)
# Tokens hidden on the left, on the right and nowhere, in texts of 60 tokens.
LEFT, RIGHT = (13, 0, 56), (0, 11, 58)


@pytest.fixture(autouse=True)
def no_gradients():
    with torch.no_grad():
        yield


def decoder(kind="Llama", name="near_far", **config):
    """A random decoder in which it matters what a token attends to."""
    torch.manual_seed(0)
    config = getattr(of, f"{kind}Config")(**(SIZES | config))
    model = getattr(of, f"{kind}ForCausalLM")(config).eval()
    for weights in model.parameters():
        weights *= 3
    model.generation_config.pad_token_id, model.generation_config.eos_token_id = 0, None
    register("near_far", window=WINDOW, sinks=SINKS, exact_layers={1})
    model.set_attn_implementation(name)
    return model


def texts():
    return torch.randint(1, 50, (3, TOKENS), generator=torch.Generator().manual_seed(1))


def padded(hidden, side):
    """The texts, 0 where the mask hides them, and the mask, both (3, TOKENS)."""
    j, n = torch.arange(TOKENS), torch.tensor(hidden)[:, None]
    mask = (j >= n if side == "left" else j < TOKENS - n).long()
    return texts() * mask, mask


@pytest.mark.parametrize("exact", [(), (1,), (0, 1, 2)], ids=str)
def test_the_logits_are_those_under_a_mask_of_pairs(exact):
    model, x = decoder(), texts()
    register("near_far", window=WINDOW, sinks=SINKS, exact_layers=exact)
    i, j = torch.arange(TOKENS)[:, None], torch.arange(TOKENS)
    near = {"attention_mask": ((j <= i) & ((j > i - WINDOW) | (j < SINKS)))[None, None]}
    model.set_attn_implementation("sdpa")
    layers, keep = [model.model.layers[n] for n in {0, 1, 2} - {*exact}], {"with_kwargs": True}
    hooks = [x.register_forward_pre_hook(lambda _, a, b: (a, b | near), **keep) for x in layers]
    expected = model(x).logits
    for hook in hooks:
        hook.remove()
    exactly = model(x).logits
    assert ((expected - exactly).abs().max() > 1) == (len(exact) < 3)
    model.set_attn_implementation("near_far")
    close(model(x).logits, expected)
    state = of.DynamicCache(config=model.config)
    parts = [
        model(part, past_key_values=state).logits for part in x.split([3] + 17 * [1] + [40], 1)
    ]
    close(torch.cat(parts, dim=1), expected)


@pytest.mark.parametrize("cache", ["none", "dynamic", "static", "constant"])
@pytest.mark.parametrize(("side", "hidden"), [("left", LEFT), ("right", RIGHT)])
def test_a_padded_batch_has_the_logits_of_each_text_alone(side, hidden, cache):
    """In one call; on the left, where a text can go on, also as a prompt, a token and two more."""
    model, (x, mask) = decoder(), padded(hidden, side)
    stops, given = [TOKENS], {"use_cache": False}
    if cache != "none":
        state = (
            constant_cache(model) if cache == "constant" else of.DynamicCache(config=model.config)
        )
        if cache == "static":
            state = of.StaticCache(config=model.config, max_cache_len=TOKENS + 9)
        stops = [57, 58, TOKENS] if side == "left" else stops
        given = {"past_key_values": state}
    places = (mask.cumsum(-1) - 1).clamp(min=0)
    found = []
    for start, stop in itertools.pairwise([0, *stops]):
        own = {"attention_mask": mask[:, :stop], "position_ids": places[:, start:stop]}
        found.append(model(x[:, start:stop], **own, **given).logits)
    found = torch.cat(found, dim=1)
    for text, seen in enumerate(mask == 1):
        close(found[text][seen], model(x[text][seen][None]).logits[0])


WAYS = ["dynamic", "static", "constant", "beams", "beams, constant", "constant, token by token"]


@pytest.mark.parametrize("how", WAYS)
def test_a_batch_padded_on_the_left_writes_what_each_text_alone_writes(how):
    model, (x, mask) = decoder(), padded(LEFT, "left")
    options = {"max_new_tokens": 20, "do_sample": False, "num_beams": 3 if "beams" in how else 1}
    cache = {"cache_implementation": "static"} if how == "static" else {}
    cache |= {"past_key_values": constant_cache(model)} if "constant" in how else {}
    cache |= {"prefill_chunk_size": 1} if "token" in how else {}
    found = model.generate(x, attention_mask=mask, **cache, **options)[:, TOKENS:]
    for written, text, seen in zip(found, x, mask == 1, strict=True):
        one = {"attention_mask": torch.ones(1, seen.sum()), "use_cache": False}
        assert (
            written.tolist() == model.generate(text[seen][None], **one, **options)[0, -20:].tolist()
        )


def test_packed_texts_are_each_as_alone():
    model, x = decoder(), texts()[:1]
    places = torch.cat([torch.arange(25), torch.arange(35)])[None]
    found = model(x, position_ids=places, use_cache=False).logits
    close(found[:, :25], model(x[:, :25]).logits)
    close(found[:, 25:], model(x[:, 25:]).logits)


def test_layers_with_a_window_of_their_own_stay_as_they_are():
    sizes = {"sliding_window": 5, "use_sliding_window": True, "max_window_layers": 2}
    model, (x, mask) = decoder("Qwen2", **sizes), padded(LEFT, "left")
    register("near_far", window=3, sinks=0, exact_layers={0, 1})
    found, options = model(x, attention_mask=mask).logits, {"max_new_tokens": 9}
    cached = model.generate(texts(), **options, past_key_values=constant_cache(model))
    model.set_attn_implementation("sdpa")
    close(found[mask == 1], model(x, attention_mask=mask).logits[mask == 1])
    assert torch.equal(cached, model.generate(texts(), **options))


def test_bfloat16_is_as_near_to_float32_as_exact_attention_is():
    x, errors = texts(), {}
    for name in ("near_far", "sdpa"):
        model = decoder(name=name)
        for weights in model.parameters():
            weights /= 2
        wide = model(x).logits
        errors[name] = (model.bfloat16()(x).logits.float() - wide).abs().mean() / wide.std()
    assert errors["near_far"] < 1.5 * errors["sdpa"] < 0.15


def test_the_constant_cache_does_not_grow():
    """In layers that are not exact: no more bytes after 4,000 tokens than after 500."""
    model, held = decoder(), {}
    x = torch.randint(1, 50, (2, 4000), generator=torch.Generator().manual_seed(2))
    for n in (500, 4000):
        cache = constant_cache(model)
        model(x[:, :n], past_key_values=cache)
        model(x[:, :1], past_key_values=cache)
        assert cache.get_seq_length() == n + 1
        states = [layer.state for i, layer in enumerate(cache.layers) if i != 1]
        held[n] = sum(a.untyped_storage().nbytes() for s in states for a in s if a is not None)
    per_text = 2 * 2 * ((WINDOW + SINKS) * 16 + 17) * 4  # layers, key heads, keys and values, sums
    assert held[4000] == held[500] == 2 * per_text


def refused(match, call, *given, **options):
    with pytest.raises(ValueError, match=match):
        call(*given, **options)


def test_what_a_window_would_leave_out_is_refused_by_name():
    x = texts()
    refused("softcap must be None", decoder("Gemma2", head_dim=8), x)
    few = {"num_local_experts": 2, "num_experts_per_tok": 1, "head_dim": 8}
    refused("s_aux must be None", decoder("GptOss", **few), x)
    refused("dropout must be 0", decoder(attention_dropout=0.5).train(), x)
    encoder = of.BertModel(of.BertConfig(**{k: v for k, v in SIZES.items() if "key" not in k}))
    encoder.set_attn_implementation("near_far")
    refused("for decoders", encoder, x)
    refused("for decoders", encoder, x, attention_mask=torch.ones_like(x))
    refused("for decoders", decoder(is_causal=False), x)
    added = torch.zeros(3, 1, TOKENS, TOKENS)
    refused("attention_mask must be boolean", decoder(), x, attention_mask=added)
    ahead = torch.ones(3, 1, TOKENS, TOKENS, dtype=torch.bool).tril(2)
    refused("shows later keys", decoder(), x, attention_mask=ahead)
    sees = {"mask_function": lambda b, h, q, k: k <= q + 1, "allow_is_causal_skip": False}
    refused("shows later keys", huggingface._mask, 1, 3, 3, **sees)
    for wrong in ({"window": 0}, {"window": 8, "sinks": -1}, {"window": 8, "exact_layers": [-1]}):
        refused(f"^{[*wrong][-1]} must be an integer", register, **wrong)
    refused("name must be new to transformers, got 'sdpa'", register, "sdpa", window=8)
    refused("model must have an attention of `register`", constant_cache, decoder(name="sdpa"))
    refused(r"layers must have attention, got \[7\]", store_heads, decoder(), x, [0, 7])
    twice = {"d_model": 16, "encoder_layers": 1, "decoder_layers": 1, "pad_token_id": 0}
    twice |= {"encoder_attention_heads": 2, "decoder_attention_heads": 2, "vocab_size": 50}
    both = of.BartForConditionalGeneration(of.BartConfig(**twice)).eval()
    refused("got two in layer 0", store_heads, both, x, [0])


def test_a_constant_cache_refuses_what_it_no_longer_holds():
    model, x = decoder(), texts()
    cache = constant_cache(model)
    model(x, past_key_values=cache)
    refused("cannot take tokens back", cache.crop, -1)
    pairs = torch.ones(3, 1, 2, TOKENS + 2, dtype=torch.bool)
    pairs[:, :, 0, -2:] = False  # row 0 does not see its own key, which row 1 sees
    refused("not of pairs", model, x[:, :2], attention_mask=pairs, past_key_values=cache)
    new = constant_cache(model)
    causal = torch.ones(3, 1, TOKENS, TOKENS, dtype=torch.bool).tril()
    refused("not of pairs", model, x, attention_mask=causal, past_key_values=new)
    model.set_attn_implementation("sdpa")
    cache = constant_cache(decoder())
    model(x[:, :1], past_key_values=cache)
    refused("must be used by an attention of", model, x[:, :1], past_key_values=cache)
    rows = [torch.zeros(3, 2, 1, 16)] * 3  # a second call for one update, as of shared keys
    refused("must serve one layer per update", new.layers[2].rows, *rows, None)
    hybrid = decoder("FalconH1", mamba_d_ssm=32, mamba_n_heads=4, mamba_d_head=8)
    refused("exact_layers must hold layer 0", constant_cache, hybrid)


def test_stored_heads_are_what_the_card_reads(tmp_path):
    model = decoder("Gemma2", head_dim=8, query_pre_attn_scalar=2, attn_logit_softcapping=None)
    paths = store_heads(model, texts(), [0, 2], tmp_path)
    assert [path.name for path in paths] == ["layer_0.npz", "layer_2.npz"]
    assert model.config._attn_implementation == "near_far"
    q, k, v = card._read(paths[1])
    assert (q.shape, k.shape, v.shape) == ((6, TOKENS, 8), (2, TOKENS, 8), (2, TOKENS, 8))
    plain = decoder("Gemma2", head_dim=8, query_pre_attn_scalar=8, attn_logit_softcapping=None)
    other = card._read(store_heads(plain, texts(), [0], tmp_path)[0])
    first = card._read(store_heads(model, texts(), [0], tmp_path)[0])
    np.testing.assert_allclose(first[0], 2 * other[0], rtol=1e-5)  # √(8/2)
    rows = card.measure(q, k, v, causal=True, draws=1)
    assert rows["window"][3].shape == (1, 6)


def test_a_model_of_parts_keeps_the_attention_of_each(tmp_path):
    text = SIZES | {"num_hidden_layers": 1, "head_dim": 8, "layer_types": ["full_attention"]}
    vision = {"num_hidden_layers": 1, "hidden_size": 48, "image_size": 14, "patch_size": 7}
    config = of.Gemma3Config(text_config=text, vision_config=vision, image_token_index=49)
    model = of.Gemma3ForConditionalGeneration(config).eval()
    register("near_far", window=WINDOW)
    model.set_attn_implementation({"text_config": "near_far"})
    store_heads(model, texts()[:1] % 49, [0], tmp_path)
    parts = model.config, model.config.text_config
    assert [part._attn_implementation for part in parts] == ["sdpa", "near_far"]
    assert constant_cache(model).layers[0].near["band"] == WINDOW - 1
