"""A small issue tracker as a web site, and twenty kinds of tasks on it.

What an agent sees is a page in a browser (turnwise.envs.web.render), and its actions are a browser's
(turnwise.envs.web.actions), so there is no module render, and actions are what the forms do.

env              turnwise/Tracker-v0
state            issues, comments, labels, people: immutable values
actions          what each form does to them
tasks            tasks: drawn, and built again from what they say
task_templates   twenty templates: what is asked, and the forms that do it or the answer
content          a project's history, made from a seed
solver           the gold script: from a page to the next form, field by field
knobs            what a suite may set
vocabulary       names, labels and sentences of projects
site             the pages
"""
