"""A window and sinks as an attention of transformers, for pretrained decoders: extra `huggingface`.

    register(window=64, sinks=4, exact_layers={7, 18, 23})
    model.set_attn_implementation("near_far")
    model.generate(**inputs, past_key_values=constant_cache(model))

A token attends to the last `window` tokens, its own included, and to the first `sinks` that its
text shows: `near_far.near_field`. Prompts, training, several tokens at once and single ones give
the same rows, with any cache of transformers and with padding on either side. Each of several
packed texts has the rows of that text alone, where transformers itself keeps them apart: with
use_cache=False and no attention_mask. Layers that have a sliding window of their own stay as they
are.
"""

import math
from functools import partial
from pathlib import Path

from ._arguments import check_count, needed
from .near_far import Window, follow_window, near_field, window_state

with needed(__name__, "huggingface"):
    import numpy as np
    import torch
    from transformers import AttentionInterface
    from transformers.cache_utils import CacheLayerMixin, DynamicCache, DynamicLayer
    from transformers.integrations.sdpa_attention import sdpa_attention_forward as sdpa
    from transformers.masking_utils import (
        AttentionMaskInterface,
        causal_mask_function,
        sdpa_mask,
    )

OWN = {}  # name: (band and sinks, exact layers), as registered
# What some models pass to their attention, and a window with sinks would silently leave out.
REFUSED = {
    "s_aux": "learned sink logits",
    "softcap": "soft-capped logits",
    "position_bias": "a position bias",
    "cache": "a paged cache",
}


def register(name: str = "near_far", *, window: int, sinks: int = 4, exact_layers=()) -> None:
    """Adds an attention to transformers under `name`, for `model.set_attn_implementation(name)`.

    window: keys of a row, its own included; sinks: first keys of its text; exact_layers: indices of
    the layers that stay. Registering a name again replaces it. Error: exact to rounding, also for
    grouped queries and in bfloat16. Cost: a prompt, O(L (window + sinks) (d + e)) per head; a token
    after it, O((window + sinks) (d + e)) without padding or with `constant_cache`, else a mask over
    all keys. Raises: ValueError here for sizes and for names of transformers' own; in the model for
    encoders, dropout and the arguments in REFUSED. Source: Xiao et al. (2023), §3.2.
    """
    near = {
        "band": check_count(window, "window") - 1,
        "sinks": check_count(sinks, "sinks", least=0),
    }
    exact = frozenset(check_count(i, "exact_layers", least=0) for i in exact_layers)
    if name not in OWN and name in AttentionInterface():
        raise ValueError(f"name must be new to transformers, got {name!r}")
    OWN[name] = near, exact
    AttentionInterface.register(name, partial(_attend, near, exact))
    AttentionMaskInterface.register(name, _mask)


def constant_cache(model):
    """A cache for `generate` that grows in exact layers only: the others keep a `near_far.Window`.

    Make a new one for each call. Memory: (window + sinks) (d + e) numbers per key head, layer and
    text, whatever its length. Raises: ValueError unless the model's attention was registered here,
    and for a layer that would keep its keys; later, where tokens are taken back (`crop`, as
    assisted generation does) or layers share their keys.
    """
    name = model.config.get_text_config(decoder=True)._attn_implementation
    if name not in OWN:
        raise ValueError(
            f"model must have an attention of `register`, got {name!r}: call "
            "model.set_attn_implementation(name) first"
        )
    near, exact = OWN[name]
    cache = DynamicCache(config=model.config)
    for i, layer in enumerate(cache.layers):
        if i not in exact and type(layer) is DynamicLayer:
            cache.layers[i] = _WindowLayer(near)
        elif i not in exact and isinstance(layer, DynamicLayer) and not layer.is_sliding:
            what = type(layer).__name__
            raise ValueError(f"exact_layers must hold layer {i}, whose {what} keeps all its keys")
    return cache


