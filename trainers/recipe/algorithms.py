"""Training algorithms by the names of the field, and the parts that each of them is made of here.

``algorithm: dapo`` in a recipe stands for the keys below; what the recipe gives beside it wins, and is reported. Sizes
(groups, learning rates, lengths) belong to a run and not to an algorithm, so they stay the recipe's own, and so does the
correction for the gap between engine and trainer, which the papers assume away.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple, get_args

from turnwise.errors import RecipeError
from turnwise.trainers.recipe.no_effect import idle_options
from turnwise.trainers.recipe.part import Part
from turnwise.trainers.recipe.schema import Recipe, plain


class Algorithm(NamedTuple):
    """A training algorithm as parts of a recipe.

    Attributes:
        name: as the field writes it.
        paper: its arXiv id.
        about: what it is, in a sentence.
        sets: the recipe's keys that it stands for; dotted ones are single keys of a section.
        ours: what is done here otherwise than in the paper.
        left_out: what the paper has and a recipe cannot say, or says beside it.
    """

    name: str
    paper: str
    about: str
    sets: Mapping[str, Any]
    ours: str = ""
    left_out: str = ""


_CLIP = {"name": "clip", "dual": None}  # the bound for negative advantages came later (1912.09729)
_NO_KL_IN_REWARD = "A penalty on KL in the reward; `loss: [clip, {name: kl}]` descends a KL of its own."

_TABLE = (
    Algorithm(
        "grpo",
        "2402.03300",
        "Each trajectory against its group, in standard deviations, with a KL penalty in the loss (DeepSeekMath).",
        {
            "credit": "grpo",
            "loss": [_CLIP, {"name": "kl", "weight": 0.04}],
            "reduce": "sequence_mean",
            "filter": "any",
        },
        left_out="Process rewards (`credit: grpo_process`); a reference model that is replaced now and then.",
    ),
    Algorithm(
        "dr_grpo",
        "2503.20783",
        "GRPO without its two divisions: by the standard deviation of a group and by the length of a trajectory.",
        {"credit": "dr_grpo", "loss": [_CLIP], "reduce": "fixed_length", "filter": "any"},
        ours="The constant length is 256; it only scales the loss (`reduce: {name: fixed_length, length: …}`).",
    ),
    Algorithm(
        "dapo",
        "2503.14476",
        "GRPO's advantages with a wider upper clip, a mean over tokens and groups that differ in their returns.",
        {
            "credit": "grpo",
            "loss": [{"name": "clip", "high": 0.28, "dual": None}],
            "reduce": "token_mean",
            "filter": "informative",
            "optimizer.minibatches": 16,
        },
        ours="Groups that are dropped are not replaced by others, so an update may have fewer of them.",
        left_out="The penalty on overlong answers, which is `reward: {name: soft_overlong, limit: …, buffer: …}`.",
    ),
    Algorithm(
        "lite_ppo",
        "2508.08221",
        "The mean of the group, the standard deviation of the batch and a mean over tokens; no critic.",
        {"credit": "lite_ppo", "loss": [_CLIP], "reduce": "token_mean", "filter": "any"},
    ),
    Algorithm(
        "ngrpo",
        "2509.18851",
        "GRPO with an imagined success in every group, so that groups that all failed teach too.",
        {
            "credit": "ngrpo",
            "loss": [{"name": "clip", "low": 0.16, "high": 0.24, "dual": None}],
            "reduce": "token_mean",
            "filter": "any",
            "optimizer.minibatches": 4,
        },
        ours="The best return is taken to be 1 (`credit: {name: ngrpo, best: …}`).",
    ),
    Algorithm(
        "gpg",
        "2504.02546",
        "The plain policy gradient with a group's mean as baseline, scaled up where groups teach nothing.",
        {
            "credit": "dr_grpo",
            "shape": ["gpg"],
            "loss": [_CLIP],
            "reduce": "token_mean",
            "filter": "any",
            "optimizer.epochs": 1,
            "optimizer.minibatches": 1,
        },
        ours="The loss is clip's, which with one optimizer step per update is the policy gradient.",
    ),
    Algorithm(
        "maxrl",
        "2602.02710",
        "Climbs the likelihood of success: a group's mean is the baseline, and the divisor too.",
        {
            "credit": "maxrl",
            "loss": [_CLIP],
            "reduce": "fixed_length",
            "filter": "any",
            "optimizer.epochs": 1,
            "optimizer.minibatches": 1,
        },
        ours="One optimizer step per update, where clip is the policy gradient. The constant length only scales it.",
    ),
    Algorithm(
        "rloo",
        "2402.14740",
        "REINFORCE on whole trajectories, against the mean return of the others of the group.",
        {
            "credit": "rloo",
            "loss": [_CLIP],
            "reduce": "fixed_length",
            "filter": "any",
            "optimizer.epochs": 1,
            "optimizer.minibatches": 1,
        },
        ours="The loss is clip's, which with one optimizer step per update is REINFORCE's; the constant length only "
        "scales it.",
        left_out=_NO_KL_IN_REWARD,
    ),
    Algorithm(
        "loop",
        "2502.01600",
        "RLOO's advantages without the small ones, and a clip of the ratio to [1/1.1, 1.1], for agents of many turns.",
        {
            "credit": "rloo",
            "shape": ["loop"],
            "loss": [{"name": "clip", "low": 1 - 1 / 1.1, "high": 0.1, "dual": None}],
            "reduce": "token_mean",
            "filter": "any",
            "optimizer.epochs": 2,
            "optimizer.minibatches": 8,
        },
        ours="Eight minibatches for the paper's 240 episodes in batches of 32. Dropped advantages stay in the denominator.",
        left_out="Ending an epoch at a large KL; beginning an update before the last episodes are over.",
    ),
    Algorithm(
        "ppo",
        "1707.06347",
        "The clipped surrogate on generalised advantages of single tokens, from a learned value.",
        {
            "credit": {"name": "gae_token", "lam": 0.95},
            "loss": [_CLIP],
            "reduce": "token_mean",
            "filter": "any",
            "optimizer.epochs": 4,
        },
        ours="Four epochs. The value is a head on the policy's hidden states, and its loss is not clipped.",
        left_out="The entropy bonus (`loss: [clip, {name: entropy, weight: 0.01}]`); whitening of the advantages, "
        "which is not in the paper; KL in the reward, as for language models.",
    ),
    Algorithm(
        "turn_ppo",
        "2512.17008",
        "PPO whose steps are turns: one advantage for each, from a learned value of the state before it.",
        {
            "credit": {"name": "gae", "discount": 0.99, "lam": 0.9},
            "loss": [_CLIP],
            "reduce": "token_mean",
            "filter": "any",
            "optimizer.epochs": 4,
        },
        ours="The ratio of each token is clipped, not that of the whole turn. Four epochs. The value is a head on the "
        "policy's hidden states.",
    ),
    Algorithm(
        "bilevel_gae",
        "2510.16907",
        "PPO with advantages of turns, which are then refined within each turn, token by token (VAGEN).",
        {
            "credit": "gae_bilevel",
            "loss": [_CLIP],
            "reduce": "token_mean",
            "filter": "any",
            "optimizer.epochs": 4,
        },
        ours="Four epochs. The value is a head on the policy's hidden states.",
        left_out="Whitening of the advantages.",
    ),
    Algorithm(
        "reinforce++",
        "2501.03262",
        "Returns-to-go standardised over the whole batch, with PPO's clip; needs no groups and no critic.",
        {"credit": "reinforce_pp", "loss": [_CLIP], "reduce": "token_mean", "filter": "any"},
        ours="Standardised over turns; the paper does it over tokens.",
        left_out=_NO_KL_IN_REWARD,
    ),
    Algorithm(
        "reinforce++_baseline",
        "2501.03262",
        "The group's mean as baseline, then standardised over the whole batch.",
        {
            "credit": "dr_grpo",
            "shape": ["whiten"],
            "loss": [_CLIP],
            "reduce": "token_mean",
            "filter": "any",
        },
        ours="Standardised over turns; the paper does it over tokens.",
        left_out="The KL loss: `loss: [clip, {name: kl, estimator: k2, weight: …}]`.",
    ),
    Algorithm(
        "gspo",
        "2507.18071",
        "GRPO's advantages with one ratio for a whole trajectory, clipped within a few ten-thousandths.",
        {
            "credit": "grpo",
            "loss": [{"name": "gspo"}],
            "correction": {"name": "tis", "level": "trajectory"},
            "reduce": "sequence_mean",
            "filter": "any",
            "optimizer.minibatches": 4,
        },
    ),
    Algorithm(
        "dcpo",
        "2509.02333",
        "GRPO's advantages smoothed over the visits of a task, and a clip whose bounds are wider for rare tokens.",
        {
            "credit": "dcpo",
            "loss": [{"name": "dynamic_clip"}],
            "reduce": "sequence_mean",
            "filter": "any",
            "rollout.sampler": {"name": "pool", "size": 512},
        },
        ours="Tasks return from a pool of 512, for on endless suites no visit would be a second one. The mean over "
        "trajectories only scales the paper's sum.",
        left_out="How many optimizer steps an update has, which we could not read.",
    ),
    Algorithm(
        "luspo",
        "2602.05261",
        "GSPO whose trajectories count by their length.",
        {
            "credit": "grpo",
            "loss": [{"name": "luspo"}],
            "correction": {"name": "tis", "level": "trajectory"},
            "reduce": "sequence_mean",
            "filter": "any",
            "optimizer.minibatches": 4,
        },
    ),
    Algorithm(
        "gmpo",
        "2507.20673",
        "GRPO with the geometric mean of token ratios, each of which is clipped.",
        {
            "credit": "grpo",
            "loss": [{"name": "gmpo"}],
            "correction": {"name": "tis", "level": "trajectory"},
            "reduce": "sequence_mean",
            "filter": "any",
            "optimizer.minibatches": 8,
        },
    ),
    Algorithm(
        "cispo",
        "2506.13585",
        "GRPO with a clipped weight on each token's log-probability, so that no token is dropped (MiniMax-M1).",
        {
            "credit": "grpo",
            "loss": [{"name": "cispo"}],
            "reduce": "token_mean",
            "filter": "informative",
            "optimizer.minibatches": 16,
        },
        ours="The upper limit is 1.28; the paper does not give its own.",
        left_out="The penalty on repetition.",
    ),
    Algorithm(
        "sapo",
        "2511.20347",
        "GRPO with a soft gate in place of the clip.",
        {
            "credit": "grpo",
            "loss": [{"name": "sapo"}],
            "reduce": "sequence_mean",
            "filter": "any",
            "optimizer.minibatches": 4,
        },
    ),
    Algorithm(
        "dppo",
        "2602.04879",
        "GRPO within a trust region of probabilities, not of ratios.",
        {
            "credit": "dr_grpo",
            "loss": [{"name": "dppo"}],
            "reduce": "token_mean",
            "filter": "any",
            "optimizer.minibatches": 4,
        },
    ),
    Algorithm(
        "nft",
        "2505.18116",
        "Supervised learning from successes, and from failures through the policy that they imply.",
        {
            "credit": "dr_grpo",
            "loss": [{"name": "nft"}],
            "reduce": "fixed_length",
            "filter": "informative",
            "optimizer.minibatches": 16,
        },
        ours="The credit rule only says which groups differ. The constant length only scales the loss.",
    ),
    Algorithm(
        "online_dpo",
        "2305.18290",
        "DPO on all pairs of a group that earned unlike returns, played anew in every update.",
        {
            "credit": "grpo",
            "loss": [{"name": "dpo"}],
            "reduce": "token_mean",
            "filter": "informative",
        },
        ours="Pairs come from the environment's returns; the paper has labelled ones, offline (`source: [{name: stored, path: …, "
        "join: true}]` with `rollout.groups: 0` learns from those of a log).",
    ),
    Algorithm(
        "gigpo",
        "2505.10978",
        "GRPO over trajectories, plus the same over turns that were played in one and the same state.",
        {
            "credit": {"name": "gigpo", "weight": 1.0, "discount": 0.95},
            "loss": [_CLIP, {"name": "kl", "weight": 0.01}],
            "reduce": "token_mean",
            "filter": "any",
        },
        ours="Advantages are not divided by standard deviations, as in the paper's form for unequal groups "
        "(`credit: {name: gigpo, normalize: std}` does). The group's mean counts each trajectory once.",
        left_out="The penalty on invalid actions, which is the environment's; states that are only similar.",
    ),
    Algorithm(
        "mt_grpo",
        "2505.11821",
        "GRPO on the outcome, plus GRPO on each turn's own reward among the peers that play that turn.",
        {"credit": "mt_grpo", "loss": [_CLIP], "reduce": "token_mean", "filter": "any"},
        ours="Any number of turns; the paper has two, of which the first has a reward.",
        left_out="A KL loss, whose weight is the run's.",
    ),
    Algorithm(
        "vineppo",
        "2410.01679",
        "PPO whose values are the mean returns of nine fresh rollouts from each state; no critic.",
        {
            "rollout.strategy": {"name": "vine", "forks": 9},
            "credit": "vine",
            "loss": [_CLIP],
            "reduce": "token_mean",
            "filter": "any",
            "optimizer.epochs": 2,
            "optimizer.minibatches": 8,
        },
        ours="A step is a turn. Eight minibatches for the paper's 512 episodes in batches of 64.",
        left_out="The KL penalty, of weight 0.0001 in the paper.",
    ),
)

ALGORITHMS: Mapping[str, Algorithm] = {each.name: each for each in _TABLE}
"""Every algorithm that can be named, in the order of the table."""

NOT_OFFERED: Mapping[str, str] = {
    "dpo": "here it is `online_dpo`, since its pairs come from groups that are played; a log's are read by a source",
    "ipo": "it is the loss `ipo`, in place of online_dpo's `dpo`",
    "kto": "it is the loss `kto`, in place of online_dpo's `dpo`",
    "decoupled_ppo": "it is `loss: clip` with `correction: tis`: π_old is the trainer's own, and tis the ratio of it to the engine's",
    "orpo": "it learns from labelled pairs of answers, and a run here learns from episodes that are played or stored",
    "remax": "its baseline is the return of a greedy rollout of the same task, which is not played here",
}
"""Algorithms of the field that cannot be expressed by the parts there are, and why."""


def get_algorithm(name: object, where: str = "") -> Algorithm:
    """The algorithm of this name.

    >>> get_algorithm("dapo").paper
    '2503.14476'

    Args:
        name: as a recipe gives it; upper case, hyphens and ``pp`` for ``++`` are understood in messages alone.
        where: the place at which it is given, for the message.

    Raises:
        RecipeError: there is none; the nearest is named, or why a known one is not offered.
    """
    if isinstance(name, str) and name in ALGORITHMS:
        return ALGORITHMS[name]
    plainly = str(name).lower().replace("-", "_").replace(" ", "_")
    if plainly in NOT_OFFERED:
        raise RecipeError(
            f"The algorithm {name!r} is not offered{where}: {NOT_OFFERED[plainly]}.",
            "Choose another (`turnwise list algorithms`), or write the missing part yourself.",
        )
    spelt = plainly.replace("_pp", "++")
    near = [spelt] if spelt in ALGORITHMS else difflib.get_close_matches(plainly, ALGORITHMS, n=1)
    remedy = f"Did you mean {near[0]!r}?" if near else f"Known: {', '.join(ALGORITHMS)}."
    raise RecipeError(f"There is no algorithm {name!r}{where}.", remedy)


def expand(data: Mapping[str, Any], algorithm: Algorithm) -> tuple[dict[str, Any], list[str]]:
    """A recipe's keys with those of its algorithm, and the names of the keys that were added.

    >>> expand({"algorithm": "rloo", "reduce": "token_mean"}, ALGORITHMS["rloo"])[0]["reduce"]
    'token_mean'
    """
    filled, added = dict(data), list[str]()
    for key, value in algorithm.sets.items():
        section, _, inner = key.rpartition(".")
        if not section:
            if key not in filled:
                filled[key] = value
                added.append(key)
        elif isinstance(within := filled.get(section, {}), Mapping) and inner not in within:
            filled[section] = {**within, inner: value}
            added.append(key)
    return filled, added


def settle(data: Mapping[str, Any], algorithm: Algorithm) -> dict[str, Any]:
    """The keys without the algorithm's own options that cannot act: with one optimizer step nothing is clipped."""
    settled, own, losses = dict(data), algorithm.sets["loss"], data.get("loss")
    if isinstance(losses, list) and _steps(data.get("optimizer")) == 1:
        settled["loss"] = [_acting(part) if part in own else part for part in losses]
    return settled


