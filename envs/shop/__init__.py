"""Text-mode web shopping with WebShop's rules (Yao et al. 2022, arXiv 2207.01206) in pure Python.

As in WebShop: pages, actions, goals, price caps and the score (reward.py). Its defects are gone: prices,
caps and goals are functions of the task; no query is magic; values that two option groups share are named
with their group; states are values, so nothing outlives an episode; every goal can be drawn, and a drawn
goal can be bought.

Different: BM25 is bm25s without stemming; title nouns come from a rule instead of spaCy; the item page says
which options are chosen, so that a page tells its state; what cannot be clicked is answered with what can.

    env          ShopEnv                                  tasks       knobs → a catalogue and a goal
    knobs        what a suite may set                     state       pages, what stays the same, states
    actions      tools, what can be clicked, where it leads
    render       what pages say                           solver      gold, an imperfect policy
    scripts      shoppers without a model: first, scan    rivals      who is in the fairness table
    reward       goals and their score                    vocabulary  words, the score's colour list
    catalogue    products; catalogues shared by a process  index      BM25 search
    procedural   seeded catalogues of the small language  datasets    the original files
    goods/       kinds of goods, products drawn from them conditions  what a request demands, tested exactly
    asking/      kinds of asking, requests                refine      sorting and filtering results
    pictures     drawings of products for the site
    site         the shop as a web site                   browser     ShopBrowserEnv, on that site
    human/       predicting what a person does next in the shop
"""
