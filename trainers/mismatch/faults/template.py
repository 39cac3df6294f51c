"""A prompt that another chat template wrote than the model's, or than the row's."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from turnwise.trainers.mismatch.case import MismatchCase
from turnwise.trainers.mismatch.core import Explanation, FaultPlace, Floats, LoggedRow, detects
from turnwise.trainers.mismatch.templates import EARLIER, FORMS, SYSTEMS, OwnTemplate, text_of

PROMISING, ROWS, MORE_ROWS = 12, 3, 12
"""All other prompts are tried on one row; so many of them on more, and the best on most."""
HEADINGS = (
    "\n",
    "\n\n",
    " ",
    "#",
    "# ",
    "\n# ",
    "## ",
    "\n## ",
    "### ",
    "\n### ",
    "\n\n### ",
    "* ",
    "\n- ",
    "---\n",
)
"""Texts that stand for control tokens in templates of models without them."""
SURE = 1000.0
"""Evidence of what the ids alone say."""


@detects(cost=4)
def template(case: MismatchCase) -> Iterator[Explanation]:
    """Read turns after prompts that other templates would have written, and compare the row's with the model's own."""
    yield from _of_ids(case)
    turns = _turns(case)
    if not turns:
        return
    kinds, known = dict(_prompts(case, turns[:ROWS])), dict[OtherPrompt, Floats]()
    if not kinds:
        return

    def left(words: str, rows: int) -> float:
        expected_N = _read(case, kinds[words][:rows], known)
        return case.left(expected_N, np.isfinite(expected_N))

    promising = sorted(kinds, key=lambda words: left(words, 1))[:PROMISING]
    words = min(promising, key=lambda words: left(words, ROWS))
    again = next(prompts for name, prompts in _prompts(case, turns[:MORE_ROWS]) if name == words)
    yield Explanation(
        "wrong_template", f"the engine read {words}", _read(case, again, known), data={"prompt": words}
    )


class AffectedTurn(NamedTuple):
    """The first turn of a row that differs from the model: its number, and its place in the case."""

    row: int
    turn: int


class OtherPrompt(NamedTuple):
    """A turn after another prompt."""

    at: AffectedTurn
    ids: tuple[int, ...]


def _turns(case: MismatchCase) -> list[AffectedTurn]:
    """The first affected turn of each row that is affected, those of few tokens first."""
    first: dict[int, int] = {}
    for n in np.flatnonzero(case.affected_N & case.known_N):
        first.setdefault(int(case.row_N[n]), int(case.turn_N[n]))
    found = [AffectedTurn(row, turn) for row, turn in first.items()]
    return sorted(found, key=lambda one: case.rows[one.row].turns[one.turn][0])


def _read(case: MismatchCase, prompts: Sequence[OtherPrompt], known: dict[OtherPrompt, Floats]) -> Floats:
    """Log-probabilities that turns have after other prompts, those aside that are known; NaN elsewhere."""
    expected_N = np.full(len(case.row_N), np.nan)
    for prompt in prompts:
        (row, turn), ids = prompt
        if prompt not in known:
            known[prompt] = case.after(ids, row, turn)
        expected_N[case.of_turn(row, turn)] = known[prompt]
    return expected_N


def _prompts(case: MismatchCase, turns: Sequence[AffectedTurn]) -> Iterator[tuple[str, list[OtherPrompt]]]:
    """Each kind of other prompt in words, with the prompts that it makes of turns."""
    kinds: dict[str, list[OtherPrompt]] = {}
    own = OwnTemplate(case.models.tokenizer)
    for at in turns:
        row = case.rows[at.row]
        before = row.ids[: row.turns[at.turn - 1][1]] if at.turn else ()
        piece = row.ids[len(before) : row.turns[at.turn][0]]
        for words, other in (*_cut(own, piece), *_written(own, row, at.turn)):
            ids = (*before, *other)
            if ids and other != piece:
                kinds.setdefault(words, []).append(OtherPrompt(at, ids))
    yield from kinds.items()


def _cut(own: OwnTemplate, piece: tuple[int, ...]) -> Iterator[tuple[str, tuple[int, ...]]]:
    """The prompt with a few tokens more or less."""
    tokenizer = own.tokenizer
    yield "a prompt without its first token", piece[1:]
    yield "a prompt without its last token", piece[:-1]
    special = {tokenizer.bos_token_id, tokenizer.eos_token_id, tokenizer.pad_token_id} - {None}
    for one in sorted(special):
        yield f"a prompt that begins with {tokenizer.convert_ids_to_tokens(one)}", (one, *piece)
        yield f"a prompt that ends in {tokenizer.convert_ids_to_tokens(one)}", (*piece, one)
    yield "a prompt whose first token stands twice", (*piece[:1], *piece)
    opening = own.encode(own.opening)
    if opening and piece[-len(opening) :] == opening:
        yield "a prompt without the opening of the reply", piece[: -len(opening)]
        yield "a prompt with two openings of the reply", (*piece, *opening)
        text = own.opening
        for change in (text.rstrip(), f"{text}\n", f"{text} "):
            if change != text:
                yield (
                    f"a prompt that ends in {change[-12:]!r}",
                    (*piece[: -len(opening)], *own.encode(change)),
                )
    else:
        yield "a prompt with the opening of the reply", (*piece, *opening)
    text = str(tokenizer.decode(list(piece), skip_special_tokens=False))
    yield "a prompt whose control tokens are plain text", _plain(tokenizer, text)
    yield "a prompt that was encoded again from text", own.encode(text)
    yield (
        "a prompt without control tokens",
        own.encode(str(tokenizer.decode(list(piece), skip_special_tokens=True))),
    )
    yield from _other_marks(own, text)
    for one, other in (("user", "human"), ("assistant", "model"), ("assistant", "gpt"), ("assistant", "bot")):
        if one in text:
            yield f"a prompt that says {other} for {one}", own.encode(text.replace(one, other))
    if "user" in text or "assistant" in text:
        yield (
            "a prompt that says human and model",
            own.encode(text.replace("user", "human").replace("assistant", "model")),
        )
        yield (
            "a prompt that says human and gpt",
            own.encode(text.replace("user", "human").replace("assistant", "gpt")),
        )


def _other_marks(own: OwnTemplate, text: str) -> Iterator[tuple[str, tuple[int, ...]]]:
    """The prompt with headings, breaks or spaces where control tokens stand, as a template writes it that was made for a model without them."""
    marks = [one for one in own.tokenizer.all_special_tokens if one and one in text]
    for other in HEADINGS if marks else ():
        changed = text
        for mark in marks:
            changed = changed.replace(mark, other)
        yield f"a prompt with {other!r} for control tokens", own.encode(changed)


def _plain(tokenizer: Any, text: str) -> tuple[int, ...]:
    try:
        return tuple(tokenizer.encode(text, add_special_tokens=False, split_special_tokens=True))
    except (TypeError, ValueError, NotImplementedError):
        return ()


def _written(own: OwnTemplate, row: LoggedRow, turn: int) -> Iterator[tuple[str, tuple[int, ...]]]:
    """The prompt as other templates write its messages, with and without a system prompt."""
    messages = _messages(own, row, turn)
    if not messages:
        return
    talk = [one for one in messages if one.get("role") != "system"]
    ended = turn > 0 and row.ids[row.turns[turn - 1][1] - 1]
    if not turn:
        systems = {"": None, **{one: one for one in SYSTEMS}}
        for words, system in systems.items():
            said = talk if system is None else [{"role": "system", "content": system}, *talk]
            text = own.render(said, row.tools)
            if text is not None:
                told = f"the system prompt {words!r}" if words else "no system prompt of its own"
                yield f"a prompt with {told}", own.encode(text)
        bare = own.render(talk, None)
        if bare is not None and row.tools:
            yield "a prompt without tools", own.encode(bare)
        inside = [{"role": "user", "content": "\n\n".join(map(text_of, messages))}]
        text = own.render(inside, row.tools)
        if text is not None and len(messages) > 1:
            yield "a prompt with the system's words in the user's", own.encode(text)
        stripped = own.render([dict(one) | {"content": text_of(one).strip()} for one in messages], row.tools)
        if stripped is not None:
            yield "a prompt whose words are stripped", own.encode(stripped)
    for form in FORMS:
        for said in [messages, talk] if len(talk) < len(messages) else [messages]:
            without = " and no system prompt" if said is talk and len(talk) < len(messages) else ""
            text = form.written(said)
            starts = ("", form.start) if not turn else ("", form.after_reply)
            for start in dict.fromkeys(starts):
                more = f" after {start!r}" if start else ""
                yield f"the template {form.name}{more}{without}", own.encode(start + text)
    del ended


def _messages(own: OwnTemplate, row: LoggedRow, turn: int) -> list[dict[str, Any]] | None:
    """The messages between a turn and the one before."""
    if row.messages is not None:
        places = [-1, *(i for i, one in enumerate(row.messages) if one.get("role") == "assistant")]
        places = places[len(places) - len(row.turns) - 1 :] if len(places) > len(row.turns) else []
        if places and (turn or places[0] == -1):
            return [dict(one) for one in row.messages[places[turn] + 1 : places[turn + 1]]]
    return own.read(row, turn)


def _of_ids(case: MismatchCase) -> Iterator[Explanation]:
    """Compare what stands before each turn with what the model's template writes for the row's messages."""
    own = OwnTemplate(case.models.tokenizer)
    wrong, first, told, seen = 0, None, "", 0
    for row in case.rows:
        if row.messages is None:
            continue
        texts = own.between(row.messages, row.tools, len(row.turns))
        if texts is None:
            continue
        seen += 1
        for turn, (piece, text) in enumerate(zip(row.pieces, texts, strict=False)):
            if not _same(own, row, turn, piece, text):
                wrong += 1
                if first is None:
                    first = FaultPlace(row.number, turn + (row.turn or 0), 0)
                    found = str(own.tokenizer.decode(list(piece), skip_special_tokens=False))
                    told = f"the row has {_differing(found, text)!r} where the model's template writes {_differing(text, found)!r}"
                break
    if wrong:
        yield Explanation(
            "wrong_template", f"{told}, in {wrong} of {seen} rows with messages", evidence=SURE, begins=first
        )


def _same(own: OwnTemplate, row: LoggedRow, turn: int, piece: tuple[int, ...], text: str) -> bool:
    """Say whether a piece says what the template writes; it may lack the end of the reply before, which was sampled."""
    found = str(own.tokenizer.decode(list(piece), skip_special_tokens=False))
    if found == text:
        return own.encode(text) == piece or bool(turn)
    if not turn:
        return EARLIER in text and _holds(found, text.split(EARLIER))
    last = str(own.tokenizer.decode([row.ids[row.turns[turn - 1][1] - 1]], skip_special_tokens=False))
    return text.endswith(found) and text[: len(text) - len(found)].strip() in ("", last.strip())


def _holds(found: str, parts: Sequence[str]) -> bool:
    """Say whether a text begins with the first part, ends in the last and has the others in their order between.

    >>> _holds("<u>hi<a>ho<e><u>so<a>", ["<u>hi<a>", "<u>so<a>"]), _holds("<u>hi<a>ho", ["<u>hi<a>", "<u>so<a>"])
    (True, False)
    """
    first, *others, last = parts
    at = len(first)
    for part in others:
        place = found.find(part, at)
        if place < 0:
            return False
        at = place + len(part)
    return found.startswith(first) and found.endswith(last) and at <= len(found) - len(last)


def _differing(one: str, other: str) -> str:
    """The part of a text around where it leaves another."""
    same = next(
        (i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other))
    )
    return one[max(0, same - 8) : same + 24]