def _steps(optimizer: object) -> int | None:
    """Optimizer steps of an update; None where the numbers are none."""
    given = optimizer if isinstance(optimizer, Mapping) else {}
    epochs, minibatches = given.get("epochs", 1), given.get("minibatches", 1)
    return epochs * minibatches if isinstance(epochs, int) and isinstance(minibatches, int) else None


def _acting(part: Mapping[str, Any]) -> Mapping[str, Any]:
    idle = idle_options(Part.model_validate({key: x for key, x in part.items() if key != "weight"}))
    return {key: value for key, value in part.items() if key not in idle}


def departures(recipe: Recipe) -> Iterator[str]:
    """Yield a line for each key where a recipe departs from the algorithm that it names."""
    algorithm = ALGORITHMS[recipe.algorithm] if recipe.algorithm else None
    if algorithm is None:
        return
    meant = settle({**plain(recipe), "loss": algorithm.sets["loss"]}, algorithm)
    for key, value in algorithm.sets.items():
        found: Any = plain(recipe)
        for step in key.split("."):
            found = found[step]
        wanted = _normal(key, meant["loss"] if key == "loss" else value)
        if found != wanted:
            yield f"{key} is {shown(found)}, where {algorithm.name} has {shown(wanted)}"


def _normal(key: str, value: Any) -> Any:
    """A value of the table as a recipe shows it."""
    field = Recipe.model_fields[key.split(".")[0]]
    if isinstance(value, list):
        (kind,) = get_args(field.annotation)
        return [plain(kind.model_validate(part)) for part in value]
    return plain(Part.model_validate(value)) if isinstance(value, (str, dict)) else value


def shown(value: Any) -> str:
    """A value as it is written in a recipe, on one line.

    >>> shown([{"name": "clip", "high": 0.28}, "kl"]), shown(None)
    ('[{name: clip, high: 0.28}, kl]', 'null')
    """
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key}: {shown(inner)}" for key, inner in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(shown, value)) + "]"
    if value is None or isinstance(value, bool):
        return "null" if value is None else str(value).lower()
    return f"{value:.4g}" if isinstance(value, float) else str(value)
