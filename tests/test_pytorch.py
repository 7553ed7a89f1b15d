"""The modules that replace PyTorch's attention; skipped where it is not installed.

pip install torch==2.13.0
"""

import functools
import io
import json
import re
import subprocess
import sys

import numpy as np
import pytest

from performer_course import attention, near_far, recurrent
from tools.setting import ROOT

torch = pytest.importorskip("torch", reason="checked where torch is", exc_type=ImportError)

from performer_course import pytorch  # noqa: E402

B, H, L, D, E = 2, 4, 12, 4, 5
NAMES = ("favor", "near and mean key", "near and centres", "delta", "delta, gated")
CAUSAL_ALONE = {"delta", "delta, gated"}
WITH_STATE = ("favor", "near and mean key", "delta", "delta, gated")
each_module = pytest.mark.parametrize("name", NAMES)


def made(name, dtype=torch.float64):
    """A module by its name, in `dtype`; parameters and buffers from a seed."""
    torch.manual_seed(0)
    rng = np.random.default_rng(3)
    if name == "favor":
        return pytorch.FavorAttention(D, 6, rng).to(dtype)
    if "near" in name:
        centres = torch.asarray(rng.normal(size=(H, 4, D))) if "centres" in name else None
        return pytorch.NearFarAttention(2, centres, sinks=3 if "centres" in name else 1).to(dtype)
    return pytorch.DeltaAttention(D, gate="gated" in name).to(dtype)


def drawn(dtype=torch.float64, seed=1, tokens=L, size=1.0):
    rng = np.random.default_rng(seed)
    shapes = [(B, H, tokens, width) for width in (D, D, E)]
    return [torch.asarray(size * rng.normal(size=shape)).to(dtype) for shape in shapes]


def hiding():
    """Two keys of the first sequence at its start, three of the second at its end."""
    mask = torch.ones(B, L, dtype=torch.bool)
    mask[0, :2] = mask[1, -3:] = False
    return mask


def by_the_package(module, q, k, v, mask, causal):
    """The same by the package's function on NumPy."""
    q, k, v = (x.numpy() for x in (q, k, v))
    mask = None if mask is None else mask.numpy()[:, None]
    options = {"causal": causal, "key_mask": mask}
    kind = type(module).__name__
    if kind == "FavorAttention":
        return attention.favor_attention(q, k, v, module.W.numpy(), **options)
    if kind == "NearFarAttention":
        centres = None if module.centres is None else module.centres.numpy()
        options |= {"centres": centres, "sinks": module.sinks}
        return near_far.joint_attention(q, k, v, module.band, **options)
    A, b = (x.detach().numpy() for x in (module.write.weight, module.write.bias))
    beta, *gate = np.moveaxis(1 / (1 + np.exp(-(k @ A.T + b))), -1, 0)
    q, k = (x / np.sqrt((x * x).sum(-1, keepdims=True)) for x in (q, k))
    seen = True if mask is None else mask  # a hidden token writes nothing, and nothing decays
    gate = [np.where(seen, np.log(a), 0) for a in gate]
    return recurrent.recurrence(q, k, v, np.where(seen, beta, 0), *gate)[1]


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16])
@each_module
def test_outputs_are_the_package_s_to_rounding(name, dtype):
    known = {torch.float64: 1e-12, torch.float32: 3e-6}
    tolerance = known.get(dtype, 20 * torch.finfo(dtype).eps)
    for causal in (False, True):
        if causal or name not in CAUSAL_ALONE:
            for mask in (None, hiding()):
                module, (q, k, v) = made(name, dtype), drawn(dtype)
                with torch.no_grad():
                    found = module(q, k, v, attn_mask=mask, is_causal=causal)
                assert found.dtype == dtype
                wide = [x.double() for x in (q, k, v)]
                expected = by_the_package(made(name, dtype).double(), *wide, mask, causal)
                np.testing.assert_allclose(found.double(), expected, rtol=0, atol=tolerance)


@each_module
def test_gradients_are_central_differences(name):
    for mask in (None, hiding()):
        module = made(name)

        def rows(*given, module=module, mask=mask):
            return module(*given[:3], attn_mask=mask, is_causal=True)

        leaves = [x.requires_grad_() for x in (*drawn(), *module.parameters())]
        assert torch.autograd.gradcheck(rows, leaves, eps=1e-5, atol=1e-7, fast_mode=True)


