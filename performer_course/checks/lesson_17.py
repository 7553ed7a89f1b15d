"""Lesson 17, move a real model to linear attention."""

import hashlib
import io
import math
import pickle
import sys
import tempfile
import zipfile
from pathlib import Path

import numpy as np

from ._judge import (
    Hint,
    Raised,
    advice,
    averages,
    check,
    judge,
    nearly,
    no_square,
    numbers,
    some,
    truth,
)

# A decision for a head

TOKENS, M, DRAWS = 24, 256, 200


def _head(rng, size=1.0, of_q=None, mean_q=0.0, mean_k=0.0, follow=0.0, values=1.0, flat=0):
    """(q, k, v) of one chain of a made head, (L, 4), (L, 4), (L, 3).

    size: of the entries of k, and of q where `of_q` does not say otherwise. mean_q, mean_k: how
    far all queries and all keys lie from 0. follow: how far a value follows its key; values: their
    size; flat: how many queries are nearly 0.
    """
    q = rng.normal(size=(TOKENS, 4)) * (size if of_q is None else of_q)
    k = size * rng.normal(size=(TOKENS, 4))
    q[:flat] /= 100
    v = values * (rng.normal(size=(TOKENS, 3)) + follow * k[:, :3])
    return q + mean_q / 2, k + mean_k / 2, v


def _chains(seed, calibration=None, **new):
    """A head's two chains; `calibration`: what is otherwise in the first."""
    rng = np.random.default_rng(seed)
    return _head(rng, **(new | (calibration or {}))), _head(rng, **new)


def _heads():
    """[(both chains of a head, whether it can be swapped, the hint where the answer errs)]."""
    shift = "softmax does not see a shift of the keys, and features do"
    return [
        (
            _chains(1, size=0.7, follow=3),
            True,
            f"a head that {M} features follow to a seventh of mean(V)'s squared error is said not "
            "to be swappable: is the swap compared with softmax, and its error with mean(V)'s?",
        ),
        (
            _chains(1, size=3),
            False,
            "a sharp head is said to be swappable, where features have more error than mean(V).",
        ),
        (
            _chains(1, size=0.03, values=1000),
            False,
            "a head is said to be swappable whose errors cancel in the mean over many draws. "
            "A model holds one draw: take the mean of the losses, not the least, nor the loss of "
            "the mean output.",
        ),
        (
            _chains(2, size=0.05),
            False,
            "a head that is nearly uniform is said to be swappable: features err little there, and "
            "mean(V) errs less. Measure the one error in units of the other, and take the mean "
            f"over all {DRAWS} draws.",
        ),
        (
            _chains(1, size=0.8, follow=3, flat=8),
            True,
            "a head is said not to be swappable in which a third of the rows are mean(V) already: "
            "add up the errors of all rows before you divide.",
        ),
        (
            _chains(1, size=1.0, follow=3),
            True,
            "a head is said not to be swappable whose `relative_variance` is large, and whose "
            "output errs by a fifth of what mean(V)'s does: a few pairs make that mean. Measure.",
        ),
        (
            _chains(2, size=0.9),
            True,
            "a head with a third of mean(V)'s squared error is said not to be swappable: less than "
            "half is asked for, no less, and in squares, without a root.",
        ),
        (
            _chains(3, size=1.6, of_q=0.9, follow=3),
            True,
            "a head is said not to be swappable whose weights err, and whose output errs less: "
            "its values follow its keys. Compare outputs, of the v given.",
        ),
        (
            _chains(1, size=0.8, follow=3, mean_k=6),
            True,
            f"a head whose keys all lie far from 0 is said not to be swappable: {shift}.",
        ),
        (
            _chains(3, size=0.8, mean_q=7),
            True,
            f"a head whose queries all lie far from 0 is said not to be swappable: {shift}. The "
            "shift that makes q' + k' short has a part for the queries.",
        ),
        (
            _chains(3, size=1.0, of_q=0.05, mean_q=5),
            True,
            "a head whose queries are all alike is said not to be swappable. Softmax sees what is "
            "taken from the queries: all queries of this head look at the same keys. Shift keys.",
        ),
        (
            _chains(1, size=3, calibration={"size": 0.7, "follow": 3}),
            False,
            "a head is said to be swappable that is sharp on the new chain, and is not on the "
            "calibration chain: judge on the new one.",
        ),
        (
            _chains(2, size=0.7, follow=3, calibration={"size": 2, "follow": 0}),
            True,
            "a head is said not to be swappable that is sharp on the calibration chain alone: "
            "judge on the new one.",
        ),
        (
            _chains(1, size=0.8, follow=3, mean_k=-4, calibration={"mean_k": 4}),
            False,
            "a head is said to be swappable whose keys lie elsewhere on the new chain: the shift "
            "has to stand before that chain is known, so it comes from the calibration chain.",
        ),
        (
            _chains(2, size=1.6),
            False,
            "a head with three quarters of mean(V)'s error is said to be swappable: less than half "
            f"is asked for, in the mean over all {DRAWS} draws.",
        ),
        *[
            (
                _chains(0, size=0.1),
                False,
                "a head is said to be swappable that most draws follow and a few ruin: take "
                f"the mean over {DRAWS} draws, not one draw or a few, and no median.",
            )
        ]
        * 4,
        (
            _chains(3, size=0.6, follow=3, mean_k=30),
            True,
            "a head whose keys lie very far from 0 is said not to be swappable: the shift takes "
            "away most of their mean, and not all. It is subtracted from k, which has no "
            "d^{−1/4} yet, so it is made of q and k, not of q' and k'.",
        ),
    ]


