"""Sizes for the machine at hand: full where NumPy has a BLAS, small and said where it has none."""

import numpy as np

from performer_course.teaching.machine import sizes

WITHOUT = {"Build Dependencies": {"blas": {"name": "none"}}}  # what NumPy then says of itself


def test_sizes_are_full_and_silent_here_and_small_and_said_without_blas(monkeypatch, capsys):
    assert (sizes((1, 5, 16384), (1, 5), "tokens"), sizes(12, 3, "draws")) == ((1, 5, 16384), 12)
    assert capsys.readouterr().out == ""
    monkeypatch.setattr(np, "show_config", lambda mode: WITHOUT)
    assert (sizes((1, 5, 16384), (1, 5), "tokens"), sizes(12, 3, "draws")) == ((1, 5), 3)
    tokens, draws = capsys.readouterr().out.splitlines()
    assert tokens == "NumPy has no BLAS here: 1 and 5 tokens instead of 1, 5 and 16,384."
    assert draws == "NumPy has no BLAS here: 3 draws instead of 12."
