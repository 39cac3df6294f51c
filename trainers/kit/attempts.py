"""Episodes as a question about attempts shows them."""

from __future__ import annotations

import json

from turnwise.agents.core import Episode
from turnwise.agents.log.records import Record, to_line
from turnwise.envs.judging.recorded import Recorded, recorded_episode


def attempt_of(episode: Episode) -> Recorded | None:
    """An episode as its line in a log is read; None where it does not count, or nothing was done."""
    return recorded_episode(json.loads(to_line(Record(episode))))
