"""Lessons 05 to 09: what they say of attention holds on heads, draws and texts they do not show."""

import numpy as np

from tests.lessons import definitions
from tools.notebooks import NOTEBOOKS


def test_the_pair_of_heads_of_lesson_07_counts_pairs_of_letters():
    tokens = np.random.default_rng(0).integers(5, size=200)
    pair = definitions(NOTEBOOKS / "07_transformer_block.py", set(), {"N": 5})["induction"]
    found, after = pair(tokens, np.eye(5)[tokens]), np.zeros((5, 5))
    for i, token in enumerate(tokens):
        if i:
            after[tokens[i - 1], token] += 1
        if total := after[token].sum():
            np.testing.assert_allclose(found[i], after[token] / total, atol=1e-5)
