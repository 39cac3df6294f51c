"""Places of the roles of a run: ``turnwise train RECIPE --on local:engines=2,env_workers=8``, or ``--on ray:…``.

Where a run is placed changes nothing of what it is: its recipe is recorded as it is, and a resumed run may be placed
otherwise.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from turnwise.agents.engines.registry import check_use
from turnwise.agents.remote.gpus import GpuShares, share_gpus
from turnwise.agents.remote.local import EnginePlan, local_engines
from turnwise.agents.remote.publishers import PUBLISHERS
from turnwise.agents.remote.ray_actors import RayCluster
from turnwise.agents.remote.ray_engines import ray_engines
from turnwise.agents.workers.hosted import WorkerHosts
from turnwise.agents.workers.pool import WorkerPool, workers_for
from turnwise.agents.workers.ray_hosts import ray_hosts
from turnwise.errors import NotFoundError, RecipeError, TurnwiseError
from turnwise.registry import get_component
from turnwise.trainers.recipe.schema import EngineOptions, ScaleOptions
from turnwise.trainers.run.door import Roles
from turnwise.trainers.run.world import RankPlace

ROLES = ("engines", "env_workers", "learners")
_EXAMPLE = "Write --on local:engines=2,env_workers=8 or --on ray:engines=2."
_SERVED = ("torch", "vllm")
_SHARED = "gpus=shared"
_PUBLISH = "publish"  # the option of an engine elsewhere


class Placement(NamedTuple):
    """Number of each role beside this process; None leaves a role as the recipe has it.

    Attributes:
        engines: servers that sample, watched and started again; 0: the engine is the recipe's.
        env_workers: processes that hold environments.
        ray: Ray places these, in the cluster of RAY_ADDRESS or in one of this machine; else they are of this machine.
        shared_gpus: engines of this machine have the learners' GPUs too, where there are too few others.
        world: this process's place among learners that something else has started; None: it starts them.
        cluster: Ray's, once the run is in it.
        learners: Ray places so many, one of which is the run; 0: this process is the run.
    """

    engines: int = 0
    env_workers: int | None = None
    ray: bool = False
    shared_gpus: bool = False
    world: RankPlace | None = None
    cluster: RayCluster | None = None
    learners: int = 0

    @property
    def beside(self) -> str:
        """Placement of the rest as the first learner is told it, if Ray places it."""
        counts = {"engines": self.engines or None, "env_workers": self.env_workers}
        said = [f"{role}={count}" for role, count in counts.items() if count]
        return f"ray:{','.join(said)}" if said else ""


def parse_placement(text: str) -> Placement:
    """Read where a run is to be placed.

    >>> parse_placement("local:engines=2,env_workers=8")
    Placement(engines=2, env_workers=8, ray=False, shared_gpus=False, world=None, cluster=None, learners=0)
    >>> parse_placement("local:engines=1,gpus=shared")
    Placement(engines=1, env_workers=None, ray=False, shared_gpus=True, world=None, cluster=None, learners=0)
    >>> parse_placement("ray:engines=2")
    Placement(engines=2, env_workers=None, ray=True, shared_gpus=False, world=None, cluster=None, learners=0)

    Raises:
        TurnwiseError: it cannot be read.
    """
    where, _, rest = text.partition(":")
    if where == "ray" and rest.startswith("//"):
        raise TurnwiseError(
            f"--on {text!r}: runs are not placed through Ray's client.",
            "Start the run on a machine of the cluster: RAY_ADDRESS=HOST:6379 turnwise train … --on ray:engines=2.",
        )
    if where not in ("local", "ray"):
        raise TurnwiseError(f"--on {text!r} is no place.", _EXAMPLE)
    counts: dict[str, int] = {}
    parts = list(filter(None, rest.split(",")))
    shared = _SHARED in parts
    for part in (part for part in parts if part != _SHARED):
        role, _, count = part.partition("=")
        if role not in ROLES:
            raise NotFoundError("role", role, ROLES)
        if not (count.isascii() and count.isdigit()) or role in counts:
            raise TurnwiseError(f"--on {text!r}: {part!r} is no number of {role}.", _EXAMPLE)
        counts[role] = int(count)
    if where == "ray" and not any(counts.values()):
        raise TurnwiseError(
            f"--on {text!r}: Ray places {' and '.join(ROLES)}, and none is asked for.", _EXAMPLE
        )
    if where == "local" and "learners" in counts:
        raise TurnwiseError(
            f"--on {text!r}: learners of this machine are the run's own.",
            f"Leave it out of --on, and set scale.learners={counts['learners']}.",
        )
    if shared and (where == "ray" or not counts.get("engines")):
        raise TurnwiseError(
            f"--on {text!r}: {_SHARED} is of engines on this machine, and none is asked for there.", _EXAMPLE
        )
    return Placement(
        counts.get("engines", 0),
        counts.get("env_workers"),
        where == "ray",
        shared,
        learners=counts.get("learners", 0),
    )


def gpus_of(placement: Placement, roles: Roles) -> GpuShares:
    """Say which role of a run has which GPU of this machine; engines that Ray places have theirs from it.

    Raises:
        RunError: there are too few for all of them.
    """
    engines = 0 if placement.ray else placement.engines
    each = _gpus_each(roles)
    return share_gpus(
        roles.device,
        learners=placement.world.local_size if placement.world else roles.learners,
        engines=engines,
        each=each,
        together=placement.shared_gpus,
    )


def check_publish(placement: Placement, roles: Roles) -> None:
    """Refuse a way of publishing weights that this run or this machine does not have, before anything is spent.

    Raises:
        RecipeError: the run has no engines elsewhere, or more learners than the way allows.
        MissingDependencyError: the way needs what is not there.
    """
    way = roles.publish
    publisher = PUBLISHERS[way]
    if way == ScaleOptions().publish:
        return
    if not placement.engines and not _is_elsewhere(roles.engine):
        raise RecipeError(
            f"scale.publish: {way} is of engines elsewhere, and this run's engine is in its own process.",
            "Leave it out, or run with --on local:engines=1 or engine.kind: remote.",
        )
    publisher.check()
    if roles.learners > publisher.most_learners:
        raise RecipeError(
            f"scale.publish: {way} works with {publisher.most_learners} learner, and scale.learners is {roles.learners}.",
            "Leave scale.publish out, or set scale.learners to 1.",
        )


def check_divided(placement: Placement, roles: Roles) -> None:
    """Refuse divided weights beside an engine in the learner's own process, before anything is spent.

    Raises:
        RecipeError: the run has no engines elsewhere.
    """
    if roles.divided and not placement.engines and not _is_elsewhere(roles.engine):
        raise RecipeError(
            f"scale.weights: sharded takes an engine in another process, and this run's {roles.engine.kind} is in the "
            "first learner's.",
            "Run with --on local:engines=1 or engine.kind: remote, or set scale.weights: replicated.",
        )


def check_engine(placement: Placement, roles: Roles, rank: int) -> None:
    """Refuse options of the engine that it cannot have in this run, which trains adapters of ``rank``, before anything is spent.

    Raises:
        EngineError: with the reason.
    """
    engine = roles.engine
    elsewhere = bool(placement.engines) or _is_elsewhere(engine)
    given = {"device": roles.device, "in_flight": bool(roles.staleness), "elsewhere": elsewhere, "rank": rank}
    check_use(engine.kind, engine.options, **given)


def _is_elsewhere(engine: EngineOptions) -> bool:
    return _PUBLISH in get_component("engine", engine.kind).options


def publishing(engine: EngineOptions, roles: Roles) -> EngineOptions:
    """The options of an engine elsewhere with the way in which it gets weights."""
    if roles.publish == ScaleOptions().publish:
        return engine
    return engine.model_copy(update={"options": {**engine.options, _PUBLISH: roles.publish}})


def _gpus_each(roles: Roles) -> int:
    each = roles.engine.options.get("tensor_parallel_size", 1)
    return each if isinstance(each, int) else 1  # what is no number, the engine refuses


def env_workers_of(placement: Placement, roles: Roles, envs: Sequence[str]) -> int | WorkerHosts:
    """Say where the environments of a run are: so many processes of this machine, or on hosts."""
    if placement.env_workers is not None:
        return placement.env_workers
    if roles.worker_hosts or roles.worker_hosts_file:
        return WorkerHosts(list(roles.worker_hosts), roles.worker_hosts_file, roles.token_file, envs)
    return roles.env_workers


@contextlib.contextmanager
def in_cluster(placement: Placement, roles: Roles) -> Iterator[Placement]:
    """Be in Ray's cluster until the run ends, where Ray places anything of it; the placement there.

    Raises:
        TurnwiseError: Ray is not there.
    """
    if not placement.ray:
        yield placement
        return
    needed = placement.engines + (placement.env_workers or 0)
    cluster = RayCluster.join(needed, gpus_of(placement, roles).free)
    try:
        yield placement._replace(cluster=cluster)
    finally:
        cluster.leave()


@contextlib.contextmanager
def placed_workers(placement: Placement, roles: Roles, envs: Sequence[str]) -> Iterator[WorkerPool | None]:
    """The worker processes of a run until it ends; None where environments stay in this process.

    Raises:
        TurnwiseError: Ray has no room for them.
    """
    with contextlib.ExitStack() as stack:
        if placement.cluster is not None and placement.env_workers:
            at = stack.enter_context(ray_hosts(placement.env_workers, envs, placement.cluster))
        else:
            at = env_workers_of(placement, roles, envs)
        yield stack.enter_context(workers_for(at))


@contextlib.contextmanager
def placed_engine(
    placement: Placement, roles: Roles, model: str, context: int, logs: Path
) -> Iterator[EngineOptions]:
    """The engine of a run: the recipe's, or so many servers of its kind, until the run ends.

    Raises:
        TurnwiseError: engines of this kind cannot be placed, or do not start.
    """
    own = roles.engine
    if not placement.engines:
        yield own
        return
    if own.kind not in _SERVED:
        raise RecipeError(
            f"--on places engines of its own, and the recipe's engine is {own.kind!r}.",
            "Leave engines out of --on, or set engine.kind to vllm or torch.",
        )
    gpus = gpus_of(placement, roles)
    plan = EnginePlan(
        model, own.kind, roles.context or context, own.max_sequences, roles.device, own.options, gpus.engines
    )  # fmt: skip
    if not placement.ray:
        placed = local_engines(plan, placement.engines, logs)
    else:
        each = _gpus_each(roles) if gpus.learners else 0
        placed = ray_engines(plan, placement.engines, logs, gpus=each, shares=gpus, cluster=placement.cluster)
    with placed as engines:
        yield own.model_copy(update={"kind": "remote", "options": engines.options})
