"""Attention in two parts: exact for near keys, features or representatives for the far field.

q: (..., L, d), k: (..., L, d), v: (..., L, e) give (..., L, e): a band needs one sequence, as many
keys as queries. Near and far keys share one denominator. Leading axes, causal, precision and errors
are as in `attention`. key_mask (..., L): band and sinks count the tokens that it shows, so that
their rows are those of the shown tokens alone, wherever the padding is. A hidden token is no key;
its row is that of a query after the last shown token or, if causal, zero where a shown token
comes later.
"""

import functools
import itertools
import math
from typing import NamedTuple

import array_api_compat
from jaxtyping import Bool, Float

from . import features
from ._arguments import (
    VALUE_POWER,
    check_attention,
    check_count,
    check_keys,
    check_kind,
    check_lead,
    check_mask,
    check_shape,
    check_tokens,
)
from ._blocks import THREADS_FROM, each_head, masked_part, steps, sum_dtype
from ._causal import causal_chunk
from ._shapes import Array, Directions, Key, Mask, OwnKey, OwnMask, OwnValue, Query, Rows, Value
from ._stable import (
    State,
    empty_state,
    logits_of,
    lowest,
    mask_logits,
    merge,
    normalised,
    projected,
    squared_norm,
    values_and_ones,
    weighted_sums,
)
from .backend import device_of, is_on_gpu

# Queries in a block, and keys in a step: a block sees its own tokens and a band on each side.
ROWS, KEYS, GPU_ROWS, GPU_KEYS = 64, 512, 1024, 4096


def near_field(
    q: Query,
    k: OwnKey,
    v: OwnValue,
    band: int,
    *,
    sinks: int = 0,
    causal: bool = False,
    key_mask: OwnMask = None,
) -> Rows:
    """softmax(q kᵀ / √d) v over the keys |i − j| ≤ band only; if causal, i − band ≤ j ≤ i.

    sinks: how many of the first keys shown are near for every row, whatever the band; a causal row
    sees those j ≤ i. Slow form: `naive.softmax_attention` with its band. Elsewhere a logit is −∞
    and the weight 0; far blocks are never computed. Shape: (..., L, e), dtype that of the inputs.
    Error: exact to rounding, at any norm whose logits are finite. Cost: O(L (band + sinks + 64)
    (d + e)); memory, the result and a few blocks of 64 × 512 logits, and with a mask q, k and v in
    another order. Source: Nguyen et al. (2021), near field; sinks, Xiao et al. (2023), §3.2.
    Differs from the paper: −∞ outside the band, where softmax(band(·)) read as written has logit 0;
    and no L × L array, which its code holds.
    """
    q, k, v, key_mask, _ = check_attention(q, k, v, key_mask)
    xp = array_api_compat.array_namespace(q)
    check_tokens(q, k)
    near = _check_near(band, sinks, q.shape[-2])

    def sums(q, k, v, key_mask, _):
        for _, rows in _near_rows(xp, q, k, v, key_mask, near, causal):
            yield rows.Sz

    return _counted(sums, q, k, v, key_mask, near, causal)


def _counted(sums, q, k, v, key_mask, near, causal, far=None):
    """`each_head` of sums, with tokens in the order of counting: those shown, then those hidden."""
    L = q.shape[-2]
    work = L * (sum(near) + 1) if L >= THREADS_FROM else 0  # little, so short heads are batched
    attend = functools.partial(each_head, sums, work_per_head=work)
    if key_mask is None:
        return attend(q, k, v, None, far)
    xp = array_api_compat.array_namespace(q)
    hidden = xp.astype(~key_mask, xp.int32)
    at = xp.cumulative_sum(xp.ones_like(hidden), axis=-1)
    order = xp.argsort(at + hidden * L, axis=-1)  # (..., L)
    q, k, v = (_rows_at(xp, x, order) for x in (q, k, v))
    rows = attend(q, k, v, xp.take_along_axis(key_mask, order, axis=-1), far)
    rows = _rows_at(xp, rows, xp.argsort(order, axis=-1))
    if not causal:
        return rows
    later = xp.flip(xp.cumulative_sum(xp.flip(1 - hidden, axis=-1), axis=-1), axis=-1)
    return xp.where((key_mask | (later == 0))[..., None], rows, xp.zeros_like(rows))


