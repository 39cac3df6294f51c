"""Tasks that bring an image: SWE-bench's rows, Harbor's and Terminal-Bench's folders (docs/swe.md, "Tasks of others").

There is no vocabulary and nothing to render: tools answer what commands print, as those of SWE-v0 do. The
knobs are the arguments of ``tasks.draw_task``.

    env          ImageEnv                                 tasks       rows and folders → tasks, suites of them
    state        what is kept beside the container        actions     the tools
    solver       gold, an imperfect policy                judge       tests run where the agent never was; what they said
    prepare      the image that a task starts from
"""
