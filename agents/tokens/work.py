"""Counts of the work that a renderer does. They do not depend on the machine or its load, as times do."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class TokenWork:
    """Counts of work since a renderer was made.

    Attributes:
        renderings: calls of the chat template.
        rendered: messages that it was given.
        guarded: characters that were searched for control tokens.
        encoded: characters that were tokenised.
    """

    renderings: int = 0
    rendered: int = 0
    guarded: int = 0
    encoded: int = 0

    def __sub__(self, other: TokenWork) -> TokenWork:
        """Return the work that was done between two moments.

        >>> TokenWork(3, 9) - TokenWork(1, 2)
        TokenWork(renderings=2, rendered=7, guarded=0, encoded=0)
        """
        return TokenWork(
            self.renderings - other.renderings,
            self.rendered - other.rendered,
            self.guarded - other.guarded,
            self.encoded - other.encoded,
        )
