"""One task under other conditions: told its plan, what it takes, or one question after the other; and what an audit makes of it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from turnwise.agents.core import History, Reply
from turnwise.agents.evaluation.evaluate import evaluate
from turnwise.agents.policies.registry import fingerprint, make_policy
from turnwise.agents.policies.told import CONDITIONS, ConditionedPolicy, solution_from
from turnwise.agents.rollout import Request, run_episodes
from turnwise.envs.messages import Message
from turnwise.envs.registry import get_suite, suite_tasks
from turnwise.errors import TurnwiseError
from turnwise.tasks.core import Split

SUITE = "shop/quick"
TASKS = [*suite_tasks(get_suite(SUITE), Split.TEST, 2)]


def acts(seed: int = 1) -> dict[str, list[str]]:
    """What gold does, by task."""
    played = run_episodes([Request(task, seed) for task in TASKS], make_policy("scripted:gold"))
    return {one.task.id: [turn.action.content for turn in one.trajectory.turns] for one in played}


class Hears:
    """Plays gold but for its second act, which is none, and keeps what it is shown."""

    name, version = "hears", 0

    def __init__(self) -> None:
        self.shown: list[list[str]] = []

    async def act(self, history: History) -> Reply:
        self.shown.append(
            [one.content for one in history.messages() if one.role not in ("system", "assistant")]
        )
        gold = history.env.gold(history.env.state)
        said = "look away" if len(history.turns) == 1 else gold
        return Reply(Message("assistant", said) if isinstance(said, str) else said)

    def close(self) -> None:
        self.shown.append([])


def heard(condition: str) -> tuple[list[list[str]], list[list[str]]]:
    """What was shown at each turn of the first task, and the same as the world said it."""
    hears = Hears()
    policy = ConditionedPolicy("told", hears, CONDITIONS[condition])
    (episode,) = run_episodes([Request(TASKS[0], 1)], policy)
    assert episode.success
    said = [[m.content for m in turn.observation if m.role != "system"] for turn in episode.trajectory.turns]
    assert all(text and "Plan" not in text and "Needed" not in text for texts in said for text in texts)
    return hears.shown, said


@pytest.mark.parametrize("condition", ["plan", "knowledge"])
def test_the_kinds_of_act_of_the_solution_stand_above_the_task(condition: str) -> None:
    verbs = [act.partition("[")[0] for act in acts()[TASKS[0].id]]
    assert len(set(verbs)) < len(verbs) > 2
    shown, said = heard(condition)
    text = {"plan": "Plan : " + " , ".join(verbs), "knowledge": "Needed : " + " , ".join(sorted(set(verbs)))}
    for k, told in enumerate(shown):
        plain = [one for texts in said[: k + 1] for one in texts]
        assert told == [f"{text[condition]}\n\n{plain[0]}", *plain[1:]]


def test_a_chain_asks_before_each_act_what_is_next_from_where_it_stands() -> None:
    verbs = [act.partition("[")[0] for act in acts()[TASKS[0].id]]
    verbs.insert(1, verbs[1])  # after an act that does nothing, the same question again
    shown, said = heard("chain")
    assert len(shown) == len(verbs)
    length = [len(verbs) - 1, *[len(verbs) - 1], *[len(verbs)] * (len(verbs) - 2)]
    for k, told in enumerate(shown):
        asked = [f"Question {j + 1} of {length[j]} : {verbs[j]} ?\n\n{said[j][0]}" for j in range(k + 1)]
        assert told == asked


@pytest.mark.parametrize(("condition", "walks"), [("plan", 1), ("knowledge", 1), ("chain", None)])
def test_the_solution_is_walked_once_or_once_for_each_turn(
    condition: str, walks: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    walked: list[int] = []

    def counted(history: History, acts: Sequence[Message] = ()) -> list[Message | str]:
        walked.append(len(acts))
        return solution_from(history, acts)

    monkeypatch.setattr("turnwise.agents.policies.told.solution_from", counted)
    shown, _ = heard(condition)
    assert len(walked) == (walks or len([texts for texts in shown if texts]))


def test_attempts_that_share_a_task_and_a_seed_are_told_of_their_own_acts() -> None:
    class Wavers(Hears):
        """Its second attempt says nothing at first."""

        async def act(self, history: History) -> Reply:
            reply = await super().act(history)
            first_again = not history.turns and len(self.shown) > 1
            return Reply(Message("assistant", "look away")) if first_again else reply

    wavers = Wavers()
    policy = ConditionedPolicy("told", wavers, CONDITIONS["chain"])
    for _ in range(2):
        run_episodes([Request(TASKS[0], 1)], policy)
    asked = [texts[1].partition(" ?")[0] for texts in wavers.shown if len(texts) == 2]
    assert len(asked) == 2
    assert len(set(asked)) == 2, "after an act that does nothing the solution is one act longer"


def test_texts_by_task_come_from_a_file_and_are_of_the_policys_fingerprint(tmp_path: Path) -> None:
    file = tmp_path / "plans.json"
    file.write_text(json.dumps({TASKS[1].id: "First ask."}))
    policy = make_policy(f"told:{file}=scripted:gold")
    assert isinstance(policy, ConditionedPolicy)
    assert policy.name == "told:plans.json=scripted:gold"
    policy.inner = hears = Hears()
    run_episodes([Request(task, 1) for task in TASKS], policy)
    begins = {texts[0].startswith("First ask.\n\n") for texts in hears.shown}
    assert begins == {True, False}
    before = fingerprint(f"told:{file}=scripted:gold")
    file.write_text(json.dumps({TASKS[1].id: "Ask last."}))
    assert before not in ("", fingerprint(f"told:{file}=scripted:gold"))
    for spec, said in (
        ("told:plan", "not complete"),
        ("told:no/such.json=scripted:gold", "cannot be read"),
        ("told:plan=scripted:golt", "gold"),
    ):
        with pytest.raises(TurnwiseError, match=said):
            make_policy(spec)
    for wrong in ("[]", "{}", '{"a": 1}'):
        file.write_text(wrong)
        with pytest.raises(TurnwiseError, match="no texts by task"):
            make_policy(f"told:{file}=scripted:gold")


def test_it_is_told_where_the_environments_live_in_other_processes_too() -> None:
    found = [
        evaluate(
            SUITE, make_policy("told:chain=scripted:gold"), split=Split.TEST, episodes=2, env_workers=workers
        )
        for workers in (0, 1)
    ]
    assert [one.success for one in found] == [1.0, 1.0]
