"""The decision card: what each method is and costs, the verdict, and files of heads."""

import re
import subprocess
import sys
import zipfile

import numpy as np
import pytest

from performer_course import attention, compare
from performer_course import card as program
from performer_course.card import measure, verdict

RNG = np.random.default_rng(0)
Q, K = RNG.normal(size=(2, 2, 3, 60, 4)) + np.array([0.3, 0.0, -0.5, 1.0])  # two texts, three heads
V = RNG.normal(size=(2, 3, 60, 3))
TEXT, OTHER = ((Q[i], K[i], V[i]) for i in (0, 1))


def test_a_card_without_a_sample_fits_to_the_earlier_half_and_judges_the_later():
    q, k, v = TEXT
    _, _, _, errors = measure(q, k, v, causal=True, budget=0.5)["Taylor, degree 1"]
    about = k - k[:, :30].mean(axis=1, keepdims=True)
    output, exact, mean = (
        attend(q, keys, v, causal=True)[:, 30:]
        for attend, keys in (
            (attention.taylor_attention, about),
            (attention.softmax_attention, k),
            (attention.uniform_attention, k),
        )
    )
    wanted = ((output - exact) ** 2).sum((1, 2)) / ((mean - exact) ** 2).sum((1, 2))
    assert np.allclose(errors[0], wanted, rtol=1e-3)


def test_query_heads_share_key_heads_and_one_text_may_have_a_batch_axis_or_no_heads():
    q, k, v = TEXT
    rows = measure(q, k[:1], v[:1], budget=0.5)
    same = measure(q[None], k[[0, 0, 0]], v[[0, 0, 0]], budget=0.5)
    one = measure(q[1], k[0], v[0], budget=0.5)
    for name, (*_, errors) in rows.items():
        assert np.array_equal(errors, same[name][3])
        if name not in compare.DRAWN and "sinks" not in name:  # sizes are those of all heads
            assert np.allclose(errors[:, 1:2], one[name][3], rtol=1e-3)


def test_where_values_or_weights_are_all_the_same_mean_v_is_named():
    q, k, v = TEXT
    for text in ((q, k, np.ones_like(v)), (0 * q, k, v), (0 * q, 0 * k, 0 * v)):
        assert verdict(measure(*text, budget=0.5), faster=np.inf).startswith("mean(V) (all keys)")


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda q, k, v: (q, k[:, :40], v[:, :40]), r"one text and one L, .*k \[3, 40, 4\]"),
        (lambda q, k, v: (q, k, v[:, :40]), "one row for each key"),
        (lambda *x: [y[:, :20] for y in x], r"32 tokens or more, .* q \[3, 20, 4\]"),
        (lambda *x: [y.swapaxes(0, 1) for y in x], r"be \(heads, L, d\), .*swapaxes\(0, 1\)"),
        (lambda *x: [np.tile(y, 80) for y in x], "d at most 256"),
        (lambda q, k, v: (q, k[:2], v[:2]), r"q, k and v must be .* k \[2, 60, 4\]"),
        (lambda *x: [np.stack([y, y]) for y in x], r"\(heads, L, d\), of one text"),
        (lambda q, k, v: (q * np.nan, k, v), "q must be finite"),
        (lambda q, k, v: (q.astype(int), k, v), "q must hold real floating-point numbers"),
    ],
)
def test_what_is_no_head_is_refused_in_words(change, says):
    with pytest.raises(ValueError, match=says):
        measure(*change(*TEXT))
    with pytest.raises(ValueError, match=says.replace(" q ", " sample q ")):
        measure(*TEXT, sample=change(*TEXT))


def test_options_and_a_sample_of_other_heads_are_refused():
    for known in ({"budget": 0}, {"draws": 0}, {"seed": -1}):
        with pytest.raises(ValueError, match=next(iter(known))):
            measure(*TEXT, **known)
    with pytest.raises(ValueError, match=r"sample must be .q, k, v. of another"):
        measure(*TEXT, sample=OTHER[:2])
    with pytest.raises(ValueError, match="sample must have the same heads"):
        measure(*TEXT, sample=[x[:2] for x in OTHER])


def rows(**of):
    """Rows of a card, simplest first, from {name: (cost, time, errors of heads)}."""
    return {n.replace("_", " "): ("a size", *row[:2], np.array(row[2:])) for n, row in of.items()}


