"""The rules by which decks of slides are made of lessons; `make test-kit` looks at the decks."""

import html
import json
import re
import subprocess
import sys
from math import ceil

import nbformat
import pytest

from kit import slides
from kit.printed import Table, tables
from kit.slides import CLOSING, LEAST, MOST, UNSHOWN, Slide, chosen, read
from kit.steps import lines
from tools.setting import NOTEBOOKS, ROOT

LESSONS = slides.lessons()
BOX = (
    "# Weigh a *thing*\n\n> **9 minutes.** Needs: lesson 01.\n>\n> Afterwards you can weigh.\n\nHi."
)
LEAD = "**The second weight is twice as large as the first.**"
OTHER = "**At length four the null answer is the better one.**"
SHORT = "| a | b |\n|---|---|\n| 1 | 2 |"
PRINTED = "   m   error   predicted\n   1   0.447       0.447\n  16   0.111       0.112\n"
ENDING = "## Take away\n\n- One.\n- Two.\n\n## Where it breaks\n\n- Here.\n\n## Exercises\n\nNone."


def text(source, *tags):
    return nbformat.v4.new_markdown_cell(source, metadata={"tags": list(tags)})


def figure(alt, *tags):
    data, metadata = {"image/png": "aGk="}, {"image/png": {"alt": alt}}
    output = nbformat.v4.new_output("display_data", data=data, metadata=metadata)
    return nbformat.v4.new_code_cell("draw()", outputs=[output], metadata={"tags": list(tags)})


def prints(said, *tags):
    output = nbformat.v4.new_output("stream", text=said)
    return nbformat.v4.new_code_cell("secret()", outputs=[output], metadata={"tags": list(tags)})


@pytest.fixture
def deck(tmp_path):
    """deck(cells, minutes): the slides of a small lesson."""

    def made(*cells, minutes=9, name="09_small"):
        box = BOX.replace("9 min", f"{minutes} min")
        notebook = nbformat.v4.new_notebook(cells=[text(box), *cells])
        path = tmp_path / f"{name}.ipynb"
        nbformat.write(notebook, path)
        lesson = read(path)
        return slides.slides(lesson, chosen(lesson))

    return made


@pytest.fixture(scope="module", params=LESSONS, ids=lambda path: path.stem)
def lesson(request):
    return read(request.param)


@pytest.fixture(scope="module")
def made(lesson):
    return slides.slides(lesson, chosen(lesson))


def kinds(deck):
    return [slide.kind for slide in deck]


def noted(deck):
    return "".join(note for slide in deck for note in slide.notes)


def sections(lesson):
    return [section for section in lesson.sections if section.title not in CLOSING + UNSHOWN]


# What becomes a slide


def test_the_first_slide_has_the_title_the_part_and_the_box(deck):
    (title,) = deck()
    assert (title.kind, title.title) == ("title", "Weigh a <em>thing</em>")
    assert title.section == "Lesson 09 · Attention"
    assert title.body == [
        "<p><strong>9 minutes.</strong> Needs: lesson 01.</p>",
        "<p>Afterwards you can weigh.</p>",
    ]
    assert title.notes == ["<p>Hi.</p>\n"]


def test_a_section_has_its_name_its_lead_and_its_formulas_step_by_step(deck):
    said = f"## 1. Scales\n\n{LEAD} So\n\n$$a = b$$\n\n**Twice.** The other is\n\n$$c$$\n\nbecause."
    _, slide = deck(text(said))
    assert (slide.kind, slide.title) == ("text", "1. Scales")
    assert slide.body == [
        "The second weight is twice as large as the first.",
        '<div class="step fragment"><p class="said">So</p>'
        r'<div class="math block">\[a = b\]</div></div>',
        '<div class="step fragment"><p class="said"><strong>Twice.</strong> The other is</p>'
        r'<div class="math block">\[c\]</div></div>',
    ]
    assert [re.sub("<.*?>", "", note).strip() for note in slide.notes] == [
        "The second weight is twice as large as the first. So",
        r"\[a = b\]",
        "Twice. The other is",
        r"\[c\]",
        "because.",
    ]


def test_formulas_that_have_no_room_go_to_a_second_slide_under_the_lead(deck):
    formulas = "\n\n".join([r"$$\frac{a}{b}$$"] * 6)
    _, first, second = deck(text(f"## 1. Scales\n\n{LEAD}\n\n{formulas}"))
    assert second.title == "The second weight is twice as large as the first."
    assert second.section == first.title == "1. Scales"
    assert sum("step" in piece for piece in first.body + second.body) == 6


