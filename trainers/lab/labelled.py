"""Label the turns of an episode log by a judge, so that judges can be trained on it: the log again, with the judge's signals.

python -m turnwise.trainers.lab.labelled LOG OUT                                        # by gold: which turns were wrong
python -m turnwise.trainers.lab.labelled LOG OUT --judge critic --options '{"policy": "openai:MODEL"}'

``judging:step:OUT`` and ``judging:first:OUT`` then ask about these turns (envs/judging). A judge that compares sees the
episodes of a task together, whatever their order in the log.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from turnwise.agents.core import Episode
from turnwise.agents.log.episodes import load_episodes
from turnwise.agents.log.records import to_line
from turnwise.durable import write_whole
from turnwise.errors import TurnwiseError
from turnwise.frames import frames_of
from turnwise.registry import get_component
from turnwise.trainers.core import Group
from turnwise.trainers.kit.asking import judged_now, made_judge


def labelled(
    log: Path | str, out: Path | str, judge: str = "gold", options: Mapping[str, Any] | None = None
) -> int:
    """Write the log anew with a judge's signals beside its turns; return how many episodes were labelled.

    Episodes that failed for reasons that are not the agent's are left out.

    Raises:
        TurnwiseError: the log is missing or damaged, or the new one exists.
    """
    out = Path(out)
    if out.exists():
        raise TurnwiseError(f"{out} exists.", "Choose another file.")
    records = [
        one
        for one in load_episodes(log).records
        if one.episode.outcome.counts and one.episode.trajectory.turns
    ]
    told = judged([one.episode for one in records], judge, options or {})
    lines = (
        f"{to_line(dataclasses.replace(record, episode=episode))}\n".encode()
        for record, episode in zip(records, told, strict=True)
    )
    write_whole(out, b"".join(frames_of(lines) if out.suffix == ".zst" else lines))
    return len(records)


def judged(episodes: Sequence[Episode], judge: str, options: Mapping[str, Any]) -> list[Episode]:
    """The episodes with a judge's signals, in their order; those of a task are judged together."""
    places: defaultdict[str, list[int]] = defaultdict(list)
    for place, episode in enumerate(episodes):
        places[episode.task.id].append(place)
    part = made_judge(get_component("judge", judge), options)
    groups: list[Group] = [[episodes[place] for place in some] for some in places.values()]
    told = list(episodes)
    for some, group in zip(places.values(), judged_now(part, groups), strict=True):
        for place, episode in zip(some, group, strict=True):
            told[place] = episode
    return told


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("log")
    parser.add_argument("out")
    parser.add_argument("--judge", default="gold")
    parser.add_argument("--options", type=json.loads, default={})
    given = parser.parse_args()
    print(f"{labelled(given.log, given.out, given.judge, given.options)} episodes in {given.out}")


if __name__ == "__main__":
    main()
