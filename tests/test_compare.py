"""Errors over mean(V), moments, directions fitted to a head, and the card of one head."""

import itertools
import re
import subprocess
import sys

import array_api_strict
import numpy as np
import pytest

from performer_course import attention, compare, features, near_far, projections, theory
from performer_course import card as program
from performer_course.card import _picture, card

RNG = np.random.default_rng(0)
Q, K = 0.7 * RNG.normal(size=(2, 2, 60, 4)) + np.array([0.3, 0.0, -0.5, 1.0])
V = RNG.normal(size=(2, 60, 3))


@pytest.mark.parametrize("causal", [False, True])
def test_an_error_over_that_of_the_mean_is_a_ratio_of_squares_for_each_head(causal):
    exact = attention.softmax_attention(Q, K, V, causal=causal)
    seen = np.tri(60) if causal else np.ones((60, 60))
    mean = seen @ V / seen.sum(axis=1, keepdims=True)
    assert np.array_equal(compare.normalised_error(exact, exact, V, causal=causal), [0, 0])
    assert np.allclose(compare.normalised_error(mean, exact, V, causal=causal), 1)
    found = exact + np.array([0.1, 0.2])[:, None, None]
    wanted = 180 * np.array([0.1, 0.2]) ** 2 / ((mean - exact) ** 2).sum(axis=(1, 2))
    assert np.allclose(compare.normalised_error(found, exact, V, causal=causal), wanted)


def test_values_of_another_library_are_refused_by_name():
    with pytest.raises(ValueError, match="v and exact must be arrays of one library"):
        compare.normalised_error(V, V, array_api_strict.asarray(V))


def test_moments_are_those_of_all_pairs_each_set_of_heads_on_its_own():
    s, U, rho = compare.moments(Q, K)
    for head in range(2):
        x, y = Q[head] * 4**-0.25, (K[head] - s[head]) * 4**-0.25
        z = (x[:, None] + y[None]).reshape(-1, 4)
        assert np.allclose(z.mean(axis=0), 0)
        turned = U[head].T @ (z.T @ z / len(z)) @ U[head]
        assert np.allclose(turned, np.diag(np.diag(turned)))
        assert np.allclose(rho[head], theory.best_rho(np.diag(turned), 1))
        assert np.allclose(U[head] @ U[head].T, np.eye(4))


def test_directions_fitted_to_a_head_give_its_sharp_features_about_its_shift():
    W, d = projections.orthogonal(np.random.default_rng(1), 8, 4), 4
    longer = compare.fitted_directions(W, Q, K)
    assert longer.shape == (2, 8, 5)
    x, y = compare.with_weight_column(Q, K)
    exact = attention.softmax_attention(Q, K, V)
    assert np.allclose(attention.softmax_attention(x, y, V), exact)
    phi_x, phi_y = (features.positive(a * 5**-0.25, longer) for a in (x, y))
    found = phi_x @ phi_y.mT
    s, U, rho = compare.moments(Q, K)
    for head in range(2):
        a, b = (z[head] * d**-0.25 @ U[head] for z in (Q, K - s[:, None]))
        wanted = features.sharp(a, W, rho[head]) @ features.sharp(b, W, rho[head]).T
        wanted *= np.exp(Q[head] @ s[head] / d**0.5)[:, None]  # of e^{q'ᵀk'}, not of the shifted
        assert np.allclose(found[head], wanted, rtol=1e-10)  # and so near and far fit together
        one = compare.fitted_directions(np.stack([W, -W]), Q[head], K[head])
        assert np.allclose(one[0], longer[head])  # directions may have heads of their own


def test_directions_fitted_to_unlike_numbers_of_queries_and_keys_see_the_mean_of_each():
    W, k = projections.orthogonal(np.random.default_rng(2), 6, 4), 1 + 2 * K[0, :50]
    twice = compare.fitted_directions(W, np.concatenate([Q[0], Q[0]]), k)
    assert np.allclose(compare.fitted_directions(W, Q[0], k), twice)


