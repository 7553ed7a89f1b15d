"""The two tests of every file of claims."""

import pytest

from tools.claims import PAGE, idle, judge, matrix, missed, package, render


def claim_tests(title, claims, mutants):
    """test_claim, for each claim, and the test that every mutant turns a claim red, and every
    claim is turned red by one.

    Call it at the end of the file, when `claims` is full.
    """

    @pytest.mark.parametrize("claim", claims, ids=lambda c: c.__name__)
    def test_claim(claim):
        judge(claim, package())

    def test_every_planted_defect_turns_a_claim_red_and_the_page_says_which():
        caught = matrix(claims, mutants)
        assert missed(mutants, caught) == []
        assert idle(caught) == []
        assert render(title, claims, mutants, caught) in PAGE.read_text(encoding="utf-8"), (
            "CLAIMS.md is stale: run python -m tools.claims"
        )

    return test_claim, test_every_planted_defect_turns_a_claim_red_and_the_page_says_which