def _rows_at(xp, x, order):
    """Row order[..., i] of x (..., L, d) for each i: (..., n, d)."""
    *lead, L, d = x.shape
    heads = math.prod(lead)
    first = L * xp.arange(heads, dtype=order.dtype, device=array_api_compat.device(order))
    at = xp.reshape(order + xp.reshape(first, (*lead, 1)), (heads * order.shape[-1],))
    rows = xp.take(xp.reshape(x, (heads * L, d)), at, axis=0)  # faster than take_along_axis
    return xp.reshape(rows, (*order.shape, d))


def _near_rows(xp, q, k, v, key_mask, near, causal, far_logits=None):
    """Yields a few rows at a time and their sums over near keys; near: (band, sinks).

    far_logits: one logit for each query (..., L), for keys that are only in the band of other rows.
    """
    (L, d), dtype, (band, sinks) = q.shape[-2:], sum_dtype(xp, q, k, v), near
    size, width = (GPU_ROWS, GPU_KEYS) if is_on_gpu(q) else (ROWS, KEYS)
    causal, outside = bool(causal), functools.partial(_outside, xp, q, dtype)
    if isinstance(L, int):  # a few masks serve most blocks; symbols cannot be keys
        outside = functools.lru_cache(maxsize=8)(outside)
    for part in steps(q, size):
        queries = xp.astype(q[..., part, :], dtype, copy=False) / math.sqrt(d)
        rows = empty_state(xp, queries.shape[:-1], v.shape[-1] + 1, q, dtype)
        start, stop = max(0, part.start - band), min(L, part.stop + (0 if causal else band))
        sides = steps(k, width, stop=min(sinks, start))  # sinks before all bands of these rows
        sides += [] if causal else steps(k, width, start=stop, stop=sinks)  # and after them
        for seen in sides + steps(k, width, start=start, stop=stop):
            keys, values, mask = masked_part(xp, k, v, key_mask, seen, dtype)
            at = queries.shape[-2], keys.shape[-2], part.start - seen.start
            first = min(at[1], max(0, sinks - seen.start))  # how many of these keys are sinks
            far = None if seen in sides else outside(band, causal, *at, first)
            if far is None or far_logits is None:
                logits = logits_of(xp, queries, keys, far, mask)
            else:
                low = 0.0 if mask is None else mask_logits(xp, mask, dtype)[..., None, :]
                logits = logits_of(xp, queries, keys, None, mask)
                if causal:  # later keys are not far keys: no row sees them
                    low = low + outside(L, True, *at)
                logits = xp.where(far == 0, logits, far_logits[..., part, None] + low)
            rows = weighted_sums(xp, logits, values_and_ones(xp, values, mask), rows)
        yield part, rows


def _check_near(band, sinks, most=math.inf):
    """(band, sinks), each at most `most`. Raises: ValueError unless both are integers ≥ 0."""
    given = (band, "band"), (sinks, "sinks")
    return tuple(min(check_count(n, name, least=0), most) for n, name in given)


def _outside(xp, like, dtype, band, causal, rows, keys, diagonal, sinks=0):
    """0 where |p − j| ≤ band, p = i + diagonal, or j < sinks; else, and if causal j > p, −∞."""
    make = {"dtype": dtype, "device": device_of(like)}
    low = xp.full((rows, keys), -math.inf, **make)
    far = xp.concat([xp.zeros((rows, sinks), **make), low[:, sinks:]], axis=-1) if sinks else low
    ahead = xp.triu(low, k=diagonal + 1) if causal else xp.triu(far, k=diagonal + band + 1)
    return xp.tril(far, k=diagonal - band - 1) + ahead