@check
def can_be_swapped(decide):
    """decide(calibration, new, m, rng, draws): whether features halve mean(V)'s squared error."""
    rng = np.random.default_rng(1701)
    for chains, right, hint in _heads():
        with advice("(calibration and new are (q, k, v) of one chain each, (L, d).)"):
            found = decide(*chains, M, rng, DRAWS)
        if truth(found) != right:
            raise Hint(hint)


# The null to beat


def _line(rng, L, d, e, sign):
    """A head whose queries look at the end of the line next to them, or at the other one."""
    place, along = np.linspace(-1, 1, L)[:, None], rng.normal(size=d)
    along = along / np.linalg.norm(along) * d**0.25
    v = place * rng.normal(size=e) + 0.1 * rng.normal(size=(L, e))
    return 30 * sign * place * along, place * along, v


def _model(rng, L, d, e):
    """q, k, v of a made model, (3 blocks, 4 heads, L, ...): two ordinary heads and two lines."""
    heads = []
    for _ in range(3):
        q, k, v = rng.normal(size=(2, L, d)), rng.normal(size=(2, L, d)), rng.normal(size=(2, L, e))
        k, v = (np.cumsum(x, axis=1) / 2 for x in (k, v))  # neighbours are alike
        lines = [_line(rng, L, d, e, sign) for sign in (1, -1)]
        two = zip(*lines, strict=True)  # all q, all k, all v
        heads.append([np.stack([*x, *y]) for x, y in zip((q, k, v), two, strict=True)])
    return tuple(np.stack(x) for x in zip(*heads, strict=True))


def _seen(q, k, v, band=math.inf, causal=False, scale=None):
    """Exact attention among the keys |i − j| ≤ band, (..., L, e)."""
    i, j = np.indices((q.shape[-2], q.shape[-2]))
    t = q @ k.swapaxes(-1, -2) / math.sqrt(q.shape[-1] if scale is None else scale)
    t = np.where((abs(i - j) <= band) & ((j <= i) | (not causal)), t, -np.inf)
    return averages(np.exp(t - t.max(axis=-1, keepdims=True)), v)


def _parts(q, k, v, band):
    """What the window adds to mean(V), and what softmax does: (..., L, e) both."""
    mean = v.mean(axis=-2, keepdims=True)
    return _seen(q, k, v, band) - mean, _seen(q, k, v) - mean


def _fraction(top, bottom):
    """top / bottom, 0 where that is 0/0, as (..., 1, 1)."""
    none = bottom == 0
    return (~none * top / (bottom + none))[..., None, None]


def _square(x, y, axis=(-2, -1)):
    return (x * y).sum(axis=axis)


