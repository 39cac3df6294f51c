"""Conversations with a goal, against scripted partners or between two agents.

Partners are deterministic: what they say is a function of the task and of what was said. They understand plain
text by the words in it (words.py), so any phrasing works and nothing has to be written in a set form.

    words       speech acts out of words, paraphrases       bargain    negotiation over several issues
    tasks       knobs, and how tasks are made               persuade   concerns, and what meets them
    env         DialogueEnv                                 comfort    a sad user (RLVER's emotion score)
                                                            social     two-sided goals (SOTOPIA's kind)
"""
