"""Kinds of asking that speak of materials, features, uses, what reviews tell, and variants."""

from __future__ import annotations

from turnwise.envs.shop.asking.core import AskedPart, AskKind, AskSituation, Maker, ask
from turnwise.envs.shop.conditions import Condition
from turnwise.envs.shop.goods.core import ANIMAL
from turnwise.envs.shop.goods.draw import Listed
from turnwise.envs.shop.goods.features import FEATURES
from turnwise.envs.shop.goods.opinions import OPINIONS

_METALS = frozenset(
    {"steel", "stainless steel", "aluminium", "titanium", "cast iron", "carbon steel", "enamel"}
)
_PLASTICS = frozenset(
    {
        "plastic",
        "polyester",
        "nylon",
        "acrylic",
        "polypropylene",
        "polycarbonate",
        "vinyl",
        "foam",
        "mesh",
        "carbon fibre",
    }
)
_BREAKABLE = frozenset({"glass", "porcelain", "stoneware", "ceramic", "terracotta"})
_RECEIVERS = (
    "my sister", "my boss", "a friend from school", "my mother-in-law", "the neighbour who feeds our cat", "my nephew",
)  # fmt: skip


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


def _without(unwanted: frozenset[str]) -> Maker:
    """Asks for anything but a class of materials; only where the shop has some of it."""

    def make(s: AskSituation) -> AskedPart | None:
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
    return AskedPart(name, {"clause": s.say(FEATURES[name].wants)}, (Condition("features", "all", (name,)),))


def _has_two(s: AskSituation) -> AskedPart | None:
    found = sorted(s.set_of("features"))
    if len(found) < 2:
        return None
    one, two = s.rng.sample(found, 2)
    slots = {"one": s.say(FEATURES[one].wants), "two": s.say(FEATURES[two].wants)}
    return AskedPart(one, slots, (Condition("features", "all", (one, two)),))


def _has_either(s: AskSituation) -> AskedPart | None:
    found = sorted(s.set_of("features"))
    others = [name for name in s.goods.features if name not in found]
    if not found or not others:
        return None
    one, two = s.rng.sample((s.rng.choice(found), s.rng.choice(others)), 2)
    slots = {"one": s.say(FEATURES[one].wants), "two": s.say(FEATURES[two].wants)}
    return AskedPart(one, slots, (Condition("features", "any", (one, two)),))


def _lacks(s: AskSituation) -> AskedPart | None:
    have = s.set_of("features")
    found = [name for name in s.goods.features if name not in have and FEATURES[name].shuns]
    if not found:
        return None
    name = s.rng.choice(found)
    shuns = FEATURES[name].shuns
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
        "gift box", {"who": s.rng.choice(_RECEIVERS)}, (Condition("features", "all", ("gift box",)),)
    )


def _praised(s: AskSituation) -> AskedPart | None:
    found = sorted(name for name in s.set_of("opinions") if OPINIONS[name].good)
    if not found:
        return None
    name = s.rng.choice(found)
    return AskedPart(name, {"clause": s.say(OPINIONS[name].wants)}, (Condition("opinions", "all", (name,)),))


def _not_blamed(s: AskSituation) -> AskedPart | None:
    heard = s.set_of("opinions")
    found = [name for name in s.goods.opinions if name not in heard and not OPINIONS[name].good]
    if not found:
        return None
    name = s.rng.choice(found)
    return AskedPart(name, {"clause": s.say(OPINIONS[name].wants)}, (Condition("opinions", "none", (name,)),))


def _praised_and_not_blamed(s: AskSituation) -> AskedPart | None:
    one, two = _praised(s), _not_blamed(s)
    if one is None or two is None:
        return None
    slots = {"one": one.slots["clause"], "two": two.slots["clause"]}
    return AskedPart(one.about, slots, (*one.conditions, *two.conditions))


def _no_complaints(s: AskSituation) -> AskedPart | None:
    bad = tuple(name for name in s.goods.opinions if not OPINIONS[name].good)
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
    found = [(what, colours) for what, colours in _SCHEMES if {*colours} & {*offered}]
    if not found:
        return None
    what, colours = s.rng.choice(found)
    return AskedPart("color", {"what": what}, (Condition("color", "is", colours),))


