"""What lies in the browser; `make test-kit` builds it and starts Python."""

import json
import os
import re
from pathlib import Path

import nbformat
import pytest

from kit import lite, published, seconds, site
from tests.support.checkout import text
from tools import lab
from tools.setting import NOTEBOOKS

FILES = lite.contents()
RUNNING = sorted(name for name in FILES if name.endswith(".ipynb"))
PAGE = text("kit/pages/in_the_browser.md")


def cells(name, kind):
    """All cells of one kind of a notebook there, as one text."""
    found = nbformat.reads(FILES[name], as_version=4).cells
    return "\n".join(cell.source for cell in found if cell.cell_type == kind)


def test_a_copy_is_that_of_make_lab_with_two_cells_in_front():
    mine = {f"my/{name}": content for name, content in lab.copies(NOTEBOOKS).items()}
    assert len(RUNNING) == 26 + 23 + 23
    for name in RUNNING:
        *front, first = json.loads(FILES[name])["cells"][:3]
        assert front == [lite.TOLD, lite.INSTALL]
        assert first["id"] == json.loads(mine[name])["cells"][0]["id"]
        nbformat.validate(nbformat.reads(FILES[name], as_version=4))


def test_the_page_times_each_lesson_there_and_names_the_others_and_an_afternoon():
    times = re.findall(r"(?m)^\| (\w\d) \| \d+ \| (\d+) \| \d+ \|$", PAGE)
    assert [number for number, _ in times] == lite.LESSONS
    assert max(int(took) for _, took in times) <= seconds.MOST
    reasons = PAGE.partition("## What does not run there")[2]
    assert set(re.findall(r"\b(\w\d)\b(?=[^|]*\|.*\|\n)", reasons)) == lite.WITHOUT
    assert re.search(r"afternoon\*\*.+?(lessons .+? and \d\d)", text("README.md"))[1] in PAGE


@pytest.mark.parametrize("name", RUNNING)
def test_a_notebook_in_the_browser_opens_only_files_that_are_put_there(name):
    code = cells(name, "code")
    assert not re.findall(r"(?:Path|open|np\.load)\(f?\"", code)
    for folder, path in re.findall(r"(FOLDER|HOME)(?: /|,) f?\"([^\"]+)\"", code):
        whole = Path(os.path.normpath(f"notebooks/data/{path}" if folder == "FOLDER" else path))
        assert any(whole.match(pattern) for pattern in published.DATA), path


def test_each_link_in_the_browser_leads_to_a_file_that_lies_there():
    count = 0
    for name in FILES:
        if name.endswith((".ipynb", ".md")):
            said = cells(name, "markdown") if name in RUNNING else FILES[name].decode()
            for _, target in lite.LINK.findall(said):
                count += 1
                path = Path(os.path.normpath(Path(name).parent / target)).as_posix()
                assert path in FILES, f"{name}: {target}"
    assert count > 50


def test_a_page_leads_to_the_browser_where_it_was_built_and_nowhere_else(tmp_path):
    site.stage(tmp_path / "source")
    whole, lesson = site.Site(tmp_path / "source", built=tmp_path), "05_orthogonal_features"
    here = f"notebooks/exercises/{lesson}"
    assert "lite/" not in whole.beside(here) + whole.on_page(PAGE, site.BROWSER)
    for name in (lesson, f"exercises/{lesson}"):
        lab.place(tmp_path / f"lite/files/my/{name}.ipynb", b"{}")
    start = "lite/lab/index.html?path=my"
    assert f"href='../../{start}/exercises/{lesson}.ipynb'" in whole.beside(here)
    assert "lite/" not in whole.beside(f"notebooks/solutions/{lesson}")
    said = whole.on_page(PAGE, site.BROWSER)
    assert re.findall(r"href='(.*?)'", said) == [f"../../{start}/{lesson}.ipynb"]
