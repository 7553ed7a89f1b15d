"""Record what a language model loses when its attention is replaced, language_*.csv and others.

    make model MODEL=language, then
    python -m tools.record.language [nats | errors | harm | ...]    needs the extra `training`

All of it takes two hours of one core; what is beside the model from another run is not made again.
Emma and the first third of the Python reference train, Persuasion and the second third choose,
Mansfield Park and the last third judge.
"""

import collections
import functools
import gzip
import itertools
import json

import numpy as np
from scipy.special import log_softmax, softmax

from performer_course.models import language
from performer_course.teaching import data
from performer_course.transformer import join_heads
from tools.record import language_methods as methods
from tools.record.shared import given_to, named, recorder, with_error

L, BLOCK = 2048, 64  # tokens of a window, of which every second is judged; tokens in a mean
SEEDS = 0, 1  # of trained features
EXACT = 18, 23, 7, 17, 20, 9, 24, 10  # the blocks whose replacement harms retrieval most: `orders`
KEY_HEADS = (17, 1), (18, 2), (20, 1), (20, 2), (21, 0), (21, 2), (22, 2), (23, 0), (23, 2)
KEY_HEADS += (7, 0), (7, 1), (7, 2)  # those of `looking`, and block 7, of which none looks
HARMFUL = (18, 2), (23, 0), (17, 1), (7, 2), (20, 2), (10, 2), (7, 0), (24, 0), (9, 2), (9, 1)
HARMFUL += (23, 2), (23, 1)  # the first of `key_heads`
SOME = "exact", "window 64 + 4, mean key", *(f"window {w} + 4" for w in (64, 96, 256))
SOME += "window 64 + 4, 8 exact", "window 256 + 4, 8 exact", "window 256 + 4, 12 key heads exact"
SOME += "window 64 + 4, trained 0", "window 64 + 4, trained 0, 8 exact"
KINDS = "first digit", "other digits", "paragraph", "prose"


def unpacked(name):
    return gzip.decompress((data.FOLDER / f"{name}.gz").read_bytes()).decode()


@functools.cache
def texts():
    """{part: text}: those of Austen's, and "reference 0", 1, 2, the thirds of Python's."""
    whole = unpacked("python_reference.txt")
    third = len(whole) // 3
    parts = {f"reference {n}": whole[n * third : (n + 1) * third] for n in range(3)}
    return parts | json.loads(unpacked("language_texts.json"))


