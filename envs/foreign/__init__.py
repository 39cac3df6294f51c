"""Worlds of others: packages that live in an interpreter of their own, played through the contract (docs/how-to/foreign-worlds.md).

Each package renders its own text and judges by its own rules, so there are no modules render, solver, vocabulary and knobs;
tasks are made by each adapter.

env         ForeignEnv: an environment out of a package     live        one process with its world
state       what was done so far; answers, checked          actions     what the package is told, and its tools here
named       named environments with a lock file             catalogue   which packages have an adapter
host        runs in the other interpreter                   sides       the other side of each adapter, which runs there too
reasoning_gym, textarena, scienceworld, textworld_express, bfcl, openenv, tau2, verifiers: the adapters
"""
