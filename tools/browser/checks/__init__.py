"""Hostile pages: what they try, and what must hold in a real browser.

server   a site full of them, and a place outside that notes whoever comes
attacks  the pages, as a table
play     one attack on one session, and what was seen
report   ``python -m turnwise.tools.browser.checks.report`` writes docs/web-attacks.md
"""
