"""The agents of conversations' fairness table: the general ones, against another who plays for itself."""

from __future__ import annotations

from turnwise.envs import baselines
from turnwise.envs.baselines import Script, ScriptMoment
from turnwise.envs.dialogue.env import DialogueEnv
from turnwise.envs.messages import Message
from turnwise.envs.rivals import default_rivals
from turnwise.envs.worlds.sessions import Play


def others(agent: Script) -> Script:
    """The other agent: a rival where the scene has one, else the agent that is measured once more.

    Gold would not do where there is no rival: it gives an agent that only says yes all that this one wants.
    """

    def play(now: ScriptMoment) -> Message | str:
        has_one = type(now.env.state.play).rival is not Play.rival
        return baselines.rival(now) if has_one else agent(now)

    return play


RIVALS = default_rivals(DialogueEnv)._replace(others=others)
