"""Lesson 17, move a real model: right answers in any form, and slips with their hints."""

import functools
import hashlib
import io
import math
import pickle
import zipfile
from collections import OrderedDict

import numpy as np
import pytest
from numpy.lib.stride_tricks import as_strided

from performer_course import attention, near_far, projections
from performer_course.checks import lesson_17
from tests.exercises.shared import exercises

RIGHT, WRONG = {}, {}


# can_be_swapped


def both(calibration, new):
    """The shift of the keys that makes q' + k' short, from the calibration chain."""
    return calibration[0].mean(axis=0) + calibration[1].mean(axis=0)


def squares(x):
    return (x**2).sum()


def losses(
    calibration,
    new,
    m,
    rng,
    draws,
    shift=both,
    prepare=lambda chain: chain,
    loss=squares,
    rows=projections.iid,
    combine=lambda outputs, loss: np.array([loss(output) for output in outputs]),
):
    """The losses of the draws, and mean(V)'s. prepare: what is done to a chain before."""
    q, k, v = new = prepare(new)
    s, exact = shift(prepare(calibration), new), attention.softmax_attention(q, k, v)
    outputs = [
        attention.favor_attention(q, k - s, v, rows(rng, m, q.shape[1])) - exact
        for _ in range(draws)
    ]
    return combine(outputs, loss), loss(attention.uniform_attention(q, k, v) - exact)


def decided(fold=np.mean, level=0.5, **slip):
    """The answer with a slip: fold, of the losses; level, what of mean(V)'s is asked for."""

    def answer(calibration, new, m, rng, draws):
        found, null = losses(calibration, new, m, rng, draws, **slip)
        return bool(fold(found) < level * null)

    return answer


def by_formula(calibration, new, m, rng, draws):
    q, k, _ = new
    scores = q @ k.T / math.sqrt(q.shape[1])
    k = k - both(calibration, new)
    return bool(attention.relative_variance(q, k, m) / 2 < scores.var(axis=1).mean())


def by_features(calibration, new, m, rng, draws):
    """The same, by hand, in logarithms."""
    q, k, v = new
    x, y = (a * q.shape[1] ** -0.25 for a in (q, k - both(calibration, new)))
    A = np.exp(q @ k.T / math.sqrt(q.shape[1]))
    exact, found = A @ v / A.sum(axis=1, keepdims=True), 0.0
    for _ in range(draws):
        W = rng.normal(size=(m, q.shape[1]))
        g, h = x @ W.T, y @ W.T - (y**2).sum(axis=1, keepdims=True) / 2
        w = np.exp(g - g.max(axis=1, keepdims=True)) @ np.exp(h - h.max()).T
        found += ((w @ v / w.sum(axis=1, keepdims=True) - exact) ** 2).sum()
    return found / draws < ((v.mean(axis=0) - exact) ** 2).sum() / 2


