"""Lesson 13, the Performer: right answers in any form, and what no mistake is."""

import numpy as np

RIGHT, WRONG = {}, {}


def by_trying(a, part):
    return next(n for n in range(1, 10_000) if 1 - np.exp(-a * n) >= part - 1e-12)


RIGHT["remembered"] = [by_trying]


def token_by_token(S, phi_q, phi_k, v, a):
    rows = []
    for q, k, value in zip(phi_q, phi_k, v, strict=True):
        S = np.exp(-a) * S + np.outer(k, np.append(value, 1))
        rows.append(q @ S[:, :-1] / (q @ S[:, -1]))
    return np.array(rows)


RIGHT["second_half"] = [token_by_token]
