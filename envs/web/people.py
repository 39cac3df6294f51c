"""Lets a person play a web task in their own browser, scored as an agent is."""

from __future__ import annotations

import time

from turnwise.envs.registry import make
from turnwise.envs.web.env import WebEnv
from turnwise.envs.web.sessions import SessionVisit
from turnwise.envs.web.state import WebState
from turnwise.errors import TurnwiseError
from turnwise.tasks.core import Task
from turnwise.terminal import hand_over
from turnwise.tools.browser.looking import View

_POLL = 0.2  # seconds between two looks at whether the person is done


def browse(task: Task) -> float | None:
    """Open the task's site for a person, say where, and wait; the score, or None after Ctrl-C.

    Raises:
        TurnwiseError: the environment is no web site.
    """
    env = make(task.env)
    if not isinstance(env, WebEnv):
        raise TurnwiseError(f"{task.env} is no web site.", "Leave --browse out, and play it here.")
    visit = env.begin_visit(task)
    address = visit.door if isinstance(visit, SessionVisit) else visit.origin + env.start
    hand_over(f"{task.prompt}\n\nOpen {address} in your browser (this machine only). Ctrl-C ends.")
    try:
        while (score := env.verdict(WebState(env.server_state(visit), View("", "", "")))) is None:
            time.sleep(_POLL)
        return score
    except KeyboardInterrupt:
        return None
    finally:
        visit.close()
