"""Figures that answer back, in a browser: their numbers are the package's, and keys move them."""

import shutil

import numpy as np
import pytest

from kit import figures
from kit.chromium import served
from performer_course import attention, card, data, features, kernels, near_far, recurrent, theory
from tools.setting import ROOT

from .browser import barriers, opened

NAMES = sorted(set(figures.SCRIPTS.values()))
BOXES = "article .answers-back"
PAGE = """<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Figures</title>
<link rel="icon" href="data:,"><meta name="viewport" content="width=device-width">
<style>:root {{ color-scheme: light dark }} article {{ font: 18px/1.55 sans-serif }}</style></head>
<body><article><h1>Figures</h1>{}</article></body></html>"""
FRAMES = """async ([name, count]) => {
    const next = () => new Promise(requestAnimationFrame), began = performance.now();
    const slider = document.querySelector(`[data-answers-back=${name}] input[type=range]`);
    for (let i = 0; i < count; i++) {
        slider.value = Number(slider.min) + i % (slider.max - slider.min + 1);
        slider.dispatchEvent(new Event('input'));
        await next();
    }
    return 1000 * count / (performance.now() - began);
}"""
WRITTEN = [  # writes, width of the keys, decay, strength
    *[(8, 64, 0.7, 1.0), (8, 4, 0.5, 1.0), (1, 8, 0.0, 0.5), (7, 16, 1.0, 2.0), (5, 32, 0.95, 0.1)],
    *[(8, 128, 0.3, 0.0), (3, 8, 0.6, 1.5), (6, 256, 0.9, 1.0), (2, 4, 0.25, 0.75), (8, 8, 1, 1.0)],
]
FILLED = [  # pairs held, width of the keys, asked with, whether times the best factor
    *[(1, 4, 1, False), (8, 16, 1, False), (8, 16, 8, True), (64, 4, 64, False), (64, 64, 3, True)],
    *[(5, 32, 60, False), (16, 16, 9, True), (33, 8, 2, False), (2, 64, 2, True), (40, 32, 7, 0)],
]
PHONE = (390, 844 - 56)  # pixels of its screen, less those of the site's bar
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


@pytest.fixture
def compute(address, browser):
    """What the script `name` computes from its inputs."""
    with opened(browser, address, "page.html") as (tab, faults):
        script = "([name, inputs]) => AnswersBack.figures[name].compute(inputs)"
        yield lambda name, **inputs: tab.evaluate(script, [name, inputs])
        assert faults == []


def drawn(seed, count):
    """`count` normal numbers by mulberry32, then Box and Muller, written again."""

    def uniform():
        nonlocal seed
        seed = (seed + 0x6D2B79F5) % 2**32
        t = (seed ^ seed >> 15) * (1 | seed) % 2**32
        t = (t + (t ^ t >> 7) * (61 | t)) % 2**32 ^ t
        return (t ^ t >> 14) / 2**32

    found = []
    while len(found) < count:
        u, turn = 1 - uniform(), 2 * np.pi * uniform()
        found += [np.sqrt(-2 * np.log(u)) * np.cos(turn), np.sqrt(-2 * np.log(u)) * np.sin(turn)]
    return np.array(found[:count])


def largest(capsys, name, pairs):
    """Print the largest difference between ours and theirs, over their size where above 1."""
    gap = max(np.max(np.abs(a - b) / np.maximum(1, np.abs(b))) for a, b in pairs)
    with capsys.disabled():
        print(f"\n{name}: largest difference from the package {gap:.1e}")
    assert gap < CLOSE


def test_waves_have_the_mean_the_kernel_and_the_spread_of_the_package(compute, capsys):
    pairs, origin = [], np.zeros((1, 1))
    for seed, m in enumerate((1, 2, 3, 5, 8, 50, 100, 500, 1000, 2000), start=1):
        got = {key: np.array(value) for key, value in compute("waves", m=m, seed=seed).items()}
        r, W = got["r"][:, None], got["omega"][:, None]
        mean = features.fourier(r, W) @ features.fourier(origin, W)[0]
        exact = kernels.gaussian(r, origin, gamma=0.5)[:, 0]
        sigma = np.sqrt(theory.fourier_variance(got["r"], m))
        pairs += [(got["omega"], drawn(seed, m)), (got["mean"], mean)]
        pairs += [(got["kernel"], exact), (got["sigma"], sigma)]
        gaps = np.abs(got["mean"] - got["kernel"])  # which are 0 at r = 0, not 1e-16
        assert got["gap"] == gaps.max() == gaps[got["worst"]]
        assert got["within"] == (gaps <= 2 * got["sigma"]).sum()
    assert abs(got["omega"].mean()) < 0.1  # 2,000 draws: 4.5 standard deviations
    assert got["omega"].std() == pytest.approx(1, abs=0.07)
    largest(capsys, "waves", pairs)


