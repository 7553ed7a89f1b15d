"""The files of the project: what git has of them, and a copy."""

import os
import shutil
import subprocess

import pytest

from tools.setting import ROOT

needs_posix = pytest.mark.skipif(os.name == "nt", reason="its tools are shell scripts")
needs_make = pytest.mark.skipif(not shutil.which("make"), reason="make is not installed")


def text(name):
    return (ROOT / name).read_text(encoding="utf-8")


def tracked():
    """Every file that git has or would add."""
    command = ["git", "ls-files", "-co", "--exclude-standard", "-z"]
    try:
        listing = subprocess.run(command, cwd=ROOT, capture_output=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("not a git checkout")
    return [name for name in listing.decode().split("\0") if name and (ROOT / name).exists()]


def copied(tree):
    """A copy of every file that git has or would add, in the new folder `tree`."""
    for name in tracked():
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tree / name)
    return tree
