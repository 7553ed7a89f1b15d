"""What every test runs under: one thread, static figures, and no student notebooks."""

import os

import pytest

from tools.setting import ENVIRONMENT

os.environ.update(ENVIRONMENT)
pytest.register_assert_rewrite("tests.claims")  # its asserts report values, as a test file's do

# Unsolved on purpose: tests/test_exercises.py runs them, and expects NotImplementedError.
collect_ignore_glob = ["notebooks/exercises/*", "notebooks/*.py", "*.ipynb_checkpoints*"]
