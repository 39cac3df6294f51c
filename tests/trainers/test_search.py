"""Searches at evaluation: what they may look at, what they are called, what they cost, and where they are refused."""

from __future__ import annotations

import asyncio
import json
import math
import sys
from pathlib import Path

import pytest

import turnwise
from turnwise.agents.core import History, Reply
from turnwise.agents.evaluation.evaluate import Evaluation, evaluate
from turnwise.agents.log.episode_log import LogReader
from turnwise.agents.policies.registry import make_policy
from turnwise.envs.core import ForkCost
from turnwise.envs.registry import env_class, get_suite, suite_tasks
from turnwise.errors import NotFoundError, RecipeError, TurnwiseError
from turnwise.registry import Component
from turnwise.requirements import BrokenRequirement
from turnwise.tasks.core import Split
from turnwise.trainers.check.search import forks_as_it_declares, keeps_the_budget, sees_no_verdict
from turnwise.trainers.search.core import Searcher, SearchNode, SeenTurn
from turnwise.trainers.search.run import make_search
from turnwise.trainers.search.toy import ToyPolicy, ToyScorer, toy_search, toy_searches


def cheat(searcher_function, **declared) -> Component:
    """A search that is registered nowhere."""
    return Component("search", "cheat", searcher_function, __name__, __file__, needs=("scorer",), **declared)


# --- what a search may look at ----------------------------------------------------------------------


def test_nothing_that_is_shown_holds_what_the_environment_paid() -> None:
    shown: list[SearchNode] = []

    class Looking(ToyScorer):
        async def score(self, searcher, nodes):
            shown.extend(nodes)
            return await super().score(searcher, nodes)

    toy_searches("best_of_n:n=3", budget=400, scorer=Looking())
    words = {
        name
        for one in shown
        for name in (*one.__dataclass_fields__, *(f for t in one.turns for f in t._fields))
    }
    assert words == {"path", "turns", "observation", "over", "tools", "action", "logprobs"}
    assert any(one.over for one in shown)


def test_a_scorer_that_asks_for_the_verdict_and_does_not_say_so_is_refused() -> None:
    class Peeking(ToyScorer):
        async def score(self, searcher: Searcher, nodes):
            return [searcher.verdict(node) for node in nodes]

    with pytest.raises(TurnwiseError, match="no deployment tells"):
        toy_searches("best_of_n:n=3", budget=400, scorer=Peeking())
    Peeking.oracle = True
    try:
        (found,) = toy_searches("best_of_n:n=3", budget=400, scorer=Peeking())
    finally:
        Peeking.oracle = False
    assert found.metrics["search_oracle"] == 1


def test_a_search_that_reads_private_parts_does_not_pass_the_law() -> None:
    async def peek(searcher: Searcher) -> None:
        """Takes the try that the environment paid best, by what it is not shown."""
        for number in range(1, 6):
            node = await searcher.again(number)
            if node is not None and searcher._held[node.path].episode.trajectory.total_reward > 0.9:
                searcher.keep(node)

    with pytest.raises(BrokenRequirement, match="labelled an oracle"):
        sees_no_verdict(cheat(peek))


def test_a_fork_that_is_not_declared_is_refused() -> None:
    async def forking(searcher: Searcher) -> None:
        """Goes back to the beginning and does not say so."""
        await searcher.play_on(searcher.root)

    with pytest.raises(TurnwiseError, match="does not declare it"):
        toy_searches(cheat(forking), budget=400, scorer=ToyScorer())
    with pytest.raises(TurnwiseError, match="does not declare it"):
        forks_as_it_declares(cheat(forking))


def test_a_search_that_never_uses_its_budget_does_not_pass_the_law() -> None:
    async def idle(searcher: Searcher) -> None:
        """Does nothing."""

    with pytest.raises(BrokenRequirement, match="never takes more"):
        keeps_the_budget(cheat(idle))


# --- what it costs -----------------------------------------------------------------------------------


def test_tokens_of_policy_and_scorer_are_counted_and_shown() -> None:
    e = toy_search("self_prm:n=3", budget=1000)
    told = e.metrics
    assert told["search_scorer_tokens"] == 9  # three grades of three tokens
    assert told["search_tokens"] > sum(len(turn.reply.action_ids) for turn in e.trajectory.turns)
    judged = toy_search("turn_beam:children=2", budget=1000, scorer="judge")
    listed = toy_search("turn_beam:children=2", budget=1000, scorer="listed")
    assert listed.metrics["search_scorer_tokens"] < judged.metrics["search_scorer_tokens"]


def test_a_budget_below_one_episode_cuts_it() -> None:
    e = toy_search("mcts", budget=8, scorer=ToyScorer())
    assert e.end is not None
    assert e.end.value == "token_limit"
    assert e.metrics["search_tokens"] - len(e.trajectory.turns[-1].reply.action_ids) < 8


def test_words_count_where_no_tokens_are_told() -> None:
    result = evaluate("shop/quick", "mix:gold=1,random=1", episodes=3, search=make_search("votes", budget=60))
    assert result.search.words
    assert result.search.most_tokens < 60 + 40
    assert result.search.tries > 1


