"""Requests of changes: granted, or refused by a rule of the policy; what is beyond the desk is handed over."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial

from turnwise.envs.toolworld.domain import Primitive, StoryDraft
from turnwise.envs.toolworld.facts import Fact
from turnwise.envs.toolworld.operations import Operation, WishedChange, verdict, wish_for
from turnwise.envs.toolworld.story import PlanStep, Stage, call, confirmed, once, tell
from turnwise.envs.toolworld.vocabulary import begun


def sentence(draft: StoryDraft, do: str) -> str:
    """A clause as a sentence of its own."""
    return draft.say("frames", do=do, Do=begun(do))


def _asking(draft: StoryDraft, wish: WishedChange, question: str) -> str:
    """A wish in its own sentence, with what is said beside it and asked after it."""
    return " ".join(filter(None, (sentence(draft, wish.clause(draft)), wish.said, question)))


def _question(draft: StoryDraft, wish: WishedChange) -> str:
    """At times a question for the amount."""
    ways = wish.operation.question
    return draft.words(*ways).format(**wish.fill) if ways and draft.rng.random() < 0.5 else ""


def granted(draft: StoryDraft, operation: Operation) -> Stage | None:
    """A request that can be granted; at times with a change of mind, or a question for the amount."""
    wish = wish_for(draft, operation)
    if wish is None:
        return None
    question = _question(draft, wish)
    say = _asking(draft, wish, question)
    changes = operation.rethink is not None and draft.changes_mind
    final = operation.rethink(draft, wish) if changes and operation.rethink else None
    if final is not None and (final.steps == wish.steps or verdict(draft, final)):
        final = None  # it was drawn as before, or is forbidden
    twist = draft.words(*(way.format(**final.fill) for way in operation.second)) if final else ""
    first = (PlanStep("propose", f"I will {wish.offer}. Shall I proceed?"),) if final else ()
    wish = final or wish
    plan = (
        *operation.desk.verify(draft), *wish.looks, *wish.open, *wish.before, *first,
        *confirmed(wish.offer, wish.call), tell(wish.report),
    )  # fmt: skip
    stage = Stage(say, once(plan), twist=twist, wants=(operation.tool,))
    if not question:
        return stage
    return stage._replace(tells=(Fact(operation.counts, str(abs(wish.amount))),), again=operation.again)


def refused(draft: StoryDraft, operation: Operation, rule: str, *, own: bool = True) -> Stage | None:
    """The same request where a rule forbids it: it is put on record that it was refused, and by which rule."""
    wish = wish_for(draft, operation, rule, own=own)
    if wish is None:
        return None
    say = _asking(draft, wish, _question(draft, wish))
    asks = wish.open if rule in operation.asked_for else ()
    reads = wish.reads if rule in operation.read_for else ()
    plan = (
        *operation.desk.verify(draft), *wish.found, *reads, *asks,
        operation.desk.refuse(wish, rule), tell("Sorry, that is not possible."),
    )  # fmt: skip
    insist = draft.say("insisting") if draft.rng.random() < 0.6 else ""
    return Stage(say, plan, insist=insist, wants=(operation.tool,) if operation.tool else ())


def handed_over(draft: StoryDraft, reasons: Sequence[str], it: str) -> Stage:
    """Return a stage that is handed over to people, at once, for one of the reasons."""
    reason = draft.rng.choice(sorted(reasons))
    say = f"{draft.say(reason)} {draft.say('for people', it=it)}"
    return Stage(say, (call("transfer_to_human", reason=reason),))


def requests(operations: Iterable[Operation], *others: Primitive) -> dict[str, Primitive]:
    """Requests of all changes that can be made, and others by the names of the functions that draw them."""
    found: dict[str, Primitive] = {
        one.name: partial(granted, operation=one) for one in operations if one.tool
    }
    return found | {other.__name__: other for other in others}


def refusals(
    operations: Sequence[Operation],
    sections: Mapping[str, str],
    together: Mapping[str, Sequence[Operation]] = {},
) -> dict[str, Primitive]:
    """Refusals of all changes by all rules of the policy.

    Those of what belongs to somebody else are one kind, and so are those of a rule for the changes that ``together`` has for it.
    """
    shared = {"not_owner": [one for one in operations if "not_owner" in one.may], **together}
    found: dict[str, Primitive] = {
        f"{one.name}_{rule}": partial(refused, operation=one, rule=rule)
        for one in operations for rule in one.may if rule in sections and one not in shared.get(rule, ())
    }  # fmt: skip
    return found | {
        rule: partial(_any_refused, operations=some, rule=rule) for rule, some in shared.items() if some
    }


def _any_refused(draft: StoryDraft, operations: Sequence[Operation], rule: str) -> Stage | None:
    return refused(draft, draft.rng.choice(operations), rule, own=rule != "not_owner")