def _shares(chains, band):
    """{slip: shares (blocks, heads, 1, 1)}, of which "" is right."""
    parts = [_parts(*chain, band) for chain in chains]
    tops = [_square(near, exact) for near, exact in parts]
    bottoms = [_square(near, near) for near, _ in parts]
    top, bottom = sum(tops), sum(bottoms)
    best = _fraction(top, bottom)
    own = [_fraction(x, y) for x, y in zip(tops, bottoms, strict=True)]
    raw = [(_seen(*chain, band), _seen(*chain)) for chain in chains]
    of_weights = []
    for q, k, _ in chains:
        eye = np.broadcast_to(np.eye(q.shape[-2]), (*q.shape[:-1], q.shape[-2]))
        of_weights.append(_parts(q, k, eye, band))
    entries = [math.prod(near.shape[-2:]) for near, _ in parts]  # of a chain's output
    shares = {
        "": best,
        "each chain counts alike, long or short: add up squares, take no mean of them.": _fraction(
            sum(x / n for x, n in zip(tops, entries, strict=True)),
            sum(x / n for x, n in zip(bottoms, entries, strict=True)),
        ),
        "each chain has a share of its own, and their mean is taken: one share a head, from the "
        "sums over all chains.": np.mean(np.clip(own, 0, 1), axis=0),
        "the share comes from the first chain alone.": own[0],
        "the share comes from the last chain alone.": own[-1],
        "one share for the whole model: each head of each block has its own.": np.broadcast_to(
            _fraction(top.sum(), bottom.sum()), best.shape
        ),
        "one share a block: each head has its own.": np.broadcast_to(
            _fraction(top.sum(axis=1), bottom.sum(axis=1))[:, None], best.shape
        ),
        "head h of all blocks has one share: each head of each block has its own.": np.broadcast_to(
            _fraction(top.sum(axis=0), bottom.sum(axis=0)), best.shape
        ),
        "the fraction divides by ‖AV − U‖²: p multiplies N − U, so that stands below.": _fraction(
            top, sum(_square(exact, exact) for _, exact in parts)
        ),
        "the fraction is that of p N alone: with (1 − p) U beside it, p multiplies N − U, and has "
        "AV − U to reach.": _fraction(
            sum(_square(*x) for x in raw), sum(_square(near, near) for near, _ in raw)
        ),
        "the share fits the weights, as with V = I: it is to fit the outputs.": _fraction(
            sum(_square(near, exact) for near, exact in of_weights),
            sum(_square(near, near) for near, _ in of_weights),
        ),
    }
    return {hint: np.clip(share, 0, 1) for hint, share in shares.items()}, best


def _fitted(fit, chains, band):
    """The attention that the answer fits, which gives a hint where it raises."""
    attend = some(fit(chains, band))
    if not callable(attend):
        raise Hint(f"return a function attend(i, q, k, v), got a {type(attend).__name__}.")

    def call(*given):
        try:
            return attend(*(x.copy() if isinstance(x, np.ndarray) else x for x in given))
        except Exception as error:
            raise Raised(error, attend) from error

    return call


def _other_nulls(i, q, k, v, band, chains, right, unclipped, shares):
    """[(what a slip gives for block i of a chain, hint)]."""
    mean, near = v.mean(axis=-2, keepdims=True), _seen(q, k, v, band)

    def blend(share, near=near, mean=mean):
        return share * near + (1 - share) * mean

    p, raw = right[i], unclipped[i]
    added, missing = _parts(q, k, v, band)
    parts = [_parts(*chain, band) for chain in chains]
    tops = sum(_square(near, exact, axis=-2) for near, exact in parts)  # (blocks, heads, e)
    bottoms = sum(_square(near, near, axis=-2) for near, _ in parts)
    column = _fraction(tops, bottoms)[i, :, None, :, 0, 0]  # (heads, 1, e)
    empty = "where the window and mean(V) agree on all chains, take the share 0."
    width = "|i − j| ≤ band: the window has 2 band + 1 keys, its own and `band` on each side."
    return [
        (blend(np.where(raw == 0, 1, p)), empty),
        (blend(np.where(raw == 0, 0.5, p)), empty),
        (blend(raw), "a share outside [0, 1] is no mean of values: clip it."),
        (blend(np.maximum(raw, 0)), "a share above 1 is no mean of values: clip it to 1."),
        (blend(np.minimum(raw, 1)), "a share below 0 is no mean of values: clip it to 0."),
        (blend(1 - p), "p goes with the window, 1 − p with mean(V)."),
        *[(blend(share[i]), hint) for hint, share in shares.items()],
        *[
            (blend(right[n]), f"block {i} has the shares of block {n}: take those of i.")
            for n in range(3)
            if n != i
        ],
        (
            blend(np.clip(_fraction(_square(added, missing), _square(added, added)), 0, 1)),
            "the share is fitted anew to the chain at hand, which takes its softmax: fit it once.",
        ),
        (
            blend(np.clip(column, 0, 1)),
            "each column of V has a share: one a head, summed over all entries.",
        ),
        (p * near, "mean(V) has the share 1 − p: it is missing."),
        (blend(p, _seen(q, k, v, band, causal=True)), "the window looks to both sides."),
        (blend(p, _seen(q, k, v, band - 1)), width),
        (blend(p, _seen(q, k, v, band + 1)), width),
        (blend(p, _seen(q, k, v, band, scale=1)), "the scores are qᵀk / √d."),
        (blend(p, mean=v.sum(axis=-2, keepdims=True)), "mean(V), not the sum."),
        (
            blend(p[: len(q), None]),
            "`forward` may give a batch (..., heads, L, d): heads are the third axis from the end.",
        ),
        (missing + mean, "this is softmax over all keys: the null has the window alone."),
    ]


