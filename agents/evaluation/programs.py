"""Ends of the agents' programs of an evaluation, and the requests that were refused."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from turnwise.agents.core import Episode
from turnwise.errors import TurnwiseError

EXIT_CODE, REFUSED = "exit_code", "requests_refused"
"""Metrics of an episode that a program played: how it ended by itself, and how many of its requests were refused."""


class ProgramFigures(NamedTuple):
    """The programs that ended by themselves, and all programs' requests.

    Attributes:
        ended: programs that ended by themselves.
        failed: of these, those with an exit code other than 0.
        idle: of these, those that were given no reply and did nothing.
        refused: requests that were refused.
        refusing: episodes in which there were such.
    """

    ended: int = 0
    failed: int = 0
    idle: int = 0
    refused: int = 0
    refusing: int = 0


NO_PROGRAMS = ProgramFigures()


def program_figures(episodes: Sequence[Episode]) -> ProgramFigures:
    """Count how the programs of these episodes ended.

    Raises:
        TurnwiseError: all ended by themselves, and none was given a reply or acted.
    """
    ended = [one for one in episodes if EXIT_CODE in one.metrics]
    idle = [one for one in ended if not one.trajectory.turns]
    if ended and len(idle) == len(episodes):
        raise TurnwiseError(
            f"None of the {len(ended)} programs was given a reply or acted; they end with exit code 0 all the same.",
            "Run one by hand: it should ask the model at OPENAI_BASE_URL, or act at MCP_SERVER_URL (docs/gateway.md).",
        )
    refused = [int(one.metrics.get(REFUSED, 0)) for one in episodes]
    failed = sum(one.metrics[EXIT_CODE] != 0 for one in ended)
    return ProgramFigures(len(ended), failed, len(idle), sum(refused), sum(map(bool, refused)))


def program_lines(figures: ProgramFigures) -> list[str]:
    """Write the lines about programs that are to be read beside the figures.

    >>> program_lines(ProgramFigures(40, failed=3, refused=7, refusing=2))
    ['programs that ended with another exit code than 0: 3 of 40', 'requests that were refused: 7, in 2 episodes']
    """
    said = {
        "programs that ended with another exit code than 0": figures.failed,
        "programs that were given no reply and did nothing": figures.idle,
    }
    lines = [f"{name}: {number} of {figures.ended}" for name, number in said.items() if number]
    refused = f"requests that were refused: {figures.refused}, in {figures.refusing} episodes"
    return [*lines, refused] if figures.refused else lines
