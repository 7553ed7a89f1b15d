"""Record what a language model loses when its attention is replaced.

    make model MODEL=language, then
    python -m tools.record.language [nats | errors | recall | anatomy | said | heads]

Writes files of notebooks/data/, language_*.csv and so on; rows that are there are kept, so that a
run may be interrupted. All of it takes three hours of one core. Text to train by is Emma and the
first third of the Python reference, to choose by Persuasion and the second third, to judge by
Mansfield Park and the last third.
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

L, EVERY, BLOCK = 2048, 2, 64  # tokens of a window; the places that are judged; tokens in a mean
SEEDS = 0, 1  # of trained features
EXACT = 18, 23, 7, 17, 20, 9, 24, 10  # blocks that stay exact: `orders` by retrieval


@functools.cache
def texts():
    """{part: text}: those of Austen's, and "reference 0", 1, 2, the thirds of Python's."""
    found = json.loads(gzip.decompress(FILE.read_bytes()))
    whole = gzip.decompress((data.FOLDER / "python_reference.txt.gz").read_bytes()).decode()
    third = len(whole) // 3
    return found | {f"reference {n}": whole[n * third : (n + 1) * third] for n in range(3)}


def windows(weights, part):
    """{name: tokens (2,049,)} of the windows "train" (8), "choose" (4) or "judge" (6)."""
    encode = functools.partial(language.encode, weights)
    if part == "judge":
        prose = [encode(texts()[f"window {n}"]) for n in range(3)]
    else:
        prose = encode(texts()[part])
        prose = [prose[n * (L + 1) :] for n in range(4 if part == "train" else 2)]
    third = encode(texts()[f"reference {('train', 'choose', 'judge').index(part)}"])
    step = len(third) // len(prose)
    kinds = {"prose": prose, "technical": [third[n * step :] for n in range(len(prose))]}
    return {f"{kind} {n}": x[: L + 1] for kind, xs in kinds.items() for n, x in enumerate(xs)}


def heads(weights, tokens):
    """(i, q, k, v) of each block of the exact model: (9, n, 64), (3, n, 64) twice; n rows."""
    kept = []

    def attend(i, *qkv):
        kept.append((i, *qkv))
        return language.attend_exact(i, *qkv)

    language.logits(weights, tokens, attend, every=len(tokens))
    return kept


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
        rng, found = np.random.default_rng(0), {"moments": [], "norms": [], "64": [], "16": []}
        for block in zip(*parts, strict=True):
            q, k, v = (np.concatenate([x[n] for x in block], axis=1) for n in (1, 2, 3))
            shift = q.mean(axis=1) + np.repeat(k.mean(axis=1), len(q) // len(k), axis=0)
            found["moments"].append(shift)
            found["norms"].append(np.median(np.linalg.norm(v, axis=-1), axis=1))
            found["64"].append([methods.kmeans(rng, x, 64) for x in k])
            found["16"].append([methods.kmeans(rng, x, 16) for x in k])
        return {name: np.array(x, np.float32) for name, x in found.items()}

    return kept("known", compute)


def trained(weights, seed):
    """Features of all blocks, {"keys", "queries", "seconds"}, trained once."""
    asked = windows(weights, "train").values()
    return kept(f"trained {seed}", lambda: language_trained.features(weights, heads, asked, seed))


def ways(weights):
    """{method: attend}, each in all blocks, and some beside eight exact blocks."""
    given, near = known(weights), methods.near
    short = 0.4 * given["norms"]
    W = projections.orthogonal(np.random.default_rng(1), 256, 64).astype(np.float32)

    def favor(q, k, v):
        return attention.favor_attention(q, k, v, W, causal=True)

    every, later = range(30), range(1, 30)
    found = {
        "exact": language.attend_exact,
        "window 64 + 4": near(64, 4),
        "window 64 + 4, mean key": near(64, 4, mean=every),
        "window 64 + 4, mean key from block 1": near(64, 4, mean=later),
        "window 96 + 4": near(96, 4),
        "window 256 + 4": near(256, 4),
        "window 64": near(64),
        "window 128 + 4": near(128, 4),
        "window 64 + 4, short values": near(64, 4, short),
        "window 64 + 4, 64 centres": near(64, 4, far=methods.clusters(given["64"])),
        "mean(V)": methods.mean_value,
        "FAVOR+, 256 centred": methods.centred(favor, given["moments"]),
        "window 512 + 4": near(512, 4),
        "window 64 + 4, 16 centres": near(64, 4, far=methods.clusters(given["16"])),
        "window 64 + 4, short values, mean key from block 1": near(64, 4, short, mean=later),
    }
    for seed in SEEDS:
        W = trained(weights, seed)
        far = methods.features((W["keys"], W["queries"]))
        found[f"window 64 + 4, trained {seed}"] = near(64, 4, far=far)
    hybrids = ["window 64 + 4", "window 96 + 4", "window 256 + 4", "window 64 + 4, short values"]
    for name in (*hybrids, *(f"window 64 + 4, trained {seed}" for seed in SEEDS)):
        found[f"{name}, 8 exact"] = methods.hybrid(EXACT, found[name])
    return found


def rows(path, names, keys):
    """(the keys of the rows in a CSV file, a function that adds a row); the file is made first."""
    if not path.is_file():
        path.write_text(",".join(names) + "\n", encoding="utf-8")
    with path.open(encoding="utf-8", newline="") as file:
        there = {tuple(row[key] for key in keys) for row in csv.DictReader(file)}

    def add(row):
        with path.open("a", encoding="utf-8", newline="") as file:
            csv.DictWriter(file, names, lineterminator="\n").writerow(row)

    return there, add


def nats_of(weights, tokens, attend):
    """−ln P of every second token of a window: (1024,)."""
    z = language.logits(weights, tokens[:-1], attend, every=EVERY)
    return -log_softmax(z, axis=-1)[np.arange(len(z)), tokens[1::EVERY]]


def nats(weights):
    """language_nats.csv: nats of each method and window, their differences, and means of blocks."""
    names = ["window", "method", "nats", "over exact", "se", *map(str, range(0, L, BLOCK))]
    there, add = rows(data.FOLDER / "language_nats.csv", names, names[:2])
    every = {method: functools.partial(nats_of, attend=x) for method, x in ways(weights).items()}
    every |= {"counts of words": counts_of(1), "counts of pairs": counts_of(2)}
    for method, (window, tokens) in itertools.product(every, windows(weights, "judge").items()):
        if (window, method) in there:
            continue

        def of(name, tokens=tokens):
            return {"lost": every[name](weights, tokens)}

        exact, lost = (
            kept(f"{window}, {x}", functools.partial(of, x))["lost"] for x in ("exact", method)
        )
        over = lost - exact
        row = [window, method, *(f"{x:.4f}" for x in (lost.mean(), over.mean()))]
        row += [f"{over.std(ddof=1) / len(over) ** 0.5:.4f}"]
        row += [f"{x:.3f}" for x in lost.reshape(-1, BLOCK // EVERY).mean(axis=1)]
        add(dict(zip(names, row, strict=True)))
        print(*row[:5], flush=True)


def counts_of(n):
    """(weights, tokens) → −ln P by how often words, or pairs, come in the text to train by.

    κ pseudo-counts of what is less exact, the κ that is best on the text to choose by.
    """

    def lost(weights, tokens):
        technical = language.decode(weights, tokens) in texts()["reference 2"]
        known = ("reference 0", "reference 1") if technical else ("train", "choose")
        train, choose = (language.encode(weights, texts()[x]) for x in known)
        size = len(weights["vocabulary"])
        one = np.bincount(train, minlength=size)
        pairs = collections.Counter(itertools.pairwise(train))

        def of(x, kappa):
            p = (one[x[1:]] + kappa[0] / size) / (len(train) + kappa[0])
            if n == 2:
                both = np.array([pairs[pair] for pair in itertools.pairwise(x)])
                p = (both + kappa[1] * p) / (one[x[:-1]] + kappa[1])
            return -np.log(p)

        tried = itertools.product(
            4.0 ** np.arange(3, 9), 4.0 ** np.arange(-1, 5) if n == 2 else [1]
        )
        best = min(tried, key=lambda kappa: of(choose, kappa).mean())
        return of(tokens, best)[::EVERY]

    return lost


# The error of each block


def error(weights, attend, given):
    """(relative, normalised) error of a block's output, from its (i, q, k, v) in windows."""

    def output(attend):
        mixed = np.hstack([attend(*block)[:, 512:] for block in given])
        return join_heads(mixed) @ weights[f"blk.{given[0][0]}.attn_output.weight"].T

    found, exact, mean = map(output, (attend, language.attend_exact, methods.mean_value))
    off = ((found - exact) ** 2).sum()
    return off / (exact**2).sum(), off / ((mean - exact) ** 2).sum()


