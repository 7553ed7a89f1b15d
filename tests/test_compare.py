"""Errors over mean(V), the bench of rivals, moments, and directions fitted to a head."""

import re

import array_api_strict
import numpy as np
import pytest

from performer_course import attention, compare, features, near_far, projections, theory

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


@pytest.mark.parametrize("causal", [False, True])
def test_a_rival_costs_its_multiplications_and_is_what_its_name_says(causal):
    (q, k, v), other = (Q, K, V), (K[:, :50] + 1, Q[:, :50], V[:, 50:0:-1])
    (L, d, e), how = (60, 4, 3), {"causal": causal}
    rows = compare.rivals(q, k, v, budget=24, sample=other, draws=2, **how)
    assert ("clustered queries" in rows) != causal
    exact, about = attention.softmax_attention(q, k, v, **how), other if causal else (q, k)
    mean_q, mean_k = (x.mean(axis=1, keepdims=True) for x in about[:2])

    def near(band):  # keys per query
        return sum(min(i, band) + 1 + (not causal) * min(59 - i, band) for i in range(L)) / L

    for name, (size, cost, parameters, attends, errors) in rows.items():
        of = {key: int(n) for key, n in re.findall(r"([a-z]+) (\d+)", size)}
        band, F = (of.get("keys", 0) - 1) // (2 - causal), of.get("features", 0)
        C, known = of.get("centres", 0), {"band": band, "sinks": of.get("sinks", 0), **how}
        keys = near(band) * ("window" in name) + known["sinks"] + ("mean key" in name)
        keys += C * (2 * d + e) / (d + e)  # each row of a kind looks for its centre
        keys += e / (d + e) if name == "mean(V)" else 0
        keys += 2 * F * (1 + e) / (d + e) if "Taylor" in name else 2 * F
        assert cost == pytest.approx(keys), name
        assert cost <= 24 or "Taylor" in name
        assert parameters == C * d + F * d * ("positive" in name) + d * causal * (F > 0), name
        assert errors.shape == (len(attends), 2) == (2 if name in compare.DRAWN else 1, 2)
        rngs = np.random.default_rng(0).spawn(2)
        if name == "mean(V)":
            output = attention.uniform_attention(q, k, v, **how)
        elif name == "window + centres":
            centres = compare._centres(np.float32(other[1]), C, rngs[1])
            output = near_far.joint_attention(q, k, v, centres=centres.astype(float), **known)
        elif name == "clustered queries":
            centres = compare._centres(np.float32(other[0]), C, rngs[1]).astype(float)
            nearest = ((q[:, :, None] - centres[:, None]) ** 2).sum(axis=-1).argmin(axis=-1)
            stand_in = np.take_along_axis(centres, nearest[..., None], axis=1)
            output = attention.softmax_attention(stand_in, k, v)
        elif name.startswith("window"):
            mean = "mean" in name
            output = (near_far.joint_attention if mean else near_far.near_field)(q, k, v, **known)
        elif F and "Taylor" in name:
            output = attention.taylor_attention(q, k - mean_k, v, int(name[-1]), **how)
        else:
            W = projections.orthogonal(rngs[1], F, d)
            output = attention.favor_attention(q, k - mean_q - mean_k, v, W, **how)
        wanted = compare.normalised_error(output, exact, v, **how)
        assert np.allclose(errors[-1], wanted, rtol=2e-3), name


def sinking(n, seed):
    """q, k, v of a decoder's head whose queries look for the first n keys."""
    q, k, v = np.random.default_rng(seed).normal(size=(3, 80, 5))
    q[:, -1], k[:, -1], k[:n, -1] = 5, 0, 5
    return q, k, v


@pytest.mark.parametrize("n", [1, 4, 16])
def test_sizes_are_chosen_on_the_sample_and_not_on_the_text_that_is_judged(n, monkeypatch):
    """By the later half of the sample, with centres of its earlier half."""
    halves, rows, centres, judge = [], [], compare._centres, compare._judge
    monkeypatch.setattr(
        compare, "_centres", lambda x, *of: rows.append(len(x[0])) or centres(x, *of)
    )
    monkeypatch.setattr(compare, "_judge", lambda x, *of: halves.append(of[0]) or judge(x, *of))
    of = {"budget": 20, "causal": True, "sample": sinking(n, 2), "draws": 2}
    for text in (sinking(1, 1), sinking(16, 1)):
        assert compare.rivals(*text, **of)["window + sinks"].size.endswith(f"sinks {n}")
    assert halves == [40, 0, 40, 0]
    assert rows[-2:] == [80, 80]
    assert {*rows[: len(rows) // 2 - 2]} == {40}


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
