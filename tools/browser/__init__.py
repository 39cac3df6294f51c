"""A real browser as a tool: one Chromium, many isolated sessions, driven over the DevTools protocol.

    session = lease(chromium(), "http://127.0.0.1:8000")
    session.goto("/")
    print(session.look().text)
    session.click("e3")
    session.close()

* Each session has a browser context of its own (cookies, storage, cache); contexts are cleaned and reused.
* A session reaches its origin and nothing else: all other traffic is sent to a proxy that does not exist.
* Actions end when the page has come to rest (no load, no request, no change), never after a fixed time.
* What a page does wrong (hangs, crashes, never stops loading) is a :class:`~turnwise.tools.core.ToolError`, and
  the page is opened again; what Chromium does wrong is an :class:`~turnwise.errors.InfraError`, and the next
  lease starts a new Chromium.

Playwright starts Chromium and keeps contexts, pages and dialogs. What happens at every step (look, click, wait) goes
over the DevTools protocol directly, because Playwright's own injected script costs more than a page load.

    chromium   finding it, its switches       pool      its process, leases
    threads    its event loop's thread        tab       one tab: rest, mouse, keyboard
    window     the tabs of one session        session   what an agent does
    looking, tree, html                       what pages look like to it
    inside.js  runs beside the page's scripts, in a world that they cannot reach
"""