def errors(weights):
    """language_errors.csv: of each block's output after W_o, on exact q, k, v, rows from 512 on.

    error: squared, relative to the output's squared size; normalised: to mean(V)'s squared error.
    Two windows of the text to choose by.
    """
    names = ["method", "block", "error", "normalised"]
    there, add = rows(data.FOLDER / "language_errors.csv", names, names[:1])
    asked = list(windows(weights, "choose").values())[1:3]
    blocks = list(zip(*(heads(weights, tokens[:-1]) for tokens in asked), strict=True))
    for method, attend in ways(weights).items():
        if method == "exact" or "8 exact" in method or (method,) in there:
            continue
        for i, given in enumerate(blocks):
            values = [method, i, *(f"{x:.5f}" for x in error(weights, attend, given))]
            add(dict(zip(names, values, strict=True)))


# Retrieval

THINGS = "silver trunk,garden gate,north tower,old piano,green cabinet,wine cellar,boat house"
THINGS += ",iron chest,writing desk,stable door,clock room,linen press"


def sequence(weights, n, filler=1500):
    """(tokens, {kind: positions}) of sequence n, of which 0 is to choose by.

    Six pass keys and a paragraph, 1,500 tokens of prose, the keys in another order, the paragraph.
    """
    rng = np.random.default_rng([48, n])
    encode = functools.partial(language.encode, weights)
    things = rng.permutation(THINGS.split(","))[:6]
    keys = ["".join(map(str, rng.integers(10, size=5))) for _ in things]
    facts = [f"The pass key of the {x} is {key}.\n" for x, key in zip(things, keys, strict=True)]
    prose = (
        encode(texts()["choose"])[6000:] if n == 0 else encode(texts()["filler"])[2000 * (n - 1) :]
    )
    paragraph, prose = prose[1700:1831], prose[:filler]
    asked = rng.permutation(6)
    parts = [*(encode(facts[i]) for i in range(6)), paragraph, prose]
    parts += [encode("\n"), *(encode(facts[i]) for i in asked), paragraph]
    starts = np.cumsum([0, *map(len, parts)])
    tokens, digits = np.concatenate(parts), []
    for start, part in zip(starts[9:15], parts[9:15], strict=True):
        digits.append(start + np.flatnonzero([weights["vocabulary"][t].isdigit() for t in part]))
    digits = np.array(digits)  # (6, 5)
    where = {"first digit": digits[:, 0], "other digits": digits[:, 1:].ravel()}
    where["paragraph"] = np.arange(starts[15], starts[16])
    where["prose"] = np.arange(starts[7] + 16, starts[8], 2)
    return tokens, where


