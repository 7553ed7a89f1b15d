"""The pages of the package: what becomes of a docstring."""

import importlib
import inspect
import re

import pytest

from kit import reference
from performer_course import attention, recurrent
from tools.setting import ROOT

TAKES_TORCH = "pytorch"


class Site:
    """One that links one work, as Markdown."""

    def linked(self, text, here):
        return text.replace("Choromanski et al.", "[Choromanski](../notebooks/references.md#c)")


def public():
    """Each public function and class with arguments, by its name."""
    found = {}
    for room in reference.rooms():
        if room != TAKES_TORCH:
            module = importlib.import_module(f"performer_course.{room}")
            for name, thing in vars(module).items():
                own = getattr(thing, "__module__", "") == module.__name__ and name[0] != "_"
                if own and callable(thing) and reference.signature(thing).parameters:
                    found[f"{room}.{name}"] = thing
    return found


PUBLIC = public()


def page(thing):
    return "\n".join(reference.rendered(Site(), thing, inspect.getdoc(thing).split("\n")))


@pytest.mark.parametrize("name", PUBLIC)
def test_each_argument_has_a_row_with_its_type_and_its_default(name):
    rows = re.findall(r"(?m)^   \* - ``(.+)``$", page(PUBLIC[name]))
    assert rows == list(inspect.signature(PUBLIC[name]).parameters)


def test_an_argument_says_its_shape_its_default_and_what_it_means():
    said = page(attention.favor_attention)
    cells = [re.split(r"\n     - ?", row) for row in said.split("\n   * - ")[2:]]
    cells = {row[0].strip("`"): [cell.partition("\n\n")[0] for cell in row[1:]] for row in cells}
    assert cells["q"] == ["array ``(..., L, d)``", "", ""]
    assert cells["key_mask"][:2] == ["booleans ``(..., S)`` or None", "``None``"]
    assert cells["chunk"][2].startswith("tokens per step;")
    assert "\n\n:Returns: array ``(..., L, e)``\n:Shape: " in said
    assert re.findall(r"(?m)^:(\w.+?): ", said)[2:] == [
        *("Error", "Cost", "Source", "Differs from the paper"),
    ]


def test_names_and_works_are_links_and_other_signs_stay_as_they_are():
    said = page(attention.favor_attention)
    assert r"\ :py:obj:`naive.favor_attention`\ " in said
    assert r"\ `Choromanski <../notebooks/references.html#c>`__\ " in said
    assert reference.words(Site(), "|q'| ≤ b's,\n Σ_{j≤i}") == r"\|q′\| ≤ b's, Σ\_{j≤i}"


def test_an_example_and_a_block_of_formulas_keep_their_lines():
    assert ">>> rows.ravel()\narray([1., 2., 5.])\n" in page(recurrent.recurrence)
    found = reference.rendered(Site(), attention, ["Said.", "", "    S ← aS,", "    u = v"])
    assert "\n".join(found).startswith("\nSaid.\n\n::\n\n    S ← aS,\n    u = v\n")


def test_the_package_has_a_page_for_each_public_module_in_the_order_of_its_map():
    files = [p.stem for p in (ROOT / "performer_course").glob("[a-z]*.py")] + ["checks"]
    pages = reference.pages()
    assert sorted(pages) == sorted(f"{name}.md" for name in ["index", *files])
    listed = pages["index.md"].split("toctree")[1].split()
    assert listed.index("kernels") < listed.index("features") < listed.index("attention")