def test_a_figure_stands_under_the_claim_that_answers_it(deck):
    question = "**Before you run this:** is it\ntwice?"
    before, after = text(f"## 1. Scales\n\n{OTHER} {question}"), text(f"Yes. {LEAD} And on.")
    _, first, asked, shown = deck(before, figure("It is twice."), after, minutes=20)
    assert (first.kind, first.body) == ("claim", [OTHER.strip("*")])
    assert (asked.kind, asked.section) == ("question", "1. Scales")
    assert asked.body == [f'<p class="said">{OTHER.strip("*")}</p><p>Is it\ntwice?</p>']
    assert (shown.kind, shown.title) == ("figure", LEAD.strip("*"))
    assert shown.section == "1. Scales"
    assert shown.body == ['<img alt="It is twice." src="data:image/png;base64,aGk=">']
    said = f"<p>Yes. <strong>{LEAD.strip('*')}</strong> And on.</p>\n"
    assert shown.notes == ["<p>It is twice.</p>", said]


def test_a_claim_ends_at_the_next_picture_and_is_then_the_one_before(deck):
    cells = [text(f"## 1. Scales\n\n{LEAD}"), figure("One."), text("Prose."), figure("Two.")]
    found = deck(*cells, text(f"So {OTHER}"))
    assert [slide.title for slide in found if slide.kind == "figure"] == [
        LEAD.strip("*"),
        OTHER.strip("*"),
    ]


def test_a_table_and_its_picture_with_no_word_between_have_one_claim(deck):
    cells = [text(f"## 1. Scales\n\n{LEAD}"), prints(PRINTED), figure("Drawn."), text(OTHER)]
    found = deck(*cells, minutes=90)
    assert {slide.title for slide in found if slide.kind in ("table", "figure")} == {
        OTHER.strip("*")
    }


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("A thing. **It is $x y z$ times as\nlarge.** More.", ["It is $x y z$ times as large."]),
        ("**Layer norm.** Prose.", []),
        ("**Before you run this:** is it the one or the other?", []),
        ("**it begins with a small letter here.**", []),
        ("**It has no full stop at the end of it** .", []),
        ("**" + "Word " * 28 + "end.**", []),
    ],
)
def test_a_lead_is_a_whole_sentence_in_bold(said, expected):
    assert slides.leads(said) == expected


def test_questions_and_tables_fill_what_is_left_and_the_rest_stays_in_the_notes(deck):
    cells = [text(f"## 1. Scales\n\n{LEAD}")]
    for i in range(20):
        cells += [text(f"**Before you run this:** how large is {i}?"), prints(PRINTED)]
    for minutes in (9, 30, 60):
        found = deck(*cells, text(ENDING), minutes=minutes)
        assert len(found) <= MOST * minutes or "question" not in kinds(found)
        assert all(f"how large is {i}?" in noted(found) for i in range(20))
    assert len(found) == 24
    assert kinds(found)[1:5] == ["question", "table", "question", "table"]


def test_where_there_is_too_little_a_claim_that_no_slide_carries_gets_one(deck):
    cells = [text(f"## 1. Scales\n\n{LEAD}"), text(OTHER), text(ENDING)]
    assert kinds(deck(*cells, minutes=9)) == ["title", "claim", "list", "list"]
    assert kinds(deck(*cells, minutes=18)) == ["title", "claim", "claim", "list", "list"]


def test_a_section_without_claim_formula_or_picture_is_told_on_the_slide_before(deck):
    found = deck(text(f"## 1. Scales\n\n{LEAD}"), text("## 2. Weights\n\nOnly prose."))
    assert [slide.title for slide in found[1:]] == ["1. Scales"]
    assert found[-1].notes[-1] == "<p>Only prose.</p>\n"


def test_a_tag_keeps_a_cell_off_the_slides_or_on_them(deck):
    head = text(f"## 1. Scales\n\n{LEAD}")
    assert "figure" not in kinds(deck(head, figure("One.", "slide-off")))
    assert "table" not in kinds(deck(head, prints(PRINTED), minutes=4))
    assert "table" in kinds(deck(head, prints(PRINTED, "slide-on"), minutes=4))


def test_no_code_is_shown_no_link_and_no_raw_print(deck):
    link = text(f"## 1. Scales\n\n{LEAD} See [one](two.ipynb).")
    found = str(deck(link, prints("a  b\nwords, not a table\n"), prints(PRINTED), minutes=20))
    assert "two.ipynb" not in found
    assert "See one." in found
    assert "secret" not in found
    assert "words, not" not in found


