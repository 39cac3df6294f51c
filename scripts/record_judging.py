"""Record the episodes that envs/judging ships: training tasks of two worlds, by scripts of mixed skill, labelled by gold.

python scripts/record_judging.py
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from turnwise.agents.log.episode_log import EpisodeLog
from turnwise.agents.rollout_tasks import rollout
from turnwise.trainers.lab.labelled import labelled

OUT = Path(__file__).parents[1] / "envs" / "judging" / "recorded.jsonl.zst"
SUITES = {"search/quick": 150, "household/easy": 150}
SKILLS = ("scripted:gold", "scripted:demonstrator", "scripted:demonstrator", "mix:gold=0.5,demonstrator=0.5")


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        plain = Path(folder) / "episodes.jsonl.zst"
        with EpisodeLog(plain) as log:
            for suite, tasks in SUITES.items():
                for seed, policy in enumerate(SKILLS):
                    rollout(suite, policy, episodes=tasks, seed=seed, log=log)
        OUT.unlink(missing_ok=True)
        print(labelled(plain, OUT), "episodes,", OUT.stat().st_size, "bytes")


if __name__ == "__main__":
    main()
