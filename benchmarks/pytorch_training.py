"""A decoder of one's own that learns a text with each module of `performer_course.pytorch`.

    python benchmarks/pytorch_training.py [--steps 200]

Two blocks, width 64, 4 heads, 256 characters at a time; beside PyTorch's own attention, a window
alone, mean(V), and counts. Needs the extra `torch`; writes pytorch_training.json beside this file.
"""

import json

import harness
import numpy as np
import torch
from harness import environment, progress
from pytorch import WAYS
from torch import nn
from torch.nn.functional import cross_entropy

from performer_course import attention, near_far
from performer_course.teaching import data

SYMBOLS, *SETS = data.blocks()  # each paragraph once, every tenth block held out: lesson 16
TO_LEARN, HELD_OUT = map(torch.asarray, SETS)  # (blocks, characters)
del WAYS["FAVOR+, m = 256"]  # as many features as tokens
WAYS |= {  # what a model with a way has to beat
    "band 24": lambda d, rng: lambda *x, is_causal: near_far.near_field(*x, 24, causal=True),
    "mean(V)": lambda d, rng: lambda *x, is_causal: attention.uniform_attention(*x, causal=True),
}


class Block(nn.Module):
    """x + attention(norm(x)), then x + map(norm(x))."""

    def __init__(self, width, heads, attend):
        super().__init__()
        self.heads, self.attend = heads, attend
        self.before, self.between = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        wider, narrower = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.map = nn.Sequential(wider, nn.GELU(), narrower)

    def forward(self, x):
        qkv = self.qkv(self.before(x)).unflatten(-1, (3, self.heads, -1))
        q, k, v = qkv.movedim(-3, 0).transpose(-3, -2)  # (batch, heads, L, d)
        x = x + self.out(self.attend(q, k, v, is_causal=True).transpose(-3, -2).flatten(-2))
        return x + self.map(self.between(x))


def trained(make, steps, seed=0, L=256, batch=4):
    """Nats a character: (losses of the steps, loss on text that was not seen)."""
    torch.manual_seed(seed)
    rng, n = np.random.default_rng(seed), len(SYMBOLS)
    blocks = [Block(64, 4, make(16, rng)) for _ in range(2)]
    model = nn.Sequential(nn.Embedding(n, 64), *blocks, nn.LayerNorm(64), nn.Linear(64, n))
    place = nn.Parameter(torch.randn(L, 64) / 8)
    optimizer, losses = torch.optim.AdamW([place, *model.parameters()], 3e-3), []

    def loss(part):
        return cross_entropy(model[1:](model[0](part[:, :-1]) + place).mT, part[:, 1:])

    for _ in range(steps):
        optimizer.zero_grad()
        blocks = TO_LEARN[rng.integers(len(TO_LEARN), size=batch)]
        starts = rng.integers(blocks.shape[1] - L, size=batch)
        now = loss(torch.stack([x[i : i + L + 1] for x, i in zip(blocks, starts, strict=True)]))
        now.backward()
        optimizer.step()
        losses.append(now.item())
    with torch.no_grad():
        return losses, loss(HELD_OUT.unfold(1, L + 1, L).flatten(0, 1)).item()


def counted():
    """Nats of a held-out character, by counts of characters and of pairs; one added to each."""
    n, new = len(SYMBOLS), HELD_OUT[:, 1:]
    pairs = torch.bincount((TO_LEARN[:, :-1] * n + TO_LEARN[:, 1:]).flatten(), minlength=n * n)
    pairs = pairs.view(n, n) + 1.0
    single, double = pairs.sum(0) / pairs.sum(), pairs / pairs.sum(1, keepdim=True)
    losses = -single[new].log().mean().item(), -double[HELD_OUT[:, :-1], new].log().mean().item()
    return dict(zip(("characters", "pairs"), losses, strict=True))


def main():
    steps = harness.parser(__doc__, steps=(200, "of each training")).parse_args().steps
    found = {"steps": steps, "environment": environment(), "count": counted(), "trained": {}}
    for name in progress(list(WAYS), "training"):
        found["trained"][name] = [trained(WAYS[name], steps, seed)[1] for seed in (0, 1)]
    harness.write(found, "pytorch_training")
    print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