def test_a_lesson_ends_with_what_to_take_away_and_where_it_breaks_and_its_exercises(tmp_path, deck):
    (tmp_path / "exercises").mkdir()
    sheet = nbformat.v4.new_notebook(
        cells=[text("# Exercises"), text("## 2. Weigh $x$\n\n*●●○ · 25 minutes.* Do.")]
    )
    nbformat.write(sheet, tmp_path / "exercises" / "09_small.ipynb")
    away, breaks, exercises = deck(text(ENDING))[1:]
    assert (away.title, away.body) == ("Take away", ["<ul><li>One.</li><li>Two.</li></ul>"])
    assert breaks.title == "Where it breaks"
    assert exercises.body == [
        r'<ul class=\'plain\'><li>2. Weigh <span class="math">\(x\)</span>'.replace("\\'", "'")
        + " <small>●●○ · 25 minutes</small></li></ul>"
    ]


def test_a_long_list_is_shared_out_evenly(deck):
    points = "\n".join(f"- {'word ' * 30}{i}." for i in range(6))
    found = [slide for slide in deck(text(f"## Take away\n\n{points}")) if slide.kind == "list"]
    assert [str(slide.body).count("<li>") for slide in found] == [3, 3]


# Tables that were printed


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        (
            PRINTED,
            [(("m", "error", "predicted"), (("1", "0.447", "0.447"), ("16", "0.111", "0.112")))],
        ),
        (
            "title\n          F   worth D\nkeys     32        32\nmaps    128         -\nand on\n",
            [(("", "F", "worth D"), (("keys", "32", "32"), ("maps", "128", "-")))],
        ),
        (
            "T =          0.25      2\n  one       0.019     19\n  two        0.05    1.1\n",
            [(("T =", "0.25", "2"), (("one", "0.019", "19"), ("two", "0.05", "1.1")))],
        ),
        (
            "of         50      100\nA   0.20±0.01 0.1±0.02\nB   0.30±0.01 0.2±0.02\n",
            [
                (
                    ("of", "50", "100"),
                    (("A", "0.20±0.01", "0.1±0.02"), ("B", "0.30±0.01", "0.2±0.02")),
                )
            ],
        ),
    ],
)
def test_a_head_over_aligned_rows_is_a_table(said, expected):
    assert [(table.head, table.rows) for table in tables(said)] == expected


@pytest.mark.parametrize(
    "said",
    [
        "one:    0.3\ntwo:    0.4\n",
        "m =  1: error 0.3\nm = 16: error 0.4\nm = 64: error 0.5\n",
        "uniform       2.00 bits\nhistogram     1.60 bits\nsoftmax       1.10 bits\n",
        "[[1. 0.]\n [0. 1.]]\n",
        "       a         b\n  found told  found told\n  1 2   3 4\n  5 6   7 8\n",
        "x        near   far away\nband     0.2    1.8  3.8\nwhole    0.3    1.9  2.8\n",
        "kind     error  time\nall   relative    ms\nA          0.3     2\nB          0.4     3\n",
        "x  y\n1  2\n",
        "same as before: True\n",
    ],
)
def test_what_is_no_table_for_certain_is_none(said):
    assert tables(said) == []


def test_two_tables_of_one_form_are_told_apart_and_a_title_is_a_caption():
    said = "bits, m     1    2\nA         0.5  0.6\nB         0.7  0.8\n"
    said += "error, m    1    2\nA           5    6\nB           7    8\n"
    assert [(table.head[0], table.rows[1][1]) for table in tables(said)] == [
        ("bits, m", "0.7"),
        ("error, m", "7"),
    ]
    assert tables("MSE at d = 4:\n" + PRINTED)[0].caption == "MSE at d = 4"


