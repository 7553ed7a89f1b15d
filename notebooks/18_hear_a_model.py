# %% tags=["ways"]
import csv
import re

import matplotlib.pyplot as plt
import numpy as np

from performer_course import antibody, attention, data, near_far, projections, speech
from performer_course.figures import COLORS, show

# %% tags=["ways"]
BLOCKS, HEADS, D = 4, 6, 64


def softmax(i, q, k, v):
    """What the model was trained with."""
    return attention.softmax_attention(q, k, v)


def uniform(i, q, k, v):
    """mean(V)."""
    return attention.uniform_attention(q, k, v)


def directions(m, draw):
    """m orthogonal directions for each head of each block."""
    rng = np.random.default_rng([18, m, draw])
    W = [[projections.orthogonal(rng, m, D) for _ in range(HEADS)] for _ in range(BLOCKS)]
    return np.array(W, dtype=np.float32)


def published(m, draw):
    """FAVOR+: positive features of orthogonal directions."""
    W = directions(m, draw)
    return lambda i, q, k, v: attention.favor_attention(q, k, v, W[i])


def centred(attend):
    """The keys minus the mean of all q + k, and then `attend`."""
    return lambda i, q, k, v: attend(i, q, k - (q + k).mean(axis=-2, keepdims=True), v)


def by_directions(W):
    """Positive features of directions and a weight for each, [ω, b] (4, 6, m, 65)."""
    return lambda i, q, k, v: attention.favor_attention(*antibody.with_weight_column(q, k), v, W[i])


def window(band):
    """Softmax over the keys at most `band` places away."""
    return lambda i, q, k, v: near_far.near_field(q, k, v, band)


def mixture(shares, near):
    """share · near + (1 − share) · mean(V), a share for each head: (4, 6)."""

    def attend(i, q, k, v):
        share = shares[i][:, None, None].astype(np.float32)
        return share * near(i, q, k, v) + (1 - share) * uniform(i, q, k, v)

    return attend


def near_and_mean_key(band):
    """The window exact, all other keys as if each were their mean: one denominator."""
    return lambda i, q, k, v: near_far.joint_attention(q, k, v, band)


def near_and_clusters(band, centres):
    """The window exact, all other keys as if each were the nearest of centres (4, 6, C, 64)."""
    return lambda i, q, k, v: near_far.joint_attention(q, k, v, band, centres=centres[i])


def near_and_features(band, m, draw):
    """The window exact, all other keys by m positive features, centred."""
    W = directions(m, draw)
    return centred(lambda i, q, k, v: near_far.joint_attention(q, k, v, band, W=W[i]))


# %% tags=["ways"]
def words(text):
    """The words of a text, in small letters and without marks."""
    return re.sub(r"[^a-z' ]", " ", text.lower().replace("-", " ")).split()


def word_errors(said, meant):
    """The fewest words to change, to leave out or to add, to make of what was said what was meant."""
    said, meant = words(said), words(meant)
    row = np.arange(len(meant) + 1)
    for i, word in enumerate(said):
        best = np.minimum(row[1:] + 1, row[:-1] + [word != other for other in meant])
        new = [i + 1]
        for value in best:
            new.append(min(value, new[-1] + 1))
        row = np.array(new)
    return int(row[-1])