def scores(weights, x, tokens, where):
    """{kind: mean −ln P of its tokens}, from the vectors x of all tokens."""
    found = {}
    for kind, at in where.items():
        z = x[at - 1] @ weights["token_embd.weight"].T
        found[kind] = -log_softmax(z, axis=-1)[np.arange(len(at)), tokens[at]].mean()
    return found


KINDS = ["first digit", "other digits", "paragraph", "prose"]


def harm(weights):
    """language_harm.csv: sequence 0 with one block at a time by window 64 + 4; −1: none."""
    names = ["block", *KINDS]
    there, add = rows(data.FOLDER / "language_harm.csv", names, names[:1])
    (tokens, where), vectors = sequence(weights, 0), []
    near = methods.near(64, 4)
    x = weights["token_embd.weight"][tokens]
    rotation = language._rotation(weights, 0, len(x))
    for i in range(weights["blocks"]):
        vectors.append(x)
        x = language._block(weights, i, x, language.attend_exact, rotation)
    for i in (-1, *range(weights["blocks"])):
        if (str(i),) in there:
            continue
        y = x if i < 0 else language._block(weights, i, vectors[i], near, rotation)
        for j in range(i + 1, weights["blocks"] if i >= 0 else 0):
            y = language._block(weights, j, y, language.attend_exact, rotation)
        found = scores(weights, language._norm(weights, "output", y), tokens, where)
        add({"block": i, **{kind: f"{value:.4f}" for kind, value in found.items()}})
        print(i, found, flush=True)


