"""The expected update under stale policies, by enumeration: what is exact, what is not, and that the page says so."""

from __future__ import annotations

import itertools
import re
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from turnwise.registry import get_component
from turnwise.trainers.lab.exact import Process, compare, expected_update
from turnwise.trainers.lab.processes import PROCESSES, signals
from turnwise.trainers.lab.staleness import (
    CORRECTIONS,
    MORE,
    MOST,
    Enumerated,
    Versions,
    rules,
    versions,
    worst,
)

NONE, TOKEN, TRAJECTORY, WHOLE = CORRECTIONS
UNCUT = next(one for one in MORE if one.title == "tis, token, never cut")
EXACT = ("rloo", "return_to_go")


@pytest.fixture(scope="module")
def given() -> list[Versions]:
    return [versions(process) for process in PROCESSES]


def enumerated(given: list[Versions], name: str) -> list[Enumerated]:
    return [Enumerated(get_component("credit", name), each) for each in given]


def test_without_staleness_it_is_the_update_of_the_rule(given: list[Versions]) -> None:
    for name in ("grpo", "gae"):
        for rule, each in zip(enumerated(given, name), given, strict=True):
            p = each.p
            plain = expected_update(get_component("credit", name).build({}), p, 3, signals(p))
            found = rule.under(each.behaviour(0), NONE.build())
            assert found.variance == pytest.approx(plain.variance)
            for one in MORE:
                assert rule.under(each.behaviour(0), one.build()).bias == pytest.approx(found.bias)


@pytest.mark.parametrize("in_flight", [False, True])
@pytest.mark.parametrize("name", EXACT)
def test_the_whole_ratio_is_exact_and_that_of_tokens_is_not(
    given: list[Versions], name: str, in_flight: bool
) -> None:
    found = enumerated(given, name)
    for staleness in range(1, MOST + 1):
        assert worst(found, given, staleness, WHOLE, in_flight=in_flight) < 1e-4
        for one in (NONE, TOKEN, UNCUT):
            assert worst(found, given, staleness, one, in_flight=in_flight) > 1


def test_the_ratio_of_tokens_corrects_actions_where_every_state_is_met_alike() -> None:
    """In a process of one turn there is nothing but actions, so that it is exact there unless it cuts."""
    ends = {
        (state, action): tuple(branch._replace(state=None) for branch in branches)
        for (state, action), branches in PROCESSES[0].branches.items()
        if state == 0
    }
    process = Process("one turn", ends, 1)
    each = versions(process)
    rule = Enumerated(get_component("credit", "rloo"), each)
    for staleness in range(1, MOST + 1):
        assert rule.under(each.behaviour(staleness), UNCUT.build()).bias.degrees < 1e-4


def test_the_enumeration_is_that_of_every_ordered_draw(given: list[Versions]) -> None:
    """Groups drawn one by one from the older policy, with the weights written out by hand."""
    each = given[0]
    p = each.p
    stale_NK = each.behaviour(2)
    drawn_N = p.chance_N * stale_NK.sum(-1).exp()
    assert drawn_N.sum().item() == pytest.approx(1.0)
    total = torch.zeros_like(p.logits_SA)
    for group in itertools.product(range(len(drawn_N)), repeat=3):
        returns = p.return_N[[*group]]
        for i, n in enumerate(group):
            advantage = returns[i] - (returns.sum() - returns[i]) / 2
            for k in range(p.mask_NK.shape[1]):
                if p.mask_NK[n, k]:
                    ratio = min(2.0, (p.logp_NK[n, k] - stale_NK[n, k]).exp().item())
                    chance = drawn_N[[*group]].prod()
                    total = total + chance * ratio * advantage * p.score_NKSA[n, k] / 3
    rule = Enumerated(get_component("credit", "rloo"), each)
    found = rule.under(stale_NK, TOKEN.build()).bias
    assert found == pytest.approx(compare(total.detach(), p.policy_gradient()))


def test_fresher_later_turns_do_less_harm(given: list[Versions]) -> None:
    found = enumerated(given, "rloo")
    for one in (NONE, TOKEN):
        assert worst(found, given, 1, one, in_flight=True) < worst(found, given, 1, one, in_flight=False)


def test_the_page_has_the_figures_of_today(given: list[Versions]) -> None:
    page = (Path(__file__).parents[2] / "docs" / "staleness.md").read_text()
    assert {entry.name for entry in rules()} <= set(re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE)), (
        "write it anew: python -m turnwise.trainers.lab.staleness > docs/staleness.md"
    )
    row = next(line for line in page.splitlines() if line.startswith("| `rloo` |"))
    found = enumerated(given, "rloo")
    own = [worst(found, given, s, one, in_flight=False) for one in CORRECTIONS for s in range(1, MOST + 1)]
    assert [float(cell) for cell in row.split("|")[3:-1]] == pytest.approx(own, abs=0.06)
