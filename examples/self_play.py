"""Self-play: one small model is both players of Kuhn poker, and each seat is trained on its own trajectory.

Run it: ``python examples/self_play.py`` (needs turnwise[train]; some minutes with the recipe's own 60 updates).
"""

import sys
from pathlib import Path
from typing import Any

import turnwise


def main(out: str | Path = "runs/self-play", **changes: Any) -> turnwise.TrainingResult:
    # An episode has a trajectory for each player; a policy may be given for each.
    (episode,) = turnwise.rollout("games/kuhn-self", "scripted:gold", episodes=1)
    for agent, trajectory in episode.trajectories.items():
        print(agent, "said", [turn.action.content for turn in trajectory.turns], "and won", trajectory.score)

    result = turnwise.train("kuhn-self", out=out, **changes)
    print("trained against itself:", result.path)

    # In evaluations the other seat is a fixed opponent, so that success means something.
    for name, mode, found in result.evaluations:
        print(f"{name}, {mode}: {found.success:.2f} {found.success_interval}")
    return result


if __name__ == "__main__":
    main(*sys.argv[1:])