@each_module
def test_what_a_mask_hides_is_not_seen(name):
    q, k, v = drawn()
    mask, whole = hiding(), made(name)(q, k, v, is_causal=True)
    k[~mask[:, None].expand(B, H, L)], v[~mask[:, None].expand(B, H, L)] = np.nan, np.inf
    q, k, v = (x.requires_grad_() for x in (q, k, v))
    module = made(name)
    rows = module(q, k, v, attn_mask=mask[:, None, None], is_causal=True)
    assert torch.equal(rows, module(q, k, v, attn_mask=mask, is_causal=True))
    assert not torch.allclose(rows, whole)
    assert (rows[0, :, :2] == 0).all()  # rows that see no key
    rows.sum().backward()
    gradients = [x.grad for x in (q, k, v, *module.parameters())]
    assert all(torch.isfinite(x).all() for x in gradients)
    assert (k.grad[1, :, -3:] == 0).all()
    none = made(name)(q, k, v, attn_mask=torch.zeros_like(mask), is_causal=True)
    assert (none == 0).all()


@each_module
def test_a_group_of_query_heads_shares_a_key_head(name):
    q, k, v = drawn()
    few, all_ = [k[:, :2], v[:, :2]], [x[:, [0, 0, 1, 1]] for x in (k, v)]
    close = functools.partial(torch.testing.assert_close, rtol=0, atol=1e-14)
    mask = hiding()[:, None, None]
    for seen in (mask, mask.repeat(1, H, 1, 1))[: 2 if "delta" in name else 1]:
        close(*(made(name)(q, *x, seen, is_causal=True, enable_gqa=True) for x in (few, all_)))
    if name in WITH_STATE:
        seen = None if "near" in name else mask
        (rows, state), (expected, whole) = (made(name).step(q, *x, None, seen) for x in (few, all_))
        close(rows, expected)
        kept, repeated = (x if torch.is_tensor(x) else x[0] for x in (state, whole))
        assert kept.shape == repeated[:, ::2].shape
        close(*(made(name).step(q, *x, s)[0] for x, s in ((few, state), (all_, whole))))


@pytest.mark.parametrize("name", WITH_STATE)
def test_a_prompt_and_steps_are_the_whole(name):
    for mask in (None, hiding()):
        module, (q, k, v) = made(name), drawn()
        state, rows = None, []
        for part in (slice(0, 5), *(slice(i, i + 1) for i in range(5, L))):
            seen = None if mask is None else mask[:, part][:, None, None]
            one, state = module.step(*(x[:, :, part] for x in (q, k, v)), state, seen)
            torch.save(state, file := io.BytesIO())
            file.seek(0)
            saved, state = state, torch.load(file, weights_only=True)
            assert type(saved) is type(state)
            rows.append(one)
        whole = module(q, k, v, attn_mask=mask, is_causal=True)
        rows, seen = torch.cat(rows, dim=-2), (hiding() if mask is not None else mask)
        if seen is not None and "near" in name:  # rows of hidden tokens mean nothing there
            rows, whole = (torch.where(seen[:, None, :, None], x, 0) for x in (rows, whole))
        torch.testing.assert_close(rows, whole, rtol=0, atol=1e-12)


@each_module
def test_a_state_dict_brings_all_back(name):
    module, other = made(name), made(name)
    with torch.no_grad():
        for x in (*module.parameters(), *module.buffers()):
            x += 0.1
    if name == "favor":
        module.redraw(np.random.default_rng(9))
    q, k, v = drawn()
    wanted = module(q, k, v, is_causal=True)
    if name != "near and mean key":
        assert not torch.equal(wanted, other(q, k, v, is_causal=True))
    other.load_state_dict(module.state_dict())
    assert torch.equal(wanted, other(q, k, v, is_causal=True))
    if name == "favor":  # what was made on the meta device is drawn by redraw
        other.float().to("meta").to_empty(device="cpu").redraw(np.random.default_rng(9))
        assert torch.equal(other.W, module.W.float())


@each_module
def test_autocast_casts_rows_as_for_sdpa_and_sums_stay_wide(name):
    q, k, v = drawn(torch.float32, size=2.0)
    module, half = made(name, torch.float32), [x.bfloat16() for x in (q, k, v)]
    calls = [module]
    calls += [lambda *rows, is_causal: module.step(*rows)[0]] if name in WITH_STATE else []
    for call in calls:
        expected = call(*half, is_causal=True)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            for rows in (half, (q, k, v), (q, *half[1:])):
                assert torch.equal(call(*rows, is_causal=True), expected)
            sdpa = torch.nn.functional.scaled_dot_product_attention
            for rows in ((q, k, v), [x.double() for x in (q, k, v)]):
                assert call(*rows, is_causal=True).dtype == sdpa(*rows, is_causal=True).dtype


