"""Two links at the foot of a lesson, a sheet and a project, to forms of the repository.

The forms lie in .github/ISSUE_TEMPLATE. Without the address of the repository there are no links.
"""

from urllib.parse import urlencode

from kit.site import number
from tools.setting import repository

FORMS = {"Was the time right?": "time.yml", "Report a slip": "slip.yml"}
KINDS = {"exercises": "exercises", "projects": "project"}  # by folder


def links(docname: str, address: str | None) -> dict[str, str]:
    """The words of each link, and the form to which it leads, which knows the page."""
    mark, folder = number(docname), docname.split("/")[-2:-1]
    if not (address and mark) or folder == ["solutions"]:
        return {}
    page = f"{KINDS.get(folder[0], 'lesson')} {mark}"
    return {
        said: f"{address}/issues/new?{urlencode({'template': form, 'page': page})}"
        for said, form in FORMS.items()
    }


def at_foot(app, docname, template, context, doctree):
    """Sphinx's event for a page: the links, which the template feedback.html shows."""
    context["feedback"] = links(docname, repository())
