"""Side by side with what strangers wrote, given the same numbers; skipped where it is absent.

`make test EXTRAS=peers PYTEST="-s -n 0 tests/deep/test_peers.py"` installs all but mamba-ssm (see
the weekly workflow), and prints the largest differences, which kit/pages/how_we_know.md lists.
Shapes and gates named "theirs" are those of the peers' own tests, some shortened.
"""

import importlib.util
import inspect
import math
import sys
import warnings
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.metrics.pairwise import polynomial_kernel, rbf_kernel

from performer_course import kernels, projections
from performer_course.attention import favor_attention, linear_attention, softmax_attention
from performer_course.recurrent import (
    Affine,
    chunk_map,
    decay_attention,
    delta_attention,
    recurrence,
    then,
)
from tests.support import textbook

LARGEST = defaultdict(float)  # the largest difference from each peer, beside its largest entry

# Largest differences that rounding explains, beside the largest entry. Peers that sum in float32
# (rounding 6e-8) add up to some hundred terms in orders of their own; ours are in float64.
DOUBLE = 1e-13
SINGLE = 2e-6


@pytest.fixture(scope="module", autouse=True)
def said():
    """Printed at the end, with -s."""
    yield
    print(*(f"\n{who:56} {off:.1e}" for who, off in sorted(LARGEST.items())))


def agree(who, found, expected, within):
    found, expected = np.asarray(found), np.asarray(expected)
    assert found.shape == expected.shape
    off = np.abs(found - expected).max() / np.abs(expected).max()
    LARGEST[who] = max(LARGEST[who], float(off))
    assert off <= within, f"{off:.1e} from {who}"  # NaN is not


def peer(name):
    """The module `name`, or a skip that says what is missing."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # theirs, not ours
        reason = f"compared where {name} is installed"
        return pytest.importorskip(name, reason=reason, exc_type=ImportError)


def file_of_peer(package, path):
    """The one file of a package that imports no GPU's compiler, which the package does."""
    peer("torch")
    found = importlib.util.find_spec(package)
    if found is None:
        pytest.skip(f"compared where {package} is installed")
    file = Path(found.submodule_search_locations[0], path)
    spec = importlib.util.spec_from_file_location(f"{package}_{file.parent.name}", file)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


L, S, D, E, M = 37, 29, 8, 5, 16


def rng(seed=0):
    return np.random.default_rng(seed)


def qkv(lead=(2, 3), L=L, S=S, dtype=np.float64):
    return textbook.qkv(L, S, lead, D, E, dtype=dtype)


def W_of(dtype=np.float64):
    return projections.orthogonal(rng(9), M, D).astype(dtype)


# Attention: PyTorch, performer-pytorch

each_causal = pytest.mark.parametrize("causal", [False, True], ids=["all-to-all", "causal"])


@pytest.mark.parametrize("sees", ["all keys", "causal", "a key mask"])
def test_exact_attention_equals_that_of_pytorch(sees):
    torch, causal, (q, k, v), mask = peer("torch"), sees == "causal", qkv(), None
    if sees == "a key mask":
        mask = rng(1).uniform(size=(2, 1, S)) < 0.6
    expected = torch.nn.functional.scaled_dot_product_attention(
        *map(torch.asarray, (q, k, v)),
        attn_mask=None if mask is None else torch.asarray(mask[..., None, :]),
        is_causal=causal,
    )
    found = softmax_attention(q, k, v, causal=causal, key_mask=mask)
    agree("torch: SDPA", found, expected, DOUBLE)


