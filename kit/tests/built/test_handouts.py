"""The book and the handouts, set by pandoc and Typst, and read back from the PDFs."""

import json
import re
import unicodedata
from collections import Counter

import pytest

from kit import handouts
from kit.site import lessons, number
from tools.setting import NOTEBOOKS, ROOT

WIDE = 0.602  # of its size: a letter of code
LEFT, RIGHT = 24 / 25.4 * 72 - 1, (210 - 24) / 25.4 * 72 + 1  # of the text, with a point to spare
TITLES = sorted(path.stem for path in NOTEBOOKS.glob("*.ipynb"))
FORMULA = re.compile(r'#(formula|shown)\("((?:[^"\\]|\\.)*)", \$(.*?)\$\)', re.DOTALL)
# What stands in Typst for a command of TeX, as often as it does in TeX; alone where it is the same.
COUNTED = r"""
Lambda Phi Theta alpha approx beta binom chi cos cosh delta ell eta exp gamma hat in kappa lambda
ln log mapsto max min mu nabla nu omega overline partial pi psi quad rho sigma sin sinh sqrt sum sup
tanh theta tilde times top underbrace xi
|=parallel Vert=parallel varphi=phi phi=phi.alt varepsilon=epsilon epsilon=epsilon.alt int=integral
prod=product infty=oo le=lt.eq ge=gt.eq ne=eq.not ll=lt.double gg=gt.double otimes=times.circle
oplus=xor cdot=dot.op to=arrow.r leftarrow=arrow.l longleftrightarrow=arrow.l.r dots=dots.h
cdots=dots.h.c lceil=ceil.l rceil=ceil.r langle=chevron.l rangle=chevron.r pm=plus.minus
mp=minus.plus sim=tilde.op lesssim=lt.tilde propto=prop circ=compose star=star.op mathbb=bb
mathcal=cal mathbf=bold mathtt=mono bar=macron ,=thin ;=thick operatorname=op
big=big bigl=big bigr=big Bigl=big Bigr=big biggl=big biggr=big
"""
COUNTED = {one.partition("=")[0]: one.split("=")[-1] for one in COUNTED.split()}
# Looked at on the page: they become a sign, a form or a space.
OTHERS = {"begin", "end", "frac", "tfrac", "text", "mathrm", "qquad", "left", "right"}
OTHERS |= {"lVert", "rVert", "lvert", "rvert", "!", "{", "}", " ", "\\"}


@pytest.fixture(scope="session")
def built():
    """Everything, made as `make pdf` makes it."""
    assert handouts.main() == 0
    return handouts.OUT


@pytest.fixture(scope="session")
def reader(built):
    """Read a PDF by its name, once."""
    from pypdf import PdfReader

    known = {}

    def read(name):
        if name not in known:
            known[name] = PdfReader(built / f"{name}.pdf")
        return known[name]

    return read


@pytest.fixture(scope="session")
def said(reader):
    """The text of a handout without white space, and each run of a cell with its right edge."""
    known = {}

    def say(name):
        if name not in known:
            runs = []

            def visit(text, cm, tm, fonts, size):
                code = fonts and "DejaVuSansMono" in fonts["/BaseFont"] and size < 8
                if code and "↩" not in text:
                    runs.append((cm[4] + tm[4] + WIDE * size * len(text.rstrip()), text))

            pages = [page.extract_text(visitor_text=visit) for page in reader(name).pages]
            known[name] = squeezed("".join(pages)), runs
        return known[name]

    return say


def squeezed(text):
    """`text` without white space, and without the sign of a line that goes on."""
    return re.sub(r"[\s\u200b↩]", "", unicodedata.normalize("NFD", text))


def missed(lines, whole):
    """The lines that are not on the pages. A letter with a mark above is read from them twice."""
    pieces = [piece for line in lines for piece in re.split(r".[\u0300-\u036f]+", squeezed(line))]
    return [piece for piece in pieces if piece not in whole]


def page(name):
    return (handouts.BUILD / f"pages/{name}.typ").read_text(encoding="utf-8")


def cells(name):
    return json.loads((ROOT / f"{name}.ipynb").read_text(encoding="utf-8"))["cells"]


def described(name):
    outputs = [output for cell in cells(name) for output in cell.get("outputs", [])]
    data = [o["metadata"].get("image/png", {}) for o in outputs if "image/png" in o.get("data", {})]
    return [found["alt"] for found in data]