def test_a_row_of_a_gram_matrix_and_its_errors_are_those_of_the_features(compute, capsys):
    pairs, line = [], np.linspace(-4, 4, 41)[:, None]
    bell, r = kernels.gaussian(line, line, gamma=0.5), np.abs(line - line.T)
    sizes = 2 ** np.arange(1, 12)
    for seed, (F, x) in enumerate(zip([*sizes, 16], np.linspace(-4, 4, 12), strict=True), start=1):
        got = compute("gram", F=int(F), x=round(5 * x) / 5, seed=seed)
        W, b, at = np.array(got["omega"])[:, None], np.array(got["b"]), got["at"]
        assert at == round(5 * x) + 20
        one, other = drawn(seed, 3 * 2048)[2048:].reshape(-1, 2).T
        pairs += [(W[:, 0], drawn(seed, 3 * 2048)[:2048]), (b, np.arctan2(one, other))]
        pairs.append((np.array(got["kernel"]), bell[at]))
        for i, size in enumerate(sizes):
            cosines, phase = (
                features.fourier(line, W[: size // 2]),
                features.fourier_phase(line, W[:size], b[:size]),
            )
            predicted = {
                "cosines": theory.fourier_variance(r, size // 2),
                "phase": theory.fourier_phase_variance(r, size),
            }
            for form, phi in {"cosines": cosines, "phase": phase}.items():
                K = phi @ phi.T
                pairs.append((got["rms"][form][i], np.sqrt(((K - bell) ** 2).mean())))
                pairs.append((got["predicted"][form][i], np.sqrt(predicted[form].mean())))
                if size == F:
                    pairs.append((np.array(got["rows"][form]), K[at]))
    largest(capsys, "gram", pairs)


def test_a_sum_fills_as_the_recurrence_and_the_theory_say(compute, capsys):
    pairs = []
    for seed, (n, d, ask, factor) in enumerate(FILLED, start=1):
        got = compute("fills", n=n, d=d, ask=ask, factor=factor, seed=seed)
        keys, values = drawn(seed, 64 * (d + 8))[: 64 * d].reshape(64, d), np.array(got["values"])
        keys /= np.linalg.norm(keys, axis=1, keepdims=True)
        pairs += [(np.array(got["keys"]), keys)]
        pairs += [(values.ravel(), drawn(seed, 64 * (d + 8))[64 * d :])]
        for held in range(1, 65):
            k, v = keys[:held], values[:held]
            S, _ = recurrent.recurrence(k, k, v)
            answers = k @ S * (d / (held + d - 1) if factor else 1)
            pairs.append((got["errors"][held - 1], np.sum((answers - v) ** 2) / np.sum(v**2)))
            law = theory.scaled_recall if factor else theory.additive_recall
            pairs.append((got["law"][held - 1], law(held, d)))
            if held == n:
                i = min(ask, n) - 1
                assert got["asked"] == i
                pairs += [(np.array(got["S"]), S), (np.array(got["found"]), answers[i])]
                wrong = np.sum((answers[i] - v[i]) ** 2) / np.sum(v[i] ** 2)
                pairs += [(got["value"], v[i]), (got["error"], wrong)]
    largest(capsys, "fills", pairs)


def test_errors_are_those_of_the_theory_in_any_width(compute, capsys):
    pairs, rng = [], np.random.default_rng(0)
    F = 16 * 4 ** np.arange(6)[rng.integers(0, 6, 10)]
    widths, angles = (
        (2, 3, 4, 6, 8, 12, 16, 24, 48, 64),
        (0, 10, 45, 60, 90, 91, 120, 170, 179, 180),
    )
    for d, angle, features_ in zip(widths, angles, F.tolist(), strict=True):
        a, b = rng.uniform(0.1, 3, 2)
        one, other = np.linalg.qr(rng.normal(size=(d, 2)))[0].T
        turn = np.deg2rad(angle)
        x, y = a * one, b * (np.cos(turn) * one + np.sin(turn) * other)
        got = compute("errors", angle=angle, x=a, y=b, F=features_)
        weight = kernels.softmax(x[None], y[None])[0, 0]
        pairs += [(got["weight"], weight), (got["plus"], np.sum((x + y) ** 2))]
        pairs += [(got["minus"], np.sum((x - y) ** 2))]
        for name in ("trigonometric", "hyperbolic", "positive"):
            m = features_ if name == "positive" else features_ // 2
            mse = getattr(theory, f"{name}_mse")(x, y, m)
            pairs.append((got[name], np.sqrt(mse) / weight))
    largest(capsys, "errors", pairs)


class Counted(float):
    """A number that counts how often such numbers are multiplied."""

    count = 0

    def __mul__(self, other):
        Counted.count += 1
        return Counted(float(self) * other)

    def __add__(self, other):
        return Counted(float(self) + other)


def counted(*factors):
    """How many multiplications the products of these matrices take, from left to right."""
    Counted.count, product = 0, factors[0]
    for factor in factors[1:]:
        product = product @ factor
    return Counted.count


def test_brackets_cost_what_a_count_of_products_and_the_card_say(compute, capsys):
    def ones(*shape):
        return np.array([Counted(1)] * int(np.prod(shape)), dtype=object).reshape(shape)

    pairs, rng = [], np.random.default_rng(1)
    for L, m, d, e in rng.integers(2, 12, size=(10, 4)).tolist():
        got = compute("brackets", L=L, m=m, d=d, e=e, causal=False)
        q, k, v, W = ones(L, d), ones(d, L), ones(L, e), ones(d, m)
        projections_, brackets = (
            2 * counted(q, W),
            counted(ones(m, L), v) + counted(q @ W, ones(m, e)),
        )
        pairs += [(got["exact"], counted(q, k, v)), (got["linear"], projections_ + brackets)]
        pairs += [(got["brackets"], brackets), (got["projections"], projections_)]
        half = compute("brackets", L=L, m=m, d=d, e=e, causal=True)
        pairs += [(half["exact"], got["exact"] / 2), (half["linear"], got["linear"])]
        for causal in (False, True):
            cross = compute("brackets", L=L, m=m, d=d, e=e, causal=causal)["cross"]
            there = compute("brackets", L=cross, m=m, d=d, e=e, causal=causal)
            pairs.append((there["exact"], there["linear"]))
    q, k, v = rng.normal(size=(3, 64, 8))
    size, price, _ = card.card(q, k, v, draws=1)["features"]
    got = compute("brackets", L=64, m=int(size.removeprefix("m = ")), d=8, e=8, causal=False)
    pairs.append((got["linear"] / got["exact"], price))
    largest(capsys, "brackets", pairs)


def test_a_state_answers_as_the_recurrence_does(compute, capsys):
    pairs, letters = [], None
    for seed, (writes, d, a, beta) in enumerate(WRITTEN, start=1):
        got = compute("state", writes=writes, d=d, a=a, beta=beta, seed=seed)
        keys = np.array(got["keys"])
        again = drawn(seed, 6 * d).reshape(6, d)
        pairs.append((keys, again / np.linalg.norm(again, axis=1, keepdims=True)))
        if letters is None:
            letters = compute("state", writes=0, d=4, a=1, beta=1, seed=1)["letters"]
        k, v = keys[np.arange(writes) % 6], np.array(letters[:writes], float)
        wanted = [letters[i + 6 if i + 6 < writes else i] for i in range(min(writes, 6))]
        with np.errstate(divide="ignore"):
            kept = np.full(writes, np.log(float(a)))
        rules = {
            "add": (None, None),
            "decay": (None, kept),
            "correct": (np.full(writes, float(beta)), None),
        }
        for rule, (strength, log_decay) in rules.items():
            S, _ = recurrent.recurrence(k, k, v, strength, log_decay)
            answers = keys @ S
            pairs.append((np.array(got["answers"][rule]), answers))
            square = np.sum(np.square(wanted), axis=1)
            error = np.sum((answers[: len(wanted)] - wanted) ** 2, axis=1) / square
            pairs.append((np.array(got["errors"][rule][: len(wanted)]), error))
            assert got["errors"][rule][len(wanted) :] == [None] * (6 - len(wanted))
    largest(capsys, "state", pairs)


def test_a_window_and_centres_weigh_as_the_package_does_on_a_real_head(compute, capsys):
    """The extract is that of the head to a byte; values of the package are the unit vectors, so
    that its outputs are weights, and keys the same, so that a mean of logits is that of keys."""
    pairs, kept, L = [], 620 + 2 * np.arange(40), 40
    bands, counts = (0, 1, 2, 3, 5, 8, 10, 15, 20, 5), (1, 0, 8, 2, 4, 1, 0, 2, 8, 0)
    for band, count, far in zip(bands, counts, [0, 1] * 5, strict=True):
        got = compute("window", band=band, centres=count, query=1, far=bool(far))
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
        pairs += [(np.array(got["exact"]), exact), (np.array(got["weights"]), weights)]
        wrong, null = weights - exact, 1 / L - exact
        error = np.sum(wrong @ gram * wrong) / np.sum(null @ gram * null)
        near = np.abs(np.subtract.outer(np.arange(L), np.arange(L))) <= band
        pairs += [(got["error"], error), (got["held"], (exact * near).sum() / L)]
    largest(capsys, "window", pairs)


@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("dark", 1280), ("light", 390)])
def test_no_barrier_and_it_fits(address, browser, scheme, width):
    with opened(browser, address, "page.html", scheme=scheme, width=width) as (tab, faults):
        assert tab.locator(BOXES).count() == len(NAMES)
        assert tab.evaluate("document.documentElement.scrollWidth") <= width
        assert barriers(tab) == []
    assert faults == []


def test_what_a_control_changes_is_on_a_phones_screen_with_it(address, browser):
    width, height = PHONE
    with opened(browser, address, "page.html", width=width) as (tab, faults):
        sizes = {name: tab.locator(f"[data-answers-back={name}]").bounding_box() for name in NAMES}
    assert {name: box["height"] for name, box in sizes.items() if box["height"] > height} == {}
    assert faults == []


@pytest.mark.parametrize("name", NAMES)
def test_keys_alone_move_every_control_and_the_words_follow(address, browser, name):
    with opened(browser, address, "page.html") as (tab, faults):
        home = tab.locator(f"[data-answers-back={name}]")
        count = home.locator("input, button").count()
        ticked = (
            "name => Object.values(AnswersBack.figures[name].controls).map(c => c.value === true)"
        )
        checked = home.locator("input, button").evaluate_all(
            "all => all.map(c => c.checked === true)"
        )
        assert checked == tab.evaluate(ticked, name)
        home.locator("input").first.focus()
        words, reached = home.locator(".words[aria-live=polite]"), 0
        while (
            tab.evaluate("document.activeElement.closest('.answers-back')?.dataset.answersBack")
            == name
        ):
            before = words.inner_text()
            kind = tab.evaluate("document.activeElement.type")
            down = tab.evaluate("document.activeElement.value !== document.activeElement.min")
            arrow = "ArrowLeft" if down else "ArrowRight"
            tab.keyboard.press({"button": "Enter", "checkbox": "Space"}.get(kind, arrow))
            tab.wait_for_timeout(50)
            moved = tab.evaluate("""() => {
                const at = document.activeElement;
                return at.type !== 'range' || at.ariaValueText ===
                    at.parentElement.querySelector('output').textContent;
            }""")
            assert moved
            assert words.inner_text() != before
            reached += 1
            tab.keyboard.press("Tab")
        assert reached == count
    assert faults == []


def test_without_scripts_the_place_takes_no_room(address, browser):
    context = browser.new_context(java_script_enabled=False)
    tab = context.new_page()
    tab.goto(address + "page.html")
    assert [box.bounding_box()["height"] for box in tab.locator(BOXES).all()] == [0] * len(NAMES)
    context.close()


def test_y_is_turned_by_hand_too(address, browser):
    with opened(browser, address, "page.html") as (tab, _):
        home = tab.locator("[data-answers-back=errors]")
        home.scroll_into_view_if_needed()
        box = home.locator("svg").first.bounding_box()
        tab.mouse.move(box["x"] + 110, box["y"] + 100)
        tab.mouse.down()
        tab.mouse.move(box["x"] + 60, box["y"] + 150)
        tab.mouse.up()
        tab.wait_for_timeout(50)
        assert "At 180°" in home.locator(".words").inner_text()


def test_a_finger_on_y_turns_it_up_and_down_and_elsewhere_scrolls(address, browser):
    context = browser.new_context(has_touch=True, viewport={"width": 390, "height": 844})
    tab = context.new_page()
    tab.goto(address + "page.html")
    home, finger = tab.locator("[data-answers-back=errors]"), context.new_cdp_session(tab)
    home.scroll_into_view_if_needed()

    def touch(kind, *points):
        finger.send("Input.dispatchTouchEvent", {"type": f"touch{kind}", "touchPoints": points})
        tab.wait_for_timeout(30)

    def pulled(place):
        """Whether the words and the page have moved, a finger having gone up from there."""
        box = home.locator(place).first.bounding_box()
        x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
        before = home.locator(".words").inner_text(), tab.evaluate("scrollY")
        touch("Start", {"x": x, "y": y})
        for step in range(1, 11):
            touch("Move", {"x": x, "y": y - 5 * step})
        touch("End")
        after = home.locator(".words").inner_text(), tab.evaluate("scrollY")
        return [old != new for old, new in zip(before, after, strict=True)]

    assert pulled(".handle") == [True, False]
    assert pulled(".title") == [False, True]
    context.close()


def test_it_moves_as_fast_as_a_hand_does(address, browser, capsys):
    with opened(browser, address, "page.html") as (tab, faults):
        tries = {name: [tab.evaluate(FRAMES, [name, 20]) for _ in range(3)] for name in NAMES}
        speed = {name: max(found) for name, found in tries.items()}  # others may have the machine
    with capsys.disabled():
        print("\nframes a second: " + ", ".join(f"{n} {s:.0f}" for n, s in speed.items()))
    assert min(speed.values()) > 10
    assert faults == []
