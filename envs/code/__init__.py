"""Programming to a specification: code runs in a sandbox and is judged by hidden tests it never meets the answers of.

There is no vocabulary: statements are written by the families of exercises.

    env          CodeEnv                                  tasks        knobs → a problem
    knobs        what a suite may set                     state        the draft and what is known of it
    actions      tools: how they are read, written        render       what is told
    solver       gold, an imperfect policy                problem      statement, cases, when values are the same
    contest/     contest problems, whose largest tests need a fast algorithm
    families/    generated exercises                      quick        tasks in the small language
    expression   that language                            datasets     published problems, as tasks of ours
    published, official      published benchmarks as they are; their comparisons
    kernel       what runs in the sandbox                 runner       runs programs there
    mutants, quality      wrong programs, and how many of them the tests expose
    triples      programs, inputs and outputs that a policy proposes and solves
    triple_parts, induction  their blocks; programs that are found from what they give
    small_triples         the same by chance, for small models
    battery/, attacks     agents that attack instead of solving
"""