@pytest.mark.parametrize(
    ("stem", "expected"),
    [
        (
            "06_structured_projections",
            Table(
                ("D", "D² multiplications", "D log₂ D additions"),
                (
                    ("64", "4,096", "384"),
                    ("1,024", "1,048,576", "10,240"),
                    ("4,096", "16,777,216", "49,152"),
                ),
            ),
        ),
        (
            "05_orthogonal_features",
            Table(
                ("m", "independent", "χ", "fixed", "shared", "shared / independent"),
                (
                    ("16", "1.2e-02", "2.0e-03", "6.6e-04", "1.2e-02", "1"),
                    ("64", "3.1e-03", "4.9e-04", "2.2e-04", "1.2e-02", "4"),
                    ("256", "7.8e-04", "1.2e-04", "1.2e-04", "1.2e-02", "15"),
                    ("4096", "4.9e-05", "7.7e-06", "8.3e-05", "1.2e-02", "239"),
                ),
                "MSE at r = 1, d = 16",
            ),
        ),
        (
            "a1_errata",
            Table(
                ("K = 0.607", "m", "RMS error", "predicted"),
                (
                    ("", "1", "0.447", "0.447"),
                    ("", "16", "0.111", "0.112"),
                    ("", "256", "0.027", "0.028"),
                ),
            ),
        ),
        (
            "03_bochner_theorem",
            Table(
                ("", "mean of cos", "kernel", "z"),
                (
                    ("Gaussian, normal ω", "0.7782", "0.7788", "-1.0"),
                    ("Laplacian, Cauchy ω", "0.3009", "0.3012", "-0.2"),
                    ("Cauchy, Laplace ω", "0.6333", "0.6327", "0.6"),
                    ("Gaussian γ = 2, N(0, 2γ I)", "0.3664", "0.3679", "-1.1"),
                    ("slip: γ = 2, N(0, γ I)", "0.6055", "0.3679", "173.8"),
                    ("slip: 2π in the cosine", "0.0008", "0.7788", "-1250.6"),
                ),
            ),
        ),
    ],
)
def test_tables_of_the_lessons_are_recognised_cell_by_cell(stem, expected):
    cells = nbformat.read(NOTEBOOKS / f"{stem}.ipynb", as_version=4).cells
    outputs = [output.get("text", "") for cell in cells for output in cell.get("outputs", [])]
    assert expected in [table for output in outputs for table in tables(output)]


def test_most_lessons_have_a_table_and_each_cell_of_it_was_printed():
    count = 0
    for path in LESSONS:
        for cell in nbformat.read(path, as_version=4).cells:
            for output in cell.get("outputs", []):
                said = re.sub(r"\s+", " ", output.get("text", ""))
                for table in tables(output.get("text", "")):
                    count += 1
                    for row in (table.head, *table.rows):
                        assert " ".join(filter(None, row)) in said, row
                        assert len(row) == len(table.head)
    assert count > 70


# Formulas in lines


@pytest.mark.parametrize(
    ("tex", "expected"),
    [
        ("a = b", ["a = b"]),
        (r"a = b, \qquad c = d", [r"a = b, \qquad c = d"]),
        (
            r"\text{one thing that is very, very long} = b, \qquad f(x, \qquad y) = d",
            [r"\text{one thing that is very, very long} = b,", r"f(x, \qquad y) = d"],
        ),
        (
            f"{'x' * 20} = {'y' * 20} \\le (z = z) = w",
            [
                r"\begin{aligned}"
                + "x" * 20
                + " &= "
                + "y" * 20
                + r" \\ &\le (z = z) \\ &= w\end{aligned}"
            ],
        ),
        ("x" * 60 + " = y", ["x" * 60 + " = y"]),
        (
            "x" * 40 + r" \quad\text{where}\quad 0 \le y = w, \; u = " + "v" * 40,
            ["x" * 40, r"\text{where}\quad 0 \le y = w, \; u = " + "v" * 40],
        ),
        ("x" * 60 + " = ( y = z = w", ["x" * 60 + " = ( y = z = w"]),
    ],
)
def test_a_long_formula_is_cut_at_gaps_and_relations_and_nowhere_else(tex, expected):
    assert lines(tex) == expected


# All lessons


def test_a_lesson_has_25_to_40_slides_for_90_minutes(lesson, made):
    assert ceil(LEAST * lesson.minutes) <= len(made) <= MOST * lesson.minutes


def test_each_figure_of_a_lesson_is_shown_once_and_under_a_claim(lesson, made):
    walked = [lesson.opening, *lesson.sections]
    figures = [item for part in walked for item in part.items if item.kind == "figure"]
    cells = nbformat.read(next(NOTEBOOKS.glob(f"{lesson.number}_*.ipynb")), as_version=4).cells
    outputs = [output for cell in cells for output in cell.get("outputs", [])]
    assert len(figures) == sum("image/png" in output.get("data", {}) for output in outputs)
    kept = [item for item in figures if "slide-off" not in item.tags]
    shown = [slide for slide in made if slide.kind == "figure"]
    assert [slide.body for slide in shown] == [[slides.picture(item)] for item in kept]
    claims = [claim for section in walked for claim in section.leads]
    assert [slide.title for slide in shown if slide.title not in claims] == []
    described = [item.text for item in kept]
    notes = [html.unescape("".join(slide.notes)) for slide in shown]
    assert all(words in note for words, note in zip(described, notes, strict=True))


