"""Argument validation: a ValueError names the argument, what was expected and what it got.

Values are read only on NumPy, where that is free: a NaN on a GPU passes, and shows in the result.
"""

import contextlib
import hashlib
import itertools
import math
import operator
import os
from numbers import Real
from typing import NamedTuple

import array_api_compat
import numpy as np

from ._shapes import Array
from ._stable import State
from .backend import device_of, is_free_to_read

# Subclasses of NumPy's array whose mask or matrix product its functions lose.
LOSSY = (np.ma.MaskedArray, np.matrix)
# Powers of a dtype's largest number that bound an entry, so that sums of products are finite (147
# in float16, 2e17 in float32, 5e138 in float64), and a value, so that sums are.
ENTRY_POWER, VALUE_POWER = 0.45, 0.8
SINGLE = float(np.finfo(np.float32).max)
SHORTEST, WIDEST = 32, 256  # tokens and numbers of a head that is judged on the host
# What a module needs beside the package, by the extra of a clone that installs it.
EXTRAS = {"lessons": "matplotlib pillow", "torch": "torch", "huggingface": "torch transformers"}
EXTRAS |= {"training": "jax optax tqdm"}
FETCHED = ": `make model`, in a clone of the course, fetches one"


def check_array(x, name: str, dims: str, mask=None, *, finite=True, **limit):
    """The namespace of x, a non-empty, finite floating array of shape (..., *dims).

    mask: boolean (..., n), False for a row of x that may hold anything. finite: False leaves
    `check_finite` to the caller. limit: its options.
    """
    xp = check_floating(x, name, f"(..., {dims})")
    if x.ndim < len(dims.split(", ")):
        raise ValueError(f"{name} must have shape (..., {dims}), got shape {tuple(x.shape)}")
    if 0 in x.shape[x.ndim - len(dims.split(", ")) :]:  # an empty batch is allowed
        raise ValueError(f"{name} must not be empty, got shape {tuple(x.shape)}")
    if mask is not None:
        check_mask(mask, x, name)
    if finite:
        check_finite(x, name, mask, **limit)
    return xp


def check_floating(x, name: str, shape: str = "(...)"):
    """The namespace of x, a dense array of float64 or less."""
    if not array_api_compat.is_array_api_obj(x) or isinstance(x, LOSSY):
        raise ValueError(
            f"{name} must be an array of shape {shape}, got {type(x).__name__}: "
            f"convert it with xp.asarray({name}, dtype=xp.float64)"
        )
    xp = array_api_compat.array_namespace(x)
    check_dense(x, name)
    if not is_kind(xp, x, "real floating") or xp.finfo(x.dtype).bits > 64:
        raise ValueError(
            f"{name} must hold real floating-point numbers, got dtype {x.dtype}: "
            f"convert it with xp.astype({name}, xp.float64), the widest accepted"
        )
    return xp


def check_dense(x, name: str) -> None:
    """Refuses a nested or sparse tensor of PyTorch."""
    if array_api_compat.is_torch_array(x) and (x.is_nested or "strided" not in str(x.layout)):
        raise ValueError(
            f"{name} must be dense, got a nested or sparse tensor: pad it, with a mask"
        )


def is_kind(xp, x, kind: str) -> bool:
    """`xp.isdtype` of x; False where NumPy's fails, for dtypes added to it such as bfloat16."""
    return not (is_free_to_read(x) and x.dtype.kind == "V") and xp.isdtype(x.dtype, kind)


def check_shape(x, name: str, shape, other, called: str, *, like=None, **limit):
    """The namespace of x, a finite floating array of the given shape.

    shape: sizes; a letter means any size, `...` before it any leading axes. other: the array named
    `called`, of the same library, that x must fit; x must also be finite in its dtype, unless
    `like` is given. like, limit: options of `check_finite`.
    """
    check_floating(x, name)
    xp = check_library(other, x, f"{called} and {name}")
    got = tuple(x.shape)
    if shape[:1] == (...,):
        got = (..., *got[max(0, x.ndim + 1 - len(shape)) :])
    fits = (n == m or isinstance(n, str) for n, m in zip(shape, got, strict=False))
    if len(got) != len(shape) or not all(fits):
        expected = str(tuple(shape)).replace("Ellipsis", "...").replace("'", "")
        raise ValueError(
            f"{name} must have shape {expected}, got shape {tuple(x.shape)}, "
            f"with {called} of shape {tuple(other.shape)}"
        )
    if 0 in got and 0 not in shape:
        raise ValueError(f"{name} must not be empty, got shape {tuple(x.shape)}")
    check_finite(x, name, like=other if like is None else like, **limit)
    return xp