def windows(weights, part):
    """{name: tokens (2,049,)} of the windows "train" (8), "choose" (4), "judge" or "kinds" (6)."""
    if part == "kinds":
        found = json.loads(unpacked("language_kinds.json")).items()
        found = {name: language.encode(weights, text) for name, text in found}
        return {
            f"{name} {i}": x[i * (L + 1) :][: L + 1] for name, x in found.items() for i in (0, 1)
        }
    n, third = {"train": (4, 0), "choose": (2, 1), "judge": (3, 2)}[part]
    names = [f"window {i}" for i in range(n)] if part == "judge" else [part]
    *prose, third = (language.encode(weights, texts()[x]) for x in (*names, f"reference {third}"))
    if part != "judge":
        prose = [prose[0][i * (L + 1) :] for i in range(n)]
    found = {f"prose {i}": x for i, x in enumerate(prose)}
    found |= {f"technical {i}": third[i * (len(third) // n) :] for i in range(n)}
    return {name: x[: L + 1] for name, x in found.items()}


def heads(weights, *texts):
    """[block: [(q, k, v) of each text]] of the exact model."""

    def of(tokens):
        run = functools.partial(language.logits, weights, tokens, every=len(tokens))
        return given_to(language.attend_exact, run)

    return list(zip(*map(of, texts), strict=True))


def kept(name, compute):
    """The arrays {name: array} of `compute()`, from a file beside the model if it is there."""
    path = language.find().with_name("recorded") / f"{name}.npz"
    if not path.is_file():
        path.parent.mkdir(exist_ok=True)
        np.savez(path, **compute())
    with np.load(path) as stored:
        return dict(stored)


def known(weights):
    """What training windows say of each block: moments, norms of values, 16 and 64 centres."""

    def compute():
        rng, found = np.random.default_rng(0), collections.defaultdict(list)
        for block in heads(weights, *(x[:-1] for x in windows(weights, "train").values())):
            q, k, v = (np.concatenate(x, axis=1) for x in zip(*block, strict=True))
            found["moments"].append(q.mean(axis=1) + np.repeat(k.mean(axis=1), 3, axis=0))
            found["norms"].append(np.median(np.linalg.norm(v, axis=-1), axis=1))
            for C in (64, 16):
                found[str(C)].append([methods.kmeans(rng, x, C) for x in k])
        return {name: np.array(x, np.float32) for name, x in found.items()}

    return kept("known", compute)


def trained(weights, seed):
    """Features of all blocks, {"keys", "queries"}, [W, b] of each head."""

    def compute():
        from tools.record.language_trained import train

        blocks = enumerate(heads(weights, *(x[:-1] for x in windows(weights, "train").values())))
        W = [train(seed, x, weights[f"blk.{i}.attn_output.weight"]) for i, x in blocks]
        return {"keys": [keys for keys, _ in W], "queries": [np.concatenate(x) for _, x in W]}

    return kept(f"trained {seed}", compute)


def approximations(weights):
    """{method: attend}, each in all blocks, and some beside eight exact blocks."""
    given, near, later = known(weights), methods.near, range(1, 30)
    short = 0.4 * given["norms"]
    found = {"exact": methods.exact, "window 64": near(64), "mean(V)": methods.mean_value}
    found |= {f"window {w} + 4": near(w, 4) for w in (64, 96, 128, 256, 512)}
    found |= {
        "window 64 + 4, mean key": near(64, 4, mean=range(30)),
        "window 64 + 4, mean key from block 1": near(64, 4, mean=later),
        "window 64 + 4, short values": near(64, 4, short),
        "window 64 + 4, short values, mean key from block 1": near(64, 4, short, mean=later),
        "FAVOR+, 256 centred": methods.centred(given["moments"]),
    }
    found |= {f"window 64 + 4, {C} centres": methods.clusters(given[str(C)]) for C in (16, 64)}
    for seed in SEEDS:
        found[f"window 64 + 4, trained {seed}"] = near(64, 4, far=trained(weights, seed))
    far = "short values", "64 centres", *(f"trained {seed}" for seed in SEEDS)
    hybrids = [f"window {w} + 4" for w in (64, 96, 256)] + [f"window 64 + 4, {x}" for x in far]
    found |= {f"{x}, 8 exact": methods.hybrid(EXACT, found[x]) for x in hybrids}
    found["window 256 + 4, 12 key heads exact"] = methods.hybrid(KEY_HEADS, near(256, 4))
    return found


def lost(weights, x, tokens):
    """−ln P of these tokens, each after the vector x of the token before it."""
    log_p = log_softmax(x @ weights["token_embd.weight"].T, axis=-1)
    return -log_p[np.arange(len(x)), tokens]


def nats_of(weights, tokens, attend):
    """−ln P of every second token of a window: (1024,)."""
    return lost(weights, language._vectors(weights, tokens[:-1], attend)[::2], tokens[1::2])


def nats(weights, part="judge"):
    """language_nats.csv: nats of each method and window, their differences, and means of blocks."""
    every = approximations(weights)
    of = {x: functools.partial(nats_of, attend=every[x]) for x in every}
    counts = enumerate(("counts of words", "counts of pairs"), 1)
    of |= {name: functools.partial(by_counts, n=n) for n, name in counts}
    of = of if part == "judge" else {x: of[x] for x in SOME}
    for method, (window, tokens) in itertools.product(of, windows(weights, part).items()):
        found, exact = (
            kept(f"{window}, {x}", lambda f=of[x], x=tokens: {"lost": f(weights, x)})["lost"]
            for x in (method, "exact")
        )
        blocks = found.reshape(-1, BLOCK // 2).mean(axis=1)
        yield window, method, found.mean(), *with_error(found - exact), *blocks


def kinds(weights):
    """language_kinds.csv: the same of SOME methods on texts of other kinds, two windows of each."""
    return nats(weights, "kinds")


def by_counts(weights, tokens, n):
    """−ln P by how often words, or pairs (n = 2), come in the text to train by.

    κ pseudo-counts of what is less exact, the κ that is best on the text to choose by.
    """
    technical = language.decode(weights, tokens) in texts()["reference 2"]
    parts = ("reference 0", "reference 1") if technical else ("train", "choose")
    train, choose = (language.encode(weights, texts()[x]) for x in parts)
    one = np.bincount(train, minlength=49_152)
    pairs = collections.Counter(itertools.pairwise(train.tolist()))

    def of(x, kappa):
        p = (one[x[1:]] + kappa[0] / len(one)) / (len(train) + kappa[0])
        if n == 2:
            both = np.array([pairs[pair] for pair in itertools.pairwise(x.tolist())])
            p = (both + kappa[1] * p) / (one[x[:-1]] + kappa[1])
        return -np.log(p)

    tried = itertools.product(4.0 ** np.arange(3, 9), 4.0 ** np.arange(-1, 5)[: 6 * n - 5])
    return of(tokens, min(tried, key=lambda kappa: of(choose, kappa).mean()))[::2]


def error(weights, attend, i, given):
    """(relative, normalised) error of the output of block i, from its (q, k, v) in windows."""

    def output(attend):
        mixed = np.hstack([attend(i, *qkv)[:, 512:] for qkv in given])
        return join_heads(mixed) @ weights[f"blk.{i}.attn_output.weight"].T

    found, exact, mean = map(output, (attend, language.attend_exact, methods.mean_value))
    off = ((found - exact) ** 2).sum()
    return off / (exact**2).sum(), off / ((mean - exact) ** 2).sum()


def chosen(weights):
    """Two windows to choose by, one of each kind: tokens (2, 2,048)."""
    return np.array([x[:-1] for x in list(windows(weights, "choose").values())[1:3]])


def errors(weights):
    """language_errors.csv: of each block's output after W_o, on exact q, k, v, rows from 512 on.

    error: squared, relative to the output's squared size; normalised: to mean(V)'s squared error.
    """
    blocks = heads(weights, *chosen(weights))
    for (method, attend), i in itertools.product(approximations(weights).items(), range(30)):
        if "exact" not in method:
            yield method, i, *(f"{x:.5f}" for x in error(weights, attend, i, blocks[i]))


THINGS = "silver trunk,garden gate,north tower,old piano,green cabinet,wine cellar,boat house"
THINGS += ",iron chest,writing desk,stable door,clock room,linen press"


def sequence(weights, n, between=1500):
    """(tokens, {kind: positions}) of sequence n, of which 0 is to choose by.

    Six pass keys and a paragraph, 1,500 tokens of prose, the keys in another order, the paragraph.
    """
    rng, encode = np.random.default_rng([48, n]), functools.partial(language.encode, weights)
    things = rng.permutation(THINGS.split(","))[:6]
    keys = ["".join(map(str, rng.integers(10, size=5))) for _ in things]
    facts = zip(things, keys, strict=True)
    facts = [encode(f"The pass key of the {x} is {key}.\n") for x, key in facts]
    prose = encode(texts()["between" if n else "choose"])[2000 * (n - 1) if n else 6000 :]
    parts = [*facts, prose[1700:1831], prose[:between], encode("\n")]
    parts += [*(facts[i] for i in rng.permutation(6)), prose[1700:1831]]
    starts, tokens = np.cumsum([0, *map(len, parts)]), np.concatenate(parts)
    digit = np.array([weights["vocabulary"][t].isdigit() for t in tokens])
    digits = np.flatnonzero(digit & (np.arange(len(tokens)) >= starts[9]))[:30].reshape(6, 5)
    where = {"first digit": digits[:, 0], "other digits": digits[:, 1:].ravel()}
    where["paragraph"] = np.arange(starts[15], starts[16])
    return tokens, where | {"prose": np.arange(starts[7] + 16, starts[8], 2)}


def scores(weights, tokens, where, attend):
    """The mean −ln P of the tokens of each kind."""
    x = language._vectors(weights, tokens, attend)
    return [lost(weights, x[at - 1], tokens[at]).mean() for at in where.values()]


def harm(weights):
    """language_harm.csv: sequence 0 with one block at a time by window 64 + 4; −1: none."""
    for i in range(-1, 30):
        attend = methods.hybrid({*range(30)} - {i}, methods.near(64, 4))
        yield i, *scores(weights, *sequence(weights, 0), attend)


def key_heads(weights):
    """language_key_heads.csv: the same with one key head at a time, of the blocks EXACT."""
    for i, g in itertools.product(EXACT, range(3)):
        others = {*range(30)} - {i} | {(i, h) for h in range(3) if h != g}
        attend = methods.hybrid(others, methods.near(64, 4))
        yield i, g, *scores(weights, *sequence(weights, 0), attend)


def orders():
    """(blocks from the most harmful to retrieval, to prose), by language_harm.csv."""
    harms = np.loadtxt(data.FOLDER / "language_harm.csv", delimiter=",", skiprows=1)
    harms = harms[harms[:, 0].argsort()][1:, 1:]
    return [np.argsort(-x).tolist() for x in (harms[:, :3].sum(axis=1), harms[:, 3])]


def recall(weights):
    """language_recall.csv: sequences 1 to 3 with some blocks exact and the others by a method."""
    others, (retrieval, prose) = approximations(weights), orders()
    counts = 0, 1, 2, 4, 6, 8, 10, 12, 16
    blocks = [range(30), *(x[:n] for n in counts for x in (retrieval, prose))]
    blocks += [range(17, 25), range(11, 30), (17, 18, 20, 23)]
    far = [f"window 64 + 4, {x}" for x in (*(f"trained {n}" for n in SEEDS), "64 centres")]
    far.append("window 256 + 4")
    asked = [(x, "window 64 + 4") for x in blocks]
    asked += [(retrieval[:8], x) for x in (*far, "window 96 + 4")]
    asked += [([], x) for x in (*far, "window 64 + 4, mean key from block 1")]
    asked += [(x, f"window {w} + 4") for w in (64, 256) for x in (KEY_HEADS, HARMFUL)]
    asked = dict.fromkeys((tuple(sorted(exact)), method) for exact, method in asked)  # each once
    for (exact, method), n in itertools.product(asked, (1, 2, 3)):
        found = scores(weights, *sequence(weights, n), methods.hybrid(exact, others[method]))
        yield n, " ".join(":".join(map(str, np.ravel(x))) for x in exact), method, *found


def weights_of(q, k, i):
    """The exact causal weights of rows i: (heads, len(i), L)."""
    t = q[:, i] @ np.repeat(k, 3, axis=0).swapaxes(-1, -2) / 8
    return softmax(np.where(np.arange(k.shape[1]) <= i[:, None], t, -np.inf), axis=-1)


def anatomy(weights):
    """language_anatomy.csv: weights of each head, rows 1,024 on of two windows to choose by.

    exponent: mean ‖q' + k'‖² of causal pairs, plain and with keys centred by the training text.
    short: of keys after the first whose values are shorter than 0.4 of the median.
    """
    given, i = known(weights), np.arange(1024, L)
    back = i[:, None] - np.arange(L)
    for block, parts in enumerate(heads(weights, *chosen(weights))):
        found = []
        for q, k, v in parts:
            A, k = weights_of(q, k, i), np.repeat(k, 3, axis=0)
            short = np.repeat(short_values(given, block, v), 3, axis=0)[:, None]
            row = [A[..., 0], A[..., :4].sum(-1), np.where(back < 64, A, 0).sum(-1)]
            row += [np.where(back[:, 4:] > 256, A[..., 4:], 0).sum(-1), 1 / (A**2).sum(-1)]
            row += [np.where(short, A, 0).sum(-1)]
            for c in (k, k - given["moments"][block][:, None]):
                z = (q[:, i] ** 2).sum(-1)[..., None] + (c**2).sum(-1)[:, None]
                row.append((z + 2 * q[:, i] @ c.swapaxes(-1, -2))[:, back >= 0] / 8)
            found.append([y.mean(axis=1) for y in row])
        yield from ((block, head, *row) for head, row in enumerate(np.mean(found, axis=0).T))


def short_values(given, block, v):
    """Which keys after the first have values shorter than 0.4 of the median: (key heads, L)."""
    short = np.linalg.norm(v, axis=-1) < 0.4 * given["norms"][block][:, None]
    return short & (np.arange(v.shape[1]) > 0)


def sinks(weights):
    """language_sinks.csv: keys with short values, how many and which, and sizes of the residual."""
    tokens, given, rotation = chosen(weights), known(weights), language._rotation(weights, 0, L)
    x = weights["token_embd.weight"][tokens]
    for block, parts in enumerate(heads(weights, *tokens)):
        short = np.array([short_values(given, block, v).any(axis=0) for _, _, v in parts])
        often = collections.Counter(language.decode(weights, t[None]) for t in tokens[short])
        which, size = [name for name, _ in often.most_common(4)], np.linalg.norm(x, axis=-1)
        sizes = np.median(size), size[:, 0].mean(), size[short].mean() if which else 0.0
        yield block, short.sum(), repr(which), *sizes
        x = [language._block(weights, block, y, language.attend_exact, rotation) for y in x]


def looking(weights):
    """language_looking.csv: heads with a weight of 0.1 on what comes next, read before.

    In sequence 0: the first digits, and the tokens of the repeated paragraph.
    """
    tokens, where = sequence(weights, 0)
    digits, repeated = where["first digit"], where["paragraph"]

    def first(part):
        views = np.lib.stride_tricks.sliding_window_view(tokens, len(part))
        return (views == part).all(axis=1).argmax()

    pairs = [(digits - 1, [first(tokens[n : n + 5]) for n in digits])]
    pairs += [(repeated[:-1], first(tokens[repeated]) + np.arange(1, len(repeated)))]
    for block, ((q, k, _),) in enumerate(heads(weights, tokens)):
        found = [weights_of(q, k, i)[:, range(len(i)), j].mean(axis=1) for i, j in pairs]
        rows = enumerate(np.transpose(found))
        yield from ((block, head, *row) for head, row in rows if row.max() >= 0.1)


def single_far_keys(q, k, n=64, sinks=4):
    """The part of queries with over half of their weight on one key beyond n and the sinks."""
    j, found = np.arange(q.shape[1]), []
    for i in np.array_split(j, 8):
        far = (i[:, None] - j >= n) & (j >= sinks)
        found.append((weights_of(q, k, i) * far).max(axis=-1) > 0.5)
    return np.concatenate(found, axis=1).mean(axis=1)


def retrieving(weights):
    """language_retrieving.csv: `single_far_keys` of each head, where facts are asked for or not.

    In sequences 1 to 3, where they are, their mean; in a window to judge by of each kind.
    """
    asked, others = [sequence(weights, n)[0] for n in (1, 2, 3)], windows(weights, "judge")
    texts = *asked, others["prose 0"], others["technical 0"]
    for block, parts in enumerate(heads(weights, *texts)):
        found = [single_far_keys(q, k) for q, k, _ in parts]
        rows = zip(sum(found[:3]) / 3, *found[3:], strict=True)
        yield from ((block, head, *row) for head, row in enumerate(rows))


def said(weights):
    """language_said.json: {prompt: {method: 60 tokens of greedy text}}."""
    tokens, where = sequence(weights, 3)
    asked = {"prose": language.encode(weights, texts()["prompt"])}
    asked["technical"] = language.encode(weights, texts()["reference 2"])[20_000:21_500]
    asked["pass key"] = tokens[: where["first digit"][0]]
    near = "window 64 + 4"
    names = ["exact", "window 64", near, "window 256 + 4", f"{near}, 8 exact"]
    every, found = approximations(weights), {}
    for prompt, tokens in asked.items():
        found[prompt] = {"prompt": language.decode(weights, tokens[-60:])}
        for name in (*names, f"{near}, trained {SEEDS[0]}, 8 exact"):
            memory = functools.partial(methods.Memory, every[name])
            written = language.generate(weights, tokens, 60, memory)
            found[prompt][name] = language.decode(weights, written)
    yield "language_said.json", found


HEADS = (11, 2), (7, 0), (14, 4), (18, 7)  # local; sinks in mid text; the first token; one fetches
CARD = (0, 4), (4, 1), (20, 6)
QKV = ("q", 1), ("k", 3), ("v", 3)  # heads that share one


def kept_heads(weights):
    """language_heads.npz and language_card.npz: q, k, v of single heads, and their tokens."""
    tokens, text = sequence(weights, 0, between=60)[0], windows(weights, "choose")["prose 0"]
    W = trained(weights, SEEDS[0])
    for name, at, given in (("heads", HEADS, tokens[:512]), ("card", CARD, text[:320])):
        blocks = heads(weights, given)
        stored = {x: [blocks[i][0][n][h // d] for i, h in at] for n, (x, d) in enumerate(QKV)}
        if name == "heads":
            stored["keys"] = [W["keys"][i, h // 3] for i, h in at]
            stored["queries"] = [W["queries"][i, h] for i, h in at]
        stored = {x: np.array(a, np.float16) for x, a in stored.items()}
        stored["tokens"] = [language.decode(weights, t) for t in given[:, None]]
        yield f"language_{name}.npz", {"heads": at, **stored}


LOST = f"window,method,nats,over exact,se,{','.join(map(str, range(0, L, BLOCK)))}"
TABLES = {
    nats: LOST,
    kinds: LOST,
    errors: "method,block,error,normalised",
    harm: f"block,{','.join(KINDS)}",
    key_heads: f"block,key head,{','.join(KINDS)}",
    recall: f"sequence,exact blocks,others,{','.join(KINDS)}",
    anatomy: "block,head,first,first 4,last 64,beyond 256,keys,short,exponent,centred",
    sinks: "block,short,which,residual,of the first,of the short",
    looking: "block,head,digit,next",
    retrieving: "block,head,asked,prose,technical",
}


@recorder
def main(*asked):
    weights = language.load(language.find())
    for part in (*TABLES, said, kept_heads):
        if asked and part.__name__ not in asked:
            continue
        if part in TABLES:
            rows = named(TABLES[part].split(","), part(weights))
            yield f"language_{part.__name__}.csv", rows, ".4f"
        else:
            yield from part(weights)
