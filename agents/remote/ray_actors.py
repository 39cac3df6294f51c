"""Placement of a run by Ray: actors, a file of the addresses at which they serve, and the cluster that they are in.

Nothing of a run passes through Ray: an actor starts a server, looks after it and tells where it is. An actor that ends is started
again by Ray, perhaps on another machine; the run finds it by the file, which it reads again.
"""

from __future__ import annotations

import contextlib
import logging
import os
import secrets
import signal
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

from turnwise.errors import EngineError
from turnwise.extras import needing
from turnwise.tools.processes import module_path

START_S = 600.0
"""Seconds that the first start of all may take together, their placing included."""
LOOK_S = 0.5
ANSWER_S = 30.0
"""Seconds that an actor may take to tell how its server is; one that ended is being placed again."""
END_S = 20.0
LOOPBACK = "127.0.0.1"
ADDRESS = "RAY_ADDRESS"
_logger = logging.getLogger(__name__)


class RayState(Protocol):
    """State of an actor's server."""

    @property
    def url(self) -> str:
        """The address of the server."""
        ...

    @property
    def answers(self) -> bool:
        """True if it says how it is."""
        ...

    @property
    def failed(self) -> str:
        """Why it is not started any more; empty while it is."""
        ...


State = TypeVar("State", bound=RayState)


class RayCluster(NamedTuple):
    """A cluster that this process is in.

    Attributes:
        ray: the library.
        alone: it is of this machine and was made here, so that servers listen to this machine alone.
        own: it was joined here, and is left with whoever did.
        host: this machine's address in it.
    """

    ray: Any
    alone: bool
    own: bool
    host: str

    @classmethod
    def join(cls, needed: int, free: Sequence[str] = ()) -> RayCluster:
        """Join the cluster of RAY_ADDRESS, or make one of this machine; the one that this process is in already stays.

        Args:
            needed: processors that a cluster made here has at least.
            free: the GPUs that it has.

        Raises:
            MissingDependencyError: Ray is not installed.
            EngineError: there is no such cluster.
        """
        with needing("--on ray:…"):
            import ray
        own = not ray.is_initialized()
        alone = own and not os.environ.get(ADDRESS)
        if own:
            _connect(ray, alone, needed, free)
        return cls(ray, alone, own, LOOPBACK if alone else ray.util.get_node_ip_address())

    def leave(self) -> None:
        """Leave it, if it was joined here; one that was made here ends."""
        if self.own:
            self.ray.shutdown()


