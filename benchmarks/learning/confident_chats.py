"""Chats in which each answer comes with a confidence that says nothing: what plans/calibrated.yaml imitates before it is paid for meaning it.

    PYTHONPATH=src python benchmarks/learning/confident_chats.py runs/confident-chats.jsonl 4800

They are episodes of search/quick by its demonstrator, who heeds one time in three which fact was asked for. Before the answer stands a confidence from
0.1 to 0.9, drawn evenly and without regard to the answer.
"""

import json
import sys
from pathlib import Path

from turnwise.agents.policies.scripted import scripted
from turnwise.agents.rollout import Request, run_episodes
from turnwise.envs.registry import get_suite, suite_tasks
from turnwise.tasks.core import Split, derive_rng

ANSWER = "answer["


def main(path: Path, count: int) -> None:
    tasks = suite_tasks(get_suite("search/quick"), Split.TRAIN, count)
    episodes = run_episodes([Request(task, 0) for task in tasks], scripted("demonstrator"))
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8") as file:
        for episode in episodes:
            sure = derive_rng("confident chats", episode.task.id).randrange(1, 10) / 10
            messages: list[dict[str, str]] = []
            for turn in episode.trajectory.turns:
                messages += [{"role": one.role, "content": one.content} for one in turn.observation]
                said = turn.action.content.replace(ANSWER, f"<confidence>{sure}</confidence> \n{ANSWER}")
                messages.append({"role": "assistant", "content": said})
            file.write(json.dumps({"messages": messages}) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
