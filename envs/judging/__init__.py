"""Judging what was recorded: verdicts, comparisons, first wrong turns, and turns that were hidden, graded by what is known.

Tasks are made of the episodes of a log (``judging:PATH``, ``judging:pair:PATH``, the knob ``log``), or of those that ship with the
package: recorded.jsonl.zst, 1,200 episodes of search/quick and household/easy by scripts of mixed skill, each turn labelled by gold.
A split has the episodes of its own tasks. One question has one answer in one turn, so there are no tools; gold and the
demonstrator are so short that they stand in env, and what the state holds is a task and whether it was answered.

env        JudgingEnv, its gold and state        tasks        knobs → questions, and suites of logs
knobs      what a suite may set                  recorded     episodes of a log, cut into splits
actions    the answer in a message               reward       how near an answer comes
render     episodes as text                      verdicts     solved or not, which is better, in what order
turns      was this step right, the first wrong  hidden       acts, orders and replies to be found
drawing    what a question is made of            rivals       who is in the fairness table

There is no solver and no vocabulary: answers are known from the log, and words are the log's.
"""
