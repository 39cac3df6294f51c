"""A turn touches only what is new, and its tokens are those that rendering and tokenising everything anew gives."""

from __future__ import annotations

import copy
import functools
from collections.abc import Iterator, Sequence
from random import Random
from typing import Any

import pytest
from tokenizers import AddedToken

from turnwise.agents.bench.client import KINDS, ClientWorkload, TalkKind, kind_renderer, look, talk
from turnwise.agents.bench.families import FAMILIES, family_tokenizer
from turnwise.agents.tokens.encoding import Encoder
from turnwise.agents.tokens.frames import TailFrames
from turnwise.agents.tokens.renderer import _OPENING, Extension, Renderer
from turnwise.agents.tokens.telling import told_below
from turnwise.agents.tokens.template import SENTINEL
from turnwise.envs.messages import Message
from turnwise.tools.core import Tool, ToolCall, tool

ODD = ["red ", "scarf", " ", "\n", "\n\n", "<", "|>", "é", "中", "🙂", "[INST]", "<|im_end|>", "<b>", "\ud800", "</s>", "¤", "¤¤", "<tool_response>"]  # fmt: skip


@functools.cache
def whole(name: str) -> Any:
    """Encodes a text at once, as the tokeniser itself does."""
    encoder = Encoder(family_tokenizer(name), family_tokenizer(name).chat_template)
    encoder._apart = False
    return encoder


@pytest.mark.parametrize("name", FAMILIES)
def test_pieces_have_the_tokens_of_the_whole_text(name: str) -> None:
    made = Encoder(family_tokenizer(name), family_tokenizer(name).chat_template)
    assert made._apart  # or nothing is tried here
    rng, known = Random(name), None
    parts = [*(control.text for control in made.controls), *map(made.guard, ODD)]
    text = ""
    for _ in range(300):
        text = text[: rng.randrange(len(text) + 1)] if rng.random() < 0.3 else text
        text += "".join(rng.choices(parts, k=rng.randrange(1, 6)))
        text = text[-400:] if rng.random() < 0.05 else text
        known = made.encode_on(text, known)
        assert known.ids == made.encode(text) == whole(name).encode(text)
        assert made.encode_after(text) == whole(name).encode_after(text)


def with_tokens(*tokens: AddedToken) -> Any:
    """An encoder of the ChatML tokeniser whose template writes further control tokens."""
    made = copy.deepcopy(family_tokenizer("chatml"))
    made.add_tokens([*tokens], special_tokens=True)
    return Encoder(made, f"{made.chat_template}" + "".join(token.content for token in tokens))


def test_a_control_token_that_begins_before_what_was_known_and_ends_behind_it_is_found() -> None:
    made = with_tokens(AddedToken("ab", normalized=False), AddedToken("xxabc", normalized=False))
    assert made._apart
    known = made.encode_on("1xxabd", None)
    assert known.borders
    assert made.encode_on("1xxabc", known).ids == made.encode("1xxabc")


def test_where_a_control_token_takes_white_space_along_texts_are_encoded_whole() -> None:
    made = with_tokens(AddedToken("<|taker|>", rstrip=True, normalized=False))
    text = "a<|taker|>  b"
    assert made.encode(text) == made.encode_on(text, None).ids == made.encode("a<|taker|>b")


# --- every turn of ragged conversations --------------------------------------------------------------


def anew(
    made: Any, messages: Sequence[Message], new: int, last: int | None, tools: Sequence[Tool]
) -> Extension:
    """The extension, for which everything is rendered and encoded whole, with nothing kept from other turns."""
    *said, reply = messages[: len(messages) - new]
    later = messages[len(messages) - new :]
    head, head_tools = (_OPENING, ()) if made.append_only else (said, tools)
    before = made.template.render(head, head_tools)
    now = made.template.render((*head, reply, *later), head_tools)
    if not now.startswith(before) or not made._holds(now[len(before) :], reply.content):
        return Extension(
            tuple(made.encoder.encode(made.template.render(told_below(messages, made.instruction), tools))),
            True,
        )
    text = made.template.render((*head, made._stand_in(reply), *later), head_tools).rpartition(SENTINEL)[2]
    ends = made._ends_of(reply)
    if made.template.writes_call(reply):
        text = next((end.text + text.partition(end.text)[2] for end in ends if end.text in text), text)
    ids = made.encoder.encode_after(text)
    if last in (one.id for one in ends):
        if last in ids:
            ids = ids[ids.index(last) + 1 :]
        elif made._end_inside is not None and ids[:1] == [made._end_inside.id]:
            ids = ids[1:]
    return Extension(tuple(ids))


