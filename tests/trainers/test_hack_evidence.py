"""The laws of the hack meter's evidence: how often it is wrong, what it finds, and what it remembers."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Callable
from random import Random

import pytest

pytest.importorskip("torch")

from turnwise.envs.core import EndReason
from turnwise.trainers.core import Group, PartState
from turnwise.trainers.hack_meter.evidence import Capital, upper_bound
from turnwise.trainers.hack_meter.meter import HackMeter, MeterRule, PlantedEpisode, UnearnedTest
from turnwise.trainers.kit.toy_batches import episode

SOLVED, FAILED = EndReason.SOLVED, EndReason.FAILED


def group(paid: list[tuple[float, bool]]) -> Group:
    """Episodes that were paid so much, solved or not."""
    return [episode([x], end=SOLVED if solved else FAILED) for x, solved in paid]


def test_evidence_looked_at_after_every_observation_is_seldom_wrong() -> None:
    """Of 300 runs whose rate is the level itself a share of at most α, and by chance a little more, ever reaches 1/α."""
    wrong = 0
    for run in range(300):
        rng, capital, most = Random(run), Capital(), -math.inf
        for _ in range(150):
            capital = capital.after(float(rng.random() < 0.1), 0.1)
            most = max(most, capital.log)
        wrong += most >= -math.log(0.1)
    assert wrong <= 0.1 * 300 + 2 * math.sqrt(300 * 0.09)
    assert wrong > 0, "a test that is never wrong at α = 0.1 finds nothing either"


def test_evidence_is_a_fair_game() -> None:
    """The expected capital after an observation of the level's mean is the capital before, at every step of a fixed history."""
    capital = Capital()
    for x in (0.0, 1.0, 0.3, 0.0, 1.0, 0.0):
        level = 0.2
        expected = level * math.exp(capital.after(1.0, level).log) + (1 - level) * math.exp(
            capital.after(0.0, level).log
        )
        assert expected == pytest.approx(math.exp(capital.log), rel=1e-12)
        capital = capital.after(x, level)


def test_a_bound_holds_as_often_as_it_says() -> None:
    missed = 0
    for run in range(300):
        rng = Random(run)
        missed += upper_bound([rng.random() ** 3 for _ in range(40)], 0.1) < 0.25
    assert missed <= 0.1 * 300


def misjudged(rng: Random, update: int) -> Group:
    """Success rises to all but for the tenth of tasks that are judged wrongly, so that these alone are left to fail."""
    if rng.random() < 0.1:
        return group([(1.0, False)] * 8)
    solved = [rng.random() < min(1.0, 0.1 + update / 10) for _ in range(8)]
    return group([(1.0 if s else 0.2 * rng.random(), s) for s in solved])


def erring(rng: Random, update: int) -> Group:
    """One episode in ten is judged wrongly, from the first to the last."""
    solved = [rng.random() < 0.4 for _ in range(2)]
    return group([(float(s != (rng.random() < 0.1)), s) for s in solved])


def falling(rng: Random, update: int) -> Group:
    """Success falls from nearly all to nearly nothing, and failures are paid for what they nearly did."""
    solved = [rng.random() < 0.95 - min(0.9, update / 40) for _ in range(8)]
    return group([(1.0 if s else 0.9 * rng.random(), s) for s in solved])


def hacking(rng: Random, update: int) -> Group:
    """From update 20 on more and more of the episodes fool whoever pays."""
    fooled = [rng.random() < max(0.0, (update - 20) / 20) for _ in range(8)]
    solved = [not f and rng.random() < 0.5 for f in fooled]
    return group([(1.0 if s or f else 0.0, s) for s, f in zip(solved, fooled, strict=True)])


@pytest.mark.parametrize(("play", "alarms"), [(misjudged, 0), (erring, 0), (falling, 0), (hacking, 5)])
def test_what_failed_episodes_are_paid_is_an_alarm_only_where_it_changes(
    play: Callable[[Random, int], Group], alarms: int
) -> None:
    found = 0
    for run in range(5):
        rng, meter = Random(run), HackMeter(MeterRule(planted=0.0, reference=16))
        for update in range(40):
            meter.see(update + 1, (), [play(rng, update) for _ in range(8)])
        found += bool(meter.alarms)
    assert found == alarms


def test_success_from_the_start_leaves_all_episodes_to_be_tested() -> None:
    test = UnearnedTest(0.01, 0.01, 16)
    for _ in range(40):
        test.see(group([(1.0, True)] * 8))
    for _ in range(12):
        assert len(test.see(group([(1.0, False)] * 8))) == 8
    assert test.test.capital.log >= test.test.needed


def test_a_meter_that_goes_on_from_a_checkpoint_says_the_same_to_the_last_bit() -> None:
    def planted(rng: Random) -> list[PlantedEpisode]:
        paid = episode([float(rng.random() < 0.3)], end=FAILED)
        return [PlantedEpisode("impossible", "s", paid), PlantedEpisode("canary", "s", paid)]

    rule = MeterRule(reference=8)
    for kill in (1, 3, 9, 12):
        rng, whole, again = Random(kill), HackMeter(rule), HackMeter(rule)
        for update in range(16):
            of_planted, groups = planted(rng), [hacking(rng, update + 12) for _ in range(3)]
            whole.see(update + 1, of_planted, groups)
            again.see(update + 1, of_planted, groups)
            if update == kill:
                saved = json.loads(json.dumps(dict(again.state().numbers), allow_nan=False))
                again = HackMeter(rule)
                again.restore(PartState(saved))
        assert again.state() == whole.state()
        assert again.metrics == whole.metrics
        assert again.alarms == whole.alarms != {}


def canaries(share: float, rng: Random) -> list[PlantedEpisode]:
    """Two planted canaries, whose hack a share of episodes takes."""
    taken = [[{"canary": True}] if rng.random() < share else None for _ in range(2)]
    return [PlantedEpisode("canary", "s", episode([0.0], details=one, end=FAILED)) for one in taken]


def test_taking_canaries_is_an_alarm_only_where_it_becomes_more_than_it_was_at_first() -> None:
    found = {"as at first": 0, "more": 0}
    for run in range(5):
        for name, later in (("as at first", 0.3), ("more", 1.0)):
            rng, meter = Random(run), HackMeter(MeterRule(kinds=("canary",)))
            for update in range(60):
                meter.see(update + 1, canaries(0.3 if update < 20 else later, rng), ())
            found[name] += bool(meter.alarms)
    assert found == {"as at first": 0, "more": 5}


def test_the_tests_of_a_run_share_the_false_alarms_that_are_promised() -> None:
    for rule in (
        MeterRule(alpha=0.06),
        MeterRule(alpha=0.06, kinds=("impossible",)),
        MeterRule(alpha=0.06, planted=0.0),
    ):
        meter = HackMeter(rule)
        spent = 0.0
        for name, test in meter.tests.items():
            bound = 0.0 if name == "impossible" else test.miss / 2  # what is usual may be missed too
            spent += bound + math.exp(-test.needed)
        assert spent == pytest.approx(rule.alpha)


def test_an_alarm_names_test_tasks_episodes_and_update() -> None:
    meter = HackMeter(MeterRule(kinds=("impossible",)))
    paid = dataclasses.replace(episode([0.5], end=FAILED), seed=77)
    for update in range(1, 5):
        meter.see(update, [PlantedEpisode("impossible", "shop/quick", paid)], ())
    said = meter.alarms["impossible"]
    assert f"update {2}" in said
    assert paid.task.id in said
    assert "seed 77" in said
    assert "shop/quick" in said
