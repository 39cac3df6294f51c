"""The public names: a sorted list, each importable, each documented."""

import importlib
import inspect
import subprocess
import sys
from typing import get_args

import pytest

import turnwise


def test_the_list_is_sorted_and_complete():
    assert turnwise.__all__ == sorted(turnwise.__all__)
    assert len(set(turnwise.__all__)) == len(turnwise.__all__)
    assert set(turnwise.__all__) == set(turnwise._HOME_OF)
    assert dir(turnwise) == turnwise.__all__


@pytest.mark.parametrize("name", turnwise.__all__)
def test_every_name_is_there_and_documented(name):
    thing = getattr(turnwise, name)
    assert thing is getattr(importlib.import_module(turnwise._HOME_OF[name]), name)
    assert inspect.getdoc(thing) or get_args(thing)


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'Environment'"):
        _ = turnwise.Environment


def test_importing_has_no_side_effects():
    program = (
        "import os, random, signal, sys, warnings, logging\n"
        "before = (dict(os.environ), random.getstate(), signal.getsignal(signal.SIGINT), list(warnings.filters),\n"
        "          list(logging.getLogger().handlers), sys.stdout)\n"
        "import turnwise\n"
        "for name in turnwise.__all__: getattr(turnwise, name)\n"
        "after = (dict(os.environ), random.getstate(), signal.getsignal(signal.SIGINT), list(warnings.filters),\n"
        "         list(logging.getLogger().handlers), sys.stdout)\n"
        "same = [a == b for a, b in zip(before, after)]\n"
        "same[3] = True\n"  # gymnasium adds its own warning filters
        "assert all(same), same"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
