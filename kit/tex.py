"""The formulas of a docstring, for MathJax: Σ_{j≤i} aⱼ² in TeX is \\sum_{j\\le i} a_{j}^{2}.

Docstrings have formulas in plain letters, so that `help(...)` shows them, and nothing marks where
one begins. `formulas` finds them in a sentence. It keeps each sign in its place: a fraction stays
a line with /, and an exponent or a root reaches over one letter or over its brackets, never
further. What could be read in two ways, such as √x², a word, or an open bracket, ends a formula or
stays the text that it was.
"""

import re
import unicodedata

each = str.split
LETTERS = dict(
    zip(
        "αβγδεκλνπρσφχωΛΣΦ∂ℓ∞…⋯∏",
        each(
            "alpha beta gamma delta varepsilon kappa lambda nu pi rho sigma varphi chi omega "
            "Lambda sum Phi partial ell infty dots cdots prod"
        ),
        strict=True,
    )
)
FRACTIONS = {"½": r"\tfrac12", "¼": r"\tfrac14"}
ACCENTS = {"\u0302": r"\hat", "\u0303": r"\tilde", "\u0306": r"\breve"}
RAISED = dict(zip("⁰¹²³⁴⁵⁶⁷⁸⁹⁻ⁿˣᵀ", [*"0123456789-nx", r"\top"], strict=True))
LOWERED = dict(zip("₀₁₂₃₄₅₆₇₈₉₋ᵢⱼ", "0123456789-ij", strict=True))
SIGNS = {
    "+": "+",
    "−": "-",
    "·": r"\cdot ",
    "×": r"\times ",
    "/": "/",
    "±": r"\pm ",
    "⊗": r"\otimes ",
}
RELATIONS = {
    "=": "=",
    "<": "<",
    ">": ">",
    "≤": r"\le ",
    "≥": r"\ge ",
    "≈": r"\approx ",
    "~": r"\sim ",
}
RELATIONS |= {"≠": r"\ne ", "∈": r"\in ", "→": r"\to ", "←": r"\leftarrow ", "↦": r"\mapsto "}
FENCES = {"(": ")", "[": "])", "⌈": "⌉", "⟨": "⟩", "‖": "‖", "|": "|"}
DRAWN = {"⌈": r"\lceil ", "⌉": r"\rceil ", "⟨": r"\langle ", "⟩": r"\rangle ", "‖": r"\|"}

DIGITS = "0123456789"
NAMED = {*each("exp ln log cos sin cosh max min")}  # by TeX
FUNCTIONS = NAMED | {*each("softmax diag tr Var Cov KL MSE SM sigmoid")}
CALLED = {*each("norm attention map mean row near far")}  # words as well: within, or before (
WITHIN = {  # words that are quantities in a formula, and words elsewhere
    *each("width depth vocabulary band stages blocks heads degree length inputs passes"),
    *each("bias variance eps shift estimate found exact"),
}
PRODUCTS = {"aS", "AS", "Ak", "dp"}  # two letters and no word
WORD = re.compile(r"[A-Za-z\u0300-\u036f]+")
NUMBER = re.compile(r"\d+(?:,\d{3})*(?:\.\d+)?(?![\d.]*\d|e\d|(?:st|nd|rd|th)\b)")
CALL = re.compile(r"[A-Za-z_][\w.]+\([^()]*\)|\{[\"a-z][^{}]*\}|\w+\[\[[^]]*\]\]")
ITEM = r"(?:\.\.\.|\w+(?: ?[+*] ?\w+| \w)?)"
SHAPE = re.compile(
    rf"\((?=(?:[^()]*[ (])?(?:\w|\.\.\.|\d+)[,)])(?:{ITEM}(?:, {ITEM})+|{ITEM},|\.\.\.)\)", re.ASCII
)  # as Python writes it
NAME = re.compile(r"(?:[A-Za-z]{2,}_\w{2,}|[A-Za-z]{4,}_\w)(?:=\w+)?")
MARK = re.compile(
    r"^\[.*,|[^\x00-\x7f]|[=<>^~+]|\d[A-Za-z]|[A-Za-z]'|[A-Za-z]_|[A-Za-z)]/|/[A-Za-z]|\w\("
)
LONG = 45  # TeX of a formula that may be cut at the end of a line
PLAIN = re.compile(r"[aAI]")  # a word, where it stands alone


