"""Runs and evaluations to be viewed: played by scripts, written in the real formats, with hostile texts where asked."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import turnwise
from turnwise.agents.core import ROOT, Episode, VersionSpan, after
from turnwise.agents.log.episode_log import EpisodeLog
from turnwise.envs.messages import Message, Messages

HOSTILE = (
    "<script>document.title='taken'</script><img src=x onerror=\"document.title='taken'\">{{ 7 * 7 }}"
    "\"><svg onload=alert(1)>'<a href=javascript:alert(1)>x</a></textarea></select></pre><style>*{display:none}</style>"
    "\x1b[2J\u202egnp.exe"
)


def evaluation(folder: Path, policy: str = "scripted:demonstrator", episodes: int = 40, k: int = 1) -> Path:
    """An evaluation in a folder, as `turnwise eval --out` leaves it."""
    folder.mkdir(parents=True)
    result = turnwise.evaluate("shop/easy", policy, episodes=episodes, k=k, log=folder / "episodes.jsonl.zst")
    (folder / "evaluation.json").write_text(json.dumps(result.to_json(results=True)))
    asked = {"suite": "shop/easy", "split": "test", "policy": policy, "seed": 0, "k": k}
    (folder / "asked.json").write_text(json.dumps(asked))
    return folder


def with_tokens(episode: Episode) -> Episode:
    """The episode as if a model had sampled it: two tokens a turn, the second one unlikely."""
    turns = tuple(
        dataclasses.replace(
            turn,
            reply=turn.reply._replace(
                prompt_ids=(5, 6, 7),
                action_ids=(11, 12),
                logprobs=(-0.01, -3.5),
                versions=(VersionSpan(0, 3),),
            ),
            signals={"entropy": 0.25},
        )
        for turn in episode.trajectory.turns
    )
    one = dataclasses.replace(episode.trajectory, turns=turns)
    return dataclasses.replace(episode, trajectories={one.agent: one})


def run(folder: Path, *, updates: int = 3, size: int = 4) -> Path:
    """A run's folder: metrics, an evaluation, groups of siblings with tokens and advantages."""
    folder.mkdir(parents=True)
    (folder / "recipe.yaml").write_text("suite: shop/easy\ncredit: grpo\nupdates: 5\n")
    rows = [
        {
            "update": n, "phase": "rl", "success": 0.1 * n, "entropy": 1.0 - 0.1 * n, "clip_low": 0.0,
            "dev_success": 0.1 * n, "dev_success_interval": [0.0, 0.1 * n + 0.2],
        }
        for n in range(1, updates + 1)
    ]  # fmt: skip
    (folder / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    played = turnwise.rollout("shop/easy", "mix:gold=0.6,random=0.4", episodes=2 * size, k=size, seed=3)
    with EpisodeLog(folder / "episodes.jsonl.zst", policy=str(folder)) as log:
        for update in range(1, updates + 1):
            for number, episode in enumerate(played):
                given = [0.5 - number % size] * len(episode.trajectory.turns)
                log.append(
                    with_tokens(episode),
                    update=update,
                    group=number // size,
                    advantages={episode.trajectory.agent: given},
                    entropies={episode.trajectory.agent: [(0.125, 2.75)] * len(given)}
                    if update > 1
                    else None,
                    suite=f"half/{number // size}",
                )
    return folder


def branched(folder: Path) -> Path:
    """An episode as a program plays it that has a sub-agent, and tries its first turn's continuation twice."""
    (episode,) = turnwise.rollout("shop/hard", "scripted:gold", episodes=1)
    one, parents = episode.trajectory, {1: (ROOT, 0), 2: (after(0), None), 3: (after(0), None)}
    turns = tuple(
        dataclasses.replace(
            turn, reply=turn.reply._replace(parent=parents[index][0], caller=parents[index][1])
        )
        if index in parents
        else turn
        for index, turn in enumerate(one.turns)
    )
    folder.mkdir(parents=True)
    with EpisodeLog(folder / "episodes.jsonl.zst", policy="scripted:gold") as log:
        log.append(
            dataclasses.replace(episode, trajectories={one.agent: dataclasses.replace(one, turns=turns)})
        )
    (folder / "asked.json").write_text(
        json.dumps({"suite": "shop/hard", "policy": "scripted:gold", "split": "train"})
    )
    return folder


def hostile(folder: Path) -> Path:
    """A log whose every text attacks whoever shows it."""
    (episode,) = turnwise.rollout("shop/easy", "scripted:gold", episodes=1)
    task = dataclasses.replace(
        episode.task, prompt=HOSTILE, options={**episode.task.options, HOSTILE[:40]: HOSTILE[:60]}
    )
    turns = tuple(
        dataclasses.replace(
            turn,
            observation=Messages(
                (Message("system", HOSTILE), Message("user", f"@@ -1 +1 @@\n-{HOSTILE}\n+{HOSTILE}"))
            ),
            reply=turn.reply._replace(message=Message("assistant", HOSTILE), source=HOSTILE),
            rewards={HOSTILE: 1.0, **turn.rewards},
            details={HOSTILE: HOSTILE},
            state_key=HOSTILE,
            signals={HOSTILE: 1.0},
        )
        for turn in episode.trajectory.turns
    )
    one = dataclasses.replace(episode.trajectory, turns=turns, final=Messages((Message("user", HOSTILE),)))
    spoiled = dataclasses.replace(
        episode, task=task, trajectories={HOSTILE: dataclasses.replace(one, agent=HOSTILE)}, error=HOSTILE,
        metrics={HOSTILE: 1.0},
    )  # fmt: skip
    folder.mkdir(parents=True)
    with EpisodeLog(folder / "episodes.jsonl.zst", policy=HOSTILE) as log:
        log.append(spoiled)
        log.append(dataclasses.replace(spoiled, outcome=turnwise_outcome("env_error"), end=None))
    (folder / "asked.json").write_text(json.dumps({"suite": HOSTILE, "policy": HOSTILE, "split": HOSTILE}))
    return folder


def turnwise_outcome(name: str):
    """An outcome by its value."""
    from turnwise.agents.core import Outcome

    return Outcome(name)
