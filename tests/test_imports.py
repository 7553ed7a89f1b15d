"""What importing the package needs and takes; who imports whom is held by import-linter."""

import subprocess
import sys

from tools.setting import ROOT


def fresh(code):
    """A fresh Python that runs `code`."""
    return subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)


def test_the_package_imports_no_extra():
    loaded = fresh("import performer_course, sys; print(*sys.modules)").stdout.split()
    assert "performer_course.attention" in loaded
    assert {"torch", "jax", "matplotlib", "cupy"}.isdisjoint(loaded)


def test_what_needs_pytorch_says_how_to_get_it():
    said = fresh("import sys; sys.modules['torch'] = None; import performer_course.pytorch").stderr
    last = said.splitlines()[-1]
    assert last.startswith("ImportError: performer_course.pytorch needs PyTorch (")
    assert last.endswith("`make lab EXTRAS=torch` installs it")
