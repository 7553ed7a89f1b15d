"""Lesson 01, the polynomial kernel: right answers in other forms, and what is no mistake."""

import numpy as np

RIGHT, WRONG = {}, {}


def every_product(x):
    return np.einsum("ni,nj->nij", x, x).reshape(len(x), -1)


RIGHT["quadratic_features"] = [every_product]
WRONG["quadratic_features"] = [(lambda x: (x @ x.T) ** 2, "must not depend on that of points")]


def p_for_n(own, cross, gram):
    """Right where there are as many c_j as points."""
    return own - 2 * cross.sum(axis=1) / len(cross) + gram.mean()


WRONG["distance_to_mean"] = [(p_for_n, "found")]
