"""Games of words and of two: deduction (Wordle's kind, mastermind, twenty questions) and matches (three in a
row, connect four, Kuhn poker), against scripted opponents or between two agents.

A game is a play (turnwise.envs.worlds.sessions): one class that reads a move, makes it and shows what came of it, so
there are no modules actions and render.

    env          GamesEnv                                deduction  a secret, questions, answers: the solver
    tasks        secrets, first positions, deals         riddles    the three deduction games
    knobs        what a suite may set                    boards     lines on boards: rules
    state        positions                               lines      matches on boards
    solver       search on boards                        kuhn       rules, best responses, exploitability
    vocabulary   words, colours, made-up things          poker      matches of Kuhn poker
    opponents    scripted opponents, strength            probe      how a policy plays Kuhn poker
"""
