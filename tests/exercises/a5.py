"""Appendix a5, on the GPU: right answers in other forms, and rarer mistakes."""

import math

RIGHT, WRONG = {}, {}


def by_powers(L, kernels, cost, work):
    powers = (2**p for p in range(40))
    return next(C for C in powers if C >= L or -(-L // C) * kernels * cost <= work)


def by_logarithm(L, kernels, cost, work):
    """As if the number of chunks need not be whole."""
    return 2 ** max(0, math.ceil(math.log2(L * kernels * cost / work)))


RIGHT["smallest_chunk"] = [by_powers]
WRONG["smallest_chunk"] = [(by_logarithm, "expected")]