def check_finite(x, name: str, mask=None, *, power=ENTRY_POWER, like=None, wide=True) -> None:
    """Refuses NaN, infinity and a large |x| in a row that the mask (..., n) shows.

    power: |x| may reach this power of the largest number of the dtype of `like`, or of x; wide:
    sums run in float32 at least. Two extremes suffice, without an array as large as x.
    """
    if not is_free_to_read(x) or not x.size:
        return
    like = like if is_free_to_read(like) and like.dtype.kind == "f" else x
    most = max(float(np.finfo(like.dtype).max), SINGLE * wide) ** power
    if float(np.max(x)) <= most and float(np.min(x)) >= -most:
        return
    bad = ~(np.abs(x) <= min(most, float(np.finfo(x.dtype).max)))
    bad = bad if mask is None else bad & mask[..., None]
    positions = np.nonzero(bad)
    if len(positions[0]) > 0:
        infinite = np.any(bad & ~np.isfinite(x))
        got = "NaN or infinity" if infinite else f"more than {most:.2g} in size"
        raise ValueError(
            f"{name} must be finite, got {got} in {len(positions[0])} of {x.size} entries, "
            f"the first at {tuple(int(i[0]) for i in positions)}"
        )


def check_mask(mask, x, name: str, called: str = "key_mask", *, whole=False) -> None:
    """A boolean mask (..., n) for the n rows of x; whole: with all leading axes of x."""
    if not array_api_compat.is_array_api_obj(mask) or isinstance(mask, LOSSY):
        raise ValueError(f"{called} must be a boolean array, got {type(mask).__name__}")
    check_dense(mask, called)
    xp = check_library(x, mask, f"{name} and {called}")
    rows, shape = tuple(x.shape[:-1]), tuple(mask.shape)
    fits = shape == rows if whole else shape[-1:] == rows[-1:]
    if not is_kind(xp, mask, "bool") or not fits:
        expected = rows if whole else f"(..., {rows[-1]})"
        raise ValueError(
            f"{called} must be boolean of shape {expected}, one entry for each row of {name}, "
            f"got {mask.dtype} of shape {shape}"
        )
    check_lead(x, mask[..., None], names=f"{name} and {called}")


def check_apart(out, x, W) -> None:
    """Refuses an `out` that shares memory with W, or with x unless it is x."""
    if is_free_to_read(out):
        same = out.__array_interface__ == x.__array_interface__
        for name, y in [("W", W)] if same else [("x", x), ("W", W)]:
            if np.may_share_memory(out, y, max_work=10_000):  # where it can't tell, it says yes
                raise ValueError(f"out must be x or share no memory with {name}, got one that does")


def check_library(x, y, names: str):
    """The namespace of x and y, which must be the same."""
    try:
        return array_api_compat.array_namespace(x, y)
    except TypeError as error:
        raise ValueError(
            f"{names} must be arrays of one library, got "
            f"{type(x).__module__} and {type(y).__module__}: move one with to_like"
        ) from error


def check_count(value, name: str, *, least: int = 1) -> int:
    """value as a Python integer ≥ `least`."""
    try:
        count = operator.index(value)
    except TypeError:
        count = least - 1
    if count < least or isinstance(value, bool):
        raise ValueError(f"{name} must be an integer of at least {least}, got {value!r}")
    return count


def check_number(
    value, name: str, *, above: float | None = None, least: float | None = None, like=None
):
    """value as a finite float, > `above` or ≥ `least`, that the dtype of `like` can hold."""
    good = isinstance(value, Real) and not isinstance(value, bool) and math.isfinite(value)
    expected = ""
    if above is not None:
        good, expected = good and value > above, f" above {above:g}"
    elif least is not None:
        good, expected = good and value >= least, f" of at least {least:g}"
    if good and like is not None and value != 0:
        info = array_api_compat.array_namespace(like).finfo(like.dtype)
        good = float(info.smallest_normal * info.eps) <= abs(value) <= float(info.max)
        expected += f", in the range of {like.dtype}"
    if not good:
        raise ValueError(f"{name} must be a finite number{expected}, got {value!r}")
    return float(value)


def check_real(value, name: str):
    """Numbers as a NumPy array of float64, finite or not; host only."""
    try:
        x = np.asarray(value)
    except Exception as error:  # rows of different lengths; an array of a device
        raise ValueError(f"{name} must be an array of real numbers: {error}") from error
    if x.dtype.kind not in "iuf" or isinstance(value, LOSSY):
        got = type(value).__name__ if isinstance(value, LOSSY) else f"dtype {x.dtype}"
        raise ValueError(f"{name} must hold real numbers, got {got}")
    return x.astype(float, copy=False)


