"""What every test runs under: one thread, static figures, files in random order, no exercises."""

import os
import random
from collections import Counter
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
pytest.register_assert_rewrite("tests.claims", "tests.exercises.shared")

# Unsolved on purpose: tests/test_exercises.py and tests/deep/test_projects.py run them.
collect_ignore_glob = ["notebooks/exercises/*", "notebooks/projects/p*.ipynb"]
collect_ignore_glob += ["notebooks/*.py", "my/*", "*.ipynb_checkpoints*"]


def pytest_addoption(parser):
    parser.addoption("--order", type=int, help="the seed of the order of files (default: drawn)")


def pytest_configure(config):
    if hasattr(config, "workerinput"):
        config.option.order = config.workerinput["order"]
    elif config.option.order is None:
        config.option.order = random.SystemRandom().randrange(10_000)


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node):
    """Each worker of pytest-xdist has the order of the process that started it."""
    node.workerinput["order"] = node.config.option.order


def pytest_report_header(config):
    return f"files in random order: --order {config.option.order}"


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config, items):
    """The files in an order of their own, notebooks first, for some take long."""
    files = {}
    for item in items:
        files.setdefault(item.nodeid.partition("::")[0], []).append(item)
    order = sorted(files)
    random.Random(config.option.order).shuffle(order)
    order.sort(key=lambda name: not name.endswith(".ipynb"))
    items[:] = [item for name in order for item in files[name]]


def pytest_terminal_summary(terminalreporter, config):
    """What was skipped and why, a line for each reason; and how to have this order again."""
    skipped = terminalreporter.stats.get("skipped", [])
    reasons = Counter(report.longrepr[2].removeprefix("Skipped: ") for report in skipped)
    for reason, count in sorted(reasons.items()):
        terminalreporter.write_line(f"{count} skipped: {reason}")
    terminalreporter.write_line(f"files in the order of --order {config.option.order}")