@check
def window_null(fit):
    """fit(chains, band): attend(i, q, k, v), p N + (1 − p) mean(V), the best p in [0, 1] a head."""
    rng = np.random.default_rng(1702)
    for d, e, band, lengths in ((3, 4, 2, (11, 14)), (5, 2, 1, (8, 13, 9))):
        chains = [_model(rng, L, d, e) for L in lengths]
        for _, _, v in chains:
            v[1, 0] = 0  # so the window is mean(V), and softmax is, too
        shares, unclipped = _shares(chains, band)
        right = shares.pop("")
        attend = _fitted(fit, chains, band)
        new, other = _model(rng, 12, d, e), _model(rng, 12, d, e)
        batch = [np.stack(x, axis=1) for x in zip(new, other, strict=True)]  # (3, 2, 4, 12, ...)
        for i, chain in [*enumerate(zip(*new, strict=True)), *enumerate(zip(*batch, strict=True))]:
            with advice(f"(q is {chain[0].shape} there; `forward` may give a batch.)"):
                found = attend(i, *chain)
            if found is not None:
                found = numbers(
                    found,
                    "the result holds NaN or infinity: where the window is mean(V) on all chains, "
                    "the fraction is 0/0. Take the share 0 there.",
                )
            expected = right[i] * _seen(*chain, band)
            expected = expected + (1 - right[i]) * chain[2].mean(axis=-2, keepdims=True)
            slips = _other_nulls(i, *chain, band, chains, right, unclipped, shares)
            near = nearly(found, expected)[0]
            closed = "close, but not equal: is an ε added below, or p one of a list or rounded?"
            judge(found, expected, [*slips, (near, closed)])
    _light(fit, rng)


def _light(fit, rng):
    """A hint where the fit, or what it fits, ever holds an L × L array."""
    L = 2000
    long = tuple(rng.normal(size=(3, 1, 1, L, 2)))
    no_square(lambda: fit([long], 2), long, L)
    attend = _fitted(fit, [tuple(x[:, :, :9] for x in long)], 2)
    no_square(lambda: attend(0, *(x[0] for x in long)), long, L)


# A hostile file


class _Call:
    """What a pickle calls: module.name(*arguments)."""

    def __init__(self, module, name, *arguments):
        self.names, self.arguments = (module, name), arguments


class _Storage(tuple):
    """(dtype, key): what a pickle leaves to the reader to find."""


def _opcodes(value):
    """The part of a pickle that puts `value` on the stack."""
    if isinstance(value, _Call):
        names = b"".join(map(_opcodes, value.names))
        return names + pickle.STACK_GLOBAL + _opcodes(value.arguments) + pickle.REDUCE
    if isinstance(value, _Storage):
        return _opcodes(tuple(value)) + pickle.BINPERSID
    if isinstance(value, tuple):
        return pickle.MARK + b"".join(map(_opcodes, value)) + pickle.TUPLE
    if isinstance(value, dict):
        items = b"".join(_opcodes(x) for item in value.items() for x in item)
        empty = _opcodes(_Call(*getattr(value, "names", ("collections", "OrderedDict"))))
        return empty + pickle.MARK + items + pickle.SETITEMS
    return pickle.dumps(value, protocol=2)[2:-1]  # a number or a text, without start and stop