@pytest.mark.filterwarnings("ignore::torch.jit.TracerWarning")
@pytest.mark.filterwarnings("ignore:`torch.jit:DeprecationWarning")
@each_module
def test_a_module_is_mapped_and_traced_and_takes_no_batch_and_the_meta_device(name):
    for causal in (True, False)[: 1 if name in CAUSAL_ALONE else 2]:
        module, given = made(name).requires_grad_(False), drawn()

        def call(*rows, module=module, causal=causal):
            return module(*rows, is_causal=causal)

        rows = call(*given)
        mapped = torch.func.vmap(call)(*(torch.stack([x, x]) for x in given))
        for found in (*mapped, torch.jit.trace(call, given)(*given)):
            torch.testing.assert_close(found, rows)
        none = [x[:0].requires_grad_() for x in given]
        empty = call(*none)
        empty.sum().backward()
        assert empty.shape == rows[:0].shape
        assert all(x.grad.shape == x.shape for x in none)
        module.to("meta")
        found = call(*(x.to("meta") for x in given))
        assert (found.shape, found.dtype, found.device.type) == (rows.shape, rows.dtype, "meta")


COMPILED = """
import numpy as np, torch
from performer_course import pytorch

def graphs(module, lengths, causal, to):
    made = []
    backend = lambda x, _: made.append(x) or x.forward
    compiled = torch.compile(module, fullgraph=True, backend=backend)
    for n in lengths:
        q, k, v = torch.randn(3, 2, 4, n, 4)
        padded = (torch.nn.functional.pad(x, (0, 0, 0, (to or n) - n)) for x in (q, k, v))
        mask = (torch.arange(to) < n).expand(2, 1, 1, to) if to else None
        rows = compiled(*padded, mask, is_causal=causal)[:, :, :n]
        torch.testing.assert_close(rows, module(q, k, v, is_causal=causal))
    return len(made)

favor, delta = pytorch.FavorAttention(4, 6, np.random.default_rng(0)), pytorch.DeltaAttention(4)
assert graphs(favor, (40, 41, 50, 100), False, 0) == 2  # the first length, and the others
assert graphs(delta, (9, 12, 16), True, 16) == 1
"""


def test_lengths_share_compiled_graphs_and_no_warning_is_printed():
    subprocess.run([sys.executable, "-W", "error", "-c", COMPILED], check=True, cwd=ROOT)


@pytest.mark.parametrize("name", ["favor", "near and mean key", "delta"])
def test_an_exported_program_gives_the_same_rows_or_refuses_a_length(name):
    causal, axis = name in CAUSAL_ALONE, None if name == "delta" else {2: torch.export.Dim.AUTO}
    module, shapes = (
        made(name),
        {**dict.fromkeys(("query", "key", "value"), axis), "is_causal": None},
    )
    program = torch.export.export(
        module, tuple(drawn(tokens=40)), {"is_causal": causal}, dynamic_shapes=shapes
    ).module()
    known = {"favor": (12, 40, 63, 64, 200), "delta": (40,)}.get(name, (40, 63, 64))
    for tokens in known:
        given = drawn(tokens=tokens)
        expected = module(*given, is_causal=causal)
        torch.testing.assert_close(program(*given, is_causal=causal), expected)
    if name != "favor":  # a program has so many blocks of 64 rows
        with pytest.raises(AssertionError, match="Guard failed"):
            program(*drawn(tokens=65), is_causal=causal)


# What is refused


def refused(match, *given, module=None, **options):
    with pytest.raises(ValueError, match=match):
        (module or made("favor"))(*given, **options)


@each_module
@pytest.mark.parametrize(
    "mask",
    [
        torch.ones(L, L, dtype=torch.bool).tril(),
        torch.ones(B, H, L, L, dtype=torch.bool),
        torch.ones(B, 1, L, dtype=torch.bool),
        torch.ones(B, 1, 1, L + 1, dtype=torch.bool),
        torch.zeros(B, 1, 1, L),
        [[True] * L] * B,
    ],
    ids=["pairs", "pairs of heads", "three axes", "a key too many", "added", "a list"],
)
def test_a_mask_of_pairs_or_of_numbers_is_refused_by_name(name, mask):
    refused("attn_mask.*rows share.*lesson", *drawn(), mask, module=made(name))


