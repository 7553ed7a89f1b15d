"""Every claim about the near and the far field, beside the defects it must catch. Fixed seeds."""

import itertools
import math

import numpy as np

from performer_course.teaching import data
from tests.claims.harness import Part
from tests.claims.shared import problem
from tests.support.textbook import softmax_by_rows

PART = Part("Near and far field")
claim = PART.claim


@claim("""
    no-band: every key of the block is seen
        near_far: far = None if seen in sides else outside(band, causal, *at, first) => far = None
    band-one-wide: j ≥ i − band − 1
        near_far: k=diagonal - band - 1) => k=diagonal - band - 2)
    unscaled: no d^{−1/2}
        near_far: q[..., part, :], dtype, copy=False) / math.sqrt(d)
            => q[..., part, :], dtype, copy=False)
    ends-shifted: the band of the first rows is counted from the first key
        near_far: keys.shape[-2], part.start - seen.start => keys.shape[-2], band
    band-one-short: |i − j| < band
        near_far: k=diagonal - band - 1) => k=diagonal - band)
    band-to-the-left: the keys before a row alone
        near_far: k=diagonal + band + 1) => k=diagonal + 1)
    sees-the-next: row i sees key i + 1 where causal
        near_far: xp.triu(low, k=diagonal + 1) => xp.triu(low, k=diagonal + 2)
    causal-forgotten: row i sees j ≤ i + band
        near_far: causal, outside = bool(causal), => causal, outside = False,
    full-matrix: all L × L logits at once, then the band
        near_far: (GPU_ROWS, GPU_KEYS) if is_on_gpu(q) else (ROWS, KEYS) => (L, L)
""")
def the_near_field_is_the_softmax_over_its_band(p):
    """logits −∞ where |i − j| > band, or j > i too where causal; any length, any band; in less than
    2 MiB of scratch at L = 4096, where L × L logits take 64"""
    rng = np.random.default_rng(80)
    for L, band, causal in itertools.product((5, 150, 300), (0, 1, 6, 140, 400), (False, True)):
        q, k, v = problem(rng, L, 6)
        found = p.near_far.near_field(q, k, v, band, causal=causal)
        expected = softmax_by_rows(q, k, v, band=band, causal=causal)
        assert np.allclose(found, expected, rtol=1e-9, atol=1e-12), (L, band, causal)
    q = np.ones((4096, 8), dtype=np.float32)
    assert p.backend.peak(lambda: p.near_far.near_field(q, q, q, 64), q) < 2 * 2**20


@claim("""
    band-of-zeros: logits outside the band are 0, not −∞, and keep weight e^0
        near_far: logits = logits_of(xp, queries, keys, far, mask)
            => logits = logits_of(xp, queries, keys, None, mask); logits = xp.where(far < 0,
                xp.zeros_like(logits), logits)
""")
def zeros_outside_the_band_leak(p):
    """softmax of logits set to 0 outside five diagonals, L = 64: .883 ± .008 of the mass leaves
    them; with −∞ nothing does"""
    rng, leaks = np.random.default_rng(81), []
    near = np.abs(np.subtract.outer(range(64), range(64))) <= 2
    for _ in range(100):
        q, k, _ = problem(rng, 64, 16)
        zeroed = np.exp(np.where(near, q @ k.T / 4, 0))
        leaks.append(np.sum(zeroed * ~near / zeroed.sum(1, keepdims=True)) / 64)
        A = p.near_far.near_field(q, k, np.eye(64), 2)
        assert np.allclose((A * near).sum(1), 1)
    assert abs(np.mean(leaks) - 0.8831) < 5 * 0.0076 / 10
    assert abs(np.std(leaks) - 0.0076) < 5 * 0.0076 / math.sqrt(200)


@claim("""
    half-precision-sums: logits and sums in the dtype of the inputs
        near_far: (L, d), dtype, (band, sinks) = q.shape[-2:], sum_dtype(xp, q, k, v), near
            => (L, d), dtype, (band, sinks) = q.shape[-2:], q.dtype, near
""")
def half_precision_sums_in_single(p):
    """float16: band 300, values of 1000, the mean comes out to the last bit of float16"""
    q, v = np.zeros((700, 4), dtype="f2"), np.full((700, 1), 1000, dtype="f2")
    assert np.array_equal(p.near_far.near_field(q, q, v, 300), v)


