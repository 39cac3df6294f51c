"""Conversations with a goal, against scripted partners or between two agents.

Partners are deterministic: what they say is a function of the task and of what was said. They understand plain
text by the words in it (actions.py), so any phrasing works and nothing has to be written in a set form.

A scene is a play (turnwise.envs.worlds.sessions): one class that knows the rules, the texts and the gold script of
a task, so there are no modules render and solver.

    env          DialogueEnv                              bargain    negotiation over several issues
    tasks        how tasks are made                       persuade   concerns, and what meets them
    knobs        what a suite may set                     comfort    a sad user (RLVER's emotion score)
    state        positions in each scene                  social     two-sided goals (SOTOPIA's kind)
    actions      speech acts out of words
    vocabulary   families of words, paraphrases
"""
