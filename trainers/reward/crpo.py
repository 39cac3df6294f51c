"""CRPO: a report must have its sections, and its conclusion must be the answer."""

from collections.abc import Sequence

from turnwise.errors import RecipeError
from turnwise.registry import component
from turnwise.trainers.core import Group
from turnwise.trainers.kit.bounds import not_below_zero
from turnwise.trainers.kit.reward_edits import (
    Turns,
    paid_instead,
    paid_on_last,
    part_total,
    replace_turns,
    told_text,
)


@component("reward", "crpo", reads=("rewards",))
def crpo(
    group: Group,
    *,
    sections: tuple[str, ...] = ("Findings", "Reasoning", "Conclusion"),
    right: float = 10.0,
    comprehensive: float = 1.0,
    faithful: float = 1.0,
    answer: str = "answer",
) -> Group:
    """Ten times the outcome, one for a report that has all its sections, one for a conclusion that is the answer; nothing else is paid.

    R = 10·a + 1[every section says something] + 1[the last of ``sections`` has the answer in it], on the last turn: CRPO (clinical objectives), in
    which accuracy outweighs the rest. The report is the last message; a section begins at a line that is its name, with or without marks
    such as # and :. The environment tells the answer that it heard in ``info["details"]``, as turnwise/Search-v0 does. Ours: the sections' names, and that
    texts agree where one holds the other, but for case and white space. `sampling.instruction` must ask for them.

    Worked by hand: all three objectives, then a wrong answer with both others, then a conclusion that says another thing.

    >>> from turnwise.trainers.kit.toy_batches import episode, with_words
    >>> report = "# Findings\\nLow iron.\\n# Reasoning\\nIt fits.\\n# Conclusion\\nSo it is anaemia."
    >>> group = [with_words(episode([a], details=[{"answer": said}]), [report]) for a, said in [(1, "Anaemia"), (0, "anaemia"), (1, "gout")]]
    >>> [one.trajectory.total_reward for one in crpo(group)]
    [12.0, 2.0, 11.0]

    Raises:
        RecipeError: a weight is below 0, or there is no section.
    """
    not_below_zero("reward 'crpo'", right=right, comprehensive=comprehensive, faithful=faithful)
    if not sections:
        raise RecipeError(
            "reward 'crpo': a report without sections is none.", "Name some, the conclusion last."
        )

    def pay(turns: Turns) -> Turns:
        if not turns:
            return turns
        found = _sections(turns[-1].action.content, sections)
        whole = all(found.values())
        said = " ".join(told_text(turns[-1], answer).lower().split())
        agrees = bool(said) and said in found[sections[-1]]
        paid = paid_on_last(
            paid_instead(turns, right * part_total(turns, "outcome")), "comprehensive", comprehensive * whole
        )
        return paid_on_last(paid, "faithful", faithful * agrees)

    return [replace_turns(one, pay) for one in group]


def _sections(text: str, names: Sequence[str]) -> dict[str, str]:
    """Each section's words, without case and further white space."""
    known = {name.lower(): name for name in names}
    found: dict[str, list[str]] = {name: [] for name in names}
    now: list[str] = []
    for line in text.splitlines():
        name = known.get(line.strip(" \t#*:.").lower())
        if name is None:
            now += line.lower().split()
        else:
            now = found[name]
    return {name: " ".join(words) for name, words in found.items()}
