"""When the reference and the optimizer begin anew: the policy has stopped improving, or has gone far from its reference."""

from typing import Any

from turnwise.errors import RecipeError
from turnwise.registry import component
from turnwise.trainers.core import PartState, ScheduleMoment


@component("schedule", "prorl", paper="2505.24864")
class ProRL:
    """last + 1 where a reset is due, else last; for ``optimizer.resets``.

    ProRL (Liu et al. 2025): the reference policy is hard-reset to the current one, with the optimizer's state, when
    validation stalls or the KL is saturated. Here a reset is due when ``patience`` measurements of ``metric`` in a row were not
    above the best one since the last reset, when ``divergence`` is above ``most``, or ``every`` so many updates; 0 leaves a
    condition out. The paper gives no numbers that we could check: ``patience`` and ``most`` are ours, ``every`` is a third-party
    port's (100 updates). Left out: raising the length and the temperature after a reset (a phase can).

    Worked by hand: after 0.42 come four measurements that are not above it, and the sixth of all is the one that is too many.

    >>> resets, last, found = ProRL(), 0.0, []
    >>> for update, value in enumerate([0.40, 0.42, 0.42, 0.41, 0.42, 0.42, 0.43], start=1):
    ...     metrics = {"dev_success": value, "kl_reference": 0.01}
    ...     last = resets(ScheduleMoment(update, 9, 0.0, last, metrics, frozenset(metrics)))
    ...     found.append(last)
    >>> found
    [0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 1.0]
    >>> resets(ScheduleMoment(8, 9, 0.0, 1.0, {"dev_success": 0.4, "kl_reference": 0.2}, frozenset({"kl_reference"})))
    2.0
    """

    def __init__(
        self,
        *,
        metric: str = "dev_success",
        patience: int = 4,
        divergence: str = "kl_reference",
        most: float = 0.1,
        every: int = 0,
    ) -> None:
        if min(patience, most, every) < 0 or not (patience or most or every):
            raise RecipeError(
                f"schedule 'prorl': patience={patience}, most={most} and every={every} name no time for a reset.",
                "Give at least one of them above 0, and none below.",
            )
        self.metric, self.patience = metric, patience
        self.divergence, self.most, self.every = divergence, most, every
        self._forget(0)

    def __call__(self, now: ScheduleMoment) -> float:
        """The number of resets up to now.

        Raises:
            RecipeError: half of the run is over, and nothing has measured ``metric``.
        """
        if self.patience and self.metric not in now.metrics and 2 * now.update > now.updates:
            known = ", ".join(sorted(now.metrics))
            raise RecipeError(
                f"schedule 'prorl': there is no metric {self.metric!r}.", f"There are: {known}."
            )
        if not self._is_due(now):
            return now.last
        self._forget(now.update)
        return now.last + 1

    def state(self) -> PartState:
        """Return what a checkpoint keeps."""
        return PartState({"best": self._best, "stalled": self._stalled, "since": self._since})

    def restore(self, state: PartState) -> None:
        """Go on from :meth:`state`."""
        kept: Any = state.numbers
        self._best, self._stalled, self._since = kept["best"], kept["stalled"], kept["since"]

    def _is_due(self, now: ScheduleMoment) -> bool:
        if self.patience and self.metric in now.fresh:
            found = now.metrics[self.metric]
            better = self._best is None or found > self._best
            self._best, self._stalled = (found, 0) if better else (self._best, self._stalled + 1)
        far = self.most > 0 and self.divergence in now.fresh and now.metrics[self.divergence] > self.most
        stalled = self.patience > 0 and self._stalled >= self.patience
        return far or stalled or (self.every > 0 and now.update - self._since >= self.every)

    def _forget(self, update: int) -> None:
        """Begin to count anew, after so many updates."""
        self._best: float | None = None
        self._stalled, self._since = 0, update
