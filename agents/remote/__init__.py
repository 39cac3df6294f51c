"""Engines in other processes or on other machines: one protocol, our server, and many servers behind one engine.

``protocol`` is what is said (a subset of vLLM's server), ``server`` says it for an engine of ours and ``vllm_server``
starts vLLM's; ``client`` speaks to one server, ``answer`` reads what it samples; ``engine`` makes many of them one, which
``serving`` holds in a thread, by a ``router`` that chooses, a ``watch`` that looks at them with a ``roster``, and ``publishing`` that
gives them weights; ``transfer`` carries these; ``guard``, ``own_token`` and ``orphan`` keep strangers and orphans away
(docs/engines.md).
"""
