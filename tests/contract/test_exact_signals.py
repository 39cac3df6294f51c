"""What signals are on small processes is said by those that give them, ours or another's."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import exp, log

import pytest

torch = pytest.importorskip("torch")

from torch import Tensor

from turnwise import registry
from turnwise.registry import Component, component, components
from turnwise.trainers.check.signal import is_known_on_processes
from turnwise.trainers.core import ExactProcess, Group, TurnBatch
from turnwise.trainers.credit.rloo import rloo
from turnwise.trainers.lab.exact import Process, expected_update, paths
from turnwise.trainers.lab.processes import CHAIN, GIVERS, PROCESSES, lopsided, made_up, signals
from turnwise.trainers.learn.collate import TrainingBatch
from turnwise.trainers.signal.core import Measured, SignalContext

KNOWN = [entry for kind in GIVERS for entry in components(kind) if entry.exact or entry.stand_in]


@pytest.mark.parametrize("entry", KNOWN, ids=lambda entry: f"{entry.kind}/{entry.name}")
def test_what_it_is_on_a_process_has_the_form_of_what_it_gives(entry: Component) -> None:
    assert is_known_on_processes(entry) in ("exact", "made up")
    assert not (entry.exact and entry.stand_in)


def test_nothing_is_said_twice_or_forgotten() -> None:
    p = paths(CHAIN, lopsided(CHAIN))
    said = [name for entry in KNOWN for hook in (entry.exact, entry.stand_in) if hook for name in hook(p)]
    assert len(said) == len(set(said))
    assert {*said} == signals(p).keys()
    assert {"value", "logp", "tokens", "entropy", "token_logp", "fork_value"} <= signals(p).keys() - made_up()
    assert {"implicit", "wrong", "edge", "past_mean"} <= made_up()


@pytest.mark.parametrize("process", PROCESSES, ids=lambda process: process.name)
def test_what_is_exact_is_so(process: Process) -> None:
    """Each number worked out anew, turn by turn, from the logits and the branches alone."""
    p = paths(process, lopsided(process))
    given = {name: x.tolist() for name, x in signals(p).items()}

    def chances(state: int) -> list[float]:
        powers = [exp(x) for x in p.logits_SA[state].tolist()]
        return [x / sum(powers) for x in powers]

    def value(state: int, left: int) -> float:
        return 0.0 if not left else sum(
            chance * b.probability * (b.reward + (0.0 if b.state is None else value(b.state, left - 1)))
            for action, chance in enumerate(chances(state))
            for b in process.branches[state, action]
        )  # fmt: skip

    for n, row in enumerate(p.mask_NK.tolist()):
        for k, here in enumerate(row):
            state, action = int(p.state_NK[n, k]), int(p.action_NK[n, k])
            q = chances(state)
            wanted = {
                **dict.fromkeys(("value", "token_value", "fork_value"), value(state, process.horizon - k)),
                **dict.fromkeys(("logp", "token_logp"), log(q[action])),
                **dict.fromkeys(("entropy", "token_entropy"), -sum(x * log(x) for x in q)),
                "tokens": 1.0,
            }
            for name, x in wanted.items():
                assert given[name][n][k] == pytest.approx(x if here else 0.0), (name, n, k)


@pytest.fixture
def surprise() -> Iterator[str]:
    """A stranger's signal, with its exact value on a process."""

    def exact(p: ExactProcess) -> dict[str, Tensor]:
        return {"surprise": -p.logp_NK.detach()}

    @component("signal", "surprise", gives=("surprise",), reads=("forward pass",), exact=exact)
    def surprise(see: SignalContext, batch: TrainingBatch, groups: Sequence[Group]) -> Measured:
        """Minus the log-probability of what was said in each turn."""
        raise NotImplementedError

    yield "surprise"
    del registry._components["signal", "surprise"]


def test_a_signal_from_elsewhere_is_exact_in_the_laboratory(surprise: str) -> None:
    """A rule that needs it has the expected step that a sum over all trajectories gives."""

    def rule(batch: TurnBatch) -> Tensor:
        return rloo(batch) + 0.5 * batch.signals[surprise]

    p = paths(CHAIN, lopsided(CHAIN))
    given = signals(p)
    assert surprise not in made_up()
    plain_SA, moved_SA = (expected_update(credit, p, 2, given).mean_SA for credit in (rloo, rule))
    assert torch.allclose(plain_SA, p.policy_gradient())
    by_hand_SA = torch.einsum("n,nk,nksa->sa", p.probability_N.detach(), -p.logp_NK.detach(), p.score_NKSA)
    assert by_hand_SA.abs().max() > 0.1
    assert torch.allclose(moved_SA - plain_SA, 0.5 * by_hand_SA)