class RayActors(Generic[State]):
    """Actors of one role, and the file of their addresses.

    Args:
        cluster: where they are.
        make: makes those actors, given the token that their servers are to ask for.
        role: what they are, for messages.
    """

    def __init__(self, cluster: RayCluster, make: Callable[[str], Sequence[Any]], role: str) -> None:
        self.cluster, self._ray, self._role = cluster, cluster.ray, role
        self._folder = Path(tempfile.mkdtemp(prefix="turnwise-ray-"))
        self.urls_file, self.token_file = self._folder / "addresses.txt", self._folder / "token"
        token = secrets.token_hex(32)
        self.token_file.touch(0o600)
        self.token_file.write_text(token)
        self.urls_file.touch()
        self.actors = list(make(token))
        self._listed: list[str] = []
        self._closing = threading.Event()
        self._watching = threading.Thread(target=self._watch, name="turnwise-ray", daemon=True)

    def await_all(self, check: Callable[[State], None] = lambda state: None) -> None:
        """Wait until every server answers, and go on looking where they are.

        Raises:
            EngineError: one does not, and why; or what ``check`` raises.
        """
        until = time.monotonic() + START_S
        while True:
            states = self.states()
            found = [state for state in states if state is not None]
            if failed := [state.failed for state in found if state.failed]:
                raise EngineError(f"The {self._role} did not start: {failed[0]}.", "Look at their logs.")
            for state in found:
                check(state)
            if len(found) == len(states) and all(state.answers for state in found):
                break
            if time.monotonic() > until:
                raise EngineError(
                    f"{len(states) - len(found)} of {len(states)} {self._role} have no place after {START_S:.0f} s, "
                    f"and Ray has {said(self._ray.available_resources())} free.",
                    "Ask for fewer, or give the cluster more.",
                )
            time.sleep(LOOK_S)
        self._list(found)
        self._watching.start()

    def states(self) -> list[State | None]:
        """Return the state of each; None for one that has no place at the moment."""
        asked = [actor.state.remote() for actor in self.actors]
        self._ray.wait(asked, num_returns=len(asked), timeout=ANSWER_S)
        return [self._answer(one) for one in asked]

    def close(self) -> None:
        """End them all."""
        self._closing.set()
        if self._watching.is_alive():
            self._watching.join()
        ended = [actor.close.remote() for actor in self.actors]
        self._ray.wait(ended, num_returns=len(ended), timeout=END_S)
        for actor in self.actors:
            self._ray.kill(actor)  # what it started ends with it

    def _answer(self, asked: Any) -> State | None:
        try:
            return self._ray.get(asked, timeout=0)
        except self._ray.exceptions.RayTaskError as error:  # of ours: it would come again
            raise EngineError(
                f"An actor of the {self._role} failed: {error.cause}.", "See Ray's logs."
            ) from error
        except self._ray.exceptions.RayError:
            return None

    def _watch(self) -> None:
        while not self._closing.wait(LOOK_S):
            with contextlib.suppress(EngineError):
                self._list([state for state in self.states() if state is not None])

    def _list(self, states: Sequence[State]) -> None:
        urls = [state.url for state in states]
        if urls == self._listed or not urls:
            return
        if self._listed:
            _logger.warning("%s are at %s now", self._role, ", ".join(urls))
        aside = self.urls_file.with_suffix(".new")
        aside.write_text("".join(f"{url}\n" for url in urls))
        aside.replace(self.urls_file)
        self._listed = urls


def _connect(ray: Any, alone: bool, needed: int, free: Sequence[str]) -> None:
    """Join a cluster, or make one of this machine, which has the GPUs that are free; signals stay ours."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    quiet: dict[str, Any] = {"log_to_driver": False, "configure_logging": False}
    place: dict[str, Any] = {}
    if alone:  # a cluster of others has Turnwise installed; one of ours takes this process's
        place = {"include_dashboard": False, "_node_ip_address": LOOPBACK}
        place["runtime_env"] = {"env_vars": {"PYTHONPATH": module_path()}}
        place["num_gpus"], place["num_cpus"] = len(free), max(needed, os.cpu_count() or 1)
    handler = signal.getsignal(signal.SIGTERM)
    try:
        with _seeing(free) if free else contextlib.nullcontext():
            ray.init(**quiet, **place)
    except (ConnectionError, RuntimeError, ValueError, ImportError, OSError) as error:
        said = " ".join(str(error).split())[:300].rstrip(".")
        raise EngineError(
            f"Ray cannot be reached{'' if alone else f' at {os.environ[ADDRESS]}'}: {said}.",
            "Is the cluster up (`ray status`), and does it ask for its token (RAY_AUTH_MODE=token)?",
        ) from error
    finally:
        if threading.current_thread() is threading.main_thread() and handler is not None:
            signal.signal(signal.SIGTERM, handler)


@contextlib.contextmanager
def _seeing(gpus: Sequence[str]) -> Iterator[None]:
    """Show only these GPUs to what is started meanwhile."""
    before = os.environ.get("CUDA_VISIBLE_DEVICES")
    os.environ["CUDA_VISIBLE_DEVICES"] = ",".join(gpus)
    try:
        yield
    finally:
        if before is None:
            del os.environ["CUDA_VISIBLE_DEVICES"]
        else:
            os.environ["CUDA_VISIBLE_DEVICES"] = before


def said(resources: dict[str, float]) -> str:
    """Describe in words the processors and GPUs of a cluster."""
    return ", ".join(f"{resources.get(name, 0):g} {name}s" for name in ("CPU", "GPU"))
