"""Tasks, and suites that make as many of them as wanted.

A :class:`Task` is data only; its id is a hash of its content, so equal tasks are equal
everywhere and no two splits can share one unnoticed. A :class:`Suite` is a name for "tasks of this
environment, with these knobs", cut into disjoint splits.
"""

from __future__ import annotations

import enum
import functools
import hashlib
import json
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias, cast

from turnwise.errors import EnvError

Json: TypeAlias = Any
"""A value that ``json.dumps`` accepts: None, bool, int, float, str, list or dict of such."""


def canonical(value: Json) -> str:
    """The one JSON text of a value: sorted keys, no spaces, no NaN.

    >>> canonical({"b": 1, "a": [True, None]})
    '{"a":[true,null],"b":1}'
    """
    return _canonical(value)


def text_encoder(**options: Any) -> Callable[[Json], str]:
    """Return ``json.JSONEncoder(**options).encode``, which that class makes anew for each value: most of a short one's time.

    >>> text_encoder(separators=(",", ":"))({"a": (1, None)})
    '{"a":[1,null]}'
    """
    plain, parts = json.JSONEncoder(**options), cast("Any", json.encoder)
    if parts.c_make_encoder is None:
        return plain.encode
    words = parts.encode_basestring_ascii if plain.ensure_ascii else parts.encode_basestring
    signs = plain.key_separator, plain.item_separator
    flags = plain.sort_keys, plain.skipkeys, plain.allow_nan
    chunks = parts.c_make_encoder(None, plain.default, words, plain.indent, *signs, *flags)

    def encode(value: Json) -> str:
        try:
            return "".join(chunks(value, 0))
        except RecursionError:
            return plain.encode(value)  # which tells what holds itself from what is deep

    return encode


_canonical = text_encoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def digest(*parts: Json) -> str:
    """A 16-digit hexadecimal hash of JSON values, the same in every process.

    >>> digest("shop", 1) == digest("shop", 1) != digest("shop", 2)
    True
    """
    return hashlib.blake2b(canonical(parts).encode(), digest_size=8).hexdigest()


def derive_rng(*parts: Json) -> random.Random:
    """A random generator of its own for these names.

    Neighbouring seeds must not share items (``Random(seed + i)`` does), so the state is a hash of
    all the parts: ``derive_rng("turnwise/Shop-v0", "test", 7, index)``.
    """
    return random.Random(int.from_bytes(hashlib.sha256(canonical(parts).encode()).digest(), "big"))


class Split(enum.StrEnum):
    """A part of a suite. No task of one split occurs in another."""

    TRAIN = "train"
    DEV = "dev"
    TEST = "test"


@dataclass(frozen=True)
class Task:
    """One thing to do: which environment, what is asked, how it is set up, what solves it.

    ``options`` builds the initial state and is never shown to the policy, nor is ``gold``.
    """

    env: str
    prompt: str
    options: Mapping[str, Json] = field(default_factory=dict[str, Json])
    gold: Json = None

    def __post_init__(self) -> None:
        for name in ("env", "prompt"):
            if not isinstance(getattr(self, name), str):
                raise EnvError(
                    f"A task's {name} is {getattr(self, name)!r:.60}, which is no text.",
                    "Write Task(env_id, prompt, options, gold).",
                )
        try:
            self.id  # noqa: B018 (computed here, where its author's line is still on the stack)
        except (TypeError, ValueError) as error:
            raise EnvError(
                _no_json({"options": self.options, "gold": self.gold}) or f"{error}.", _AS_JSON
            ) from None

    @functools.cached_property
    def id(self) -> str:
        """The hash of the content."""
        return digest(self.env, self.prompt, dict(self.options), self.gold)

    def to_json(self) -> dict[str, Json]:
        return {"env": self.env, "prompt": self.prompt, "options": dict(self.options), "gold": self.gold}

    @staticmethod
    def from_json(data: Mapping[str, Json]) -> Task:
        return Task(data["env"], data["prompt"], data["options"], data["gold"])


_AS_JSON = "Tasks are data: text, numbers, lists and dicts with text as keys; a date is date.isoformat()."


def _no_json(value: Json, where: str = "") -> str:
    """Describe the part of a task that JSON cannot hold; empty where it can hold all."""
    if isinstance(value, Mapping):
        for key, inside in cast("Mapping[Any, Json]", value).items():
            at = f"{where}[{key!r}]" if where else str(key)
            wrong = _no_json(inside, at) if type(key) is str else f"A task's {at} has a key that is no text."
            if wrong:
                return wrong
        return ""
    if isinstance(value, (list, tuple)):
        items = enumerate(cast("Sequence[Json]", value))
        return next(filter(None, (_no_json(item, f"{where}[{n}]") for n, item in items)), "")
    try:
        canonical(value).encode()
    except (TypeError, ValueError):
        return f"A task's {where} is {value!r:.60} ({type(value).__name__}), which JSON cannot hold."
    return ""


@dataclass(frozen=True)
class Suite:
    """A named family of tasks: an environment and the knobs its generator is given.

    It can be asked for as many tasks as wanted. ``size`` says where they repeat: how many different ones 2,000
    training tasks are; None where tasks do not run out.

    A ``listed`` suite is a published list: it has ``size`` tasks in a given order, the same in each split, or as many as ``splits``
    says in splits that were published. Its generator is told the ``index`` of the one that is wanted, in its split.

    ``language`` says whether its test tasks are worded as no training task is: ``held out``, or in a line why they are
    not; empty where nobody has said.

    ``note`` is what is said beside all figures of it, such as that rows of its file cannot be read.

    ``planted`` says what its tasks are planted as (``impossible`` or ``canary``, envs/planted.py); empty: they are ordinary ones.

    Task ``index`` of a split is a function of (name, split, index) alone, so two people who evaluate
    on the first 200 test tasks evaluate on the same 200.
    """

    name: str
    env: str
    about: str
    knobs: Mapping[str, Json] = field(default_factory=dict[str, Json])
    size: int | None = None
    listed: bool = False
    language: str = ""
    planted: Literal["", "impossible", "canary"] = ""
    note: str = ""
    splits: Mapping[str, int] = field(default_factory=dict[str, int])

    def length(self, split: Split) -> int | None:
        """The number of tasks of a split of a published list; None where tasks are drawn.

        Raises:
            EnvError: none were published in this split.
        """
        if not self.listed:
            return None
        found = self.splits.get(split.value, 0) if self.splits else self.size
        if found == 0:
            known = ", ".join(f"{name} {n}" for name, n in self.splits.items() if n)
            raise EnvError(f"{self.name} has no {split.value} tasks.", f"Published are: {known or 'none'}.")
        return found

    def rng(self, split: Split, index: int) -> random.Random:
        """The generator from which task ``index`` of ``split`` is made."""
        return derive_rng(self.name, split.value, index)
