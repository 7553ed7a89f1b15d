"""The door: a bad argument is refused with what was expected and what came."""

from fractions import Fraction

import numpy as np
import pytest

from performer_course._arguments import check_array, check_attention, check_count, check_number


@pytest.mark.parametrize(
    ("x", "message"),
    [
        (np.ones((2, 0)), r"q must not be empty, got shape \(2, 0\)"),
        (np.asarray([[1, np.nan]]), r"NaN or infinity in 1 of 2 entries, the first at \(0, 1\)"),
        (np.full((2, 3), 1e200), r"q must be finite, got more than 5\.2e\+138 in size in 6 of 6"),
    ],
)
def test_a_bad_array_is_refused_with_what_came(x, message):
    with pytest.raises(ValueError, match=message):
        check_array(x, "q", "n, d")


@pytest.mark.parametrize("value", [1, 7, np.int64(7), np.uint8(7)])
def test_a_count_comes_back_as_a_python_integer(value):
    assert type(check_count(value, "m")) is int
    assert check_count(value, "m") == value


@pytest.mark.parametrize("value", [1, 0.5, np.float32(0.5), np.int64(2), Fraction(1, 2)])
def test_a_number_comes_back_as_a_python_float(value):
    assert type(check_number(value, "gamma", above=0.0)) is float
    assert check_number(value, "gamma", above=0.0) == value


def test_a_limit_itself_is_allowed_by_least_and_not_by_above():
    assert check_number(0, "c", least=0.0) == 0
    assert check_number(-1, "c") == -1
    with pytest.raises(ValueError, match="c must be a finite number of at least 0, got -1"):
        check_number(-1, "c", least=0.0)
    with pytest.raises(ValueError, match="c must be a finite number above 0, got 0"):
        check_number(0, "c", above=0.0)


def test_what_attention_is_given_comes_back_with_one_set_of_leading_axes():
    q, k, v = np.ones((2, 1, 5, 3)), np.ones((4, 6, 3)), np.ones((6, 2))
    mask, W = np.ones((1, 4, 6), dtype=bool), np.ones((2, 1, 8, 3))
    found = check_attention(q, k, v, mask, W)
    widths = [(5, 3), (6, 3), (6, 2), (6,), (8, 3)]
    assert [x.shape for x in found] == [(2, 4, *shape) for shape in widths]
    *_, hidden, shared = check_attention(q, k, v, None, W[0, 0])
    assert hidden is None
    assert shared.shape == (8, 3)  # one for all heads: one product of matrices serves them
