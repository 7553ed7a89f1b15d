"""Write writer.npz, writer.csv and writer_rates.csv: the writer, trained with each attention.

    python -m tools.record.writer    needs the extra `training`

Every method at the best of three rates, which 750 steps on *Emma* choose by *Persuasion*; then
3,000 steps on both, two seeds, judged on three passages of *Mansfield Park*: bits per character and
their standard error over pieces. The weights are of the first seed. Three hours of one core.
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from tqdm import tqdm

from performer_course import features, transformer
from performer_course.teaching import training, writer
from tools.record import shared
from tools.record.shared import named, recorder, with_error

PIECES, M, STEPS, TRIAL, RATES, SEEDS = 12, 64, 3000, 750, (4e-3, 8e-3, 16e-3), 2
CONFIG, L = writer.config(), writer.LENGTH
AGO = np.maximum(np.arange(L)[:, None] - np.arange(L), 0).astype(np.float32)
SEEN = np.tri(L, dtype=bool)


def decay(layer: dict, forgets: bool):
    """The logarithm of what is left of each earlier token, (heads, L, L), or 0."""
    return -jax.nn.softplus(layer["decay"])[:, None, None] * AGO if forgets else 0.0


def softmax(forgets: bool) -> Callable:
    """Exact attention; with `forgets` a distance penalty is added to its logits."""

    def attend(q, k, v, layer, **_):
        logits = q @ k.mT / q.shape[-1] ** 0.5 + decay(layer, forgets)
        return jax.nn.softmax(jnp.where(SEEN, logits, -jnp.inf), axis=-1) @ v

    return attend


def linear(maps: Callable, forgets: bool) -> Callable:
    """Linear attention with features of `maps(q, k, layer)`; with `forgets` its state decays."""

    def attend(q, k, v, layer, **_):
        phi_q, phi_k = maps(q, k, layer)
        A = jnp.where(SEEN, phi_q @ phi_k.mT * jnp.exp(decay(layer, forgets)), 0)
        return (A @ v) / A.sum(axis=-1, keepdims=True)

    return attend


def positive(eps: float) -> Callable:
    """Positive features relative to the largest of the piece, which cancels in the mean, plus eps.

    Without eps a row whose features are all tiny is 0/0, and training stops; Choromanski et al.'s
    code adds one, too. With it later keys count a little, so the last judgement is without. That
    training does not live on it: in float64 without it, 750 steps at the two lower rates give the
    same bits within 0.002, with forgetting or not.
    """

    def maps(q, k, layer):
        g, h = (features.log_positive(x * x.shape[-1] ** -0.25, layer["W"]) for x in (q, k))
        top = jax.lax.stop_gradient(h.max(axis=-2, keepdims=True))
        g = g + top
        g = g - jax.lax.stop_gradient(g.max(axis=-1, keepdims=True))
        return jnp.exp(g) + eps, jnp.exp(h - top) + eps

    return maps


def elu(q, k, layer):
    """ELU + 1 of queries and keys."""
    return features.elu_plus_one(q), features.elu_plus_one(k)


def ways(eps: float) -> dict[str, Callable]:
    """Each attention by its name."""
    return {
        "softmax": softmax(False),
        "softmax, distance": softmax(True),
        "FAVOR+": linear(positive(eps), False),
        "FAVOR+, forgets": linear(positive(eps), True),
        "ELU + 1, forgets": linear(elu, True),
    }


def drawn(rng) -> np.ndarray:
    """Directions of each block: (depth, m, d)."""
    return shared.drawn(rng, (CONFIG.depth,), M, CONFIG.width // CONFIG.heads)


def start(way: str, seed: int) -> dict:
    """Parameters before the first step; decays are 1/2, 1/4, 1/8 and 1/16 a token."""
    params = transformer.init(np.random.default_rng([6, seed]), CONFIG)
    del params["W"]
    if way.endswith(("distance", "forgets")):
        rates = np.tile(0.5 ** np.arange(1, CONFIG.heads + 1), (CONFIG.depth, 1))
        params["decay"] = np.log(np.expm1(rates))
    return {name: jnp.asarray(x, dtype=jnp.float32) for name, x in params.items()}


def losses(eps: float) -> dict[str, Callable]:
    """Each loss(params, tokens, W): the mean −ln P of the next character."""

    def loss_of(way, attend):
        def loss(params, tokens, W):
            given = params | ({"W": W} if "FAVOR+" in way else {})
            log_p = transformer.forward(given, tokens[:, :-1], CONFIG, attend=attend)
            return -jnp.take_along_axis(log_p, tokens[:, 1:, None], axis=-1).mean()

        return loss

    return {way: loss_of(way, attend) for way, attend in ways(eps).items()}


LOSSES, JUDGES = losses(1e-6), losses(0.0)


def train(way: str, text: str, steps: int, rate: float, seed: int) -> dict:
    """The parameters after so many steps on random pieces; W is drawn anew at each."""
    tokens = writer.encode(text).astype(np.int32)
    at, W = np.random.default_rng([7, seed]), np.random.default_rng([8, seed])

    def batches():
        for _ in range(steps):
            first = at.integers(len(tokens) - L, size=PIECES)
            yield tokens[first[:, None] + np.arange(L + 1)], drawn(W).astype(np.float32)

    return training.train(LOSSES[way], start(way, seed), batches(), steps, rate)[0]


def bits(loss: Callable, params: dict, tokens: np.ndarray) -> np.ndarray:
    """Bits per character of each piece, with directions that were not trained with."""
    judge, W = jax.jit(loss), drawn(np.random.default_rng(9)).astype(np.float32)
    found = [float(judge(params, piece[None], W)) for piece in tokens.astype(np.int32)]
    return np.array(found) / np.log(2)


@recorder
def main():
    learn, choose = (writer.text(part) for part in ("train", "choose"))
    test, trials = writer.pieces(writer.text("test")), {}
    for way in tqdm(LOSSES):
        for rate in RATES:
            params = train(way, learn, TRIAL, rate, seed=0)
            trials[way, rate] = bits(LOSSES[way], params, writer.pieces(choose)).mean()
    yield (
        "writer_rates.csv",
        named(["way", "rate", "bits"], ((*n, x) for n, x in trials.items())),
        ".4f",
    )
    rows, weights = [], {}
    for way in tqdm(LOSSES):
        rate = min(RATES, key=lambda rate: trials[way, rate])
        for seed in range(SEEDS):
            params = train(way, f"{learn} {choose}", STEPS, rate, seed)
            rows.append((way, rate, seed, *with_error(bits(JUDGES[way], params, test))))
            if seed == 0:
                weights |= {f"{way}: {name}": np.float16(x) for name, x in params.items()}
    yield "writer.csv", named(["way", "rate", "seed", "bits", "error"], rows), ".4f"
    yield "writer.npz", weights
