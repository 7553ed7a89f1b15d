"""Arguments that one might pass by mistake.

Each argument of a public function's valid example is made wrong. The call gives a result without
NaN, or a ValueError or TypeError that a check of ours raised and that names an argument; it ends,
and leaves what it was given as it was. A new function joins by itself; a new name of a parameter on
the host wants a line in HOST.
"""

import contextlib
import copy
import importlib
import inspect
import itertools
import linecache
import math
import re
import signal
import warnings
from pathlib import Path

import array_api_strict
import numpy as np
import pytest

import performer_course
from performer_course.models import antibody, language
from tests.support import examples
from tests.support.language_model import small_language
from tests.support.real_model import small_weights
from tests.support.speech_model import small_speech

SECONDS = 10  # of CPU time that a call may take
PACKAGE = Path(performer_course.__file__).parent

# What has arguments of another kind: pictures, programs that train, a model that writes, a cost
# model, sizes of an experiment, the ways between libraries, a file that is opened, rows of a card,
# and modules for PyTorch and transformers.
ELSEWHERE = {"backend", "huggingface", "pytorch", "teaching.cost_model", "teaching.drawings"}
ELSEWHERE |= {f"teaching.{name}" for name in ("figures", "machine", "training", "writer")}
FILES = {f"{name}.{f}" for name in ("antibody", "language", "speech") for f in ("load", "find")}
FILES |= {"card.verdict"}
# They say that a state may grow without bound, or a polynomial: huge numbers overflow in them.
GROWS = {"recurrent.recurrence", "recurrent.delta_attention", "recurrent.chunk_map"}


def functions():
    public = [x for x in examples.names() if x.rpartition(".")[2][0] != "_" and x not in ELSEWHERE]
    modules = [importlib.import_module(f"performer_course.{name}") for name in public]
    found = [f for module in modules for f in examples.public_functions(module)]
    found = [f for f in found if inspect.signature(f).parameters]
    return [f for f in found if examples.label(f) not in FILES]


def draw(*shape):
    return np.random.default_rng(1).uniform(0.1, 1.0, size=shape)


# Arguments of functions on the host, by name
HOST = dict.fromkeys(("r", "z", "k", "k2", "p", "eps"), draw(2))
HOST |= {"x": draw(2, 3), "y": draw(2, 3), "v": draw(2, 2), "rho": draw(3), "delta": draw(2, 4)}
HOST |= {"m": 2, "n": 4, "d": 3, "radius": 0.7, "beta": 0.5}
HOST |= {"stages": 2, "signs": np.sign(draw(1, 3, 4)), "norms": draw(2), "gamma": 0.4}
HOST |= {"passes": 2, "part": "test", "scale": 0.5, "sequence": "EVQL", "i": 1}
HOST |= {"when": "early", "repeats": False}
MODEL = dict.fromkeys("qkv", draw(8, 5, 64)) | {"W": draw(6, 64)}
MODEL |= {"tokens": np.full((2, 5), 7), "attend": antibody.attend_exact}
MODEL |= {"masked": np.eye(2, 4, dtype=bool), "weights": small_weights()}
SPEECH = {"weights": small_speech(), "sound": draw(800), "text": "the thing"}
SPEECH["attend"] = lambda i, q, k, v: v
LANGUAGE = {"weights": small_language(), "tokens": np.arange(3, 8), "text": "the thing", "most": 3}
LANGUAGE |= {"attend": lambda i, q, k, v: q, "memory": language.Cache, "every": 2}
LANGUAGE |= {"q": draw(4, 5, 3), "k": draw(2, 5, 3), "v": draw(2, 5, 3)}
HEAD = {"q": draw(40, 3), "k": draw(40, 3), "v": draw(40, 2), "W": draw(6, 3), "s": draw(3)}
HEAD |= {"U": np.eye(3), "rho": np.array([0.5, 0.8, 1.0]), "causal": True, "draws": 1, "seed": 3}
HEAD |= {"output": draw(40, 2), "exact": draw(40, 2), "key_mask": np.arange(40) < 39}
HEAD |= {"budget": 0.5, "sample": (draw(36, 3), draw(36, 3), draw(36, 2))}
OWN = {"antibody": MODEL, "speech": SPEECH, "language": LANGUAGE, "compare": HEAD, "card": HEAD}


def valid(function, rng, share=0.5):
    """Arguments that `function` takes: what it requires, and that share of its options."""
    parameters = inspect.signature(function).parameters.values()
    module = examples.label(function).partition(".")[0]
    if module in examples.DEVICE and examples.label(function) not in examples.DRAWS:
        options = [p.name for p in parameters if p.default is not p.empty and rng.random() < share]
        return examples.example(function, rng, options)
    values = {**examples.EXAMPLES, **HOST, **OWN.get(module, {})}
    values["rng"] = np.random.default_rng(2)
    if module == "transformer":
        values["config"] = performer_course.transformer.Config(**examples.CONFIG)
    chosen = [p.name for p in parameters if p.default is p.empty or rng.random() < share]
    return {name: copy.deepcopy(values[name]) for name in chosen}


