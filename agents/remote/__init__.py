"""Engines in other processes or on other machines: one protocol, our server, and many servers behind one engine.

``protocol`` is what is said (a subset of vLLM's server), ``server`` says it for an engine of ours and ``vllm_server``
starts vLLM's; ``client`` speaks to one server, ``answer`` reads what it samples, ``router`` makes many of them one
engine; ``transfer`` carries weights; ``guard`` and ``orphan`` keep strangers and orphans away (docs/engines.md).
"""
