"""The learning half of an update, on episodes made by hand."""

from __future__ import annotations

from turnwise.trainers.kit.toy_batches import episode
from turnwise.trainers.recipe.load import check_recipe
from turnwise.trainers.run.collect import describe, split_by_agent
from turnwise.trainers.run.parts import build_parts
from turnwise.trainers.run.update import UpdateResult
from turnwise.trainers.strategy.runner import Cost


def test_the_share_of_informative_groups_counts_each_group_by_its_own_members() -> None:
    sizes, weights = [3, 1, 2, 3, 2], [1.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.5, 1.0, 1.0]
    groups = [[episode([1.0]) for _ in range(size)] for size in sizes]
    played = split_by_agent(
        build_parts(check_recipe({"suite": "shop/easy", "model": {"scratch": {}}})), groups, Cost()
    )
    result = UpdateResult(groups, weights)
    assert result.kept == [True, False, False, True, True]
    assert describe(played, result)["informative"] == 3 / 5
    assert UpdateResult([[]], []).kept == [False]