@each_causal
def test_favor_equals_performer_pytorch_without_its_eps(causal):
    torch, theirs = peer("torch"), peer("performer_pytorch.performer_pytorch")
    q, k, v = qkv(L=L, S=L)
    W = W_of()
    options = {"projection_matrix": torch.asarray(W), "eps": 0.0}
    phi_q = theirs.softmax_kernel(torch.asarray(q), is_query=True, **options)
    phi_k = theirs.softmax_kernel(torch.asarray(k), is_query=False, **options)
    if causal:
        run = theirs.causal_linear_attention_noncuda
        expected = run(phi_q, phi_k, torch.asarray(v), eps=0.0)
    else:
        expected = theirs.linear_attention(phi_q, phi_k, torch.asarray(v))
    found = favor_attention(q, k, v, W, causal=causal)
    agree("performer-pytorch: FAVOR+", found, expected, DOUBLE)
    again = linear_attention(phi_q.numpy(), phi_k.numpy(), v, causal=causal)
    agree("performer-pytorch: linear attention", again, expected, DOUBLE)


@pytest.mark.parametrize("gamma", [0.1, 0.5, 10])
def test_kernels_are_those_of_scikit_learn(gamma):
    x, y = qkv(())[:2]
    agree("scikit-learn: kernels", kernels.gaussian(x, y, gamma), rbf_kernel(x, y, gamma), DOUBLE)
    for degree, offset in ((1, 0.0), (2, 1.0), (3, 0.5)):
        found = kernels.polynomial(x, y, degree, offset)
        theirs = polynomial_kernel(x, y, degree=degree, gamma=1, coef0=offset)
        agree("scikit-learn: kernels", found, theirs, DOUBLE)


# Recurrences: flash-linear-attention's slow forms, transformers' fallbacks, mamba's minimal


SUMS = 2**-23  # a float32 x is known to x times this: a sum of log gates as well


@dataclass(frozen=True)
class Form:
    """A recurrence as somebody else wrote it: where, and what it is in our words."""

    package: str
    where: str  # a file of fla-core, a module of transformers
    name: str
    gate: str = ""  # "token", "channel", or "head", as RetNet sets it
    writes: str = "adds"  # or "corrects", or what it erases: see `given`
    chunk: int = 0  # where it subtracts sums of ln a in a chunk, not from one token to the next
    fits: int = 1  # lengths are multiples of it
    state: bool = True  # it takes one and gives one
    first: str = "tokens"  # the axis before that of heads, or "heads"
    g: str = "g"
    within: float = SINGLE  # or DOUBLE, where it sums in the dtype that it is given

    def __str__(self):
        return f"{self.package}: {self.name}"

    def __call__(self, x, state=None):
        """Its rows and its last state from `given`, in our order of axes."""
        torch, names = peer("torch"), {"log_decay": self.g}
        if self.package == "transformers":
            module = peer(self.where)
            names |= {"q": "query", "k": "key", "v": "value"}
        else:
            module = file_of_peer("fla", f"ops/{self.where}/naive.py")
        turn = self.first == "tokens"
        x = {
            names.get(n, n): torch.tensor(np.swapaxes(y, 1, 2) if turn else y) for n, y in x.items()
        }
        if self.state:
            x["initial_state"] = None if state is None else torch.tensor(state).float()
            x["output_final_state"] = True
        found = inspect.unwrap(getattr(module, self.name))(**x)  # not a kernel in its place
        rows, S = found if isinstance(found, tuple) else (found, None)
        rows = np.swapaxes(rows.numpy(), 1, 2) if turn else rows.numpy()
        return rows, S.numpy() if self.state else None


