"""VeriFree as a recipe is unbiased: over all groups of two that a small policy can play, the mean step is the exact gradient."""

from __future__ import annotations

import asyncio
import dataclasses
import itertools
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from torch import Tensor

from turnwise.agents.core import Episode, Reply
from turnwise.envs.core import EndReason
from turnwise.envs.messages import Message
from turnwise.registry import get_component
from turnwise.trainers.core import Group
from turnwise.trainers.kit.toy_batches import episode
from turnwise.trainers.learn.learner import Learner
from turnwise.trainers.learn.options import OptimizerOptions
from turnwise.trainers.learn.passes import Reader
from turnwise.trainers.recipe.load import check_recipe
from turnwise.trainers.run.parts import build_parts
from turnwise.trainers.run.update import update_policy
from turnwise.trainers.signal import answers, forced
from turnwise.trainers.signal.choose import ChosenSignal
from turnwise.trainers.signal.core import SignalContext, SignalSetup
from turnwise.trainers.signal.measure import Signals
from turnwise.trainers.source import verifree as shown
from turnwise.trainers.source.core import SourceContext

SUITE, PROMPT = "calc/easy", (0, 2)


@dataclasses.dataclass(frozen=True)
class Language:
    """Words of a policy that says two of them, the right answer after its reasoning, and how it is cut."""

    words: Sequence[str]
    answer: tuple[int, ...]
    tag: str
    gold: str

    def decode(self, ids: Sequence[int]) -> str:
        return "".join(self.words[x] for x in ids)


THOUGHTS = Language(("<think>p</think>", "yes", "no"), (2, 0), "", "no")
TAGGED = Language(("<answer", ">yes</answer>", ">no</answer>"), (2,), "<answer", "<answer>no</answer>")  # fmt: skip


def cut(said: Sequence[int], language: Language) -> int | None:
    """How many of the two words are reasoning, told from the words themselves."""
    if not language.tag:
        return int(said[0] < 1) * (1 + (said[1] < 1))
    return max((n + 1 for n, x in enumerate(said) if x == 0), default=None)


def is_read(said: Sequence[int]) -> bool:
    """The environment cannot read an act that ends so."""
    return said[1] != 1


class Kept(Learner):
    """Keeps the gradient of each step, and makes none."""

    steps_: list[Tensor]

    def _descend(self, learning_rate: float) -> float:
        self.steps_.append(torch.cat([x.grad.flatten().clone() for x in self.model.parameters() if x.grad is not None]))  # fmt: skip
        self.model.zero_grad()
        return 1.0


def learner() -> Kept:
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(
        vocab_size=3, hidden_size=16, intermediate_size=16, num_hidden_layers=1, num_attention_heads=1,
        num_key_value_heads=1, max_position_embeddings=16, initializer_range=0.5,
    )  # fmt: skip
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(5)
        model = LlamaForCausalLM(config).eval()
    made = Kept(model, OptimizerOptions(precision="float32", max_grad_norm=1e9))
    made.steps_ = []
    return made


def logp(model: Any, before: Sequence[int], said: Sequence[int]) -> Tensor:
    """log π of some tokens after others, with its gradient."""
    known = model(input_ids=torch.tensor([[*before, *said]])).logits[0].log_softmax(-1)
    return torch.stack([known[len(before) - 1 + n, x] for n, x in enumerate(said)]).sum()


def played(said: tuple[int, ...], model: Any, language: Language) -> Episode:
    reply = Reply(Message("assistant", language.decode(said)), PROMPT, said, (0.0,) * len(said))
    with torch.no_grad():
        reply = reply._replace(logprobs=tuple(logp(model, (*PROMPT, *said[:n]), (x,)).item() for n, x in enumerate(said)))  # fmt: skip
    found = episode([1.0], end=EndReason.FAILED)
    (turn,) = found.trajectory.turns
    turns = (dataclasses.replace(turn, reply=reply, bad_action=not is_read(said)),)
    return dataclasses.replace(found, trajectories={"agent": dataclasses.replace(found.trajectory, turns=turns)})  # fmt: skip