def check_generator(rng) -> None:
    """rng must be a NumPy Generator."""
    if not isinstance(rng, np.random.Generator):
        raise ValueError(
            f"rng must be a numpy.random.Generator, got {type(rng).__name__}: "
            "make one with numpy.random.default_rng(seed)"
        )


def check_lead(*arrays, names: str = "arrays"):
    """The leading axes of arrays (..., n, d), broadcast."""
    shapes = [tuple(x.shape[:-2]) for x in arrays]
    columns = itertools.zip_longest(*(reversed(shape) for shape in shapes), fillvalue=1)
    sizes = [[n for n in column if n != 1] for column in columns]  # while tracing, n is a tensor
    if any(n != size[0] for size in sizes for n in size):
        got = " and ".join(map(str, shapes))
        raise ValueError(f"leading axes of {names} must broadcast, got {got}")
    return tuple((*size, 1)[0] for size in reversed(sizes))


def check_directions(W, x, name: str, called: str = "W", **limit):
    """The namespace of directions W (..., m, d) and the rows x (..., n, d)."""
    xp = check_shape(W, called, (..., "m", x.shape[-1]), x, name, **limit)
    if W.ndim > 2:
        check_lead(x, W, names=f"{name} and {called}")
    return xp


def check_keys(k, v, key_mask, name: str = "k", width: str = "d"):
    """The namespace of keys k, values v and their mask, whatever their leading axes."""
    check_array(k, name, f"S, {width}", key_mask)
    check_array(v, "v", "S, e", key_mask, power=VALUE_POWER)
    if k.shape[-2] != v.shape[-2]:
        raise ValueError(
            f"{name} and v must have one row for each key, got {k.shape[-2]} and {v.shape[-2]} "
            f"(shapes {tuple(k.shape)} and {tuple(v.shape)})"
        )
    return check_library(k, v, f"{name} and v")


def check_callable(x, name: str) -> None:
    """x must be callable."""
    if not callable(x):
        raise ValueError(f"{name} must be a function, got {type(x).__name__}")


def check_kind(x, kind: type, name: str) -> None:
    """x must be an instance of that class."""
    if not isinstance(x, kind):
        raise ValueError(f"{name} must be of type {kind.__name__}, got {type(x).__name__}")


@contextlib.contextmanager
def needed(module: str, extra: str):
    """Turns an ImportError in this block into one that says what to install."""
    try:
        yield
    except ImportError as error:
        install = f"pip install {EXTRAS[extra]} (in a clone of the course: make lab EXTRAS={extra})"
        raise ImportError(f"{module} cannot be imported ({error}): {install}") from error


@contextlib.contextmanager
def reading(path, what: str, sha256: str | None = None):
    """The open file at path; any error while it is read becomes one that names it and `what`.

    sha256: the hash that it must have, checked first; None accepts any file. Raises: ValueError
    with the path, also for a folder; FileNotFoundError.
    """
    good = isinstance(path, str | os.PathLike)
    if not good or (os.path.exists(path) and not os.path.isfile(path)):  # a pipe never ends
        raise ValueError(f"path must be the path of a {what}, got {path!r}{FETCHED * bool(sha256)}")
    with open(path, "rb") as file:
        if sha256 and (got := hashlib.file_digest(file, "sha256").hexdigest()) != sha256:
            raise ValueError(
                f"path must be the path of a {what} with sha256 {sha256}, got {path} with {got}"
                f"{FETCHED}"
            )
        file.seek(0)
        try:
            yield file
        except Exception as error:
            reason = str(error) or type(error).__name__
            raise ValueError(f"{path} is not a valid {what}: {reason}") from error


def check_sums(state, name: str):
    """The namespace of a State whose two arrays fit."""
    check_kind(state, State, name)
    check_array(state.c, f"{name}.c", "m", finite=False)
    xp = check_array(state.Sz, f"{name}.Sz", "m, e + 1", finite=False)
    if is_free_to_read(state.Sz) and not math.isfinite(xp.sum(state.Sz)):  # one pass per step
        check_finite(state.Sz, f"{name}.Sz", power=VALUE_POWER)
    check_library(state.c, state.Sz, f"{name}.c and {name}.Sz")
    if tuple(state.c.shape) != tuple(state.Sz.shape[:-1]):
        raise ValueError(
            f"{name}.c must have the shape {tuple(state.Sz.shape[:-1])} of the sums in {name}.Sz, "
            f"one largest logit each, got {tuple(state.c.shape)}"
        )
    if is_free_to_read(state.c) and not xp.all(state.c < math.inf):  # −∞: no key yet
        raise ValueError(f"{name}.c must be finite, or −∞ before any key, got {xp.max(state.c)}")
    return xp