def ragged(rng: Random, turns: int, *, tools: bool) -> Iterator[list[Message]]:
    """A conversation after each of its observations; replies and observations come in runs of one kind and in none."""
    words = lambda: "".join(rng.choices([*ODD, "the red scarf ", "costs 12 "], k=rng.randrange(1, 9)))
    messages = [Message("system", words())] * rng.randrange(2) + [Message("user", words())]
    yield [*messages]
    form = "words"
    for _ in range(turns):
        if rng.random() < rng.choice([0.02, 0.3]):
            form = rng.choice(
                ["words", "thought", "call", "thought and call"] if tools else ["words", "thought"]
            )
        thought = f"<think>\n{words()}\n</think>\n\n" if "thought" in form else ""
        calls = (ToolCall("look", {"query": words()}, "call_0"),) if "call" in form else ()
        messages.append(Message("assistant", f"{thought}{'' if calls else words()}", calls))
        if calls:
            messages.append(Message("tool", words(), tool_call_id="call_0"))
        if not calls or rng.random() < 0.05:
            messages.append(Message("user", words()))
        yield [*messages]


@pytest.mark.parametrize("name", FAMILIES)
@pytest.mark.parametrize("tools", [False, True])
def test_every_turn_has_the_tokens_of_doing_everything_anew(name: str, tools: bool) -> None:
    told = (tool(look),) if tools else ()
    form, rewritten = "auto" if tools else "none", 0
    made = Renderer(family_tokenizer(name), tools_format=form, instruction="Aim high." if tools else "")
    plain: Any = Renderer(family_tokenizer(name), tools_format=form, instruction=made.instruction)
    plain.encoder._apart = False
    for seed in range(4):
        rng, kept = Random(f"{name}{seed}"), made.conversation(None)
        said = 0
        for messages in ragged(rng, 45, tools=tools):
            if not said:
                assert made.start(messages, told, kept) == plain.start(messages, told)
            else:
                new, last = len(messages) - said - 1, rng.choice([made.stop_ids[0], 5])
                found = made.extend(messages, new, last, told, kept)
                assert found == anew(plain, messages, new, last, told), (seed, len(messages))
                rewritten += found.fresh
            said = len(messages)
    assert bool(rewritten) == (not made.append_only)


