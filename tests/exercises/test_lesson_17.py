"""Lesson 17, linearising a pretrained model: right answers in any form, and what no mistake is."""

import hashlib
import io
import itertools
import math
import pickle
import zipfile
from pathlib import Path

import numpy as np
import pytest

from performer_course import attention, near_far, projections
from performer_course.checks import lesson_17
from performer_course.checks.lesson_17 import mixture
from tests.exercises.shared import exercises, said

RIGHT, WRONG = {}, {}


# can_be_replaced


def shortest(calibration, new):
    """The shift of the keys that makes q' + k' short, from the calibration chain."""
    return calibration[0].mean(axis=0) + calibration[1].mean(axis=0)


def swapped(
    shift=shortest,
    rows=projections.iid,
    prepare=lambda chain: chain,
    fold=lambda errors: (errors**2).sum(axis=(1, 2)).mean(),  # of all draws, (draws, L, e)
    level=0.5,
):
    """Whether the loss of the draws is less than `level` times that of mean(V)."""

    def decide(calibration, new, m, rng, draws):
        q, k, v = prepare(new)
        s, exact = shift(prepare(calibration), (q, k, v)), attention.softmax_attention(q, k, v)
        directions = [rows(rng, m, q.shape[1]) for _ in range(draws)]
        errors = [attention.favor_attention(q, k - s, v, W) - exact for W in directions]
        uniform = attention.uniform_attention(q, k, v) - exact
        return bool(fold(np.array(errors)) < level * fold(uniform[None]))

    return decide


def by_formula(calibration, new, m, rng, draws):
    q, k, _ = new
    scores = q @ k.T / math.sqrt(q.shape[1])
    k = k - shortest(calibration, new)
    return bool(attention.relative_variance(q, k, m) / 2 < scores.var(axis=1).mean())


RIGHT["can_be_replaced"] = [swapped(rows=projections.orthogonal)]
WRONG["can_be_replaced"] = [
    (swapped(level=0.05), lesson_17.FOLLOWED),
    (swapped(level=np.inf), lesson_17.SHARP),
    (swapped(fold=lambda errors: (errors.mean(axis=0) ** 2).sum()), lesson_17.POOLED),
    (swapped(fold=lambda errors: np.sqrt((errors**2).sum(axis=(1, 2))).mean()), lesson_17.HALF),
    (swapped(prepare=lambda chain: (*chain[:2], np.eye(lesson_17.TOKENS))), lesson_17.OUTPUTS),
    (swapped(shift=lambda *_: 0.0), lesson_17.KEYS),
    (swapped(shift=lambda calibration, new: calibration[1].mean(axis=0)), lesson_17.QUERIES),
    (swapped(prepare=lambda c: (c[0] - c[0].mean(axis=0), *c[1:])), lesson_17.ALIKE),
    (lambda calibration, new, *rest: swapped()(calibration, calibration, *rest), lesson_17.NEW),
    (swapped(shift=lambda calibration, new: shortest(new, new)), lesson_17.BEFORE),
    (swapped(fold=lambda errors: np.median((errors**2).sum(axis=(1, 2)))), lesson_17.RUINED),
    (swapped(shift=lambda *chains: shortest(*chains) * 4**-0.25), lesson_17.UNSCALED),
    (by_formula, "measure outputs"),
    (swapped(fold=lambda errors: (errors[0] ** 2).sum()), "over all draws"),
    (swapped(level=1.0), "less than half"),
]


@pytest.mark.parametrize("rows", [projections.iid, projections.orthogonal])
def test_the_error_of_each_synthetic_head_is_four_standard_errors_from_a_half(rows):
    rng = np.random.default_rng(0)
    heads = lesson_17._heads()
    for (calibration, (q, k, v)), right, hint in heads[:-4] + heads[-1:]:  # one is there 4 times
        k, exact = k - shortest(calibration, None), attention.softmax_attention(q, k, v)
        W = [rows(rng, lesson_17.M, q.shape[1]) for _ in range(250)]
        found = [((attention.favor_attention(q, k, v, each) - exact) ** 2).sum() for each in W]
        half = ((v.mean(axis=0) - exact) ** 2).sum() / 2
        error = np.std(found, ddof=1) / math.sqrt(lesson_17.DRAWS)
        assert (half - np.mean(found)) * (1 if right else -1) > 4 * error, hint


# window_baseline


def by_search(chains, band):
    """The parabola from its values at 0, at ½ and at 1."""
    parts = []
    for q, k, v in chains:
        N, U = near_far.near_field(q, k, v, band), attention.uniform_attention(q, k, v)
        exact = attention.softmax_attention(q, k, v)
        parts.append([((p * N + (1 - p) * U - exact) ** 2).sum((-2, -1)) for p in (0, 0.5, 1)])
    zero, half, one = np.sum(parts, axis=0)
    bend = 2 * (zero + one - 2 * half)  # of bend p² + slope p + zero
    slope = one - zero - bend
    p = np.clip(np.where(bend > 0, -slope / (2 * np.where(bend > 0, bend, 1)), 0), 0, 1)

    def attend(i, q, k, v):
        mine = p[i].reshape(-1, 1, 1)
        weights = [mine + 1e-300, 1 - mine + 1e-300]
        return near_far.fmm_attention(q, k, v, band, [np.ones_like], weights)

    return attend