def store_heads(model, tokens, layers, folder=".") -> list[Path]:
    """Writes q, k and v of these layers, of the first text, to folder/layer_N.npz: for the card.

    tokens: (texts, L), as the model takes them. Queries are scaled so that scores are qᵀk/√d.
    Raises: ValueError for a layer without attention, and for the arguments in REFUSED.
    """
    stored, layers = {}, [check_count(i, "layers", least=0) for i in layers]

    def attend(module, q, k, v, attention_mask, scaling=None, **options):
        _check_options(options)
        layer = getattr(module, "layer_idx", len(stored))
        if layer in stored:
            raise ValueError(f"layers must have one attention each, got two in layer {layer}")
        stored[layer] = None
        if layer in layers:
            rows = _scaled(q, scaling), k, v
            stored[layer] = [x[0].detach().float().cpu().numpy() for x in rows]
        return sdpa(module, q, k, v, attention_mask, scaling=scaling, **options)

    AttentionInterface.register("store_heads", attend)
    AttentionMaskInterface.register("store_heads", sdpa_mask)
    parts = {key: getattr(model.config, key, None) for key in model.config.sub_configs}
    parts = {"": model.config} | {key: part for key, part in parts.items() if part is not None}
    before = {key: part._attn_implementation for key, part in parts.items()}
    model.set_attn_implementation("store_heads")
    try:
        with torch.no_grad():
            model(tokens)
    finally:
        model.set_attn_implementation(before)
    if missing := sorted({*layers} - {*stored}):
        raise ValueError(f"layers must have attention, got {missing}; these have: {[*stored]}")
    Path(folder).mkdir(parents=True, exist_ok=True)
    paths = [Path(folder) / f"layer_{layer}.npz" for layer in layers]
    for path, layer in zip(paths, layers, strict=True):
        np.savez(path, **dict(zip("qkv", stored[layer], strict=True)))
    return paths


def _attend(near, exact, module, q, k, v, attention_mask, scaling=None, **options):
    """The registered function: rows (batch, L, heads, e), and None for the weights."""
    _check_options(options)
    if options.get("is_causal") is False or not getattr(module, "is_causal", True):
        raise ValueError("a window with sinks is for decoders, got an attention that is not causal")
    if options.pop("dropout", 0.0):
        raise ValueError("dropout must be 0, weights are not dropped: call model.eval(), or set it")
    (L, S), mask, causal = (q.shape[-2], k.shape[-2]), attention_mask, {"causal": True, **near}
    if mask is not None and mask.shape[-2:] == (L, L):  # it may be the caller's own
        _check_order(mask, 0)
    if mask is not None and mask.dtype != torch.bool:
        raise ValueError(
            f"attention_mask must be boolean or of 0 and 1, (batch, S), got {mask.dtype}"
        )
    if (layer := getattr(k, "window_layer", None)) is not None:
        rows = layer.rows(_scaled(q, scaling), k, v, mask)
    elif module.layer_idx in exact or options.get("sliding_window"):
        if mask is not None and mask.shape[-2] < L:  # padding alone: rows see no later key
            mask = mask & torch.ones(L, S, dtype=torch.bool, device=q.device).tril()
        return sdpa(module, q, k, v, mask, scaling=scaling, **options)
    elif L > 1 and (mask is None or mask.shape[-2] == 1):  # a prompt; a static cache is longer
        shown = None if mask is None else mask[:, 0, :, :L]
        rows = near_field(_scaled(q, scaling), k[:, :, :L], v[:, :, :L], **causal, key_mask=shown)
    else:  # tokens after a prompt, or packed texts
        band, sinks = near["band"], near["sinks"]
        if mask is None:
            start = max(sinks, S - band - 1)
            k, v = (torch.cat([x[:, :, :sinks], x[:, :, start:]], dim=-2) for x in (k, v))
        else:
            n = mask.cumsum(-1)  # of each key among those that the row sees
            mask = mask & ((n >= n[..., -1:] - band) | (n <= sinks))
        return sdpa(module, q, k, v, mask, scaling=scaling, **options)
    return rows.transpose(1, 2), None


