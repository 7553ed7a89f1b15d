"""The handout of a lecture, and what printing needs; `make test-kit` reads the PDFs."""

import pytest

from kit import handouts, lectures, pdf

TALKS = lectures.every()


def test_handouts_lie_beside_the_pages_of_their_lectures(tmp_path):
    home = tmp_path / "kit/pages/lectures"
    home.mkdir(parents=True)
    handouts.write(tmp_path)
    assert sorted(path.stem for path in home.glob("*.md")) == [
        f"handout_{talk.number}" for talk in TALKS
    ]
    assert {path.stem for path in home.glob("*.png")} == {n for talk in TALKS for n in talk.paper}


def test_a_page_that_is_not_there_is_named_and_so_is_what_brings_a_browser(tmp_path, monkeypatch):
    pytest.importorskip("playwright", reason="pages are printed where the group `pdf` is installed")
    monkeypatch.setattr(pdf, "ROOT", tmp_path)
    monkeypatch.setattr(pdf, "HTML", tmp_path / "html")
    monkeypatch.setattr(pdf.chromium, "PATH", "chromium")
    with pytest.raises(SystemExit, match=r"html has no notebooks/77_none: make site first"):
        pdf.main("notebooks/77_none")
    monkeypatch.setattr(pdf.chromium, "PATH", None)
    with pytest.raises(SystemExit, match="apt install chromium"):
        pdf.main()
