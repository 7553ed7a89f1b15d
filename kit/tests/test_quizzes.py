"""A quiz on the site shows no answer before it is asked for, and others read what it says."""

import html
import re
from xml.etree import ElementTree
from zipfile import ZipFile

import pytest

from kit import quizzes
from tools.setting import COURSE, ROOT

PAGES = sorted((ROOT / quizzes.FOLDER).glob("*.md"))
each_quiz = pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)


def text(path):
    return path.read_text(encoding="utf-8")


@each_quiz
def test_on_the_site_each_reason_lies_folded_below_its_question(path):
    said, (_, questions) = quizzes.page(text(path)), quizzes.read(text(path))
    folds = re.findall(r"(?s)<details class='answer quiz'>(.+?)</details>", said)
    shown = re.sub(r"(?s)<details.+?</details>", "", said)
    for number, (one, fold) in enumerate(zip(questions, folds, strict=True), start=1):
        (asked,) = re.findall(rf"(?s)## Question {number}\n(.+?)(?=\n## |\Z)", shown)
        assert re.findall(r"- \*\*([A-D])\.\*\* (.+)", asked) == [*one.choices.items()]
        assert re.findall(r"- \*\*([A-D])\*\* (.+)", fold) == [*one.reasons.items()]
        assert one.text in asked
        assert one.shown_in in fold
    assert "is right" not in shown
    assert "Shown in" not in shown


# GIFT, read as Moodle reads it


def parsed(gift):
    """(category, [(name, question, [(whether it is right, choice, reason)])]) of a file.

    A backslash before :, #, =, {, }, ~ or another stands for that sign, and \\n ends a line.
    """
    kept = re.sub(r"\\([\\:#={}~n])", lambda found: chr(0xE000 + ord(found[1])), gift)

    def plain(part):
        part = part.replace(chr(0xE000 + ord("n")), "\n").strip()
        return re.sub("[\ue000-\ue07f]", lambda found: chr(ord(found[0]) - 0xE000), part)

    head, *blocks = re.split(r"\n\s*\n", kept.strip())
    category, found = re.fullmatch(r"\$CATEGORY: (.+)", head)[1], []
    for block in blocks:
        form = r"(?s)::(.+?)::\[html\]([^{}]+)\{([^{}]+)\}"
        name, asked, inside = re.fullmatch(form, block).groups()
        choices = re.findall(r"([=~])([^=~#]+)#([^=~#]+)", inside)
        assert "".join(f"{mark}{said}#{why}" for mark, said, why in choices) == inside.lstrip()
        told = [(mark == "=", plain(said), plain(why)) for mark, said, why in choices]
        found.append((plain(name), plain(asked), told))
    return category, found


def cartridge(path):
    """The same of a Common Cartridge, with the title of its quiz."""
    with ZipFile(path) as files:
        manifest = ElementTree.fromstring(files.read("imsmanifest.xml"))
        (listed,) = (file.get("href") for file in manifest.iterfind(".//{*}resource/{*}file"))
        assert sorted(files.namelist()) == sorted(["imsmanifest.xml", listed])
        assert files.read(listed) == path.with_suffix(".xml").read_bytes()  # which ILIAS reads
        quiz, found = ElementTree.fromstring(files.read(listed)).find("{*}assessment"), []
    for item in quiz.iterfind(".//{*}item"):
        texts = {one.get("ident"): one.findtext(".//{*}mattext") for one in item.iter()}
        told = [
            (
                float(one.findtext("{*}setvar")) == 1,
                texts[one.findtext(".//{*}varequal")],
                texts[one.find("{*}displayfeedback").get("linkrefid")],
            )
            for one in item.iterfind(".//{*}respcondition")
        ]
        assert [choice for _, choice, _ in told] == [
            one.findtext(".//{*}mattext") for one in item.iterfind(".//{*}response_label")
        ]
        found.append((item.get("title"), item.findtext(".//{*}mattext"), told))
    idents = [item.get("ident") for item in quiz.iterfind(".//{*}item")]
    assert len({*idents}) == len(idents)
    assert all(ident.startswith(f"quiz_{path.stem}_") for ident in idents)  # so others differ
    return quiz.get("title"), found


def words(said):
    """What a reader sees, in one line: of Markdown, or of the HTML that was made of it."""
    said = re.sub(r"\[([^\]]+)\]\([^)]+\)", r"\1", said)
    said = re.sub(r"\$([^$]+)\$", r"\\(\1\\)", said)
    pieces = re.split(r"(\\\(.+?\\\))", html.unescape(re.sub(r"</?(?:em|code|p)>", "", said)))
    pieces[::2] = [re.sub(r"[*`]", "", piece) for piece in pieces[::2]]
    return " ".join("".join(pieces).split())


@each_quiz
def test_questions_right_choices_and_reasons_are_read_from_each_file_of_a_quiz(path, tmp_path):
    quizzes.write(tmp_path)
    head, questions = quizzes.read(text(path))
    title = head.split("\n")[0].removeprefix("# Quiz: ")
    category, gift = parsed(text(tmp_path / f"{path.stem}.gift"))
    named, qti = cartridge(tmp_path / f"{path.stem}.imscc")
    assert (category, named) == (f"$course$/{COURSE}/{title}", title)
    assert qti == gift
    for number, (found, one) in enumerate(zip(gift, questions, strict=True), start=1):
        name, asked, choices = found
        assert (name, words(asked)) == (f"{title} {number}", words(one.text))
        assert [right for right, *_ in choices] == [letter == one.right for letter in one.choices]
        assert [words(choice) for _, choice, _ in choices] == [*map(words, one.choices.values())]
        reasons = [words(f"This {said} Shown in {one.shown_in}.") for said in one.reasons.values()]
        assert [words(reason) for *_, reason in choices] == reasons


HARD = "$\\nu = \\{a < b\\} # c : d ~ e$ and {x}, 1 = 1: # ~ \\n"


def test_signs_of_gift_and_commands_of_tex_come_through():
    """\\n of a command would begin a line in Moodle, and a brace would end the question."""
    one = f"# Quiz: Hard\n\nHead.\n\n## Questions\n\n### Question 1\n\n{HARD}\n\n"
    one += "".join(f"- **{letter}.** {HARD}{letter}\n" for letter in "ABCD")
    one += "\n## Answers\n\n### Answer 1: B\n\nShown in [x](y).\n\n"
    one += "".join(f"- **{letter}** {HARD}{letter}\n" for letter in "ABCD")
    ((_, asked, choices),) = parsed(quizzes.gift(one))[1]
    assert html.unescape(asked).startswith(r"\(\nu = \{a < b\} # c : d ~ e\) and {x}, 1 = 1: # ~")
    assert [right for right, *_ in choices] == [False, True, False, False]
