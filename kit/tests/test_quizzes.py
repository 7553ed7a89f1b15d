"""A quiz on the site shows no answer before it is asked for, and Moodle reads what it says."""

import html
import re

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


def test_a_file_for_moodle_is_made_of_each_quiz(tmp_path):
    assert [path.stem for path in quizzes.write(tmp_path)] == [path.stem for path in PAGES]


# GIFT, read as Moodle reads it


def parsed(gift):
    """(category, [(name, question, [(mark, choice, reason)], general feedback)]) of a file.

    First \\\\ is a backslash; then \\ before one of :#={}~ is that sign, and \\n ends a line.
    """
    names = {f"\\{sign}": f"\0{ord(sign)};" for sign in ":#={}~"} | {"\\n": "\0010;"}
    gift = gift.replace("\\\\", "\0092;")
    gift = re.sub(r"\\[:#={}~n]", lambda found: names[found[0]], gift)

    def plain(part):
        return re.sub(r"\0(\d+);", lambda found: chr(int(found[1])), part).strip()

    head, *blocks = re.split(r"\n\s*\n", gift.strip())
    category, found = re.fullmatch(r"\$CATEGORY: (.+)", head)[1], []
    for block in blocks:
        name, asked, inside = re.fullmatch(
            r"(?s)::(.+?)::\[html\]([^{}]+)\{([^{}]+)\}", block
        ).groups()
        inside, general = inside.split("####")
        choices = re.findall(r"([=~])([^=~#]+)#([^=~#]+)", inside)
        assert (
            "".join(f"{mark}{choice}#{reason}" for mark, choice, reason in choices)
            == inside.lstrip()
        )
        told = [(mark, plain(choice), plain(reason)) for mark, choice, reason in choices]
        found.append((plain(name), plain(asked), told, plain(general)))
    return category, found


def words(said):
    """What a reader sees, in one line: of Markdown, or of the HTML that Moodle has."""
    said = re.sub(r"\[([^\]]+)\]\([^)]+\)", r"\1", said)
    said = re.sub(r"\$([^$]+)\$", r"\\(\1\\)", said)
    pieces = re.split(r"(\\\(.+?\\\))", html.unescape(re.sub(r"</?(?:em|code|p)>", "", said)))
    pieces[::2] = [re.sub(r"[*`]", "", piece) for piece in pieces[::2]]
    return " ".join("".join(pieces).split())


@each_quiz
def test_moodle_reads_the_questions_the_right_choices_and_the_reasons_of_a_quiz(path):
    category, found = parsed(quizzes.gift(text(path)))
    head, questions = quizzes.read(text(path))
    title = head.split("\n")[0].removeprefix("# Quiz: ")
    assert category == f"$course$/{COURSE}/{title}"
    for number, (read, one) in enumerate(zip(found, questions, strict=True), start=1):
        name, asked, choices, general = read
        assert (name, words(asked)) == (f"{title} {number}", words(one.text))
        marks = ["=" if letter == one.right else "~" for letter in one.choices]
        assert [mark for mark, *_ in choices] == marks
        assert [words(choice) for _, choice, _ in choices] == [*map(words, one.choices.values())]
        reasons = [words(f"This {reason}") for reason in one.reasons.values()]
        assert [words(reason) for *_, reason in choices] == reasons
        assert words(general) == words(f"Shown in {one.shown_in}.")


HARD = "$\\nu = \\{a < b\\} # c : d ~ e$ and {x}, 1 = 1: # ~ \\n"


def test_signs_of_gift_and_commands_of_tex_come_through():
    """\\n of a command would begin a line in Moodle, and a brace would end the question."""
    one = f"# Quiz: Hard\n\nHead.\n\n## Questions\n\n### Question 1\n\n{HARD}\n\n"
    one += "".join(f"- **{letter}.** {HARD}{letter}\n" for letter in "ABCD")
    one += "\n## Answers\n\n### Answer 1: B\n\nShown in [x](y).\n\n"
    one += "".join(f"- **{letter}** {HARD}{letter}\n" for letter in "ABCD")
    ((_, asked, choices, _),) = parsed(quizzes.gift(one))[1]
    assert html.unescape(asked).startswith(r"\(\nu = \{a < b\} # c : d ~ e\) and {x}, 1 = 1: # ~")
    assert [mark for mark, *_ in choices] == ["~", "=", "~", "~"]