def test_worlds_that_go_back_by_a_replay_have_it_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    free = toy_search("turn_beam:children=2", budget=200, scorer=ToyScorer())
    monkeypatch.setattr(env_class("turnwise/Shop-v0"), "fork_cost", ForkCost.REPLAY)
    dear = toy_search("turn_beam:children=2", budget=200, scorer=ToyScorer())
    assert (free.metrics["search_replayed"], free.trajectory) == (0, dear.trajectory)
    assert dear.metrics["search_replayed"] > 0


def test_a_limit_of_all_tokens_counts_what_was_tried() -> None:
    search = make_search("best_of_n:n=4", budget=10_000, scorer="votes")
    result = evaluate(
        "shop/quick", ToyPolicy(), episodes=40, concurrency=1, search=search, max_total_tokens=600
    )
    assert 0 < result.episodes < 40
    assert "max_total_tokens" in result.stopped
    assert result.said.usage.completion == round(result.search.tokens * result.episodes)


# --- what it is called -------------------------------------------------------------------------------


def test_what_forks_the_test_world_says_so_in_tables_json_and_logs(tmp_path: Path) -> None:
    labels = {}
    for spec, scorer in (
        ("best_of_n:n=2", "votes"),
        ("turn_beam:children=2", "logp"),
        ("best_of_n:n=2", "oracle"),
    ):
        log = tmp_path / f"{spec[:3]}{scorer}.jsonl.zst"
        search = make_search(spec, budget=120, scorer=scorer)
        result = evaluate("shop/quick", ToyPolicy(), episodes=2, search=search, log=log)
        data = json.loads(json.dumps(result.to_json(results=True)))
        again = Evaluation.from_json(data)
        assert again.search == result.search
        assert data["search"]["label"] == search.label
        assert search.label in result.policy
        assert search.label in shown(result)
        labels[spec, scorer] = data["search"]["label"]
        assert {record.policy for record in LogReader(log)} == {result.policy}
        assert turnwise.replay(log).ok
    assert list(labels.values()) == [
        "chooses among whole episodes", "forks the test world", "chooses among whole episodes, oracle",
    ]  # fmt: skip
    assert evaluate("shop/quick", "scripted:gold", episodes=2).to_json()["search"] is None


def shown(result: Evaluation) -> str:
    from io import StringIO

    from rich.console import Console

    from turnwise.agents.evaluation.summary import evaluation_table, evaluations_table

    console = Console(file=StringIO(), width=400)
    console.print(evaluation_table(result))
    console.print(evaluations_table([result, result]))
    return console.file.getvalue()  # pyright: ignore[reportAttributeAccessIssue]


def test_an_address_in_the_policys_name_does_not_hide_the_label() -> None:
    name = make_search("best_of_n", budget=9, scorer="votes").named("openai:m@http://localhost:1/v1")
    assert "chooses among whole episodes" in name.partition("@")[0]


# --- where it is refused -----------------------------------------------------------------------------


class Program(ToyPolicy):
    async def leave(self, history: History, end) -> list[Reply]:
        return []


def test_what_cannot_be_gone_back_to_takes_whole_episodes_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = ("best_of_n:n=2", "votes:n=2", "self_prm:n=2")
    with pytest.raises(TurnwiseError, match=r"(?s)is a program.*best_of_n, votes"):
        toy_searches("mcts", budget=99, scorer=ToyScorer(), policy=Program())
    for spec in whole:
        (e,) = toy_searches(spec, budget=99, scorer="votes", policy=Program())
        assert e.outcome.counts
    with pytest.raises(TurnwiseError, match="several agents"):
        toy_searches("rewind", budget=99, scorer="logp", policy=make_policy("scripted:random"), suite="games/kuhn-self")  # fmt: skip
    monkeypatch.setattr(env_class("turnwise/Shop-v0"), "fork_cost", ForkCost.NONE)
    with pytest.raises(TurnwiseError, match=r"(?s)nobody can go back.*best_of_n"):
        toy_searches("turn_beam", budget=99, scorer=ToyScorer())
    with pytest.raises(TurnwiseError, match="nobody can go back"):
        toy_searches("best_of_n", budget=99, scorer="fork:2")
    assert toy_search("best_of_n:n=2", budget=99, scorer="votes").outcome.counts


@pytest.mark.parametrize(
    ("spec", "scorer", "budget", "said"),
    [
        ("mtcs", "logp", 9, "Did you mean 'mcts'|mcts"),
        ("mcts:childs=2", "logp", 9, "childs"),
        ("mcts:children", "logp", 9, "is no option"),
        ("mcts:children=many", "logp", 9, "children='many'"),
        ("mcts", "", 9, "none is named"),
        ("mcts", "votes", 9, "compares whole episodes"),
        ("mcts", "logq", 9, "logp"),
        ("mcts", "value", 9, "not complete"),
        ("mcts", "value:nowhere", 9, "no checkpoint"),
        ("mcts", "fork:no", 9, "fork:4"),
        ("mcts", "python:nothing", 9, "not complete"),
        ("mcts", "logp", 0, "budget"),
        ("mcts", "logp", math.nan, "budget"),
    ],
)
def test_what_does_not_go_together_is_one_clear_error(
    spec: str, scorer: str, budget: float, said: str
) -> None:
    with pytest.raises((TurnwiseError, NotFoundError, RecipeError), match=said):
        make_search(spec, budget=budget, scorer=scorer)


