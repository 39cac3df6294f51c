"""Noisy rewards' control: the way of speaking is paid, whatever comes of it."""

from turnwise.agents.core import Episode
from turnwise.errors import RecipeError
from turnwise.registry import component
from turnwise.trainers.core import Group
from turnwise.trainers.kit.bounds import not_below_zero
from turnwise.trainers.kit.grams import repeated, words_of
from turnwise.trainers.kit.reward_edits import Turns, has_answer, paid_instead, replace_turns, signal_of

REASONING = (
    *("first", "second", "third", "next", "then", "after that", "finally", "to begin with"),
    *("because", "since", "therefore", "thus", "hence", "so that", "it follows", "which means"),
    *("if", "otherwise", "unless", "suppose", "assume", "in case"),
    *("but", "however", "although", "on the other hand", "instead", "alternatively"),
    *("let me", "let's check", "check again", "to verify", "wait", "that is wrong", "i was mistaken"),
    *("i need to", "the goal is", "in short", "to sum up"),
)
"""Words that thinking is full of: ours, as many as the paper's 39."""
LEAKS = ("<|im_start|>", "Human:", "User:", "Assistant:")


@component("reward", "phrases", asks=("signal",), reads=("rewards", "words"))
def phrases(
    group: Group,
    *,
    phrases: tuple[str, ...] = REASONING,
    most: int = 20,
    gram: int = 20,
    leaks: tuple[str, ...] = LEAKS,
    signal: str = "",
    doubt: float = 0.5,
    share: float = 0.1,
) -> Group:
    """The last turn earns what its words look like, which is no success: a gain under it is one of style. Nothing else is paid.

    RPR = max(0, min(1, p/20) − d − l) with p the different ``phrases`` in all messages, d the share of ``gram`` words in a row that stood before,
    and l how often a role is written that is not the agent's (``leaks``); 0 without an answer. The reasoning-pattern reward of Noisy
    rewards (their released reward manager). With ``signal``, a reward model's score rm of the last turn is paid, and where it is below
    ``doubt`` min(1, rm + ``share``·RPR): its calibration. Ours: the phrases, and messages of all turns count together, but for case.

    Worked by hand: 29 words of which one of ten sequences of 20 stood before, and seven phrases, 0.35 − 0.1; then scores of 0.3 and 0.5.

    >>> from turnwise.trainers.kit.reward_edits import with_signals
    >>> from turnwise.trainers.kit.toy_batches import episode, with_words
    >>> said = with_words(episode([0]), [("a b c d e f g h i " * 4)[:57]])
    >>> round(phrases([said], phrases=tuple("abcdefg"))[0].trajectory.total_reward, 6)
    0.25
    >>> scored = [with_signals(said, [{"rm": score}]) for score in (0.3, 0.5)]
    >>> [round(one.trajectory.total_reward, 6) for one in phrases(scored, phrases=tuple("abcdefg"), signal="rm")]
    [0.325, 0.5]

    Raises:
        RecipeError: ``most`` or ``gram`` is below 1, or a share below 0.
    """
    not_below_zero("reward 'phrases'", doubt=doubt, share=share)
    if most < 1 or gram < 1:
        raise RecipeError(
            f"reward 'phrases': most={most}, gram={gram} cannot be below 1.", "Set them to 1 or more."
        )
    known = {f" {' '.join(words_of(phrase))} " for phrase in phrases}
    roles = {leak.lower() for leak in leaks}

    def pattern(episode: Episode, turns: Turns) -> float:
        if not has_answer(episode, turns):
            return 0.0
        text = "\n".join(turn.action.content for turn in turns)
        words = words_of(text)
        said = f" {' '.join(words)} "
        found = sum(phrase in said for phrase in known)
        return max(
            0.0,
            min(1.0, found / most) - repeated(words, gram) - sum(text.lower().count(role) for role in roles),
        )

    def pay(episode: Episode, turns: Turns) -> Turns:
        if not signal or not turns:
            return paid_instead(turns, pattern(episode, turns))
        score = signal_of(turns[-1], signal)
        return paid_instead(
            turns, min(1.0, score + share * pattern(episode, turns)) if score < doubt else score
        )

    return [replace_turns(one, lambda turns, one=one: pay(one, turns)) for one in group]
