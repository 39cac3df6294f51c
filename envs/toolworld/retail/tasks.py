"""Stories of the shop's customers: requests and refusals of all changes, and what is put together from them."""

from __future__ import annotations

from functools import partial
from typing import get_args

from turnwise.data_file import data_file, text_file
from turnwise.envs.toolworld.alternatives import best, best_and_rest, every
from turnwise.envs.toolworld.domain import Domain, DomainLanguage, Primitive, StoryDraft
from turnwise.envs.toolworld.granting import handed_over, refusals, requests
from turnwise.envs.toolworld.operations import reasons, rules_of
from turnwise.envs.toolworld.retail import conditions, questions, several
from turnwise.envs.toolworld.retail import operations as changes
from turnwise.envs.toolworld.retail.actions import ACTS, HandOver
from turnwise.envs.toolworld.retail.parts import enter, mine
from turnwise.envs.toolworld.retail.state import build
from turnwise.envs.toolworld.story import Stage


def _transfer(draft: StoryDraft) -> Stage:
    order = draft.rng.choice(mine(draft))
    return handed_over(draft, get_args(HandOver), f"order {order.order_id}")


REQUESTS: dict[str, Primitive] = {
    **requests(
        changes.OPERATIONS,
        questions.price, questions.cheapest, questions.count, questions.balance,
        conditions.unsent, conditions.unsent_or_back, conditions.in_stock, conditions.gift_pays, conditions.budget,
        several.clear_all, several.moved_house, several.dearest_back, several.bought_twice, several.pay_like, several.send_like,
    ),
    "status": partial(questions.of_order, known=questions.status_of),
    "total": partial(questions.of_order, known=questions.price_of, things=2),
    "best": lambda draft: best(draft, several.unsent(draft), (changes.CANCEL, *several.WHOLE)),
    "best_and_rest": lambda draft: best_and_rest(draft, several.unsent(draft), changes.CANCEL, (changes.WRAP, changes.ADDRESS)),
    "every": lambda draft: every(draft, several.unsent(draft), (changes.CANCEL, changes.WRAP, changes.ADDRESS)),
    "change_within": partial(conditions.within, operation=changes.CHANGE),
    "exchange_within": partial(conditions.within, operation=changes.EXCHANGE),
    "remove_and": partial(several.same_order, operations=(changes.REMOVE,), it="the rest of that order"),
    "change_and": partial(several.same_order, operations=(changes.CHANGE,), it="that whole order"),
    "two_for_one": partial(several.same_order, operations=several.WHOLE, it="the same order"),
    "two_unsent": partial(several.two_orders, status=("pending", "pending")),
    "two_delivered": partial(several.two_orders, status=("delivered", "delivered")),
    "old_and_new": partial(several.two_orders, status=("delivered", "pending")),
}  # fmt: skip
TRAPS: dict[str, Primitive] = {**refusals(changes.OPERATIONS, changes.SECTIONS), "transfer": _transfer}
DOMAIN = Domain(
    name="retail",
    policy=text_file("turnwise.envs.toolworld.retail", "policy.md").format(
        reasons=reasons(changes.OPERATIONS, changes.SECTIONS)
    ),
    build=build,
    acts=ACTS,
    requests=REQUESTS,
    traps=TRAPS,
    enter=enter,
    rules=rules_of(changes.OPERATIONS),
    tells_cost=True,
    **data_file("turnwise.envs.toolworld.retail", "language", DomainLanguage)._asdict(),
)