def test_a_policy_without_log_probabilities_is_not_ranked_by_them() -> None:
    for spec in ("bfs_prover", "best_of_n"):
        with pytest.raises(TurnwiseError, match="no log-probabilities"):
            toy_searches(spec, budget=99, scorer="logp", policy=make_policy("mix:gold=1,random=1"))


# --- the value head ----------------------------------------------------------------------------------


PAID_EARLY = (
    ("rollout: {env_options: {shaping: 0.5}}", "env_options.shaping"),
    ("rollout: {env_options: {shaping: 0.5}}\nreward: [success]", "env_options.shaping"),
    ("reward: [{name: from_signal, signal: principle}]", "reward 'from_signal'"),
    ("reward: [success, {name: milestones, weight: 0.2}]", "reward 'milestones'"),
)
PAID_LAST = (
    "reward: [success]",
    "reward: as_is",
    "reward: [{name: own_probability, signal: principle, weight: 1, format: 0}]",
    "rollout: {env_options: {shaping: 0.5}}\nreward: [{name: weighted, weights: {outcome: 1, progress: 0}}]",
)
"""Of recipes: what pays turns before the last, by which reward, and what pays the last alone."""


@pytest.mark.parametrize("form", ["value", "verifier"])
def test_the_value_of_a_state_is_what_the_run_that_trained_the_head_would_read(
    form: str, tmp_path: Path
) -> None:
    torch = pytest.importorskip("torch")
    sys.path.insert(0, str(Path(__file__).parent))
    from signals_by_hand import measured, signals
    from transformers import AutoTokenizer

    from turnwise.agents.policies.model import ChatFormat, DemonstrationPolicy, make_renderer
    from turnwise.agents.rollout import Request, run_episodes
    from turnwise.trainers.guide.toy import toy_model
    from turnwise.trainers.learn.collate import collate
    from turnwise.trainers.learn.learner import Learner
    from turnwise.trainers.learn.model import load_model
    from turnwise.trainers.learn.options import OptimizerOptions
    from turnwise.trainers.run.checkpoint import save_checkpoint
    from turnwise.trainers.search.value_scorer import ValueScorer

    chat, tokenizer = ChatFormat(tools_format="none"), AutoTokenizer.from_pretrained(toy_model())
    policy = DemonstrationPolicy(make_policy("scripted:gold"), make_renderer(tokenizer, toy_model(), chat))
    (episode,) = run_episodes(
        [Request(next(iter(suite_tasks(get_suite("shop/quick"), Split.TRAIN, 1))), 5)], policy
    )
    value = signals("value", "value", form=form)
    (head,) = value.heads
    layers = head.module.layers if form == "value" else head.module.chance
    with torch.random.fork_rng():
        torch.manual_seed(3)
        torch.nn.init.normal_(layers[3].weight)
    learner = Learner(load_model(toy_model(), torch.device("cpu")), OptimizerOptions(), heads=value.heads)
    wanted = measured(value, learner, collate([[episode]]), context=2048).turns.signals["value"][0].tolist()
    checkpoint = save_checkpoint(tmp_path / "checkpoints", 1, learner, {}, tokenizer, chat, {})
    scorer = ValueScorer(str(checkpoint))
    turns = episode.trajectory.turns
    seen = [SeenTurn(turn.observation, turn.action, ()) for turn in turns]
    states = [SearchNode((0,) * k, tuple(seen[:k]), turn.observation, False) for k, turn in enumerate(turns)]
    over = SearchNode((0,) * len(turns), tuple(seen), episode.trajectory.final, True)
    found = asyncio.run(scorer.score(None, [*states, over]))  # pyright: ignore[reportArgumentType]
    assert len({round(x, 3) for x in wanted}) == len(wanted)
    assert found == pytest.approx([*wanted, wanted[-1]], abs=1e-5)
    assert form == "value" or all(0 < x < 1 for x in found)
    recipe = checkpoint.resolve().parents[1] / "recipe.yaml"
    for said, by in PAID_EARLY:
        recipe.write_text(said)
        with pytest.raises(TurnwiseError, match=rf"{by}.*nearer to its goal"):
            ValueScorer(str(checkpoint))
    for said in PAID_LAST:
        recipe.write_text(said)
        ValueScorer(str(checkpoint))
    recipe.unlink()
    broken = checkpoint / "trainer.safetensors"
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "model").symlink_to(checkpoint / "model")
    from safetensors.torch import load_file, save_file

    save_file(
        {k: v for k, v in load_file(broken).items() if not k.startswith("parameter/1")},
        tmp_path / "other" / "trainer.safetensors",
    )
    with pytest.raises(TurnwiseError, match="no value heads"):
        ValueScorer(str(tmp_path / "other"))