def by_trial(calibration, new, m, rng, draws):
    """With the shift, of three, that errs least on the calibration chain."""
    shifts = [
        lambda *_: 0.0,
        lambda calibration, _: calibration[1].mean(axis=0),
        both,
    ]
    tried = [
        losses(calibration, calibration, m, rng, draws // 10, shift=shift)[0].mean()
        for shift in shifts
    ]
    return np.bool_(decided(shift=shifts[np.argmin(tried)])(calibration, new, m, rng, draws))


RIGHT["can_be_swapped"] = [
    decided(rows=projections.orthogonal),
    by_trial,
    by_features,
]


def without_mean_query(chain):
    return chain[0] - chain[0].mean(axis=0), *chain[1:]


def as_weights(chain):
    return *chain[:2], np.eye(len(chain[1]))


def of_rows(x):
    return (x**2).sum(axis=1)


WRONG["can_be_swapped"] = [
    (lambda *a: losses(*a)[0].mean(), "expected True or False, got "),
    (lambda *a: True, "a sharp head is said to be swappable"),
    (lambda *a: False, "to a seventh of mean(V)'s squared error"),
    (decided(level=0.05), "to a seventh of mean(V)'s squared error"),
    (
        decided(combine=lambda outputs, loss: loss(np.mean(outputs, axis=0))),
        "errors cancel in the mean over many draws",
    ),
    (decided(level=0.25), "less than half is asked for, no less"),
    (decided(fold=lambda found: found[0]), "over all 200 draws"),
    (decided(fold=np.min), "not the least"),
    (lambda *a: bool(losses(*a, loss=lambda x: (x**2).mean())[0].mean() < 0.03), "nearly uniform"),
    (decided(fold=lambda found: np.quantile(found, 0.1)), "and take the mean over all 200 draws"),
    (by_formula, "whose `relative_variance` is large"),
    (decided(loss=lambda x: squares(x) ** 0.5), "in squares, without a root"),
    (decided(prepare=as_weights), "whose weights err, and whose output errs less"),
    (decided(shift=lambda *_: 0.0), "whose keys all lie far from 0"),
    (decided(shift=lambda c, new: c[0].mean(axis=0)), "whose keys all lie far from 0"),
    (decided(shift=lambda c, new: c[1].mean(axis=0)), "has a part for the queries"),
    (
        decided(shift=lambda c, new: c[1].mean(axis=0) - c[0].mean(axis=0)),
        "has a part for the queries",
    ),
    (
        decided(shift=lambda c, new: both(c, new) * c[0].shape[1] ** -0.25),
        "takes away most of their mean, and not all",
    ),
    (decided(prepare=without_mean_query), "Softmax sees what is taken from the queries"),
    (decided(shift=lambda c, new: both(new, c)), "comes from the calibration chain"),
    (
        lambda c, new, m, rng, draws: decided()(c, c, m, rng, draws),
        "is not on the calibration chain: judge on the new one",
    ),
    (
        lambda c, new, *a: decided()(c, c, *a) and decided()(c, new, *a),
        "is sharp on the calibration chain alone",
    ),
    (decided(level=1), "less than half is asked for"),
    (
        lambda *a: bool(
            np.mean([x / losses(*a[:4], 1, loss=of_rows)[1] for x in losses(*a, loss=of_rows)[0]])
            < 0.5
        ),
        "add up the errors of all rows before you divide",
    ),
    (decided(fold=np.median), "no median"),
    (lambda c, new, m, rng, draws: decided()(c, new, m, rng, 1), "not one draw"),
    (lambda c, new, m, rng, draws: decided()(c, new, m, rng, 5), "not one draw or a few"),
    (
        lambda c, new, m, rng, draws: decided()(
            *(tuple(x.T for x in y) for y in (c, new)), m, rng, 9
        ),
        "(q, k, v) of one chain each",
    ),
]


@pytest.mark.parametrize("rows", [projections.iid, projections.orthogonal])
def test_the_share_of_each_made_head_lies_four_standard_errors_from_a_half(rows):
    rng = np.random.default_rng(0)
    heads = lesson_17._heads()
    for chains, right, hint in heads[:-4] + heads[-1:]:  # the last but one comes four times
        found, null = losses(*chains, lesson_17.M, rng, 250, rows=rows)
        error = found.std(ddof=1) / math.sqrt(lesson_17.DRAWS)
        assert (null / 2 - found.mean()) * (1 if right else -1) > 4 * error, hint


# window_null


def fraction(top, bottom):
    return np.nan_to_num(top / bottom, nan=0.0, posinf=0.0, neginf=0.0)[..., None, None]


def null(
    target=attention.softmax_attention,
    far=attention.uniform_attention,
    near=near_far.near_field,
    used_near=near_far.near_field,
    divide=fraction,
    clip=lambda share: np.clip(share, 0, 1),
    width=lambda band: band,
    chosen=lambda chains: chains,
    below=lambda added, missing: added**2,
    gather=lambda x: x.sum(axis=(-2, -1)),
    shares=lambda share: share,
    blend=lambda p, near, far: p * near + (1 - p) * far,
    of_block=lambda share, i: share[i],
):
    """The window null with a slip."""

    def fit(chains, band):
        top = bottom = 0.0
        for q, k, v in chosen(chains):
            u = far(q, k, v)
            added, missing = near(q, k, v, width(band)) - u, target(q, k, v) - u
            top, bottom = top + gather(added * missing), bottom + gather(below(added, missing))
        share = shares(clip(divide(top, bottom)))

        def attend(i, q, k, v):
            p = of_block(share, i)
            return blend(p, used_near(q, k, v, width(band)), attention.uniform_attention(q, k, v))

        return attend

    return fit


def by_search(chains, band):
    """Two calls tell a parabola: at 0, at ½ and at 1."""
    parts = []
    for q, k, v in chains:
        N, U = near_far.near_field(q, k, v, band), attention.uniform_attention(q, k, v)
        exact = attention.softmax_attention(q, k, v)
        parts.append([((p * N + (1 - p) * U - exact) ** 2).sum((-2, -1)) for p in (0, 0.5, 1)])
    zero, half, one = np.sum(parts, axis=0)
    bend = 2 * (zero + one - 2 * half)  # of bend p² + slope p + zero
    slope = one - zero - bend
    share = np.where(bend > 0, -slope / (2 * np.where(bend > 0, bend, 1)), 0)
    share = np.minimum(np.maximum(share, 0), 1)

    def attend(i, q, k, v):
        p = share[i].reshape(-1, 1, 1)
        return near_far.fmm_attention(q, k, v, band, [np.ones_like], [p + 1e-300, 1 - p + 1e-300])

    return attend


RIGHT["window_null"] = [null(), by_search]


def ones_for_nothing(top, bottom):
    share = fraction(top, bottom)
    share[(bottom == 0)] = 1
    return share


def mean_of_chains(chains, band):
    fits = [null(shares=lambda share: share)([chain], band) for chain in chains]
    return lambda *given: np.mean([attend(*given) for attend in fits], axis=0)


def anew(chains, band):
    return lambda i, q, k, v: null()([(q[None], k[None], v[None])], band)(0, q, k, v)


def of_weights(chains, band):
    def eye(q):
        return np.broadcast_to(np.eye(q.shape[-2]), (*q.shape[:-1], q.shape[-2]))

    return null()([(q, k, eye(q)) for q, k, _ in chains], band)


def in_a_square(q, k, v):
    A = q @ k.swapaxes(-1, -2) / math.sqrt(q.shape[-1])
    A = np.exp(A - A.max(axis=-1, keepdims=True))
    return A / A.sum(axis=-1, keepdims=True) @ v


def near_in_a_square(q, k, v, band):
    i, j = np.indices((q.shape[-2],) * 2)
    t = np.where(abs(i - j) <= band, q @ k.swapaxes(-1, -2) / math.sqrt(q.shape[-1]), -np.inf)
    A = np.exp(t - t.max(axis=-1, keepdims=True))
    return A / A.sum(axis=-1, keepdims=True) @ v


def over(axis):
    """One share for all along the axis."""

    def alike(x):
        return np.broadcast_to(x.sum(axis=axis, keepdims=True), x.shape)

    return lambda x: alike(x.sum(axis=(-2, -1)))


WRONG["window_null"] = [
    (lambda chains, band: 0.5, "return a function attend(i, q, k, v), got a float"),
    (lambda chains, band: lambda i, q, k, v: None, "the function returned None"),
    (
        lambda chains, band: lambda i, q, k, v: v[..., ::-1, :, :] @ q,
        "`forward` may give a batch",
    ),
    (null(divide=lambda t, b: (t / b)[..., None, None]), "the fraction is 0/0"),
    (null(divide=ones_for_nothing), "agree on all chains, take the share 0"),
    (
        null(divide=lambda t, b: np.where(b == 0, 0.5, t / b)[..., None, None]),
        "agree on all chains, take the share 0",
    ),
    (null(clip=lambda share: share), "a share outside [0, 1] is no mean of values"),
    (null(clip=lambda share: np.maximum(share, 0)), "clip it to 1"),
    (null(clip=lambda share: np.minimum(share, 1)), "clip it to 0"),
    (null(shares=lambda share: 1 - share), "p goes with the window"),
    (mean_of_chains, "from the sums over all chains"),
    (null(gather=lambda x: x.mean(axis=(-2, -1))), "each chain counts alike, long or short"),
    (null(chosen=lambda chains: chains[:1]), "from the first chain alone"),
    (null(chosen=lambda chains: chains[-1:]), "from the last chain alone"),
    (null(gather=over((0, 1))), "one share for the whole model"),
    (null(gather=over(1)), "one share a block"),
    (null(gather=over(0)), "head h of all blocks has one share"),
    (null(below=lambda added, missing: missing**2), "divides by ‖AV − U‖²"),
    (null(far=lambda q, k, v: 0.0), "that of p N alone"),
    (of_weights, "the share fits the weights"),
    (null(of_block=lambda share, i: share[0]), "block 1 has the shares of block 0"),
    (null(of_block=lambda share, i: share[::-1][i]), "block 0 has the shares of block 2"),
    (anew, "is fitted anew to the chain at hand"),
    (
        null(
            gather=lambda x: x.sum(axis=-2),
            divide=lambda t, b: fraction(t, b)[..., 0].swapaxes(-1, -2),
        ),
        "each column of V has a share",
    ),
    (null(blend=lambda p, near, far: p * near), "mean(V) has the share 1 − p: it is missing"),
    (
        null(used_near=functools.partial(near_far.near_field, causal=True)),
        "the window looks to both sides",
    ),
    (null(used_near=lambda q, k, v, b: near_far.near_field(q, k, v, b - 1)), "2 band + 1 keys"),
    (null(used_near=lambda q, k, v, b: near_far.near_field(q, k, v, b + 1)), "2 band + 1 keys"),
    (
        null(used_near=lambda q, k, v, b: near_far.near_field(math.sqrt(q.shape[-1]) * q, k, v, b)),
        "the scores are qᵀk / √d",
    ),
    (
        null(blend=lambda p, near, far: p * near + (1 - p) * far * near.shape[-2]),
        "mean(V), not the sum",
    ),
    (
        lambda chains, band: lambda i, q, k, v: attention.softmax_attention(q, k, v),
        "this is softmax over all keys",
    ),
    (
        null(
            blend=lambda p, near, far: np.stack(
                [p[h] * near[h] + (1 - p[h]) * far[h] for h in range(len(near))]
            )
        ),
        "heads are the third axis from the end",
    ),
    (null(target=in_a_square), "that is an L × L array"),
    (null(used_near=near_in_a_square), "that is an L × L array"),
    (null(divide=lambda t, b: (t / (b + 0.1))[..., None, None]), "close, but not equal"),
    (null(shares=lambda share: np.round(share, 2)), "close, but not equal"),
    (null(clip=lambda share: 0.9 * np.clip(share, 0, 1)), "found"),
]


# read_weights

NAMES = {("collections", "OrderedDict"), ("weights", "rebuild")}


def restored(storage, offset, size, stride):
    return as_strided(storage[offset:], size, [n * storage.itemsize for n in stride]).copy()


def fits(storage, offset, size, stride, *, without=()):
    """Raises ValueError for a tensor that has no place in its storage, but for `without`."""
    numbers = {"offset": [offset], "size": size, "stride": stride}
    for name, some in numbers.items():
        if "whole" not in without and not all(isinstance(n, int) for n in some):
            raise ValueError(name)
        if f"negative {name}" not in without and min(some, default=0) < 0:
            raise ValueError(name)
    if "lengths" not in without and len(size) != len(stride):
        raise ValueError("lengths")
    steps = [(n - 1) * step for n, step in zip(size, stride, strict=False)]
    begin = 0 if "offset" in without else offset
    end = begin + (0 if "stride" in without else sum(steps))
    if "inside" not in without and end >= len(storage):
        raise ValueError("inside")
    if "entries" not in without and math.prod(size) > len(storage):
        raise ValueError("entries")


def refuse(content):
    raise ValueError(type(content))


def reader(
    known=lambda module, name: (module, name) in NAMES,
    check=fits,
    build=restored,
    digest=lambda data: hashlib.sha256(data).hexdigest(),
    dtypes=("<f4", "<i8"),
    errors=Exception,
    kinds=np.ndarray,
    pack=refuse,
    refusal=pickle.UnpicklingError,
    imports=None,
):
    """A reader with a slip."""

    def rebuild(storage, offset, size, stride):
        check(storage, offset, size, stride)
        return build(storage, offset, size, stride)

    class Reader(pickle.Unpickler):
        def find_class(self, module, name):
            if not known(module, name):
                raise refusal(name)
            if imports is not None:
                return imports(super().find_class, rebuild, module, name)
            return OrderedDict if (module, name) == ("collections", "OrderedDict") else rebuild

        def persistent_load(self, pid):
            dtype, key = pid
            if dtypes and dtype not in dtypes:
                raise refusal(dtype)
            return np.frombuffer(self.archive.read(key), dtype)

    def read(data, sha256):
        if digest is not None and digest(data) != sha256:
            raise ValueError(sha256)
        try:
            with zipfile.ZipFile(io.BytesIO(data)) as archive:
                unpickler = Reader(archive.open("tensors.pkl"))
                unpickler.archive = archive
                content = unpickler.load()
                if not isinstance(content, dict):
                    content = pack(content)
        except errors as error:
            raise ValueError("no file of weights") from error
        if not all(isinstance(x, kinds) for x in content.values()):
            raise ValueError("no array")
        return dict(content)

    return read


def by_index(storage, offset, size, stride, *, strict=True):
    """Each entry from its place, which is looked at before."""
    places = offset + sum(
        np.arange(n).reshape(-1, *[1] * (len(size) - axis - 1)) * step
        for axis, (n, step) in enumerate(zip(size, stride, strict=strict))
    )
    return np.array(storage[places])


def imported(find, rebuild, module, name):
    return rebuild if name == "rebuild" else find(module, name)


def loads_first(data, sha256):
    """A reader that loads, and looks at what came."""
    found = reader(known=lambda *_: True, imports=imported, errors=ArithmeticError)
    return found(data, sha256)


RIGHT["read_weights"] = [
    reader(),
    lambda data, sha256: OrderedDict(reader(build=by_index)(data, sha256.upper().lower())),
]


def lacks(*without, build=restored):
    return reader(check=functools.partial(fits, without=without), build=build)


def of_whole(storage, offset, size, stride):
    return restored(storage, int(offset), size, stride)


def of_digits(part):
    """A reader that compares these digits of the SHA-256."""

    def read(data, sha256):
        own = hashlib.sha256(data).hexdigest()
        return reader()(data, own if own[part] == sha256[part] else sha256)

    return read


WRONG["read_weights"] = [
    (lambda data, sha256: [1.0], "expected a dict with the names w, got"),
    (lambda data, sha256: {"w": [1.0]}, "w must be an array, got a list"),
    (
        lambda *a: {name: x.astype(float) for name, x in reader()(*a).items()},
        "w must be float32 of shape (3, 4), got float64",
    ),
    (reader(build=lambda storage, o, size, s: storage[: math.prod(size)].reshape(size)), "other"),
    (
        reader(check=lambda s, o, size, stride: fits(s, o, size, stride) or 1 / (size != (4, 3))),
        "The file is a good one",
    ),
    (reader(known=lambda m, n: False), "The file is a good one, and its SHA-256 is right"),
    (reader(known=lambda *_: True, imports=imported), "A refusal that comes after the call"),
    (
        reader(known=lambda *_: True, imports=imported, kinds=object, pack=lambda x: {"": x}),
        "the name os.mkdir got it called. A name counts with its module",
    ),
    (
        reader(
            known=lambda m, n: m not in ("os", "posix", "sys", "builtins", "subprocess"),
            imports=imported,
        ),
        "tempfile.mkdtemp got it called",
    ),
    (
        reader(known=lambda m, n: m in ("collections", "weights"), imports=imported),
        "collections._sys.path.append got it called",
    ),
    (
        reader(known=lambda m, n: n.split(".")[0] in ("OrderedDict", "rebuild"), imports=imported),
        "OrderedDict.fromkeys is read. It begins with a good name",
    ),
    (
        reader(
            known=lambda m, n: m in ("collections", "weights") and "." not in n, imports=imported
        ),
        "collections.Counter is read. Of this module one name is good",
    ),
    (reader(known=lambda m, n: n in ("OrderedDict", "rebuild")), "the name os.rebuild is read"),
    (
        reader(known=lambda m, n: (m, n) in NAMES or m == "weights"),
        "the name weights.erase is read",
    ),
    (lacks("inside", "entries"), "a storage shorter than its tensor is read"),
    (lacks("inside"), "a stride past the end is read"),
    (
        lambda *a: reader(check=lambda storage, *b: fits(np.append(storage, storage[:1]), *b))(*a),
        "a tensor whose last entry is number 12 of a storage of 12 numbers is read. It counts",
    ),
    (lacks("stride"), "a stride past the end is read"),
    (lacks("offset"), "an offset so late that the tensor ends outside is read"),
    (lacks("negative stride"), "a negative stride is read. It leads to what lies before"),
    (lacks("negative offset"), "a negative offset is read. Python counts it from the end"),
    (lacks("negative size", build=by_index), "a negative size is read. No number of a tensor"),
    (lacks("entries"), "10800 entries, all in a storage of 12 numbers is read. A stride of 0"),
    (lacks("whole", build=of_whole), "an offset of 0.5 is read. All must be whole numbers"),
    (
        lacks("lengths", build=functools.partial(by_index, strict=False)),
        "two sizes and one stride is read. One stride for each size",
    ),
    (reader(dtypes=None), "a storage of the dtype <U1 is read"),
    (reader(kinds=object), "the number 3 in place of a tensor is read"),
    (reader(pack=lambda x: {"": x}), "a tensor in place of a dict is read"),
    (reader(pack=dict), "a tuple of pairs in place of a dict is read. `dict` makes"),
    *[
        (of_digits(part), "the SHA-256 of another file, in part, is read. Compare all 64 digits")
        for part in (slice(8), slice(-8, None))
    ],
    (reader(check=lambda s, o, size, stride: 1 // min(stride, default=1)), "is a good one"),
    (reader(errors=zipfile.BadZipFile), "must raise ValueError, and raises UnpicklingError"),
    (
        reader(errors=(pickle.UnpicklingError, zipfile.BadZipFile)),
        "that is not there must raise ValueError, and raises KeyError",
    ),
    (
        reader(errors=(pickle.UnpicklingError, KeyError, AttributeError, IndexError)),
        "half a zip must raise ValueError, and raises BadZipFile",
    ),
    (
        reader(
            refusal=ValueError,
            errors=(KeyError, TypeError, AttributeError, zipfile.BadZipFile),
        ),
        "a damaged pickle must raise ValueError, and raises UnpicklingError",
    ),
    (
        reader(errors=(pickle.UnpicklingError, KeyError, TypeError, zipfile.BadZipFile)),
        "a pickle that is cut off must raise ValueError, and raises EOFError",
    ),
    (
        reader(
            errors=(pickle.UnpicklingError, KeyError, EOFError, zipfile.BadZipFile),
        ),
        "a call of rebuild without a stride must raise ValueError, and raises TypeError",
    ),
    (
        lambda data, sha256: reader()(data, sha256) if data else {},
        "a file with no byte at all is read",
    ),
    (reader(digest=None), "the SHA-256 of another file is read. Compare that of all its bytes"),
]


TestExercises = exercises(RIGHT, WRONG)
