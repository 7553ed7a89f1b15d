"""Lesson 10, linear attention."""

import math

import numpy as np

from ._judge import Hint, advice, averages, check, judge, nearly, no_square, numbers, truth


@check
def masked_linear_attention(attend):
    """attend(phi_q, phi_k, v, key_mask) = φ(Q)(φ(K)ᵀV) / φ(Q)(φ(K)ᵀ1), over keys that count.

    phi_q (L, F), phi_k (S, F) positive, v (S, e), key_mask (S,) boolean.
    """
    rng = np.random.default_rng(1001)
    for L, S, F, e in ((5, 8, 3, 2), (4, 6, 7, 6)):
        phi_q, phi_k = rng.uniform(0.1, 2, size=(L, F)), rng.uniform(0.1, 2, size=(S, F))
        v, mask = rng.normal(size=(S, e)), np.arange(S) % 3 > 0
        similarity = phi_q @ phi_k.T  # (L, S)
        masked = similarity * mask
        numerator, denominator = masked @ v, masked.sum(axis=1, keepdims=True)
        shown = np.exp(similarity) * mask
        right = numerator / denominator
        found = attend(phi_q, phi_k, v, mask)
        judge(
            found,
            right,
            [
                (
                    numerator / similarity.sum(axis=1, keepdims=True),
                    "the hidden keys are still in the denominator: the mask belongs on φ(K).",
                ),
                (
                    similarity @ v / denominator,
                    "the hidden values are still in the numerator: the mask belongs on φ(K).",
                ),
                (
                    similarity @ v / similarity.sum(axis=1, keepdims=True),
                    "the mask does nothing: hidden keys must not count.",
                ),
                (numerator, "the denominator φ(Q)(φ(K)ᵀ1) is missing."),
                (
                    numerator / mask.sum(),
                    "divide by the sum of the weights, not by the number of keys.",
                ),
                (
                    similarity @ (v * ~mask[:, None]) / (similarity @ ~mask)[:, None],
                    "the mask is turned round: True is a key that counts.",
                ),
                (
                    shown @ v / shown.sum(axis=1, keepdims=True),
                    "no exponential here: the weights are φ(q)ᵀφ(k) themselves.",
                ),
                (numerator / denominator.sum(), "each query has a denominator of its own."),
                (
                    numerator / (phi_q.sum(axis=1, keepdims=True) * mask.sum()),
                    "the features of the keys are missing in the denominator φ(Q)(φ(K)ᵀ1).",
                ),
                (
                    right / math.sqrt(F),
                    "no scale here: the features are given, and it would cancel.",
                ),
                nearly(found, right),
            ],
        )
        for junk in (1e20, np.nan, np.inf):
            for place in (0, 1):
                hidden = [phi_k, v]
                hidden[place] = np.where(mask[:, None], hidden[place], junk)
                found = np.asarray(attend(phi_q, *hidden, mask), dtype=float)
                if not np.allclose(found, right):
                    raise Hint(
                        f"right, until {junk:g} stands at a hidden key in {('φ(K)', 'v')[place]}: "
                        "leave it out of every product, since even 0 times NaN is NaN."
                    )
        found = attend(1e-100 * phi_q, 1e-100 * phi_k, v, mask)
        if not np.allclose(numbers(found), right):
            raise Hint("small features give another result: is an ε added somewhere?")
    phi, values = rng.uniform(0.1, 2, size=(500, 3)), rng.normal(size=(500, 3))
    no_square(lambda: attend(phi, phi, values, np.arange(500) < 499), phi, 500)


# A test of masks

WIDTH = 4  # of queries and keys


def _elu(x):
    return np.where(x > 0, x + 1, np.exp(np.minimum(x, 0)))


