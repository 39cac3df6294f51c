"""What `turnwise VERB --help` says: an example that can be given as it stands."""

from __future__ import annotations

import inspect
import re
import shlex

import pytest

from turnwise.cli.app import VERBS, app
from turnwise.cli.forms import FORMS

EXAMPLE = re.compile(r"(?i:for example|example): `(turnwise [^`]*)`", re.DOTALL)


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_has_an_example_that_is_understood(verb: str) -> None:
    found = EXAMPLE.search(inspect.getdoc(VERBS[verb]) or "")
    assert found, f"turnwise {verb} --help has no example"
    words = shlex.split(found[1])[1:]
    function, bound, _ = app.parse_args(words, exit_on_error=False, print_error=False)
    assert words[0] == verb
    assert function is VERBS[verb]
    assert bound.arguments is not None


@pytest.mark.parametrize("verb", ["eval", "doctor"])
def test_the_example_is_shown(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    app([verb, "--help"], result_action="return_value")
    assert f"For example: `turnwise {verb}" in " ".join(capsys.readouterr().out.split())


def test_every_verb_has_a_form_of_json() -> None:
    assert set(FORMS) == set(VERBS)
