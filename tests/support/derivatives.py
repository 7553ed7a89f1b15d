"""What runs under another library's compiler or derivative: cases, and what NumPy says of them.

A case is a function of arrays alone. `agree` asks a library for the results of a case and for the
gradient of a weighted sum of them. NumPy gives the results too; the gradient must give the slope
that NumPy sees along a random direction, for one array at a time, so that none is forgotten.
"""

import itertools
import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from performer_course import attention, features, near_far, transformer
from tests.support.examples import (
    CONFIG,
    device_functions,
    example,
    label,
    leaves,
    tree_map,
    variants,
)

MODULES = {module.__name__ for module in (attention, features, transformer)}

# Half the length of a central difference. It errs by STEP²/6 of a third derivative and by the
# rounding of the sum over STEP, both about 1e-11; the tolerance leaves room for third derivatives
# of 1e4, and a gradient that forgets a term is off by about 1.
STEP, TOLERANCE = 1e-5, 1e-7


class Case(NamedTuple):
    """call(*arrays) gives the results, a list; `arrays` are of NumPy, masks and tokens too."""

    name: str
    call: Callable
    arrays: list


def case(name, function, arguments) -> Case:
    """`function` at `arguments`, as a function of the arrays in them, in their order."""

    def call(*arrays):
        given = iter(arrays)
        return leaves(function(**tree_map(lambda _: next(given), arguments)))

    return Case(name, call, [x for x in leaves(arguments) if hasattr(x, "shape")])


def surface() -> list[Case]:
    """Each public function of attention, features and transformer, without options and with all.

    But `out`, which is written into: no library differentiates that.
    """
    found = []
    for function in device_functions():
        if function.__module__ in MODULES:
            choices = [options for options in variants(function) if "out" not in options]
            for options in dict.fromkeys((choices[0], choices[-1])):
                arguments = example(function, np.random.default_rng(0), options)
                found.append(case(" ".join((label(function), *options)), function, arguments))
    own = near_far.joint_attention, near_far.joint_favor_attention, near_far.follow_window
    for function in (*own, attention.favor_attention, attention.follow, attention.read):
        options = ("sinks", "causal", "mean_key")
        given = example(function, np.random.default_rng(0), options, batch=(4,))
        few = {name: given[name] for name in ("k", "v", "W", "state") if name in given}
        given |= tree_map(lambda x: x[:2], few)  # two key heads for four query heads
        found.append(case(f"{label(function)}, grouped queries", function, given))
    config = transformer.Config(**CONFIG, attention="favor")
    arguments = example(transformer.forward, np.random.default_rng(0), ("key_mask",))
    arguments["config"] = config
    return [*found, case("transformer.forward favor", transformer.forward, arguments)]


def hidden() -> list[Case]:
    """Each attention, causal and not, with keys of any size, and NaN and ∞ behind its mask.

    Of the first sequence the first rows see no key where causal; of the second no row ever does.
    One W (m, d) serves both sequences.
    """
    rng = np.random.default_rng(1)
    q, k, v = (3 * rng.normal(size=(2, 9, width)) for width in (4, 4, 3))
    mask = rng.uniform(size=(2, 9)) < 0.6
    mask[0, :3] = mask[1] = False
    k[~mask], v[~mask] = math.nan, math.inf
    phi = {"phi_q": np.exp(q), "phi_k": np.exp(k)}
    own = {"favor_attention": {"W": rng.normal(size=(6, 4))}, "linear_attention": {}}
    found = []
    for name, causal in itertools.product(
        ("softmax", "linear", "uniform", "taylor", "favor"), (False, True)
    ):
        function = getattr(attention, f"{name}_attention")
        rows = phi if name == "linear" else {"q": q, "k": k}
        given = rows | {"v": v} | own.get(function.__name__, {}) | {"key_mask": mask}
        where = f"{name}, {'causal' if causal else 'all-to-all'}"
        found.append(case(where, function, given | {"causal": causal}))
    return found


def agree(case, differentiate) -> None:
    """Assert that a library has NumPy's results and slopes.

    differentiate(call, arrays, weights) gives call(*arrays), and the gradient of the sum of these
    results times `weights` with respect to each floating array, all of it as NumPy arrays. A
    weight is None for a result that is not finite, which is left out of the sum.
    """
    rng, expected = np.random.default_rng(2), case.call(*case.arrays)
    weights = [rng.normal(size=x.shape) if np.isfinite(x).all() else None for x in expected]
    found, gradients = differentiate(case.call, case.arrays, weights)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-10, atol=1e-12)
    floating = [i for i, x in enumerate(case.arrays) if x.dtype.kind == "f"]
    for i, gradient in zip(floating, gradients, strict=True):
        assert np.isfinite(gradient).all()
        direction = rng.normal(size=gradient.shape)

        def along(step, i=i, direction=direction):
            moved = [x + step * direction if j == i else x for j, x in enumerate(case.arrays)]
            return weighed(case.call(*moved), weights)

        slope = (along(STEP) - along(-STEP)) / (2 * STEP)
        size = max(1.0, abs(slope), abs(along(0)))
        assert abs((gradient * direction).sum() - slope) < TOLERANCE * size, f"array {i}"


def weighed(results, weights):
    """The sum of the results times their weights, those without weight left out."""
    pairs = zip(results, weights, strict=True)
    return sum((x * weight).sum() for x, weight in pairs if weight is not None)


def agree_in(name, xp, compiled=lambda function: function) -> None:
    """Assert that attention takes that dtype and gives it back, summed in float32 in between."""
    rng, dtype = np.random.default_rng(0), getattr(xp, name)
    drawn = (rng.normal(size=(2, 9, width)).astype(np.float32) for width in (4, 4, 3))
    q, k, v = (xp.asarray(x, dtype=dtype) for x in drawn)
    W = rng.normal(size=(6, 4)).astype(np.float32)

    def wide(x):
        return np.asarray(xp.asarray(x, dtype=xp.float32))

    def causal(q, k, v, W):
        return attention.favor_attention(q, k, v, W, causal=True)

    found, expected = compiled(causal)(q, k, v, xp.asarray(W)), causal(*map(wide, (q, k, v)), W)
    assert found.dtype == dtype
    rounding = max(float(xp.finfo(dtype).eps), 20 * np.finfo(np.float32).eps)  # also of sums
    np.testing.assert_allclose(wide(found), expected, rtol=0, atol=rounding * abs(expected).max())
