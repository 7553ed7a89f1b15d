"""Sizes for the machine at hand: full where NumPy has a BLAS, small and said where it has none."""

import numpy as np
import pytest

from performer_course.teaching import machine

# What NumPy says of itself where Meson found no BLAS: values that are false are left out.
WITHOUT = {"Build Dependencies": {"blas": {"name": "none"}, "lapack": {"name": "none"}}}
SIZES = (  # full, small, and how both are printed
    (12, 3, "3 draws instead of 12"),
    ((1024, 4096, 16384), (1024, 4096), "1,024 and 4,096 draws instead of 1,024, 4,096 and 16,384"),
)


@pytest.mark.parametrize(("full", "small", "said"), SIZES)
def test_sizes_are_full_and_silent_here_and_small_and_said_without_blas(
    full, small, said, monkeypatch, capsys
):
    assert machine.sizes(full, small, "draws") == full
    assert capsys.readouterr().out == ""
    monkeypatch.setattr(np, "show_config", lambda mode: WITHOUT)
    assert machine.sizes(full, small, "draws") == small
    assert capsys.readouterr().out == f"NumPy has no BLAS here: {said}.\n"