def _parted(text: str) -> str:
    """A letter and its accent apart."""
    return unicodedata.normalize("NFD", text).replace("=\u0338", "≠")


def _space(text: str, at: int) -> int:
    """Where the next sign is, over blanks and the end of a line."""
    return re.compile(r"[ \n]*").match(text, at).end()


def _list(text: str, at: int, closing: str):
    """What stands between brackets, the sign that closes them, and where it ends; else None."""
    found, at, apart = [], _space(text, at), True
    while at < len(text):
        if text[at] in closing:
            return "".join(found), text[at], at + 1
        if text[at] in ",;":
            found.append(f"{text[at]} ")
            at, apart = at + 1, True
        elif text.startswith("...", at):
            found.append(r"\dots ")
            at += 3
        else:
            read = _expression(text, at, within=True)
            if read is None and text[at] in "⊗·":  # a sign for itself
                found.append(SIGNS[text[at]])
                at, apart = at + 1, True
                continue
            if read is None or not (apart or text[at] in DIGITS):
                return None
            found.append(read[0])
            at, apart = read[1], False
        at = _space(text, at)
    return None


def _fenced(text: str, at: int, *, bare: bool = False):
    """A bracket and what is in it, without itself where `bare`."""
    opening = text[at]
    read = _list(text, at + 1, FENCES[opening])
    if read is None or not read[0]:
        return None
    inner, closing, at = read
    return (
        inner if bare else DRAWN.get(opening, opening) + inner + DRAWN.get(closing, closing)
    ), at


def _letter(text: str, at: int, *, within: bool):
    """A letter with its accent, or a name that is set upright."""
    word = WORD.match(text, at)
    if word is None:
        base = LETTERS.get(text[at])
        if base is None:
            return None
        word, at, base = text[at], at + 1, rf"\{base} "
    else:
        word, at = word[0], word.end()
        bare = "".join(letter for letter in word if letter not in ACCENTS)
        base, following = bare, text[at : at + 1]
        if word in FUNCTIONS:
            base = rf"\{word} " if word in NAMED else rf"\operatorname{{{word}}}"
        elif word in CALLED and (within or (following and following in "(ᵢ_")):
            base = rf"\operatorname{{{word}}}"
        elif word in WITHIN and within:
            base = rf"\mathrm{{{word}}}"
        elif len(bare) == 2 and (following in [*RAISED] or word in PRODUCTS):
            pass
        elif len(bare) != 1 or following in [*DIGITS]:
            return None
    while at < len(text) and text[at] in ACCENTS:
        base, at = rf"{ACCENTS[text[at]]}{{{base.strip()}}}", at + 1
    for mark, drawn in ACCENTS.items():
        if mark in word:
            base = rf"{drawn}{{{base}}}"
    return base, at


def _atom(text: str, at: int, *, within: bool):
    """One sign, number, letter or bracket."""
    if at >= len(text):
        return None
    sign = text[at]
    if sign in FRACTIONS:
        return FRACTIONS[sign], at + 1
    if number := NUMBER.match(text, at):
        return number[0].replace(",", "{,}"), number.end()
    if text.startswith("...", at):
        return r"\dots ", at + 3
    if sign in LOWERED:  # before its letter: ₁F₁
        lowered = re.compile(f"[{''.join(LOWERED)}]+").match(text, at)
        read = _letter(text, lowered.end(), within=within) if lowered.end() < len(text) else None
        index = "".join(LOWERED[digit] for digit in lowered[0])
        return read and (f"{{}}_{{{index}}}{read[0]}", read[1])
    if sign in "‖|" and text[at + 1 : at + 2] in (" ", ""):
        return None
    if sign in FENCES:
        return _fenced(text, at)
    return _letter(text, at, within=within)


