"""All parts; `make claims` plants every defect of each."""

import importlib

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
