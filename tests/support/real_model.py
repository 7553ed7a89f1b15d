"""The pretrained model, for tests that skip where it was not fetched; and a small random one."""

import functools
import zipfile
from unittest import mock

import numpy as np
import pytest

from performer_course.models import antibody
from tools.model import sha256


def fetched(model):
    """A mark that skips a test where this model was not fetched, and what reads it once."""
    path = model.find()
    mark = pytest.mark.skipif(path is None, reason="the model is not here: `make model`")
    return mark, functools.cache(lambda: model.load(path))


needs_model, real_weights = fetched(antibody)
WIDTH, WIDE, PLACES = 16, 24, 20


def small_weights():
    """Weights of the model's names for eight heads of two coordinates, random, float64.

    Embeddings are so small that the ε in a norm counts.
    """
    rng, e = np.random.default_rng(0), "bert.embeddings"
    weights = {
        f"{e}.word_embeddings.weight": rng.normal(size=(25, WIDTH)) * 1e-3,
        f"{e}.position_embeddings.weight": rng.normal(size=(PLACES, WIDTH)) * 1e-3,
        f"{e}.token_type_embeddings.weight": rng.normal(size=(2, WIDTH)) * 1e-3,
    }
    linears, norms = {}, [f"{e}.LayerNorm", "cls.predictions.transform.LayerNorm"]
    for i in range(8):
        b = f"bert.encoder.layer.{i}"
        for name in ("self.query", "self.key", "self.value", "output.dense"):
            linears[f"{b}.attention.{name}"] = WIDTH, WIDTH
        linears |= {f"{b}.intermediate.dense": (WIDE, WIDTH), f"{b}.output.dense": (WIDTH, WIDE)}
        norms += [f"{b}.attention.output.LayerNorm", f"{b}.output.LayerNorm"]
    linears["cls.predictions.transform.dense"] = WIDTH, WIDTH
    linears["cls.predictions.decoder"] = 25, WIDTH
    for name, shape in linears.items():
        weights[f"{name}.weight"] = rng.normal(size=shape) / shape[1] ** 0.5
        weights[f"{name}.bias"] = 0.3 * rng.normal(size=shape[0])
    for name in norms:
        weights[f"{name}.weight"] = 1 + 0.3 * rng.normal(size=WIDTH)
        weights[f"{name}.bias"] = 0.3 * rng.normal(size=WIDTH)
    return weights


# A file of weights

NUMBERS = np.arange(12, dtype="<f4") / 7
INTEGERS = np.array([3, -1, 2**40], dtype="<i8")


def tensor(size=(12,), stride=(1,), offset=0, kind="FloatStorage", key=0):
    """The opcodes of a tensor in a storage, as PyTorch pickles one, in letters."""
    size, stride = ("(" + "".join(f"I{n}\n" for n in x) + "t" for x in (size, stride))
    storage = f"(Vstorage\nctorch\n{kind}\nV{key}\nVcuda:0\nI12\ntQ"
    return f"ctorch._utils\n_rebuild_tensor_v2\n({storage}I{offset}\n{size}{stride}tR"


def trusted(model, path):
    """What `model.load` gives of a file other than that of `make model`: its hash is made known."""
    hashes = {x.name: sha256(x) for x in path.parent.iterdir()}
    known = model.SHA256 | hashes if isinstance(model.SHA256, dict) else hashes[path.name]
    with mock.patch.object(model, "SHA256", known):
        return model.load(path)


def written(path, **tensors):
    """A file of weights: a dict of these opcodes, with an attribute, and two storages."""
    items = "".join(f"V{name}\n{opcodes}s" for name, opcodes in tensors.items())
    with zipfile.ZipFile(path, "w") as file:
        pickled = f"ccollections\nOrderedDict\n(tR{items}(dV_metadata\n(dsb."
        file.writestr("archive/data.pkl", pickled)
        for key, array in enumerate((NUMBERS, INTEGERS)):
            file.writestr(f"archive/data/{key}", array.tobytes())
    return path