@pytest.mark.parametrize("causal", [False, True])
def test_no_way_of_a_card_costs_more_than_its_share_and_each_is_what_it_says(causal):
    rows = card(Q[0], K[0], V[0], causal=causal, sample=(Q[1], K[1]), share=0.5, draws=2)
    assert len(rows) == 10
    for name, (_, price, errors) in rows.items():
        assert 0.25 < price <= 0.5 or "Taylor" in name, name
        assert (errors >= 0).all()
        assert np.isfinite(errors).all()
    exact = attention.softmax_attention(Q[0], K[0], V[0], causal=causal)
    band = int(rows["window"][0].split()[0])
    near = near_far.near_field(Q[0], K[0], V[0], band, causal=causal)
    assert rows["window"][2] == compare.normalised_error(near, exact, V[0], causal=causal)
    about = K[0] - K[1].mean(axis=0)
    taylor = attention.taylor_attention(Q[0], about, V[0], 2, causal=causal)
    assert rows["Taylor 2"][2] == compare.normalised_error(taylor, exact, V[0], causal=causal)


@pytest.mark.parametrize("causal", [False, True])
def test_the_prices_of_a_card_are_multiplications_over_those_of_exact_attention(causal):
    rows = card(Q[0], K[0], V[0], causal=causal, sample=(Q[1], K[1]), share=0.5, draws=1)
    L, d, e = 60, 4, 3

    def near(band):  # a pair takes d for its weight and e for its value
        return sum(min(i, band) + 1 + (not causal) * min(59 - i, band) for i in range(L)) * (d + e)

    sizes = {name: [int(n) for n in re.findall(r"\d+", row[0])] for name, row in rows.items()}
    (w,), (w_key,), (w_half, C_half), (w_dense, m_half), (C,), *_, (m,) = sizes.values()
    centre = L * (2 * d + e)  # keys look for theirs, too
    expected = [near(w), near(w_key) + L * (d + e), near(w_half) + C_half * centre]
    expected += [near(w_dense) + 2 * L * m_half * (d + e), near(0) + C * centre]
    expected += [2 * L * F * (1 + e) for F in (1 + d, 1 + d + d * (d + 1) // 2)]
    expected += [2 * L * m * (d + e)] * 3
    assert [row[1] for row in rows.values()] == pytest.approx([n / near(L) for n in expected])


def test_with_enough_of_everything_a_card_is_exact_and_more_directions_err_less():
    rows = card(Q[0], K[0], V[0], share=2.5, draws=3)
    assert max(rows[name][2].max() for name in ("window", "centres", "window, centres")) < 1e-20
    few = card(Q[0], K[0], V[0], share=0.2, draws=3)
    for name in ("features", "features, centred", "features, dense"):
        assert np.median(rows[name][2]) < np.median(few[name][2]), name


def test_a_causal_card_wants_another_text_of_that_head():
    with pytest.raises(ValueError, match="sample must be"):
        card(Q[0], K[0], V[0], causal=True)
    with pytest.raises(ValueError, match=r"sample must have shape \(n, 4\), got .* \(2, 60, 4\)"):
        card(Q[0], K[0], V[0], sample=(Q, K))


def test_a_card_takes_keys_of_half_precision_and_refuses_what_it_cannot_judge_by_name():
    assert len(card(*(x[0].astype(np.float16) for x in (Q, K, V)), draws=1)) == 10
    with pytest.raises(ValueError, match=r"mean.V., which is already exact in 1 of 1"):
        card(Q[0], K[0], 0 * V[0])
    with pytest.raises(ValueError, match=r"share must be at most 1000 .* got 1e.150"):
        card(Q[0], K[0], V[0], share=1e150)
    with pytest.raises(ValueError, match=r"v must be finite, got more than 2.2e.20"):
        card(Q[0], K[0], 1e30 * V[0])


def test_a_row_of_a_picture_is_full_where_its_method_is_cheaper():
    fig = _picture({"expensive": ("1", 1.2, np.ones(2)), "cheap": ("1", 0.2, np.ones(1))})
    faces = [line.get_markerfacecolor() for line in fig.axes[0].lines[:2]]
    assert faces[0] == "none" != faces[1]


def test_a_printed_card_has_the_least_error_first_and_says_what_costs_as_much_as_exact_attention(
    tmp_path, monkeypatch, capsys
):
    rows = {"half": ("m = 2", 0.5, np.array([0.4, 0.2, 0.9]))}
    rows |= {"more": ("m = 5", 1.25, np.ones(1) / 8), "same": ("m = 4", 1.0, np.ones(1) / 4)}
    monkeypatch.setattr(program, "card", lambda *given, **known: rows)
    monkeypatch.setattr(sys, "argv", ["card", "head.npz"])
    monkeypatch.chdir(tmp_path)
    np.savez("head.npz", q=Q[0], k=K[0], v=V[0])
    program.main()
    assert [line.split() for line in capsys.readouterr().out.splitlines()[3:]] == [
        ["more", "m", "=", "5", "1.25", *["0.125"] * 3, "no", "cheaper", "than", "exact"],
        ["same", "m", "=", "4", "1.00", *["0.25"] * 3, "no", "cheaper", "than", "exact"],
        ["half", "m", "=", "2", "0.50", "0.4", "0.2", "0.9"],
    ]


def test_a_card_is_had_from_files(tmp_path, monkeypatch):
    np.savez(tmp_path / "head.npz", q=Q[0], k=K[0], v=V[0])
    np.savez(tmp_path / "other.npz", q=Q[1], k=K[1])
    (tmp_path / "bad.npz").write_bytes(b"PK no zip")
    bits = Q[0].astype(np.float32).view(np.uint16)
    np.savez(tmp_path / "bits.npz", q=bits, k=K[0], v=V[0])
    np.savez(tmp_path / "names.npz", Q=Q[0], K=K[0], V=V[0])
    np.save(tmp_path / "alone.npy", Q[0])
    command = [sys.executable, "-m", "performer_course.card"]

    def run(*words):
        return subprocess.run([*command, *words], cwd=tmp_path, capture_output=True, text=True)

    done = run("head.npz", "--sample", "other.npz", "--causal", "--share", "0.4")
    assert done.returncode == 0, done.stderr
    medians = [float(line[44:].split()[0]) for line in done.stdout.splitlines()[3:]]
    assert len(medians) == 10
    assert all(a <= b for a, b in itertools.pairwise(medians))
    assert (tmp_path / "card.png").stat().st_size > 10_000
    for name, says in {
        "bad.npz": "bad.npz is not a valid npz",
        "alone.npy": "alone.npy is not a valid npz file with q, k, v: File is not a zip file",
        "other.npz": "the values of v in float32, .* got q float64.60, 4., k float64.60, 4.$",
        "bits.npz": "the values of q in float32, .* got q uint16.60, 8., k float64.60, 4., v",
        "names.npz": "the values of q in .* got Q float64",
    }.items():
        with pytest.raises(ValueError, match=says):
            program._read(tmp_path / name, "qkv")
    monkeypatch.setattr(program, "LARGEST_FILE", 2**12)
    with pytest.raises(ValueError, match=r"head.npz is not a valid npz .*: its arrays take more"):
        program._read(tmp_path / "head.npz", "qkv")
    refused = run("other.npz")
    assert refused.returncode != 0
    assert "values of v" in refused.stderr.splitlines()[-1]
    (tmp_path / "card.png").unlink()
    (tmp_path / "card.png").mkdir()
    kept = run("head.npz", "--share", "0.4")
    assert (kept.returncode, len(kept.stdout.splitlines())) == (1, 13)
    assert kept.stderr.startswith("card.png could not be written: ")