FLA, BARE = "fla-core", {"state": False, "within": DOUBLE}
QWEN = "transformers.models.qwen3_next.modeling_qwen3_next"
FORMS = [
    Form(FLA, "linear_attn", "naive_recurrent_linear_attn"),
    Form(FLA, "linear_attn", "naive_chunk_linear_attn", fits=64, **BARE),
    Form(FLA, "retention", "naive_retention", "head", first="heads", state=False),
    Form(FLA, "simple_gla", "naive_recurrent_simple_gla", "token"),
    Form(FLA, "simple_gla", "naive_chunk_simple_gla", "token", chunk=64),
    Form(FLA, "simple_gla", "naive_parallel_simple_gla", "token", chunk=500, state=False),
    Form(FLA, "gla", "naive_recurrent_gla", "channel", g="gk"),
    Form(FLA, "delta_rule", "delta_rule_recurrence", "", "corrects", first="heads"),
    Form(FLA, "delta_rule", "delta_rule_chunkwise", "", "corrects", fits=32, first="heads", **BARE),
    Form(FLA, "delta_rule", "delta_rule_parallel", "", "corrects", fits=128, first="heads", **BARE),
    Form(FLA, "gated_delta_rule", "naive_recurrent_gated_delta_rule", "token", "corrects"),
    Form(FLA, "gated_delta_rule", "naive_chunk_gated_delta_rule", "token", "corrects", chunk=64),
    Form(FLA, "kda", "naive_recurrent_kda", "channel", "corrects"),
    Form(FLA, "kda", "naive_chunk_kda", "channel", "corrects", chunk=64, fits=64),
    # The two differ: one erases what is left after the gate, the other, as their kernel, before it.
    Form(FLA, "comba", "naive_recurrent_comba", "token", "erases p"),
    Form(FLA, "comba", "naive_chunk_comba", "token", "erases p before the gate", chunk=64),
    Form(FLA, "gdn2", "naive_recurrent_gdn2", "channel", "erases channels"),
    Form(FLA, "gdn2", "naive_chunk_gdn2", "channel", "erases channels", chunk=64),
    Form("transformers", QWEN, "torch_recurrent_gated_delta_rule", "token", "corrects"),
    Form("transformers", QWEN, "torch_chunk_gated_delta_rule", "token", "corrects", chunk=64),
]

# Heads, L, d, e, and what ln σ(normal) is divided by for ln a ("theirs"), or all gates.
SETTINGS = [
    ((2, 3), 37, 8, 5, 1),
    ((2, 3), 130, 8, 5, "open"),
    ((2, 3), 130, 8, 5, "some shut"),
    ((1, 2), 1, 4, 3, 1),
    ((1, 1), 63, 64, 64, 1),  # theirs, as all that follow
    ((2, 3), 100, 60, 60, 1),
    ((1, 2), 130, 64, 128, 10),
    ((1, 2), 500, 60, 60, 1),
    ((1, 1), 256, 128, 128, 0.1),
]


