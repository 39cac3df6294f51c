"""The parts of a recipe, built: the functions that an update passes its batch through."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import NamedTuple

from turnwise.trainers.core import Credit, Filter, Judge, Shape, Stateful
from turnwise.trainers.guide.core import Guide
from turnwise.trainers.kit.payer import Payer
from turnwise.trainers.kit.purse import JudgePurse, PurseLimits
from turnwise.trainers.learn.objective import LossTerm, Objective, SourceTerms, WholeTerm
from turnwise.trainers.proposer.core import Proposer
from turnwise.trainers.recipe.levels import level_of_correction
from turnwise.trainers.recipe.part import (
    GuidePart,
    LossPart,
    Part,
    SourcePart,
    made,
    needs_of,
    payer_of,
)
from turnwise.trainers.recipe.schema import JudgePart, Recipe
from turnwise.trainers.source.core import Source, SourceContext, SourceDraw
from turnwise.trainers.source.held_out import HeldOut
from turnwise.trainers.strategy.runner import Strategy


class RunningSource(NamedTuple):
    """A source of a recipe.

    Attributes:
        name: of the source.
        source: gives its episodes.
        weight: of its tokens.
        objective: of those that are shown.
        corrects: whether it has a correction of its own, for which log-probabilities must be known.
        held_out: tasks that it may not learn from.
    """

    name: str
    source: Source
    weight: float
    objective: Objective
    corrects: bool = False
    held_out: HeldOut | None = None

    async def draw(self, see: SourceContext, update: int) -> SourceDraw:
        """Draw what the source gives for an update.

        Raises:
            RunError: it would learn from a task on which the run is evaluated.
        """
        return await self.source(dataclasses.replace(see, held_out=self.held_out), update)


class RunningProposer(NamedTuple):
    """A proposer of a recipe: its name, what it makes tasks by, and those that it may not make."""

    name: str
    proposer: Proposer
    held_out: HeldOut | None = None


class Parts(NamedTuple):
    """Functions with their options fixed.

    Attributes:
        guides: play with help, one after the other.
        guided_by: their names.
        shared_turns: several episodes may hold one and the same sampled turn, since a guide says so.
        judges: say of turns what they find, one after the other.
        judged_by: their names.
        purses: what each of them used.
        proposers: make further tasks of what was played, one after the other.
        paid_signals: the signals that the reward pays for.
        whole_groups: a group that lost an episode to a failure is dropped; else the others are trained on.
    """

    strategy: Strategy
    judges: Sequence[Judge]
    reward: Payer
    credit: Credit
    filter: Filter
    shapes: Sequence[Shape]
    objective: Objective
    guides: Sequence[Guide] = ()
    guided_by: Sequence[str] = ()
    shared_turns: bool = False
    judged_by: Sequence[str] = ()
    purses: Sequence[JudgePurse] = ()
    proposers: Sequence[RunningProposer] = ()
    sources: Sequence[RunningSource] = ()
    paid_signals: frozenset[str] = frozenset()
    whole_groups: bool = False

    @property
    def stateful(self) -> dict[str, Stateful]:
        """Those that remember, by KIND/NAME; a guide or a judge that is named again has its number behind it."""
        guides = _numbered("guide", self.guided_by, self.guides)
        judges = _numbered("judge", self.judged_by, self.judges)
        purses = _numbered("purse", self.judged_by, self.purses) if self.purses else {}
        limited = {name: one for name, one in purses.items() if any(getattr(one, "limits", ()))}
        terms = {f"loss/{term.name}": term.loss for term in self.objective.whole}
        sources = {f"source/{source.name}": source.source for source in self.sources}
        shown = {
            f"source/{source.name}/loss/{term.name}": term.loss
            for source in self.sources
            for term in source.objective.whole
        }
        every = {**guides, **judges, **limited, **terms, **sources, **shown}
        return {name: part for name, part in every.items() if isinstance(part, Stateful)}

    def remembering(self, before: Parts) -> Parts:
        """These parts, with what the same ones remembered before."""
        known = before.stateful
        for name, part in self.stateful.items():
            part.restore(known[name].state())
        return self


def _numbered(kind: str, names: Sequence[str], parts: Sequence[object]) -> dict[str, object]:
    again = [names[:n].count(name) for n, name in enumerate(names)]
    return {
        f"{kind}/{name}{f'/{n + 1}' if n else ''}": part
        for name, n, part in zip(names, again, parts, strict=True)
    }


def build_parts(recipe: Recipe) -> Parts:
    """Build every part that a recipe names.

    Raises:
        RecipeError: an option does not fit.
    """
    held_out = HeldOut(tuple(recipe.suites), recipe.evaluate.dev, recipe.evaluate.test)
    foreign = {
        f"{kind}/{part.name}": _foreign(part, recipe.loss, recipe.correction)
        for kind, several in (("guide", recipe.guide), ("source", recipe.source))
        for part in several
    }
    objective = Objective(
        _terms(recipe.loss),
        recipe.reduce.build("reduce"),
        recipe.correction.build("correction"),
        reference="reference" in recipe.needs,
        whole=_whole_terms(recipe.loss),
        signals=_needs([*recipe.loss, *recipe.foreign_losses]),
        by_source=foreign,
    )
    return Parts(
        strategy=recipe.rollout.strategy.build("strategy"),
        judges=[made(part, "judge") for part in recipe.judge],
        reward=payer_of(recipe.reward),
        credit=recipe.credit.build("credit"),
        filter=recipe.filter.build("filter"),
        shapes=[part.build("shape") for part in recipe.shape],
        objective=objective,
        guides=[part.make() for part in recipe.guide],
        guided_by=[part.name for part in recipe.guide],
        shared_turns=any(part.component("guide").shared_turns for part in recipe.guide),
        judged_by=[part.name for part in recipe.judge],
        purses=[JudgePurse(part.name, _limits(part)) for part in recipe.judge],
        proposers=[RunningProposer(part.name, part.build("proposer"), held_out) for part in recipe.proposer],
        sources=[_source(part, recipe.reduce, held_out) for part in recipe.source],
        paid_signals=needs_of(recipe.reward, "reward"),
        whole_groups=recipe.whole_groups,
    )


def _limits(part: JudgePart) -> PurseLimits:
    return PurseLimits() if part.budget is None else PurseLimits(**part.budget.model_dump())


def _source(part: SourcePart, reduce: Part, held_out: HeldOut) -> RunningSource:
    losses = part.loss or [LossPart(name="nll")]
    needs = _needs(losses)
    shown = Objective(
        _terms(losses, part.weight),
        reduce.build("reduce"),
        (part.correction or Part(name="none")).build("correction"),
        reference="reference" in needs,
        whole=_whole_terms(losses, part.weight),
        signals=needs,
    )
    corrects = (
        part.correction is not None and level_of_correction(part.correction.build("correction")) is not None
    )
    return RunningSource(part.name, part.make(), part.weight, shown, corrects, held_out)


def _terms(losses: Sequence[LossPart], weight: float = 1.0) -> list[LossTerm]:
    return [LossTerm(part.name, part.make(), part.weight * weight) for part in losses if not part.whole]


def _whole_terms(losses: Sequence[LossPart], weight: float = 1.0) -> list[WholeTerm]:
    return [WholeTerm(part.name, part.make(), part.weight * weight) for part in losses if part.whole]


def _needs(losses: Sequence[LossPart]) -> frozenset[str]:
    return frozenset[str]().union(*(part.needs("loss") for part in losses))


def _foreign(part: GuidePart, losses: Sequence[LossPart], correction: Part) -> SourceTerms:
    """Build what tokens of a guide or a source are learned by that join what was played; the recipe's own unless it has others."""
    weight = part.weight if isinstance(part, SourcePart) else 1.0
    given = part.correction or (Part(name="none") if isinstance(part, SourcePart) else correction)
    return SourceTerms(_terms(part.loss or losses, weight), given.build("correction"))