def _scripts(text: str, at: int):
    """What is raised and lowered at a letter or bracket; None where it is so twice."""
    raised, lowered, faculty = "", "", ""
    while at < len(text):
        sign = text[at]
        if sign == "'" and not re.match(r"'s\b", text[at:]) and not raised:
            raised, at = r"\prime ", at + 1
        elif sign in RAISED and raised in ("", r"\prime "):
            run = re.compile(f"[{''.join(RAISED)}]+").match(text, at)
            raised, at = raised + "".join(RAISED[s] for s in run[0]), run.end()
        elif sign in LOWERED and not lowered:
            run = re.compile(f"[{''.join(LOWERED)}]+").match(text, at)
            lowered, at = "".join(LOWERED[s] for s in run[0]), run.end()
        elif sign in "^_" and not (raised if sign == "^" else lowered):
            if text[at + 1 : at + 2] == "{":
                read = _list(text, at + 2, "}")
                read = read and (read[0], read[2])
            elif sign == "_":
                run = re.compile(r"[a-z0-9]{1,2}(?![a-z0-9])|[α-ω]").match(text, at + 1)
                read = run and ("".join(_greek(s) for s in run[0]), run.end())
            else:
                run = re.compile(r"\d+|[¼½]|[A-Za-zα-ω](?![A-Za-z])").match(text, at + 1)
                read = run and ("".join(_greek(s) for s in run[0]), run.end())
            if not read or not read[0]:
                return None
            raised, lowered = (read[0], lowered) if sign == "^" else (raised, read[0])
            at = read[1]
        elif sign == "!" and not faculty:
            faculty, at = "!", at + 1
        elif sign in RAISED or sign in LOWERED or sign in "^_":
            return None
        else:
            break
    low, high = f"_{{{lowered}}}" * bool(lowered), f"^{{{raised.strip()}}}" * bool(raised)
    return low + high + faculty, at


def _greek(sign: str) -> str:
    return rf"\{LETTERS[sign]} " if sign in LETTERS else FRACTIONS.get(sign, sign)


def _operand(text: str, at: int, *, within: bool):
    """What stands between two signs."""
    if text[at : at + 1] == "√":
        group = text[at + 1 : at + 2] == "("
        read = _fenced(text, at + 1, bare=True) if group else _atom(text, at + 1, within=within)
        if read is None:
            return None
        inner, at = read
        if not group:
            scripts = _scripts(text, at)
            if scripts is None or "^" in scripts[0]:  # √x²: of which?
                return None
            inner, at = inner + scripts[0], scripts[1]
        elif at < len(text) and (text[at] in RAISED or text[at] in "^!"):
            return None
        return rf"\sqrt{{{inner}}}", at
    read = _atom(text, at, within=within)
    if read is None:
        return None
    scripts = _scripts(text, read[1])
    if scripts is None:
        return None
    called = text[at].isalpha() and text[scripts[1] : scripts[1] + 1] == "("
    if called and _fenced(text, scripts[1]) is None:  # of something that is no formula
        return None
    return read[0] + scripts[0], scripts[1]


def _beside(text: str, before: int, at: int, *, within: bool):
    """What is multiplied without a sign."""
    if at >= len(text) or (text[at] in "‖|" and text[at + 1 : at + 2] in (" ", "")):
        return None
    apart = before < at
    if apart and (SHAPE.match(text, at) or text[at] in DIGITS):
        return None
    if apart and (PLAIN.match(text, at) and not WORD.match(text, at).end() - at > 1):
        follows = text[at + 1 : at + 2]
        ends = within and (text[at] == "I" or follows in [*")]}"])
        if follows not in [*"ᵢⱼ_'₁₂ᵀ("] and not ends:
            return None
    if text[at] in DIGITS and text[before - 1].isalnum():
        return None
    return _operand(text, at, within=within)


