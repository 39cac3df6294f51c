"""Options by which engines elsewhere are found and watched."""

from __future__ import annotations

from typing import NamedTuple


class RemoteOptions(NamedTuple):
    """Options by which engines are found and watched.

    Attributes:
        token: that the engines ask for; without one, that of this user's engines of this machine is looked up.
        urls_file: a file with the URLs of more engines, one a line. It is read again all the time: engines join and leave.
        publish_host: the address of this machine as engines on other machines reach it, to fetch weights.
        silence_s: an engine that has work, or is asked how it is, and says nothing for so long is taken to be wedged.
        patience_s: how long an answer waits for an engine while none serves, and a start while none is there.
        publish_s: what an engine may take to fetch weights, and to load them.
        publish: the way in which it gets them, one of :data:`~turnwise.agents.remote.publishers.PUBLISHERS`.
        vocabulary: how many tokens the model of the run has; 0: as the engines say.
    """

    token: str = ""
    urls_file: str = ""
    publish_host: str = "127.0.0.1"
    silence_s: float = 60.0
    patience_s: float = 120.0
    publish_s: float = 600.0
    publish: str = "auto"
    vocabulary: int = 0
