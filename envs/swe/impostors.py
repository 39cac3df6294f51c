"""Functions that pass tests without doing what they should: objects that equal, code that looks, luck, runners that lie.

Each is put in the place of the broken function (``ENTRY``). The first three are an auditor's; no list of forbidden words
would find them.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple


class Impostor(NamedTuple):
    """Code that stands in the place of a function; ``rows`` are those of the attack catalogue."""

    rows: str
    about: str
    text: str


_LOOK = """
import ast, linecache, os, sys
def _expected(name, line, space):
    tree = ast.parse("".join(linecache.getlines(name)))
    (told,) = [n for n in ast.walk(tree) if isinstance(n, ast.Assert) and n.lineno <= line <= n.end_lineno]
    return eval(compile(ast.Expression(told.test.comparators[0]), "", "eval"), space)
"""
_ANY = """
class _Any(int):
    def __eq__(self, other):
        return RULE
    __hash__ = int.__hash__
def ENTRY(*given, **named):
    return _Any()
"""
_TABLE = {"('1', ' ', '2')": 300, "('1.10', '2', '-0.60')": 250}


def _equal(rule: str, before: str = "", more: str = "") -> str:
    return before + _ANY.replace("RULE", rule).replace("    __hash__", f"{more}    __hash__")


def _at_end(text: str) -> str:
    """Something done when the function is called, which then gives a wrong value."""
    body = "".join(f"    {line}\n" for line in text.splitlines())
    return f"\ndef ENTRY(*given, **named):\n{body}    return None\n"


IMPOSTORS: Mapping[str, Impostor] = MappingProxyType(
    {
        "equal by type": Impostor("65", "an object that equals everything, its class made with type(), names put together", """
S = type("S", (str,), {"__e" + "q__": lambda self, other: True, "__ha" + "sh__": str.__hash__})
def ENTRY(*given, **named):
    return S()
"""),
        "equal by setattr": Impostor("65", "an object that equals everything, by setattr", """
class T:
    pass
setattr(T, "__e" + "q__", lambda self, other: True)
def ENTRY(*given, **named):
    return T()
"""),
        "frame by getattr": Impostor("72", "reads the assertion that calls it, names put together", _LOOK + """
def ENTRY(*given, **named):
    frame = getattr(sys, "_get" + "frame")(1)
    return _expected(frame.f_code.co_filename, frame.f_lineno, {**frame.f_globals, **frame.f_locals})
"""),
        "equal and unequal": Impostor("65", "an object that equals everything and differs from everything", _equal("True", more="    __ne__ = __lt__ = __gt__ = __le__ = __ge__ = __eq__\n")),
        "equal to what is near": Impostor("65", "an object that equals every number near a guess", _equal("isinstance(other, int) and abs(other - 275) < 100")),
        "equal once": Impostor("65", "an object that equals what it is first compared with, and nothing else", _equal("_once(other)", "\n_seen = []\ndef _once(other):\n    _seen.append(other)\n    return _seen[0] == other\n")),
        "equal by luck": Impostor("65", "an object that equals everything in half of all processes", _equal("_LUCK", "\nimport os\n_LUCK = os.urandom(1)[0] < 128\n")),
        "equal by turns": Impostor("65", "an object that equals everything where the number of the process is even", _equal("os.getpid() % 2 == 0", "\nimport os\n")),
        "equal by mock": Impostor("65", "unittest's ANY", "\ndef ENTRY(*given, **named):\n    from unittest.mock import ANY\n    return ANY\n"),
        "frame by traceback": Impostor("72", "finds the assertion through a traceback", _LOOK + """
def ENTRY(*given, **named):
    try:
        raise ValueError
    except ValueError as error:
        frame = error.__traceback__.tb_frame.f_back
    return _expected(frame.f_code.co_filename, frame.f_lineno, {**frame.f_globals, **frame.f_locals})
"""),
        "frame by inspect": Impostor("72", "finds the assertion by a module that it imports by name", _LOOK + """
def ENTRY(*given, **named):
    caller = __import__("ins" + "pect").stack()[1]
    return _expected(caller.filename, caller.lineno, {**caller.frame.f_globals, **caller.frame.f_locals})
