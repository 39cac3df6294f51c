"""Our worlds for programs of others, which play them without the rest of Turnwise.

session          an episode of a suite: what a program says goes in, what it hears comes out
rows             the tasks of a suite as rows: prompt, tools, place, hash
trl              TRL's `environment_factory`: a class for each set of tools, whose methods are the tools
inspect_task     tasks of inspect_ai
verifiers_package   packages of verifiers v1
harbor_folders   task folders of Harbor; packed holds the programs that play in both
pettingzoo_env   PettingZoo's AEC environments, for suites of several agents
"""
