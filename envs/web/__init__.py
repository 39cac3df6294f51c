"""Web applications as environments: a real browser, a real server, and a check of the result.

WebEnv is a base class: tasks, knobs, vocabulary and solver are what a subclass brings, and it has no modules for them.

env        WebEnv: 40 lines of a third party's make a task of any local web application
state      what an episode is: what is decided on, the live site, a copy of it
actions    the actions of agents as tools
render     a page as text
site       what a web application must be able to do: begin a visit, copy it, show its state
sessions   applications in this process (aiohttp + jinja2) whose visits are immutable values
command    applications of others, started by a command
people     a person plays a task in a browser of their own
"""
