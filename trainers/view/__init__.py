"""``turnwise view``: runs, evaluations and their episodes in the browser, and any turn played differently.

    places    what the folders hold: runs, evaluations, results of campaigns
    index     an SQLite file beside nobody's log: what episodes are searched, filtered and sorted by
    selection what a reader asks of the index, and the rows that answer
    told      an episode made ready to be shown: turns, tokens, differences of files; branches: its turns as a tree
    given     what credit rules give the turns of a logged group
    forking   a process in which a logged episode is played on from one of its turns
    jobs      those processes, and what they have said so far
    drawing   curves, histograms and strips as SVG without styles or scripts
    overview  what the first page shows; run, evaluation, episodes, campaign, comparing, sides, what_if: likewise, a page each
    pages     templates to pages; export: one file that holds a selection
    server    who may ask for what

The pages need no script. What comes out of a log is data: it is escaped, and shown with hidden characters visible.
"""