def exact(model: Any, language: Language, *, whole: bool = True) -> Tensor:
    """∇ Σ over all that can be said of its probability, times that of the right answer after its reasoning, which is held fixed in half of it."""
    total = torch.zeros(())
    for said in itertools.product(range(3), repeat=2):
        kept = cut(said, language)
        if kept is not None and is_read(said):
            right = logp(model, (*PROMPT, *said[:kept]), language.answer)
            total = total + (logp(model, PROMPT, said) + (right if whole else right.detach())).exp()
    gradient = torch.autograd.grad(total, [*model.parameters()])
    return torch.cat([x.flatten() for x in gradient])


def expected_step(language: Language, monkeypatch: pytest.MonkeyPatch) -> tuple[Tensor, Tensor]:
    """The mean step of the recipe uphill, over all groups of two, and the exact gradient."""
    made = learner()
    gold = [(Message("assistant", language.gold),)]
    for module in (answers, forced, shown):
        monkeypatch.setattr(module, "solutions", lambda groups, env_options=None: gold * len(groups))
    renderer: Any = SimpleNamespace(
        tokenizer=language,
        opening=(),
        reply_ids=lambda message: language.answer,
        rest_ids=lambda text: language.answer if text == ">no</answer>" else (),
    )
    paid = {"name": "own_probability", "signal": "verifree", "weight": 1, "format": 0, "answered": True}
    source = {"name": "verifree", "loss": ["verifree"], "tag": language.tag}
    recipe = check_recipe(
        {
            "suite": SUITE, "model": {"scratch": {}}, "reward": paid, "credit": "rloo", "filter": "any",
            "signals": [{"name": "verifree", "tag": language.tag}], "loss": ["clip"], "reduce": {"name": "fixed_length", "length": 1},
            "source": [source],
        }
    )  # fmt: skip
    parts, entry = build_parts(recipe), get_component("signal", "verifree")
    none: Any = None
    setup = SignalSetup(
        frozenset({"verifree"}), 16, torch.device("cpu"), 0, Reader(torch.device("cpu"), 1.0, "float32"), 64, none, none, none
    )  # fmt: skip
    signals = Signals([ChosenSignal(entry, {"tag": language.tag})], setup)
    see = SignalContext(frozenset({"verifree"}), made, language, renderer, 16, {})
    every = [*itertools.product(range(3), repeat=2)]
    chance = {said: logp(made.model, PROMPT, said).exp().item() for said in every}
    mean = torch.zeros_like(exact(made.model, language))
    for one, other in itertools.combinations_with_replacement(every, 2):
        groups: list[Group] = [[played(said, made.model, language) for said in (one, other)]]
        held: Any = SourceContext(none, 0, renderer, {}, 0, none, played=groups)
        drawn = [asyncio.run(source.draw(held, 0)) for source in parts.sources]
        made.steps_.clear()
        update_policy(see, signals, parts, groups, seed=0, update=0, drawn=drawn)
        often = 1 if one == other else 2
        if made.steps_:
            (step,) = made.steps_
            mean -= often * chance[one] * chance[other] * step
    return mean, exact(made.model, language)


@pytest.mark.slow
@pytest.mark.parametrize("language", [THOUGHTS, TAGGED], ids=["thoughts", "tag"])
def test_both_halves_are_the_gradient_of_the_chance_of_the_right_answer(
    language: Language, monkeypatch: pytest.MonkeyPatch
) -> None:
    found, wanted = expected_step(language, monkeypatch)
    assert torch.allclose(found, wanted, atol=1e-6 * float(wanted.norm()) + 1e-7, rtol=1e-3)
    reward_alone = exact(learner().model, language, whole=False)
    assert float((reward_alone - wanted).norm() / wanted.norm()) > 0.1
