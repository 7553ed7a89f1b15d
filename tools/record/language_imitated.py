"""Write language_imitated.csv and language_imitated_recall.csv: projections that learn a window.

    make model MODEL=language, then
    python -m tools.record.language_imitated    needs the extra `training`; an hour of two cores

All blocks keep the last WINDOW keys and the first SINKS; nothing is added. W_q, W_k, W_v and W_o of
all blocks learn to imitate the exact model: the loss is KL(exact ‖ windowed) of the next token, and
each step reads PIECE tokens, of Emma and of the Python reference in turn. By Adam; the rate rises
over ten steps and falls over the last third. RATE was chosen by the loss on the four windows to
choose by, seed 0: 0.366 untrained; after 15 steps 0.338 for 3e-5, 0.321 for 1e-4 and 0.323 for
3e-4, after 40 steps 0.304 for 1e-4 and 0.324 for 3e-4. Training multiplies bfloat16, five seconds
a step where a processor has AMX, longer elsewhere; weights, sums and what judges are float32.
"""

import jax
import jax.numpy as jnp
import numpy as np

from performer_course.models import language
from performer_course.teaching import training
from tools.record import language as record
from tools.record import language_methods as methods
from tools.record.shared import named, recorder, with_error

PARTS = "q", "k", "v", "output"  # of the projections, which learn
WINDOW, SINKS = 64, 4
PIECE, RATE, STEPS, SEEDS = 768, 1e-4, (15, 30, 60, 120, 240), (0, 1)  # of the order of pieces
KIND = jnp.bfloat16


def product(axes, a, b):
    return jnp.einsum(axes, a.astype(KIND), b.astype(KIND), preferred_element_type=jnp.float32)


@jax.custom_vjp
def apply(W, x):
    """x Wᵀ of rows x: products of numbers of KIND, sums in float32; so is its gradient."""
    return product("ni,oi->no", x, W)


def backward(kept, slope):
    turned = jax.lax.optimization_barrier(slope.astype(KIND).T)  # fast only if it is copied
    return product("on,ni->oi", turned, kept[1]), product("no,oi->ni", slope, kept[0])


apply.defvjp(lambda W, x: (apply(W, x), (W, x)), backward)


def attention(q, k, v, window):
    """To the last `window` keys and the first SINKS: as q (G, H / G, n, d); k, v (G, n, d)."""
    i, j = np.arange(q.shape[2])[:, None], np.arange(q.shape[2])
    seen = (j <= i) & ((j > i - window) | (j < SINKS))
    t = jnp.where(seen, jnp.einsum("ghid,gjd->ghij", q, k), -jnp.inf)
    return jnp.einsum("ghij,gjd->ghid", jax.nn.softmax(t, axis=-1), v)


def vectors(projections, rest, tokens, window):
    """As `language._vectors`, (n, width), with this window in all blocks."""
    n, rotation = len(tokens), rest["rotation"][: len(tokens)]
    d = 2 * rotation.shape[1]

    def norm(gain, x):
        return gain * x * jax.lax.rsqrt((x * x).mean(axis=-1, keepdims=True) + rest["eps"])

    def rotated(x):
        x = jax.lax.complex(x[..., ::2], x[..., 1::2]) * rotation
        return jnp.stack([x.real, x.imag], axis=-1).reshape(*x.shape[:-1], d)

    @jax.checkpoint
    def block(x, parts):
        W, more = parts
        y = norm(more["attn_norm"], x)
        q, k, v = (apply(W[name], y).reshape(n, -1, d).swapaxes(0, 1) for name in PARTS[:3])
        q, k = rotated(q).reshape(len(k), -1, n, d) / d**0.5, rotated(k)
        y = attention(q, k, v, window).reshape(-1, n, d).swapaxes(0, 1).reshape(n, -1)
        x += apply(W["output"], y)
        y = norm(more["ffn_norm"], x)
        y = jax.nn.silu(apply(more["ffn_gate"], y)) * apply(more["ffn_up"], y)
        return x + apply(more["ffn_down"], y), None

    x, _ = jax.lax.scan(block, rest["words"][tokens], (projections, rest["blocks"]))
    return norm(rest["output_norm"], x)


def loss(projections, exact, rest, tokens):
    """KL(exact ‖ windowed) of the next token, the mean over tokens; 128 at a time, for memory."""

    @jax.checkpoint
    def part(pair):
        p, own = (jax.nn.log_softmax(apply(rest["words"], x)) for x in pair)
        return (jnp.exp(p) * (p - own)).sum()

    models = (exact, len(tokens)), (projections, WINDOW)
    pair = (vectors(W, rest, tokens, window) for W, window in models)
    pair = tuple(x.reshape(-1, min(128, len(x)), x.shape[-1]) for x in pair)
    return jax.lax.map(part, pair).sum() / len(tokens)


def stacked(weights):
    """(projections, rest) of a model as `vectors` takes them: arrays of all blocks."""

    def blocks(name):
        return np.array([weights[f"blk.{i}.{name}.weight"] for i in range(weights["blocks"])])

    names = "attn_norm", "ffn_norm", "ffn_gate", "ffn_up", "ffn_down"
    rest = {"words": weights["token_embd.weight"], "blocks": {name: blocks(name) for name in names}}
    rest |= {"output_norm": weights["output_norm.weight"], "eps": np.float32(weights["eps"])}
    rest["rotation"] = language._rotation(weights, 0, PIECE)
    return jax.tree.map(jnp.asarray, ({name: blocks(f"attn_{name}") for name in PARTS}, rest))


def pieces(weights, seed):
    """Tokens (PIECE,) without end: of Emma and of the reference in turn, each in a random order."""
    rng = np.random.default_rng([seed, 55])

    def of(part):
        tokens = language.encode(weights, record.texts()[part])
        while True:
            yield from rng.permutation(tokens[: len(tokens) // PIECE * PIECE].reshape(-1, PIECE))

    for pair in zip(of("train"), of("reference 0"), strict=True):
        yield from pair


def trained(weights, seed):
    """(steps, weights) after each number of STEPS."""
    exact, rest = stacked(weights)
    W, state, last = exact, training.ADAM.init(exact), STEPS[-1]
    for n, tokens in zip(range(1, last + 1), pieces(weights, seed), strict=False):
        rate = RATE * min(1, n / 10, 3 * (last + 1 - n) / last)
        W, state, _ = training.step(loss, W, state, rate, exact, rest, tokens)
        if n in STEPS:
            named = ((f"attn_{name}.weight", np.asarray(x)) for name, x in W.items())
            yield (
                n,
                weights | {f"blk.{i}.{name}": x for name, xs in named for i, x in enumerate(xs)},
            )


@recorder
def main():
    weights, nats, recall = language.load(language.find()), [], []
    texts = record.windows(weights, "judge") | record.windows(weights, "kinds")
    of_exact = {name: record.nats_of(weights, x, methods.exact) for name, x in texts.items()}
    for seed in SEEDS:
        attend = methods.near(WINDOW, SINKS)
        for steps, now in trained(weights, seed):
            for name, x in texts.items():
                over = record.nats_of(now, x, attend) - of_exact[name]
                nats.append((seed, steps, name, *with_error(over)))
            for n in (1, 2, 3):
                found = record.scores(now, *record.sequence(weights, n), attend)
                recall.append((seed, steps, n, *found))
        columns = ["seed", "steps", "window", "over exact", "se"]
        yield "language_imitated.csv", named(columns, nats), ".4f"
        columns = ["seed", "steps", "sequence", *record.KINDS]
        yield "language_imitated_recall.csv", named(columns, recall), ".4f"
