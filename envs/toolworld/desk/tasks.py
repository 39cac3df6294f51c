"""Stories of the desk's customers: requests and traps."""

from __future__ import annotations

from turnwise.envs.toolworld.desk.actions import ACTS, POLICY, rules
from turnwise.envs.toolworld.desk.solver import imperfect_call
from turnwise.envs.toolworld.desk.state import COLOURS, DeskOrder, build, orders_of
from turnwise.envs.toolworld.domain import Domain, StoryDraft
from turnwise.envs.toolworld.facts import Fact
from turnwise.envs.toolworld.story import PlanStep, Stage, ask, call, tell


def _enter(draft: StoryDraft) -> bool:
    draft.customer = draft.rng.choice(sorted({order.name for order in draft.db.rows("orders")}))
    draft.facts["name"] = f"{draft.customer} ."
    return True


def _begun(draft: StoryDraft) -> tuple[PlanStep, PlanStep]:
    return ask("name ?", "name"), call("find", name=draft.customer)


def _target(draft: StoryDraft, state: str) -> tuple[str, DeskOrder] | None:
    fit = [pair for pair in orders_of(draft.db, draft.customer) if not state or pair[1].state == state]
    return draft.free(fit, lambda pair: pair[0])


def _change(draft: StoryDraft, state: str) -> Stage | None:
    """A request to cancel or paint an order that is open or sent; at times they then name another open one."""
    found = _target(draft, state)
    if found is None:
        return None
    tree, order = found
    colour = draft.rng.choice([c for c in COLOURS if c != order.colour]) if draft.rng.random() < 0.5 else ""
    say = f"{'paint' if colour else 'cancel'} {order.colour} {order.thing}{f' {colour}' if colour else ''} ."
    if state == "sent":
        return Stage(say, (*_begun(draft), call("deny", order=tree), tell("sorry .")))
    twist, before = "", ()
    other = _target(draft, "open") if draft.changes_mind else None
    if other is not None:
        tree = other[0]
        if colour == other[1].colour:
            return None
        twist = f"no , {other[1].colour} {other[1].thing} ."
        before = (PlanStep("propose", "sure ?"),)
    done = call("paint", order=tree, colour=colour) if colour else call("cancel", order=tree)
    return Stage(
        say, (*_begun(draft), *before, PlanStep("confirm", "sure ?"), done, tell("done .")), twist=twist
    )


def _price(draft: StoryDraft) -> Stage | None:
    found = _target(draft, "")
    if found is None:
        return None
    tree, order = found
    say = f"price of {order.colour} {order.thing} ?"
    plan = (*_begun(draft), call("price", order=tree), tell(f"it is {order.price} ."))
    return Stage(say, plan, (Fact("count", str(order.price)),), again=say)


DOMAIN = Domain(
    name="desk",
    policy=POLICY,
    build=build,
    acts=ACTS,
    requests={"change": lambda draft: _change(draft, "open"), "price": _price},
    traps={"sent": lambda draft: _change(draft, "sent")},
    enter=_enter,
    slots={"name": ("name",)},
    rules=rules,
    compact=True,
    confuse=imperfect_call,
)
