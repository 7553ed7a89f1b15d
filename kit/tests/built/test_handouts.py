"""The book and the handouts, set by pandoc and Typst, and read back from the PDFs."""

import functools
import re
import unicodedata
from collections import Counter

import pytest

from kit import handouts, lectures, site
from kit.site import number
from tools.lesson import find, paths, read
from tools.setting import ROOT

TITLES = [path.stem for path in paths()]
FORMULA = re.compile(r'#(formula|shown)\("((?:[^"\\]|\\.)*)", \$(.*?)\$\)', re.DOTALL)
# What stands in Typst for a command of TeX, as often as it does in TeX; alone where it is the same.
COUNTED = r"""
Lambda Phi Theta alpha approx beta binom chi cos cosh delta ell eta exp gamma hat in kappa lambda
ln log mapsto max min mu nabla nu omega overline partial pi psi quad rho sigma sin sinh sqrt sum sup
tanh theta tilde times top underbrace xi
|=parallel Vert=parallel varphi=phi phi=phi.alt varepsilon=epsilon epsilon=epsilon.alt int=integral
prod=product infty=oo le=lt.eq ge=gt.eq ne=eq.not ll=lt.double gg=gt.double otimes=times.circle
oplus=xor odot=dot.o cdot=dot.op to=arrow.r leftarrow=arrow.l longleftrightarrow=arrow.l.r
dots=dots.h cdots=dots.h.c lceil=ceil.l rceil=ceil.r langle=chevron.l rangle=chevron.r pm=plus.minus
mp=minus.plus sim=tilde.op lesssim=lt.tilde propto=prop circ=compose star=star.op mathbb=bb
mathcal=cal mathbf=bold mathtt=mono bar=macron ,=thin ;=thick operatorname=op
big=big bigl=big bigr=big Bigl=big Bigr=big biggl=big biggr=big
"""
COUNTED = {one.partition("=")[0]: one.split("=")[-1] for one in COUNTED.split()}


@pytest.fixture(scope="session")
def built():
    """Everything, made as `make pdf` makes it."""
    assert handouts.main() == 0
    return handouts.OUT


@pytest.fixture(scope="session")
def reader(built):
    """Read a PDF by its name, once."""
    from pypdf import PdfReader

    return functools.cache(lambda name: PdfReader(built / f"{name}.pdf"))


@pytest.fixture(scope="session")
def said(reader):
    """The text of a handout without white space."""

    @functools.cache
    def say(name):
        return squeezed("".join(page.extract_text() for page in reader(name).pages))

    return say


def squeezed(text):
    """`text` without white space, and without the sign of a line that goes on."""
    plain = unicodedata.normalize("NFD", text).replace("’", "'")  # pandoc curls it
    return re.sub(r"[\s\u200b↩]", "", plain)


def missed(lines, whole):
    """The lines that are not on the pages. A letter with a mark above is read from them twice."""
    pieces = [piece for line in lines for piece in re.split(r".[\u0300-\u036f]+", squeezed(line))]
    return [piece for piece in pieces if piece not in whole]


def page(name):
    return (handouts.BUILD / f"pages/{name}.typ").read_text(encoding="utf-8")


def described(stem):
    return [figure.alt for figure in read(find(stem.split("_")[0])).figures]


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
    assert sorted(path.stem for path in built.iterdir()) == sorted(
        [*TITLES, "course", *(talk.name for talk in lectures.every())]
    )


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


def test_every_formula_of_the_course_is_printed_with_what_its_tex_says(built):
    wrong, count = [], 0
    pages = (handouts.BUILD / "pages").glob("*.typ")
    for path in sorted([*pages, *handouts.BUILD.glob("lecture_*.typ")]):
        for _, tex, typst in FORMULA.findall(path.read_text(encoding="utf-8")):
            tex, count = tex.replace("\\\\", "\\"), count + 1
            commands = re.findall(r"\\([a-zA-Z]+|.)", tex)
            expected = Counter(COUNTED[c] for c in commands if c in COUNTED)
            names = re.findall(r'"[^"]*"|[a-zA-Z][a-zA-Z.]*[a-zA-Z]', typst)
            found = Counter(name for name in names if name[0] != '"')
            differ = {n: (k, found[n]) for n, k in expected.items() if found[n] != k}
            if differ:
                wrong.append((path.stem, tex, typst, differ))
    assert wrong == []
    assert count > 2000


def test_every_formula_of_the_notebooks_arrives(built):
    for path in paths():
        bare = re.sub(r"(?s)```.*?```|`[^`]+`", "", "\n\n".join(read(path).texts))
        shown = re.findall(r"(?s)\$\$.*?\$\$", bare)
        inline = re.findall(r"\$[^$]+\$", re.sub(r"(?s)\$\$.*?\$\$", "", bare))
        kinds = Counter(
            kind for kind, _, _ in FORMULA.findall(page(handouts.label(f"notebooks/{path.stem}")))
        )
        assert (kinds["shown"], kinds["formula"]) == (len(shown), len(inline)), path.stem