class _Counted(dict):
    names = ("collections", "Counter")


def _tensor(offset, size, stride, dtype="<f4", key="0"):
    return _Call("weights", "rebuild", _Storage((dtype, key)), offset, size, stride)


def _packed(pickled, storages):
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as archive:
        archive.writestr("tensors.pkl", pickled)
        for key, storage in storages.items():
            archive.writestr(key, storage.tobytes())
    return data.getvalue()


def _file(content, storages):
    return _packed(pickle.PROTO + b"\x04" + _opcodes(content) + pickle.STOP, storages)


def _good(rng):
    """[(file, {name: array})]."""
    a, b = rng.normal(size=12).astype("<f4"), rng.integers(-9, 9, size=7)
    stored = {"0": a, "1": b.astype("<i8")}
    whole = {"w": _tensor(0, (3, 4), (4, 1))}
    turned = {
        "turned": _tensor(0, (4, 3), (1, 4)),
        "some": _tensor(1, (2, 3), (6, 2)),
        "one": _tensor(11, (), ()),
        "again": _tensor(3, (2, 3), (0, 1)),
        "numbers": _tensor(2, (5,), (1,), "<i8", "1"),
    }
    right = {
        "turned": a.reshape(3, 4).T,
        "some": a[1:].copy()[[[0, 2, 4], [6, 8, 10]]],
        "one": a[11],
        "again": a[[[3, 4, 5], [3, 4, 5]]],
        "numbers": b[2:].astype("<i8"),
    }
    return [(_file(whole, {"0": a}), {"w": a.reshape(3, 4)}), (_file(turned, stored), right)]