def fit_in_squares(chains, band):
    for q, k, _ in chains:
        q @ k.swapaxes(-1, -2)
    return mixture()(chains, band)


def used_in_squares(chains, band):
    attend = mixture()(chains, band)
    return lambda i, q, k, v: attend(i, q, k, v) + 0 * (q @ k.swapaxes(-1, -2)).sum()


RIGHT["window_baseline"] = [by_search]
WRONG["window_baseline"] = [
    (fit_in_squares, "that is an L × L array"),
    (used_in_squares, "that is an L × L array"),
    (mixture(divide=lambda top, bottom: top / (bottom + 0.1)), "close, but not equal"),
]


# read_weights

NAMES = {("collections", "OrderedDict"), ("weights", "rebuild")}


def fits(storage, offset, size, stride, without="", past=0):
    """Whether a tensor has a place in its storage, apart from the rule `without`."""
    entries = (offset, *size, *stride)
    last = offset + sum((n - 1) * step for n, step in zip(size, stride, strict=False))
    rules = {
        "whole": all(isinstance(n, int) for n in entries),
        "negative": min(entries) >= 0,
        "lengths": len(size) == len(stride),
        "inside": last < len(storage) + past,
        "entries": math.prod(size) <= len(storage),
    }
    return all(holds for rule, holds in rules.items() if rule != without)


def rebuilt(storage, offset, size, stride):
    """The tensor; 0 where it would read outside its storage."""
    places = int(offset) + sum(i * s for i, s in zip(np.indices(size), stride, strict=False))
    return np.array(np.pad(storage, 99)[99 + places])


def reader(
    known=lambda module, name: (module, name) in NAMES,
    kinds=np.ndarray,
    errors=Exception,
    digits=64,
    **rules,
):
    """A reader that restores tensors which fit by the rules."""

    def rebuild(storage, *place):
        if not fits(storage, *place, **rules):
            raise pickle.UnpicklingError(place)
        return rebuilt(storage, *place)

    class Reader(pickle.Unpickler):
        def find_class(self, module, name):
            if not known(module, name):
                raise pickle.UnpicklingError(name)
            good = "weights" in module or name == "rebuild"
            return rebuild if good else super().find_class(module, name)

        def persistent_load(self, pid):
            if pid[0] not in ("<f4", "<i8"):
                raise pickle.UnpicklingError(pid)
            return np.frombuffer(self.archive.read(pid[1]), pid[0])

    def read(data, sha256):
        if hashlib.sha256(data).hexdigest()[:digits] != sha256[:digits]:
            raise ValueError(sha256)
        try:
            with zipfile.ZipFile(io.BytesIO(data)) as archive:
                unpickler = Reader(archive.open("tensors.pkl"))
                unpickler.archive = archive
                content = unpickler.load()
        except errors as error:
            raise ValueError("no file of weights") from error
        if not isinstance(content, dict) or not all(isinstance(x, kinds) for x in content.values()):
            raise ValueError("no dict of arrays")
        return dict(content)

    return read


COMMON = ("os", "posix", "nt", "sys", "builtins", "subprocess")
RIGHT["read_weights"] = [reader()]
WRONG["read_weights"] = [
    (
        lambda *given: {name: x.astype(float) for name, x in reader()(*given).items()},
        "w must be float32 of shape (3, 4), got float64",
    ),
    (lambda *given: {name: x[::-1] for name, x in reader()(*given).items()}, "wrong numbers"),
    (reader(lambda module, name: False), "The file is a good one, and its SHA-256 is right"),
    (reader(lambda *_: True), "the name os.mkdir in a file, your reader calls it"),
    (reader(lambda module, name: module not in COMMON), "mkdtemp in a file, your reader calls it"),
    (reader(lambda module, _: module in ("collections", "weights")), "append in a file, your"),
    (reader(lambda _, name: name in ("OrderedDict", "rebuild")), "the name os.rebuild is read"),
    (reader(without="whole"), "an offset of 0.5 is read"),
    (reader(without="negative"), "a negative stride is read"),
    (reader(without="lengths"), "two sizes and one stride is read"),
    (reader(without="inside"), "a stride past the end is read"),
    (reader(past=1), "a last entry one past the end of its storage is read"),
    (reader(without="entries"), "10800 entries, all in a storage of 12 numbers is read"),
    (reader(kinds=object), "the number 3 in place of a tensor is read"),
    (reader(errors=zipfile.BadZipFile), "must raise ValueError, but raises UnpicklingError"),
    (reader(errors=(pickle.UnpicklingError, ValueError)), "there must raise ValueError, but"),
    (reader(digits=0), "the SHA-256 of another file"),
    (reader(digits=32), "the SHA-256 of another file, or in part"),
]


def test_a_reader_of_one_hostile_file_alone_is_refused_for_that_file():
    names = [what for _, what in lesson_17._hostile(Path())]
    for n in range(len(names) + 7):  # four damaged files and three digests come after them
        calls = itertools.count(-2)  # after two good files

        def read(data, sha256, n=n, calls=calls):
            return {} if next(calls) == n else reader()(data, sha256)

        assert f"{[*names, *[''] * 7][n]} is read" in said("read_weights", read, "it passes")


TestExercises = exercises(RIGHT, WRONG)