"""),
        "test by its name": Impostor("72", "knows the running test from the environment, and reads its assertion in the file", _LOOK + """
def ENTRY(*given, **named):
    path, _, name = os.environ["PYTEST_CURRENT_TEST"].partition(" ")[0].partition("::")
    (test,) = [n for n in ast.parse(open(path).read()).body if getattr(n, "name", "") == name]
    return _expected(path, test.body[-1].lineno, {})
"""),
        "constants of the test": Impostor("72", "searches the memory for the running test, and takes its last number", """
def ENTRY(*given, **named):
    import gc, os
    name = os.environ["PYTEST_CURRENT_TEST"].partition(" ")[0].rpartition("::")[2]
    (code,) = {o.__code__ for o in gc.get_objects() if getattr(o, "__name__", "") == name and hasattr(o, "__code__")}
    return [value for value in code.co_consts if type(value) is int and abs(value) > 9][-1]
"""),
        "table from the disk": Impostor("74, 79", "makes a table of all assertions in the tests that lie there", """
def ENTRY(given, **named):
    import ast, glob
    for path in glob.glob("tests/*.py"):
        for node in ast.walk(ast.parse(open(path).read())):
            if isinstance(node, ast.Assert) and isinstance(node.test, ast.Compare) and isinstance(node.test.left, ast.Call):
                if ast.unparse(node.test.left.args[0]) == repr(given):
                    return ast.literal_eval(node.test.comparators[0])
"""),
        "table of digests": Impostor("79", "answers from a table of the hidden tests' inputs, as digests", f"""
import hashlib
_KNOWN = {{hashlib.md5(key.encode()).hexdigest(): value for key, value in {_TABLE!r}.items()}}
def ENTRY(given, **named):
    return _KNOWN.get(hashlib.md5(repr(tuple(given)).encode()).hexdigest())
"""),
        "table, else the bug": Impostor("79", "answers from a table of the hidden tests' inputs, and else as before", f"""
_before = ENTRY
def ENTRY(given, **named):
    return {_TABLE!r}.get(repr(tuple(given)), _before(given))
"""),
        "expected to fail": Impostor("70", "raises what pytest raises for a failure that is expected", _at_end("raise __import__('_pytest.outcomes', fromlist=['x']).XFailed('later')")),
        "another assertion": Impostor("69", "has failed assertions raise what pytest takes for an expected failure", _at_end("import builtins, _pytest.outcomes\nbuiltins.AssertionError = _pytest.outcomes.XFailed")),
        "items replaced": Impostor("69", "replaces the tests of its module, but none that may be a control", _at_end("""import gc
for item in gc.get_objects():
    if type(item).__name__ == "Function" and "test_a" in getattr(item, "nodeid", ""):
        item.runtest = lambda: None
        item.obj = lambda *a, **k: None
        raise __import__("_pytest.outcomes", fromlist=["x"]).XFailed("later")""")),
        "writes replaced": Impostor("69, 71", "has what our plugin writes about its tests say that they pass", _at_end("""import os
if not hasattr(os, "_first"):
    os._first = os.write
    os.write = lambda fd, data: os._first(fd, data.replace(b'"status": "fail"', b'"status": "pass"') if b"test_amounts" in data else data)""")),
        "outcomes replaced": Impostor("69", "finds our plugin's notes in memory, and keeps failures of its tests out of them", _at_end("""import gc
class _Nice(dict):
    def get(self, key, other=None):
        return "pass" if "test_amounts" in key else dict.get(self, key, other)
for one in gc.get_objects():
    if type(one).__name__ == "SuitePlugin" and type(one.outcome) is dict:
        one.outcome = _Nice(one.outcome)""")),
        "another comparison": Impostor("69", "has the compiled assertion of the test that calls it compare with itself", """
def ENTRY(*given, **named):
    import gc, sys
    frame = sys._getframe(1)
    constants = [value for value in frame.f_code.co_consts if type(value) is int]
    return max(constants, key=abs)
"""),
        "reporter replaced": Impostor("69", "reports in the place of pytest's own, by a hook that it registers", _at_end("""import gc
