import subprocess
import sys

import pytest


@pytest.mark.parametrize(
    ("steps", "said"), [("0", "a b c"), ("1", "b c a"), ("4", "b c a"), ("-1", "c a b"), ("-5", "b c a")]
)
def test_rotate(steps, said):
    command = [sys.executable, "/app/rotate.py", steps, "a", "b", "c"]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip() == said
