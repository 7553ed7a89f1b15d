"""All parts, and the site's page of their claims; `make claims` plants every defect of each."""

import importlib

INTRODUCTION = """# What the tests claim, and what each claim catches

Each defect below, planted in the package, turns red the claims that name it.
A claim is worth what it catches.
"""
PARTS = {
    name: importlib.import_module(f"tests.claims.test_{name}").PART
    for name in (
        "random_features",
        "softmax_kernel",
        "attention",
        "performer",
        "card",
        "near_far",
        "recurrent",
    )
}


def page() -> str:
    """The site's page of the claims, in Markdown."""
    return "\n".join([INTRODUCTION, *(part.render() for part in PARTS.values())])
