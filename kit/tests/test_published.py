"""What a site says and carries once it has an address, and that it says nothing without one."""

import json
import re
import runpy
import tomllib

import pytest

from kit import published
from tests.support.checkout import text
from tools import setting

SITE, REPOSITORY = "https://example.org/course", "https://example.org/us/course"
MARKED = ("README.md", "kit/pages/in_the_browser.md", "kit/pages/in_your_own_model.md")


@pytest.fixture
def addresses(monkeypatch):
    monkeypatch.setenv("SITE", f"{SITE}/")
    monkeypatch.setenv("REPOSITORY", REPOSITORY)


@pytest.mark.parametrize("page", MARKED)
def test_a_page_has_its_marks_and_without_an_address_nothing_in_their_place(page, monkeypatch):
    monkeypatch.setattr(published, "address", lambda of: "")
    marks = published.MARK.findall(text(page))
    assert marks
    assert published.filled(text(page)) == published.MARK.sub("", text(page))


def test_with_addresses_a_reader_can_clone_install_report_and_cite(addresses):
    said = [published.filled(text(page)) for page in MARKED]
    for mark in (
        f"git clone {REPOSITORY} performer_course\n",
        f"({SITE}/performer_course.zip)",
        f"  url    = {{{SITE}}},\n",
        f"({REPOSITORY}/issues)",
        f"`pip install {SITE}/{published.wheel_name()}`",
    ):
        assert sum(mark in page for page in said) == 1, mark


def test_addresses_are_those_of_pyproject_where_make_is_told_none(monkeypatch, tmp_path):
    monkeypatch.delenv("SITE", raising=False)
    (tmp_path / "pyproject.toml").write_text('[project]\n[project.urls]\nSite = "https://a.b/"\n')
    monkeypatch.setattr(setting, "ROOT", tmp_path)
    assert (setting.address("SITE"), setting.address("REPOSITORY")) == ("https://a.b", "")


def test_what_pyproject_names_is_cited():
    urls = tomllib.loads(text("pyproject.toml"))["project"].get("urls", {})
    cited = dict(re.findall(r'(?m)^(url|repository-code): "?(.+?)"?$', text("CITATION.cff")))
    assert cited == {
        key: urls[name]
        for key, name in (("url", "Site"), ("repository-code", "Repository"))
        if name in urls
    }


def test_a_site_with_an_address_offers_wheel_archive_cell_and_list(
    addresses, tmp_path, monkeypatch
):
    lesson = tmp_path / "_sources/notebooks/05_a.ipynb"
    lesson.parent.mkdir(parents=True)
    lesson.write_text(json.dumps({"cells": []}), encoding="utf-8")
    (tmp_path / "index.html").touch()
    (tmp_path / "_static").mkdir()
    (tmp_path / "_static/part.html").touch()
    monkeypatch.setattr(published, "need", lambda group: None)
    monkeypatch.setattr(published, "wheel", lambda folder: (folder / "wheel").touch())
    published.offer(tmp_path)
    (cell,) = json.loads(lesson.read_text(encoding="utf-8"))["cells"]
    assert f"{SITE}/{published.wheel_name()}" in cell["source"]
    assert re.findall("<loc>(.+?)</loc>", (tmp_path / "sitemap.xml").read_text()) == [
        f"{SITE}/index.html"
    ]
    assert (tmp_path / "wheel").exists()
    assert (tmp_path / published.ARCHIVE).stat().st_size > 1_000_000


HOSTS = {"https://github.com": ("github", True), "https://gitlab.example.org": ("gitlab", False)}


@pytest.mark.parametrize("host", [*HOSTS, "https://git.example.org"])
def test_a_repository_may_be_anywhere_and_colab_opens_those_of_github(host, monkeypatch):
    pytest.importorskip("myst_nb")
    monkeypatch.setenv("REPOSITORY", f"{host}/us/course")
    told = runpy.run_path(str(setting.ROOT / "kit/look/conf.py"))["html_theme_options"]
    found = told["repository_provider"], "colab_url" in told["launch_buttons"]
    assert found == HOSTS.get(host, ("github", False))
