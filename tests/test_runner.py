"""What every run of the tests stands on: one thread (deep/test_order.py: an order drawn anew)."""

import numpy as np
import pytest
from threadpoolctl import threadpool_info


def test_blas_keeps_to_one_thread_although_it_was_loaded_before_the_environment_was_set():
    np.eye(3) @ np.eye(3)
    pools = {pool["filepath"]: pool["num_threads"] for pool in threadpool_info()}
    if not pools:
        pytest.skip("this BLAS does not say how many threads it has")
    assert set(pools.values()) == {1}
