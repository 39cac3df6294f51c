"""A small issue tracker as a web site, and twenty kinds of tasks on it.

board    issues, comments, labels, people: immutable values; what each form does to them
content  a project's history, made from a seed
asks     twenty templates: what is asked, and the forms that do it or the answer
cases    tasks: drawn, and built again from what they say
site     the pages
plan     the gold script: from a page to the next form, field by field
env      turnwise/Tracker-v0
"""