def test_each_section_says_its_claim(lesson):
    showing = [
        section
        for section in sections(lesson)
        if lesson.number != "00" or any(item.kind == "figure" for item in section.items)
    ]
    assert [section.title for section in showing if not section.leads] == []


def test_no_formula_is_lost(lesson, made):
    shown = "".join(piece for slide in made for piece in slide.body)
    for section in sections(lesson):
        for item in section.items:
            if item.kind == "formula" and "slide-off" not in item.tags:
                for line in lines(item.text):
                    assert slides.display(line) in shown


def test_no_text_is_lost(lesson, made):
    """All of it is in the notes, in the order of the lesson; lists at the end are on slides."""
    said = []
    for section in (lesson.opening, *sections(lesson)):
        said += [i.html for i in section.items if i.kind in ("prose", "formula", "heading")]
    notes = [note for slide in made for note in slide.notes]
    assert [note for note in notes if note in set(said)] == said
    points = re.sub(r"</?ul>|\s", "", "".join(piece for slide in made for piece in slide.body))
    for section in lesson.sections:
        if section.title in CLOSING:
            for item in section.items:
                if item.kind == "prose":
                    for point in re.findall(r"(?s)<li>(.*?)</li>", item.html):
                        assert re.sub(r"\s", "", point) in points


def test_a_question_stands_before_its_answer(lesson, made):
    """No question comes after the figure or table that its own lesson shows next."""
    walked = [lesson.opening, *sections(lesson)]
    order = [item for section in walked for item in section.items]
    place = {}
    for at, item in enumerate(order):
        shown = slides.picture(item) if item.kind == "figure" else item.html
        place.setdefault(shown, at)
    found = [place[s.body[0]] for s in made if s.kind in ("question", "figure", "table")]
    assert found == sorted(found)


def test_the_last_slides_are_take_away_where_it_breaks_and_the_exercises(lesson, made):
    titles = list(dict.fromkeys(slide.title for slide in made if slide.kind == "list"))
    assert titles == [*CLOSING, *["Exercises"] * bool(lesson.exercises)]
    sheet = NOTEBOOKS / "exercises"
    assert bool(lesson.exercises) == any(sheet.glob(f"{lesson.number}_*.ipynb"))
    assert len(lesson.exercises) in (0, 3)


# The page, and tools that are missing


def test_a_deck_is_a_page_with_a_language_a_title_headings_and_notes():
    page = slides.page(read(NOTEBOOKS / "09_positive_features.ipynb"))
    assert '<html lang="en"' in page
    assert "<title>09 Build weights that cannot turn negative</title>" in page
    assert page.count("<h1>") == 1
    assert page.count("<section") == page.count("<h1>") + page.count("<h2>")
    assert page.count('<aside class="notes">') > 15


def test_the_files_of_a_deck_name_no_address():
    for path in (ROOT / "kit/look/slides").iterdir():
        assert "://" not in path.read_text(encoding="utf-8")


def test_without_a_package_one_is_told_of_the_extra(monkeypatch):
    monkeypatch.setattr(slides, "find_spec", lambda name: None)
    with pytest.raises(SystemExit, match=r"jinja2, markdown-it-py, .*make slides.*\[slides\]"):
        slides.main()


def test_without_chromium_decks_are_made_and_one_is_told_how_to_get_pdfs(
    tmp_path, monkeypatch, capsys
):
    monkeypatch.setattr(slides, "BUILD", tmp_path)
    monkeypatch.setattr(slides, "ROOT", tmp_path.parent)
    monkeypatch.setattr(slides, "assets", lambda folder: None)
    monkeypatch.setattr(slides.chromium, "PATH", None)
    assert slides.main("a3") == 0
    assert (tmp_path / "a3_symbols_into_vectors.html").is_file()
    assert "apt install chromium" in capsys.readouterr().out


def test_the_rules_of_the_slides_need_none_of_their_tools():
    code = "import sys, kit.slides; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    heavy = {"markdown_it", "jinja2", "playwright", "nbformat", "numpy", "performer_course"}
    assert heavy & set(done.stdout.split()) == set()
    assert "kit.steps" in done.stdout.split()


def test_a_slide_is_what_a_template_can_read():
    assert json.dumps(vars(Slide("text", "One")))
