"""Python in a sandbox (the process backend: the programs here are ours)."""

import pytest

from turnwise.tools.core import ToolCall, ToolError, tool
from turnwise.tools.python import PythonTool
from turnwise.tools.sandbox.backends.process import ProcessBackend
from turnwise.tools.sandbox.core import SandboxImage


def test_programs_run_fail_and_are_ended():
    with ProcessBackend(unsafe=True).start(SandboxImage()) as sandbox:
        run = PythonTool(sandbox, seconds=25)
        made = tool(run.python)
        assert run.python(**made.validate(ToolCall("python", {"code": "print(6 * 7)"}))) == "42"
        assert run.python("open('note.txt', 'w').write('kept')") == "(nothing was printed)"
        assert run.python("print(open('note.txt').read())") == "kept"
        with pytest.raises(ToolError, match="ZeroDivisionError"):
            run.python("print('before'); 1 / 0")
        with pytest.raises(ToolError, match="invalid syntax"):
            run.python("1 +* 2")
        with pytest.raises(ToolError, match="at most"):
            run.python("#" * 200_000)
        run.seconds = 0.5
        with pytest.raises(ToolError, match=r"more than 0\.5 s"):
            run.python("while True: pass")