# What is on the pages


@pytest.mark.parametrize("stem", TITLES)
def test_a_handout_has_its_figures_in_words_its_title_and_its_language(reader, stem):
    read = reader(stem)
    assert words_of(read, "/Figure") == described(stem)
    assert None not in words_of(read, "/Formula")
    assert read.trailer["/Root"]["/Lang"] == "en-GB"
    assert read.trailer["/Root"]["/MarkInfo"]["/Marked"]
    title, first = read.metadata.title, squeezed(read.pages[0].extract_text())
    assert title.startswith(number(f"notebooks/{stem}"))
    assert first.count(squeezed(title)) == len(words_of(read, "/H1")) == 1


@pytest.mark.parametrize("talk", lectures.every(), ids=lambda talk: talk.name)
def test_a_lecture_on_paper_has_board_two_figures_questions_and_homework_on_two_pages(
    reader, said, talk
):
    read, found = reader(talk.name), said(talk.name)
    assert len(read.pages) <= 2
    assert read.metadata.title == f"Lecture {talk.number}: {talk.title}"
    assert len(words_of(read, "/Figure")) == 2
    assert None not in [*words_of(read, "/Figure"), *words_of(read, "/Formula")]
    for n, text in enumerate(talk.steps, 1):
        assert f"{n}.{opening(text)}" in found, text
    for ask in talk.asks.values():
        assert opening(ask.question) in found
        assert opening(ask.say) not in found
    for item in talk.homework:
        assert opening(item) in found


def opening(text):
    """The first words, as a line of a page has them, before a formula, a link or a quotation."""
    return squeezed(" ".join(re.split("[$*`\"'\\[]", lectures.unmarked(text))[0].split()[:4]))


def test_the_book_has_all_figures_in_words_and_one_on_its_title_page(reader):
    alts = [alt for stem in TITLES for alt in described(stem)]
    assert words_of(reader("course"), "/Figure")[1:] == alts
    assert reader("course").metadata.title == "How kernels became linear attention"


@pytest.mark.parametrize("stem", TITLES)
def test_all_code_and_all_that_it_printed_is_on_the_page(said, stem):
    whole = said(stem)
    for cell in read(find(stem.split("_")[0])).cells:
        if cell.kind == "code":
            assert cell.folded or missed(cell.source.split("\n"), whole) == []
            assert not cell.folded or squeezed(cell.source) not in whole
            printed = [output.text for output in cell.outputs if not output.figure]
            assert missed("".join(printed).split("\n"), whole) == []


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


def test_a_lesson_and_a_work_that_are_named_lead_to_their_page_of_the_book(reader):
    """Typst stops at a label that is not there."""
    led = [a.get_object() for p in reader("course").pages for a in p.get("/Annots", [])]
    assert sum("/Dest" in link for link in led) > 600


def test_no_page_of_the_book_is_nearly_empty(reader):
    said = [page.extract_text().split() for page in reader("course").pages]
    small = {place: len(words) for place, words in enumerate(said, start=1) if len(words) < 60}
    assert small == {}
    assert len(said) > 300


def test_the_book_has_at_its_end_what_lecturers_need(reader):
    titles = [one.title for one in flat(reader("course").outline)]
    taught = titles[titles.index("For lecturers") :]
    assert [t for t in taught if t.startswith("Quiz: ")] == [f"Quiz: {part}" for part in site.PARTS]
    assert "Twelve weeks" in taught
    assert any("lecture 3" in title.lower() for title in taught)


def flat(outline):
    """The entries of an outline, those below others included."""
    for one in outline:
        yield from flat(one) if isinstance(one, list) else [one]


# Nothing of the machine


def test_a_second_run_writes_the_same_bytes(built, tmp_path):
    stem = "09_positive_features"
    typst = (handouts.BUILD / f"{stem}.typ").read_text(encoding="utf-8")
    handouts.compiled(stem, typst, handouts.BUILD, tmp_path)
    assert (tmp_path / f"{stem}.pdf").read_bytes() == (built / f"{stem}.pdf").read_bytes()


@pytest.mark.parametrize("stem", [*TITLES, "lecture_3", "course"])
def test_no_file_names_the_machine_or_the_day_on_which_it_was_made(reader, built, stem):
    read = reader(stem)
    assert not {"/CreationDate", "/ModDate"} & set(read.metadata)
    content = (built / f"{stem}.pdf").read_bytes()
    metadata = read.trailer["/Root"]["/Metadata"].get_object().get_data()
    for part in (content, metadata):
        assert str(ROOT).encode() not in part
    assert b"Date>" not in metadata
    assert b"<pdfuaid:part>1</pdfuaid:part>" in metadata
