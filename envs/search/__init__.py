"""``turnwise/Search-v0``: find out what a question asks for, in worlds that are made up. Begin with ``env``.

env           SearchEnv                                    tasks      knobs → a question about a library
knobs         what a suite may set                         state      where a search stands
actions       tools: how they are read, what they do       render     what is shown of a search
solver        gold, an imperfect policy                    reward     parts of the reward
answers       whether an answer is right                   question   a question, and what is right about it
datasets      questions from files                         vocabulary invented names
schema → graph → encyclopedia    the made-up world and its pages
inquiry       questions that come one after the other
prose         what pages say beside the facts              clues      vague clues that mean one thing
forms         the forms of questions about it              phrases    how questions and clues are put
village       a little world in few words
corpus, index, embed, library    passages, BM25, search by meaning, all of them in memory or on disk
remote, server                   Search-R1's protocol
simulated     questions whose searches an agent answers
rivals                           searchers that understand nothing, for the fairness table
cache, bench                     files that are made once; how fast search is
"""
