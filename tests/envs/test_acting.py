"""One way to act: what is said in any notation does the same in every family, or it is told how to say it."""
# pyright: reportArgumentType=false, reportCallIssue=false
# pyright: reportTypedDictNotRequiredAccess=false

import json

import pytest

from turnwise.envs.acting import calls_or_words
from turnwise.envs.check.core import FEW, Broken, Subject
from turnwise.envs.check.play import bad_actions
from turnwise.envs.core import AgentEnv, EndReason, Transition
from turnwise.envs.live import LiveEnv
from turnwise.envs.messages import Message
from turnwise.envs.registry import env_class, get_suite, make, suite_task, suites
from turnwise.tasks.core import Split, Task
from turnwise.tools.core import ToolCall, ToolError, tool
from turnwise.tools.notations import read_written


def ring() -> None:
    """Ring the bell."""


FAMILIES = sorted(
    {
        suite.env: pytest.param(suite, id=suite.name)
        for suite in suites()
        if suite.env.startswith("turnwise/") and not issubclass(env_class(suite.env), LiveEnv)
    }.values(),
    key=lambda one: one.id,
)
NOTATIONS = {
    "hermes": lambda name, given: f"<tool_call>{_json(name, given)}</tool_call>",
    "json": lambda name, given: _json(name, given),
    "fenced json": lambda name, given: f"I think that is right.\n```json\n{_json(name, given)}\n```",
    "fenced verb": lambda name, given: f"```\n{name}[{json.dumps(given)}]\n```",
    "python": lambda name, given: f"{name}({_python(given)})",
    "labelled": lambda name, given: f"Thought: this is right.\nAction: {name}({_python(given)})",
    "verb": lambda name, given: f"{name}[{_plain(given)}]",
    "labelled verb": lambda name, given: f"I do it.\n**Action:** `{name}[{_plain(given)}]`",
    "tagged": lambda name, given: f"<think>Now.</think><action>{name}[{_plain(given)}]</action>",
}  # fmt: skip


def _json(name, given):
    return json.dumps({"name": name, "arguments": given})


def _python(given):
    return ", ".join(f"{key}={value!r}" for key, value in given.items())


def _plain(given):
    return (
        next(iter(given.values()))
        if len(given) == 1 and isinstance(next(iter(given.values())), str)
        else json.dumps(given)
    )


def at_an_action(suite):
    """The environment where gold calls a tool next, and that call."""
    env = make(suite.env)
    env.reset(seed=0, options={"task": suite_task(suite, Split.TRAIN, 0)})
    if not env.tools:
        pytest.skip("what it asks is answered in words")
    while True:
        said = env.gold(env.state)
        message = Message("assistant", said) if isinstance(said, str) else said
        calls = message.tool_calls or read_written(message.content, env.tools).calls
        if not calls and len(env.tools) == 1:  # words are what its one tool takes
            (name,) = env.tools[0].spec.argument_names
            calls = (ToolCall(env.tools[0].spec.name, {name: message.content}),)
        elif not calls and message.content.partition(" ")[0] in {one.spec.name for one in env.tools}:
            name, _, rest = message.content.removesuffix(" .").partition(" ")
            calls = read_written(f"{name}[{rest}]", env.tools).calls
        if calls:
            return env, calls[0]
        assert env.step(message).info["end"] is None


def after(env, start, message):
    env.restore(start)
    return env.step(message)


@pytest.mark.parametrize("suite", FAMILIES)
def test_an_action_is_the_same_in_every_notation(suite):
    env, call = at_an_action(suite)
    start, given = env.snapshot(), dict(call.arguments)
    native = after(env, start, Message("assistant", "", (ToolCall(call.name, given, "call_0"),)))
    assert not native.info["bad_action"]
    for notation, write in NOTATIONS.items():
        step = after(env, start, Message("assistant", write(call.name, given)))
        if step.info["bad_action"]:
            told = str(step.observation)
            assert f"{call.name}[" in told or f"{call.name}(" in told or "```" in told, (notation, told)
            continue
        same = (step.info["state_key"], step.info["end"], step.reward)
        assert same == (native.info["state_key"], native.info["end"], native.reward), (
            notation,
            str(step.observation),
        )