def _hostile(rng, folder):
    """[(file, what is wrong with it, what a reader of it has overlooked)]."""
    stored = {"0": rng.normal(size=12).astype("<f4")}
    whole = _tensor(0, (3, 4), (4, 1))
    sign = str(folder / "sign")

    def of(tensor, storages=stored):
        return _file({"w": tensor}, storages)

    both = "a name counts with its module: compare the two, for equality."
    inside = "each number that a tensor reads must lie inside its storage."
    good = of(whole)
    return [
        (of(_Call("os", "mkdir", sign)), "the name os.mkdir", both),
        (
            of(_Call("tempfile", "mkdtemp", "", "sign", str(folder))),
            "the name tempfile.mkdtemp",
            "no list of bad names is long enough: list the two good ones.",
        ),
        (
            of(_Call("collections", "_sys.path.append", sign)),
            "the name collections._sys.path.append",
            "a name may have dots, and lead out of its module.",
        ),
        (
            _file(_Call("collections", "OrderedDict.fromkeys", ("w",), whole), stored),
            "the name collections.OrderedDict.fromkeys",
            "it begins with a good name and is another.",
        ),
        (
            _file(_Counted(w=whole), stored),
            "the name collections.Counter",
            "of this module one name is good, and no other.",
        ),
        (of(_Call("os", "rebuild", *whole.arguments)), "the name os.rebuild", both),
        (of(_Call("weights", "erase", *whole.arguments)), "the name weights.erase", both),
        (of(_tensor(0, (3, 5), (5, 1))), "a storage shorter than its tensor", inside),
        (of(_tensor(0, (3, 2), (6, 1))), "a stride past the end", inside),
        (of(_tensor(10, (4,), (1,))), "an offset so late that the tensor ends outside", inside),
        (
            of(_tensor(9, (4,), (1,))),
            "a tensor whose last entry is number 12 of a storage of 12 numbers",
            "it counts from 0, so that is one past the end.",
        ),
        (
            of(_tensor(2, (4,), (-1,))),
            "a negative stride",
            "it leads to what lies before the storage.",
        ),
        (
            of(_tensor(-4, (4,), (1,))),
            "a negative offset",
            "Python counts it from the end, which the format does not.",
        ),
        (of(_tensor(3, (-2,), (1,))), "a negative size", "no number of a tensor is below 0."),
        (
            of(_tensor(0, (900, 12), (0, 1))),
            "a tensor of 10800 entries, all in a storage of 12 numbers",
            "a stride of 0 makes much of little: no tensor has more entries than its storage.",
        ),
        (of(_tensor(0.5, (3,), (1,))), "an offset of 0.5", "all must be whole numbers."),
        (of(_tensor(0, (3, 4), (4,))), "two sizes and one stride", "one stride for each size."),
        (
            of(_tensor(0, (3,), (1,), "<U1")),
            "a storage of the dtype <U1",
            "a storage holds <f4 or <i8.",
        ),
        (of(_tensor(0, (3,), (1,), key="9")), "a storage that is not there", "none can be read."),
        (_file(whole, stored), "a tensor in place of a dict", "a dict of arrays is asked for."),
        (
            _file((("w", whole),), stored),
            "a tuple of pairs in place of a dict",
            "`dict` makes one of it: look at what came before that.",
        ),
        (_file({"w": 3}, stored), "the number 3 in place of a tensor", "arrays are asked for."),
        (_packed(pickle.PROTO + b"\x04" + pickle.REDUCE, stored), "a damaged pickle", ""),
        (good[: len(good) // 2], "half a zip", ""),
        (b"", "no byte at all", ""),
        (_packed(pickle.PROTO + b"\x04" + _opcodes(whole), stored), "a pickle that is cut off", ""),
        (
            of(_Call("weights", "rebuild", *whole.arguments[:3])),
            "a call of rebuild without a stride",
            "",
        ),
    ]


def _digest(data):
    return hashlib.sha256(data).hexdigest()


@check
def read_weights(read):
    """read(data, sha256): {name: array} of a good file; ValueError, and no call, for another."""
    rng = np.random.default_rng(1703)
    goods = _good(rng)
    for data, expected in goods:
        try:
            found = read(data, _digest(data))
        except Raised as raised:
            raise Hint(f"{raised} The file is a good one, and its SHA-256 is right.") from raised
        _same(found, expected)
    with tempfile.TemporaryDirectory() as folder:
        for data, what, why in _hostile(rng, Path(folder)):
            _refused(read, data, _digest(data), what, why, Path(folder))
        own, other = (_digest(data) for data, _ in goods)
        for sha256, part, why in (
            (other, "", "compare that of all its bytes."),
            (own[:32] + other[32:], ", in part,", "compare all 64 digits."),
            (other[:32] + own[32:], ", in part,", "compare all 64 digits."),
        ):
            what = f"the SHA-256 of another file{part}"
            _refused(read, goods[0][0], sha256, what, why, Path(folder))


def _same(found, expected):
    """A hint where a good file does not give just what is in it."""
    if not isinstance(some(found), dict) or found.keys() != expected.keys():
        got = f"the names {', '.join(map(str, found))}" if isinstance(found, dict) else type(found)
        raise Hint(f"expected a dict with the names {', '.join(expected)}, got {got}.")
    for name, right in expected.items():
        array = found[name]
        if not isinstance(array, np.ndarray):
            raise Hint(f"{name} must be an array, got a {type(array).__name__}.")
        if (array.dtype, array.shape) != (right.dtype, right.shape):
            wanted, got = (f"{x.dtype} of shape {x.shape}" for x in (right, array))
            raise Hint(f"{name} must be {wanted}, got {got}.")
        if not np.array_equal(array, right):
            raise Hint(f"{name} has other numbers: entry i lies at offset + Σ iₙ strideₙ.")


def _refused(read, data, sha256, what, why, folder):
    """A hint unless the file is refused by a ValueError, and nothing in it was called."""
    path = list(sys.path)
    try:
        read(data, sha256)
        refused = False
    except Raised as raised:
        refused, error = True, raised.error
    finally:
        called = sys.path != path or any(folder.iterdir())
        sys.path[:] = path
    if called:
        late = "A refusal that comes after the call is late: refuse in `find_class`."
        raise Hint(f"a file with {what} got it called. {late if refused else _one(why)}")
    if not refused:
        raise Hint(f"a file with {what} is read. {_one(why)}".strip())
    if not isinstance(error, ValueError):
        kind = type(error).__name__
        raise Hint(f"a file with {what} must raise ValueError, and raises {kind}.")


def _one(why):
    """`why` as a sentence."""
    return why[:1].upper() + why[1:]
