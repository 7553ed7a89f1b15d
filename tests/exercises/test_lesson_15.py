"""Lesson 15, near and far: right answers in any form, and what no slip is."""

import math

import numpy as np

from performer_course.checks.lesson_15 import rows
from tests.exercises.shared import exercises

RIGHT, WRONG = {}, {}


def by_diagonals(A, part):
    held = np.trace(A)
    for b in range(len(A)):
        held += (np.trace(A, b) + np.trace(A, -b)) * (b > 0)
        if held >= part * len(A):
            return b


def by_search(A, part):
    i = np.arange(len(A))
    held = [A[abs(i[:, None] - i) <= b].sum() / len(A) for b in i]
    return np.searchsorted(held, part)


RIGHT["narrowest_window"] = [by_diagonals, by_search]
WRONG["narrowest_window"] = [
    (lambda A, part: by_search(A, part) / len(A), "expected"),
    (lambda A, part: by_search(A, 1 - part), "expected"),
]


def row_by_row(q, k, v, phi_q, phi_k, band):
    found = []
    for i in range(len(q)):
        weights, keys = phi_k @ phi_q[i], slice(max(0, i - band), i + band + 1)
        weights[keys] = np.exp(k[keys] @ q[i] / math.sqrt(q.shape[1]))
        found.append(weights @ v / weights.sum())
    return np.array(found)


def two_sums(q, k, v, phi_q, phi_k, band):
    one = np.hstack([v, np.ones((len(v), 1))])
    total = phi_q @ (phi_k.T @ one)
    for i in range(len(q)):
        keys = slice(max(0, i - band), i + band + 1)
        weights = np.exp(k[keys] @ q[i] / math.sqrt(q.shape[1]))
        total[i] += (weights - phi_k[keys] @ phi_q[i]) @ one[keys]
    return total[:, :-1] / total[:, -1:]


RIGHT["near_and_rest"] = [row_by_row, two_sums]
WRONG["near_and_rest"] = [
    (rows(), "that is an L × L array"),
    (lambda *given: row_by_row(*given) * (1 + 1e-6), "is an ε added"),
    (rows(lambda near, E, G: np.where(near, E / (E * near).max(axis=1)[:, None], G)), "expected"),
    (lambda *given: two_sums(*given).clip(-1, 1), "expected"),
]

TestExercises = exercises(RIGHT, WRONG)
