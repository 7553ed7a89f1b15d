"""What importing the package needs and takes; who imports whom is held by import-linter."""

import os
import subprocess
import sys

import pytest

import performer_course
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
    ("module", "missing", "extra", "names"),
    [
        ("pytorch", "torch", "torch", "torch"),
        ("huggingface", "transformers", "huggingface", "torch transformers"),
        ("teaching.figures", "matplotlib", "lessons", "matplotlib pillow"),
        ("teaching.figures", "PIL", "lessons", "matplotlib pillow"),
        ("teaching.training", "optax", "training", "jax optax tqdm"),
    ],
)
def test_what_needs_an_extra_names_its_packages_and_it(module, missing, extra, names):
    said = fresh(f"import sys; sys.modules['{missing}'] = None; import performer_course.{module}")
    last = said.stderr.splitlines()[-1]
    assert last.startswith(f"ImportError: performer_course.{module} cannot be imported (")
    assert f"): pip install {names} (in a clone of the course: make lab EXTRAS={extra})" in last


def test_a_package_that_is_not_installed_says_so_where_its_version_is_asked(monkeypatch):
    monkeypatch.setattr("sys.path", [])  # where metadata are looked for
    assert performer_course.__version__ == "0+unknown"
    assert not hasattr(performer_course, "version")


def test_a_home_that_cannot_be_written_makes_no_lesson_say_so():
    assert fresh("import performer_course.teaching.figures", HOME="/proc/nope").stderr == ""
