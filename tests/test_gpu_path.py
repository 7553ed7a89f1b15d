"""The way to a GPU, without one: what it needs is on a bare machine, and the path that the package
takes there, forced on NumPy, passes the tests of the CPU's."""

import ast
import functools
import os
import re
import subprocess
import sys

import numpy as np
import pytest

from performer_course import _blocks, _causal, _stable, features, near_far
from tests.support.checkout import tracked
from tools.setting import ROOT

from .test_attention import (  # noqa: F401
    test_a_state_is_the_three_numbers_of_its_definition,
    test_any_chunk_gives_the_same_rows,
    test_any_split_and_any_order_of_merging_agree,
    test_followed_in_any_parts_the_rows_are_the_causal_ones,
    test_half_precision_loses_its_rounding_and_no_more,
    test_heads_with_directions_of_their_own_are_the_heads_one_by_one,
    test_leading_axes_broadcast,
    test_taylor_attention_weighs_by_the_cut_series,
    test_the_fast_path_equals_the_textbook,
    test_the_null_baseline_is_the_mean_of_what_a_row_sees,
    test_the_relative_variance_is_the_mean_over_all_pairs,
    test_what_a_mask_hides_is_never_seen_not_even_nan,
)
from .test_features import (  # noqa: F401
    test_a_set_of_directions_for_each_head_gives_the_heads_one_by_one,
)
from .test_near_far import (  # noqa: F401
    small_blocks,
    test_near_field_in_blocks_is_the_softmax_over_the_band,
)
from .test_random_features import (  # noqa: F401
    test_any_shape_in_any_step_gives_the_same,
    test_features_written_into_an_array_are_the_same,
    test_sharp_features_keep_the_dtype_and_take_batches,
)

# A machine with a GPU and little else

NEEDED = {"array_api_compat", "jaxtyping", "numpy", "scipy", "threadpoolctl", "wadler_lindig"}
PYTEST = {"pytest", "_pytest", "iniconfig", "packaging", "pluggy", "py", "pygments"}
OURS = {"conftest", "performer_course", "tests", "tools"}

BARE = """
import runpy, sys, types
from importlib.machinery import BuiltinImporter, FrozenImporter, PathFinder

class Bare(PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        top = name.partition(".")[0]
        here = top in {allowed} or top.startswith("_sysconfigdata")
        return PathFinder.find_spec(name, path, target) if here else None

sys.meta_path[:] = [BuiltinImporter, FrozenImporter, Bare]
"""

FAKE = """
class Zeros:
    def __add__(self, other):
        return types.SimpleNamespace(get=lambda: None)

for name in ("cupy", "array_api_compat.cupy"):
    sys.modules[name] = types.ModuleType(name)
sys.modules["cupy"].is_available = lambda: True
sys.modules["cupy"].zeros = lambda size: Zeros()
"""

COLLECT = """
import pytest
options = ["-o", "addopts=", "-p", "no:cacheprovider", "--collect-only", "-q", "-rs"]
raise SystemExit(pytest.main([*options, "-m", "gpu", "tests/test_gpu.py"]))
"""


def on_a_bare_machine(program, more=()):
    """What a fresh Python says that finds no module but its own, those NEEDED and `more`."""
    allowed = set(sys.stdlib_module_names) | NEEDED | OURS | set(more)
    return subprocess.run(
        [sys.executable, "-c", BARE.format(allowed=allowed) + program],
        cwd=ROOT,
        env=os.environ | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )


def test_the_tests_for_a_gpu_are_found_on_a_bare_machine_that_has_one():
    run = on_a_bare_machine(FAKE + COLLECT, PYTEST)
    found = {line.partition("::")[2].partition("[")[0] for line in run.stdout.splitlines()} - {""}
    tree = ast.parse((ROOT / "tests/test_gpu.py").read_text(encoding="utf-8"))
    functions = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    assert found == {name for name in functions if name.startswith("test_")}, run.stdout
    assert run.returncode == 0


def test_without_a_gpu_they_say_why_they_are_skipped():
    run = on_a_bare_machine(COLLECT, PYTEST)
    assert re.search(r"SKIPPED.* tests/test_gpu.py:\d+: the backend 'cupy' needs", run.stdout)


def test_the_benchmark_runs_on_a_bare_machine(tmp_path):
    path = tmp_path / "dry.json"
    main = f"runpy.run_path('benchmarks/gpu.py')['main'](['--dry-run', {str(path)!r}])"
    run = on_a_bare_machine(main)
    assert run.returncode == 0, run.stderr
    assert path.exists()


def test_no_text_has_the_course_fetched_from_elsewhere():
    """Nothing is published under its name: anybody could take it and put anything there."""
    named = re.compile(rb"performer_course\[|install (?:-\S+ )*['\"]?performer.course\b")
    assert [name for name in tracked() if named.search((ROOT / name).read_bytes())] == []


# The package's own path, on NumPy taken for a GPU: the tests above that are imported

SMALL = {
    _blocks: {"DEVICE_CHUNK": 8, "DEVICE_BLOCK": 16},
    _causal: {"DEVICE_BLOCK": 4, "LEAST": 2},
    _stable: {"PARTS": 3},
    features: {"GPU_STEP": 40},
    near_far: {"GPU_ROWS": 40, "GPU_KEYS": 50},
}
ASKED = {"is_free_to_read": False, "is_on_gpu": True}


@pytest.fixture(scope="module", autouse=True)
def gpu():
    """Every array seems to be on a GPU: nothing is free to read, and steps are a GPU's, tiny."""
    with pytest.MonkeyPatch.context() as patch:
        for module in SMALL:
            for question in ASKED.keys() & vars(module).keys():
                patch.setattr(module, question, functools.partial(answered, question))
            for name, size in SMALL[module].items():
                patch.setattr(module, name, size)
        yield


def answered(question, x):
    return ASKED[question]


def test_each_size_of_a_gpu_is_made_small():
    a_size = re.compile(r"(?:DEVICE|GPU)_|LEAST$|PARTS$")
    sizes = {(module, name) for module in SMALL for name in vars(module) if a_size.match(name)}
    assert sizes == {(module, name) for module, names in SMALL.items() for name in names}
    names = [path.stem for path in (ROOT / "performer_course").glob("*.py")]
    asking = {name for name in names if re.search("is_(on_gpu|free_to_read)\\(", source(name))}
    forced = {module.__name__.partition(".")[2] for module in SMALL}
    # The checks of arguments may look at values on NumPy, whichever path is taken then.
    assert asking - forced == {"_arguments", "backend"}


def source(name):
    return (ROOT / f"performer_course/{name}.py").read_text(encoding="utf-8")


def test_a_gpu_takes_features_in_steps_of_its_own(monkeypatch):
    taken = []
    monkeypatch.setattr(features, "side_by_side", lambda task, parts, x: taken.extend(parts))
    features.fourier(np.ones((12, 3)), np.ones((4, 3)))  # 8 features per row, 40 in a step
    assert taken == [0, 5, 10]
