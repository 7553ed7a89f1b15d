"""The pages of the package: what becomes of a docstring, and of a formula in plain letters."""

import importlib
import inspect
import re

import pytest

from kit import reference
from kit.tex import displayed, formulas
from performer_course import attention, near_far, recurrent
from tools.setting import ROOT

SIGNS = re.compile(r"[²³ᵀ√ΣΠ∏‖ωφ⁻₁₂ᵢⱼ≤≥^]")
TAKES_TORCH = "pytorch"


class Site:
    """One that links nothing."""

    def linked(self, text, here):
        return text


def public():
    """Each public function and class with arguments, by its name."""
    found = {}
    for room in reference.rooms():
        if room != TAKES_TORCH:
            module = importlib.import_module(f"performer_course.{room}")
            for name, thing in vars(module).items():
                own = getattr(thing, "__module__", "") == module.__name__ and name[0] != "_"
                if own and callable(thing) and reference.parameters(thing):
                    found[f"{room}.{name}"] = thing
    return found


PUBLIC = public()


def page(thing):
    words = reference.Words(Site(), thing.__module__)
    return "\n".join(reference.rendered(words, thing, inspect.getdoc(thing).split("\n")))


def tex(text):
    return [re.sub(r" +", " ", said) for kind, said in formulas(text) if kind == "math"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("softmax(q kᵀ / √d) v, in blocks", [r"\operatorname{softmax} (q k^{\top}/\sqrt{d}) v"]),
        ("so e^{−‖x‖²/2} falls", [r"e^{-\|x\|^{2}/2}"]),
        ("Σ_{j≤i} qᵢᵀkⱼ", [r"\sum _{j\le i} q_{i}^{\top} k_{j}"]),
        ("√(p!/α!) x^α", [r"\sqrt{p!/\alpha !} x^{\alpha}"]),
        ("q' = q d^{−1/4}, no more", [r"q^{\prime}=q d^{-1/4}"]),
        ("KL(A ‖ Â) is least", [r"\operatorname{KL} (A\,\|\,\hat{A})"]),
        ("for 0 ≤ β‖k‖² ≤ 2 alone", [r"0\le \beta \|k\|^{2}\le 2"]),
        ("₁F₁(d; d/2; −r²/2)", [r"{}_{1}F_{1} (d; d/2; -r^{2}/2)"]),
        ("2π in [0, 2π)", [r"2 \pi", r"[0, 2 \pi )"]),
        ("|i − j| ≤ band exactly", [r"|i-j|\le \mathrm{band}"]),
        ("Sᵢ₋₁ and 10⁻⁵", ["S_{i-1}", "10^{-5}"]),
    ],
)
def test_a_formula_in_plain_letters_is_set(text, expected):
    assert tex(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "√x² may be read in two ways",
        "25 s of sound, 12 G multiplications",
        "a fourth stage, A number, and I",
        "the key of the first; i.e. none",
        "see §2.3 (2021), 1e150 and float32",
        "an f-string of x[[0, 1]]",
        "in [CLS] and (one or two",
        "key_mask: (..., S) of attend(q, k)",
    ],
)
def test_what_is_no_formula_or_could_be_two_stays_text(text):
    assert tex(text) == []


def test_an_article_between_letters_is_no_factor():
    assert tex("where δ a d × d matrix") == [r"\delta", r"d\times d"]


def test_a_line_of_formulas_is_displayed_and_one_with_a_word_is_not():
    assert displayed("    S ← aS,  u = v  or  u = βv,") == (
        r"S\leftarrow aS,\quad u=v\quad\text{or}\quad u=\beta  v,"
    )
    assert displayed("python -m performer_course.card") is None
    assert displayed("S ← the state") is None


def test_the_formulas_of_the_package_are_set_and_few_signs_of_one_are_left():
    set_, left = [], []
    for name, thing in PUBLIC.items():
        for part in re.split(r"`[^`]+`", inspect.getdoc(thing).partition(">>>")[0]):
            for kind, said in formulas(part):
                if kind == "math":
                    set_.append(said)
                elif kind == "text" and SIGNS.search(said):
                    left.append((name, said))
    wrong = [s for s in set_ if not s.isascii() or s.count("{") != s.count("}")]
    assert wrong == []
    assert len(set_) > 900
    assert len(left) <= 10, left


@pytest.mark.parametrize("name", PUBLIC)
def test_each_argument_has_a_row_with_its_type_and_its_default(name):
    rows = re.findall(r"(?m)^   \* - ``(.+)``$", page(PUBLIC[name]))
    assert rows == list(inspect.signature(PUBLIC[name]).parameters)


def test_an_argument_says_its_shape_its_default_and_what_it_means_from_where_it_is_said():
    said = page(attention.favor_attention)
    cells = [re.split(r"\n     - ?", row) for row in said.split("\n   * - ")[2:]]
    cells = {row[0].strip("`"): [cell.partition("\n\n")[0] for cell in row[1:]] for row in cells}
    assert cells["q"] == ["array ``(..., L, d)``", "", "queries"]  # of the package
    assert cells["key_mask"][:2] == ["booleans ``(..., S)`` or None", "``None``"]
    assert cells["key_mask"][2].startswith("True where a key counts;")  # of the room
    assert cells["chunk"][2].startswith("tokens in a step;")  # its own
    assert ":Returns: array ``(..., L, e)``, dtype that of the inputs." in said
    for field in ("Error", "Cost", "Source", "Differs from the paper"):
        assert f"\n:{field}: " in said


def test_a_public_name_leads_to_its_place_and_a_private_one_is_plain_code():
    said = page(near_far.joint_favor_attention) + page(attention.favor_attention)
    assert ":py:obj:`naive.joint_favor_attention <performer_course.naive.joint_" in said
    assert "``_positive``" in said
    places = re.findall(r":py:\w+:`[^`<]*<([^`>]+)>`", "\n".join(map(page, PUBLIC.values())))
    assert len(places) > 100
    assert [place for place in places if "._" in place] == []


def test_an_example_keeps_its_lines():
    said = page(recurrent.recurrence)
    assert ">>> rows.ravel()\narray([1., 2., 5.])\n" in said


def test_the_package_has_a_page_for_each_public_module_in_the_order_of_its_map():
    files = [p.stem for p in (ROOT / "performer_course").glob("[a-z]*.py")] + ["checks"]
    pages = reference.pages()
    assert sorted(pages) == sorted(f"{name}.md" for name in ["index", *files])
    listed = pages["index.md"].split("toctree")[1].split()
    assert listed.index("kernels") < listed.index("features") < listed.index("attention")
