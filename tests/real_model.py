"""The pretrained model, for tests that skip where it was not fetched; and a small random one."""

import functools

import numpy as np
import pytest

from performer_course import antibody

WEIGHTS = antibody.find()
needs_model = pytest.mark.skipif(WEIGHTS is None, reason="the model is not here: `make model`")


@functools.cache
def real_weights():
    """{name: array}, read once."""
    return antibody.load(WEIGHTS)


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