def _expression(text: str, at: int, *, within: bool = False, cut: list | None = None):
    """The longest formula from here on: its TeX and where it ends; None where there is none.

    `cut` takes the places in the TeX where a line may end.
    """
    found, started = "", at
    if text[at : at + 1] and text[at] in "−+±":
        found, at = SIGNS[text[at]], at + 1
    read = _operand(text, at, within=within)
    if read is None:
        return None
    found, at = found + read[0], read[1]
    while True:
        then = _space(text, at)
        sign = text[then : then + 1]
        if sign and (sign in SIGNS or sign in RELATIONS):
            after = _space(text, then + 1)
            minus = text[after : after + 1] == "−" and sign in RELATIONS
            read = _operand(text, after + minus, within=True)
            drawn = SIGNS.get(sign) or RELATIONS[sign]
            if read is None:
                break
            if cut is not None and (sign in RELATIONS or sign in "+−"):
                cut.append(len(found))
            found, at = found + drawn + "-" * minus + read[0], read[1]
            continue
        if within and sign == "‖" and text[then + 1 : then + 2] == " " and then > at:
            read = _operand(text, then + 2, within=True)  # KL(A ‖ B)
            if read is None:
                break
            found, at = rf"{found}\,\|\,{read[0]}", read[1]
            continue
        number = text[started:at].replace(".", "").replace(",", "").isdigit()
        if number and then > at:  # 25 s
            break
        read = _beside(text, at, then, within=within)
        if read is None:
            break
        upright = r"\mathrm" in read[0][:7] or r"\mathrm" in found[-20:]
        found, at = f"{found}{chr(92) + ',' if upright else ' '}{read[0]}", read[1]
    return found, at


def formula(text: str, at: int = 0):
    """The formula that begins there: its TeX in pieces at which a line may end, and its end."""
    if PLAIN.match(text, at) and not re.match(r"[aAI](?:[ᵢⱼ_'₁₂ᵀ(̂]| ?[=<>≤≥∈←↦~/·+−])", text[at:]):
        return None
    cuts = []
    read = _expression(text, at, cut=cuts)
    if read is None:
        return None
    tex, end = read
    said = text[at:end]
    alone = re.fullmatch(r"[A-Za-z](?: [A-Za-z])*", said) and not re.search(
        r"\d $", text[max(0, at - 2) : at]
    )
    if not MARK.search(said) and not alone:  # 25 s
        return None
    if re.match(r"[\w^\-]|\.\w|\[", text[end:]) or text[end : end + 1] in RAISED:
        return None
    if len(tex) < LONG:
        cuts = []
    pieces = [tex[a:b] for a, b in zip([0, *cuts], [*cuts, len(tex)], strict=True)]
    return [pieces[0], *(f"{{}}{piece}" for piece in pieces[1:])], end


def formulas(text: str) -> list[tuple[str, str]]:
    """A sentence in pieces: ("text", …), ("code", …) for a call or a shape, ("math", TeX)."""
    text = _parted(text)
    found, plain, at = [], "", 0

    def put(kind, said):
        nonlocal plain
        if plain:
            found.append(("text", unicodedata.normalize("NFC", plain)))
            plain = ""
        found.append((kind, said))

    while at < len(text):
        begins = at == 0 or not re.match(r"[\w§√^\"'.\-\u0300-\u036f]", text[at - 1])
        word, code = WORD.match(text, at), NAME.match(text, at) or SHAPE.match(text, at)
        if not code and not (word and word[0] in FUNCTIONS | CALLED):
            code = CALL.match(text, at)
        if begins and code:
            put("code", " ".join(code[0].split()))
            at = code.end()
        elif begins and (read := formula(text, at)):
            for piece in read[0]:
                put("math", piece.strip())
            at = read[1]
        else:
            skipped = re.compile(r"\w[\w\u0300-\u036f]*|.", re.DOTALL).match(text, at)
            plain, at = plain + skipped[0], skipped.end()
    if plain:
        found.append(("text", unicodedata.normalize("NFC", plain)))
    return found


def displayed(block: str) -> str | None:
    """The TeX of a block that is nothing but formulas, with commas, "or" and "and"; else None."""
    text = _parted(" ".join(block.split()))
    found, at = "", 0
    while at < len(text):
        if joint := re.compile(r"(, |,$|; |\.$)|(or|and|where) ").match(text, at):
            found += (
                rf"\quad\text{{{joint[2]}}}\quad " if joint[2] else rf"{joint[1].strip()}\quad "
            )
            at = joint.end()
            continue
        read = _expression(text, at)
        if read is None:
            return None
        found, at = found + read[0], _space(text, read[1])
    return found.removesuffix(r"\quad ")
