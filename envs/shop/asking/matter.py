"""Kinds of asking that speak of materials, features, uses, what reviews tell, and variants."""

from __future__ import annotations

from collections.abc import Callable

from turnwise.envs.shop.asking.core import AskedPart, AskKind, AskSituation, Maker, asking_words
from turnwise.envs.shop.conditions import Condition
from turnwise.envs.shop.goods.core import ANIMAL
from turnwise.envs.shop.goods.draw import Listed
from turnwise.envs.shop.goods.tables import features, opinions


def _material(s: AskSituation) -> AskedPart:
    return AskedPart(
        "material", {"material": s.word("material")}, (Condition("material", "is", (s.word("material"),)),)
    )


def _other_materials(s: AskSituation, count: int) -> tuple[str, ...]:
    others = [material for material in s.goods.materials if material != s.word("material")]
    return tuple(s.rng.sample(others, count)) if len(others) >= count else ()


def _not_material(s: AskSituation) -> AskedPart | None:
    shunned = _other_materials(s, 1)
    return (
        AskedPart("material", {"material": shunned[0]}, (Condition("material", "is not", shunned),))
        if shunned
        else None
    )


def _neither_material(s: AskSituation) -> AskedPart | None:
    shunned = _other_materials(s, 2)
    if not shunned:
        return None
    slots = {"one": shunned[0], "two": shunned[1]}
    return AskedPart("material", slots, (Condition("material", "is not", shunned),))


def _either_material(s: AskSituation) -> AskedPart | None:
    other = _other_materials(s, 1)
    if not other or len(s.goods.materials) < 3:
        return None
    pair = s.rng.sample((*other, s.word("material")), 2)
    return AskedPart(
        "material", {"one": pair[0], "two": pair[1]}, (Condition("material", "is", tuple(pair)),)
    )


def _without(materials: Callable[[], frozenset[str]]) -> Maker:
    """Asks for anything but a class of materials; only where the shop has some of it."""

    def make(s: AskSituation) -> AskedPart | None:
        unwanted = materials()
        sold = tuple(material for material in s.goods.materials if material in unwanted)
        if not sold or s.word("material") in unwanted:
            return None
        return AskedPart("material", {}, (Condition("material", "is not", sold),))

    return make


def _material_of_other(s: AskSituation) -> AskedPart | None:
    mine = s.word("material")
    found = [listed for listed in s.others if listed.article.facts["material"] == mine]
    if not found:
        return None
    return AskedPart(
        "material", {"other": s.rng.choice(found).title}, (Condition("material", "is", (mine,)),)
    )


def _other_material_than(s: AskSituation) -> AskedPart | None:
    mine = s.word("material")
    found: list[Listed] = [listed for listed in s.others if listed.article.facts["material"] != mine]
    if not found:
        return None
    other = s.rng.choice(found)
    shunned = str(other.article.facts["material"])
    return AskedPart("material", {"other": other.title}, (Condition("material", "is not", (shunned,)),))


def _has(s: AskSituation) -> AskedPart | None:
    found = sorted(s.set_of("features"))
    if not found:
        return None
    name = s.rng.choice(found)
    return AskedPart(
        name, {"clause": s.say(features()[name].wants)}, (Condition("features", "all", (name,)),)
    )


def _has_two(s: AskSituation) -> AskedPart | None:
    found = sorted(s.set_of("features"))
    if len(found) < 2:
        return None
    one, two = s.rng.sample(found, 2)
    slots = {"one": s.say(features()[one].wants), "two": s.say(features()[two].wants)}
    return AskedPart(one, slots, (Condition("features", "all", (one, two)),))


def _has_either(s: AskSituation) -> AskedPart | None:
    found = sorted(s.set_of("features"))
    others = [name for name in s.goods.features if name not in found]
    if not found or not others:
        return None
    one, two = s.rng.sample((s.rng.choice(found), s.rng.choice(others)), 2)
    slots = {"one": s.say(features()[one].wants), "two": s.say(features()[two].wants)}
    return AskedPart(one, slots, (Condition("features", "any", (one, two)),))


def _lacks(s: AskSituation) -> AskedPart | None:
    have = s.set_of("features")
    found = [name for name in s.goods.features if name not in have and features()[name].shuns]
    if not found:
        return None
    name = s.rng.choice(found)
    shuns = features()[name].shuns
    assert shuns is not None
    return AskedPart(name, {"clause": s.say(shuns)}, (Condition("features", "none", (name,)),))


def _has_and_lacks(s: AskSituation) -> AskedPart | None:
    one, two = _has(s), _lacks(s)
    if one is None or two is None:
        return None
    slots = {"one": one.slots["clause"], "two": two.slots["clause"]}
    return AskedPart(one.about, slots, (*one.conditions, *two.conditions))


def _all_features_of(s: AskSituation) -> AskedPart | None:
    """Everything that another product has."""
    mine = s.set_of("features")
    found = [
        (listed, features)
        for listed in s.others
        if isinstance(features := listed.article.facts["features"], frozenset)
        and features
        and features <= mine
    ]
    if not found:
        return None
    other, features = s.rng.choice(found)
    return AskedPart(
        "features", {"other": other.title}, (Condition("features", "all", tuple(sorted(features))),)
    )


