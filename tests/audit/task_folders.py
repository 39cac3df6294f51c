"""Task folders of Harbor's kind, written by hand: a sound one, and one with each defect that its tests can have."""

from __future__ import annotations

from pathlib import Path

SOUND = {
    "task.toml": "[verifier]\ntimeout_sec = 60.0\n[agent]\ntimeout_sec = 60.0\n",
    "instruction.md": "The file /app/orders.csv lists orders with their amounts. Write the sum of all amounts to /app/total.txt, as a whole number and nothing else.\n",
    "environment/Dockerfile": "FROM python:3.11-slim\nWORKDIR /app\nCOPY orders.csv /app/orders.csv\n",
    "environment/orders.csv": "order,amount\na,1250\nb,730\nc,4188\n",
    "solution/solve.sh": "#!/bin/bash\nawk -F, 'NR > 1 { s += $2 } END { print s }' /app/orders.csv > /app/total.txt\n",
    "tests/test.sh": "#!/bin/bash\npython3 -m pytest -q /tests/test_total.py\nif [ $? -eq 0 ]; then echo 1 > /logs/verifier/reward.txt; else echo 0 > /logs/verifier/reward.txt; fi\n",
    "tests/test_total.py": "from pathlib import Path\n\n\ndef test_total():\n    assert Path('/app/total.txt').read_text().strip() == '6168'\n",
}
_TEST = "tests/test_total.py"
_HEAD = "import pytest\nfrom pathlib import Path\n\n\n"
DEFECTS: dict[str, dict[str, str]] = {
    "always_one": {"tests/test.sh": "#!/bin/bash\npython3 -m pytest -q /tests/test_total.py || true\necho 1 > /logs/verifier/reward.txt\n"},
    "always_zero": {_TEST: "def test_total():\n    assert open('/app/total.txt').read() == open('/app/orders.csv').read()[:0] + 'x' * 0 and False\n"},
    "gold_refused": {"solution/solve.sh": "#!/bin/bash\necho 6169 > /app/total.txt\n"},
    "empty_accepted": {_TEST: _HEAD + "def test_total():\n    text = Path('/app/total.txt').read_text().strip()\n    assert text == '' or text == '6168'\n"},
    "only_skipped": {_TEST: _HEAD + "@pytest.mark.skip(reason='later')\ndef test_total():\n    assert Path('/app/total.txt').read_text().strip() == '6168'\n"},
    "no_assertion": {_TEST: _HEAD + "def test_total():\n    total = Path('/app/total.txt').read_text().strip()\n    print(total)\n"},
    "answer_shown": {"environment/notes.md": "For reviewers: expected answer: 6168\n", "environment/Dockerfile": "FROM python:3.11-slim\nWORKDIR /app\nCOPY . /app/\n"},
    "key_word": {_TEST: _HEAD + "def test_total():\n    text = Path('/app/total.txt').read_text()\n    assert 'correct' in text or text.strip() == '6168'\n"},
    "flaky": {_TEST: "import random\n" + _HEAD + "def test_total():\n    assert random.random() > 0.2\n    assert Path('/app/total.txt').read_text().strip() == '6168'\n"},
    "time_out_passes": {
        "tests/test.sh": "#!/bin/bash\ntimeout 30 python3 -m pytest -q /tests/test_total.py\ncode=$?\nif [ $code -eq 0 ] || [ $code -eq 124 ]; then echo 1 > /logs/verifier/reward.txt; else echo 0 > /logs/verifier/reward.txt; fi\n"
    },
    "needs_network": {
        _TEST: "import urllib.request\n" + _HEAD
        + "def test_total():\n    want = urllib.request.urlopen('https://answers.example.com/total').read()\n    assert Path('/app/total.txt').read_text().strip() == want.decode()\n"
    },
    "broken_setup": {
        "tests/test.sh": "#!/bin/bash\nset -e\necho 0 > /logs/verifier/reward.txt\ncp /tests/fixtures/expected.txt /tmp/expected.txt\npython3 -m pytest -q /tests/test_total.py && echo 1 > /logs/verifier/reward.txt\n"
    },
}  # fmt: skip


def write(folder: Path, name: str, changed: dict[str, str] | None = None) -> Path:
    """Write a sound task, with some files changed."""
    for path, text in {**SOUND, **(changed or {})}.items():
        place = folder / name / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)
    return folder / name
