"""A model of speech with each way to attend: seconds of its attention, and of its encoder.

    python benchmarks/speech.py [--runs 7]    after `make model`

Whisper tiny.en, 1,500 tokens, 4 blocks of 6 heads of d = 64, float32, on the sentences of the
course; NumPy on one pinned core, candidates interleaved, medians of CPU time. PyTorch's
scaled_dot_product_attention, where it is installed, has the same q, k and v. Writes speech.json
beside this file.
"""

import sys

import harness
import numpy as np
from harness import environment, interleaved, pin
from threadpoolctl import threadpool_limits

sys.path.insert(0, str(harness.HERE.parent))

from performer_course.models import speech
from tools.record import hearing


def candidates(lesson_18, given):
    """name → attend(i, q, k, v)."""
    middle = hearing.centres(given)
    found = {
        "softmax": lesson_18.softmax,
        "mean(V)": lesson_18.uniform,
        "FAVOR+, m = 64": lesson_18.published(64, 0),
        "FAVOR+, m = 256": lesson_18.published(256, 0),
    }
    for band in (8, 16, 24, 32, 64):
        found[f"window, band {band}"] = lesson_18.window(band)
        found[f"window and mean(V), band {band}"] = hearing.mixed(lesson_18, given, band)
        found[f"near and mean key, band {band}"] = lesson_18.near_and_mean_key(band)
    found["near and clusters, band 24"] = lesson_18.near_and_clusters(24, middle)
    for m in (16, 64, 256):
        found[f"near and features, band 24, m = {m}"] = lesson_18.near_and_features(24, m, 0)
    return found


def measure(runs):
    lesson_18 = hearing.lesson(18, tag="methods")
    weights, (asked, known) = speech.load(speech.find()), hearing.clips()
    sound, given = asked[0][0], [hearing.heads(weights, known[0])]
    q, k, v = (np.ascontiguousarray(x) for x in hearing.heads(weights, sound))
    ways, torch = candidates(lesson_18, given), harness.sdpa()
    if torch is not None:
        np.testing.assert_allclose(
            torch(0, q[0], k[0], v[0]), ways["softmax"](0, q[0], k[0], v[0]), atol=1e-4
        )
        ways["PyTorch's SDPA"] = torch

    def attention(attend):
        return lambda: [attend(i, q[i], k[i], v[i]) for i in range(4)]

    pin()
    found = {"runs": runs, "environment": environment()}
    found["attention"] = interleaved(runs, {n: attention(a) for n, a in ways.items()})
    encoders = {n: lambda a=a: speech.encode(weights, sound, a) for n, a in ways.items()}
    found["encoder"] = interleaved(runs, encoders)
    return found


def report(found):
    """The table, as text."""
    lines = [f"{'milliseconds':38} attention   encoder   times as fast as softmax"]
    for name in found["attention"]:
        a, e = (found[part][name] for part in ("attention", "encoder"))
        ratios = (found[part]["softmax"] / found[part][name] for part in ("attention", "encoder"))
        lines.append(
            f"{name:38}{1e3 * a:10.0f}{1e3 * e:10.0f}" + "".join(f"{x:12.2f}" for x in ratios)
        )
    lines += ["", *(f"{key:20}{value}" for key, value in found["environment"].items())]
    return "\n".join(lines)


def main():
    chosen = harness.parser(__doc__, runs=(7, "rounds of each timing")).parse_args()
    with threadpool_limits(1):
        found = measure(chosen.runs)
    print(report(found))
    harness.write(found, "speech")


if __name__ == "__main__":
    main()
