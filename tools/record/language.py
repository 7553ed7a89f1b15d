"""Record what a language model loses when its attention is replaced, language_*.csv and others.

    make model MODEL=language, then
    python -m tools.record.language [nats | errors | harm | recall | anatomy | said | heads]

Rows that are there are kept, so that a run may be interrupted. All of it takes an hour of one core.
Emma and the first third of the Python reference train, Persuasion and the second third choose,
Mansfield Park and the last third judge.
"""

import collections
import csv
import functools
import gzip
import itertools
import json
import sys

import numpy as np
from scipy.special import log_softmax, softmax

from performer_course import attention, data, language, projections
from performer_course.transformer import join_heads
from tools.record import language_methods as methods
from tools.record import language_trained
from tools.record.language_texts import FILE

L, EVERY, BLOCK = 2048, 2, 64  # tokens of a window; every second is judged; tokens in a mean
SEEDS = 0, 1  # of trained features
EXACT = 18, 23, 7, 17, 20, 9, 24, 10  # the blocks whose replacement harms retrieval most: `orders`
KINDS = "first digit", "other digits", "paragraph", "prose"


# What all parts share


@functools.cache
def texts():
    """{part: text}: those of Austen's, and "reference 0", 1, 2, the thirds of Python's."""
    whole = gzip.decompress((data.FOLDER / "python_reference.txt.gz").read_bytes()).decode()
    third = len(whole) // 3
    parts = {f"reference {n}": whole[n * third : (n + 1) * third] for n in range(3)}
    return parts | json.loads(gzip.decompress(FILE.read_bytes()))