def given(form, lead, n, d, e, gates):
    """What a form of theirs is given, and what ours are: with the same meaning."""
    n, draw = -(-n // form.fits) * form.fits, rng(7)
    q, k, p = draw.normal(size=(3, *lead, n, d))
    k, p = (x / np.linalg.norm(x, axis=-1, keepdims=True) for x in (k, p))
    v, w, b = draw.normal(size=(*lead, n, e)), *draw.uniform(size=(2, *lead, n, max(d, e)))
    theirs, ours = {"q": q, "k": k, "v": v}, {"q": q / math.sqrt(d), "k": k, "v": v}

    if form.gate == "head":
        heads = np.log1p(-(2.0 ** (-5 - np.arange(lead[1]))))
        ours["log_decay"] = np.broadcast_to(heads[:, None], (*lead, n))
    elif form.gate:
        shape = (*lead, n, d) if form.gate == "channel" else (*lead, n)
        a = -np.logaddexp(0, draw.normal(size=shape))
        a = a * (gates == "some shut") if isinstance(gates, str) else a / gates
        if gates == "some shut":  # where sums are subtracted, −∞ would be NaN: e⁻⁴⁰ = 4e-18 is 0
            a = np.where(draw.uniform(size=shape) < 0.3, -40.0 if form.chunk else -math.inf, a)
        theirs["log_decay"] = ours["log_decay"] = a

    if form.writes == "erases channels":  # Gated DeltaNet-2
        theirs |= {"b": b[..., :d], "w": w[..., :e]}
        ours |= {"v": w[..., :e] * v, "beta": 1.0, "erase": b[..., :d] * k}
    elif form.writes != "adds":
        beta = draw.uniform(size=(*lead, n))
        beta[..., ::5], beta[..., 1::5] = 0, 1
        if form.writes == "corrects":
            beta[..., 2::5] = 2
        theirs["beta"] = ours["beta"] = beta
        if form.writes.startswith("erases p"):  # Comba
            theirs["p"], ours["erase"] = p, beta[..., None] * p
        if form.writes.endswith("before the gate"):  # Sᵀp = (aS)ᵀ(p/a)
            ours["erase"] = ours["erase"] * np.exp(-a)[..., None]
    return theirs, ours


def part(x, tokens):
    return {n: y if np.ndim(y) == 0 else y[:, :, tokens] for n, y in x.items()}


@pytest.mark.parametrize("setting", SETTINGS, ids=str)
@pytest.mark.parametrize("form", FORMS, ids=str)
def test_a_recurrence_equals_that_of_others(form, setting):
    """Rows and last states, from a state on, in one run and in chunks; and a state that changes
    hands half-way, ours to theirs and theirs to ours."""
    lead, _, d, e, _ = setting
    theirs, ours = given(form, *setting)
    n = ours["v"].shape[-2]
    start = rng(8).normal(size=(*lead, d, e)) if form.state else None
    expected, S = form(theirs, start)

    within = form.within
    if form.chunk and "log_decay" in ours:
        ln_a = ours["log_decay"]
        starts = range(0, n, form.chunk)
        sums = [ln_a[:, :, i : i + form.chunk].sum(axis=2).min() for i in starts]
        within = within - SUMS * min(sums)

    last, rows = recurrence(**ours, state=start)
    agree(f"{form}", rows, expected, within)
    if form.state:
        agree(f"{form}, state", last, S, within)
    for chunk in (1, 16, 64):
        if form.writes == "adds":
            rows = decay_attention(**{"log_decay": 0.0} | ours, chunk=chunk, state=start)
        else:
            rows = delta_attention(**ours, chunk=chunk, state=start)
        agree(f"{form}", rows, expected, within)
        here = chunk_map(**{n: x for n, x in ours.items() if n != "q"}, chunk=chunk)
        if form.state:
            end = then(Affine(np.eye(d) if here.A.shape[-1] == d else here.A * 0 + 1, start), here)
            agree(f"{form}, state", end.B, S, within)

    half = n // 2 // form.fits * form.fits
    if form.state and half:
        before, after = slice(half), slice(half, n)
        at_half, _ = recurrence(**part(ours, before), state=start)
        found, _ = form(part(theirs, after), at_half)
        agree(f"{form}", rows[:, :, after], found, within)
        _, at_half = form(part(theirs, before), start)
        _, found = recurrence(**part(ours, after), state=at_half.astype(float))
        agree(f"{form}", found, expected[:, :, after], within)


def in_single(x):
    return {n: y if np.ndim(y) == 0 else np.asarray(y, dtype=np.float32) for n, y in x.items()}


@pytest.mark.parametrize(
    "form", [f for f in FORMS if f.chunk and "before" not in f.writes], ids=str
)
def test_where_gates_shut_our_chunks_keep_what_sums_subtracted_in_float32_lose(form):
    """The forms that subtract are off by 1e-5 there; ours, given the same in float32, are not."""
    _, ours = given(form, (2, 3), 130, 8, 5, "some shut")
    run = decay_attention if form.writes == "adds" else delta_attention
    agree("ours in float32, gates shut", run(**in_single(ours)), run(**ours), SINGLE / 4)


@pytest.mark.parametrize("n", [1, 64, 100])
def test_log_linear_attention_is_decay_with_a_weight_for_each_level(n):
    """Token i reads token j at the level of the highest bit in which i and j differ."""
    torch, theirs = peer("torch"), file_of_peer("fla", "ops/log_linear_attn/naive.py")
    draw, levels = rng(3), (n - 1).bit_length() + 1
    q, k = draw.normal(size=(2, 2, 1, n, D))
    v, a = draw.normal(size=(2, 3, n, E)), -draw.exponential(size=(2, 3, n)) / 10
    scales = draw.normal(size=(2, 3, n, levels))
    turned = (torch.tensor(x).transpose(1, 2).float() for x in (q, k, v, a, scales))
    expected = theirs.naive_log_linear_attn(*turned)
    weights = decay_attention(q, k, np.eye(n), a)
    i, j = np.indices((n, n))
    level = np.frexp(i ^ j)[1]  # the length of i ^ j in bits
    found = (weights * np.take_along_axis(scales, level[None, None], axis=-1)) @ v
    within = SINGLE - SUMS * a.sum(-1).min()
    agree("fla-core: naive_log_linear_attn", found, expected.transpose(1, 2), within)


# Mamba-2's scan: B are keys, C queries, both shared by all heads; its state is ours turned over.


def scanned(n, heads, d, e):
    """C, B, x, Δ, A as the test of mamba's minimal form draws them, some Δ set; and a state."""
    draw = rng(4)
    C, B = draw.normal(size=(2, 2, n, d))
    x, dt = draw.normal(size=(2, n, heads, e)), np.logaddexp(0, draw.normal(size=(2, n, heads)) - 4)
    dt[:, 1::9], dt[:, 4::9] = 0, 40  # gates of 1, and of e⁻⁴⁰ and less
    return C, B, x, dt, -np.exp(draw.uniform(size=heads)), draw.normal(size=(2, heads, d, e))


def as_decay(C, B, x, dt, A, state):
    """The last state and the rows of `recurrence`, the rows of `decay_attention`."""
    k, v, a = B[:, None], np.swapaxes(x * dt[..., None], 1, 2), np.swapaxes(A * dt, 1, 2)
    tokens = {"q": C[:, None], "k": k, "v": v, "log_decay": a, "state": state}
    return *recurrence(**tokens), decay_attention(**tokens)


SCANS = [(256, 4, 64, 64), (128, 3, 8, 5)]  # theirs, shortened from 2048 tokens and 32 heads


@pytest.mark.parametrize("sizes", [*SCANS, (90, 3, 8, 5), (1, 3, 8, 5)], ids=str)
def test_decay_is_the_scan_of_transformers(sizes):
    torch, theirs = peer("torch"), peer("transformers.models.mamba2.modeling_mamba2")
    C, B, x, dt, A, state = scanned(*sizes)
    S, *both = as_decay(C, B, x, dt, A, state)
    args = (torch.tensor(y).float() for y in (x, dt, A, B[:, :, None], C[:, :, None]))
    start = torch.tensor(state).float().transpose(-1, -2)
    options = {"initial_states": start, "return_final_states": True}
    expected, last = theirs.mamba2_chunk_scan(*args, 64, **options)
    within = SINGLE + SUMS * np.abs(A * dt).sum(1).max()
    for rows in both:
        agree("transformers: mamba2_chunk_scan", np.swapaxes(rows, 1, 2), expected, within)
    agree("transformers: mamba2_chunk_scan, state", S, last.transpose(-1, -2), within)


@pytest.mark.parametrize("sizes", SCANS, ids=str)
def test_decay_is_the_minimal_scan_of_mamba(sizes, monkeypatch):
    torch = peer("torch")
    kernels = "mamba_ssm.ops.triton.ssd_combined"  # which it imports for a test of its own
    monkeypatch.setitem(sys.modules, kernels, SimpleNamespace(mamba_chunk_scan_combined=None))
    theirs = file_of_peer("mamba_ssm", "modules/ssd_minimal.py")
    C, B, x, dt, A, state = scanned(*sizes)
    S, *both = as_decay(C, B, x, dt, A, state)
    B, C = (np.repeat(y[:, :, None], sizes[1], axis=2) for y in (B, C))
    args = map(torch.tensor, (x * dt[..., None], A * dt, B, C))
    start = torch.tensor(np.swapaxes(state, -1, -2))[:, None]
    expected, last = theirs.ssd_minimal_discrete(*args, 32, start)
    within = DOUBLE + 2**-52 * np.abs(A * dt).sum(1).max()
    for rows in both:
        agree("mamba-ssm: ssd_minimal_discrete", np.swapaxes(rows, 1, 2), expected, within)
    agree("mamba-ssm: ssd_minimal_discrete, state", np.swapaxes(S, -1, -2), last, within)
