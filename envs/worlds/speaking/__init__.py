"""A language model in the world: who plays a user or a partner behind an OpenAI-compatible server.

What such a model says is a part of the world, so it must be the same for the same words, and it must stay the person
that it plays. Every answer is kept in a record under the hash of what was asked; forks, replays and later runs read it
there (E3, E4). What it says is examined before it counts. What can be repaired is, by name; what cannot is asked for
again, and in the end it is a failure of the infrastructure, never a score.

    speaker     a spec such as ``openai:MODEL@URL`` → somebody who can be asked; asked again when off script
    client      one request over HTTP, within a time and a number of bytes
    record      answers by the hash of what was asked
    offscript   what somebody who plays a person must not say
    server      a local server that answers from a record or from a function; for tests and demonstrations
"""

from __future__ import annotations

import os

VARIABLE = "TURNWISE_SPEAKER"
"""The environment variable that names a model for the suites that need one."""


def default_spec() -> str:
    """Return the value of the environment variable; "" where it is not set."""
    return os.environ.get(VARIABLE, "")