def _need(s: AskSituation) -> AskedPart | None:
    found = [
        need
        for need in s.goods.needs
        if all(condition.holds(s.meant.article.facts) for condition in need.conditions)
    ]
    if not found:
        return None
    need = s.rng.choice(found)
    return AskedPart(need.conditions[0].fact, {"clause": s.say(need.said)}, need.conditions)


def _present(s: AskSituation) -> AskedPart | None:
    if "gift box" not in s.set_of("features"):
        return None
    return AskedPart(
        "gift box",
        {"who": s.rng.choice(asking_words().receivers)},
        (Condition("features", "all", ("gift box",)),),
    )


def _praised(s: AskSituation) -> AskedPart | None:
    found = sorted(name for name in s.set_of("opinions") if opinions()[name].good)
    if not found:
        return None
    name = s.rng.choice(found)
    return AskedPart(
        name, {"clause": s.say(opinions()[name].wants)}, (Condition("opinions", "all", (name,)),)
    )


def _not_blamed(s: AskSituation) -> AskedPart | None:
    heard = s.set_of("opinions")
    found = [name for name in s.goods.opinions if name not in heard and not opinions()[name].good]
    if not found:
        return None
    name = s.rng.choice(found)
    return AskedPart(
        name, {"clause": s.say(opinions()[name].wants)}, (Condition("opinions", "none", (name,)),)
    )


def _praised_and_not_blamed(s: AskSituation) -> AskedPart | None:
    one, two = _praised(s), _not_blamed(s)
    if one is None or two is None:
        return None
    slots = {"one": one.slots["clause"], "two": two.slots["clause"]}
    return AskedPart(one.about, slots, (*one.conditions, *two.conditions))


def _no_complaints(s: AskSituation) -> AskedPart | None:
    bad = tuple(name for name in s.goods.opinions if not opinions()[name].good)
    if s.set_of("opinions") & {*bad}:
        return None
    return AskedPart("complaints", {}, (Condition("opinions", "none", bad),))


def _option(group: str) -> Maker:
    def make(s: AskSituation) -> AskedPart | None:
        offered = s.meant.article.options.get(group, ())
        if not offered:
            return None
        value = s.rng.choice(offered)
        said = value.upper() if group == "size" else value
        return AskedPart(group, {"value": said}, options=(value,))

    return make


def _either_colour(s: AskSituation) -> AskedPart | None:
    offered = s.meant.article.options.get("color", ())
    others = [
        name for listed in s.others for name in listed.article.options.get("color", ()) if name not in offered
    ]
    if not offered or not others:
        return None
    pair = tuple(s.rng.sample((s.rng.choice(offered), s.rng.choice(others)), 2))
    return AskedPart("color", {"one": pair[0], "two": pair[1]}, (Condition("color", "is", pair),))


def _not_colours(s: AskSituation) -> AskedPart | None:
    offered = s.meant.article.options.get("color", ())
    if len(offered) < 3:
        return None
    one, two = s.rng.sample(offered, 2)
    return AskedPart("color", {"one": one, "two": two}, (Condition("color", "is not", (one, two)),))


def _colour_of_choice(s: AskSituation) -> AskedPart | None:
    """One of three colours that a room, a team or a flag has."""
    offered = s.meant.article.options.get("color", ())
    found = [(what, colours) for what, colours in asking_words().schemes.items() if {*colours} & {*offered}]
    if not found:
        return None
    what, colours = s.rng.choice(found)
    return AskedPart("color", {"what": what}, (Condition("color", "is", colours),))


MATTER: tuple[AskKind, ...] = (
    AskKind("material", _material),
    AskKind("not a material", _not_material),
    AskKind("neither of two materials", _neither_material),
    AskKind("one of two materials", _either_material),
    AskKind("vegan", _without(lambda: frozenset(ANIMAL))),
    AskKind("no plastic", _without(lambda: asking_words().plastics)),
    AskKind("no metal", _without(lambda: asking_words().metals)),
    AskKind("nothing that breaks", _without(lambda: asking_words().breakable)),
    AskKind("the material of another", _material_of_other),
    AskKind("not the material of another", _other_material_than),
    AskKind("a feature", _has),
    AskKind("two features", _has_two),
    AskKind("one of two features", _has_either),
    AskKind("without a feature", _lacks),
    AskKind("with one feature and without another", _has_and_lacks),
    AskKind("all features of another", _all_features_of),
    AskKind("a use", _need),
    AskKind("a present", _present),
    AskKind("praised in reviews", _praised),
    AskKind("not blamed in reviews", _not_blamed),
    AskKind("praised and not blamed", _praised_and_not_blamed),
    AskKind("no complaints", _no_complaints),
    AskKind("colour", _option("color")),
    AskKind("size", _option("size")),
    AskKind("one of two colours", _either_colour),
    AskKind("neither of two colours", _not_colours),
    AskKind("a colour of something", _colour_of_choice),
)