def joint_attention(
    q: Query,
    k: OwnKey,
    v: OwnValue,
    band: int,
    *,
    sinks: int = 0,
    centres: Float[Array, "... C d"] | None = None,
    causal: bool = False,
    key_mask: OwnMask = None,
) -> Rows:
    """Σ_j w_ij v_j / Σ_j w_ij: w = e^{qᵀk/√d} where |i − j| ≤ band, e^{qᵀc/√d} beyond.

    Slow form: `naive.joint_attention`. Near and far keys share one denominator. sinks: how many of
    the first keys shown are near for every row. c: the cluster centre nearest to k. Without
    `centres` all far keys have one representative: the mean of all keys that the mask shows,
    without the sinks; for a causal row, of those before its band. Shape: (..., L, e), dtype that of
    the inputs. Error: near keys are exact to rounding, at any norm; a far weight is off by a factor
    e^{qᵀ(k−c)/√d}. Cost: O(L (band + sinks + 64) (d + e)), and with centres O(L C (d + e)) more;
    memory, the result and, with centres, as much again. Source: this course; the parts are those of
    Nguyen et al. (2021), which blends two denominators; sinks, Xiao et al. (2023), §3.2.
    """
    far = [] if centres is None else [centres]
    q, k, v, key_mask, centres = check_attention(q, k, v, key_mask, *far, called="centres")
    check_tokens(q, k)
    near = _check_near(band, sinks, q.shape[-2])
    if centres is not None:
        return _joint(_log_weights, q, k, v, key_mask, centres, near, causal)

    def sums(q, k, v, key_mask, _):
        return _mean_key_rows(q, k, v, key_mask, near, causal)

    return _counted(sums, q, k, v, key_mask, near, causal)


def joint_favor_attention(
    q: Query,
    k: OwnKey,
    v: OwnValue,
    W: Directions,
    band: int,
    *,
    sinks: int = 0,
    causal: bool = False,
    key_mask: OwnMask = None,
) -> Rows:
    """`joint_attention` where far keys have weights φ(q')ᵀφ(k'), φ the positive features of W.

    Slow form: `naive.joint_favor_attention`. You may shift the keys first: k − s changes no weight
    of the softmax, and may improve its features (lesson 15). Shape: (..., L, e), dtype that of the
    inputs. Error: near keys are exact to rounding, at any norm; far weights are unbiased for
    Gaussian rows of W. Cost: O(L (band + sinks + 64 + m) (d + e)); memory, the result twice and the
    features of a chunk. Source: as `joint_attention`.
    """
    q, k, v, key_mask, W = check_attention(q, k, v, key_mask, W)
    check_tokens(q, k)
    near = _check_near(band, sinks, q.shape[-2])
    return _joint(_log_features, q, k, v, key_mask, W, near, causal)


class Window(NamedTuple):
    """What later causal rows need of the keys so far: of constant size, however many there were.

    k, v: the first `sinks` keys and the last band + 1, with their values. gone: Σ [k, v, 1] over
    the keys between, which have left the window: their mean is the mean key. shown: after a prompt
    with a mask, which of the keys count: texts of one batch may hold fewer than others.
    """

    k: Float[Array, "... n d"]
    v: Float[Array, "... n e"]
    gone: Float[Array, "... 1 d+e+1"]
    shown: Bool[Array, "... n"] | None = None


def window_state(k: Key, v: Value, band: int, *, sinks: int = 0, key_mask: Mask = None) -> Window:
    """The Window after a prompt's keys, with which `follow_window` decodes.

    Shape: at most sinks + band + 1 keys, for each head of k and v, in their dtype; sums in float32
    at least. Error: exact to rounding. Cost: O(S (d + e)). Source: Xiao et al. (2023), §3.2; the
    sums are this course's.
    """
    xp, (band, sinks) = check_keys(k, v, key_mask), _check_near(band, sinks)
    masks = [] if key_mask is None else [key_mask[..., None]]
    lead = check_lead(k, v, *masks, names="k, v and key_mask" if masks else "k and v")
    k, v = (xp.broadcast_to(x, (*lead, *x.shape[-2:])) for x in (k, v))
    if key_mask is not None:
        key_mask = xp.broadcast_to(key_mask, (*lead, k.shape[-2]))
    return _trimmed(xp, Window(k, v, 0.0, key_mask), band, sinks)


