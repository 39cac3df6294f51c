"""Scripted shoppers without a model, which a suite that asks for reading must defeat.

Both see only what pages say. ``first`` buys the first thing it finds. ``scan`` compares words: it opens results, reads
their pages and buys what has most of the words that were asked for. Each is a plan made from the start page, because a
script has no memory of its own.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Iterator

from turnwise.envs.shop.actions import clickables, do_click, do_search, labels
from turnwise.envs.shop.index import asked_words, words_of
from turnwise.envs.shop.render import render
from turnwise.envs.shop.state import Page, ShopState
from turnwise.envs.shop.tasks import world_of
from turnwise.tasks.core import Task

_DOLLARS = re.compile(r"\$\s?(\d+(?:\.\d+)?)|(\d+(?:\.\d+)?) dollars")
_READ = ("features", "specification")
"""Sub-pages that the scan reads where there are such."""


def first(start: ShopState, turns: int) -> tuple[str, ...]:
    """Search for the request, open the first result, choose options whose names it contains, buy."""
    asked = asked_words(start.world.task.prompt)
    state, wanted = do_search(start, asked), {*asked.split()}
    found = state.visible[:1]
    return (f"search[{state.query}]", *(step for item in found for step in _purchase(state, item, wanted)))


def scan(start: ShopState, turns: int) -> tuple[str, ...]:
    """Open results in their order, read them as far as ``turns`` allow, buy the one with most words of the request.

    A product with all of the words is bought at once; one that costs more than the request's largest price is left.
    """
    asked = asked_words(start.world.task.prompt)
    here, wanted = do_search(start, asked), {*asked.split()}
    done = [f"search[{here.query}]"]
    most, best = -1, done
    for page, item in _candidates(here, wanted):
        way = [_turn(page)] * (page.number - here.number)
        look, seen = _look(page, item)
        again = [done[0], *[_turn(page)] * (page.number - 1), *_purchase(page, item, wanted)]
        if len(done) + len(way) + len(look) + max(len(again), len(best)) > turns:
            break
        done, here = [*done, *way, *look], page
        found = len(wanted & {*words_of(seen)})
        if found > most:
            most, best = found, again
        if found == len(wanted):
            break
    return (*done, *best) if most >= 0 else (*done,)


def _turn(page: ShopState) -> str:
    return f"click[{page.world.layout.buttons.next}]"


SCRIPTS = {"first": first, "scan": scan}


@functools.lru_cache(maxsize=1024)
def planned(script: str, written: str, turns: int) -> tuple[str, ...]:
    """The plan of a script for a task, given as JSON."""
    return SCRIPTS[script](ShopState(world_of(Task.from_json(json.loads(written)))), turns)


def _candidates(state: ShopState, wanted: set[str]) -> Iterator[tuple[ShopState, int]]:
    """Results that are not too dear, page by page, those with the best titles first."""
    product = state.world.catalogue.product
    prices = [float(one or other) for one, other in _DOLLARS.findall(state.world.task.prompt)]
    most = max(prices, default=float("inf"))
    while state.visible:
        titles = {item: product(item).title for item in state.visible if product(item).price <= most}
        for item in sorted(titles, key=lambda item: -len(wanted & {*words_of(titles[item])})):
            yield state, item
        state = state._replace(number=state.number + 1)


def _look(page: ShopState, item: int) -> tuple[list[str], str]:
    """Return the steps that read an item and come back, and the text that there is to read."""
    label = labels(page, page.visible)[page.visible.index(item)]
    opened = page._replace(page=Page.ITEM, item=item)
    buttons, steps, seen = page.world.layout.buttons, [f"click[{label}]"], [_said(opened)]
    for sub in _READ:
        if sub in clickables(opened):
            steps += [f"click[{sub}]", f"click[{buttons.previous}]"]
            seen.append(_said(do_click(opened, sub)))
    return [*steps, f"click[{buttons.previous}]"], " ".join(seen)


def _said(state: ShopState) -> str:
    """A page without the instruction."""
    return render(state).replace(state.world.task.prompt, "")


def _purchase(page: ShopState, item: int, wanted: set[str]) -> list[str]:
    """From the results page with the item to its purchase."""
    label = labels(page, page.visible)[page.visible.index(item)]
    chosen: dict[str, str] = {}
    for name, (group, value) in page.world.catalogue.product(item).option_names.items():
        if group not in chosen and wanted >= {*words_of(value)}:
            chosen[group] = f"click[{name}]"
    return [f"click[{label}]", *chosen.values(), f"click[{page.world.layout.buttons.buy}]"]