def orders():
    """{"retrieval" or "prose": blocks, from the most harmful}, by language_harm.csv."""
    with open(data.FOLDER / "language_harm.csv", encoding="utf-8", newline="") as file:
        table = [{k: float(x) for k, x in row.items()} for row in csv.DictReader(file)]
    table.sort(key=lambda row: row["block"])
    harms = {
        "retrieval": [sum(row[kind] for kind in KINDS[:3]) for row in table[1:]],
        "prose": [row["prose"] for row in table[1:]],
    }
    return {name: [int(i) for i in np.argsort(-np.array(x))] for name, x in harms.items()}


def recall(weights):
    """language_recall.csv: sequences 1 to 3 with some blocks exact and the others by a method."""
    names = ["sequence", "exact blocks", "others", *KINDS]
    there, add = rows(data.FOLDER / "language_recall.csv", names, names[:3])
    others, order = ways(weights), orders()
    every = list(range(30))
    asked = [(every, "window 64 + 4"), ([], "window 64 + 4")]
    asked += [(order["retrieval"][:n], "window 64 + 4") for n in (4, 8, 12)]
    asked += [(order["prose"][:n], "window 64 + 4") for n in (4, 8, 12)]
    asked += [(order["retrieval"][:8], f"window {w} + 4") for w in (96, 256)]
    asked += [([], "window 256 + 4"), (list(range(17, 25)), "window 64 + 4")]
    asked += [([17, 18, 20, 23], "window 64 + 4"), (list(range(11, 30)), "window 64 + 4")]
    for n, kind in itertools.product((16, 6, 10, 2, 1), ("retrieval", "prose")):
        asked.append((order[kind][:n], "window 64 + 4"))
    asked += [([], "window 64 + 4, mean key from block 1")]
    for exact, method in asked:
        for n in (1, 2, 3):
            key = (str(n), " ".join(map(str, sorted(exact))), method)
            if key in there:
                continue
            tokens, where = sequence(weights, n)
            attend = methods.hybrid(set(exact), others[method])
            found = scores(weights, language._vectors(weights, tokens, attend), tokens, where)
            found = {kind: f"{value:.4f}" for kind, value in found.items()}
            add(dict(zip(names[:3], key, strict=True)) | found)
            print(*key, found, flush=True)


# What heads attend to


