"""What lessons 00 to 04 say of all heads, draws and rivals is what they print, or follows."""

import math
import re

import numpy as np

from performer_course import kernels
from tools.lesson import find, read


def printed(number, words, *said):
    """The numbers after these words, in the one line that prints them; the text must say `said`."""
    lesson = read(find(number))
    text = " ".join(" ".join(lesson.texts).split())
    assert [part for part in said if part not in text] == []
    outputs = "\n".join(o.text for cell in lesson.cells for o in cell.outputs)
    (rest,) = re.findall(rf"(?m){words}(.*)$", outputs)
    return [float(found) for found in re.findall(r"\d+\.\d+|\d+", rest)]


def test_00_tells_the_loss_of_all_six_heads():
    median, _, low, _ = printed("00", "256 random directions(?=.*nine in ten)", "a factor of 1.5")
    assert f"{median:.1f}" == "1.5"
    assert low > 1  # "typically further off"
    assert printed("00", "above 1 on both antibodies:", "and on three others of six")[0] == 1 + 3
    trained = printed("00", "(?<=    ) 64 trained features", "two antibodies, 0.06 to 0.47")
    assert trained == [0.06, 0.47]


def test_03_compares_tails_at_equal_width():
    printed("03", "laplacian(?= +0.08)", "so that each is ½ at 1", "one in eleven")
    g, one = math.log(2), np.ones((1, 1))
    for kernel, gamma in ((kernels.gaussian, g), (kernels.laplacian, g), (kernels.cauchy, 1.0)):
        assert np.isclose(kernel(one, 0 * one, gamma), 0.5)
    assert round(math.pi / 2 / math.atan(g / 5)) == 11
    assert math.erfc(5 / math.sqrt(4 * g)) < 1e-4 < math.exp(-5) < 0.01  # Gaussian, Cauchy


def test_04_nystroem_is_usually_ahead_and_the_stream_halves_the_exact_error():
    exact = printed("04", "KernelRidge +3,000", "typically less than half")[2]
    sampler, nystroem = (
        printed("04", f"{name} +10,000")[3:] for name in ("RBFSampler", "Nystroem")
    )
    short, long = (printed("04", f"features, +{n},000 points") for n in (10, 100))
    assert nystroem[1] < min(sampler[0], short[1])  # its worst draw
    assert long[0] < exact / 2
    assert 0.7 < printed("04", "on a clock", "three in four")[0] < 0.8