@pytest.mark.parametrize(
    ("table", "says"),
    [
        ({"a": (0.2, 0.5, [0.3]), "b": (0.2, 0.5, [0.2])}, "keep exact .*no error is .* is b "),
        ({"a": (0.2, 1.0, [0.01])}, "keep .*nothing .* at most 0.9 of its time; the best is a "),
        (
            {"a": (0.3, 0.5, [0.01]), "b": (0.2, 0.5, [0.09])},
            r"b \(a size\): error 0.09, time 0.50",
        ),
        ({"a": (0.2, 0.5, [0.06]), "b": (0.2, 0.5, [0.05])}, r"a \(.*error 0.06"),
        ({"a": (0.2, 0.5, [0.09]), "b": (0.2, 0.5, [0.05])}, r"b \(.*error 0.05"),
        ({"a": (0.2, 0.5, [0.009]), "b": (0.2, 0.5, [0.0001])}, r"a \("),
        ({"a": (0.2, 1.0, [0.01]), "b": (0.2, 0.5, [0.05])}, r"b \("),
        ({"a": (0.2, 0.5, [0.01], [0.9], [0.8])}, "keep exact .* is a "),
        ({"a": (0.2, 0.5, [0.05, 0.05, 2]), "b": (0.2, 0.5, [0.01, 3, 3])}, r"a.*0.05.*s \[0, 1\]"),
    ],
)
def test_a_verdict_names_the_simplest_good_method_that_is_cheap_and_faster(table, says):
    assert re.match(says, verdict(rows(**table)))


def test_a_card_is_had_from_files(tmp_path, monkeypatch):
    q, k, v = (x.astype(np.float32) for x in TEXT)
    bits = [(x.view(np.uint32) >> 16).astype(np.uint16) for x in (q, k, v)]
    files = {
        "head": {"q": q, "k": k, "v": v},
        "other": dict(zip("qkv", OTHER, strict=True)),
        "half": {"q": q.astype(np.float16), "k": k, "v": v},
        "bits": {"q": bits[0], "k": bits[1].view(np.int16), "v": bits[2].view("V2")},
        "names": {"Q": q, "K": k, "V": v},
        "whole": {"q": q.astype(np.int64), "k": k, "v": v},
        "counts": {"q": q, "k": np.arange(512, dtype=np.int16), "v": v},
        "object": {"q": np.array([q, None], dtype=object), "k": k, "v": v},
    }
    for name, arrays in files.items():
        np.savez(tmp_path / f"{name}.npz", **arrays)
    (tmp_path / "bad.npz").write_bytes(b"PK no zip")
    np.save(tmp_path / "one.npz.npy", q)
    with zipfile.ZipFile(tmp_path / "torch.npz", "w") as file:
        file.writestr("head/data.pkl", b"")
    command = [sys.executable, "-m", "performer_course.card"]

    def run(*words):
        return subprocess.run([*command, *words], cwd=tmp_path, capture_output=True, text=True)

    done = run("head.npz", "--sample", "other.npz", "--causal", "--budget", "0.4")
    lines = done.stdout.splitlines() or pytest.fail(done.stderr)
    line = lines.index("--- above the budget ---")
    assert [len(lines[2:line]), len(lines[line + 1 : -1])] in ([7, 2], [8, 1], [7, 3], [8, 2])
    medians = [float(line.split()[-3]) for line in lines[2:line]]
    assert medians == sorted(medians)
    assert lines[-1].startswith("Verdict: ")
    assert "Sizes and centres from other.npz" in lines[0]
    assert "errors on the later half" in run("half.npz").stdout
    for found, wanted in zip(program._read(tmp_path / "bits.npz"), TEXT, strict=True):
        assert np.abs(found / wanted - 1).max() < 2**-7
    for name, says in {
        "bad": r"bad.npz is not a valid npz file \(np.savez.*: ",
        "torch": r"torch.npz must hold .*np.savez.* got head/data.pkl$",
        "names": r"names.npz must hold .* got Q, K, V$",
        "whole": r"whole.npz must hold .* got q, k, v \(numbers: int64, float32, float32\)",
        "counts": r"counts.npz must hold .* got q, k, v \(numbers: float32, int16, float32\)",
        "one.npz.npy": "one.npz.npy is not a valid npz .*it is a single array",
        "object": "object.npz is not a valid npz .*Object arrays",
    }.items():
        with pytest.raises(ValueError, match=says):
            program._read(tmp_path / (name if "." in name else f"{name}.npz"))
    refused = run("names.npz")
    assert (refused.returncode, refused.stdout, refused.stderr[:15]) == (1, "", "names.npz must ")
    monkeypatch.setattr(program, "LARGEST_FILE", 2**12)
    with pytest.raises(ValueError, match=r"head.npz is not a valid npz .*: its arrays take more"):
        program._read(tmp_path / "head.npz")
