"""What every test runs under: one thread, static figures, and no exercises."""

import os
from importlib.util import find_spec

import pytest
from threadpoolctl import threadpool_limits

from tools.setting import ENVIRONMENT

os.environ.update(ENVIRONMENT)
os.environ.pop("PYTEST_ADDOPTS", None)  # read by now, and not meant for the runs that tests start
# Plug-ins of pytest may have imported NumPy before this line, and its BLAS reads the environment
# only once.
threadpool_limits(limits=1)
# A machine with a GPU may be bare.
pytest_plugins = ["tools.kernels"] if find_spec("nbval") else []
# Their asserts report values, as those of a test file do.
pytest.register_assert_rewrite("tests.claims")

# Unsolved on purpose: tests/test_exercises.py and tests/deep/test_projects.py run them.
collect_ignore_glob = ["notebooks/exercises/*", "notebooks/projects/p*.ipynb"]
collect_ignore_glob += ["notebooks/*.py", "my/*", "*.ipynb_checkpoints*"]
