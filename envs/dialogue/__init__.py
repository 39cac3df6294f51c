"""Conversations with a goal, against scripted partners, between two agents, or with a language model (spoken).

Scripted partners are small language games: what they say is a function of the task and of what was said, and they
understand plain text by the words and phrases in it (actions.py, comforting.py, persuading.py); words the agent is told. Whoever wants natural conversation takes
a language model as the partner.

A scene is a play (turnwise.envs.worlds.sessions): one class that knows the rules, the texts and the gold script of
a task, so there are no modules render and solver.

    env          DialogueEnv                              bargain    negotiation over several issues
    tasks        how tasks are made                       persuade   concerns, and what meets them
    knobs        what a suite may set                     comfort    a sad user (RLVER's emotion score)
    state        positions in each scene                  social     two-sided goals (SOTOPIA's kind)
    actions      speech acts out of words
    comforting   what a comforting message does           persuading what a persuading message does
    vocabulary   families of words, paraphrases           spoken     a language model as the partner
    rivals       who plays for the fairness table          scorn      contempt, told from what denies or reports it
"""
