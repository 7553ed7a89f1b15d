"""How Sphinx makes the site: `python -m kit.site` calls it after laying out the sources."""

import re
import unicodedata

from docutils import nodes
from myst_nb.core.render import NbElementRenderer
from sphinx import addnodes

from kit import links, reference
from kit.head import in_head, words
from kit.site import BESIDE, MOVES, STATIC, Site, alt
from tools.setting import COURSE, ROOT, address, edition

project = html_title = COURSE
author = "The performer_course authors"
language = "en"
extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.viewcode", "sphinx_copybutton"]
autodoc_member_order = "bysource"
autodoc_mock_imports = ["torch", "transformers"]  # performer_course.pytorch, huggingface
autodoc_typehints_format = "short"
add_module_names = html_use_index = html_domain_indices = False
smartquotes_action = "qD"  # "..." in a shape is not an ellipsis
nb_execution_mode = "off"
nb_merge_streams = True
nb_code_prompt_show, nb_code_prompt_hide = "Show the code", "Hide the code"
myst_enable_extensions = ["dollarmath", "amsmath"]
myst_heading_anchors = 4

html_theme = "sphinx_book_theme"
html_static_path = [str(STATIC)]
templates_path = ["templates"]
html_css_files = ["letters/fonts.css", "course.css"]
html_js_files = [("course.js", {"defer": "defer"})]
html_favicon = "static/favicon.svg"
html_context = {
    "default_mode": "auto",
    "edit_page_provider_name": "GitHub",
    "edit_page_url_template": f"{address('REPOSITORY')}/edit/main/"
    "{{ {'index.md': 'README.md'}.get(file_name, file_name) }}",
}
html_search_scorer = str(ROOT / "kit/look/scorer.js")
html_copy_source = html_show_sourcelink = True
html_sourcelink_suffix = ""
html_theme_options = {
    "collapse_navbar": True,  # pages below a page are listed only on that page
    "extra_footer": f"{edition()} · code: BSD 3-Clause, prose and figures: CC BY 4.0",
    "home_page_in_toc": True,
    "navbar_persistent": [],  # the book theme has its own search button
    "show_navbar_depth": 1,
    "use_fullscreen_button": False,
}
html_baseurl = f"{address('SITE')}/".removeprefix("/")
if address("REPOSITORY"):
    launch = {"binderhub_url": "https://mybinder.org", "notebook_interface": "jupyterlab"}
    if "github.com" in address("REPOSITORY"):  # Colab opens the notebooks of no other place
        launch["colab_url"] = "https://colab.research.google.com"
    html_theme_options |= {
        "launch_buttons": launch,
        "repository_branch": "main",
        "repository_provider": "gitlab" if "gitlab" in address("REPOSITORY") else "github",
        "repository_url": address("REPOSITORY"),
        "use_edit_page_button": True,
        "use_issues_button": True,
        "use_repository_button": True,
    }

mathjax_path = "mathjax/formulas.js"
mathjax3_config = {"chtml": {"matchFontHeight": False, "scale": 1.1}}  # in any font


def described(render):
    """`render`, with an alt text for each figure, and below it the whole description to open.

    A figure that has a number shows it, and links can lead to it. Its box has the width at which it
    is drawn, because on a phone it must not become so small that its letters cannot be read.
    """

    def raw(said):
        return nodes.raw("", said, format="html")

    def render_image(self, data):
        found = render(self, data)
        noted = data.output_metadata.get(data.mime_type, {})
        description, figure = noted.get("alt"), noted.get("figure")
        if figure:
            place = f"figure-{figure.replace('.', '-')}"
            found[0]["ids"].append(place)
            found[0]["names"].append(place)
            self.renderer.document.note_explicit_target(found[0])
        if description:
            found[0]["alt"] = alt(description)
        if width := noted.get("width"):
            box = f"<div class='output drawn' style='--drawn: {width}px'>"
            found = [raw(box), *found, raw("</div>")]
        if caption := noted.get("caption"):
            line = nodes.paragraph(classes=["figure-caption"])
            line += nodes.strong("", f"Figure {figure}. " if figure else "")
            line += nodes.Text(caption.replace("$", ""))
            found.append(line)
        if not description:
            return found
        title = f"Figure {figure}" if figure else "The figure"
        opened = raw(f"<details class='in-words'><summary>{title} in words</summary>")
        words = nodes.paragraph("", description)
        return [*found, opened, words, raw("</details>")]

    return render_image


NbElementRenderer.render_image = described(NbElementRenderer.render_image)


def without_accents(text):
    """The words of a text that have an accent, as one types them: Nyström as nystrom."""
    words = set(re.findall(r"[a-zA-Z]*[À-ž][a-zA-ZÀ-ž]*", text))
    return {"".join(c for c in unicodedata.normalize("NFD", word) if c.isascii()) for word in words}


def findable(app, doctree):
    """Give a page its keywords, for the search whole and as single words. The line of links below a
    title gets a class, and also a table of lessons, or of questions with their lessons, whose rows
    are cards on a phone."""
    names = words(app.env.docname)
    if names:
        entries = [("single", name, "", "main", None) for name in names]
        single = {*re.findall(r"\w+", " ".join(names)), *without_accents(doctree.astext())}
        doctree.insert(0, addnodes.index(entries=entries))
        doctree.insert(0, nodes.meta(name="keywords", content=", ".join(sorted(single))))
    for line in doctree.findall(nodes.paragraph):
        if line.astext().startswith((BESIDE, MOVES)):
            line["classes"].append("beside")
    for table in doctree.findall(nodes.table):
        row = [cell.astext() for cell in next(table.findall(nodes.row))]
        if row[0] == "lesson" or (row[0], row[-1]) == ("row", "lessons"):
            table["classes"] += ["cards", *["asks"] * (row[-1] == "lessons")]


def setup(app):
    site = Site()

    def read(app, docname, source):
        source[0] = site.on_page(source[0], docname)

    app.connect("source-read", read)
    app.connect("doctree-read", findable)
    app.connect("html-page-context", in_head)
    links.connect(app, site)
    reference.connect(app)
    return {"parallel_read_safe": True}