def words_of(reader, kind):
    """The alternative texts of all elements of one kind in the tree of tags, in order."""
    found, waiting = [], [reader.trailer["/Root"]["/StructTreeRoot"]]
    while waiting:
        element = waiting.pop().get_object()
        if isinstance(element, list):
            waiting += reversed(element)
        elif isinstance(element, dict):
            found += [element.get("/Alt")] if element.get("/S") == kind else []
            waiting += [element["/K"]] if "/K" in element else []
    return found


def small(typst, tmp_path, name="small"):
    """The text of a document of a few lines."""
    from pypdf import PdfReader

    handouts.stage(tmp_path / "stage")
    head = f'{handouts.HEAD}#show: look.with(title: "Small")\n'
    handouts.compiled(name, head + typst, tmp_path / "stage", tmp_path)
    return PdfReader(tmp_path / f"{name}.pdf")


# Warnings are errors


def test_each_lesson_has_a_handout_and_the_course_a_book(built):
    assert sorted(path.stem for path in built.iterdir()) == sorted([*TITLES, "course"])


def test_a_formula_that_pandoc_cannot_read_stops_the_build():
    with pytest.raises(RuntimeError, match="Typst has no formula for"):
        handouts.pandoc(r"$x \nothing y$")


@pytest.mark.parametrize(
    ("typst", "fault"),
    [
        ("#nothing", "unknown variable: nothing"),
        ('#text(font: "No Such Font")[x]', "unknown font family"),
        ('#image("/notebooks/picture.png")', "missing alt text"),
        ("あ", "could not be displayed"),
        ("$x$", "missing alt text"),
    ],
)
def test_what_typst_warns_of_or_a_reader_would_miss_stops_the_build(tmp_path, typst, fault):
    with pytest.raises(RuntimeError, match=fault):
        small(typst, tmp_path)


# Formulas


@pytest.mark.parametrize(
    ("tex", "typst"),
    [
        (r"\|x\|^2", "parallel x parallel^2"),
        (r"|x|", "single x single"),
        (r"\bigl(x\bigr)", r"big(#120%, \() x big(#120%, \))"),
        (r"\Bigl\|x\Bigr\|", "big(#180%, parallel) x big(#180%, parallel)"),
        (r"\Bigl|x\Bigr|", "big(#180%, single) x big(#180%, single)"),
        (r"x \operatorname{tr} A", 'x op("tr") A'),
        (r"x \text{ if } y", 'x upright(" if ") y'),
        (r"q'^\top k_j'^\top", "q'^top k'_j^top"),
        (r"a\;b\!c", "a thick b #h(-0.167em) c"),
        (
            r"\begin{cases} 0 & x \\ 1 & y \end{cases}",
            'cases(delim: "{", 0 & quad x, 1 & quad y)',
        ),
        (r"\begin{pmatrix} a & b \end{pmatrix}", 'mat(delim: "(", a, b)'),
    ],
)
def test_what_pandoc_leaves_wrong_in_a_formula_is_mended(tex, typst):
    (found,) = FORMULA.findall(handouts.pandoc(f"${tex}$"))
    assert found == ("formula", tex.replace("\\", "\\\\"), typst)


def test_bars_signs_and_brackets_stand_in_the_pdf(tmp_path):
    text = (
        r"$\|x\|^2$ and $a \otimes b$, $\Bigl\|x\Bigr\|$, in parallel, $|x|$, $\operatorname{tr} A$"
    )
    read = small(handouts.pandoc(text), tmp_path)
    assert squeezed(read.pages[0].extract_text()).startswith("‖𝑥‖2and𝑎⊗𝑏,‖𝑥‖,inparallel,|𝑥|,tr𝐴")
    assert words_of(read, "/Formula")[:2] == [r"\|x\|^2", r"a \otimes b"]


def test_the_bars_of_a_norm_stand_close_and_its_exponent_beside_them(tmp_path):
    """Where pandoc's `parallel` would have an exponent above it, and room on both sides."""
    places = {}

    def visit(text, cm, tm, fonts, size):
        for letter in text.strip():
            places.setdefault(letter, []).append((tm[4], tm[5], size))

    read = small(handouts.pandoc(r"$$\|x\|^2$$"), tmp_path)
    read.pages[0].extract_text(visitor_text=visit)
    assert set(places) >= set("‖𝑥2")
    assert places["2"][0][0] >= places["‖"][-1][0]


