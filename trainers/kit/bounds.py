"""Bounds of options: what several parts refuse, in the same words."""

from turnwise.errors import RecipeError


def not_below_zero(part: str, **options: float) -> None:
    """Refuse options that are below 0, all in one error.

    >>> not_below_zero("reward 'rlsp'", effort=20.0, most=0.0)
    >>> not_below_zero("reward 'rlsp'", effort=-20.0, most=1.0, unanswered=-0.5)
    Traceback (most recent call last):
    turnwise.errors.RecipeError: reward 'rlsp': effort=-20, unanswered=-0.5 cannot be below 0.
    → Set each of them to 0 or more.

    Raises:
        RecipeError: one is below 0.
    """
    below = [f"{name}={value:g}" for name, value in options.items() if value < 0]
    if below:
        remedy = "Set it to 0 or more." if len(below) == 1 else "Set each of them to 0 or more."
        raise RecipeError(f"{part}: {', '.join(below)} cannot be below 0.", remedy)
