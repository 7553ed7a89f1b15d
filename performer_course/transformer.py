"""A transformer small enough to understand: embeddings, positions, layer norm, heads, blocks.

Parameters are a dict of arrays, drawn on the host by `init`; move them with `to_like`. Everything
else is computed where they are. No parameter's shape depends on the attention, "softmax" or
"favor": weights trained with one can be loaded into the other, or used with an `attend` of your
own, and fine-tuned. All raise ValueError for sizes that do not fit, missing parameters and (on
NumPy) parameters that are not finite or above 7e30 (float64) or 7e3 (float32).
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import array_api_compat
from jaxtyping import Bool, Float, Int

from . import projections
from ._arguments import (
    check_array,
    check_callable,
    check_count,
    check_generator,
    check_kind,
    check_mask,
    check_number,
    check_shape,
    check_token_ids,
)
from ._blocks import sum_dtype
from ._shapes import Array
from ._stable import transposed
from .attention import favor_attention, softmax_attention
from .backend import device_of

WEIGHT_POWER = 0.1  # parameters: a power of the dtype's largest number, so products are finite


def _softmax(q, k, v, layer, *, causal, key_mask):
    return softmax_attention(q, k, v, causal=causal, key_mask=key_mask)


def _favor(q, k, v, layer, *, causal, key_mask):
    return favor_attention(q, k, v, layer["W"], causal=causal, key_mask=key_mask)


ATTENTIONS = {"softmax": _softmax, "favor": _favor}


@dataclass(frozen=True)
class Config:
    """The sizes of a transformer, and its kind.

    causal: a decoder, where a token sees those up to itself; else an encoder, where it sees all.
    attention: "softmax", or "favor" with m directions for each block. width = heads × d.
    """

    vocabulary: int
    width: int = 32
    heads: int = 4
    depth: int = 2
    causal: bool = True
    attention: str = "softmax"
    m: int = 64

    def __post_init__(self):
        for name in ("vocabulary", "width", "heads", "depth", "m"):
            check_count(vars(self)[name], name)
        if self.width % self.heads:
            raise ValueError(
                f"width must be a multiple of heads, got {self.width} and {self.heads}"
            )
        if self.attention not in ATTENTIONS:
            names = tuple(ATTENTIONS)
            raise ValueError(f"attention must be one of {names}, got {self.attention!r}")


def init(rng, config: Config) -> dict:
    """Parameters by name, float64, on the host; those of the blocks are stacked: (depth, ...).

    Entries of a matrix are N(0, 1/inputs), of the embedding N(0, 1/width). "W", the directions of
    "favor", (depth, m, d), are orthogonal and not trained; you may redraw them at any time. Error:
    none, a random draw. Cost: O(depth (width² + m d²) + vocabulary width). Source: He et al.
    (2015), §2.2. Differs from the paper: 1/inputs, not 2/inputs, after the ReLU too.
    """
    check_generator(rng)
    check_kind(config, Config, "config")
    depth, n, m = config.depth, config.width, config.m

    embedding = projections.iid(rng, config.vocabulary, n) / math.sqrt(n)
    xp = array_api_compat.array_namespace(embedding)

    def stacked(rows, columns, method=projections.iid):
        return xp.stack([method(rng, rows, columns) for _ in range(depth)])

    # (depth, width). The draw is not used, but without it all later draws would change.
    one = xp.ones_like(stacked(1, n)[:, 0, :])
    return {
        "embedding": embedding,
        **{name: stacked(n, n) / math.sqrt(n) for name in ("query", "key", "value", "heads")},
        "wider": stacked(n, 4 * n) / math.sqrt(n),
        "narrower": stacked(4 * n, n) / math.sqrt(4 * n),
        **{f"{name} gain": one for name in ("attention", "map")},
        **{f"{name} shift": 0 * one for name in ("attention", "map")},
        "gain": one[0, :],
        "shift": 0 * one[0, :],
        "W": stacked(m, n // config.heads, projections.orthogonal),
    }


def positions(x: Float[Array, "... L width"]) -> Float[Array, "L width"]:
    """Positional encoding: [sin(p ω_i), cos(p ω_i)] for p = 0 … L − 1, ω_i = 10000^{−2i/width}.

    One row per position; a shift of p rotates each pair by a fixed angle. x gives the sizes, the
    dtype and the device. Shape: (L, width). Error: exact to rounding of p. Cost: O(L width).
    Source: Vaswani et al. (2017), §3.5. Differs from the paper: sines first, then cosines.
    """
    xp = check_array(x, "x", "L, width")
    L, width = x.shape[-2:]
    make = {"dtype": x.dtype, "device": device_of(x)}
    i = xp.arange((width + 1) // 2, **make)
    angle = xp.arange(L, **make)[:, None] * xp.exp(i * (-2 / width * math.log(10000)))
    return xp.concat([xp.sin(angle), xp.cos(angle)], axis=-1)[:, :width]


def layer_norm(
    x: Float[Array, "... L width"],
    gain: Float[Array, "width"],
    shift: Float[Array, "width"],
    eps: float = 1e-5,
) -> Float[Array, "... L width"]:
    """Layer normalisation of each row: gain (x − mean) / √(variance + eps) + shift.

    Shape and dtype: those of x. Error: exact to rounding. Cost: O(L width). Source: Ba, Kiros &
    Hinton (2016), eq. 4.
    """
    xp = check_array(x, "x", "L, width")
    for name, weights in (("gain", gain), ("shift", shift)):
        check_shape(weights, name, x.shape[-1:], x, "x")
    eps, dtype, sums = check_number(eps, "eps", above=0.0, like=x), x.dtype, sum_dtype(xp, x)
    x, gain, shift = (xp.astype(a, sums, copy=False) for a in (x, gain, shift))
    centred = x - xp.mean(x, axis=-1, keepdims=True)
    variance = xp.mean(centred * centred, axis=-1, keepdims=True)
    return xp.astype(gain * centred / xp.sqrt(variance + eps) + shift, dtype, copy=False)


def split_heads(x: Float[Array, "... L width"], heads: int) -> Float[Array, "... heads L d"]:
    """Each row cut into `heads` parts of d = width / heads; heads become a leading axis.

    Shape: (..., heads, L, d). Error: exact. Cost: none, or one copy. Source: Vaswani et al. (2017),
    §3.2.2.
    """
    xp = check_array(x, "x", "L, width")
    d, rest = divmod(x.shape[-1], check_count(heads, "heads"))
    if rest:
        raise ValueError(f"width must be a multiple of heads, got {x.shape[-1]} and {heads}")
    parts = xp.reshape(x, (*x.shape[:-1], heads, d))  # (..., L, heads, d)
    return transposed(xp, parts)


def join_heads(x: Float[Array, "... heads L d"]) -> Float[Array, "... L heads*d"]:
    """The heads side by side again: the inverse of `split_heads`.

    Shape: (..., L, heads d). Error: exact. Cost: one copy. Source: Vaswani et al. (2017), §3.2.2.
    """
    xp = check_array(x, "x", "heads, L, d")
    parts = transposed(xp, x)  # (..., L, heads, d)
    return xp.reshape(parts, (*parts.shape[:-2], x.shape[-3] * x.shape[-1]))


def _attend(x, layer, config, key_mask, attend):
    """Multi-head attention of one block to x (..., L, width), with its output matrix."""
    q, k, v = (split_heads(x @ layer[name], config.heads) for name in ("query", "key", "value"))
    seen = None if key_mask is None else key_mask[..., None, :]  # (..., 1, L): for all heads
    attend = attend or ATTENTIONS[config.attention]
    mixed = attend(q, k, v, layer, causal=config.causal, key_mask=seen)  # (..., heads, L, d)
    return join_heads(mixed) @ layer["heads"]


def block(
    x: Float[Array, "... L width"],
    layer: dict,
    config: Config,
    key_mask: Bool[Array, "... L"] | None = None,
    attend: Callable | None = None,
) -> Float[Array, "... L width"]:
    """A pre-norm block: x + attention(norm(x)), then x + MLP(norm(x)), an MLP with one ReLU.

    layer: the parameters of one block, `params[name][i]`. key_mask, attend: as in `forward`. Shape
    and dtype: those of x. Error: exact for "softmax"; else that of `favor_attention`. Cost:
    O(L width²), and attention. Source: Vaswani et al. (2017), Fig. 1. Differs from the paper: layer
    norm comes first.
    """
    xp = check_array(x, "x", "L, width")
    check_kind(config, Config, "config")
    if x.shape[-1] != config.width:
        raise ValueError(f"x must have rows of width {config.width}, got shape {tuple(x.shape)}")
    shapes = _shapes(config, attend)
    _check_named(layer, "layer", shapes, x, "x")
    layer = layer | {part: xp.astype(layer[part], x.dtype, copy=False) for part in shapes}
    if key_mask is not None:
        check_mask(key_mask, x, "x")
    return _block(x, layer, config, key_mask, attend)


def _block(x, layer, config, key_mask, attend):
    """`block`, unchecked."""
    xp = array_api_compat.array_namespace(x)
    normed = layer_norm(x, layer["attention gain"], layer["attention shift"])
    x = x + _attend(normed, layer, config, key_mask, attend)
    normed = layer_norm(x, layer["map gain"], layer["map shift"])
    wide = normed @ layer["wider"]  # (..., L, 4 width)
    return x + xp.where(wide > 0, wide, xp.zeros_like(wide)) @ layer["narrower"]


def forward(
    params: dict,
    tokens: Int[Array, "... L"],
    config: Config,
    key_mask: Bool[Array, "... L"] | None = None,
    attend: Callable | None = None,
) -> Float[Array, "... L vocabulary"]:
    """ln P(token) at each position: embeddings and positions, blocks, layer norm, ln softmax.

    A decoder's row i predicts token i + 1 from the tokens up to i. key_mask: True where a token
    counts, as in `attention`; positions count these tokens alone. The output matrix is the
    embedding. Tokens are 0 to vocabulary − 1; others are refused only on NumPy: CuPy silently takes
    another row. attend: replaces the attention of each block, a function attend(q, k, v, layer, *,
    causal, key_mask) with q, k, v and its result (..., heads, L, d), `layer` the block's parameters
    and key_mask (..., 1, L) or None. Shape: (..., L, vocabulary); rows of exp sum to 1. Error:
    exact for "softmax"; else that of `favor_attention` in each block. Cost: O(L width (depth width
    + vocabulary)), and attention. Source: Vaswani et al. (2017). Differs from the paper: layer norm
    comes first (Xiong et al., 2020).
    """
    check_kind(config, Config, "config")
    xp, n = check_token_ids(tokens, key_mask, config.vocabulary), config.width
    stacked = {name: (config.depth, *shape) for name, shape in _shapes(config, attend).items()}
    whole = {"embedding": (config.vocabulary, n), "gain": (n,), "shift": (n,)}
    _check_named(params, "params", whole | stacked, tokens, "tokens")
    names = set(params) - set(whole)
    for name in names - set(stacked):  # only for `attend`
        x = params[name]
        if not array_api_compat.is_array_api_obj(x) or tuple(x.shape[:1]) != (config.depth,):
            raise ValueError(f'params["{name}"] must be {config.depth} arrays, one for each block')
    table = params["embedding"]  # (vocabulary, width)
    x = xp.take(table, xp.reshape(tokens, (-1,)), axis=0)  # (all tokens, width)
    x = xp.reshape(x, (*tokens.shape, config.width)) * math.sqrt(config.width)  # (..., L, width)
    places = positions(x)  # (L, width)
    if key_mask is not None:  # a token's position is the number of those shown before it
        at = xp.cumulative_sum(xp.astype(key_mask, xp.int32), axis=-1) - 1
        own = xp.arange(tokens.shape[-1], dtype=at.dtype, device=array_api_compat.device(at))
        at = xp.reshape(xp.where(key_mask, at, own), (-1,))
        places = xp.reshape(xp.take(places, at, axis=0), x.shape)
    x = x + places
    for i in range(config.depth):
        x = _block(x, {name: params[name][i, ...] for name in names}, config, key_mask, attend)
    x = layer_norm(x, params["gain"], params["shift"])
    logits = x @ xp.matrix_transpose(table)  # (..., L, vocabulary)
    logits = logits - xp.max(logits, axis=-1, keepdims=True)
    return logits - xp.log(xp.sum(xp.exp(logits), axis=-1, keepdims=True))


def _shapes(config, attend):
    """The shape of each parameter of a block; a letter means any size. Raises: ValueError."""
    if attend is not None:
        check_callable(attend, "attend")
    n = config.width
    shapes = dict.fromkeys(("query", "key", "value", "heads"), (n, n))
    shapes |= {"wider": (n, 4 * n), "narrower": (4 * n, n)}
    shapes |= {
        f"{part} {what}": (n,) for part in ("attention", "map") for what in ("gain", "shift")
    }
    if attend is None and config.attention == "favor":
        shapes["W"] = ("m", n // config.heads)
    return shapes


def _check_named(arrays, name, shapes, like, like_name):
    """Raises: ValueError unless the dict `arrays` has all `shapes`, in the library of `like`."""
    check_kind(arrays, dict, name)
    for part, shape in shapes.items():
        if part not in arrays:
            raise ValueError(f"{name} must have {part!r}, got {sorted(map(str, arrays))}")
        check_shape(arrays[part], f'{name}["{part}"]', shape, like, like_name, power=WEIGHT_POWER)
