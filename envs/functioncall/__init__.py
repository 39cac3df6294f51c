"""Function calling: interfaces with data behind them, requests for what takes several calls, and what cannot be done.

Nine interfaces (apis/*.yaml) hold tables; a request is judged by the data after it and by what was told.

env        FunctionCallEnv                       tasks        knobs → conversations
state      a conversation, and where it is       requests     kinds of requests, with the calls they want
knobs      what a suite may set                  phrases.yaml ways to word them
actions    calls, and words to the user          interfaces   tables and functions, as data and as tools
reading    the calls in a message                data         immutable tables, and what functions do to them
drafting   a request in the making
hearing    what the user makes of words          answers      whether an answer is told, and only one
render     what is told                          reward       how near calls come to the wanted ones (ToolRL)
solver     the gold and the imperfect script     verdict      calls compared with the wanted ones
rivals     who is in the fairness table          vocabulary   values of parameters, by split
wording    units, letters, one or several
"""
