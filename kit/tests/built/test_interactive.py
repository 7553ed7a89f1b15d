"""Interactive figures in a browser: their numbers are the package's, and keys move them."""

import shutil

import numpy as np
import pytest

from kit import figures
from kit.chromium import served
from performer_course import attention, card, features, kernels, near_far, recurrent, theory
from performer_course.teaching import data
from tools.setting import ROOT

from .browser import barriers, opened

NAMES = sorted(set(figures.SCRIPTS.values()))
BOXES = "article .answers-back"
PAGE = """<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Figures</title>
<link rel="icon" href="data:,"><meta name="viewport" content="width=device-width">
<style>:root {{ color-scheme: light dark }} article {{ font: 18px/1.55 sans-serif }}</style></head>
<body><article><h1>Figures</h1>{}</article></body></html>"""
WRITTEN = [  # writes, width of the keys, decay, strength
    *[(8, 64, 0.7, 1.0), (8, 4, 0.5, 1.0), (1, 8, 0.0, 0.5), (7, 16, 1.0, 2.0), (5, 32, 0.95, 0.1)],
    *[(8, 128, 0.3, 0.0), (3, 8, 0.6, 1.5), (6, 256, 0.9, 1.0), (2, 4, 0.25, 0.75), (8, 8, 1, 1.0)],
]
FILLED = [  # pairs held, width of the keys, asked with, whether times the best factor
    *[(1, 4, 1, False), (8, 16, 1, False), (8, 16, 8, True), (64, 4, 64, False), (64, 64, 3, True)],
    *[(5, 32, 60, False), (16, 16, 9, True), (33, 8, 2, False), (2, 64, 2, True), (40, 32, 7, 0)],
]
SCREEN = 844 - 56  # pixels of a phone's, less those of the site's bar
CLOSE = 1e-10  # of the size of the numbers, for sums in another order


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    """A page with all of them, as the site puts them below their still figures."""
    folder = tmp_path_factory.mktemp("interactive")
    shutil.copytree(ROOT / "kit/look/static" / figures.FOLDER, folder / figures.FOLDER)
    once = {name: figures.below(number, ".") for number, name in figures.SCRIPTS.items()}
    text = PAGE.format("".join(once.values()))
    (folder / "page.html").write_text(text, encoding="utf-8")
    with served(folder) as address:
        yield address


# Of each script: what it computes and, from the package, what that should be, in pairs


def of_waves(compute):
    origin = np.zeros((1, 1))
    for seed, m in enumerate((1, 2, 3, 5, 8, 50, 100, 500, 1000, 2000), start=1):
        got = {key: np.array(value) for key, value in compute(m=m, seed=seed).items()}
        r, W = got["r"][:, None], got["omega"][:, None]
        yield got["mean"], features.fourier(r, W) @ features.fourier(origin, W)[0]
        yield got["kernel"], kernels.gaussian(r, origin, gamma=0.5)[:, 0]
        yield got["sigma"], np.sqrt(theory.fourier_variance(got["r"], m))
        gaps = np.abs(got["mean"] - got["kernel"])  # which are 0 at r = 0, not 1e-16
        assert got["gap"] == gaps.max() == gaps[got["worst"]]
        assert got["within"] == (gaps <= 2 * got["sigma"]).sum()
    assert abs(got["omega"].mean()) < 0.1  # 2,000 draws: 4.5 standard deviations
    assert got["omega"].std() == pytest.approx(1, abs=0.07)


