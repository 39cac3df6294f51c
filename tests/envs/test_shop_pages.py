"""Pages and actions: WebShop's semantics, its defects absent, both forms of text."""
# pyright: reportPossiblyUnboundVariable=false, reportTypedDictNotRequiredAccess=false

import pytest

from turnwise.envs.core import EndReason
from turnwise.envs.messages import Message
from turnwise.envs.registry import make
from turnwise.envs.shop.actions import clickables
from turnwise.envs.shop.state import Page, ShopState
from turnwise.tasks.core import Split, derive_rng
from turnwise.tools.core import ToolCall

FULL = {"products": 200, "vocabulary": "small", "catalogues": 1, "option_groups": 2, "values": 3}
COMPACT = {**FULL, "pages": "compact", "labels": "position", "per_page": 4}
UNTOLD = {**COMPACT, "product_attributes": 3, "titled": 1}


def play(env, *actions):
    for action in actions:
        step = env.step(action)
        assert not step.info["bad_action"], step.observation
    return str(step.observation[-1].content)


def shop(seed=0, **knobs):
    env = make("turnwise/Shop-v0")
    task = env.generate(derive_rng("pages", seed), Split.TRAIN, **knobs)
    env.reset(seed=seed, options={"task": task})
    return env


def first_item(env):
    return env.state.world.catalogue.product(env.state.visible[0])


def search(env):
    return f"search[{env.state.world.gold_query}]"


# --- pages ---------------------------------------------------------------------------------------


def test_full_pages_are_webshops_text():
    env = shop(**FULL)
    instruction = f"Instruction: [SEP] {env.task.prompt} [SEP] "
    messages, _ = env.reset(seed=0, options={"task": env.task})
    assert [message.role for message in messages] == ["system", "user"]
    assert messages[1].content == f"WebShop [SEP] {instruction}Search"
    results = play(env, search(env))
    product = first_item(env)
    assert results.startswith(
        f"{instruction}Back to Search [SEP] Page 1 (Total results: {len(env.state.results)}) [SEP] Next > [SEP] "
        f"{product.asin} [SEP] {product.title} [SEP] ${product.price:.2f} [SEP] "
    )
    assert results.count("$") == 10
    item = play(env, f"click[{product.asin}]")
    colors, sizes = (" [SEP] ".join(values) for values in product.options.values())
    assert item == (
        f"{instruction}Back to Search [SEP] < Prev [SEP] color [SEP] {colors} [SEP] size [SEP] {sizes} [SEP] "
        f"{product.title} [SEP] Price: ${product.price:.2f} [SEP] Rating: N.A. [SEP] "
        "Description [SEP] Features [SEP] Reviews [SEP] Buy Now"
    )
    assert play(
        env, "click[Features]"
    ) == f"{instruction}Back to Search [SEP] < Prev [SEP] " + " [SEP] ".join(product.bullets)


def test_compact_pages():
    env = shop(**COMPACT)
    results = play(env, search(env)).splitlines()
    product = first_item(env)
    assert results[0] == f"[1] {product.title} ${product.price:.0f}"
    assert (len(results), results[-1]) == (5, "[next] [back]")
    assert play(env, "click[next]").splitlines()[-1] == "[prev] [next] [back]"
    play(env, "click[prev]")
    color, size = product.options["color"], product.options["size"]
    assert play(env, "click[1]").splitlines() == [
        results[0].removeprefix("[1] "),
        "color " + " ".join(f"[{v}]" for v in color),
        "size " + " ".join(f"[{v}]" for v in size),
        "[back] [prev] [buy]",
    ]
    assert play(env, f"click[{size[0]}]") == f"chosen {size[0]}\n[back] [prev] [buy]"
    assert play(env, f"click[{color[1]}]") == f"chosen {color[1]} {size[0]}\n[back] [prev] [buy]"


def test_compact_items_offer_features_only_if_the_title_leaves_something_out():
    env = shop(**UNTOLD)
    play(env, search(env), "click[1]")
    assert "features" in clickables(env.state)
    told = play(env, "click[features]")
    assert all(f"it is {a}" in told for a in env.state.product.attributes[1:])
    env = shop(**COMPACT)
    play(env, search(env), "click[1]")
    assert "features" not in clickables(env.state)


