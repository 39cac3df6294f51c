"""Imperfect scripted policy: it knows the procedure, and mixes orders up."""

from __future__ import annotations

import json
from collections.abc import Collection
from random import Random

from turnwise.envs.toolworld.database import Database
from turnwise.envs.toolworld.desk.state import line_of, order_of, orders_of
from turnwise.envs.toolworld.story import PlanStep, Stage, call, tell

_KEEPS = 0.35  # how often it denies, whatever it reads


def imperfect_call(
    stage: Stage, db: Database, done: Collection[tuple[str, str]], step: PlanStep, rng: Random
) -> PlanStep | None:
    """Takes any order that shares a word with the one that was meant, and quotes it; denies at whim."""
    read = [json.loads(arguments)["order"] for name, arguments in sorted(done) if name == "price"]
    if step.kind == "tell" and read:
        return tell(f"it is {order_of(db, read[-1]).price} .")
    if step.kind != "call" or step.name == "find":
        return None
    meant = order_of(db, str(step.arguments["order"]))
    like = [
        (tree, order)
        for tree, order in orders_of(db, meant.name)
        if order.colour == meant.colour or order.thing == meant.thing
    ]
    (tree, order), asked = rng.choice(like), stage.say.split()
    if step.name == "price":
        said = call("price", order=tree)
    elif rng.random() < _KEEPS:
        said = call("deny", order=tree)
    elif asked[0] == "paint":
        said = call("paint", order=tree, colour=asked[-2])
    else:
        said = call("cancel", order=tree)
    return said._replace(text=line_of(tree, order))