def follow_window(
    state: Window,
    q: Query,
    k: OwnKey,
    v: OwnValue,
    band: int,
    *,
    sinks: int = 0,
    mean_key: bool = False,
    key_mask: OwnMask = None,
) -> tuple[Window, Rows]:
    """The Window after L more tokens, and their rows, one token after another.

    The rows are the causal ones of `near_field` or, with `mean_key`, of `joint_attention`. band and
    sinks: those of `window_state`; key_mask: which of these L tokens count. Shape: the Window's;
    (..., L, e), dtype that of q, k, v. Error: exact to rounding. Cost: O(L (band + sinks) (d + e)),
    whatever the number of keys. Source: as `window_state`.
    """
    queries, *_ = check_attention(q, k, v, key_mask)  # (..., H, L, d)
    check_tokens(q, k)
    _check_window(state, k, v)
    xp, (band, sinks) = array_api_compat.array_namespace(q), _check_near(band, sinks)
    d, lead, heads = q.shape[-1], queries.shape[:-2], state.k.shape[-3:-2]
    k, v = (xp.broadcast_to(x, (*state.k.shape[:-2], *x.shape[-2:])) for x in (k, v))
    if key_mask is not None:
        if check_lead(k, key_mask[..., None], names="k and key_mask") != tuple(k.shape[:-2]):
            shapes = f"{tuple(k.shape[:-2])}, got {tuple(key_mask.shape[:-1])}"
            raise ValueError(f"leading axes of key_mask must be those of state.k, {shapes}")
        key_mask = xp.broadcast_to(key_mask, k.shape[:-1])
    if q.shape[-2] > 1 and not mean_key:  # the Window's tokens before the new ones: one text
        state, n = _with_tokens(xp, state, k, v, key_mask), state.k.shape[-2]
        own = xp.zeros((*lead, n, d), dtype=q.dtype, device=device_of(q))
        near = {"sinks": sinks, "causal": True, "key_mask": state.shown}
        rows = near_field(xp.concat([own, queries], axis=-2), state.k, state.v, band, **near)
        return _trimmed(xp, state, band, sinks), rows[..., n:, :]
    # The n query heads that share a key head see the same keys: rows of one product, (..., n, d).
    shape = (*lead[:-1], *heads, math.prod(lead[-1:]) // (math.prod(heads) or 1), d)
    dtype, rows = sum_dtype(xp, *state[:3], q, k, v), []
    for i in range(q.shape[-2]):
        here = slice(i, i + 1)
        new = None if key_mask is None else key_mask[..., here]
        state = _with_tokens(xp, state, k[..., here, :], v[..., here, :], new)
        state = _trimmed(xp, state, band, sinks)
        keys, values, seen = masked_part(xp, *state[:2], state.shown, slice(None), dtype)
        query = xp.astype(xp.reshape(queries[..., i, :], shape), dtype, copy=False) / math.sqrt(d)
        sums = logits_of(xp, query, keys, None, seen)
        sums = weighted_sums(xp, sums, values_and_ones(xp, values, seen))
        if mean_key:
            mean = normalised(xp, state.gone)[..., :d]  # (..., 1, d)
            sums = _with_mean(xp, sums, xp.sum(query * mean, axis=-1), state.gone[..., d:])
        rows.append(xp.reshape(normalised(xp, sums.Sz), (*lead, 1, v.shape[-1])))
    return state, xp.astype(xp.concat(rows, axis=-2), xp.result_type(q, k, v), copy=False)


def _with_tokens(xp, state, k, v, key_mask):
    """The Window with more keys and values after its own."""
    keys, values = (xp.concat(x, axis=-2) for x in ((state.k, k), (state.v, v)))
    if state.shown is None and key_mask is None:
        return Window(keys, values, state.gone)
    pairs = (state.k, state.shown), (k, key_mask)
    seen = (xp.ones_like(x[..., 0], dtype=xp.bool) if m is None else m for x, m in pairs)
    return Window(keys, values, state.gone, xp.concat([*seen], axis=-1))


def _trimmed(xp, state, band, sinks):
    """The Window of the first `sinks` keys shown and the last band + 1; the sums get the others."""
    S, most, shown = state.k.shape[-2], sinks + band + 1, state.shown
    dtype = sum_dtype(xp, state.k, state.v)
    if shown is None:
        gone = slice(sinks, max(sinks, S - band - 1))
        keys, values, _ = masked_part(xp, state.k, state.v, None, gone, dtype)
        left = xp.concat([keys, values_and_ones(xp, values)], axis=-1)
        parts = ([x[..., :sinks, :], x[..., gone.stop :, :]] for x in state[:2])
        k, v = (xp.concat(part, axis=-2) for part in parts)
    else:
        n = xp.cumulative_sum(xp.astype(shown, xp.int32), axis=-1)
        stays = shown & ((n <= sinks) | (n >= n[..., -1:] - band))
        keys, values, left = masked_part(xp, state.k, state.v, shown & ~stays, slice(None), dtype)
        left = xp.concat([keys, values_and_ones(xp, values, left)], axis=-1)
        at = xp.cumulative_sum(xp.ones_like(n), axis=-1) + S * xp.astype(stays, xp.int32)
        order = xp.argsort(at, axis=-1)  # hidden keys, then those that stay
        order = order[..., max(0, S - most) :]
        k, v = (_rows_at(xp, x, order) for x in state[:2])
        shown = xp.take_along_axis(stays, order, axis=-1)
        k, v = (xp.where(shown[..., None], x, xp.zeros_like(x)) for x in (k, v))
    return Window(k, v, state.gone + xp.sum(left, axis=-2, keepdims=True), shown)


def _check_window(state, k, v):
    """Raises: ValueError unless the Window fits the keys k and values v of later tokens."""
    check_kind(state, Window, "state")
    lead, (d, e) = check_lead(k, v, names="k and v"), (x.shape[-1] for x in (k, v))
    check_shape(state.k, "state.k", (*lead, "n", d), k, "k", power=VALUE_POWER)
    check_shape(state.v, "state.v", (*lead, state.k.shape[-2], e), v, "v", power=VALUE_POWER)
    check_shape(state.gone, "state.gone", (*lead, 1, d + e + 1), v, "v", power=VALUE_POWER)
    if state.shown is not None:
        check_mask(state.shown, state.k, "state.k", "state.shown", whole=True)


def _joint(logs, q, k, v, key_mask, far, near, causal):
    """Near rows, and far rows from `logs`, with one denominator; far: (C, d) or (..., C, d)."""
    xp = array_api_compat.array_namespace(q)
    dtype = sum_dtype(xp, q, k, v)
    far = xp.broadcast_to(far, (*k.shape[:-2], *far.shape[-2:]))

    def sums(q, k, v, key_mask, far):
        far = xp.astype(far, dtype, copy=False)
        rows = _far_rows(xp, logs, q, k, v, key_mask, far, near, causal)
        for part, exact in _near_rows(xp, q, k, v, key_mask, near, causal):
            yield merge(xp, exact, State(rows.c[..., part], rows.Sz[..., part, :])).Sz

    return _counted(sums, q, k, v, key_mask, near, causal, far)


def _past_rows(xp, logs, q, k, v, key_mask, far, band, sinks=0):
    """The State of each row i over keys sinks ≤ j < i − band, as causal rows of later queries."""
    first = min(sinks + band + 1, q.shape[-2])  # these rows see no far key
    k, v = (x[..., sinks:, :] for x in (k, v))
    key_mask = None if key_mask is None else key_mask[..., sinks:]
    empty = empty_state(xp, (*q.shape[:-2], first), v.shape[-1] + 1, q, far.dtype)
    later, parts = q[..., first:, :], [empty]
    state = empty_state(xp, far.shape[:-1], v.shape[-1] + 1, q, far.dtype)
    for part in steps(later):
        queries = xp.astype(later[..., part, :], far.dtype, copy=False)
        keys, values, seen = masked_part(xp, k, v, key_mask, part, far.dtype)
        g, h = logs(xp, queries, keys, far)
        h = h if seen is None else h + mask_logits(xp, seen, far.dtype)[..., None]
        state, rows = causal_chunk(xp, state, g, h, values_and_ones(xp, values, seen))
        parts.append(rows)
    c, Sz = zip(*parts, strict=True)
    return State(xp.concat(c, axis=-1), xp.concat(Sz, axis=-2))


def _mean_key_rows(q, k, v, key_mask, near, causal):
    """Yields a few rows of [S, z], where all far keys of a row have one logit, that of their mean.

    Each block of rows computes its band and, with that logit, the keys that are only in the band of
    its other rows; the values of all keys before and after it are summed once.
    """
    xp = array_api_compat.array_namespace(q)
    L, dtype, (band, sinks) = q.shape[-2], sum_dtype(xp, q, k, v), near
    size, ahead = GPU_ROWS if is_on_gpu(q) else ROWS, 0 if causal else band
    parts, g = steps(q, size), _mean_logits(xp, q, k, key_mask, near, causal, dtype)

    def total(start, stop):
        far = slice(max(start, sinks), max(stop, sinks))
        _, values, seen = masked_part(xp, k, v, key_mask, far, dtype)
        return xp.sum(values_and_ones(xp, values, seen), axis=-2, keepdims=True)  # (..., 1, e+1)

    starts, stops = [max(0, x.start - band) for x in parts], [min(L, x.stop + ahead) for x in parts]
    before = itertools.accumulate(map(total, [0, *starts], starts))
    after = [] if causal else list(map(total, stops, [*stops[1:], L]))
    after = [*itertools.accumulate(reversed(after))][::-1]
    exact = _near_rows(xp, q, k, v, key_mask, near, causal, g)
    for (part, rows), *sums in zip(exact, before, *([] if causal else [after]), strict=True):
        yield _with_mean(xp, rows, g[..., part], sum(sums)).Sz


def _with_mean(xp, rows, g, Sz):
    """The sums of these rows and of far keys, Sz, that all have the logit g of each row."""
    c = xp.where(Sz[..., -1] > 0, g, lowest(xp, g.dtype))
    return merge(xp, rows, State(c, Sz))


def _mean_logits(xp, q, k, key_mask, near, causal, dtype):
    """qᵀk̄/√d, k̄ the mean of all keys but the sinks; if causal, of those before the band."""
    keys, _, seen = masked_part(xp, k, k, key_mask, slice(None), dtype)
    keys, first = values_and_ones(xp, keys, seen), near[1]  # (..., L, d+1)
    if causal:
        n = max(0, q.shape[-2] - sum(near) - 1)  # rows with keys before their band
        none, far = xp.zeros_like(keys[..., n:, :]), keys[..., first : first + n, :]
        keys = xp.concat([none, xp.cumulative_sum(far, axis=-2)], axis=-2)
    else:
        keys = xp.sum(keys[..., first:, :], axis=-2, keepdims=True)
    mean = normalised(xp, keys)  # (..., L or 1, d)
    return xp.sum(xp.astype(q, dtype, copy=False) * mean, axis=-1) / math.sqrt(q.shape[-1])


def _far_rows(xp, logs, q, k, v, key_mask, far, near, causal):
    """The sums of each row over the keys that are not near: a State of L rows."""
    L, (band, sinks) = q.shape[-2], near
    rows = _past_rows(xp, logs, q, k, v, key_mask, far, band, sinks)
    if causal:
        return rows
    if sinks:
        own = xp.arange(L, device=device_of(k)) >= sinks
        key_mask = own if key_mask is None else own & key_mask
    # Keys after the band are keys before it in the reversed sequence.
    reversed_ = (xp.flip(x, axis=-2) for x in (q, k, v))
    mask = None if key_mask is None else xp.flip(key_mask, axis=-1)
    c, Sz = _past_rows(xp, logs, *reversed_, mask, far, band)
    return merge(xp, rows, State(xp.flip(c, axis=-1), xp.flip(Sz, axis=-2)))


def _log_features(xp, q, k, W):
    """ln φ(q') and ln φ(k') for the positive features φ of W: (..., n, m) each."""
    return tuple(features.log_positive(x * x.shape[-1] ** -0.25, W) for x in (q, k))


def _log_weights(xp, q, k, centres):
    """qᵀc/√d for each cluster centre c; 0 for the centre nearest to k, `lowest` for the others."""
    g = projected(xp, q, centres) / math.sqrt(q.shape[-1])  # (..., n, C)
    distance = squared_norm(xp, centres)[..., None, :] - 2 * projected(xp, k, centres)
    nearest = xp.argmin(distance, axis=-1)[..., None]  # (..., n, 1)
    own = nearest == xp.arange(centres.shape[-2], device=device_of(k))
    return g, xp.where(own, xp.zeros_like(distance), lowest(xp, k.dtype))
