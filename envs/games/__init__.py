"""Games of words and of two: deduction (Wordle's kind, mastermind, twenty questions) and matches (three in a
row, connect four, Kuhn poker), against scripted opponents or between two agents.

    tasks       knobs, and how tasks are made                env       GamesEnv
    deduction   a secret, questions, answers: the solver     riddles   the three deduction games
    words       the vocabulary                               boards    lines on boards: rules and search
    lines       matches on boards                            kuhn      rules, best responses, exploitability
    poker       matches of Kuhn poker                        opponents scripted opponents, strength
"""