def test_every_formula_of_the_course_is_printed_with_what_its_tex_says(built):
    """Each command is counted, in TeX and in Typst. One that is new is to be looked at first."""
    wrong, count = [], 0
    for path in sorted((handouts.BUILD / "pages").glob("*.typ")):
        for _, tex, typst in FORMULA.findall(path.read_text(encoding="utf-8")):
            tex, count = tex.replace("\\\\", "\\"), count + 1
            commands = re.findall(r"\\([a-zA-Z]+|.)", tex)
            unknown = set(commands) - set(COUNTED) - OTHERS
            expected = Counter(COUNTED[c] for c in commands if c in COUNTED)
            names = re.findall(r'"[^"]*"|[a-zA-Z][a-zA-Z.]*[a-zA-Z]', typst)
            found = Counter(name for name in names if name[0] != '"')
            differ = {n: (k, found[n]) for n, k in expected.items() if found[n] != k}
            if unknown or differ:
                wrong.append((path.stem, tex, typst, unknown, differ))
    assert wrong == []
    assert count > 2000


def test_every_formula_of_the_notebooks_arrives(built):
    for name in lessons(f"notebooks/{stem}" for stem in TITLES).values():
        source = "\n\n".join(
            "".join(c["source"]) for c in cells(name) if c["cell_type"] == "markdown"
        )
        bare = re.sub(r"(?s)```.*?```|`[^`]+`", "", source)
        shown = re.findall(r"(?s)\$\$.*?\$\$", bare)
        inline = re.findall(r"\$[^$]+\$", re.sub(r"(?s)\$\$.*?\$\$", "", bare))
        kinds = Counter(kind for kind, _, _ in FORMULA.findall(page(handouts.label(name))))
        assert (kinds["shown"], kinds["formula"]) == (len(shown), len(inline)), name


# What is on the pages


@pytest.mark.parametrize("stem", TITLES)
def test_a_handout_has_its_figures_in_words_its_title_and_its_language(reader, stem):
    read = reader(stem)
    assert words_of(read, "/Figure") == described(f"notebooks/{stem}")
    assert None not in words_of(read, "/Formula")
    assert read.trailer["/Root"]["/Lang"] == "en-GB"
    assert read.trailer["/Root"]["/MarkInfo"]["/Marked"]
    title, first = read.metadata.title, squeezed(read.pages[0].extract_text())
    assert title.startswith(number(f"notebooks/{stem}"))
    assert first.count(squeezed(title)) == len(words_of(read, "/H1")) == 1


def test_the_book_has_all_figures_in_words_and_one_on_its_title_page(reader):
    alts = [alt for stem in TITLES for alt in described(f"notebooks/{stem}")]
    assert words_of(reader("course"), "/Figure")[1:] == alts
    assert reader("course").metadata.title == "How kernels became linear attention"


@pytest.mark.parametrize("stem", TITLES)
def test_all_code_and_all_that_it_printed_is_on_the_page(said, stem):
    whole, _ = said(stem)
    for cell in cells(f"notebooks/{stem}"):
        if cell["cell_type"] == "code":
            source = "".join(cell["source"])
            if "hide-input" in cell["metadata"].get("tags", []):
                assert squeezed(source) not in whole
            else:
                assert missed(source.split("\n"), whole) == []
            outputs = "".join("".join(output.get("text", [])) for output in cell["outputs"])
            assert missed(outputs.split("\n"), whole) == []


@pytest.mark.parametrize("stem", TITLES)
def test_no_code_runs_over_the_margin(said, stem):
    _, runs = said(stem)
    assert [text for right, text in runs if right > RIGHT] == []
    assert max(right for right, _ in runs) > RIGHT - 100


def test_a_long_line_is_wrapped_and_marked_and_a_wide_table_is_made_smaller(tmp_path):
    code, table, long = "x = " + "one + " * 20 + "two", "cell " * 24 + "end", "word " * 40 + "end"
    blocks = [f"#code({handouts.quoted(code)})"]
    blocks += [f"#printed({handouts.quoted(text)})" for text in (table, long)]
    found = small("\n\n".join(blocks), tmp_path).pages[0].extract_text()
    assert found.count("↩") == 2
    assert table in found
    assert code not in found
    assert squeezed(code) in squeezed(found)


def test_a_table_and_a_formula_are_there_as_text(said):
    second, ninth = said("02_positive_definite_kernels")[0], said("09_positive_features")[0]
    assert squeezed("Laplacian exp(−𝛾‖𝛿‖1) kernels.laplacian") in second
    assert squeezed("SM(𝑥,𝑦) = exp(𝑥⊤𝑦)") in ninth


