"""A run of the tests draws an order of files anew, says it, and says what was skipped."""

import os
import re
import shutil
import subprocess
import sys

import pytest

from tools.setting import ROOT

FILES = [f"test_{letter}.py" for letter in "abcdefgh"]
TOY = """\
import pytest

def test_second_by_name_first_in_the_file(): pass

@pytest.mark.skip(reason="it rains")
def test_first_by_name(): pass
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder of toy tests under the conftest of the course."""
    folder = tmp_path_factory.mktemp("toys")
    shutil.copy(ROOT / "conftest.py", folder)
    (folder / "pytest.ini").write_text("[pytest]\n")
    for name in FILES:
        (folder / name).write_text(TOY)
    return folder


def run(folder, *options):
    """What pytest prints about `folder`."""
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *options]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_a_seed_gives_an_order_of_files_and_the_tests_of_a_file_stay_as_they_stand(folder):
    orders = []
    for seed in (1, 2):
        printed = run(folder, "--collect-only", "-q", f"--order={seed}")
        listing = [line.split("::") for line in printed.splitlines() if "::" in line]
        files = [name for name, _ in listing]
        assert files[::2] == files[1::2]
        assert sorted(files[::2]) == FILES
        assert [test.startswith("test_second") for _, test in listing] == [True, False] * len(FILES)
        orders.append(files)
    assert orders[0] != orders[1]


def test_a_run_draws_one_order_for_all_workers_says_its_seed_and_ends_with_what_was_skipped(folder):
    printed = run(folder, "-n", "2", "--dist=loadfile")  # fails where workers have unlike orders
    seeds = re.findall(r"--order (\d+)", printed)
    assert len(seeds) == 2  # before the first test, and at the end
    assert len(set(seeds)) == 1
    assert printed.count(f"{len(FILES)} skipped: it rains\n") == 1
