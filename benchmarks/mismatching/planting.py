"""Logs with one fault each, whose kind, size and place are drawn from a seed; written from docs/how-to/mismatch.md alone."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple

import torch
from mismatching.core import FAULTS, PlantedLog
from mismatching.playing import Episode, Place, Size, Wrong, play
from mismatching.sampling import Engine, Settings, expected, in_dtype, sample
from mismatching.talk import Change, Reader, end_id, question
from mismatching.weights import Probe, adapted, in_fewer_bits, large, moved

TRIES = 12
LEAST_GAP, LEAST_TOKENS, LEAST_ALL, LEAST_ROWS, LEAST_ENDS = 0.02, 200, 400, 8, 8


class Drawn(NamedTuple):
    """A log that is about to be played."""

    size: Size
    right: Engine
    wrong: Wrong
    place: Place
    told: Mapping[str, Any]
    older: Any = None


class NotPlanted(Exception):
    """A drawing of which no fault came that can be felt; the next one is tried."""


def plant(model: Any, tokenizer: Any, seed: int, fault: str) -> PlantedLog:
    """Draw a log with this fault.

    Raises:
        ValueError: there is no such fault, or none of a dozen drawings could be felt with this model.
    """
    if fault not in FAULTS:
        raise ValueError(f"{fault!r} is none of {', '.join(FAULTS)}")
    why = ""
    for attempt in range(TRIES):
        rng = random.Random(f"{fault}/{seed}/{attempt}")
        torch.manual_seed(rng.getrandbits(40))
        try:
            return _planted(model, tokenizer, fault, rng)
        except NotPlanted as error:
            why = str(error)
    raise ValueError(f"{fault} cannot be planted with seed {seed}: {why}")


def _planted(model: Any, tokenizer: Any, fault: str, rng: random.Random) -> PlantedLog:
    probe = _probe(model, tokenizer, rng)
    trainer, base, steps = model, None, 0
    if fault == "missing_adapter" or (fault != "stale_weights" and rng.random() < 0.2):
        trainer, steps = adapted(model, tokenizer, probe, 10 ** rng.uniform(-1.4, -0.2), rng)
        base = model
    drawn = _draw(trainer, base, tokenizer, fault, probe, rng)
    context = int(getattr(model.config, "max_position_embeddings", 1024))
    played = play(drawn.size, drawn.right, drawn.wrong, drawn.place, tokenizer, context, rng)
    if sum(len(t.ids) for e in played for t in e.turns) < LEAST_ALL:
        raise NotPlanted("too few tokens were sampled")
    _require_felt(played, fault, trainer, drawn)
    also = _also(model, tokenizer, fault, probe, drawn, rng)
    rows, places = _rows(played, drawn, tokenizer, rng)
    begins = None
    if fault != "none":
        flagged = ((row, turn, t) for row, turn, flags in places for t, faulty in enumerate(flags) if faulty)
        begins = next(flagged)
    place = {"turn": drawn.place.turn, "token": drawn.place.token, "episodes": sorted(drawn.place.episodes)}
    size = {**drawn.size._asdict(), "adapter_steps": steps}
    return PlantedLog(rows, trainer, base, also, begins, {**drawn.told, "place": place, **size})


def _probe(model: Any, tokenizer: Any, rng: random.Random) -> Probe:
    draws = torch.Generator().manual_seed(rng.getrandbits(40))
    reader = Reader(tokenizer)
    prompts = [reader.before([{"role": "user", "content": question(rng)}], 0, False) for _ in range(6)]
    replies = sample(Engine(model), prompts, [end_id(tokenizer)], [24] * len(prompts), draws)
    return Probe(prompts, replies)


def _draw(trainer: Any, base: Any, tokenizer: Any, fault: str, probe: Probe, rng: random.Random) -> Drawn:
    """Draw the whole of a log: how much, with which settings, the fault's kind, size and place."""
    turns = rng.randint(2, 8) if fault == "retokenized_history" else rng.randint(1, 8)
    most, sampled = rng.choice([12, 16, 24, 32]), rng.uniform(500, 1500)
    if large(trainer):
        turns, sampled = (turns + 1) // 2 + (turns == 2), 500 + (sampled - 500) / 5
    episodes = min(64, max(LEAST_ROWS, round(sampled / (turns * most * 0.7))))
    calls = turns > 1 and rng.random() < 0.3
    if calls:
        episodes = max(3, min(episodes, 64 // turns))
    declared = _declared(fault, rng)
    mode: Literal["raw", "processed"] = rng.choice(["raw", "processed"])
    dtype = rng.choice([torch.float32, torch.float32, torch.bfloat16, torch.float16])
    reader = Reader(tokenizer)
    right = Engine(in_dtype(trainer, dtype), declared, mode)
    place = _place(episodes, turns, most, fault, rng)
    wrong, told, older = Wrong(right, reader, reader), {}, None
    if fault == "stale_weights":
        size = 10 ** rng.uniform(-1.4, -0.3)
        older, steps = moved(trainer, tokenizer, probe, size, rng)
        wrong = wrong._replace(engine=right._replace(model=in_dtype(older, dtype)))
        told = {"steps": steps, "gap": size}
    elif fault == "missing_adapter":
        wrong = wrong._replace(engine=right._replace(model=in_dtype(base, dtype)))
    elif fault == "quantized_engine":
        ours = probe.told(trainer)
        for rounded, kind in in_fewer_bits(right.model, rng):
            if probe.gap(ours, rounded) >= 1.3 * LEAST_GAP:
                wrong, told = wrong._replace(engine=right._replace(model=rounded)), {"kind": kind}
                break
        else:
            raise NotPlanted("no format of fewer bits is felt")
    elif fault in ("temperature", "truncated_sampling"):
        settings = _undeclared(fault, declared, rng)
        wrong, told = wrong._replace(engine=right._replace(settings=settings)), settings._asdict()
    elif fault == "wrong_template":
        wrong, place, told = _templates(wrong, place, tokenizer, rng)
    elif fault == "retokenized_history":
        rewrite = "row has others" if calls and rng.random() < 0.6 else "engine read others"
        wrong = wrong._replace(rewrite=rewrite, strip=rng.random() < 0.5)
        told = {"rewrite": rewrite, "strip": wrong.strip}
    elif fault == "wrong_end_token":
        ending = rng.choice(["stops elsewhere", "cut off", "put there"])
        wrong = wrong._replace(ending=ending, stop=_other_stop(probe, tokenizer, rng))
        told = {"ending": ending, "stop": wrong.stop}
    told = {**told, "mode": mode, "dtype": str(dtype), "declared": declared._asdict()}
    return Drawn(Size(episodes, turns, most, calls), right, wrong, place, told, older)


def _declared(fault: str, rng: random.Random) -> Settings:
    """Settings that the log states; where the fault is one of settings the rest is usual more often."""
    settings = Settings()
    if rng.random() < (0.2 if fault == "temperature" else 0.4):
        settings = settings._replace(temperature=rng.choice([0.7, 0.8, 1.2, 1.3]))
    if fault not in ("truncated_sampling", "temperature") and rng.random() < 0.3:
        settings = settings._replace(
            **rng.choice([{"top_p": 0.9}, {"top_p": 0.95}, {"top_k": 20}, {"min_p": 0.05}])
        )
    return settings


def _undeclared(fault: str, declared: Settings, rng: random.Random) -> Settings:
    if fault == "temperature":
        factor = rng.choice([rng.uniform(0.5, 0.85), rng.uniform(1.15, 1.6)])
        settings = declared._replace(temperature=round(declared.temperature * factor, 2))
        if 0.9 <= settings.temperature <= 1.1:
            raise NotPlanted("the temperature is near 1")
        return settings
    cuts = [
        {"top_p": round(rng.uniform(0.7, 0.97), 2)},
        {"top_k": rng.choice([3, 5, 10, 20, 40])},
        {"min_p": round(rng.uniform(0.02, 0.2), 2)},
    ]
    return declared._replace(**rng.choice(cuts))


def _place(episodes: int, turns: int, most: int, fault: str, rng: random.Random) -> Place:
    everyone = frozenset(range(episodes))
    kinds = ["all", "all", "some", "from a row", "from a turn", "from a token"]
    if fault == "retokenized_history":
        kinds = ["all", "some", "from a turn"]
    kind = rng.choice(kinds)
    if kind == "some":
        return Place(frozenset(n for n in everyone if rng.random() < 0.6) or everyone)
    if kind == "from a row":
        return Place(frozenset(range(rng.randint(1, max(1, episodes // 2)), episodes)) or everyone)
    if kind == "from a turn" and turns > 1:
        return Place(everyone, rng.randint(1, max(1, turns // 2)))
    if kind == "from a token" and fault in ("stale_weights", "missing_adapter", "quantized_engine"):
        return Place(everyone, rng.randint(0, turns // 2), rng.randint(1, most // 2))
    return Place(everyone)


def _templates(
    wrong: Wrong, place: Place, tokenizer: Any, rng: random.Random
) -> tuple[Wrong, Place, dict[str, Any]]:
    kind = rng.choice(
        ["roles", "other marks", "system dropped", "system replaced", "no opening", "one more", "one less"]
    )
    of_start = kind not in ("roles", "other marks", "no opening")
    place = Place(place.episodes, 0 if of_start else place.turn)
    change: Change | None = None
    if kind == "roles":
        change = _renamed
    elif kind == "other marks":
        marks = [mark for mark in tokenizer.all_special_tokens if mark]
        change = lambda piece: _remarked(piece, marks)
    system = {
        "system dropped": "",
        "system replaced": rng.choice(["You are a pirate.", "Always answer in French."]),
    }
    other = Reader(
        tokenizer,
        change,
        system.get(kind),
        kind != "no opening",
        {"one more": 1, "one less": -1}.get(kind, 0),
        place.turn,
    )
    in_the_row = rng.random() < 0.25
    writer = other if in_the_row else wrong.writer
    told = {"kind": kind, "in the row": in_the_row}
    return wrong._replace(reader=other, writer=writer, in_the_row=in_the_row), place, told


def _renamed(piece: str) -> str:
    return piece.replace("assistant", "bot").replace("user", "human").replace("system", "context")


def _remarked(piece: str, marks: Sequence[str]) -> str:
    for mark in marks:
        piece = piece.replace(mark, "\n### ")
    return piece


def _other_stop(probe: Probe, tokenizer: Any, rng: random.Random) -> int:
    """Another special token, which hardly comes, or one that is common in what the model says."""
    end = end_id(tokenizer)
    special = [i for i in tokenizer.all_special_ids if i != end]
    said = [t for reply in probe.replies for t in reply.ids if t != end]
    common = sorted({*said}, key=lambda t: (-said.count(t), t))[:8]
    return rng.choice(special if special and rng.random() < 0.5 else common)


def _require_felt(played: Sequence[Episode], fault: str, trainer: Any, drawn: Drawn) -> None:
    """Refuse a log whose fault is too small or too rare to be one."""
    if fault == "none":
        return
    touched = [e for e in played if any(any(t.faulty) for t in e.turns)]
    if fault == "wrong_end_token":
        if sum(any(t.faulty) for e in played for t in e.turns) < LEAST_ENDS:
            raise NotPlanted("too few turns end otherwise")
        return
    if fault == "retokenized_history" and len(touched) < 3:
        raise NotPlanted("too few replies come back as other tokens")
    faulty = sum(sum(t.faulty) for e in touched for t in e.turns)
    if faulty < LEAST_TOKENS:
        raise NotPlanted("too few tokens are touched")
    if drawn.wrong.in_the_row:
        return
    cut = [c for e in touched for t in e.turns for c, f in zip(t.cut, t.faulty, strict=True) if f]
    if fault == "truncated_sampling" and sum(cut) / len(cut) < 0.01:
        raise NotPlanted("too little is cut off")
    if drawn.right.mode == "raw" and fault in ("temperature", "truncated_sampling"):
        return
    believed = Engine(trainer, drawn.right.settings, drawn.right.mode)
    gaps: list[float] = []
    for episode in touched:
        for before, turn in zip(episode.before, episode.turns, strict=True):
            if any(turn.faulty):
                row = [*before, *turn.ids]
                ours = expected(believed, row, [(len(before), len(row))])
                told = zip(ours, turn.logprobs, turn.faulty, strict=True)
                gaps += [min(abs(a - (b or 0.0)), 20.0) for a, b, faulty in told if faulty]
    if sum(gaps) / len(gaps) < LEAST_GAP:
        raise NotPlanted("the difference is too small")


def _also(
    model: Any, tokenizer: Any, fault: str, probe: Probe, drawn: Drawn, rng: random.Random
) -> dict[str, Any]:
    names = iter(rng.sample(["step-10", "step-20", "step-30", "step-40"], 4))
    also: dict[str, Any] = {}
    if fault == "stale_weights" and rng.random() < 0.5:
        also[next(names)] = drawn.older
    if rng.random() < 0.3:
        also[next(names)] = moved(model, tokenizer, probe, 10 ** rng.uniform(-1.3, -0.3), rng)[0]
    return also


def _rows(
    played: Sequence[Episode], drawn: Drawn, tokenizer: Any, rng: random.Random
) -> tuple[list[dict[str, Any]], list[tuple[int, int, list[bool]]]]:
    """The log's lines, and of each reply its row, its turn in the row and its tokens that the fault changes."""
    told = _settings_told(drawn, rng)
    talk = rng.random() < 0.5 or drawn.wrong.in_the_row
    form, whole = rng.choice(["sampled", "mask", "completion"]), rng.random() < 0.3
    decimals = rng.choice([None, None, 4, 6])
    rows: list[dict[str, Any]] = []
    places: list[tuple[int, int, list[bool]]] = []
    for episode in played:
        for ids, turns, own in _parts(episode, drawn.size.calls):
            spans = [(t.start if not drawn.size.calls else len(ids) - len(t.ids)) for t in turns]
            row = _row(
                ids,
                [(s, s + len(t.ids)) for s, t in zip(spans, turns, strict=True)],
                turns,
                form,
                whole,
                decimals,
            )
            places += [(len(rows), n, t.faulty) for n, t in enumerate(turns)]
            row |= {"episode": f"e{episode.number}", **own, **told}
            if talk:
                row["messages"] = _until(episode, own.get("turn"))
            rows.append(row)
    return rows, places


def _parts(episode: Episode, calls: bool) -> Iterator[tuple[list[int], list[Any], dict[str, Any]]]:
    if not calls:
        yield [*episode.row], episode.turns, {}
        return
    for number, (before, turn) in enumerate(zip(episode.before, episode.turns, strict=True)):
        yield [*before, *turn.ids], [turn], {"turn": number}


def _until(episode: Episode, turn: int | None) -> list[dict[str, str]]:
    """The conversation up to a call's reply, or all of it; a question that was not answered is left out."""
    replies = [n for n, m in enumerate(episode.messages) if m["role"] == "assistant"]
    return episode.messages[: replies[-1 if turn is None else turn] + 1]


def _row(
    ids: list[int],
    spans: Sequence[tuple[int, int]],
    turns: Sequence[Any],
    form: str,
    whole: bool,
    decimals: int | None,
) -> dict[str, Any]:
    logprobs = [x if decimals is None or x is None else round(x, decimals) for t in turns for x in t.logprobs]
    first = spans[0][0] if form == "completion" else 0
    length = len(ids) - first
    mask = [0] * length
    for start, end in spans:
        mask[start - first : end - first] = [1] * (end - start)
    if whole:
        told = iter(logprobs)
        logprobs = [next(told) if sampled else None for sampled in mask]
    where: dict[str, Any] = {"token_ids": ids}
    if form == "completion":
        where = {"prompt_ids": ids[:first], "completion_ids": ids[first:]}
    adjacent = any(a[1] == b[0] for a, b in itertools.pairwise(spans))
    if form == "sampled" or adjacent:
        return {**where, "sampled": [[s - first, e - first] for s, e in spans], "logprobs": logprobs}
    return {**where, "mask": mask, "logprobs": logprobs}


def _settings_told(drawn: Drawn, rng: random.Random) -> dict[str, Any]:
    usual, told = Settings()._asdict(), {}
    everything = rng.random() < 0.3
    for name, value in drawn.right.settings._asdict().items():
        if value != usual[name] or everything:
            told[name] = value or (None if name == "top_k" else value)
    if rng.random() < 0.5:
        told["logprobs_mode"] = drawn.right.mode
    return {name: value for name, value in told.items() if value is not None}
