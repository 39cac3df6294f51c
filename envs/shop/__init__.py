"""Text-mode web shopping with WebShop's rules (Yao et al. 2022, arXiv 2207.01206) in pure Python.

As in WebShop: pages, actions, goals, price caps and the score (reward.py). Its defects are gone: prices,
caps and goals are functions of the task; no query is magic; values that two option groups share are named
with their group; states are values, so nothing outlives an episode; every goal can be drawn, and a drawn
goal can be bought.

Different: BM25 is bm25s without stemming; title nouns come from a rule instead of spaCy; the item page says
which options are chosen, so that a page tells its state; what cannot be clicked is answered with what can.

    words, colours     the vocabulary, and the score's colour list
    catalogue          products; catalogues shared by a process
    procedural         seeded catalogues          webshop_data    the original files
    search             BM25
    reward             goals and their score
    engine, pages      the page machine, and what pages say
    knobs, goals       what a suite may set, and how tasks are made of it
    env                ShopEnv
"""
