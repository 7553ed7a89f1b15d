"""How attention is cut into blocks, steps, masks, heads and threads. No mathematics."""

import itertools
import math

import array_api_compat

from ._stable import normalised
from .backend import _cores, device_of, is_free_to_read, side_by_side

# Tokens per step, so that their features fit in a core's cache, or fill a device. On JAX all
# tokens are one step, because its compiler unrolls each loop.
CHUNK, DEVICE_CHUNK = 512, 16384
# Queries and keys in one block of exact attention.
BLOCK, DEVICE_BLOCK = 256, 4096
# On NumPy, heads with more entries together run one at a time, to stay in cache, and heads with
# this many tokens on several cores.
ENTRIES_IN_CACHE, THREADS_FROM = 2**16, 8192


def step_size(x):
    """How many tokens of x (..., n, d) to process at a time on its device."""
    if array_api_compat.is_jax_array(x):
        return x.shape[-2]
    return CHUNK if is_free_to_read(x) else DEVICE_CHUNK


def steps(x, size=None, *, start=0, stop=None):
    """Slices of the tokens of x from `start` to `stop`; size: by default `step_size(x)`."""
    stop = x.shape[-2] if stop is None else stop
    size = step_size(x) if size is None else size
    count = -((start - stop) // size)  # rounded up
    inner = (start + i * size for i in range(count))
    return [slice(*ends) for ends in itertools.pairwise([*inner, stop])]


def phases(q, k, size=None, *, causal):
    """Slices for three phases: keys that all rows see; causal tokens; rows that see all keys.

    Causal attention needs the second and, with fewer keys than queries, the third; otherwise the
    second is empty.
    """
    own = min(q.shape[-2], k.shape[-2]) if causal else 0
    seen_by_all = [] if causal else steps(k, size)
    return seen_by_all, steps(k, size, stop=own), steps(q, size, start=own)


def blocks(x, *, stop=None):
    """Slices of the tokens of x up to `stop`, one per block of exact attention."""
    return steps(x, BLOCK if is_free_to_read(x) else DEVICE_BLOCK, stop=stop)


def sum_dtype(xp, *arrays):
    """The dtype of sums: float64 if an input is float64, else float32."""
    return xp.float64 if xp.result_type(*arrays) == xp.float64 else xp.float32


def masked_part(xp, k, v, key_mask, part, dtype):
    """k, v and the mask, (..., n, 1) or None, of a slice in that dtype; masked rows are zero."""
    k, v = (xp.astype(x[..., part, :], dtype, copy=False) for x in (k, v))
    if key_mask is None:
        return k, v, None
    seen = key_mask[..., part, None]  # (..., n, 1)
    return *(xp.where(seen, x, xp.zeros_like(x)) for x in (k, v)), seen


def causal_mask(xp, queries, keys, diagonal):
    """−∞ where key j comes after row i, j > i + diagonal, else 0: (rows, keys); None if all 0."""
    rows, n = queries.shape[-2], keys.shape[-2]
    if n <= diagonal + 1:
        return None
    low = xp.full((rows, n), -math.inf, dtype=queries.dtype, device=device_of(queries))
    return xp.triu(low, k=diagonal + 1)


def in_blocks(xp, x, size, n, fill=0.0):
    """x (..., l ≤ n, w) padded and cut: (..., T, size, w) with T = ⌈n / size⌉."""
    *lead, length, width = x.shape
    T = -(-n // size)
    # Of lengths that are symbols, under torch.export, enough for any: nothing to decide.
    rest = T * size - length if isinstance(n, int) else size + n - length
    if rest > 0:
        fill = xp.full((*lead, rest, width), fill, dtype=x.dtype, device=device_of(x))
        x = xp.concat([x, fill], axis=-2)[..., : T * size, :]
    return xp.reshape(x, (*lead, T, size, width))


def in_order(xp, x, n=None):
    """The first n tokens (default: all) of blocks (..., T, size, w), joined: (..., n, w)."""
    *lead, T, size, width = x.shape
    return xp.reshape(x, (*lead, T * size, width))[..., :n, :]


def each_head(sums, q, k, v, key_mask, W=None, *, work_per_head):
    """S / z of all rows, (..., L, e): sums(q, k, v, key_mask, W) yields a few [S, z] at a time.

    Queries may share a head of k, v, key_mask and W, whose leading axes then have a 1 or are fewer.
    On NumPy, heads with much work (numbers produced) run one at a time, to stay in cache, and long
    ones on several cores. Elsewhere rows are joined, because JAX arrays cannot be written into.
    """
    xp = array_api_compat.array_namespace(q)
    lead, dtype, fewer = q.shape[:-2], xp.result_type(q, k, v), q.ndim - k.ndim
    if not is_free_to_read(q):
        rows = (normalised(xp, Sz) for Sz in sums(q, k, v, key_mask, W))
        parts = [xp.astype(x, dtype, copy=False) for x in rows]
        return parts[0] if len(parts) == 1 else xp.concat(parts, axis=-2)
    out = xp.empty((*q.shape[:-1], v.shape[-1]), dtype=dtype)
    own, cores = (1,) * fewer + k.shape[:-2], None if q.shape[-2] >= THREADS_FROM else 1

    def cut(few, many):
        """The heads along an axis; where they share one of the keys, a slice for each core."""
        size = -(-many * math.prod(own) // max(math.prod(own), cores or _cores()))
        return range(many) if few == many else steps(q, size, stop=many)

    def fill(head):
        at = tuple(slice(None) if isinstance(i, slice) else i for i in head[fewer:])
        keys = [x if x is None or (x is W and W.ndim == 2) else x[at] for x in (k, v, key_mask, W)]
        rows, start = out[head], 0
        for Sz in sums(q[head], *keys):
            stop = start + Sz.shape[-2]
            rows[..., start:stop, :] = normalised(xp, Sz)
            start = stop

    separate = math.prod(lead) * work_per_head > ENTRIES_IN_CACHE
    heads = list(itertools.product(*map(cut, own, lead))) if separate else [()]
    side_by_side(fill, heads, q, cores=cores)
    return out
