"""How Sphinx makes the site; called by `python -m kit.site`, which lays out what it reads."""

from docutils import nodes
from myst_nb.core.render import NbElementRenderer

from kit.site import STATIC, Site, alt, options
from tools.setting import repository

REPOSITORY = repository()

project = html_title = "How kernels became linear attention"
author = "The performer_course authors"
language = "en"
extensions = ["myst_nb", "sphinx_copybutton"]
nb_execution_mode = "off"
nb_merge_streams = True
myst_enable_extensions = ["dollarmath", "amsmath"]
myst_heading_anchors = 4

html_theme = "sphinx_book_theme"
html_static_path = [str(STATIC)]
html_css_files = ["course.css"]
html_js_files = [("course.js", {"defer": "defer"})]
html_context = {"default_mode": "auto"}
html_copy_source = html_show_sourcelink = True
html_sourcelink_suffix = ""
html_theme_options = options(REPOSITORY)

# MathJax 3, one file. An empty configuration would be written for version 4.
mathjax_path = "mathjax/tex-svg-full.js"
# Formulas are read as MathML. Tab stops only at those that scroll (course.js), not at all 200.
mathjax3_config = {
    "options": {"menuOptions": {"settings": {"assistiveMml": True, "inTabOrder": False}}}
}


def described(render):
    """`render`, and each figure has its alt text, and all of its description to open below it.

    A figure that has a number shows it, and is a place where a link can end.
    """

    def render_image(self, data):
        found = render(self, data)
        noted = data.output_metadata.get(data.mime_type, {})
        description, figure = noted.get("alt"), noted.get("figure")
        if figure:
            place = f"figure-{figure.replace('.', '-')}"
            found[0]["ids"].append(place)
            found[0]["names"].append(place)
            self.renderer.document.note_explicit_target(found[0])
        if not description:
            return found
        for node in found:
            node["alt"] = alt(description)
        title = f"Figure {figure}" if figure else "The figure"
        summary = f"<summary>{title} in words</summary>"
        opened = nodes.raw("", f"<details class='in-words'>{summary}", format="html")
        closed = nodes.raw("", "</details>", format="html")
        return [*found, opened, nodes.paragraph("", description), closed]

    return render_image


NbElementRenderer.render_image = described(NbElementRenderer.render_image)


def setup(app):
    site = Site(address=REPOSITORY)

    def read(app, docname, source):
        source[0] = site.on_page(source[0], docname)

    app.connect("source-read", read)
    return {"parallel_read_safe": True}