def test_a_template_that_rewrites_what_had_settled_is_found_out_and_rendered_whole(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Its beginning changes in turn 20, which is missed; in turn 32 the prompt is given anew, and the log says so."""
    odd = copy.deepcopy(family_tokenizer("thinking"))
    odd.chat_template = f"{{% if messages|length > 40 %}}Long.{{% endif %}}{odd.chat_template}"
    made = Renderer(odd, tools_format="none")
    kept, messages, told = made.conversation(None), [Message("user", "Hello.")], {}
    for turn in range(1, 41):
        messages += [Message("assistant", f"Reply {turn}."), Message("user", f"Question {turn}.")]
        found = made.extend(messages, 1, made.stop_ids[0], (), kept)
        if found != anew(made, messages, 1, made.stop_ids[0], ()):
            told[turn] = found
            assert turn == 20 or found == Extension(made.start(messages), fresh=True)
    assert [*told] == [20, 32]
    assert "rewrote what had settled after 32 turns. Prompts since turn 16 can lack that" in caplog.text


# --- frames ------------------------------------------------------------------------------------------


def chatml(written: str) -> Renderer:
    """A renderer whose template writes a user's message as told, else as ChatML."""
    odd = copy.deepcopy(family_tokenizer("chatml"))
    source, was = str(odd.chat_template), "message.role + '\\n' + message.content + "
    assert was in source
    odd.chat_template = source.replace(was, f"message.role + '\\n' + ({written}) + ")
    return Renderer(odd, tools_format="none")


def asked(made: Renderer, question: str) -> tuple[Extension, Extension, int]:
    """What follows a reply when this is asked, the same rendered anew, and how often the template was called for the first."""
    talk = [Message("user", "x"), Message("assistant", "Sure."), Message("user", question)]
    before = made.encoder.work.renderings
    found = made.extend(talk, 1, made.stop_ids[0])
    count = made.encoder.work.renderings - before
    return found, anew(made, talk, 1, made.stop_ids[0], ()), count


def test_a_turn_of_a_known_form_is_not_rendered_unless_it_says_what_the_template_looks_for() -> None:
    made = chatml("message.content if 'bell' not in message.content else 'RANG'")
    assert made.append_only
    counts: list[int] = []
    for words in ("one", "two", "three", "four", "a bell", "five", " five\n", " six\n", "", "x < 3 & y"):
        found, whole_one, count = asked(made, words)
        assert found == whole_one, words
        counts.append(count)
    assert counts[0] > counts[1] == counts[2] > 0  # first with other words too; its uses 1, 2 and 4 are tried
    assert not counts[3]
    assert counts[5]
    assert counts[4]
    assert counts[8]
    assert not counts[9]


@pytest.mark.parametrize(
    "written", ["message.content | e", "message.content | indent(2)", "message.content[:60]"]
)
def test_words_that_a_template_changes_are_always_rendered(written: str) -> None:
    made = chatml(written)
    for words in ("one", "four", "five", "Two\nthree", "z" * 99):  # its third use is not tried
        found, whole_one, count = asked(made, words)
        assert found == whole_one
        assert count


@pytest.mark.parametrize(
    "written",
    [
        "message.content if message.content | length < 500 else 'TOO LONG'",
        "message.content[:500]",
        "message.content | truncate(500)",
        "message.content if not message.content.isdigit() else 'A NUMBER'",
    ],
)
def test_a_template_that_decides_by_more_than_strings_is_always_rendered(written: str) -> None:
    made = chatml(written)
    for words in ("one", "two", "three", "four", "five", "z" * 600, "77"):
        found, whole_one, count = asked(made, words)
        assert found == whole_one, words
        assert count


def test_a_template_that_changes_its_ways_is_found_out_at_a_power_of_two(
    caplog: pytest.LogCaptureFixture,
) -> None:
    made, told = Renderer(family_tokenizer("chatml")), []

    def whole(reply: Message, new: Sequence[Message]) -> str:
        late = "LATE " if len(told) >= 8 else ""
        return f"<{late}{new[0].content}>"

    frames = TailFrames(made.template, "", whole)
    for turn in range(12):
        told.append(turn)
        said = frames.tail(Message("assistant", "Sure."), (Message("user", f"question {turn}"),))
        assert turn != 8 or said == "<LATE question 8>", "its eighth use is tried"
        assert turn < 9 or said == f"<LATE question {turn}>", "from there on all is rendered"
    assert "in another way than it wrote 8 of the same form" in caplog.text


def test_what_follows_a_call_names_it_where_the_template_does() -> None:
    made = Renderer(family_tokenizer("chatml"))
    odd = copy.deepcopy(family_tokenizer("chatml"))
    odd.chat_template = str(odd.chat_template).replace(
        "'\\n<tool_response>\\n'",
        "'\\n<tool_response>\\n' + messages[loop.index0 - 1].tool_calls[0].function.name + ': '",
    )
    naming = Renderer(odd)
    assert naming.append_only == made.append_only
    for name in ("look", "order", "look", "order", "sell"):
        talk = [
            Message("user", "x"),
            Message("assistant", "", (ToolCall(name, {"n": 1}, "call_0"),)),
            Message("tool", "done", tool_call_id="call_0"),
        ]
        for one in (made, naming):
            assert one.extend(talk, 1, None, (tool(look),)) == anew(one, talk, 1, None, (tool(look),))
        said = naming.tokenizer.decode([*naming.extend(talk, 1, None, (tool(look),)).ids])
        assert f"{name}: done" in said
    before = made.encoder.work.renderings
    made.extend(talk, 1, None)
    assert made.encoder.work.renderings == before  # one frame serves all calls


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: f"{kind.family}-{kind.form}")
def test_the_work_of_a_turn_does_not_grow_with_the_conversation(kind: TalkKind) -> None:
    """But for the whole rendering that is compared at each power of two."""
    talked = talk(kind, kind_renderer(kind), ClientWorkload(turns=62, words=8, said=3), 1)

    def most(turns: Sequence[Any], count: str) -> int:
        return max(getattr(work, count) for work in turns)

    early, late = (
        talked.work[8:13],
        talked.work[34:60],
    )  # before turns 10 to 14, 36 to 61: no power of two among them
    for count in ("renderings", "rendered", "guarded", "encoded"):
        assert most(late, count) <= 1.5 * most(early, count), count
    assert sum(work.rendered for work in talked.work) < 40 * len(talked.work)
