"""Ways to word requests. The last quarter of each list is said in test only, the one before it in dev only."""

from __future__ import annotations

PLEASE = (
    "Please {}.", "Could you {}?", "I need you to {}.", "Would you {} for me?", "{}, please.", "Can you please {}?",
    "I'd like you to {}.", "Your next job: {}.", "Be so kind as to {}.", "One thing to do: {}.", "Kindly {}.", "Do this for me: {}.",
)  # fmt: skip
NEXT = (
    "Thanks. ",
    "Good. ",
    "Now something else. ",
    "Next. ",
    "Fine, and then: ",
    "Moving on: ",
    "Lovely. ",
    "Right. ",
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
    "check {it}; with a {field} above {border}, {yes}, else {no}",
    "find out the {field} of {it}, and {yes} if that exceeds {border}, but {no} if it does not",
    "in case the {field} of {it} is over {border}, {yes}; in all other cases {no}",
)
WHAT = (
    "what is the {field} of {it}?", "which {field} does {it} have?", "what does it say about {it}, namely the {field}?",
    "can you name the {field} of {it}?",
)  # fmt: skip
COUNT = (
    "how many {nouns} {such} are there?", "what is the number of {nouns} {such}?", "count the {nouns} {such}: how many?",
    "how large is the number of {nouns} {such}?",
)  # fmt: skip
TOTAL = (
    "what is the total {field} of all {nouns} {such}?", "what does the {field} of the {nouns} {such} add up to?",
    "taken together, how much {field} do the {nouns} {such} have?", "if you sum the {field} over the {nouns} {such}, what comes out?",
)  # fmt: skip
WHICH = ("which one is {it}?", "what is {it} called?", "what is the name of {it}?", "can you name {it}?")