def _attends():
    """[(attend(q, k, v, key_mask), whether what is hidden changes nothing, the hint if not)]."""
    W = np.random.default_rng(1002).normal(size=(8, WIDTH))

    def kept(x, mask):
        return np.where(mask[:, None], x, 0.0)

    def linear(of_k=kept, of_v=kept, phi=_elu, above=0.0):
        """φ(q) (φ(k)ᵀ v) over φ(q) (φ(k)ᵀ 1), with of_k(φ(k), mask) and of_v(v, mask)."""

        def attend(q, k, v, mask):
            phi_q, phi_k, v = phi(q), of_k(phi(k), mask), of_v(v, mask)
            return phi_q @ (phi_k.T @ v) / (phi_q @ phi_k.sum(axis=0) + above)[:, None]

        return attend

    def softmax(q, k, v, mask):
        logits = np.where(mask, q @ kept(k, mask).T / math.sqrt(WIDTH), -np.inf)
        A = np.exp(logits - logits.max(axis=1, keepdims=True))
        return averages(A, kept(v, mask))

    def backwards(q, k, v, mask):
        """The same sums in the opposite order, which rounds in another way."""
        return linear()(q, k[::-1], v[::-1], mask[::-1])

    def positive(shift):
        """Positive features relative to shift(ωᵀk of the keys, the mask)."""

        def attend(q, k, v, mask):
            g, along = q @ W.T, k @ W.T
            h = along - (k**2).sum(axis=1, keepdims=True) / 2 - shift(along, mask)
            phi_q = np.exp(g - g.max(axis=1, keepdims=True))
            phi_k = np.exp(np.where(mask[:, None], h, -np.inf))
            return averages(phi_q @ phi_k.T, kept(v, mask))

        return attend

    def at_the_end(q, k, v, mask):
        n = mask.sum()
        return linear()(q, k[:n], v[:n], np.ones(n, dtype=bool))

    def by_count(q, k, v, mask):
        A = _elu(q) @ kept(_elu(k), mask).T
        return A @ kept(v, mask) / len(k)

    def times(x, mask):
        return x * mask[:, None]

    def untouched(x, mask):
        return x

    def bears_nan(v, mask):
        return times(np.where(np.isnan(v), 0, v), mask)

    def zero_keys(q, k, v, mask):
        return linear(of_k=untouched)(q, kept(k, mask), v, mask)

    def turned_round(x, mask):
        return kept(x, ~mask)

    def with_eps(x, mask):
        return kept(x, mask) + 1e-6

    honest = (
        "attention with a right mask is refused: compare what the keys that count give alone with "
        "what they give among hidden ones, for the same queries, let at least one key count, and "
        "do not ask for equal bits."
    )
    alone = "compare with what the keys that count give alone"
    return [
        (linear(), True, honest),
        (softmax, True, honest),
        (backwards, True, honest),
        (positive(lambda along, mask: along[mask].max()), True, honest),
        (linear(of_k=untouched), False, "a mask on V alone is accepted: hidden keys still count."),
        (linear(of_k=untouched, of_v=untouched), False, "attention without a mask is accepted."),
        (linear(turned_round, untouched), False, "a mask that is turned round is accepted."),
        (linear(times, times), False, "0 · NaN is accepted as a mask: let NaN stand behind it."),
        (
            linear(of_v=bears_nan),
            False,
            "a mask that bears NaN in the values, but not infinity, is accepted: try both.",
        ),
        (
            zero_keys,
            False,
            f"keys set to zero are accepted, and φ(0) is not 0: {alone}, not one padding with "
            "another.",
        ),
        (
            linear(of_k=with_eps),
            False,
            "an ε that is added to the features after the mask is accepted: a hidden key has the "
            "weight of ε again. That is faint, so compare nearly all digits.",
        ),
        (
            at_the_end,
            False,
            "a mask is accepted that takes the first keys, however many count: hide some between "
            "others.",
        ),
        (by_count, False, f"division by the number of all keys is accepted: {alone}."),
        (
            positive(lambda along, mask: along.max()),
            False,
            "a maximum over hidden keys, too, is accepted: let a hidden key be huge, and those "
            "that count of the size of 1.",
        ),
    ]


@check
def padding_invariant(test):
    """test(attend): whether hidden keys and values change nothing in attend(q, k, v, key_mask)."""
    for attend, right, hint in _attends():
        with advice(f"(q and k are (…, {WIDTH}).)"):
            found = test(attend)
        if truth(found) != right:
            raise Hint(hint)


# What a matrix asks for


@check
def features_at_least(count):
    """count(A, share): the least F for which a matrix of rank F is within share ‖A‖ of A."""
    rng = np.random.default_rng(1003)

    def rows(logits):
        return averages(np.exp(logits), np.eye(logits.shape[1]))

    x = rng.normal(size=(20, 3))
    cases = {
        "attention of normal queries and keys": rows(
            rng.normal(size=(12, 4)) @ rng.normal(size=(4, 9))
        ),
        "sharp attention, q = k": rows(3 * x @ x.T),
        "equal weights": np.full((6, 8), 1 / 8),
        "the identity": np.eye(8),
        "two groups": np.kron(np.eye(2), np.full((5, 5), 0.2)),
        "equal weights, nearly": rows(0.1 * rng.normal(size=(15, 15))),
    }
    grid = [(A, share) for A in cases.values() for share in (0.6, 0.3, 0.03)]

    def table(
        left=lambda s, F: math.sqrt((s[F:] ** 2).sum()), norm=np.linalg.norm, first=0, of=None
    ):
        """The least F from `first` on with left(σ, F) ≤ share · norm(σ)."""
        found = []
        for A, share in grid:
            s = np.linalg.svd(of(A) if of else A, compute_uv=False)
            fits = [F for F in range(first, len(s) + 1) if left(s, F) <= share * norm(s) + 1e-12]
            found.append(fits[0])
        return np.array(found, dtype=float)

    right = table()
    judge(
        [count(A, share) for A, share in grid],
        right,
        [
            (right - 1, "one more: so many leave an error above the share."),
            (right + 1, "one fewer is enough: the error after F is that of σ from F + 1 on."),
            (
                table(lambda s, F: s[F:].sum(), np.sum),
                "the squares of the singular values add up, not they themselves.",
            ),
            (
                table(lambda s, F: (s[F:] ** 2).sum(), lambda s: (s**2).sum()),
                "the share is of the norm, not of its square: take the root.",
            ),
            (
                table(lambda s, F: s[F] if len(s) > F else 0.0, np.max),
                "that is for the largest singular value; the error here is ‖·‖ of all entries.",
            ),
            (
                table(lambda s, F: math.sqrt((s[F:] ** 2).sum()), lambda s: 1.0),
                "relative to ‖A‖: divide by its norm.",
            ),
            (
                np.array([np.linalg.matrix_rank(A) for A, _ in grid]),
                "that is the rank, for no error at all: a share of the error is allowed.",
            ),
        ],
        cases=[f"{name}, share {share:g}" for name in cases for share in (0.6, 0.3, 0.03)],
    )