def test_prices_can_be_left_out():
    env = shop(**COMPACT, show_prices=False)
    assert "$" not in play(env, search(env))


def test_the_attributes_page_is_there_when_asked_for():
    env = shop(**FULL, show_attributes=True)
    assert "Attributes [SEP] Buy Now" in play(env, search(env), f"click[{first_asin(env)}]")
    assert play(env, "click[attributes]").endswith(" [SEP] ".join(env.state.product.attributes))


def first_asin(env):
    env = env.fork()
    play(env, search(env))
    return first_item(env).asin


# --- where clicks lead ---------------------------------------------------------------------------


def test_search_is_possible_on_every_page_and_clears_the_item():
    env = shop(**FULL)
    play(env, search(env), f"click[{first_asin(env)}]", "click[description]")
    for _ in range(2):
        play(env, "search[mug]")
        assert env.state == ShopState(env.state.world, Page.RESULTS, "mug")


def test_previous_leads_back_one_step():
    env = shop(**FULL)
    play(env, search(env), "click[next >]")
    asin = first_item(env).asin
    play(env, f"click[{asin}]", f"click[{first_value(env, asin)}]", "click[reviews]", "click[< prev]")
    assert env.state.page is Page.ITEM
    assert env.state.chosen  # a sub-page forgets nothing
    play(env, "click[< prev]")
    assert (env.state.page, env.state.number, env.state.chosen, env.state.item) == (Page.RESULTS, 2, (), -1)
    play(env, "click[< prev]")
    assert env.state.number == 1
    assert env.step("click[< prev]").info["bad_action"]


def first_value(env, asin):
    catalogue = env.state.world.catalogue
    return next(iter(catalogue.product(catalogue.position(asin)).options.values()))[0]


def test_back_to_search_forgets_everything():
    env = shop(**FULL)
    start = env.state
    play(env, search(env), f"click[{first_asin(env)}]", "click[back to search]")
    assert env.state == start


def test_choosing_again_replaces_the_choice_and_clicks_ignore_case():
    env = shop(**FULL)
    asin = first_asin(env)
    play(env, search(env), f"click[{asin.lower()}]")
    red, blue, _ = env.state.product.options["color"]
    play(env, f"click[{red.upper()}]", f"click[ {blue} ]")
    assert env.state.chosen == (("color", blue),)


def test_the_next_page_is_always_offered_and_may_be_empty():
    env = shop(**FULL)
    text = play(env, search(env), *["click[next >]"] * 5)
    found = len(env.state.results)
    assert text.endswith(f"Page 6 (Total results: {found}) [SEP] < Prev [SEP] Next >")


def test_nothing_found():
    env = shop(**COMPACT)
    assert play(env, "search[zebra]") == "nothing found\n[back]"


# --- bad actions (E7) ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("action", "said"),
    [
        ("click[nothing like it]", "[nothing like it] is not here. Click [1] [2] [3] [4] [next] [back] or search[...]."),
        ("click[buy]", "[buy] is not here. Click [1]"),
        ("click[5]", "[5] is not here."),
        ("buy it", "No action found. Write one of: search[query], click[target]."),
        ("", "No action found."),
        ("clack[1]", "There is no tool 'clack'. Did you mean 'click'? Tools: search, click."),
        ("search[]", "search needs words"),
        ("search[ !? ]", "search needs words"),
        (Message("assistant", "", (ToolCall("click", {"target": 1}, "a"),)), "click: target: "),
        (Message("assistant", "", (ToolCall("click", {}, "a"),)), "click: target: Field required"),
        (Message("assistant", "", (ToolCall("buy", {}, "a"),)), "There is no tool 'buy'."),
        (Message("assistant", "", (ToolCall("click", {"target": "1"}, "a"),) * 2), "A turn takes one action"),
    ],
)  # fmt: skip
def test_a_bad_action_is_answered_and_changes_nothing(action, said):
    env = shop(**COMPACT)
    play(env, search(env))
    before = env.state
    step = env.step(action)
    assert said in step.observation[-1].content
    assert step.info["bad_action"]
    assert (env.state, step.reward, step.terminated, step.truncated) == (before, 0.0, False, False)