def test_other_arguments_are_refused_by_name():
    q, k, v = drawn()
    refused("dropout_p.*0.1", q, k, v, None, 0.1)
    refused("scale must be None", q, k, v, scale=0.5)
    refused(r"^q must be \(batch, heads, n, d\)", q[0], k, v)
    refused(r"^q must be \(batch, heads, n, d\)", *(x.numpy() for x in (q, k, v)))
    assert torch.equal(
        made("favor")(q, k, v, None, 0.0, True),
        made("favor")(query=q, key=k, value=v, scale=None, is_causal=True),
    )
    square, short = torch.ones(B, B, dtype=torch.bool), [x[:, :, :B] for x in (q, k, v)]
    refused("attn_mask.*if batch is not L", *short, square)  # of keys or of pairs
    made("favor")(*short, square[:, None, None])
    refused("k and v must have one row for each key", q, k, v[:, :, 1:])
    refused("W must have shape", *(x[..., :3] for x in (q, k, v)))
    near, delta = made("near and centres"), made("delta")
    refused("q and k must have one row for each", q[:, :, 1:], k, v, module=near)
    refused("centres must have shape", q, k, v, module=pytorch.NearFarAttention(2, np.ones((2, 3))))
    refused("^centres must", q, k, v, module=pytorch.NearFarAttention(2, 16))
    refused("step must be without centres", q, k, v, module=near.step)
    refused("is_causal must be True", q, k, v, module=delta)
    refused("q must hold real", *(x.int() for x in (q, k, v)), module=delta, is_causal=True)
    refused("k must have rows of width d = 4", q, v, v, module=delta, is_causal=True)
    for wrong in (0, 2.5, "4"):
        with pytest.raises(ValueError, match=r"^d must be an integer"):
            pytorch.DeltaAttention(wrong)
        with pytest.raises(ValueError, match=r"^m must be an integer"):
            pytorch.FavorAttention(4, wrong, np.random.default_rng(0))
    for given in ({"band": -1}, {"band": 2, "sinks": 0.5}):
        with pytest.raises(ValueError, match=rf"^{list(given)[-1]} must be an integer"):
            pytorch.NearFarAttention(**given)
    with pytest.raises(ValueError, match=r"^rng must be a numpy.random.Generator"):
        pytorch.FavorAttention(4, 6, 0)


@pytest.mark.filterwarnings("ignore:.*(nested tensors|Sparse CSR):UserWarning")
def test_nested_and_sparse_tensors_are_refused_by_name():
    dense, mask = torch.randn(2, 2, 3, D), torch.ones(2, 3, dtype=torch.bool)
    nested = (torch.nested.nested_tensor([*dense], layout=x) for x in (torch.jagged, torch.strided))
    for x in (*nested, dense.to_sparse(), dense.to_sparse_csr()):
        for call in (made("favor", torch.float32), made("delta", torch.float32)):
            refused("^q must be dense", x, x, x, module=call, is_causal=True)
        refused("^k must be dense", x, x, x, module=attention.softmax_attention)
    rows, near = [dense, dense, dense], near_far.near_field
    refused("^attn_mask must be dense", *rows, mask.to_sparse())
    refused("^key_mask must be dense", *rows, 1, module=near, key_mask=mask[:, None].to_sparse())


# The page

PAGE = (ROOT / "kit/pages/in_your_own_model.md").read_text(encoding="utf-8")
TIMES, TRAINED = (
    json.loads((ROOT / f"benchmarks/{name}.json").read_text(encoding="utf-8"))
    for name in ("pytorch", "pytorch_training")
)
LINES = re.findall(r"```python\n(.+?)```", PAGE, re.DOTALL)


def table(heading, columns):
    """The cells of a table below a heading of the page, by the first of each row."""
    part = PAGE.split(f"## {heading}\n")[1].split("\n## ")[0]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in part.splitlines()]
    return {row[0]: row[1:] for row in rows if len(row) == columns + 1}


def test_the_page_says_what_was_recorded():
    said, trained = table("What it costs", 6), TRAINED["trained"]
    for way in list(TIMES["causal"]["1024"])[1:]:
        ratios = [
            f"{by['SDPA'] / by[way]:.2g}" if way in by else "–"
            for kind in ("all-to-all", "causal")
            for by in TIMES[kind].values()
        ]
        assert said[way] == ratios
    learned = table("What to judge by", 1)
    for way, losses in trained.items():
        assert learned[way] == [f"{min(losses):.2f} to {max(losses):.2f}"]
    for loss in TRAINED["count"].values():
        assert f"{loss:.2f}" in PAGE