def windows(weights, part):
    """{name: tokens (2,049,)} of the windows "train" (8), "choose" (4) or "judge" (6)."""
    encode = functools.partial(language.encode, weights)
    if part == "judge":
        prose = [encode(texts()[f"window {n}"]) for n in range(3)]
    else:
        prose = encode(texts()[part])
        prose = [prose[n * (L + 1) :] for n in range(4 if part == "train" else 2)]
    third = encode(texts()[f"reference {('train', 'choose', 'judge').index(part)}"])
    technical = [third[n * (len(third) // len(prose)) :] for n in range(len(prose))]
    kinds = ("prose", prose), ("technical", technical)
    return {f"{kind} {n}": x[: L + 1] for kind, parts in kinds for n, x in enumerate(parts)}


def heads(weights, tokens):
    """[(i, q, k, v)] of each block of the exact model."""
    found = []

    def attend(*block):
        found.append(block)
        return language.attend_exact(*block)

    language.logits(weights, tokens, attend, every=len(tokens))
    return found


def table(name, columns, keys):
    """(the first `keys` values of the rows of language_<name>.csv, a function that adds a row)."""
    path = data.FOLDER / f"language_{name}.csv"
    if not path.is_file():
        path.write_text(",".join(columns) + "\n", encoding="utf-8")
    with path.open(encoding="utf-8", newline="") as file:
        there = {tuple(row[:keys]) for row in csv.reader(file)}

    def add(*values):
        values = [f"{x:.4f}" if isinstance(x, float | np.floating) else x for x in values]
        with path.open("a", encoding="utf-8", newline="") as file:
            csv.writer(file, lineterminator="\n").writerow(values)
        print(*values, flush=True)

    return there, add


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
        parts = [heads(weights, x[:-1]) for x in windows(weights, "train").values()]
        rng, found = np.random.default_rng(0), collections.defaultdict(list)
        for block in zip(*parts, strict=True):
            q, k, v = (np.concatenate([x[n] for x in block], axis=1) for n in (1, 2, 3))
            found["moments"].append(q.mean(axis=1) + np.repeat(k.mean(axis=1), 3, axis=0))
            found["norms"].append(np.median(np.linalg.norm(v, axis=-1), axis=1))
            for C in (64, 16):
                found[str(C)].append([methods.kmeans(rng, x, C) for x in k])
        return {name: np.array(x, np.float32) for name, x in found.items()}

    return kept("known", compute)


def trained(weights, seed):
    """Features of all blocks, {"keys", "queries", "seconds"}, trained once."""
    asked = windows(weights, "train").values()
    return kept(f"trained {seed}", lambda: language_trained.features(weights, heads, asked, seed))


def approximations(weights):
    """{method: attend}, each in all blocks, and some beside eight exact blocks."""
    given, near = known(weights), methods.near
    short, every, later = 0.4 * given["norms"], range(30), range(1, 30)
    W = projections.orthogonal(np.random.default_rng(1), 256, 64).astype(np.float32)
    favor = functools.partial(attention.favor_attention, W=W, causal=True)
    found = {"exact": language.attend_exact, "window 64": near(64), "mean(V)": methods.mean_value}
    found |= {f"window {w} + 4": near(w, 4) for w in (64, 96, 128, 256, 512)}
    found |= {
        "window 64 + 4, mean key": near(64, 4, mean=every),
        "window 64 + 4, mean key from block 1": near(64, 4, mean=later),
        "window 64 + 4, short values": near(64, 4, short),
        "window 64 + 4, short values, mean key from block 1": near(64, 4, short, mean=later),
        "FAVOR+, 256 centred": methods.centred(favor, given["moments"]),
    }
    for C in (16, 64):
        far = methods.clusters(given[str(C)])
        found[f"window 64 + 4, {C} centres"] = near(64, 4, far=far)
    for seed in SEEDS:
        far = methods.features(trained(weights, seed))
        found[f"window 64 + 4, trained {seed}"] = near(64, 4, far=far)
    hybrids = [f"window {w} + 4" for w in (64, 96, 256)]
    hybrids += [f"window 64 + 4, {name}" for name in ("short values", "64 centres")]
    for name in (*hybrids, *(f"window 64 + 4, trained {seed}" for seed in SEEDS)):
        found[f"{name}, 8 exact"] = methods.hybrid(EXACT, found[name])
    return found


# Nats, and errors of blocks


def nats_of(weights, tokens, attend):
    """−ln P of every second token of a window: (1024,)."""
    z = language.logits(weights, tokens[:-1], attend, every=EVERY)
    return -log_softmax(z, axis=-1)[np.arange(len(z)), tokens[1::EVERY]]


def nats(weights):
    """language_nats.csv: nats of each method and window, their differences, and means of blocks."""
    names = ["window", "method", "nats", "over exact", "se", *map(str, range(0, L, BLOCK))]
    there, add = table("nats", names, 2)
    every = {
        method: functools.partial(nats_of, attend=x)
        for method, x in approximations(weights).items()
    }
    every |= {"counts of words": counts_of(1), "counts of pairs": counts_of(2)}
    for method, (window, tokens) in itertools.product(every, windows(weights, "judge").items()):
        if (window, method) in there:
            continue

        def of(name, tokens=tokens, window=window):
            asked = functools.partial(every[name], weights, tokens)
            return kept(f"{window}, {name}", lambda: {"lost": asked()})["lost"]

        over = (lost := of(method)) - of("exact")
        blocks = lost.reshape(-1, BLOCK // EVERY).mean(axis=1)
        add(window, method, lost.mean(), over.mean(), over.std(ddof=1) / len(over) ** 0.5, *blocks)


def counts_of(n):
    """(weights, tokens) → −ln P by how often words, or pairs, come in the text to train by.

    κ pseudo-counts of what is less exact, the κ that is best on the text to choose by.
    """

    def lost(weights, tokens):
        technical = language.decode(weights, tokens) in texts()["reference 2"]
        parts = ("reference 0", "reference 1") if technical else ("train", "choose")
        train, choose = (language.encode(weights, texts()[x]) for x in parts)
        one, pairs = np.bincount(train, minlength=49_152), collections.Counter(pairwise(train))

        def of(x, kappa):
            p = (one[x[1:]] + kappa[0] / len(one)) / (len(train) + kappa[0])
            if n == 2:
                both = np.array([pairs[pair] for pair in pairwise(x)])
                p = (both + kappa[1] * p) / (one[x[:-1]] + kappa[1])
            return -np.log(p)

        tried = itertools.product(4.0 ** np.arange(3, 9), 4.0 ** np.arange(-1, 5)[: 6 * n - 5])
        return of(tokens, min(tried, key=lambda kappa: of(choose, kappa).mean()))[::EVERY]

    return lost


def pairwise(x):
    return itertools.pairwise(x.tolist())


def error(weights, attend, given):
    """(relative, normalised) error of a block's output, from its (i, q, k, v) in windows."""

    def output(attend):
        mixed = np.hstack([attend(*block)[:, 512:] for block in given])
        return join_heads(mixed) @ weights[f"blk.{given[0][0]}.attn_output.weight"].T

    found, exact, mean = map(output, (attend, language.attend_exact, methods.mean_value))
    off = ((found - exact) ** 2).sum()
    return off / (exact**2).sum(), off / ((mean - exact) ** 2).sum()


def chosen(weights):
    """[block: [(i, q, k, v) in each]] of two windows to choose by, one of each kind, and tokens."""
    asked = [x[:-1] for x in list(windows(weights, "choose").values())[1:3]]
    return list(zip(*(heads(weights, x) for x in asked), strict=True)), np.array(asked)


def errors(weights):
    """language_errors.csv: of each block's output after W_o, on exact q, k, v, rows from 512 on.

    error: squared, relative to the output's squared size; normalised: to mean(V)'s squared error.
    """
    there, add = table("errors", ["method", "block", "error", "normalised"], 1)
    blocks, _ = chosen(weights)
    for method, attend in approximations(weights).items():
        if method != "exact" and "8 exact" not in method and (method,) not in there:
            for i, given in enumerate(blocks):
                add(method, i, *(f"{x:.5f}" for x in error(weights, attend, given)))


# Retrieval

THINGS = "silver trunk,garden gate,north tower,old piano,green cabinet,wine cellar,boat house"
THINGS += ",iron chest,writing desk,stable door,clock room,linen press"


def sequence(weights, n, between=1500):
    """(tokens, {kind: positions}) of sequence n, of which 0 is to choose by.

    Six pass keys and a paragraph, 1,500 tokens of prose, the keys in another order, the paragraph.
    """
    rng, encode = np.random.default_rng([48, n]), functools.partial(language.encode, weights)
    things = rng.permutation(THINGS.split(","))[:6]
    keys = ["".join(map(str, rng.integers(10, size=5))) for _ in things]
    facts = [f"The pass key of the {x} is {key}.\n" for x, key in zip(things, keys, strict=True)]
    facts = [encode(fact) for fact in facts]
    prose = encode(texts()["between" if n else "choose"])[2000 * (n - 1) if n else 6000 :]
    parts = [*facts, prose[1700:1831], prose[:between], encode("\n")]
    parts += [*(facts[i] for i in rng.permutation(6)), prose[1700:1831]]
    starts, tokens = np.cumsum([0, *map(len, parts)]), np.concatenate(parts)
    digit = np.array([weights["vocabulary"][t].isdigit() for t in tokens])
    digits = np.flatnonzero(digit & (np.arange(len(tokens)) >= starts[9]))[:30].reshape(6, 5)
    where = {"first digit": digits[:, 0], "other digits": digits[:, 1:].ravel()}
    where["paragraph"] = np.arange(starts[15], starts[16])
    return tokens, where | {"prose": np.arange(starts[7] + 16, starts[8], 2)}


def scores(weights, x, tokens, where):
    """The mean −ln P of the tokens of each kind, from the vectors x of all tokens."""
    log_p = (log_softmax(x[at - 1] @ weights["token_embd.weight"].T, -1) for at in where.values())
    return [
        -p[range(len(p)), tokens[at]].mean() for p, at in zip(log_p, where.values(), strict=True)
    ]


def harm(weights):
    """language_harm.csv: sequence 0 with one block at a time by window 64 + 4; −1: none."""
    _, add = table("harm", ["block", *KINDS], 1)
    (tokens, where), rotation = sequence(weights, 0), language._rotation(weights, 0, L)
    x, rotation = [weights["token_embd.weight"][tokens]], rotation[: len(tokens)]
    for i in range(30):
        x.append(language._block(weights, i, x[i], language.attend_exact, rotation))
    for i in range(-1, 30):
        y = x[-1] if i < 0 else language._block(weights, i, x[i], methods.near(64, 4), rotation)
        for j in range(i + 1, 30 if i >= 0 else 0):
            y = language._block(weights, j, y, language.attend_exact, rotation)
        add(i, *scores(weights, language._norm(weights, "output", y), tokens, where))


def orders():
    """(blocks from the most harmful to retrieval, to prose), by language_harm.csv."""
    harms = np.loadtxt(data.FOLDER / "language_harm.csv", delimiter=",", skiprows=1)
    harms = harms[harms[:, 0].argsort()][1:, 1:]
    return [np.argsort(-x).tolist() for x in (harms[:, :3].sum(axis=1), harms[:, 3])]


def recall(weights):
    """language_recall.csv: sequences 1 to 3 with some blocks exact and the others by a method."""
    there, add = table("recall", ["sequence", "exact blocks", "others", *KINDS], 3)
    others, (retrieval, prose) = approximations(weights), orders()
    blocks = [
        range(30),
        *(x[:n] for n in (0, 1, 2, 4, 6, 8, 10, 12, 16) for x in (retrieval, prose)),
    ]
    blocks += [range(17, 25), range(11, 30), (17, 18, 20, 23)]
    asked = [(x, "window 64 + 4") for x in blocks]
    far = [*(f"window 64 + 4, trained {seed}" for seed in SEEDS), "window 64 + 4, 64 centres"]
    asked += [(retrieval[:8], x) for x in (*far, "window 96 + 4", "window 256 + 4")]
    asked += [([], x) for x in (*far, "window 256 + 4", "window 64 + 4, mean key from block 1")]
    for (exact, method), n in itertools.product(asked, (1, 2, 3)):
        key = str(n), " ".join(map(str, sorted(exact))), method
        if key not in there:
            there.add(key)
            tokens, where = sequence(weights, n)
            x = language._vectors(weights, tokens, methods.hybrid(set(exact), others[method]))
            add(*key, *scores(weights, x, tokens, where))


# What heads attend to


def anatomy(weights):
    """language_anatomy.csv: weights of each head, rows 1,024 on of two windows to choose by.

    exponent: mean ‖q' + k'‖² of causal pairs, plain and with keys centred by the training text.
    short: of keys after the first whose values are shorter than 0.4 of the median; in
    language_sinks.csv how many those are and which, and sizes of the residual stream.
    language_looking.csv: heads with a weight of 0.1 on the token to be fetched in sequence 0, from
    before a first digit to that digit, or in the repeated paragraph to the token that came next.
    """
    names = ["first", "first 4", "last 64", "beyond 256", "keys", "short", "exponent", "centred"]
    _, add = table("anatomy", ["block", "head", *names], 2)
    names = ["block", "short", "which", "residual", "of the first", "of the short"]
    _, add_sinks = table("sinks", names, 1)
    (blocks, tokens), given, i = chosen(weights), known(weights), np.arange(1024, L)
    back, x = i[:, None] - np.arange(L), list(weights["token_embd.weight"][tokens])
    for block, parts in enumerate(blocks):
        found, shorts = [], []
        for _, q, k, v in parts:
            short = np.linalg.norm(v, axis=-1) < 0.4 * given["norms"][block][:, None]
            short[:, 0] = False
            shorts.append(short.any(axis=0))
            k, short = (np.repeat(y, 3, axis=0) for y in (k, short))
            A = softmax(np.where(back >= 0, q[:, i] @ k.swapaxes(-1, -2) / 8, -np.inf), axis=-1)
            row = [A[..., 0], A[..., :4].sum(-1), np.where(back < 64, A, 0).sum(-1)]
            row += [np.where(back[:, 4:] > 256, A[..., 4:], 0).sum(-1), 1 / (A**2).sum(-1)]
            row += [np.where(short[:, None], A, 0).sum(-1)]
            for c in (k, k - given["moments"][block][:, None]):
                z = (q[:, i] ** 2).sum(-1)[..., None] + (c**2).sum(-1)[:, None]
                row.append((z + 2 * q[:, i] @ c.swapaxes(-1, -2))[:, back >= 0] / 8)
            found.append([y.mean(axis=1) for y in row])
        for head, row in enumerate(np.mean(found, axis=0).T):
            add(block, head, *row)
        size, shorts = np.array([np.linalg.norm(y, axis=-1) for y in x]), np.array(shorts)
        often = collections.Counter(language.decode(weights, t[None]) for t in tokens[shorts])
        row = [np.median(size), size[:, 0].mean(), size[shorts].mean() if shorts.any() else 0.0]
        add_sinks(block, shorts.sum(), repr([name for name, _ in often.most_common(4)]), *row)
        rotation = language._rotation(weights, 0, L)
        x = [language._block(weights, block, y, language.attend_exact, rotation) for y in x]
    _, add = table("looking", ["block", "head", "digit", "next"], 2)
    tokens, where = sequence(weights, 0)
    views = np.lib.stride_tricks.sliding_window_view
    digits = [
        (at - 1, np.flatnonzero((views(tokens, 5) == tokens[at : at + 5]).all(axis=1))[0])
        for at in where["first digit"]
    ]
    start = np.flatnonzero((views(tokens, 131) == tokens[where["paragraph"]]).all(axis=1))[0]
    repeated = [(at - 1, start + n) for n, at in enumerate(where["paragraph"]) if n]
    for block, q, k, _ in heads(weights, tokens):
        found = []
        for i, j in (np.array(pairs).T for pairs in (digits, repeated)):
            t = q[:, i] @ np.repeat(k, 3, axis=0).swapaxes(-1, -2) / 8
            A = softmax(np.where(np.arange(len(tokens)) <= i[:, None], t, -np.inf), axis=-1)
            found.append(A[:, range(len(i)), j].mean(axis=1))
        for head, row in enumerate(np.transpose(found)):
            if row.max() >= 0.1:
                add(block, head, *row)


# Texts, and heads to keep


def said(weights):
    """language_said.json: {prompt: {method: 60 tokens of greedy text}}."""
    tokens, where = sequence(weights, 3)
    asked = {"prose": language.encode(weights, texts()["prompt"])}
    asked["technical"] = language.encode(weights, texts()["reference 2"])[20_000:21_500]
    asked["pass key"] = tokens[: where["first digit"][0]]
    every, path = approximations(weights), data.FOLDER / "language_said.json"
    found = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    names = ["exact", "window 64", "window 64 + 4", "window 256 + 4", "window 64 + 4, 8 exact"]
    names += [f"window 64 + 4, trained {SEEDS[0]}, 8 exact"]
    for (prompt, tokens), name in itertools.product(asked.items(), names):
        known = found.setdefault(prompt, {"prompt": language.decode(weights, tokens[-60:])})
        exact = range(30) if name == "exact" else EXACT if name.endswith("exact") else ()
        attend = every[name.removesuffix(", 8 exact")]

        def memory(i, exact=exact, attend=attend):
            return language.Cache(i) if i in exact else methods.Memory(attend, i)

        if name not in known:
            known[name] = language.decode(weights, language.generate(weights, tokens, 60, memory))
            print(prompt, name, repr(known[name]), flush=True)
        path.write_text(json.dumps(found, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


# local; with sinks in mid text; on the first token; one that fetches
HEADS = (11, 2), (7, 0), (14, 4), (18, 7)
CARD = (0, 4), (4, 1), (20, 6)
QKV = ("q", 1, 1), ("k", 2, 3), ("v", 3, 3)  # where a block has them; heads that share one


def kept_heads(weights):
    """language_heads.npz and language_card.npz: q, k, v of single heads, and their tokens."""
    tokens, text = sequence(weights, 0, between=60)[0], windows(weights, "choose")["prose 0"]
    W = trained(weights, SEEDS[0])
    for name, at, given in (("heads", HEADS, tokens[:512]), ("card", CARD, text[:320])):
        blocks = heads(weights, given)
        stored = {x: [blocks[i][n][h // d] for i, h in at] for x, n, d in QKV}
        if name == "heads":
            stored["keys"] = [W["keys"][i, h // 3] for i, h in at]
            stored["queries"] = [W["queries"][i, h] for i, h in at]
        stored = {x: np.array(a, np.float16) for x, a in stored.items()}
        stored["tokens"] = [language.decode(weights, t) for t in given[:, None]]
        np.savez_compressed(data.FOLDER / f"language_{name}.npz", heads=at, **stored)


PARTS = {"nats": nats, "errors": errors, "harm": harm, "recall": recall, "anatomy": anatomy}
PARTS |= {"said": said, "heads": kept_heads}


def main(parts):
    weights = language.load(language.find())
    for part in parts or PARTS:
        PARTS[part](weights)


if __name__ == "__main__":
    main(sys.argv[1:])
