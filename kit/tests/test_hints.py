"""Below each exercise on the site lie its hint and its solution, folded; a download has neither."""

import json
import re

import pytest

from kit import hints, site
from performer_course import checks
from tools.setting import NOTEBOOKS

SHEETS = sorted((NOTEBOOKS / "exercises").glob("*.ipynb"))
FOLD = r"(?s)<details class='answer hint'><summary>(\w+)</summary>\n\n(.+?)\n\n</details>"


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site") / "source"
    site.lay_out(site.COPIED, folder)
    return site.Site(folder)


def cells(path):
    return json.loads(path.read_text(encoding="utf-8"))["cells"]


def lines(text):
    """What a text says, without white space at ends of lines, and escapes."""
    return {line.strip() for line in text.replace("\\", "").split("\n") if line.strip()}


@pytest.mark.parametrize("path", SHEETS, ids=lambda path: path.stem)
def test_each_exercise_is_followed_by_its_hint_and_its_solution_folded(whole, path):
    here = f"notebooks/exercises/{path.stem}"
    page = json.loads(whole.on_page(path.read_text(encoding="utf-8"), here))["cells"]
    solved = {
        hints.name_of(cell): "".join(cell["source"])
        for cell in cells(whole.files[here.replace("exercises", "solutions")])
    }
    asked = [at for at, cell in enumerate(page) if re.match("check-|to_think", hints.name_of(cell))]
    assert len(asked) >= 2
    for at in asked:
        name, check = hints.name_of(page[at]), "".join(page[at]["source"])
        folds = dict(re.findall(FOLD, page[at + 1]["source"]))
        answer = re.sub("### (BEGIN|END) SOLUTION", "", solved[name.removeprefix("check-")])
        assert lines(answer) <= lines(folds.pop("Solution")), name
        if not name.startswith("to_think"):
            (said,) = re.findall(r"checks\.(\w+)", check)
            judged = getattr(checks, said)
            known = [*(hint for _, hint in judged.mistakes), *judged.says]
            found = re.findall(r"(?m)^- (.+)", folds.pop("Hint"))
            assert 1 <= len(found) <= hints.HINTS
            assert all(any(hint.endswith(one.replace("\\", "")) for hint in known) for one in found)
        assert folds == {}
