"""Cells of a small lesson, as a built notebook has them."""

import nbformat

PICTURE = "aGk="  # in base64


def text(source, *tags):
    return nbformat.v4.new_markdown_cell(source, metadata={"tags": list(tags)})


def prints(said, *tags):
    output = nbformat.v4.new_output("stream", text=said)
    return nbformat.v4.new_code_cell("secret()", outputs=[output], metadata={"tags": list(tags)})


def figure(alt, *tags, caption=""):
    told = {"image/png": {"alt": alt} | ({"caption": caption} if caption else {})}
    data = {"image/png": PICTURE, "text/plain": f"{alt}\n[1] line: 2 points"}
    output = nbformat.v4.new_output("display_data", data=data, metadata=told)
    return nbformat.v4.new_code_cell("draw()", outputs=[output], metadata={"tags": list(tags)})


def notebook(*cells):
    return nbformat.v4.new_notebook(cells=list(cells))
