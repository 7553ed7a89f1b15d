"""What importing the package needs and takes; who imports whom is held by import-linter."""

import os
import subprocess
import sys

import pytest

from tools.setting import ROOT


def fresh(code, **environment):
    """A fresh Python that runs `code`."""
    command, environment = [sys.executable, "-c", code], os.environ | environment
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, env=environment)


def test_the_package_imports_no_extra():
    loaded = fresh("import performer_course, sys; print(*sys.modules)").stdout.split()
    assert "performer_course.attention" in loaded
    assert {"torch", "jax", "matplotlib", "cupy", "scipy.stats"}.isdisjoint(loaded)


@pytest.mark.parametrize(
    ("module", "missing", "extra"),
    [
        ("pytorch", "torch", "torch"),
        ("huggingface", "transformers", "huggingface"),
        ("figures", "matplotlib", "lessons"),
        ("figures", "PIL", "lessons"),
        ("training", "optax", "training"),
    ],
)
def test_what_needs_an_extra_names_it(module, missing, extra):
    said = fresh(f"import sys; sys.modules['{missing}'] = None; import performer_course.{module}")
    last = said.stderr.splitlines()[-1]
    assert last.startswith(f"ImportError: performer_course.{module} cannot be imported (")
    assert last.endswith(f"`make lab EXTRAS={extra}` installs it")


def test_a_home_that_cannot_be_written_makes_no_lesson_say_so():
    assert fresh("import performer_course.figures", HOME="/proc/nope").stderr == ""
