"""Write speech_*.csv, speech_said.json, speech_heads.npz: lesson 18's model, each way to attend.

    python -m tools.record.hearing    after `make model`; needs the programs flite and espeak-ng

All 24 heads of the encoder use one method, by the lesson's own functions. Judged on the five
sentences that were read, joined to one clip, and on six clips of some 25 s by three synthetic
voices, which were used for nothing else; what a way has to know beforehand it has from two clips of
a fourth voice, other texts. Words wrong, and the mean ln P a token of the text that was meant. Then
what each head looks at while the sentences are read, and how far each way is off there; and the
antibodies of lesson 17 by a window and one mean key. q, k and v of two heads are kept. Last, five
other sentences by two voices of each program, at two speeds, alone and in one clip: words wrong,
and the CPU time of one thread in the 24 heads; and the weight that mean keys find on four sounds.
"""

import itertools
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import numpy as np
from scipy import signal
from scipy.cluster.vq import kmeans2
from scipy.io import wavfile
from scipy.special import logsumexp, softmax
from threadpoolctl import threadpool_limits
from tqdm import tqdm

from performer_course.models import antibody, speech
from performer_course.teaching import data
from tools.record.curve import share
from tools.record.directions import learned
from tools.record.shared import (
    beside,
    given_to,
    halves,
    in_threads,
    lesson,
    real_weights,
    recorder,
    with_error,
)

KEPT = (2, 4), (2, 2)  # the heads whose q, k and v are kept
TEXTS = (Path(__file__).with_name("hearing.txt")).read_text(encoding="utf-8").split("\n\n")
STEPS, QUERIES = 300, 256  # of what is trained
VOICES, CALIBRATION = ("slt", "rms", "awb"), "kal16"
DRAWS, BANDS, COUNTS, CENTRES = 3, (8, 16, 24, 32, 64), (16, 64, 256), 16
FAR = np.abs(np.subtract.outer(np.arange(1500), np.arange(1500))) > 24
OTHER_VOICES = {"slt": (1, 1.25), "rms": (1,), "en-us": (1, 1.25), "en-gb-x-rp": (1,)}
OTHER_WAYS = {
    "exact": ("softmax", 0, 0, 0),
    "window 24": ("window", 24, 0, 0),
    "and mean key": ("near and mean key", 24, 1, 0),
    "and share": ("window and mean(V)", 24, 0, 0),
    "and 16 centres": ("near and clusters", 24, CENTRES, 0),
    "window 64": ("window", 64, 0, 0),
    "64 and mean key": ("near and mean key", 64, 1, 0),
}


def spoken(text: str, voice: str, stretch: float = 1.25) -> np.ndarray:
    """A text, read by a voice of flite, or of espeak-ng: those are named after a language."""
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder, "said.wav"))
        command = f"flite --setf duration_stretch={stretch} -voice {voice} -o {path} -t"
        if "-" in voice:
            command = f"espeak-ng -v {voice} -s {175 / stretch:.0f} -w {path}"
        subprocess.run([*command.split(), text], check=True)
        rate, samples = wavfile.read(path)
    sound = samples.astype(np.float32) / 2**15
    return signal.resample_poly(sound, speech.RATE, rate).astype(np.float32)


