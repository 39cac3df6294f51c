"""Web applications as environments: a real browser, a real server, a check on what came of it.

site       what a web application must be able to do: begin a visit, copy it, show its state
sessions   applications in this process (aiohttp + jinja2) whose visits are immutable values
command    applications of others, started by a command
acts       the actions of agents as tools
env        WebEnv: 40 lines of a third party's make a task of any local web application
"""
