"""Numbers that hold for a stage each."""

from turnwise.errors import RecipeError
from turnwise.registry import component
from turnwise.trainers.core import ScheduleMoment


@component("schedule", "steps")
def steps(now: ScheduleMoment, *, at: tuple[int, ...] = (), values: tuple[float, ...] = ()) -> float:
    """The recipe's number until update ``at[0]``, then ``values[0]`` until ``at[1]``, and so on.

    >>> [steps(ScheduleMoment(update, 9, first=1.0, last=1.0), at=(2, 5), values=(0.5, 0.0)) for update in (1, 2, 5)]
    [1.0, 0.5, 0.0]

    Raises:
        RecipeError: there are not as many values as stages, or stages are not in order.
    """
    if len(at) != len(values) or list(at) != sorted(set(at)):
        raise RecipeError(
            f"schedule 'steps': at={at} and values={values} are no stages.",
            "Give rising updates, and a value for each.",
        )
    begun = sum(now.update >= start for start in at)
    return values[begun - 1] if begun else now.first