LONG = np.finfo("longdouble").bits > 64
BFLOAT16 = importlib.util.find_spec("ml_dtypes")
if BFLOAT16:
    importlib.import_module("ml_dtypes")  # names it to NumPy
SHAPES = [
    lambda x: x[..., :0],
    lambda x: x[:0],
    lambda x: x[..., :-1],
    lambda x: x[..., : x.shape[-2] - 1, :] if x.ndim > 1 else x,
    lambda x: x[0],
    lambda x: x[..., 0],
    lambda x: np.stack([x] * 3),
    lambda x: np.concatenate([x, x[:1]]),
    lambda x: np.swapaxes(x, 0, -1),
]


def replaced(tree, old, new):
    return examples.tree_map(lambda x: new if x is old else x, tree)


def numbers(tree):
    """The arrays of real numbers in `tree`, of any library, as NumPy's."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = [np.asarray(x) for x in examples.leaves(tree) if not callable(x)]
    return [x.astype(float) for x in found if x.dtype.kind in "fiu"]


def same(a, b):
    if isinstance(a, np.ndarray) and a.dtype != object:
        return a.dtype == b.dtype and a.tobytes() == b.tobytes()
    return True


def ours(error):
    """Whether a `raise` of the package made this error."""
    at = error.__traceback__
    while at.tb_next:
        at = at.tb_next
    file = at.tb_frame.f_code.co_filename
    return PACKAGE in Path(file).parents and "raise" in linecache.getline(file, at.tb_lineno)


@contextlib.contextmanager
def cpu_time(seconds):
    """Raises TimeoutError in what takes more CPU time, however busy the machine; not on Windows."""

    def stop(*signalled):
        raise TimeoutError(f"more than {seconds} s of CPU time")

    if not hasattr(signal, "setitimer"):
        yield
        return
    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def fault(function, given, seconds=SECONDS):
    """What is wrong with function(**given), in words, or None."""
    kept, name = copy.deepcopy(given), examples.label(function)
    values = [np.zeros(1), *numbers({k: v for k, v in given.items() if k != "rng"})]
    values = np.abs(np.concatenate([x.ravel() for x in values]))
    huge = (values[np.isfinite(values)] > 1e9).any() or (values[values > 0] < 1e-200).any()
    on_host = all(isinstance(x, np.ndarray) for x in examples.leaves(given) if hasattr(x, "shape"))
    try:
        with cpu_time(seconds):
            result = function(**given)
    except (ValueError, TypeError) as error:
        named = any(re.search(rf"\b{word}\b", str(error)) for word in given)
        return None if named and ours(error) else f"{type(error).__name__}: {error}"
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    before, after = (examples.leaves({**x, "out": None}) for x in (kept, given))
    if not all(map(same, before, after)):
        return "an argument was changed"
    found = numbers(result)
    if on_host and any(np.isnan(x).any() for x in found) and not (huge and name in GROWS):
        return "NaN"
    if on_host and not huge and any((x == np.inf).any() for x in found):
        return "infinity"
    return None


# Each argument of every public function


def refused(value, on_device, alone):
    """What is made of an argument that no function may take: {what is wrong: the value}."""
    if isinstance(value, np.ndarray) and value.ndim:
        found = {"complex numbers": value.astype(complex), "a text": "1.5", "a dict": {}}
        found |= {"NaN": value * np.nan} if value.dtype.kind == "f" else {}
        if value.dtype.kind == "i":
            found |= {"below 0": value - value.min() - 1, "beyond all": value + 10**6}
        found |= {"bfloat16": value.astype("bfloat16")} if BFLOAT16 else {}
        if on_device:
            found |= {"a list": value.tolist(), "no entries": value[..., :0]}
            found |= {"a mask": np.ma.masked_array(value), "a matrix": np.matrix(value.ravel())}
            found |= {"float128": value.astype("longdouble")} if LONG else {}
        strict = on_device and not alone
        return found | ({"another library": array_api_strict.asarray(value)} if strict else {})
    if hasattr(value, "_fields"):
        fields = value._asdict().items()
        found = {(n, w): x for n, y in fields for w, x in refused(y, on_device, alone).items()}
        found = {f"{n}, {w}": value._replace(**{n: x}) for (n, w), x in found.items()}
        return found | {"None": None, "a tuple": (*value,), "an array": value[-1]}
    if isinstance(value, int) and not isinstance(value, bool):
        return {repr(x): x for x in (-1, 2.5, True, "2", np.nan)}
    if isinstance(value, np.random.Generator):
        return {repr(x): x for x in (0, None, np.random, np.random.RandomState(0))}
    if isinstance(value, str):
        return {"no text": "", "a number": 600}
    if isinstance(value, float):
        return {repr(x): x for x in (np.nan, np.inf, True, "1", [1.0])}
    return {}


@pytest.mark.filterwarnings("ignore:the matrix subclass")
@pytest.mark.parametrize("function", functions(), ids=examples.label)
def test_each_argument_made_wrong_is_refused_by_name(function):
    given, taken = valid(function, np.random.default_rng(0), share=1), []
    free = {"out", "i"}  # written over; the block that an `attend` is told of
    on_device = examples.label(function).partition(".")[0] in examples.DEVICE
    alone = sum(isinstance(x, np.ndarray) for x in given.values()) < 2
    for name in given.keys() - free:
        for what, wrong in refused(given[name], on_device, alone).items():
            try:
                function(**{**given, name: wrong})
                taken.append(f"{name}, {what}")
            except ValueError as error:
                named = re.search(rf"\b{name}\b", str(error))
                taken += [] if named else [f"{name}: {error}"]
    assert taken == []


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("function", functions(), ids=examples.label)
def test_an_argument_of_another_shape_gives_a_result_or_is_refused_by_name(function):
    for given in (valid(function, np.random.default_rng(0), share) for share in (0, 1)):
        for name, value in given.items():
            arrays = [x for x in examples.leaves(value) if isinstance(x, np.ndarray) and x.ndim]
            arrays *= len(arrays) < 100  # a model's weights are known by their hash
            for x, (i, shape) in itertools.product(arrays, enumerate(SHAPES)):
                wrong = {**given, name: replaced(value, x, shape(x))}
                assert fault(function, wrong) is None, (name, i)


# Of such weights a transformer overflows in half precision, and refuses its own x.
SIZED = [*itertools.product(examples.device_functions(), ("f2", "f4", "f8"))]
SIZED.remove((performer_course.transformer.forward, "f2"))


def floating(given):
    """The names of the arguments with arrays of floating-point numbers in them, but `out`."""
    kinds = {
        name: {x.dtype.kind for x in examples.leaves(value) if hasattr(x, "dtype")}
        for name, value in given.items()
    }
    return [name for name in kinds if name != "out" and "f" in kinds[name]]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("function", "dtype"), SIZED, ids=lambda x: getattr(x, "__name__", x))
def test_entries_of_any_size_give_no_nan_and_infinity_is_refused(function, dtype):
    given = examples.cast(valid(function, np.random.default_rng(0), share=1), dtype)
    names, top = floating(given), float(np.finfo(dtype).max)

    def of_size(x):
        return np.copysign(size, x, dtype=x.dtype) if x.dtype.kind == "f" else x

    for size in (top**0.44, top**0.79, top**0.99, math.inf):
        larger = {n: examples.tree_map(of_size, given[n]) for n in names}
        for chosen in (*((n,) for n in names), names):
            wrong = given | {n: larger[n] for n in chosen}
            assert fault(function, wrong) in (None, "infinity"), (size, chosen)
    for name in set(names) - {"log_decay"}:
        with pytest.raises(ValueError, match=rf"\b{name}\b"):
            function(**given | {name: larger[name]})


# Of these the dtype of a result depends; all others are cast.
DECIDE = {"q", "k", "v", "x", "y", "phi_q", "phi_k", "state", "a", "b", "first", "second", "params"}
WIDE = {f"attention.{name}" for name in ("init_state", "absorb", "relative_variance")}
WIDE |= {"near_far.window_state", "recurrent.chunk_map"}
WIDE |= {*(n for n in map(examples.label, functions()) if "naive" in n)}
PUTS = {"NumPy": lambda x: x}
if importlib.util.find_spec("torch"):
    PUTS["PyTorch"] = importlib.import_module("torch").asarray


@pytest.mark.parametrize("put", PUTS.values(), ids=PUTS)
@pytest.mark.parametrize("function", examples.device_functions(), ids=examples.label)
def test_arguments_may_have_unlike_dtypes_and_but_for_rows_are_cast(function, put):
    options = {*examples.variants(function)[-1]} - {"out"}
    for own, other in itertools.permutations(("f2", "f4", "f8"), 2):
        given = examples.cast(examples.example(function, np.random.default_rng(0), options), own)
        wanted = examples.leaves(function(**examples.tree_map(put, given)))
        assert examples.label(function) in WIDE or str(put(np.ones(1, own)).dtype) == str(
            wanted[-1].dtype
        )
        for name in floating(given):
            mixed = given | examples.cast({name: given[name]}, other)
            found = examples.leaves(function(**examples.tree_map(put, mixed)))
            for x, y in zip(found, wanted, strict=True):
                assert name in DECIDE or x.dtype == y.dtype, (name, own, other)
                np.testing.assert_allclose(x, y, rtol=0.02, atol=0.01)