@claim("""
    sinks-forgotten: the first keys are exact only where the window holds them
        near_far: sides = steps(k, width, stop=min(sinks, start)) => sides = []
""")
def a_window_without_the_sink_divides_by_too_little(p):
    """each row puts .6 on token 0, whose value is 0, and .4 on its window: with the sink the output
    is .4 times the mean of the window, and without it 1/.4 times as long"""
    rng, (L, d) = np.random.default_rng(89), (300, 8)
    q, k, v = np.zeros((L, d)), np.zeros((L, d)), rng.normal(size=(L, d))
    q[:, 0], k[0, 0], v[0] = math.sqrt(d) * math.log(1.5 * 16), 1, 0
    mean = np.array([v[i - 15 : i + 1].mean(axis=0) for i in range(16, L)])
    for sinks, share in ((1, 0.4), (0, 1)):
        found = p.near_far.near_field(q, k, v, 15, sinks=sinks, causal=True)
        assert np.allclose(found[16:], share * mean)


@claim("""
    counted-by-index: the first keys of a text padded on its left are its padding
        near_far: xp.argsort(at + hidden * L, axis=-1) => xp.argsort(at, axis=-1)
    rows-not-put-back: rows in the order in which tokens were counted
        near_far: xp.argsort(order, axis=-1)) => order)
    hidden-rows-look-ahead: a causal row before the text sees all of it
        near_far: if not causal: => if True:
""")
def padding_on_either_side_changes_no_row(p):
    """a window with sinks and a mean key, nine hidden tokens before, after and inside the text: its
    rows are those of the text alone, and a causal row before it is 0"""
    rng, shown = np.random.default_rng(90), np.ones((3, 60), dtype=bool)
    shown[0, :9] = shown[1, -9:] = shown[2, 20:29] = False
    for mask, causal in itertools.product(shown, (False, True)):
        q, k, v = problem(rng, 60, 6)
        for attend in (p.near_far.near_field, p.near_far.joint_attention):
            rows = attend(q, k, v, 4, sinks=3, causal=causal, key_mask=mask)
            alone = attend(q[mask], k[mask], v[mask], 4, sinks=3, causal=causal)
            assert np.allclose(rows[mask], alone, rtol=1e-9, atol=1e-12)
            assert mask[0] or np.any(rows[:9]) != causal


@claim("""
    mean-key-unscaled: qᵀk̄ without d^{−1/2}
        near_far: * mean, axis=-1) / math.sqrt(q.shape[-1]) => * mean, axis=-1)
    no-band
""")
def one_mean_key_lowers_the_error_of_a_window_on_learned_heads(p):
    """errors over mean(V)'s by a window of a quarter of the pairs (speech: a sixteenth), and with
    one mean key in its denominator: lower in 12 of 12 antibody cases, 2 of 2 of speech, 511 of 512
    of a decoder, late and early; medians 1.55 and .39, 1.39 and .29, .12 and .08, .67 and .33"""
    decoder = {
        when: [a.reshape(8, 32, 32, 8) for a in data.learned(when)] for when in ("late", "early")
    }
    cases = {
        "antibody": (data.antibody_heads(), 15, False),
        "speech": (data.speech_heads(), 47, False),
        "late": (decoder["late"], 3, True),
        "early": (decoder["early"], 3, True),
    }
    lower, medians = {}, {}
    for kind, ((q, k, v), band, causal) in cases.items():
        exact = p.attention.softmax_attention(q, k, v, causal=causal)
        null = ((p.attention.uniform_attention(q, k, v, causal=causal) - exact) ** 2).sum((-2, -1))
        found = [
            ((attend(q, k, v, band, causal=causal) - exact) ** 2).sum((-2, -1)) / null
            for attend in (p.near_far.near_field, p.near_far.joint_attention)
        ]
        lower[kind] = int((found[1] < found[0]).sum())
        medians[kind] = [np.median(x) for x in found]
    assert lower == {"antibody": 12, "speech": 2, "late": 255, "early": 256}, lower
    expected = {"antibody": (1.55, 0.39), "speech": (1.39, 0.29), "late": (0.12, 0.08)}
    for kind, values in (expected | {"early": (0.67, 0.33)}).items():
        assert np.allclose(medians[kind], values, atol=0.006), medians


test_claim = PART.test()
