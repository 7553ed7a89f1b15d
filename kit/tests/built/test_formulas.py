"""A page of formulas is one sheet of paper."""

import io

import pytest

from kit import handouts
from tools.setting import NOTEBOOKS

FORMULAS = sorted((NOTEBOOKS / "formulas").glob("*.md"))


@pytest.mark.parametrize("path", FORMULAS, ids=lambda path: path.stem)
def test_the_formulas_of_a_part_fit_on_one_sheet(path, tmp_path):
    import typst
    from pypdf import PdfReader

    handouts.stage(tmp_path)
    said = handouts.pandoc(handouts.joined(path.read_text(encoding="utf-8")))
    source = tmp_path / "page.typ"
    source.write_text(f"{handouts.HEAD}#show: look.with(title: [], course: [])\n{said}", "utf-8")
    made = typst.compile(source, root=tmp_path, ignore_system_fonts=True)
    assert len(PdfReader(io.BytesIO(made)).pages) == 1