def joined(alone: list) -> tuple[np.ndarray, str]:
    """(sound, text) of several in one, a quarter of a second of silence after each."""
    sounds, texts = zip(*alone, strict=True)
    gap = np.zeros(speech.RATE // 4, np.float32)
    return np.concatenate([x for sound in sounds for x in (sound, gap)]), " ".join(texts)


def clips() -> tuple[list, list]:
    """[(sound, text)] to judge by, the sentences that were read first; sounds to fit by."""
    texts = [" ".join(text.split()) for text in TEXTS]
    found = [(spoken(text, VOICES[n % 3]), text) for n, text in enumerate(texts[:6])]
    return [joined(data.sentences()), *found], [spoken(text, CALIBRATION) for text in texts[6:8]]


def heads(weights: dict, sound: np.ndarray) -> list[np.ndarray]:
    """q, k, v of all heads: (4, 6, 1500, 64) each."""
    given = given_to(speech.attend_exact, lambda attend: speech.encode(weights, sound, attend))
    return [np.stack(x) for x in zip(*given, strict=True)]


def mixed(lesson_18: ModuleType, given: list, band: int) -> Callable:
    """The window and mean(V), with the share of each head that is nearest to its softmax."""
    near, far = lesson_18.window(band), lambda i, q, k, v: v.mean(axis=-2, keepdims=True)
    return lesson_18.mixture(share(near, far, given, lesson_18.softmax), near)


def centres(given: list) -> np.ndarray:
    """Sixteen centres of the keys of each head: (4, 6, 16, 64)."""
    keys = np.concatenate([k[:, :, ::3] for _, k, _ in given], axis=2)
    found = np.empty((*keys.shape[:2], CENTRES, keys.shape[-1]), np.float32)
    for at in np.ndindex(keys.shape[:2]):
        found[at], _ = kmeans2(keys[at], CENTRES, minit="++", seed=0)
    return found


def trained(given: list, m: int) -> np.ndarray:
    """Directions [ω, b] (4, 6, m, 65), trained for each head on some queries and all keys."""
    rng = np.random.default_rng([18, m])

    def batches():
        while True:
            q, k, _ = given[rng.integers(len(given))]
            yield q[:, :, rng.integers(q.shape[2], size=QUERIES)], k

    third = [[x[:, :, ::3] for x in one] for one in given]
    return learned(rng, third, m, batches, STEPS)[1]


def ways(lesson_18: ModuleType, given: list) -> dict[tuple, Callable]:
    """{(way, band, features, draw): attend}, in the order of the table."""
    found = {("softmax", 0, 0, 0): lesson_18.softmax, ("mean(V)", 0, 0, 0): lesson_18.uniform}
    draws = {(m, draw): lesson_18.published(m, draw) for m in (64, 256) for draw in range(DRAWS)}
    found |= {("FAVOR+", 0, *at): attend for at, attend in draws.items()}
    found |= {("centred", 0, *at): lesson_18.centred(attend) for at, attend in draws.items()}
    found["trained", 0, 64, 0] = lesson_18.by_directions(trained(given, 64))
    middle = centres(given)
    for band in BANDS:
        found["window", band, 0, 0] = lesson_18.window(band)
        found["window and mean(V)", band, 0, 0] = mixed(lesson_18, given, band)
        found["near and mean key", band, 1, 0] = lesson_18.near_and_mean_key(band)
        found["near and clusters", band, CENTRES, 0] = lesson_18.near_and_clusters(band, middle)
    for key in itertools.product((16, 24), COUNTS, range(DRAWS)):
        found["near and features", *key] = lesson_18.near_and_features(*key)
    return found


def each(ways: dict, given: list) -> Iterator[tuple[dict, list, dict]]:
    """For each head: where it is, its q, k and v, and its outputs by `ways`."""
    for block, some in enumerate(zip(*given, strict=True)):
        found = {name: attend(block, *some) for name, attend in ways.items()}
        for head, one in enumerate(zip(*some, strict=True)):
            yield {"block": block, "head": head}, one, {n: x[head] for n, x in found.items()}


def errors(found: dict, asked: slice | np.ndarray = slice(None)) -> dict[str, float]:
    """Normalised errors of outputs on the queries asked; "exact" and "mean(V)" are among them."""
    off = {n: ((x - found["exact"])[asked] ** 2).sum() for n, x in found.items() if n != "exact"}
    most = off.pop("mean(V)")
    return {f"error, {name}": x / most for name, x in off.items()}


def some(lesson_18: ModuleType, window: str) -> dict[str, Callable]:
    """Softmax, mean(V) and a window of that name."""
    softmax, uniform = lesson_18.softmax, lesson_18.uniform
    return {"exact": softmax, "mean(V)": uniform, window: lesson_18.window(24)}


def anatomy(lesson_18: ModuleType, known: list, given: list) -> Iterator[dict]:
    """Each head on one sound: its weight within 24 tokens, each method's normalised error."""
    few = some(lesson_18, "window") | {"window and mean(V)": mixed(lesson_18, known, 24)}
    few["near and mean key"] = lesson_18.near_and_mean_key(24)
    for line, (q, k, _), found in each(few, given):
        near = (softmax(q @ k.T / 8, axis=1) * ~FAR).sum(axis=1).mean()
        yield line | {"within 24": f"{near:.4f}"} | errors(found)


def pairs(found: dict) -> list[dict]:
    """How far the mean ln P of a clip by a fitted share lies above that by other far fields.

    One mean, and its standard error, over the six clips of synthetic voices, of each band.
    """
    rows, others = [], {"near and mean key": 1, "near and clusters": CENTRES}
    for band, (way, m) in itertools.product(BANDS, others.items()):
        keys = ("window and mean(V)", band, 0, 0), (way, band, m, 0)
        fitted, other = ([found[key, n][1].mean() for n in range(1, 7)] for key in keys)
        less, error = with_error(np.subtract(fitted, other))
        rows.append({"band": band, "way": way, "clips": 6, "ln P": less, "error": error})
    return rows


def of_antibodies(lesson_18: ModuleType) -> list[dict]:
    """Perplexity of the antibodies' hidden residues, by window and by window with one mean key."""
    ways = {("exact", 0): antibody.attend_exact}
    for band in (4, 8, 16, 20, 25, 30, 37):
        ways["window", band] = lesson_18.window(band)
        ways["near and mean key", band] = lesson_18.near_and_mean_key(band)
    weights, scores = real_weights(), lesson(17, tag="methods").scores
    found = {key: scores(weights, attend) for key, attend in ways.items()}
    exact = found["exact", 0]
    return [{"way": x, "band": n, **beside(y, exact=exact)} for (x, n), y in found.items()]


def once(attend: Callable, took: list) -> Callable:
    """attend for one sound, which may be encoded twice, and took[-1] its seconds of this thread."""
    known = {}
    took.append(0.0)

    def remembered(i, q, k, v):
        if i not in known:
            start = time.thread_time()
            known[i] = attend(i, q, k, v)
            took[-1] += time.thread_time() - start
        return known[i]

    return remembered


def other_sounds(voices: dict = OTHER_VOICES) -> dict[tuple, dict[str, list]]:
    """(voice, stretch) → what is judged: [(sound, text)] of sentences alone, and in one clip."""
    found = {("read", 1): data.sentences()}
    for voice, stretch in [(x, y) for x in voices for y in voices[x]]:
        found[voice, stretch] = [(spoken(x, voice, stretch), x) for x in TEXTS[8].splitlines()]
    return {key: {"alone": x, "one clip": [joined(x)]} for key, x in found.items()}


def of_others(weights: dict, lesson_18: ModuleType, few: dict, asked: dict) -> Iterator[dict]:
    """Words wrong of each voice at each speed, and the median time of a sound, each way."""
    for (voice, stretch), kinds in tqdm(asked.items()):
        for (kind, some), way in itertools.product(kinds.items(), [*few, "and two keys"]):
            total, wrong, took = 0, 0, []
            for sound, text in some:
                attend = once(few.get(way) or two_keys(lesson_18, sound), took)
                total += len(lesson_18.words(text))
                wrong += lesson_18.word_errors(speech.transcribe(weights, sound, attend), text)
            line = {"voice": voice, "stretch": stretch, "sound": kind, "way": way}
            yield line | {"words": total, "wrong": wrong, "ms": f"{1e3 * np.median(took):.0f}"}


def two_keys(lesson_18: ModuleType, sound: np.ndarray) -> Callable:
    return lesson_18.near_and_two_keys(24, lesson_18.loud(sound))


def outside(weights: dict, lesson_18: ModuleType, asked: dict) -> Iterator[dict]:
    """Of each head on four sounds, for loud queries: the weight outside a window, and estimates.

    Then normalised errors: of three methods, and of a window beside the mean of the values outside
    with the exact weight, and beside the exact values with the mean key's weight.
    """
    n = FAR.sum(axis=1)
    for voice, kind in itertools.product(("read", "en-us"), ("alone", "one clip")):
        sound, _ = asked[voice, 1][kind][2 if kind == "alone" else 0]
        loud, few = lesson_18.loud(sound), some(lesson_18, "window 24")
        few["and mean key"] = lesson_18.near_and_mean_key(24)
        few["and two keys"] = two_keys(lesson_18, sound)
        for at, (q, k, v), found in each(few, heads(weights, sound)):
            t, parts, near = q @ k.T / 8, (FAR & loud, FAR & ~loud), found["window 24"]
            inside, weight, heard = (logsumexp(t, axis=1, b=b) for b in (~FAR, FAR, parts[0]))
            one = np.log(n) + q @ k.mean(axis=0) / 8
            two = [np.log(x.sum(axis=1)) + q @ k[x.any(axis=0)].mean(axis=0) / 8 for x in parts]
            right, by_one = (1 / (1 + np.exp(inside - x))[:, None] for x in (weight, one))
            line = {"loud keys": loud.mean(), "weight outside": right[loud].mean()}
            line["of it on loud keys"] = np.exp(heard - weight)[loud].mean()
            line["ln weight by one key"] = np.median((one - weight)[loud])
            line["ln weight by two keys"] = np.median((np.logaddexp(*two) - weight)[loud])
            found["exact weight"] = near + right * (FAR @ v / n[:, None] - near)
            values = (np.exp(t - weight[:, None]) * FAR) @ v
            found["exact values"] = near + by_one * (values - near)
            yield {"voice": voice, "sound": kind} | at | line | errors(found, loud)


@recorder
def main():
    weights, lesson_18 = speech.load(speech.find()), lesson(18, tag="methods")
    asked, known = clips()
    given = [heads(weights, sound) for sound in known]
    every = ways(lesson_18, given)

    def judged(job):
        attend, (sound, text) = once(every[job[0]], []), asked[job[1]]
        said = speech.transcribe(weights, sound, attend)
        return said, speech.log_likelihood(weights, sound, text, attend)

    jobs = list(itertools.product(every, range(len(asked))))
    with threadpool_limits(1):
        found = dict(zip(jobs, in_threads(judged, jobs), strict=True))
    rows, texts = [], {}
    for way, band, m, draw in every:
        line = {"way": way, "band": band, "features": m, "draw": draw}
        for kind, some in {"read": [0], "synthetic": range(1, len(asked))}.items():
            results = [(asked[n][1], *found[(way, band, m, draw), n]) for n in some]
            wrong = sum(lesson_18.word_errors(said, meant) for meant, said, _ in results)
            total = sum(len(lesson_18.words(meant)) for meant, *_ in results)
            log_p = np.concatenate([log_p for *_, log_p in results])
            line |= {f"{kind} words": total, f"{kind} wrong": wrong}
            line |= {f"{kind} ln P": log_p.mean(), f"{kind} tokens": len(log_p)}
        rows.append(line)
        if draw == 0:
            texts[f"{way}, {band}, {m}"] = found[(way, band, m, draw), 0][0]
    yield "speech_ways.csv", rows, ".4f"
    read = heads(weights, asked[0][0])
    yield "speech_anatomy.csv", anatomy(lesson_18, given, read), ".4g"
    yield "speech_pairs.csv", pairs(found), ".4f"
    kept = halves([[x[at] for at in KEPT] for x in read])
    yield "speech_heads.npz", {"heads": np.array(KEPT), **kept}
    yield "speech_antibodies.csv", of_antibodies(lesson_18)
    others, few = other_sounds(), {name: every[key] for name, key in OTHER_WAYS.items()}
    with threadpool_limits(1):
        yield "speech_voices.csv", of_others(weights, lesson_18, few, others)
        yield "speech_outside.csv", outside(weights, lesson_18, others), ".3f"
    yield "speech_said.json", texts
