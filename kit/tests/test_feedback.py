"""The links at the foot of a page lead to forms that the repository has."""

from urllib.parse import parse_qs, urlsplit

import jinja2
import pytest
import yaml

from kit import feedback, site
from tools.setting import ROOT

ADDRESS = "https://github.com/someone/some-course"
PAGES = {
    "notebooks/05_orthogonal_features": "lesson 05",
    "notebooks/exercises/a1_errata": "exercises a1",
    "notebooks/projects/p1_a_decoder_that_writes": "project p1",
}


@pytest.mark.parametrize(("docname", "page"), PAGES.items())
def test_a_link_leads_to_a_form_and_fills_in_the_page(docname, page):
    links = feedback.links(docname, ADDRESS)
    assert [*links] == ["Was the time right?", "Report a slip"]
    for said, to in links.items():
        asked = parse_qs(urlsplit(to).query)
        assert to.startswith(f"{ADDRESS}/issues/new?")
        assert asked["page"] == [page]
        form = yaml.safe_load((ROOT / ".github/ISSUE_TEMPLATE" / asked["template"][0]).read_text())
        assert form["name"] == said
        assert form["description"]
        assert "page" in [field["id"] for field in form["body"]]
        assert {field["type"] for field in form["body"]} <= {"input", "textarea"}


def test_minutes_and_what_stopped_one_are_asked():
    form = yaml.safe_load((ROOT / ".github/ISSUE_TEMPLATE/time.yml").read_text())
    assert [field["id"] for field in form["body"]] == ["page", "minutes", "stopped"]


def test_the_template_shows_each_link_and_nothing_where_there_is_none():
    template = jinja2.Template((ROOT / "kit/look/templates/feedback.html").read_text())
    shown = template.render(feedback=feedback.links(next(iter(PAGES)), ADDRESS))
    assert shown.count("<a href=") == 2
    assert "template=time.yml&amp;page=lesson+05" in shown
    assert template.render(feedback={}) == ""


@pytest.mark.parametrize("docname", [*PAGES, "index"])
def test_without_an_address_nothing_is_asked(docname):
    assert feedback.links(docname, None) == {}
    assert "article_footer_items" not in site.options(None)
    assert site.options(ADDRESS)["article_footer_items"] == ["feedback.html"]


@pytest.mark.parametrize(
    "docname",
    [
        *("index", "notebooks/glossary", "notebooks/solutions/a1_errata", "kit/pages/teach"),
        "notebooks/projects/solutions/p1_a_decoder_that_writes",
    ],
)
def test_other_pages_ask_nothing(docname):
    assert feedback.links(docname, ADDRESS) == {}