@pytest.mark.parametrize("suite", FAMILIES)
def test_too_many_actions_in_a_message_are_refused_alike(suite):
    """Where one is allowed; and many more than any family takes, everywhere."""
    env, call = at_an_action(suite)
    start, given = env.snapshot(), dict(call.arguments)
    key = start and env.state_key(env.state)
    calls = tuple(ToolCall(call.name, given, f"call_{n}") for n in range(40))
    step = after(env, start, Message("assistant", "", calls))
    assert step.info["bad_action"]
    assert "A turn takes" in str(step.observation)
    assert step.info["end"] is not EndReason.SOLVED
    for notation in ("hermes", "json", "python", "verb"):
        text = "\n".join([NOTATIONS[notation](call.name, given)] * 40)
        step = after(env, start, Message("assistant", text))
        assert step.info["bad_action"], notation
        assert "A turn takes" in str(step.observation), (notation, str(step.observation))
    assert env.state_key(start.state) == key


@pytest.mark.parametrize("name", ["toolworld/retail", "dialogue/social", "functioncall/single"])
def test_words_to_somebody_stay_words_and_a_call_that_cannot_be_read_does_not(name):
    (suite,) = (one for one in suites() if one.name == name)
    env = make(suite.env)
    env.reset(seed=0, options={"task": suite_task(suite, Split.TRAIN, 0)})
    start = env.snapshot()
    for text in ("Sure: one moment (or two), please.", "<think>Kind words.</think>Hello, how are you?"):
        assert not after(env, start, Message("assistant", text)).info["bad_action"], text
    (first, *_) = env.tools
    for text in (f"I do it now: {first.spec.name}(", '{"name": "nothing of ours", "arguments": {'):
        step = after(env, start, Message("assistant", text))
        assert step.info["bad_action"], text
        assert "cannot be read" in str(step.observation), (text, str(step.observation))


def renew(loan: str) -> str:
    """Renew a loan."""
    return loan


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("I will renew (loan L1). Shall I proceed?", True),
        ("renew(loan=L1", False),
        ("renew (loan: L1", True),
        ("renew (loan L1)", False),
        ("Sure: renew[L1] it is", False),
    ],
)
def test_a_name_in_a_sentence_is_no_call(text: str, words: bool) -> None:
    tools = [tool(renew)]
    if words:
        assert not calls_or_words(Message("assistant", text), tools, 4).calls
    else:
        with pytest.raises(ToolError, match="looks like a call"):
            calls_or_words(Message("assistant", text), tools, 4)


# --- every call is answered, or servers refuse the history ----------------------------------------


def open_calls(said, seen):
    return {call.id for call in said.tool_calls} - {one.tool_call_id for one in seen if one.role == "tool"}


@pytest.mark.parametrize("number", [2, 17])
@pytest.mark.parametrize("suite", FAMILIES)
def test_every_call_of_a_message_is_answered_by_its_id(suite, number):
    env = make(suite.env)
    env.reset(seed=0, options={"task": suite_task(suite, Split.TRAIN, 0)})
    mover, tools = env.agent, env.tools_for(env.agent)
    name = tools[0].spec.name if tools else "none"
    said = Message("assistant", "", tuple(ToolCall(name, {}, f"c{n}") for n in range(number)))
    step = env.step(said)
    seen = (*step.observation, *step.info.get("messages_to", {}).get(mover, ()))
    assert open_calls(said, seen) == set()
    assert [one.role for one in seen[:number]] == ["tool"] * number


class Bell(AgentEnv[int]):
    """Takes as many calls as are made; tells them all in one text, and hands the turn to the other."""

    tools = (tool(ring),)
    agents = ("one", "other")

    def initial(self, task):
        return 0, "Ring."

    def current_agent(self, state):
        return self.agents[state % 2]

    def transition(self, state, action):
        return Transition(state + 1, "They rang.")


def test_calls_are_answered_although_another_agent_moves_next():
    env = Bell()
    env.reset(seed=0, options={"task": Task("test/Bell-v0", "Ring.")})
    said = Message("assistant", "", (ToolCall("ring", {}, "a"), ToolCall("ring", {}, "b")))
    step = env.step(said)
    assert [one.role for one in step.observation] == ["user"]
    told = step.info["messages_to"]["one"]
    assert (open_calls(said, told), {one.content for one in told}) == (set(), {"Carried out."})


def test_the_checker_finds_calls_that_have_no_answer(monkeypatch):
    env = get_suite("calc/easy").env
    subject = Subject(env, env_class(env), 1, "calc/easy", FEW, [])
    assert "meaningless actions answered" in bad_actions(subject)
    monkeypatch.setattr("turnwise.envs.core._brief_answers", lambda calls, bad: iter(()))
    with pytest.raises(Broken, match="2 calls at once: 1 of the ids have no answer"):
        bad_actions(subject)
