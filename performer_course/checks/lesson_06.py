"""Lesson 06, structured projections."""

import math

import numpy as np
from scipy import linalg

from ._judge import Hint, check, judge, no_square, numbers, numbers_of_shape


@check(in_place=True)
def walsh_hadamard(transform):
    """transform(x), x (D, ...): H x in place, Sylvester's H with 1/√D along the leading axis.

    Memory is checked, not work: a sum for each row, of D² operations in all, passes too.
    """
    rng = np.random.default_rng(601)
    for shape in ((16, 4), (64,), (2, 3), (1, 2)):
        x, D = rng.normal(size=shape), shape[0]
        held = x.copy()
        found = numbers(transform(held))

        def steps(*parts, x=x):
            """The Kronecker product of the parts, times x: what butterflies give."""
            matrix = np.ones((1, 1))
            for part in parts:
                matrix = np.kron(matrix, part)
            return matrix @ x

        stages = D.bit_length() - 1
        pair, two = linalg.hadamard(2), np.eye(2)
        plain = steps(*[pair] * stages)
        right = plain / math.sqrt(D)
        lengths = math.prod(math.sqrt(2**k) for k in range(1, stages + 1))
        slips = [
            (plain, "the factor 1/√D is missing: H must keep lengths."),
            (plain / D, "divide by √D, not by D."),
            (plain / lengths, "each stage divides by √2, not by the root of its length."),
        ]
        if D > 2:
            slips.append((x, "this is x again: is each stage paired as the last one was?"))
            again = np.linalg.matrix_power(pair, stages)  # one pairing, at each stage
            for part in (np.kron(again, np.eye(D // 2)), np.kron(np.eye(D // 2), again)):
                hint = "each stage pairs the same rows: they are 1, 2, 4, … apart, width by width."
                slips += [(part @ x / size, hint) for size in (1, math.sqrt(D))]
            one = "this is one stage: the widths 1, 2, 4, … come one after the other."
            missing = "one stage is missing: the widths are 1, 2, 4, … up to D/2."
            for hint, most, other in ((one, two, pair), (missing, pair, two)):
                for i in range(stages):
                    part = steps(*[most] * i, other, *[most] * (stages - 1 - i))
                    slips += [(part / size, hint) for size in (1, math.sqrt(2), math.sqrt(D))]
                    slips += [(part / math.sqrt(D / 2), hint)]
            for used in ([[1, 1], [1, 0]], [[2, -1], [1, -1]]):
                late = steps(*[used] * stages)
                hint = "one half of a butterfly is overwritten before the other has used it."
                slips += [(late / math.sqrt(D), hint), (late, hint)]
        if shape == (16, 4):
            along = x @ linalg.hadamard(4)
            slips += [(along / 2, "H acts along the leading axis: on columns, not on rows.")]
            slips += [(right @ linalg.hadamard(4) / 2, "H acts along the leading axis alone.")]
        if found.shape == shape:
            if np.allclose(np.sort(found, axis=0), np.sort(right, axis=0)):
                slips.append((found, "right values, wrong order."))
            if np.allclose(np.sort(np.abs(found), axis=0), np.sort(np.abs(right), axis=0)):
                slips.append((found, "right up to signs: (a, b) becomes (a + b, a − b)."))
        judge(found, right, slips)
        if held.shape != shape or not np.allclose(held, right):
            still = "what it held" if np.array_equal(held, x) else "something else"
            if held.shape == shape and np.allclose(held, plain):
                still = "H x without its factor (x = x / … makes a new array, x /= … does not)"
            raise Hint(f"right, but x itself holds {still}: write the results into x.")
    long = rng.normal(size=2048)
    no_square(lambda: transform(long), long, len(long), "butterflies need no matrix.", size="D")


@check
def structured_projection(project):
    """project(signs, x) = √d H D₁ H D₂ H D₃ x, for signs (3, d) and x (d,)."""
    rng = np.random.default_rng(602)
    for d in (16, 4):
        signs, x = rng.choice([-1.0, 1.0], size=(3, d)), rng.normal(size=d)
        H, root, ones = linalg.hadamard(d) / math.sqrt(d), math.sqrt(d), np.ones(d)

        def chain(*rows, H=H, x=x, signs=signs):
            y = x
            for row in rows:
                y = H @ (signs[row] * y)
            return y

        right = root * chain(2, 1, 0)
        late = x
        for row in (2, 1, 0):
            late = signs[row] * (H @ late)
        transposed = x
        for row in (0, 1, 2):
            transposed = signs[row] * (H @ transposed)
        judge(
            project(signs, x),
            right,
            [
                (chain(2, 1, 0), "the factor √d is missing: rows of W must have norm √d."),
                (root * chain(0, 1, 2), "D₃ acts first: the order is turned round."),
                (chain(0, 1, 2), "D₃ acts first, and the factor √d is missing."),
                (root * chain(1, 0), "a stage is missing: there are three."),
                (root * chain(2, 1), "a stage is missing: there are three."),
                (root * chain(2), "a stage is missing: there are three."),
                (
                    root * H @ H @ H @ x,
                    "the signs are missing: row i of `signs` is the diagonal of D_i.",
                ),
                *[
                    (root * chain(*rows, signs=np.vstack([ones, signs])), hint)
                    for rows, hint in (
                        ((0, 2, 1), "D₃ is missing: its signs come before the first H."),
                        ((3, 0, 1), "D₂ is missing: signs come before each H."),
                        ((3, 2, 0), "D₁ is missing: signs come before each H."),
                        ((0, 3, 2, 1), "three H are enough: D₃ comes before the first of them."),
                    )
                ],
                (
                    root * signs[0] * chain(2, 1),
                    "an H is missing: the one of D₁, which comes last.",
                ),
                (
                    root * H @ (signs.prod(axis=0) * x),
                    "D₁, D₂ and D₃ do not come at once: an H stands between them.",
                ),
                (root * signs.prod(axis=0) * x, "each stage is signs, and then H: H is missing."),
                *[(root * chain(i, i, i), "each stage has signs of its own.") for i in range(3)],
                (root * late, "the signs come before H, at each stage."),
                (late, "the signs come before H, at each stage."),
                (
                    root * transposed,
                    "this is Wᵀx: the order of the factors is turned round.",
                ),
                (transposed, "this is Wᵀx: the order of the factors is turned round."),
                (d**1.5 * right, "H has the factor 1/√d, each of the three times."),
                (
                    d * right,
                    "d times too large: H has the factor 1/√d at each stage, and √d comes once.",
                ),
                (d * chain(2, 1, 0), "multiply by √d, not by d."),
            ],
        )


@check
def simplex_corners(corners):
    """corners(d) → d unit rows in R^d with the cosine −1/(d − 1) between any two."""
    for d in (3, 7, 2):
        rows = numbers_of_shape((d, d), corners(d), f"d = {d}")
        eye, centred = np.eye(d), np.eye(d) - 1 / d
        cosine = -1 / (d - 1)
        gram = rows @ rows.T
        right = eye + (1 - eye) * cosine
        lengths = np.sqrt(np.diag(gram))
        slips = [
            (
                (centred @ centred.T) / (d - 1),
                "divide each row by its own length, not by that of the whole matrix.",
            ),
            (eye, "these are orthogonal: subtract their centre."),
            (eye + (1 - eye) * -1 / d, "−1/(d−1), not −1/d: d corners, not d + 1."),
        ]
        if np.allclose(rows, right):
            slips.append((gram, "these are the cosines themselves: which rows have them?"))
        off = eye - 1 / (d - 1)
        if d > 2 and np.allclose(rows, off / np.linalg.norm(off, axis=1, keepdims=True)):
            slips.insert(0, (gram, "the centre of e_1, …, e_d is (1/d, …, 1/d), not 1/(d − 1)."))
        if np.allclose(gram, right * np.outer(lengths, lengths)) and lengths.all():
            slips.append((gram, "the angles are right; divide each row by its length."))
        if gram.min() > 0:
            slips.append((gram, "the cosine must be negative: apart, not together."))
        judge(gram, right, slips)
