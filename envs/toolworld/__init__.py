"""Stateful tool worlds with users: customer service (retail, airline, telecom) and a day's apps.

In the spirit of tau-bench (Yao et al. 2024, arXiv 2406.12045), tau2-bench (dual control) and AppWorld, generated
from seeds. Their traps are closed: no task is solved by doing nothing, facts are matched by type and value
instead of by substring, what is changed beyond the goal fails, and the user is a state machine.

    database   immutable tables with a hash that is kept up to date
    domain     what a domain is made of: tools, policy, users' words, rules
    story      what a user wants: stages, facts, the plan that solves it
    facts      typed values in free text                speech     what a user makes of an agent's words
    users      the scripted user; the script for a user played by another policy
    drafts     how stories are drawn                    tasks      knobs, worlds, tasks
    judge      outcome, progress, parts of step rewards
    env        ToolWorldEnv                             files      domains given as tau-bench-style files
    desk/ retail/ airline/ telecom/ apps/               the domains
"""
