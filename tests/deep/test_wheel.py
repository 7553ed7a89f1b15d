"""The package as others install it: from a wheel, without the course and outside its folder."""

import os
import subprocess
import sys

import numpy as np
import pytest

from tests.support.checkout import copied, tracked
from tests.test_project import PROJECT

OUTSIDE = """
import numpy as np, performer_course as p
from performer_course.models import antibody
from performer_course.teaching import data
shape = p.features.fourier(np.ones((3, 2)), np.ones((4, 2))).shape
print(p.__file__, p.__version__, antibody.find(), shape)
data.text()
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """A folder with the package and nothing else of the course."""
    work = tmp_path_factory.mktemp("wheel")
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "install", "-q"]
    pip += ["--no-deps", "--no-build-isolation", "--no-compile", "--target", work / "site"]
    subprocess.run([*pip, copied(work / "tree")], cwd=work, check=True)
    return work / "site"


def run(site, *command):
    """What a command says beside the installed package."""
    known = {"cwd": site.parent, "env": os.environ | {"PYTHONPATH": str(site)}}
    return subprocess.run(command, capture_output=True, text=True, **known)


def test_a_wheel_holds_every_file_of_the_package_and_no_other(site):
    held = {path.relative_to(site).as_posix() for path in site.rglob("*") if path.is_file()}
    held = {name for name in held if name != "bin/performer-card" and ".dist-info/" not in name}
    own = {name for name in tracked() if name.startswith("performer_course/")}
    assert held == own | {"performer_course/py.typed"}


def test_what_is_installed_computes_and_says_that_data_need_a_clone(site):
    done = run(site, sys.executable, "-c", OUTSIDE)
    found = f"{site}/performer_course/__init__.py {PROJECT['version']} None (3, 8)"
    assert done.stdout.strip() == found, done.stderr
    assert "is not there: data come with a clone" in done.stderr.splitlines()[-1]


def test_the_decision_card_is_a_command(site):
    np.savez(site.parent / "heads.npz", **dict.fromkeys("qkv", np.eye(40, 4)))
    command = str(site / "bin/performer-card")
    assert run(site, command, "--help").stdout.startswith("usage: performer-card [-h] ")
    assert "\nVerdict: " in run(site, command, "heads.npz").stdout
