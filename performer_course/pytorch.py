"""This course's attention as `torch.nn.Module`, to replace PyTorch's own; the extra `torch`.

Called like `torch.nn.functional.scaled_dot_product_attention` (SDPA): q (batch, heads, L, d), k
(batch, heads, S, d), v (batch, heads, S, e), attn_mask, True where a key counts, (batch, 1, 1, S)
or (batch, S), dropout_p, is_causal. Grouped queries need no enable_gqa: k and v may have fewer
heads than q, a number that divides theirs. Sums run in float32 at least, also under autocast, which
casts q, k and v as for SDPA. All raise ValueError for masks of pairs, dropout, a scale, nested and
sparse tensors, and shapes that do not fit. `torch.load` reads the states that `torch.save` wrote.
"""

import warnings

from . import attention, near_far, projections, recurrent
from ._arguments import check_count, check_dense, check_floating, in_groups, needed

with needed(__name__, "torch"):
    import torch
    from torch.nn.functional import logsigmoid, normalize

# Tuples of tensors, so safe to load although torch does not know them.
torch.serialization.add_safe_globals([attention.State, near_far.Window, recurrent.Affine])
# torch.compile warns of caches in array_api_compat, which remember what depends on types alone.
warnings.filterwarnings("ignore", r"Dynamo .* `functools.lru_cache`-wrapped .*'_helpers\.py")


def _key_mask(q, k, v, mask):
    """The mask of keys, (batch, heads or 1, S), or None. Raises: ValueError."""
    for x, name in ((q, "q"), (k, "k"), (v, "v")):
        check_floating(x, name)
        if not isinstance(x, torch.Tensor) or x.ndim != 4:
            raise ValueError(f"{name} must be (batch, heads, n, d), got {getattr(x, 'shape', x)}")
    if mask is None:
        return None
    check_dense(mask, "attn_mask")
    (B, H, L), S = q.shape[:3], k.shape[-2]
    shape, dtype = tuple(getattr(mask, "shape", ())), getattr(mask, "dtype", type(mask).__name__)
    if dtype == torch.bool and shape == (B, S) and (B == 1 or B != L):  # not of pairs, (L, S)
        return mask[:, None, :]
    if dtype == torch.bool and shape[2:] == (1, S) and shape[0] in (1, B) and shape[1] in (1, H):
        return mask[..., 0, :]
    raise ValueError(
        f"attn_mask must be boolean {(B, 1, 1, S)}, or (batch, S) if batch is not L, got {dtype} "
        f"{shape}: all rows share their sums over keys (lesson 10), so it cannot be one of pairs, "
        "(L, S); is_causal=True hides later keys"
    )


def _computed(function, rows, mask, *more):
    """function(q, k, v, key mask, …) without autocast, on rows cast as it casts them for SDPA."""
    mask, kind = _key_mask(*rows, mask), rows[0].device.type
    if not torch.amp.is_autocast_available(kind):  # as on the meta device
        return function(*rows, mask, *more)
    if torch.is_autocast_enabled(kind):
        half = torch.get_autocast_dtype(kind)
        rows = [x if x.dtype == torch.float64 else x.to(half) for x in rows]
    with torch.autocast(kind, enabled=False):
        return function(*rows, mask, *more)


class _InPlaceOfSDPA(torch.nn.Module):
    """Called like SDPA; subclasses compute in `attend`, and from a state in `follow`."""

    def forward(
        self,
        query,
        key,
        value,
        attn_mask=None,
        dropout_p=0.0,
        is_causal=False,
        *,
        scale=None,
        enable_gqa=False,
    ):
        """(batch, heads, L, e), dtype that of q, k, v; zeros in rows that see no key."""
        if dropout_p != 0:
            raise ValueError(f"dropout_p must be 0, weights are not dropped, got {dropout_p!r}")
        if scale is not None:
            raise ValueError(f"scale must be None: multiply q by scale √d instead, got {scale!r}")
        return _computed(self.attend, (query, key, value), attn_mask, is_causal)

    def step(self, q, k, v, state=None, attn_mask=None):
        """(rows, state) after more tokens, a prompt or one; state None at the start."""
        return _computed(self.follow, (q, k, v), attn_mask, state)[::-1]


