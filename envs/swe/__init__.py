"""Bug fixing in repositories: turnwise/SWE-v0 (docs/swe.md).

There is no vocabulary and nothing to render: the prompt is the issue, and tools answer what commands print. The knobs
are the arguments of ``tasks.draw_task``.

    env          SweEnv                                   tasks       files of instances, by split
    state        what is kept beside the sandbox          instance    one bug: what was done, which tests show it
    actions      the tools in a sandbox                   place       what it starts as; where a bug is
    solver       gold, an imperfect policy                reward      whether a repair is right
    guidance     help for who failed
    twins, rounds, probes, confirm, prove    altered tests and outside values, which judge beside the tests
    desk         the sandbox, and the tools in it (Image-v0 has the same)
    suite, inside/     running tests in a sandbox, and the programs that do
    packages, small/   repositories that bugs are put into
    build: draw, mutate, operators, source, issue, baseline, warm, verify    making tasks and validating them
    deep: deepcases, deepdrift, deepstate, deepjoin, whole, symptoms    bugs of several places, issues that show no call
    add, layout, needs, sdists           packages of users: from an index, a folder, a YAML
    history: releases, hunks, cut, changelog, pairs    real bugs: what a release repaired
    localise, ladder, levels, sweep      scripts that look for a bug, and that play: how hard a task is
    adopt: importers, diffs              tasks of others
    attacks, impostors, redteam          agents that attack instead of repairing
"""