def _scaled(q, scaling):
    """q with which scores are qᵀk/√d where the model's are `scaling` qᵀk."""
    return q if scaling is None else q * (scaling * math.sqrt(q.shape[-1]))


def _check_options(options):
    """Raises: ValueError for what a model passes and no function here computes."""
    for name, what in REFUSED.items():
        if options.get(name) is not None:
            raise ValueError(f"{name} must be None: {what} of this model would be left out")


def _check_order(mask, start):
    """Raises: ValueError where a mask of pairs shows row i, token `start` + i, a later key."""
    if mask is None or mask.shape[-2] == 1 or torch.compiler.is_compiling():
        return
    i, j = (torch.arange(n, device=mask.device) for n in mask.shape[-2:])
    if mask.dtype == torch.bool and (mask & (j > i[:, None] + start)).any():
        raise ValueError("a window with sinks is for decoders, got a mask that shows later keys")


def _mask(batch_size, q_length, kv_length, mask_function, attention_mask=None, **options):
    """transformers' mask of pairs, or of a padded prompt that of its keys, (batch, 1, 1, S)."""
    seen = attention_mask
    if seen is None or not 1 < q_length == seen.shape[-1] or mask_function != causal_mask_function:
        given = {"mask_function": mask_function, "attention_mask": seen, **options}
        mask = sdpa_mask(batch_size, q_length, kv_length, **given)
        _check_order(mask, options.get("q_offset", 0) - options.get("kv_offset", 0))
        return mask
    if not torch.compiler.is_compiling() and seen.all():
        return None
    return torch.nn.functional.pad(seen, (0, kv_length - q_length))[:, None, None, :]


class _WindowLayer(CacheLayerMixin):
    """The cache of one layer: the `near_far.Window` of all tokens so far, and their number."""

    supports_early_init = False

    def __init__(self, near):
        super().__init__()
        self.near = near
        self.reset()

    def reset(self):
        self.state, self.length, self.waits = None, 0, False

    def lazy_initialization(self, key_states, value_states):
        """Nothing is allocated before there are tokens."""

    def update(self, key_states, value_states, *args, **kwargs):
        """The new keys and values alone; the keys say where `rows` finds this layer."""
        if self.waits:
            raise ValueError(
                "constant_cache must be used by an attention of `register`, with the keys that the "
                "cache returned"
            )
        self.length, self.waits = self.length + key_states.shape[-2], True
        keys = key_states.view_as(key_states)
        keys.window_layer = self
        return keys, value_states

    def rows(self, q, k, v, mask):
        """The rows of the new tokens, which join the Window."""
        if not self.waits:
            raise ValueError(
                "constant_cache must serve one layer per update: layers of this model share keys"
            )
        self.waits, L, shown = False, q.shape[-2], None if mask is None else mask[:, 0, -1:]
        if mask is not None and mask.shape[-2] == L > 1:
            pairs = shown[..., -L:] & torch.ones(L, L, dtype=torch.bool, device=k.device).tril()
            if self.state is None or (mask[:, 0, :, -L:] != pairs).any():
                raise ValueError("attention_mask must be of padding, (batch, S), not of pairs")
        if self.state is not None:
            new = {**self.near, "key_mask": None if mask is None else shown[..., -L:]}
            self.state, rows = follow_window(self.state, q, k, v, **new)
            return rows
        self.state = window_state(k, v, **self.near, key_mask=shown)
        return near_field(q, k, v, **self.near, causal=True, key_mask=shown)

    def get_mask_sizes(self, query_length):
        return self.length + query_length, 0

    def get_seq_length(self):
        return self.length

    def get_max_length(self):
        return -1

    get_max_cache_shape = get_max_length  # its name in transformers 5.5

    def crop(self, tokens_to_remove):
        if tokens_to_remove:
            raise ValueError("constant_cache cannot take tokens back: others have left its window")

    def reorder_cache(self, beam_idx):
        if self.state is not None:
            at = beam_idx.to(self.state.k.device)
            self.state = Window(*(x if x is None else x.index_select(0, at) for x in self.state))