def check_state(state, x, name: str, W, e: int | None = None) -> None:
    """The State must be of x's library, of W's m, and of values of size e."""
    check_sums(state, "state")
    check_library(x, state.Sz, f"{name} and state")
    (m, width), e = state.Sz.shape[-2:], state.Sz.shape[-1] - 1 if e is None else e
    if (m, width) != (W.shape[-2], e + 1):
        raise ValueError(
            f"state must have m = {W.shape[-2]} features, as W has, and values of size {e}, "
            f"got {m} and values of size {width - 1}"
        )


def in_groups(q, given: dict, name: str = "q", *, repeat=False):
    """(join, q, *arrays): leading axes broadcast, and those of the `given` arrays are equal.

    Grouped queries (Ainslie et al., 2023, §2.2): where q has H heads, the axis before the last two,
    and the first array has G, query head h sees key head h // n, n = H/G. So q becomes (..., G, n,
    L, d), and an array (..., G, 1, ·, ·), or (..., G, n, ·, ·) if it has H heads; join undoes that.
    repeat: all arrays as large as q, and joined. None stays.
    """
    found = {name: q} | {name: x for name, x in given.items() if x is not None}
    xp, (_, first, *_) = array_api_compat.array_namespace(q), found
    H, G = (x.shape[-3] if x.ndim > 2 else 1 for x in (q, found[first]))
    grouped = 1 < G < H
    if grouped and H % G:
        raise ValueError(f"{first} must have {H} heads, as {name}, or a divisor of it, got {G}")

    def split(x):
        heads = (G, H // G) if x.shape[-3] == H else (x.shape[-3], 1)
        return xp.reshape(x, (*x.shape[:-3], *heads, *x.shape[-2:]))

    def join(x):
        lead = (*x.shape[:-4], x.shape[-4] * x.shape[-3]) if grouped else x.shape[:-2]
        return xp.reshape(x, (*lead, *x.shape[-2:]))

    def led(x, lead):  # a broadcast that changes nothing takes microseconds
        return x if tuple(x.shape[:-2]) == lead else xp.broadcast_to(x, (*lead, *x.shape[-2:]))

    q, *arrays = (split(x) if grouped and x.ndim > 2 else x for x in found.values())
    lead = check_lead(q, *arrays, names=", ".join(found))
    own = lead if repeat else check_lead(*arrays)
    arrays = [led(q, lead), *(led(x, own) for x in arrays)]
    rest = map(join, arrays) if repeat else iter(arrays)
    return join, next(rest), *(x if x is None else next(rest) for x in given.values())


def check_groups(q, k, v, key_mask, *W_state, names=("q", "k"), width="d", called="W", **options):
    """(join, q, k, v, mask, W or None), as `in_groups` returns them.

    W_state: none; W, which stays (m, d) if it is so; or W and a State, returned as (..., m, 1), Sz.
    """
    check_keys(k, v, key_mask, names[1], width)
    check_shape(q, names[0], (..., "L", k.shape[-1]), k, names[1], like=q)
    given = {names[1]: k, "v": v, "key_mask": None if key_mask is None else key_mask[..., None]}
    W, state = (*W_state, None, None)[:2]
    if W_state:
        check_shape(W, called, (..., "m", k.shape[-1]), q, names[0])
        given[called] = W if W.ndim > 2 else None
    if W_state[1:]:
        check_state(state, k, names[1], W, v.shape[-1])
        given |= {"state.c": state.c[..., None], "state": state.Sz}
    join, q, k, v, mask, *own = in_groups(q, given, names[0], **options)
    W = W if given.get(called) is None else own[0]
    return join, q, k, v, mask if mask is None else mask[..., 0], W, *own[1:]


class Checked(NamedTuple):
    """Arguments of an attention, with equal leading axes."""

    q: Array
    k: Array
    v: Array
    key_mask: Array | None
    W: Array | None


def check_attention(*arguments, **options):
    """The arguments of `check_groups` with equal leading axes: keys are repeated."""
    return Checked(*check_groups(*arguments, **options, repeat=True)[1:6])


def check_heads(q, k, v, name=""):
    """q, k, v of a text as (H, L, d) in float32 on NumPy, with H heads each."""
    for x, letter in ((q, "q"), (k, "k"), (v, "v")):
        if not isinstance(x, np.ndarray):
            raise ValueError(f"{name}{letter} must be a NumPy array, got {type(x).__name__}")
        check_array(x, name + letter, "L, d", power=0.2, like=np.ones(1, np.float32))
    q, k, v = (x.reshape(-1, *x.shape[-2:]) if x.ndim == 2 or len(x) == 1 else x for x in (q, k, v))
    got = f"got {name}q {list(q.shape)}, k {list(k.shape)}, v {list(v.shape)}"
    if {q.ndim, k.ndim, v.ndim} != {3} or len(q) % len(k) or k.shape[:2] != (len(v), q.shape[1]):
        rule = "of one text and one L, the heads of q a multiple of those of k and v"
        raise ValueError(f"q, k and v must be (L, d) or (heads, L, d), {rule}, {got}")
    if q.shape[1] < max(SHORTEST, len(q)) or q.shape[2] > WIDEST:
        sizes = f"{SHORTEST} tokens or more, not fewer than heads, d at most {WIDEST}"
        turn = "x.reshape(L, heads, d).swapaxes(0, 1) puts the heads first"
        raise ValueError(f"q must be (heads, L, d), {sizes}, {got}: {turn}")
    k, v = (np.repeat(x, len(q) // len(k), axis=0) for x in (k, v))
    check_attention(q, k, v, None, names=(name + "q", name + "k"))
    return [x.astype(np.float32) for x in (q, k, v)]


def check_tokens(q, k, names: str = "q and k") -> None:
    """There must be as many queries as keys."""
    if q.shape[-2] != k.shape[-2]:
        raise ValueError(
            f"{names} must have one row for each token, "
            f"got L = {q.shape[-2]} queries and S = {k.shape[-2]} keys"
        )


def check_token_ids(tokens, key_mask, vocabulary):
    """The namespace of integers (..., L) in range, with a mask that fits."""
    good = array_api_compat.is_array_api_obj(tokens) and not isinstance(tokens, LOSSY)
    if not good or not tokens.ndim:
        raise ValueError(f"tokens must be an integer array (..., L), got {type(tokens).__name__}")
    xp = array_api_compat.array_namespace(tokens)
    if not tokens.shape[-1]:
        raise ValueError(f"tokens must not be empty, got shape {tuple(tokens.shape)}")
    if not is_kind(xp, tokens, "integral"):
        raise ValueError(f"tokens must be integers, got dtype {tokens.dtype}")
    if is_free_to_read(tokens) and xp.any((tokens < 0) | (tokens >= vocabulary)):
        raise ValueError(
            f"tokens must be from 0 to {vocabulary - 1}, got {xp.min(tokens)} to {xp.max(tokens)}"
        )
    if key_mask is not None:
        check_mask(key_mask, tokens[..., None], "tokens", whole=True)
    return xp


def check_each_token(x, k, name: str, low: float, high: float, *, by_channel=False):
    """x in [low, high], a number or one per token of k: (..., L, 1), or (..., L, d) by channel.

    An axis of size 1 has one value for all.
    """
    if isinstance(x, Real) or not array_api_compat.is_array_api_obj(x):  # np.float64 is both
        if not isinstance(x, Real) or isinstance(x, bool) or not low <= x <= high:
            raise ValueError(f"{name} must be in [{low:g}, {high:g}], got {x!r}")
        xp = array_api_compat.array_namespace(k)
        return xp.full((k.shape[-2], 1), float(x), dtype=k.dtype, device=device_of(k))
    xp = check_floating(x, name)
    check_library(k, x, f"k and {name}")
    shape, lead = tuple(x.shape), k.ndim - 2
    ends = [k.shape[-2:-1], *([k.shape[-2:]] if by_channel else [])]
    sizes = (zip(shape[lead:], end, strict=True) for end in ends if len(shape) == lead + len(end))
    fits = (all(n in (1, m) for n, m in pairs) for pairs in sizes)
    if shape and not any(fits):
        shaped = " or ".join(f"(..., {', '.join(map(str, end))})" for end in ends)
        raise ValueError(
            f"{name} must be a number or have shape {shaped} with the leading axes of k, "
            f"{tuple(k.shape[:-2])}, or 1 instead of a size, got shape {shape}"
        )
    if is_free_to_read(x) and not xp.all((x >= low) & (x <= high)):
        first = x[~((x >= low) & (x <= high))][0]
        raise ValueError(f"{name} must be in [{low:g}, {high:g}], got {float(first)}")
    x = x if x.ndim == k.ndim else x[..., None]
    return xp.broadcast_to(x, (*x.shape[:-2], k.shape[-2], x.shape[-1]))
