"""Kinds of components that can be registered under a name, and the words in which some of them declare themselves."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class ComponentKind(NamedTuple):
    """A kind of components: what it is for, the package in whose modules ours are, and the tests on all of them."""

    about: str
    home: str
    tests: str
    states_bias: bool = False  # each component says what it does to the expected update
    states_slope: bool = False  # each component says its slope in log-probabilities on fresh samples
    is_function: bool = (
        False  # each component is called with what an update holds, so that a class cannot be one
    )


KINDS: Mapping[str, ComponentKind] = {
    "sampler": ComponentKind(
        "Chooses the tasks of each update, and how often each is played.",
        "turnwise.trainers.sampler",
        "turnwise.trainers.check.sampler",
    ),
    "strategy": ComponentKind(
        "Plays the episodes of an update: apart, as trees, or with forks.",
        "turnwise.trainers.strategy",
        "turnwise.trainers.check.groups",
        is_function=True,
    ),
    "guide": ComponentKind(
        "Plays groups again with help.",
        "turnwise.trainers.guide",
        "turnwise.trainers.check.guide",
    ),
    "judge": ComponentKind(
        "Writes what someone else says of the turns into them.",
        "turnwise.trainers.judge",
        "turnwise.trainers.check.groups",
    ),
    "proposer": ComponentKind(
        "Makes further tasks of an update out of what was just played.",
        "turnwise.trainers.proposer",
        "turnwise.trainers.check.proposer",
        is_function=True,
    ),
    "source": ComponentKind(
        "Gives episodes beside those that are played.",
        "turnwise.trainers.source",
        "turnwise.trainers.check.source",
    ),
    "teacher": ComponentKind(
        "Says how likely it finds the sampled tokens, and what it would have said.",
        "turnwise.trainers.teacher",
        "turnwise.trainers.check.teacher",
    ),
    "signal": ComponentKind(
        "Measures or learns something of turns, tokens or trajectories, for the parts that ask for it.",
        "turnwise.trainers.signal",
        "turnwise.trainers.check.signal",
    ),
    "reward": ComponentKind(
        "Replaces the environment's rewards.",
        "turnwise.trainers.reward",
        "turnwise.trainers.check.groups",
        is_function=True,
    ),
    "credit": ComponentKind(
        "Turns rewards into an advantage for each turn.",
        "turnwise.trainers.credit",
        "turnwise.trainers.check.credit",
        True,
        is_function=True,
    ),
    "filter": ComponentKind(
        "Weighs what was played by what it can teach.",
        "turnwise.trainers.filter",
        "turnwise.trainers.check.turns",
        is_function=True,
    ),
    "shape": ComponentKind(
        "Changes the advantages of any credit rule.",
        "turnwise.trainers.shape",
        "turnwise.trainers.check.turns",
        True,
        is_function=True,
    ),
    "correction": ComponentKind(
        "Weighs tokens for the gap between engine and trainer.",
        "turnwise.trainers.correction",
        "turnwise.trainers.check.tokens",
        is_function=True,
    ),
    "loss": ComponentKind(
        "Gives each sampled token its loss, or a whole minibatch.",
        "turnwise.trainers.loss",
        "turnwise.trainers.check.losses",
        states_slope=True,
    ),
    "reduce": ComponentKind(
        "Gives each token its weight in the sum of losses.",
        "turnwise.trainers.reduce",
        "turnwise.trainers.check.tokens",
        True,
        is_function=True,
    ),
    "schedule": ComponentKind(
        "Makes a number of the recipe a function of the update or of a metric.",
        "turnwise.trainers.schedule",
        "turnwise.trainers.check.schedule",
    ),
    "search": ComponentKind(
        "Plays one episode of a task at evaluation by trying more than one, within a budget of tokens.",
        "turnwise.trainers.search",
        "turnwise.trainers.check.search",
        is_function=True,
    ),
    "sink": ComponentKind(
        "Receives the figures of every update of a run.",
        "turnwise.trainers.sink",
        "turnwise.trainers.check.sink",
    ),
    "engine": ComponentKind(
        "Samples tokens from a model.", "turnwise.agents.engines", "turnwise.agents.check.engine"
    ),
    "model": ComponentKind(
        "Gives the weights of a language model a short name.",
        "turnwise.agents.models.named",
        "turnwise.agents.check.model",
    ),
    "policy": ComponentKind(
        "Chooses the messages of an agent.", "turnwise.agents.policies", "turnwise.agents.check.policy"
    ),
    "context": ComponentKind(
        "Chooses what of a long conversation a policy is shown, and when it writes down what it must not forget.",
        "turnwise.agents.contexts",
        "turnwise.agents.check.context",
        is_function=True,
    ),
    "dialect": ComponentKind(
        "Writes tool calls as text, and reads them.",
        "turnwise.tools.dialects",
        "turnwise.tools.check.dialect",
    ),
    "sandbox": ComponentKind(
        "Runs what an agent writes, where it can do no harm.",
        "turnwise.tools.sandbox.backends",
        "turnwise.tools.check.sandbox",
    ),
}
"""Every kind, those of the trainer in the order in which a batch passes them."""

READS = ("tokens", "forward pass", "context", "copy of the policy", "rewards", "outcomes", "gold", "memory")
"""Things that a signal may look at. A signal that reads rewards is measured after them, so that no reward can ask for it."""

PLAYED = "played groups"
"""Input that a source may look at beside its own: what the policy played for the update."""

SLOPES = ("-A", "-c·A", "own")
"""Slopes that a loss may have in the log-probability of a fresh sample: a policy gradient, the same up to a positive
factor of each token, or whatever the loss is made for."""

AIMS = {
    "-A": "the credit rule's, by its policy gradient on fresh samples",
    "-c·A": "the credit rule's, by its policy gradient with a positive factor for each token",
}
"""Aim that a loss of such a slope pursues, unless it says otherwise."""

BIASES = ("unbiased", "biased", "changes the objective")