def test_a_formula_that_is_too_wide_is_made_smaller(tmp_path):
    edges = []

    def visit(text, cm, tm, fonts, size):
        if fonts and "Math" in fonts["/BaseFont"]:
            edges.append(cm[4] + tm[4])

    read = small(handouts.pandoc("$$" + " + ".join(["x^2 y"] * 25) + "$$"), tmp_path)
    read.pages[0].extract_text(visitor_text=visit)
    assert len(edges) >= 25
    assert LEFT <= min(edges) < max(edges) < RIGHT


def test_what_is_folded_a_picture_and_a_box_survive(tmp_path):
    text = (
        "<details><summary>Why?</summary>\n\nBecause.\n\n</details>\n\n"
        "![Two rings](/notebooks/picture.png)\n\n> In a box $x$.\n\n"
        "| a | $\\gamma$ |\n|---|---|\n| one | `two` |\n"
    )
    read = small(handouts.pandoc(text), tmp_path)
    found = squeezed(read.pages[0].extract_text())
    assert found.startswith("Why?Because.Inabox𝑥.a𝛾onetwo")
    assert words_of(read, "/Figure") == ["Two rings"]
    assert len(words_of(read, "/TH")) == 2
    assert len(words_of(read, "/BlockQuote")) == 1


# The book leads its reader


def test_the_contents_list_each_lesson_with_the_page_on_which_it_begins(reader):
    read = reader("course")
    places = {item.title: read.get_destination_page_number(item) for item in outline(read.outline)}
    listed = read.pages[1].extract_text()
    for name in lessons(f"notebooks/{stem}" for stem in TITLES).values():
        title = re.match(r"# (.+)", "".join(cells(name)[0]["source"]))[1]
        entry = re.search(rf"{number(name)}\s+{re.escape(title)}[\s.]*(\d+)", listed)
        place = next(page for found, page in places.items() if found.endswith(title))
        assert int(entry[1]) == place + 1
        assert title in re.sub(r"\s+", " ", read.pages[place].extract_text())


def outline(entries):
    for entry in entries:
        yield from outline(entry) if isinstance(entry, list) else [entry]


def test_a_lesson_and_a_work_that_are_named_lead_to_their_page_of_the_book(reader):
    typst = "".join(page(path.stem) for path in (handouts.BUILD / "pages").iterdir())
    typst += (handouts.BUILD / "course.typ").read_text(encoding="utf-8")
    known = re.findall(r"(?m)^(?:=+ .*|#work\[#metadata\(none\)) <([\w-]+)>", typst)
    assert set(re.findall(r"#link\(<([^>]+)>\)", typst)) - set(known) == set()
    led = [a.get_object() for p in reader("course").pages for a in p.get("/Annots", [])]
    assert sum("/Dest" in link for link in led) > 600


# Nothing of the machine


def test_a_second_run_writes_the_same_bytes(built, tmp_path):
    stem = "09_positive_features"
    before = {name: page(name) for name in ("lesson-09", "exercises-09", "references")}
    site = handouts.stage(tmp_path / "pdf")
    for name in site.files:
        if handouts.label(name) in before:
            assert handouts.HEAD + handouts.converted(name, tmp_path / "pdf") == page(
                handouts.label(name)
            )
    text = (handouts.BUILD / f"{stem}.typ").read_text(encoding="utf-8")
    handouts.compiled(stem, text, tmp_path / "pdf", tmp_path)
    assert (tmp_path / f"{stem}.pdf").read_bytes() == (built / f"{stem}.pdf").read_bytes()
    text = (handouts.BUILD / "course.typ").read_text(encoding="utf-8")
    handouts.compiled("course", text, handouts.BUILD, tmp_path)
    assert (tmp_path / "course.pdf").read_bytes() == (built / "course.pdf").read_bytes()


@pytest.mark.parametrize("stem", [*TITLES, "course"])
def test_no_file_names_the_machine_or_the_day_on_which_it_was_made(reader, built, stem):
    read = reader(stem)
    assert not {"/CreationDate", "/ModDate"} & set(read.metadata)
    content = (built / f"{stem}.pdf").read_bytes()
    metadata = read.trailer["/Root"]["/Metadata"].get_object().get_data()
    for part in (content, metadata):
        assert str(ROOT).encode() not in part
    assert b"Date>" not in metadata
    assert b"<pdfuaid:part>1</pdfuaid:part>" in metadata
