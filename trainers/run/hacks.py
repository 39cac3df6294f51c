"""The hack meter at work in a run: plays planted episodes after an update's own, pays them as those are paid, and tells what it sees.

They are played after, since an engine rounds by what it samples together: a run has the same bits with a hack meter and without. Nothing of it reaches the learner: planted episodes are in no batch, no baseline and no figure of the episodes that are learned from.
They are in a log of their own (``planted.jsonl.zst``), and what was seen is in ``hack-meter.jsonl``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from turnwise.agents.core import Policy
from turnwise.agents.execution.admission import Admission
from turnwise.agents.log.episode_log import EpisodeLog
from turnwise.agents.multi_agent import policy_map
from turnwise.agents.workers.pool import WorkerPool
from turnwise.errors import RunError
from turnwise.trainers.core import Group
from turnwise.trainers.hack_meter.meter import HackFound, HackMeter, PlantedEpisode
from turnwise.trainers.hack_meter.planting import planted_requests
from turnwise.trainers.kit.payer import Payer
from turnwise.trainers.kit.purse import JudgeUse
from turnwise.trainers.run.collect import CollectedGroups, judged
from turnwise.trainers.run.directory import RunDirectory
from turnwise.trainers.run.door import PlantOptions
from turnwise.trainers.run.parts import Parts
from turnwise.trainers.run.update import UpdateResult
from turnwise.trainers.sampler.mixture import Mixture
from turnwise.trainers.strategy.runner import RolloutRunner

PART = "hack_meter"
"""The meter's name among the parts that checkpoints keep."""


class HackWatch:
    """Plays planted episodes and keeps the records of a hack meter.

    Args:
        options: of the recipe.
        mixture: its suites.
        run: its files.
        opponents: who plays agents that are not trained.
    """

    def __init__(
        self, options: PlantOptions, mixture: Mixture, run: RunDirectory, opponents: Mapping[str, Policy]
    ) -> None:
        self.options, self.mixture, self.run, self.opponents = options, mixture, run, opponents
        self.meter = HackMeter(options.rule)
        self._told: set[str] = set()

    async def play(
        self,
        policy: Policy,
        parts: Parts,
        update: int,
        episodes: int,
        workers: WorkerPool | None,
        places: Admission,
    ) -> list[PlantedEpisode]:
        """Play the planted episodes of an update (from 0) that plays so many others, and have them judged; failed ones are left out."""
        play = self.options.play
        asked = planted_requests(self.options.rule, self.mixture, play.seed, update, episodes)
        runner = RolloutRunner(
            policy_map(policy, self.opponents),
            parts.reward,
            concurrency=places,
            limits=play.limits,
            env_options=play.env_options,
            env_workers=workers or 0,
        )
        results = await runner([one.request for one in asked])
        seen = await judged(parts, [[one.episode] for one in results], policy, JudgeUse())
        return [
            PlantedEpisode(one.kind, one.suite, episode)
            for one, (episode,) in zip(asked, seen, strict=True)
            if episode.outcome.counts
        ]

    def see(
        self, update: int, rewards: Payer, played: CollectedGroups, result: UpdateResult
    ) -> dict[str, float]:
        """Take up an update (from 0) that was learned; return the metrics, and write what was found."""
        paid = rewards.pay([[one.episode] for one in played.planted]).groups
        planted = [one._replace(episode=e) for one, (e,) in zip(played.planted, paid, strict=True)]
        found = self.meter.see(update + 1, planted, first_agents(played, result))
        self._write(update, played.planted, found)
        return {**self.meter.metrics, "hack/planted": float(len(planted))}

    def _write(self, update: int, planted: Sequence[PlantedEpisode], found: Sequence[HackFound]) -> None:
        options = self.options.play.env_options
        if planted:
            with EpisodeLog(self.run.planted, policy=str(self.run.path), env_options=options) as log:
                for n, (kind, suite, episode) in enumerate(planted):
                    log.append(episode, update=update + 1, group=n, suite=f"{kind}:{suite}")
        rows = {"tests": self.meter.rows(), "found": [one._asdict() for one in found]}
        self.run.log_hacks(update + 1, {**rows, "alarms": dict(self.meter.alarms)})

    @property
    def stops(self) -> bool:
        """True if the run is to stop."""
        return self.options.rule.stops and bool(self.meter.alarms)

    def conclude(self, log: Callable[[str], None]) -> None:
        """Say each alarm once, after the update was recorded and saved.

        Raises:
            RunError: there is one, and the recipe says that the run stops.
        """
        for name, said in self.meter.alarms.items():
            if name not in self._told:
                log(f"alarm of the hack meter: {said}")
        self._told |= {*self.meter.alarms}
        self.refuse_to_go_on()

    def refuse_to_go_on(self) -> None:
        """Stop a run that an alarm was given in, if the recipe says so.

        Raises:
            RunError: with all that the alarms said.
        """
        if self.stops:
            raise RunError(
                f"The hack meter gave an alarm. {' '.join(f'{said}.' for said in self.meter.alarms.values())}",
                f"Look at them (`turnwise report {self.run.path}`, `turnwise view {self.run.planted}`), mend the reward or the environment, "
                "and start another run; `--resume --set hack_meter.on_alarm=warn` would go on with this one.",
            )


def first_agents(played: CollectedGroups, result: UpdateResult) -> list[Group]:
    """Return the groups as the recipe paid them, of the agents whose success it is alone."""
    return [
        group
        for agent_group, group in zip(played.usable, result.groups, strict=False)
        if group
        and agent_group.agent
        == next(iter(played.played[agent_group.number][agent_group.members[0]].trajectories))
    ]