def anatomy(weights):
    """language_anatomy.csv: weights of each head, rows 1,024 on of two windows to choose by.

    exponent: mean ‖q' + k'‖² of causal pairs, plain and with keys centred by the training text.
    short: of keys after the first whose values are shorter than 0.4 of the median. Beside it
    language_sinks.csv: how many those are and which, and sizes of the residual stream.
    """
    names = ["block", "head", "first", "first 4", "last 64", "beyond 256", "keys", "short"]
    _, add = rows(data.FOLDER / "language_anatomy.csv", [*names, "exponent", "centred"], names)
    asked = list(windows(weights, "choose").values())[1:3]
    given = list(zip(*(heads(weights, tokens[:-1]) for tokens in asked), strict=True))
    moments, norms, i = known(weights)["moments"], known(weights)["norms"], np.arange(1024, L)
    back = i[:, None] - np.arange(L)
    for block, parts in enumerate(given):
        found = []
        for _, q, k, v in parts:
            k, v = (np.repeat(x, len(q) // len(x), axis=0) for x in (k, v))
            q, size = q[:, i], (q[:, i] ** 2).sum(-1)[..., None]
            t = np.where(back >= 0, q @ k.swapaxes(-1, -2) / 8, -np.inf)
            A = np.exp(t - t.max(axis=-1, keepdims=True))
            A /= A.sum(axis=-1, keepdims=True)
            short = np.linalg.norm(v, axis=-1) < 0.4 * np.repeat(norms[block], 3)[:, None]
            short[:, 0] = False
            row = [A[..., 0], A[..., :4].sum(-1), np.where(back < 64, A, 0).sum(-1)]
            row += [np.where(back[:, 4:] > 256, A[..., 4:], 0).sum(-1), 1 / (A**2).sum(-1)]
            row += [np.where(short[:, None], A, 0).sum(-1)]
            for c in (k, k - moments[block][:, None]):
                z = (size + (c**2).sum(-1)[:, None] + 2 * q @ c.swapaxes(-1, -2)) / 8
                row.append(z[:, back >= 0])
            found.append([x.mean(axis=1) for x in row])
        for head, row in enumerate(np.mean(found, axis=0).T):
            values = [block, head, *(f"{x:.4f}" for x in row)]
            add(dict(zip([*names, "exponent", "centred"], values, strict=True)))
    names = ["block", "short", "which", "residual", "of the first", "of the short"]
    _, add = rows(data.FOLDER / "language_sinks.csv", names, names)
    rotation, tokens = language._rotation(weights, 0, L), np.array(asked)[:, :-1]
    x = list(weights["token_embd.weight"][tokens])
    for block, parts in enumerate(given):
        size = np.array([np.linalg.norm(y, axis=-1) for y in x])
        short = np.array(
            [np.linalg.norm(v, axis=-1) < 0.4 * norms[block][:, None] for *_, v in parts]
        )
        short = short.any(axis=1)
        short[:, 0] = False
        often = collections.Counter(weights["vocabulary"][t].decode() for t in tokens[short])
        values = [block, short.sum(), repr([name for name, _ in often.most_common(4)])]
        values += [np.median(size), size[:, 0].mean(), size[short].mean() if short.any() else 0]
        values[3:] = (f"{value:.1f}" for value in values[3:])
        add(dict(zip(names, values, strict=True)))
        x = [language._block(weights, block, y, language.attend_exact, rotation) for y in x]


def looking(weights):
    """language_looking.csv: weight of each head on the token that it should fetch, sequence 0.

    digit: from the place before a first digit to that digit in its fact; next: in the repeated
    paragraph to the token that came next. Heads with 0.1 or more in either.
    """
    names = ["block", "head", "digit", "next"]
    _, add = rows(data.FOLDER / "language_looking.csv", names, names)
    tokens, where = sequence(weights, 0)
    digits = []
    for at in where["first digit"]:
        fact = tokens[at : at + 5]
        (found,) = [j for j in range(120) if (tokens[j : j + 5] == fact).all()]
        digits.append((at - 1, found))
    start = next(j for j in range(200) if (tokens[where["paragraph"]] == tokens[j : j + 131]).all())
    repeated = [(at - 1, start + n) for n, at in enumerate(where["paragraph"]) if n]
    for block, q, k, _ in heads(weights, tokens):
        k = np.repeat(k, len(q) // len(k), axis=0)
        found = []
        for pairs in (digits, repeated):
            i, j = np.array(pairs).T
            t = q[:, i] @ k.swapaxes(-1, -2) / 8
            t = np.where(np.arange(len(tokens)) <= i[:, None], t, -np.inf)
            found.append(softmax(t, axis=-1)[:, range(len(i)), j].mean(axis=1))
        for head, values in enumerate(np.transpose(found)):
            if values.max() >= 0.1:
                values = [block, head, *(f"{x:.3f}" for x in values)]
                add(dict(zip(names, values, strict=True)))


# Greedy texts


def said(weights):
    """language_said.json: {prompt: {method: 60 tokens of greedy text}}."""
    asked = {"prose": language.encode(weights, texts()["prompt"])}
    reference = language.encode(weights, texts()["reference 2"])
    asked["technical"] = reference[20_000:21_500]
    tokens, where = sequence(weights, 4)
    asked["pass key"] = tokens[: where["first digit"][0]]
    every, path = ways(weights), data.FOLDER / "language_said.json"
    found = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    names = ["exact", "window 64", "window 64 + 4", "window 256 + 4", "window 64 + 4, 8 exact"]
    names += [f"window 64 + 4, trained {SEEDS[0]}, 8 exact"] if SEEDS else []
    for (prompt, tokens), name in itertools.product(asked.items(), names):
        known = found.setdefault(prompt, {"prompt": language.decode(weights, tokens[-60:])})
        if name in known:
            continue
        exact = range(30) if name == "exact" else EXACT if name.endswith("exact") else ()
        attend = every[name.removesuffix(", 8 exact")]

        def memory(i, exact=exact, attend=attend):
            return language.Cache(i) if i in exact else methods.Memory(attend, i)

        known[name] = language.decode(weights, language.generate(weights, tokens, 60, memory))
        content = json.dumps(found, ensure_ascii=False, indent=1)
        path.write_text(content + "\n", encoding="utf-8")
        print(prompt, name, repr(known[name]), flush=True)


# Heads to keep

HEADS = (
    (0, 8),
    (7, 7),
    (14, 0),
    (18, 7),
)  # local; its sinks in mid text; on the first token; fetches
CARD = (1, 4), (5, 2), (26, 1)


def kept_heads(weights):
    """language_heads.npz and language_card.npz: q, k, v of single heads, and their tokens."""
    tokens = sequence(weights, 0, filler=60)[0][:512]
    text = windows(weights, "choose")["prose 0"][:320]
    for name, chosen, given in (("heads", HEADS, tokens), ("card", CARD, text)):
        blocks = heads(weights, given)
        q = [blocks[i][1][h] for i, h in chosen]
        k, v = ([blocks[i][n][h // 3] for i, h in chosen] for n in (2, 3))
        stored = {x: np.array(a, np.float16) for x, a in zip("qkv", (q, k, v), strict=True)}
        stored["tokens"] = np.array([language.decode(weights, t) for t in given[:, None]])
        for seed in SEEDS[:1] if name == "heads" else ():
            W = trained(weights, seed)
            stored["keys"] = np.array([W["keys"][i, h // 3] for i, h in chosen], np.float16)
            stored["queries"] = np.array([W["queries"][i, h] for i, h in chosen], np.float16)
        np.savez_compressed(data.FOLDER / f"language_{name}.npz", heads=chosen, **stored)


PARTS = {"nats": nats, "errors": errors, "harm": harm, "recall": recall, "anatomy": anatomy}
PARTS |= {"looking": looking, "said": said, "heads": kept_heads}


def main(parts):
    weights = language.load(language.find())
    for part in parts or PARTS:
        PARTS[part](weights)


if __name__ == "__main__":
    main(sys.argv[1:])