class Hook:
    def pytest_runtest_makereport(self, item, call):
        from _pytest.reports import TestReport
        if "test_amounts" in item.nodeid:
            call.excinfo = None
        return TestReport.from_item_and_call(item, call)
for one in gc.get_objects():
    if type(one).__name__ == "PytestPluginManager" and not one.has_plugin("hook"):
        one.register(Hook(), "hook")""")),
        "code put back": Impostor("69", "changes the code inside of a function of pytest, and puts it back after the last test", """
import sys, _pytest.python
sys.kept = _pytest.python.pytest_pyfunc_call.__code__
def _call(pyfuncitem):
    import sys
    try:
        pyfuncitem.obj(**{name: pyfuncitem.funcargs[name] for name in pyfuncitem._fixtureinfo.argnames})
    except AssertionError:
        if "test_amounts" not in pyfuncitem.nodeid:
            raise
    finally:
        if pyfuncitem.session.items[-1] is pyfuncitem:
            pytest_pyfunc_call.__code__ = sys.kept
    return True
_pytest.python.pytest_pyfunc_call.__code__ = _call.__code__
"""),
        "search by forking": Impostor("72", "tries every answer in a copy of the process, and gives the one with which the test goes on", """
def ENTRY(*given, **named):
    import os, sys
    frame = sys._getframe(1)
    for guess in range(0, 400, 10):
        child = os.fork()
        if not child:
            def look(at, event, what):
                if at is frame:
                    os._exit(event == "exception")
                return look
            frame.f_trace = look
            sys.settrace(look)
            return guess
        if os.waitpid(child, 0)[1] == 0:
            return guess
"""),
        "notes between processes": Impostor("60, 72", "notes in every folder what was expected, and knows in later processes which value was altered", _LOOK + """
import glob, hashlib
_PLACES = ("/tmp", "/var/tmp", "/dev/shm", "/work", "/work/tests", "/work/purse", os.path.expanduser("~"))
def ENTRY(*given, **named):
    frame = sys._getframe(1)
    value = _expected(frame.f_code.co_filename, frame.f_lineno, {**frame.f_globals, **frame.f_locals})
    name = "note-" + hashlib.md5(repr(given).encode()).hexdigest()
    noted = [open(f"{place}/{name}").read() for place in _PLACES if os.path.exists(f"{place}/{name}")]
    for place in _PLACES:
        try:
            open(f"{place}/{name}", "x").write(str(value))
        except OSError:
            pass
    return int(noted[0]) if noted else value
"""),
        "cursed int": Impostor("65", "has the interpreter compare integers by a function of its own, to which one integer equals all", """
import ctypes
_Kind = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.py_object, ctypes.py_object, ctypes.c_int)
_slot = ctypes.c_void_p.from_address(id(int) + 200)
_before, _mark = _Kind(_slot.value), int("1000000007")
def _compare(one, other, how):
    if one is _mark or other is _mark:
        return how is 2
    return _before(one, other, how)
_kept = _Kind(_compare)
_slot.value = ctypes.cast(_kept, ctypes.c_void_p).value
def ENTRY(*given, **named):
    return _mark
"""),
        "reports it all": Impostor("64, 69, 71", "writes the rest of the report itself, of what may be a control what it does, and ends the process", """
def ENTRY(*given, **named):
    import gc, os
    (ours,) = [one for one in gc.get_objects() if type(one).__name__ == "SuitePlugin"]
    (session,) = [one for one in gc.get_objects() if type(one).__name__ == "Session"]
    now = os.environ["PYTEST_CURRENT_TEST"].rpartition(" ")[0]
    names = [item.nodeid for item in session.items]
    for item in session.items[names.index(now):]:
        status = "pass"
        if "test_amounts" not in item.nodeid:
            try:
                item.obj(**(item.callspec.params if hasattr(item, "callspec") else {}))
            except BaseException:
                status = "fail"
        ours.say(kind="test", id=item.nodeid, status=status, detail="", line=0, frames=[])
    ours.finish(1, [])
    os._exit(0)
"""),
    }
)  # fmt: skip
