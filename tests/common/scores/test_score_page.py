"""The page of a score tells participants nothing about single answers."""

import pytest

from common.scores import score_page
from common.scores.breakdown import Group, Loss
from common.scores.pair_groups import Breakdown, NamedLoss


@pytest.mark.parametrize("n", [1, score_page.FEW - 1, score_page.FEW])
def test_of_few_answers_only_their_number_is_shown(n: int) -> None:
    group = Group("a group", n, 1, 0.1, 0.1234, (0.0567, 0.2345), 0.6789)
    losses = [NamedLoss("4711", "", Loss(0, n, n, 0.5))]
    parts = [Breakdown("By something", [group])]
    is_shown = n == score_page.FEW
    for page in (score_page.breakdowns(parts), score_page.subgroups(parts)):
        assert "a group" in page
        for figure in ("0.123", "0.057", "0.235", "0.679"):
            assert not (figure in page and not is_shown)
    assert ("0.123" in score_page.breakdowns(parts)) == is_shown
    assert ("4711" in score_page.losses(losses, [])) == is_shown
    assert ("4711" in score_page.losses([], losses)) == is_shown
