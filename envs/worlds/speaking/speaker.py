"""Somebody who can be asked for the words of a person, by a spec; asked again when it is off its script."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import NamedTuple

from turnwise.envs.messages import Message
from turnwise.envs.worlds.speaking import VARIABLE, default_spec
from turnwise.envs.worlds.speaking.client import ChatServer, message_json
from turnwise.envs.worlds.speaking.offscript import KEPT, Examined
from turnwise.envs.worlds.speaking.record import AnswerRecord, default_path, key_of
from turnwise.errors import EnvError, InfraError
from turnwise.secrets import redact
from turnwise.tasks.core import Json
from turnwise.tools.core import Tool

TRIES = 3
"""Most answers asked of a model that does not stay in its role."""
_MOST_TOKENS = 512
_VLLM = "http://127.0.0.1:8000/v1"
_OPENAI = "https://api.openai.com/v1"
_FORMS = "openai:MODEL@URL, vllm:MODEL (a `vllm serve` at port 8000) or vllm:MODEL@URL, or recorded:FILE"


class Spoken(NamedTuple):
    """Message said (or done, by calls) in the end, and what had to be put right on the way, by name."""

    message: Message
    repairs: tuple[str, ...] = ()


class Speaker:
    """A model that plays a person, with the record of its answers.

    Args:
        who: its name, in messages and in the record.
        record: where its answers are kept.
        server: who is asked for what is not in the record; None: nobody.
        model: its name at the server.
    """

    def __init__(
        self, who: str, record: AnswerRecord, server: ChatServer | None = None, model: str = ""
    ) -> None:
        self.who, self.record, self.server, self.model = who, record, server, model

    def ask(
        self,
        script: str,
        talk: Sequence[Message],
        examine: Callable[[Message], Examined],
        tools: Sequence[Tool] = (),
        *,
        instead: str = "",
    ) -> Spoken:
        """The person's next words, or calls of ``tools``.

        Args:
            script: the system message: whom it plays.
            talk: the conversation as it sees it; ``user`` is who speaks to it.
            examine: what of a message counts, or what is wrong with it.
            tools: what the person can do.
            instead: what is said for a model that, ``TRIES`` times, said something that is not for the other's ears
                (offscript.KEPT): the other side may have brought it to that, and must not get out of the episode so.

        Raises:
            InfraError: the server failed, or the model left its script ``TRIES`` times in another way.
        """
        first = [{"role": "system", "content": script}, *map(message_json, talk)]
        again: list[dict[str, Json]] = []
        repairs: list[str] = []
        last = ""
        for _ in range(TRIES):
            found = examine(self._answer([*first, *again], tools))
            repairs += found.repairs
            if not found.fault:
                return Spoken(found.message, tuple(repairs))
            last = found.fault
            repairs.append(last)
            again = [{"role": "system", "content": found.remedy}]
        if instead and last in KEPT:
            return Spoken(Message("assistant", instead), (*repairs, "replaced"))
        raise InfraError(
            f"The model {self.who} did not stay in its role: {', '.join(repairs)}.",
            "Use a stronger model, or read what it said in its record: " + str(self.record.path),
        )

    def _answer(self, messages: list[dict[str, Json]], tools: Sequence[Tool]) -> Message:
        body: dict[str, Json] = {
            "model": self.model, "messages": messages, "temperature": 0, "max_tokens": _MOST_TOKENS,
        }  # fmt: skip
        if tools:
            body["tools"] = [made.spec.to_json() for made in tools]
        key = key_of(body)
        known = self.record.find(key)
        if known is not None:
            return known
        if self.server is None:
            raise InfraError(
                f"{self.record.path} has no answer to this.",
                "Play with the model that made the record, or the same words.",
            )
        return self.record.keep(key, self.server.complete(body))


def speaker_of(spec: str, record: str = "") -> Speaker:
    """The speaker that a spec names.

    Args:
        spec: ``openai:MODEL@URL``, ``vllm:MODEL``, ``vllm:MODEL@URL`` or ``recorded:FILE``.
        record: the file of its answers; the default is in the cache folder, one for each spec.

    Raises:
        EnvError: it names no speaker.
    """
    kind, _, rest = spec.partition(":")
    if kind == "recorded" and rest:
        return Speaker(spec, AnswerRecord(rest, ""))
    model, _, url = rest.partition("@")
    if (
        kind not in ("openai", "vllm")
        or not model
        or (url and not url.startswith(("http://", "https://", "${")))
    ):
        raise EnvError(f"{redact(spec)!r} names nobody who could speak.", f"Write {_FORMS}.")
    who = redact(f"{kind}:{model}")
    url = url or (_VLLM if kind == "vllm" else _OPENAI)
    return Speaker(who, AnswerRecord(record or default_path(redact(spec)), who), ChatServer(url), model)


@functools.lru_cache(maxsize=16)
def shared_speaker(spec: str, record: str = "") -> Speaker:
    """The same speaker for the same spec, so that environments of a process share what is known."""
    return speaker_of(spec, record)


def check_player(who: str, what: str) -> str:
    """An environment's option for who plays somebody: "", ``scripted``, ``agent`` or a spec.

    Raises:
        EnvError: it is none of these.
    """
    if who and who not in ("scripted", "agent"):
        try:
            speaker_of(who)
        except EnvError as error:
            raise EnvError(f"{what}: {error.cause}", f"Write scripted, agent, {_FORMS}.") from None
    return who


def player(who: str, record: str, what: str) -> Speaker | None:
    """The language model that plays somebody: of a spec, or for ``model`` the one that ``TURNWISE_SPEAKER`` names.

    Raises:
        EnvError: a model is wanted, and none is named.
    """
    if who in ("scripted", "agent"):
        return None
    spec = who if who != "model" else default_spec()
    if not spec:
        raise EnvError(
            f"A language model must play the {what} of this task.",
            f"Give the environment the option {what} ({_FORMS}), or export {VARIABLE}.",
        )
    return shared_speaker(spec, record)


def is_spec(text: str) -> bool:
    """Say whether a text has the form of a speaker's spec.

    >>> is_spec("openai:m@http://h/v1"), is_spec("agent")
    (True, False)
    """
    return text.partition(":")[0] in ("openai", "vllm", "recorded") and ":" in text