@pytest.mark.parametrize(
    ("said", "meant"),
    [("click[Next]", "click[next >]"), ("click[next page]", None), ("click[ NEXT > ]", "click[next >]")],
)
def test_a_button_is_known_by_its_words(said, meant):
    one, two = shop(**FULL), shop(**FULL)
    play(one, search(one))
    play(two, search(two))
    if meant is None:
        assert one.step(said).info["bad_action"]
        return
    assert play(one, said) == play(two, meant)


def test_what_a_page_calls_chosen_can_be_clicked_as_it_stands():
    env = make("turnwise/Shop-v0")
    env.reset(seed=0, options={"task": env.generate(derive_rng("natural"), Split.TRAIN, language="natural")})
    play(env, f"search[{env.state.world.goal.query}]")
    plain = env.state.results
    assert "sort by price (chosen)" in play(env, "click[Sort by price]")
    play(env, "click[sort by price (chosen)]")
    assert env.state.results == plain


def test_where_nothing_can_be_clicked_it_is_said_so():
    env = shop(**FULL)
    told = env.step("click[search]").observation[-1].content
    assert told == "[search] is not here. Here you can only search[...]."


def test_a_plural_finds_what_its_singular_finds():
    env = make("turnwise/Shop-v0")
    task = env.generate(derive_rng("natural"), Split.TRAIN, language="natural")
    env.reset(seed=0, options={"task": task})
    find = env.state.world.catalogue.search
    for one, many in (("towel", "towels"), ("knife", "knives"), ("scarf", "scarves"), ("leash", "Leashes")):
        assert find(one)
        assert find(many) == find(one)
    assert not find("towelz")


def test_tool_calls_do_what_texts_do_and_are_answered_as_tools():
    texts, calls = shop(**FULL), shop(**FULL)
    asin = first_asin(texts)
    actions = [
        ("search", "query", texts.state.world.gold_query),
        ("click", "target", asin),
        ("click", "target", "Buy Now"),
    ]
    for name, parameter, argument in actions:
        a = texts.step(f"{name}[{argument}]")
        b = calls.step(Message("assistant", "I think.", (ToolCall(name, {parameter: argument}, "call_7"),)))
        assert (a.reward, a.info["end"], a.observation[0].content) == (
            b.reward,
            b.info["end"],
            b.observation[0].content,
        )
        assert (b.observation[0].role, b.observation[0].tool_call_id) == ("tool", "call_7")
    assert a.info["end"] in (EndReason.SOLVED, EndReason.FAILED)


# --- defects of the original ---------------------------------------------------------------------


@pytest.mark.parametrize("query", ["<r>", "<a> soft", "<a> x", "<c> beauty", "<q> mug", "<q>"])
def test_no_query_is_magic(query):
    env = shop(**FULL)
    play(env, f"search[{query}]")
    words = query.replace("<", " ").replace(">", " ")
    assert env.state.results == env.state.world.catalogue.search(words)


@pytest.mark.slow
def test_resets_leave_nothing_behind():
    """WebShop keeps every session for ever."""
    import gc
    import tracemalloc

    env = shop(**COMPACT)
    tasks = [env.generate(derive_rng(i), Split.TRAIN, **COMPACT) for i in range(20)]

    def episodes(n):
        for i in range(n):
            env.reset(seed=i, options={"task": tasks[i % 20]})
            play(env, search(env), "click[1]", "click[buy]")
        gc.collect()

    episodes(40)
    tracemalloc.start()
    episodes(20)
    before = tracemalloc.get_traced_memory()[0]
    episodes(400)
    grown = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    assert grown < 20_000  # bytes; one kept state per episode would be more


def test_the_demonstrator_knows_a_way_on_from_a_page_without_products():
    env = shop(**FULL)
    play(env, "search[zzzz]")
    assert env.state.page is Page.RESULTS
    assert not env.state.visible
    said = env.demonstrate(env.state, derive_rng("page"))
    assert not env.step(said).info["bad_action"]
