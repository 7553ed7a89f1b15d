"""The path that the package takes on a GPU, forced on NumPy, passes the tests of the CPU's."""

import functools
import re

import numpy as np
import pytest

from performer_course import _blocks, _causal, _stable, features, near_far
from tools.setting import ROOT

from .test_attention import (  # noqa: F401
    test_a_state_is_the_three_numbers_of_its_definition,
    test_followed_in_any_parts_the_rows_are_the_causal_ones,
    test_half_precision_loses_its_rounding_and_no_more,
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
)

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