def of_gram(compute):
    line, sizes = np.linspace(-4, 4, 41)[:, None], 2 ** np.arange(1, 12)
    bell, r = kernels.gaussian(line, line, gamma=0.5), np.abs(line - line.T)
    for seed, (F, x) in enumerate(zip([*sizes, 16], np.linspace(-4, 4, 12), strict=True), start=1):
        got = compute(F=int(F), x=round(5 * x) / 5, seed=seed)
        W, b, at = np.array(got["omega"])[:, None], np.array(got["b"]), got["at"]
        assert at == round(5 * x) + 20
        yield got["kernel"], bell[at]
        for i, size in enumerate(sizes):
            maps = {
                "cosines": features.fourier(line, W[: size // 2]),
                "phase": features.fourier_phase(line, W[:size], b[:size]),
            }
            predicted = {
                "cosines": theory.fourier_variance(r, size // 2),
                "phase": theory.fourier_phase_variance(r, size),
            }
            for form, phi in maps.items():
                K = phi @ phi.T
                yield got["rms"][form][i], np.sqrt(((K - bell) ** 2).mean())
                yield got["predicted"][form][i], np.sqrt(predicted[form].mean())
                if size == F:
                    yield got["rows"][form], K[at]


def of_fills(compute):
    for seed, (n, d, ask, factor) in enumerate(FILLED, start=1):
        got = compute(n=n, d=d, ask=ask, factor=factor, seed=seed)
        keys, values = np.array(got["keys"]), np.array(got["values"])
        yield np.linalg.norm(keys, axis=1), 1
        for held in range(1, 65):
            k, v = keys[:held], values[:held]
            S, _ = recurrent.recurrence(k, k, v)
            answers = k @ S * (d / (held + d - 1) if factor else 1)
            yield got["errors"][held - 1], np.sum((answers - v) ** 2) / np.sum(v**2)
            law = theory.scaled_recall if factor else theory.additive_recall
            yield got["law"][held - 1], law(held, d)
            if held == n:
                i = min(ask, n) - 1
                assert got["asked"] == i
                yield got["S"], S
                yield got["found"], answers[i]
                yield got["value"], v[i]
                yield got["error"], np.sum((answers[i] - v[i]) ** 2) / np.sum(v[i] ** 2)


def of_errors(compute):
    rng = np.random.default_rng(0)
    widths = (2, 3, 4, 6, 8, 12, 16, 24, 48, 64)
    angles = (0, 10, 45, 60, 90, 91, 120, 170, 179, 180)
    for d, angle in zip(widths, angles, strict=True):
        a, b = rng.uniform(0.1, 3, 2)
        F = 16 * 4 ** int(rng.integers(6))
        one, other = np.linalg.qr(rng.normal(size=(d, 2)))[0].T
        turn = np.deg2rad(angle)
        x, y = a * one, b * (np.cos(turn) * one + np.sin(turn) * other)
        got = compute(angle=angle, x=a, y=b, F=F)
        weight = kernels.softmax(x[None], y[None])[0, 0]
        yield got["weight"], weight
        yield got["plus"], np.sum((x + y) ** 2)
        yield got["minus"], np.sum((x - y) ** 2)
        for name in ("trigonometric", "hyperbolic", "positive"):
            mse = getattr(theory, f"{name}_mse")(x, y, F if name == "positive" else F // 2)
            yield got[name], np.sqrt(mse) / weight


def of_brackets(compute):
    """How often one multiplies in (q kᵀ) v, in q W and k W, and in φ(q) (φ(k)ᵀ v)."""
    rng = np.random.default_rng(1)
    for L, m, d, e in rng.integers(2, 12, size=(10, 4)).tolist():
        got = compute(L=L, m=m, d=d, e=e, causal=False)
        half = compute(L=L, m=m, d=d, e=e, causal=True)
        yield got["exact"], L * L * (d + e)
        yield got["projections"], 2 * L * d * m
        yield got["brackets"], 2 * L * m * e
        yield got["linear"], got["projections"] + got["brackets"]
        yield (half["exact"], half["linear"]), (got["exact"] / 2, got["linear"])
        for causal, found in ((False, got), (True, half)):
            there = compute(L=found["cross"], m=m, d=d, e=e, causal=causal)
            yield there["exact"], there["linear"]
    q, k, v = rng.normal(size=(3, 64, 8))
    size, cost, *_ = card.measure(q, k, v, draws=1)["positive features"]
    got = compute(L=64, m=int(size.removeprefix("features ")), d=8, e=8, causal=False)
    yield got["linear"] / got["exact"], cost


def of_state(compute):
    letters = np.array(compute(writes=0, d=4, a=1, beta=1, seed=1)["letters"], float)
    for seed, (writes, d, a, beta) in enumerate(WRITTEN, start=1):
        got = compute(writes=writes, d=d, a=a, beta=beta, seed=seed)
        keys = np.array(got["keys"])
        yield np.linalg.norm(keys, axis=1), 1
        k, v = keys[np.arange(writes) % 6], letters[:writes]
        wanted = np.array([letters[i + 6 if i + 6 < writes else i] for i in range(min(writes, 6))])
        with np.errstate(divide="ignore"):
            kept = np.full(writes, np.log(float(a)))
        rules = {
            "add": (None, None),
            "decay": (None, kept),
            "correct": (np.full(writes, float(beta)), None),
        }
        for rule, (strength, log_decay) in rules.items():
            answers = keys @ recurrent.recurrence(k, k, v, strength, log_decay)[0]
            gap = np.sum((answers[: len(wanted)] - wanted) ** 2, axis=1)
            yield got["answers"][rule], answers
            yield got["errors"][rule][: len(wanted)], gap / np.sum(wanted**2, axis=1)
            assert got["errors"][rule][len(wanted) :] == [None] * (6 - len(wanted))


def of_window(compute):
    """The extract is that of the head to a byte; values of the package are the unit vectors, so
    that its outputs are weights, and keys the same, so that a mean of logits is that of keys."""
    kept, L = 620 + 2 * np.arange(40), 40
    bands, counts = (0, 1, 2, 3, 5, 8, 10, 15, 20, 5), (1, 0, 8, 2, 4, 1, 0, 2, 8, 0)
    for band, count, far in zip(bands, counts, [0, 1] * 5, strict=True):
        got = compute(band=band, centres=count, query=1, far=bool(far))
        logits, gram, own = (np.array(got[name]) for name in ("logits", "gram", "own"))
        q, k, v = (a[far, kept].astype(float) for a in data.speech_heads())
        for found, real in ((logits, q @ k.T / 8), (gram, v @ v.T)):
            assert np.abs(found - real).max() < 0.003 * np.ptp(real)  # half of a byte's step
        assert sorted(set(own.tolist())) == list(range(max(count, 1)))
        q, k, v = np.sqrt(L) * logits, np.eye(L), np.eye(L)
        exact = attention.softmax_attention(q, k, v)
        if count == 0:
            weights = near_far.near_field(q, k, v, band)
        else:
            centres = np.stack([k[own == c].mean(axis=0) for c in range(count)])
            given = None if count == 1 else centres
            weights = near_far.joint_attention(q, k, v, band, centres=given)
        yield got["exact"], exact
        yield got["weights"], weights
        wrong, null = weights - exact, 1 / L - exact
        yield got["error"], np.sum(wrong @ gram * wrong) / np.sum(null @ gram * null)
        near = np.abs(np.subtract.outer(np.arange(L), np.arange(L))) <= band
        yield got["held"], (exact * near).sum() / L


@pytest.mark.parametrize("name", NAMES)
def test_its_numbers_are_those_of_the_package(address, browser, name):
    with opened(browser, address, "page.html") as (tab, faults):
        script = "([name, inputs]) => AnswersBack.figures[name].compute(inputs)"

        def compute(**inputs):
            return tab.evaluate(script, [name, inputs])

        for ours, theirs in globals()[f"of_{name}"](compute):
            np.testing.assert_allclose(np.array(ours), theirs, rtol=CLOSE, atol=CLOSE)
    assert faults == []


@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("dark", 1280), ("light", 390)])
def test_no_barrier_and_it_fits(address, browser, scheme, width):
    with opened(browser, address, "page.html", scheme=scheme, width=width) as (tab, faults):
        assert tab.locator(BOXES).count() == len(NAMES)
        assert tab.evaluate("document.documentElement.scrollWidth") <= width
        assert barriers(tab) == []
        if width == 390:  # all of a figure, with its controls, is on a phone's screen at once
            heights = {box.bounding_box()["height"] for box in tab.locator(BOXES).all()}
            assert max(heights) <= SCREEN
    assert faults == []


@pytest.mark.parametrize("name", NAMES)
def test_keys_alone_move_every_control_and_the_words_follow(address, browser, name):
    with opened(browser, address, "page.html") as (tab, faults):
        home = tab.locator(f"[data-answers-back={name}]")
        count = home.locator("input, button").count()
        home.locator("input").first.focus()
        words, reached = home.locator(".words[aria-live=polite]"), 0
        at = "document.activeElement.closest('.answers-back')?.dataset.answersBack"
        while tab.evaluate(at) == name:
            before = words.inner_text()
            kind = tab.evaluate("document.activeElement.type")
            down = tab.evaluate("document.activeElement.value !== document.activeElement.min")
            arrow = "ArrowLeft" if down else "ArrowRight"
            tab.keyboard.press({"button": "Enter", "checkbox": "Space"}.get(kind, arrow))
            tab.wait_for_timeout(50)
            assert words.inner_text() != before
            reached += 1
            tab.keyboard.press("Tab")
        assert reached == count
    assert faults == []


def test_a_finger_on_y_turns_it_up_and_down_and_elsewhere_scrolls(address, browser):
    context = browser.new_context(has_touch=True, viewport={"width": 390, "height": 844})
    tab = context.new_page()
    tab.goto(address + "page.html")
    home, finger = tab.locator("[data-answers-back=errors]"), context.new_cdp_session(tab)
    home.scroll_into_view_if_needed()

    def touch(kind, *points):
        finger.send("Input.dispatchTouchEvent", {"type": f"touch{kind}", "touchPoints": points})
        tab.wait_for_timeout(30)

    for place, pulled in ((".handle", [True, False]), (".title", [False, True])):
        box = home.locator(place).first.bounding_box()
        x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
        before = home.locator(".words").inner_text(), tab.evaluate("scrollY")
        touch("Start", {"x": x, "y": y})
        for step in range(1, 11):
            touch("Move", {"x": x, "y": y - 5 * step})
        touch("End")
        after = home.locator(".words").inner_text(), tab.evaluate("scrollY")
        assert [old != new for old, new in zip(before, after, strict=True)] == pulled
    context.close()
