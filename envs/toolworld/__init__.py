"""Stateful tool worlds with users: customer service (retail, airline, telecom) and a day's apps.

In the spirit of tau-bench (Yao et al. 2024, arXiv 2406.12045), tau2-bench (dual control) and AppWorld, generated
from seeds. Their traps are closed: no task is solved by doing nothing, facts are matched by type and value
instead of by substring, what is changed beyond the goal fails, and the user is a state machine, another agent, or a language model (spoken).

What a call answers is JSON (actions.as_text), and what a user says is his own, so there is no module render. Each
domain has the same modules again: state (tables and worlds), actions (its tools), policy, tasks.

    env          ToolWorldEnv                           tasks      worlds, stories, tasks
    state        a moment; what an episode keeps        knobs      what a suite may set
    actions      calls and words, and what they do      reward     outcome, progress, parts of step rewards
    solver       plans; the imperfect script            vocabulary names of people and places
    database     immutable tables with a hash           domain     what a domain is made of; drafts of stories
    story        what a user wants, and its plan        cases      from a task to its domain and world
    users        the scripted user                      mind       what he keeps in mind, and agreed to
    speech/      what he makes of an agent's words      phrases    how he says what is no request
    requests     which of several requests is spoken of  alternatives  wishes that depend on what is found out
    operations   changes as descriptions                granting   their requests and refusals
    service      tools of a service desk                arithmetic  a calculator for agents
    small        the user of the small language         facts      typed values in free text
    spoken       a language model as the user           proposals  the tool ``propose``
    sentences    scores labelled sentences by what the user does
    rivals       who is in the fairness table
    *.yaml       words and tables of the domains: operations, phrases, language, wishes
    files/       domains given as tau-bench-style files
    desk/ retail/ airline/ telecom/ apps/               the domains
"""