class FavorAttention(_InPlaceOfSDPA):
    """`attention.favor_attention`, one buffer W (m, d) for all heads; rng: a NumPy Generator."""

    def __init__(self, d: int, m: int, rng):
        super().__init__()
        W = torch.asarray(projections.orthogonal(rng, m, d), dtype=torch.get_default_dtype())
        self.register_buffer("W", W)

    def redraw(self, rng) -> None:
        """New directions, in place: between steps of training, not while a State is in use."""
        self.W.copy_(torch.asarray(projections.orthogonal(rng, *self.W.shape)))

    def attend(self, q, k, v, key_mask, causal):
        return attention.favor_attention(q, k, v, self.W, causal=causal, key_mask=key_mask)

    def follow(self, q, k, v, key_mask, state):
        state = attention.init_state(k, v, self.W) if state is None else state
        return attention.follow(state, q, k, v, self.W, key_mask)


class NearFarAttention(_InPlaceOfSDPA):
    """`near_far.joint_attention`: keys |i − j| ≤ band and `sinks` first ones exactly, the others by
    a representative: one mean key or the nearest of `centres`, (C, d) or (heads, C, d), a buffer.
    """

    def __init__(self, band: int, centres=None, *, sinks: int = 0):
        super().__init__()
        self.band = check_count(band, "band", least=0)
        self.sinks = check_count(sinks, "sinks", least=0)
        self.register_buffer("centres", None if centres is None else torch.as_tensor(centres))

    @torch.compiler.disable  # its loop over blocks would be dozens of graphs
    def attend(self, q, k, v, key_mask, causal):
        options = {"sinks": self.sinks, "causal": causal, "key_mask": key_mask}
        return near_far.joint_attention(q, k, v, self.band, centres=self.centres, **options)

    def follow(self, q, k, v, key_mask, state):
        if self.centres is not None:
            raise ValueError("step must be without centres: its state has none")
        near = {"band": self.band, "sinks": self.sinks}
        if state is None:
            rows = self.attend(q, k, v, key_mask, True)
            return near_far.window_state(k, v, **near, key_mask=key_mask), rows
        return near_far.follow_window(state, q, k, v, **near, mean_key=True, key_mask=key_mask)


class DeltaAttention(_InPlaceOfSDPA):
    """`recurrent.delta_attention` of unit q and k, causal only; a masked token does nothing.

    [β, a] = sigmoid(Ak + b) is learned, one A for all heads; the gate a, optional, starts near .99.
    """

    def __init__(self, d: int, gate: bool = False):
        super().__init__()
        self.write = torch.nn.Linear(check_count(d, "d"), 2 if gate else 1)
        self.write.bias.data[1:] = 4.6

    def tokens(self, q, k, v, key_mask=None):
        """(q, k, v, β, ln a) as `recurrent` takes them."""
        if key_mask is not None and key_mask.shape[1] > 1:  # a state for each query head
            _, q, k, v = in_groups(q, {"k": k, "v": v}, repeat=True)
        if k.shape[-1] != (d := self.write.in_features):
            raise ValueError(f"k must have rows of width d = {d}, got {k.shape[-1]}")
        seen = k.new_ones((), dtype=torch.bool) if key_mask is None else key_mask[..., None]
        k, v = (torch.where(seen, x, 0.0) for x in (k, v))
        logs = logsigmoid(self.write(k.to(self.write.weight.dtype)))
        beta, *log_decay = torch.where(seen, logs, 0.0).unbind(-1)
        q, k = (normalize(x, dim=-1, eps=1e-6) for x in (q, k))  # 1e-12 is 0 in float16
        return q, k, v, beta.exp(), *log_decay

    def attend(self, q, k, v, key_mask, causal):
        if not causal:
            raise ValueError("is_causal must be True: a state is written from left to right")
        return recurrent.delta_attention(*self.tokens(q, k, v, key_mask))

    def follow(self, q, k, v, key_mask, state):
        return recurrent.recurrence(*self.tokens(q, k, v, key_mask), state=state)
