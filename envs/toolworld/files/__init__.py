"""Domains given as data files, in tau-bench's manner: a JSON database, a policy, tools, tasks.

A folder holds

* ``db.json``: ``{table: {key: row}}``, rows being JSON objects;
* ``policy.md``: what the agent is told;
* ``tools.json``: a list of ``{name, description, parameters, kind, does}``: a JSON schema, a kind as in
  :class:`turnwise.envs.toolworld.domain.DomainAction`, and one of the operations below;
* ``tasks.json``: a list of tasks in tau-bench's form (``instruction``, ``actions``, ``outputs``) or tau2-bench's
  (``user_scenario``, ``evaluation_criteria`` with ``actions`` and ``communicate_info``). ``opening`` and ``facts``
  (slot → sentence) tell the scripted user what to say; without them he says the instruction.
* ``slots.json`` (optional): ``{slot: [words by which it is asked for]}``.

Operations, with ``$name`` standing for an argument: ``{"get": table, "key": …}``, ``{"find": table, "where": {field:
…}}``, ``{"set": table, "key": …, "fields": {…}, "require": {field: value}}``, ``{"add": table, "prefix": …,
"fields": {…}}``. Tools whose behaviour needs code are written in Python instead, as in the domains beside this file.

A folder of tau-bench's own layout (``wiki.md``, ``data/``, ``tools/``, ``tasks_*.py``) is read by
:mod:`turnwise.envs.toolworld.files.taubench`. Not copied from tau-bench: a task that doing nothing would solve is refused, a planned action that fails is an error
when the task is loaded, and outputs are matched by type and value.

domain     the domain of a folder              actions    what its tools do: operations told as data
tasks      its tasks, checked                  taubench   folders of tau-bench's own layout
"""