def test_the_lines_of_the_page_run():
    q, k, v = (torch.randn(2, 4, 8, 16) for _ in "qkv")
    names = {"np": np, "q": q[:, :, :7], "k": k[:, :, :7], "v": v[:, :, :7]}
    names |= {"q_next": q[:, :, 7:], "k_next": k[:, :, 7:], "v_next": v[:, :, 7:]}
    three, unpacked, decoding = LINES[:3]
    exec(three, names)
    assert len([line for line in three.splitlines() if line]) == 3
    exact = torch.nn.functional.scaled_dot_product_attention
    assert names["rows"].shape == exact(*(names[x] for x in "qkv"), is_causal=True).shape
    mha, x = torch.nn.MultiheadAttention(8, 2, batch_first=True), torch.randn(3, 5, 8)
    with torch.no_grad():
        mha.in_proj_bias += torch.randn(24)
        exec(unpacked, own := {"torch": torch, "mha": mha, "x": x, "attend": exact})
        later = torch.ones(5, 5, dtype=torch.bool).triu(1)
        torch.testing.assert_close(own["out"], mha(x, x, x, attn_mask=later, need_weights=False)[0])
    exec(decoding, names)
    whole = names["attend"](q, k, v, is_causal=True)
    torch.testing.assert_close(names["rows"], whole[:, :, 7:], rtol=0, atol=1e-6)


@torch.no_grad()
def test_the_lines_for_a_language_model_run(tmp_path, monkeypatch, capsys):
    of = pytest.importorskip("transformers", reason="run where it is", exc_type=ImportError)
    sizes = {"vocab_size": 50, "hidden_size": 48, "intermediate_size": 64, "num_hidden_layers": 24}
    heads = {"num_attention_heads": 6, "num_key_value_heads": 2}
    model = of.LlamaForCausalLM(of.LlamaConfig(**sizes, **heads)).eval()
    model.generation_config.eos_token_id, tokens = None, torch.randint(1, 50, (1, 90))
    inputs = {"input_ids": tokens, "attention_mask": torch.ones_like(tokens)}
    monkeypatch.chdir(tmp_path)
    names = {"model": model, "tokens": tokens, "other": tokens, "inputs": inputs}
    names |= {"torch": torch, "np": np}
    for lines in LINES[3:9]:
        exec(lines, names)
    assert len(capsys.readouterr().out.splitlines()) == 25
    assert names["written"].shape == (1, 290)
    ours, theirs = np.load("text/layer_2.npz"), np.load("layer.npz")
    assert {x: ours[x].shape for x in ours} == {"q": (6, 90, 8), "k": (2, 90, 8), "v": (2, 90, 8)}
    assert [*theirs] == [*ours]


def test_the_lines_for_flax_run_and_give_the_module_s_rows():
    nnx = pytest.importorskip("flax.nnx", reason="run where Flax is", exc_type=ImportError)
    jnp = pytest.importorskip("jax.numpy", reason="run where JAX is", exc_type=ImportError)
    names = {"jnp": jnp, "attention": attention}
    exec(LINES[-1], names)
    q, k, v = drawn(torch.float32)
    favor = made("favor", torch.float32)
    attend, mask = names["favor"](jnp.asarray(favor.W.numpy()), True), hiding()[:, None, None]
    found = attend(*(jnp.asarray(x.transpose(1, 2).numpy()) for x in (q, k, v)), jnp.asarray(mask))
    expected = favor(q, k, v, mask, is_causal=True).transpose(1, 2)
    np.testing.assert_allclose(found, expected, atol=1e-6)
    layer = nnx.MultiHeadAttention(4, 16, attention_fn=attend, decode=False, rngs=nnx.Rngs(0))
    x = jnp.asarray(np.random.default_rng(1).normal(size=(2, L, 16)), dtype=jnp.float32)
    assert nnx.jit(layer)(x, mask=jnp.asarray(mask)).shape == x.shape
    with pytest.raises(ValueError, match="dropout_rate must be 0"):
        nnx.MultiHeadAttention(
            4, 16, attention_fn=attend, decode=False, dropout_rate=0.5, rngs=nnx.Rngs(0)
        )(x, deterministic=False)
    with pytest.raises(ValueError, match="mask must be of keys alone"):
        layer(x, mask=jnp.ones((2, 1, L, L), dtype=bool))
