"""Each claim turns red at every defect that it names, and CLAIMS.md says which."""

import pytest

from tests.claims.__main__ import PARTS
from tests.claims.harness import PAGE


@pytest.mark.parametrize("name", PARTS)
def test_every_planted_defect_turns_its_claims_red_and_the_page_says_which(name):
    part = PARTS[name]
    caught = part.matrix()
    assert part.missed(caught) == []
    assert part.render(caught) in PAGE.read_text(encoding="utf-8"), (
        "CLAIMS.md is stale: run `make claims`"
    )
