"""What printing needs; `make test-kit` reads the PDFs."""

import pytest

from kit import pdf


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
