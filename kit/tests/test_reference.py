"""The pages of the package: what becomes of a docstring."""

import inspect

from kit import reference
from performer_course import attention, recurrent
from tools.setting import ROOT


def page(thing):
    return "\n".join(reference.rendered(inspect.getdoc(thing).split("\n")))


def test_arguments_and_labels_begin_a_line_of_their_own():
    said = ["Said: so. Cost: O(L);", "memory, of a chunk: 1.", "q, k: keys.", "Source: a."]
    assert reference.rendered(said)[1::2] == [
        *("Said: so.", "Cost: O(L); memory, of a chunk: 1.", "q, k: keys.", "Source: a."),
    ]


def test_names_are_links_and_other_signs_stay_as_they_are():
    said = page(attention.favor_attention)
    assert r"\ :py:obj:`naive.favor_attention`\ " in said
    assert reference.words("|q'| ≤ b's,\n Σ_{j≤i}") == r"\|q′\| ≤ b's, Σ\_{j≤i}"


def test_an_example_and_a_block_of_formulas_keep_their_lines():
    assert ">>> rows.ravel()\narray([1., 2., 5.])\n" in page(recurrent.recurrence)
    found = reference.rendered(["Said.", "", "    S ← aS,", "    u = v"])
    assert "\n".join(found).startswith("\nSaid.\n\n::\n\n    S ← aS,\n    u = v\n")


def test_the_package_has_a_page_for_each_public_module_in_the_order_of_its_map():
    files = [p.stem for p in (ROOT / "performer_course").glob("[a-z]*.py")] + ["checks"]
    for part in reference.PARTS:
        inside = (ROOT / "performer_course" / part).glob("[a-z]*.py")
        files += [part, *(f"{part}.{path.stem}" for path in inside)]
    pages = reference.pages()
    assert sorted(pages) == sorted(f"{name}.md" for name in ["index", *files])
    listed = pages["index.md"].split("toctree")[1].split()
    assert listed.index("kernels") < listed.index("features") < listed.index("attention")
