"""Runs in every Python process of a sandbox in which a stranger's tests or reward function judge: it notes and plays tricks.

It is copied into the sandbox and imported by Python itself. The variable XRAY holds JSON: ``log`` (a file that lines are added to),
``rng`` (low or high: what the global generator draws), ``now`` (seconds since 1970 at which the clock stands), ``time_up`` (each time limit
has passed), ``hang`` (nothing ever ends) and ``trace`` (which checks were reached) and
``system`` (the name that the operating system gives itself). Nothing is imported from Turnwise.
"""

# pyright: reportAttributeAccessIssue=false, reportArgumentType=false, reportOptionalMemberAccess=false, reportMissingImports=false

import json
import os
import sys
import time as _time

MONOTONIC = _time.monotonic
_TOLD = json.loads(os.environ.get("XRAY") or "{}")
_HERE = os.path.dirname(os.path.abspath(__file__))
_LOCAL = ("127.", "localhost", "::1", "0.0.0.0", "/")
_BUSY = [False]


def note(**what):
    """Add a line to the log."""
    if not _TOLD.get("log") or _BUSY[0]:
        return
    _BUSY[0] = True
    try:
        file = os.open(_TOLD["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
        os.write(file, (json.dumps(what, default=str)[:2000] + "\n").encode())
        os.close(file)
    except OSError:
        pass
    finally:
        _BUSY[0] = False


def _watch_network():
    def hook(event, args):
        if event == "socket.getaddrinfo" or event == "socket.gethostbyname":
            place = str(args[0])
        elif event == "socket.connect":
            place = str(args[1][0] if isinstance(args[1], tuple) else "/")
        elif event == "urllib.Request":
            place = str(args[0])
            if "://127." in place or "://localhost" in place or place.startswith("file:"):
                return
        else:
            return
        if not place.startswith(_LOCAL) and place not in ("None", "b''", ""):
            note(net=place)

    sys.addaudithook(hook)


def _set_chance(high):
    import random

    end = 0.999999 if high else 0.0
    pick = -1 if high else 0
    random.random = lambda: end
    random.uniform = lambda a, b: a + (b - a) * end
    random.randint = lambda a, b: b if high else a
    random.randrange = lambda a, b=None, s=1: (range(a) if b is None else range(a, b, s))[pick]
    random.getrandbits = lambda k: (1 << k) - 1 if high else 0
    random.choice = lambda some: some[pick]
    random.choices = lambda some, *a, **k: [some[pick]] * k.get("k", 1)
    random.sample = lambda some, k, **_: list(some)[-k:] if high else list(some)[:k]
    random.shuffle = lambda some, *_: some.reverse() if high else None
    random.gauss = lambda *a: a[0] + (3 if high else -3) * a[1] if len(a) == 2 else 3.0
    random.SystemRandom.random = lambda self: end
    os.urandom = lambda n: (b"\xff" if high else b"\0") * n
    import secrets

    secrets.randbelow = lambda n: n - 1 if high else 0
    secrets.choice = lambda some: some[pick]
    secrets.randbits = lambda k: (1 << k) - 1 if high else 0


def _set_clock(now):
    import time

    begun = time.monotonic()
    at = lambda: now + time.monotonic() - begun
    real_local, real_gm, real_text = time.localtime, time.gmtime, time.strftime
    time.time = at
    time.time_ns = lambda: int(at() * 1e9) | 1 if int(now) % 2 else int(at() * 1e9) & ~1
    time.localtime = lambda s=None: real_local(at() if s is None else s)
    time.gmtime = lambda s=None: real_gm(at() if s is None else s)
    time.strftime = lambda f, t=None: real_text(f, time.localtime() if t is None else t)
    import datetime

    class Moment(type(datetime.datetime)):
        def __instancecheck__(cls, one):
            return isinstance(one, _real)

        def __subclasscheck__(cls, one):
            return issubclass(one, _real)

    _real = datetime.datetime

    class MovedClock(_real, metaclass=Moment):
        @classmethod
        def now(cls, tz=None):
            return _real.fromtimestamp(at(), tz)

        @classmethod
        def utcnow(cls):
            return _real.utcfromtimestamp(at())

        @classmethod
        def today(cls):
            return _real.fromtimestamp(at())

    class Day(
        datetime.date,
        metaclass=type(
            "M", (type,), {"__instancecheck__": lambda cls, one, real=datetime.date: isinstance(one, real)}
        ),
    ):
        @classmethod
        def today(cls):
            return _real.fromtimestamp(at()).date()

    MovedClock.__name__ = MovedClock.__qualname__ = "datetime"
    Day.__name__ = Day.__qualname__ = "date"
    datetime.datetime, datetime.date = MovedClock, Day


def _end_time():
    import concurrent.futures
    import multiprocessing.connection
    import multiprocessing.process
    import signal
    import subprocess
    import threading
    import time

    communicate, wait, run_timer = subprocess.Popen.communicate, subprocess.Popen.wait, signal.setitimer

    def no_answer(self, input=None, timeout=None):
        if timeout is not None:
            raise subprocess.TimeoutExpired(self.args, timeout)
        return communicate(self, input)

    def no_end(self, timeout=None):
        if timeout is not None and timeout > 1:
            raise subprocess.TimeoutExpired(self.args, timeout)
        return wait(self, timeout)

    subprocess.Popen.communicate, subprocess.Popen.wait = no_answer, no_end
    signal.alarm = lambda s: int(run_timer(signal.ITIMER_REAL, 0.02 if s else 0)[0])
    signal.setitimer = lambda w, s, i=0.0: run_timer(w, min(s, 0.02) if s else 0)
    join, join_process = threading.Thread.join, multiprocessing.process.BaseProcess.join
    threading.Thread.join = lambda self, timeout=None: join(self, None if timeout is None else 0.02)
    multiprocessing.process.BaseProcess.join = lambda self, timeout=None: join_process(
        self, None if timeout is None else 0.02
    )
    result = concurrent.futures.Future.result
    concurrent.futures.Future.result = lambda self, timeout=None: result(
        self, None if timeout is None else 0.02
    )
    try:
        import asyncio

        waiting = asyncio.wait_for
        asyncio.wait_for = lambda one, timeout, **k: waiting(one, None if timeout is None else 0.02, **k)
    except ImportError:
        pass
    jumped = [0.0]

    def jumping(real):
        def read():
            if threading.current_thread() is threading.main_thread() and not _library(sys._getframe(1)):
                jumped[0] += 1000.0
            return real() + jumped[0]

        return read

    for name in ("time", "monotonic", "perf_counter"):
        setattr(time, name, jumping(getattr(time, name)))


_LIBRARIES = tuple(
    {os.path.dirname(os.__file__), "/usr/lib", "/usr/local/lib", sys.prefix + "/lib", "<frozen", _HERE}
)


def _library(frame):
    name = frame.f_code.co_filename
    return name.startswith(_LIBRARIES) or "site-packages" in name or "dist-packages" in name


class CheckTrace:
    """Checks of a stranger's code that were reached: assertions, comparisons and branches, and what was raised on the way."""

    def __init__(self):
        self.plans, self.code = {}, {}
        self.reached, self.had = {"assert": 0, "compare": 0, "branch": 0, "call": 0}, 0
        self.raised, self.results, self.where = [], {}, set()

    def plan(self, code):
        import dis

        asserts, compares, branches, line = set(), set(), set(), code.co_firstlineno
        named = set()
        for step in dis.get_instructions(code):
            if step.starts_line is not None:
                line = step.starts_line
            if step.opname == "LOAD_ASSERTION_ERROR" or step.argval == "AssertionError":
                asserts.add(line)
            elif step.opname in ("COMPARE_OP", "CONTAINS_OP", "IS_OP"):
                compares.add(line)
            elif "JUMP" in step.opname and "IF" in step.opname:
                branches.add(line)
            elif step.argval == "__name__":
                named.add(line)
        for inner in code.co_consts:
            if hasattr(inner, "co_code"):
                self.plan(inner)
        self.had += len(asserts)
        self.plans[code] = (asserts, compares - named, branches - named - compares)
        return self.plans[code]

    def __call__(self, frame, event, arg):
        code = frame.f_code
        name = code.co_name
        if name.startswith("add") and name in ("addSkip", "addSuccess", "addFailure", "addError"):
            self.results[name] = self.results.get(name, 0) + 1
        elif name in ("run", "report_start") and os.path.basename(code.co_filename) == "doctest.py":
            self._doctest(name, frame.f_locals)
        known = self.code.get(code)
        if known is None:
            only = _TOLD.get("only")
            place = os.path.realpath(code.co_filename) if only else ""
            known = self.code[code] = place.startswith(only) if only else not _library(frame)
        if not known:
            if name.lower().startswith(("assert", "raises", "fail", "verify", "check", "__enter__")):
                caller = frame.f_back
                if caller is not None and self.code.get(caller.f_code) and name != "__enter__":
                    self.reached["call"] += 1
            return None
        self.where.add(code.co_filename)
        plan = self.plans.get(code) or self.plan(code)

        def lines(frame, event, arg):
            if event == "line":
                if frame.f_lineno in plan[0]:
                    self.reached["assert"] += 1
                if frame.f_lineno in plan[1]:
                    self.reached["compare"] += 1
                if frame.f_lineno in plan[2]:
                    self.reached["branch"] += 1
            elif event == "exception" and len(self.raised) < 40:
                self.raised.append(
                    [arg[0].__name__, str(arg[1])[:200], os.path.basename(code.co_filename), frame.f_lineno]
                )
            return lines

        return lines

    def _doctest(self, name, here):
        """Count examples that a text of doctest holds as skipped, and those that are run."""
        kind = "addSuccess" if name == "report_start" else "addSkip"
        count = 1 if name == "report_start" else len(getattr(here.get("test"), "examples", ()))
        if count:
            self.results[kind] = self.results.get(kind, 0) + count

    def told(self):
        """All that was seen."""
        return {
            "had": self.had,
            "reached": self.reached,
            "raised": self.raised,
            "results": self.results,
            "files": sorted(self.where)[:20],
            "optimized": sys.flags.optimize,
        }


def trace_whole_process():
    """Trace from here to the end of the process, and note it."""
    import atexit
    import threading

    seen = CheckTrace()

    def end():
        sys.settrace(None)
        note(trace=seen.told())

    atexit.register(end)
    threading.settrace(seen)
    sys.settrace(seen)


_INSTALLERS = ("pip", "pip3", "uv", "conda", "mamba", "apt", "apt-get", "npm", "cargo", "gem")


def _watch_children():
    """Let Python processes that this one starts be watched too, also those that are started apart from their surroundings."""
    import subprocess

    start = subprocess.Popen.__init__

    def started(self, args, *more, **options):
        if isinstance(args, (list, tuple)) and args and "python" in os.path.basename(str(args[0])):
            kept = [word for word in args[1:] if word not in ("-I", "-E", "-S", "-IS")]
            args = [args[0], *kept]
            told_of_install(args)
            if options.get("env") is not None:
                told = {
                    name: os.environ[name]
                    for name in ("XRAY", "PYTHONPATH", "PYTEST_ADDOPTS")
                    if name in os.environ
                }
                options["env"] = {**options["env"], **told}
        elif isinstance(args, (list, tuple)) and args:
            told_of_install(args)
            if _TOLD.get("time_up") and os.path.basename(str(args[0])) in ("timeout", "gtimeout"):
                args = [args[0], *_at_once(args[1:])]
        start(self, args, *more, **options)

    def told_of_install(args):
        words = [str(word) for word in args]
        if "install" in words and any(os.path.basename(one) in _INSTALLERS for one in words):
            note(net="a package index (%s)" % " ".join(words)[:100])

    def _at_once(words):
        done = False
        for word in map(str, words):
            length = not done and word[:1].isdigit()
            done = done or length
            yield "0.01" if length else word

    subprocess.Popen.__init__ = started


def _set_system(name):
    import platform

    platform.system = lambda: name
    platform.platform = lambda *a, **k: name


def begin():
    """Do what XRAY says."""
    _watch_network()
    if _TOLD.get("hang"):
        import time

        time.sleep(3600)
    if _TOLD.get("rng"):
        _set_chance(_TOLD["rng"] == "high")
    if _TOLD.get("now"):
        _set_clock(_TOLD["now"])
    if _TOLD.get("time_up"):
        _end_time()
    if _TOLD.get("system"):
        _set_system(_TOLD["system"])
    _watch_children()
    if os.environ.pop("XRAY_DRIVER", ""):
        return
    if _TOLD.get("trace") == "process":
        trace_whole_process()


if _TOLD:
    begin()