_SCHEMES = (
    ("the flag of Italy", ("green", "white", "red")),
    ("the flag of France", ("blue", "white", "red")),
    ("a zebra", ("black", "white")),
    ("the flag of Germany without its gold", ("black", "red")),
    ("a traffic light without its yellow", ("red", "green")),
)
_CLAUSE = "One that {clause}, please. | I would like one that {clause}. | Give me one that {clause}. | It has got to be something that {clause}."
_BOTH = (
    "It should be one that {one} and that {two}. | I need one that {one} and, besides, that {two}. | "
    "One that {one}; moreover one that {two}. | On top of each other: something that {one}, and yes, something that {two}."
)
MATTER: tuple[AskKind, ...] = (
    ask("material", _material, "Made of {material}. | It should be {material}. | In {material}, please. | The stuff that I like is {material}, so that."),
    ask("not a material", _not_material, "Nothing with {material}. | Anything but {material}. | I cannot stand {material}. | {material} is out of the question in our home."),
    ask("neither of two materials", _neither_material, "Neither {one} nor {two}. | No {one} and no {two}, please. | Not {one}, and not {two} either. | I react badly to {one} as well as to {two}."),
    ask("one of two materials", _either_material, "Made of {one} or of {two}. | {one} or {two}, I like both. | In {one} or else {two}. | Should it be {one}, good; should it be {two}, good too; otherwise not."),
    ask("vegan", _without(frozenset(ANIMAL)), "I am a vegan, so no animal may have died or been shorn for it. | Nothing that comes from an animal. | It must be free of animal products. | My daughter refuses whatever once belonged to a beast."),
    ask("no plastic", _without(_PLASTICS), "I avoid anything made from oil, so no synthetics. | We live without plastics of any kind. | It should not be a man-made polymer. | Nothing out of a petrochemical plant, as to what it consists of."),
    ask("no metal", _without(_METALS), "It must not be of metal, I react to it. | No metals as the main material. | A nickel allergy keeps me off metals of all sorts. | Whatever a magnet or a scrap dealer might like is out."),
    ask("nothing that breaks", _without(_BREAKABLE), "We have a toddler: nothing that shatters. | The material must not shatter on the floor. | No glass, no pottery, with our boys. | Whatever comes in shards when it falls will not enter this flat."),
    ask("the material of another", _material_of_other, "Of the same material as the {other}. | Made of what the {other} is made of. | The stuff should be that of the {other}. | It ought to feel like the {other}, that is, consist of the same."),
    ask("not the material of another", _other_material_than, "I had the {other}; this time another material. | Not out of what the {other} is made of. | Something whose material is not that of the {other}. | The stuff they use for the {other} makes me itch, so a different one."),
    ask("a feature", _has, _CLAUSE),
    ask("two features", _has_two, _BOTH),
    ask("one of two features", _has_either, "One that {one}, or failing that one that {two}. | Either something that {one} or something that {two}. | It is enough if it is one that {one} or one that {two}. | Two ways to please me: a thing that {one}, or a thing that {two}."),
    ask("without a feature", _lacks, "I prefer one that {clause}. | Keep it plain: one that {clause}. | For once, something that {clause}. | Call me old-fashioned, but I look for a thing that {clause}."),
    ask("with one feature and without another", _has_and_lacks, _BOTH),
    ask("all features of another", _all_features_of, "It must have every feature that the {other} has. | Whatever the {other} offers as features, this should as well. | No feature of the {other} may be missing. | I would miss each single feature of my {other}, so all of them again."),
    ask("a use", _need, "It should be one that {clause}. | I am looking for something that {clause}. | I want one that {clause}. | What would help me is one that {clause}."),
    ask("a present", _present, "It is a present for {who}, and I have no time to pack it. | I give it to {who} and cannot wrap things. | For {who}, straight from your box into these hands. | {who} gets it from me unopened, so it should look festive by itself."),
    ask("praised in reviews", _praised, "According to reviews, one that {clause}. | I read what buyers write: one that {clause}. | Going by other people's reports, one that {clause}. | Owners know best; get me one that {clause}."),
    ask("not blamed in reviews", _not_blamed, "Check the reviews: one that {clause}. | I have been burnt before, so one that {clause}. | Mind what people complain of; I want one that {clause}. | Go through the grumbling first: I want one that {clause}."),
    ask("praised and not blamed", _praised_and_not_blamed, _BOTH),
    ask("no complaints", _no_complaints, "No review may complain about anything. | Buyers should have nothing bad to say. | Not a single complaint in its reviews. | I want to read reviews without one grumble in them."),
    ask("colour", _option("color"), "In {value}. | The colour should be {value}. | {value}, please. | As for colour, make it {value}."),
    ask("size", _option("size"), "In size {value}. | I wear {value}. | Size {value}, please. | The label in all my things says {value}."),
    ask("one of two colours", _either_colour, "In {one} or in {two}. | {one} or {two}, whichever there is. | The colour may be {one} or {two}. | Both {one} and {two} would go with my eyes; no third."),
    ask("neither of two colours", _not_colours, "Any colour but {one} and {two}. | Not {one} and not {two}. | Of the colours I dislike {one} and {two}. | {one} and {two} are the other team's colours, so never those."),
    ask("a colour of something", _colour_of_choice, "In a colour that {what} has. | Its colour should occur in {what}. | Choose a colour out of {what}. | Think of {what} and take any shade you see there."),
)  # fmt: skip
