"""The pretrained model in tests: all that ask it are skipped where `make model` was not run."""

import functools

import pytest

from performer_course import antibody

WEIGHTS = antibody.find()
needs_model = pytest.mark.skipif(WEIGHTS is None, reason="the model is not here: `make model`")


@functools.cache
def real_weights():
    """{name: array}, read once."""
    return antibody.load(WEIGHTS)
