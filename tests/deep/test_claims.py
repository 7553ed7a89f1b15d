"""Each claim turns red at every defect that it names."""

import pytest

from tests.claims.parts import PARTS


@pytest.mark.parametrize("name", PARTS)
def test_every_planted_defect_turns_its_claims_red(name):
    assert PARTS[name].missed() == []
