"""Requirements of policies: from a spec to messages."""

from __future__ import annotations

import asyncio

from turnwise.agents.core import Outcome, Policy
from turnwise.agents.policies.registry import make_policy, spec_form
from turnwise.agents.rollout import Request, rollout
from turnwise.envs.registry import get_suite, suite_tasks
from turnwise.registry import Component
from turnwise.requirements import NotTested, Requirements, require, says_what_it_is
from turnwise.tasks.core import Split

SUITE = "shop/quick"


def _made(entry: Component) -> Policy:
    if ":" in spec_form(entry):
        raise NotTested(f"What stands after the colon of {spec_form(entry)} is not known.")
    if entry.interactive:
        raise NotTested("It asks somebody.")
    return make_policy(entry.name)


def has_a_spec(entry: Component) -> str:
    """The form of its spec begins with its name."""
    form = spec_form(entry)
    require(form == entry.name or form.startswith(f"{entry.name}:"), f"Its form is {form!r}.")
    return form


def plays(entry: Component) -> str:
    """It plays episodes of a small shop to their end, twice the same with the same seed."""
    policy = _made(entry)
    try:
        requests = [Request(task, 7) for task in suite_tasks(get_suite(SUITE), Split.TRAIN, 4)]
        first, second = (asyncio.run(rollout(requests, policy)) for _ in range(2))
    finally:
        policy.close()
    for episode in first:
        counts = episode.outcome in (Outcome.OK, Outcome.LIMIT)
        require(counts, f"An episode ended as {episode.outcome}: {episode.error}")
    said = [[[str(t.action) for t in e.trajectory.turns] for e in found] for found in (first, second)]
    require(said[0] == said[1], "The same seed does not give the same actions.")
    return f"{sum(map(len, said[0]))} turns"


REQUIREMENTS: dict[str, Requirements] = {
    "policy": {"says what it is": says_what_it_is, "has a spec": has_a_spec, "plays": plays}
}
