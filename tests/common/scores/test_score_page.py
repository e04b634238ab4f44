"""The page of a score tells participants nothing about single answers."""

import pytest

from common.scores import score_page
from common.scores.breakdown import Group, Loss
from common.scores.pair_groups import Breakdown, NamedLoss


@pytest.mark.parametrize("n", [1, score_page.FEW - 1, score_page.FEW])
def test_of_few_answers_only_their_number_is_shown(n: int) -> None:
    group = Group("a group", n, 1, 0.1, 0.1234, (0.0567, 0.2346), 0.6789)
    parts = [Breakdown("By something", [group])]
    losses = [NamedLoss("4711", "", Loss(0, n, n, 0.5))]
    for page, figures in (
        (score_page.breakdowns(parts), ("0.123", "0.679")),
        (score_page.subgroups(parts), ("0.123", "0.057", "0.235", "0.679")),
        (score_page.losses(losses, []), ("4711",)),
        (score_page.losses([], losses), ("4711",)),
    ):
        assert [figure in page for figure in figures] == [n == score_page.FEW] * len(figures)
