"""How a user says what is no request of his own: a yes, a question back, that he waits. No split shares a phrase."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random

from turnwise.envs.toolworld.story import Story
from turnwise.tasks.core import Split

PHRASES: Mapping[str, tuple[str, ...]] = {
    "yes": (
        "Yes, please.", "Yes, go ahead.", "That's fine, do it.", "Sure, please do.", "Yes, that works for me.",
        "Please go ahead with that.", "Agreed.", "Yes, exactly.", "Sounds right, yes.", "Do it, please.",
    ),
    "yes_if": (
        "Yes, if that does what I asked for:", "If that is my request, then yes:", "Yes, so long as it's this:", "As long as it comes to this, yes:",
        "Yes, if we mean the same:", "If you mean what I said, yes:", "That's fine if it does this:",
    ),
    "vague": (
        "What exactly would you do?", "With what? Please tell me first.", "Go ahead with what, precisely?",
        "I'd like to know what you mean to change.", "Could you say what it is that you want to do?",
        "Before I say yes: to what?", "Hm, what are you proposing?",
    ),
    "not_that": (
        "No, that is not what I asked for.", "That's not it.", "No, not like that.", "You misunderstood me.",
        "That isn't what I meant.", "No. Let me say it again.", "No, I asked for something else.",
    ),
    "too_much": (
        "What? I will certainly not pay that.", "That can't be right, it is far too much.", "No, never at that price.",
        "You must be joking. No.", "That sum makes no sense to me. No.",
    ),
    "wait": (
        "Thanks.", "All right, I'll wait.", "Thank you.", "I'm waiting.", "Take your time.", "Good, thank you.", "I see.",
        "Thanks a lot.", "I'm still here.",
    ),
    "as_said": (
        "As I said:", "Well, like this:", "I told you:", "It's this:", "That's what I said:", "Once more:", "Again:",
    ),
    "unknown": (
        "I don't know that.", "I can't tell you that.", "I'm not sure, I don't have that at hand.", "No idea, sorry.",
        "That I can't say.", "I have no answer to that.",
    ),
    "puzzled": (
        "Sorry, I don't understand.", "Pardon?", "I don't follow.", "What do you mean?", "Excuse me?",
        "That makes no sense to me.",
    ),
    "not_yet": (
        "I don't see anything changed here.", "Hm, nothing has happened on my side.", "It is still as it was, though.",
        "My account shows nothing of that.", "Are you sure? It looks the same to me.",
    ),
    "still": (
        "Well, my request is still open.", "Let's finish this first.", "I'm still waiting for this:", "As I said:",
        "What about what I asked?", "First things first.",
    ),
    "and_now": (
        "Okay. Is it done, then?", "And is it settled?", "So that's all taken care of?", "I see. Is that finished now?",
        "So it's complete?",
    ),
    "doubt": (
        "So you can't do it?", "Is that a no?", "Does that mean it isn't possible?", "You mean it won't work at all?",
        "So the answer is no?",
    ),
    "other": (
        "No thanks, nothing else instead. So you can't do what I asked?", "I don't want anything else. Is that a no, then?",
        "No, only what I asked for. Is it not possible?", "Not that, thank you. So it can't be done?",
    ),
    "broken": (
        "It still doesn't work.", "No, nothing has changed, still no connection.", "I tried, and it's the same as before.",
        "Still dead, I'm afraid.", "No luck, it does not load anything.",
    ),
    "wont": ("Okay, I won't.", "All right, I leave it.", "Fine, I'm not touching it.", "Good, I'll keep my hands off."),
    "bye": (
        "Thank you, that is all. Goodbye.", "Great, that was everything. Bye.", "Thanks for your help, goodbye.",
        "That's all I needed. Have a nice day.", "Nothing else from me. Thanks and bye.",
    ),
    "leave": (
        "This leads nowhere. I will try elsewhere.", "I give up. Goodbye.", "I'll call another time.",
        "That's enough, I'm hanging up.",
    ),
    "several": (
        "I need more than one thing.", "There are a few things.", "It's about several matters.", "I have a short list.",
        "You can do more than one thing for me today.", "I'm calling for more than one reason.",
    ),
    "besides": (
        "After that:", "And then:", "Once that is settled:", "Next:", "When that's finished:", "Then comes this:",
    ),
    "back": (
        "And the other thing:", "Then there was this:", "Now to what else I told you:", "Next on my list:",
        "And what I said besides:", "On to the other matter:",
    ),
}  # fmt: skip
"""Act → ways to say it. The last is of the test split, the one before of the dev split."""


def pool(ways: tuple[str, ...], split: Split) -> tuple[str, ...]:
    """The ways of a split: no two splits share one, where there are three or more.

    >>> [pool(("a", "b", "c", "d", "e", "f"), split) for split in Split]
    [('a', 'b', 'c'), ('d',), ('e', 'f')]
    """
    if len(ways) < 3:
        return ways
    held = max(1, len(ways) // 3)
    dev = max(1, held // 2)
    start = len(ways) - held - dev
    parts = {Split.TRAIN: ways[:start], Split.DEV: ways[start : start + dev], Split.TEST: ways[start + dev :]}
    return parts[split]


def draw_voice(rng: Random, split: Split) -> dict[str, str]:
    """One phrase of the split for each act."""
    return {act: rng.choice(pool(ways, split)) for act, ways in PHRASES.items()}


def phrase(story: Story, act: str) -> str:
    """How the user of this story says it."""
    return story.voice.get(act) or PHRASES[act][0]
