"""Ways to word requests. The last quarter of each list is said in test only, the one before it in dev only."""

from __future__ import annotations

PLEASE = (
    "Please {}.", "Could you {}?", "I need you to {}.", "Would you please {}?", "{}, please.", "Can you please {}?",
    "I'd like you to {}.", "Your next job: {}.", "Be so kind as to {}.", "Here is what to do: {}.", "Kindly {}.", "Do this for me: {}.",
)  # fmt: skip
NEXT = (
    "Thanks. ",
    "Good. ",
    "Now something else. ",
    "Next. ",
    "Fine, and then this. ",
    "Moving on. ",
    "Lovely. ",
    "Right. ",
)
AFTER_REFUSAL = (
    "Then something else. ",
    "All right, never mind that. ",
    "A pity, but go on. ",
    "Well, leave it. ",
)
QUESTION = (
    "{}", "Tell me: {}", "Quick question: {}", "I wonder: {}", "Do you know this: {}", "One question: {}", "Let me ask you: {}",
    "Please find out: {}",
)  # fmt: skip
STATED = (
    "the {field} of {it}",
    "the same {field} as {it}",
    "what is given as the {field} of {it}",
    "whatever {it} has as its {field}",
)
LETTER = (
    ", {letter} being {value}",
    ", where {letter} is {value}",
    ", {letter} meaning {value}",
    ", {letter} standing for {value}",
)
EACH = (
    "all {nouns} {such}",
    "every one of the {nouns} {such}",
    "each of the {nouns} {such}",
    "the whole lot of {nouns} {such}",
)
NEW = ("the new one", "it", "what you have just made", "that one")
THEN = (
    "{first}, then {then}", "{first} and after that {then}", "{first}; as soon as that is done, {then}",
    "{first}, and once it is there, {then}",
)  # fmt: skip
IF = (
    "look at the {field} of {it}: if it is more than {border}, {yes}, otherwise {no}",
    "check the {field} of {it}; if it is above {border}, {yes}, else {no}",
    "find out the {field} of {it}, and {yes} if that exceeds {border}, but {no} if it does not",
    "see whether the {field} of {it} is over {border}: if so, {yes}; in all other cases {no}",
)
WHAT = (
    "what is the {field} of {it}?", "which {field} does {it} have?", "what does {it} have as its {field}?",
    "can you name the {field} of {it}?",
)  # fmt: skip
COUNT = (
    "how many {nouns} {such} are there?", "what is the number of {nouns} {such}?", "count the {nouns} {such}: how many?",
    "how large is the number of {nouns} {such}?",
)  # fmt: skip
TOTAL = (
    "what is the total {field} of all {nouns} {such}?", "what does the {field} of the {nouns} {such} add up to?",
    "taken together, what {field} do the {nouns} {such} have?", "if you sum the {field} over the {nouns} {such}, what comes out?",
)  # fmt: skip
WHICH = (
    "what is the {called} of {it}?", "which {called} belongs to {it}?", "what {called} do you find for {it}?",
    "by which {called} is {it} known?",
)  # fmt: skip
JOINED = (
    "{first}, and {last}", "{first}; also, {last}", "{first}; besides, {last}", "{first}, and apart from that, {last}",
    "{first}; at the same time, {last}", "{first}, and in addition, {last}", "{first}; on top of that, {last}",
    "{first}, and quite independently, {last}",
)  # fmt: skip
"""Ways to ask for two things that have nothing to do with each other."""
