# ruff: noqa: ANN001, ANN003, ANN201, ANN204 (runs in sandboxes, alone)
"""Runs pytest and says what each test did, line by line, through a pipe (in the sandbox, as ``python3 -I -c``)."""

import json
import os
import sys

_DETAIL, _FRAMES, _NAME = (
    4000,
    12,
    1000,
)  # characters, places, characters: some tests are named after all of their input


def functions_of(prefixes):
    """The code of every function of these modules, to see at the end whether somebody replaced one."""
    found = {}
    for name, module in list(sys.modules.items()):
        if module is None or not name.startswith(prefixes):
            continue
        for key, value in list(vars(module).items()):
            if hasattr(value, "__code__"):
                found[name, key] = value.__code__
            elif isinstance(value, type) and value.__module__ == name:
                for inner, method in list(vars(value).items()):
                    method = getattr(method, "__func__", method)
                    if hasattr(method, "__code__"):
                        found[name, key, inner] = method.__code__
                    if isinstance(method, property) and method.fget is not None:
                        found[name, key, inner] = getattr(method.fget, "__code__", None)
    return found


def line_in(shown, path):
    """The last line of a traceback that is in this file; 0 where none is."""
    places = [
        getattr(entry, "reprfileloc", None)
        for entry in getattr(getattr(shown, "reprtraceback", None), "reprentries", ())
    ]
    return next((at.lineno for at in reversed(places) if at and at.path.endswith(path)), 0)


def frames_of(shown):
    """The places that a traceback passes, the innermost last: file and line of a few of them."""
    entries = getattr(getattr(shown, "reprtraceback", None), "reprentries", ())
    places = [getattr(entry, "reprfileloc", None) for entry in entries]
    return [[at.path, at.lineno] for at in places if at][-_FRAMES:]


class SuitePlugin:
    """A pytest plugin: keeps the tests that were asked for, and reports."""

    def __init__(self, spec):
        self.spec, self.wanted = spec, set(spec["only"])
        self.outcome, self.detail, self.line, self.frames = {}, {}, {}, {}
        self.coverage = None
        if spec["cover"]:
            import coverage  # pyright: ignore[reportMissingImports] (in the sandbox only)

            self.coverage = coverage.Coverage(data_file=None, source=spec["cover"], messages=False)
            self.coverage.start()

    def say(self, **row):
        os.write(self.spec["channel"], (self.spec["mark"] + json.dumps(row) + "\n").encode())

    def pytest_collectreport(self, report):
        if report.failed:
            self.say(kind="collect", id=report.nodeid, detail=str(report.longrepr)[-_DETAIL:])

    def pytest_collection_modifyitems(self, session, config, items):
        left_out = [item for item in items if not self.is_wanted(item.nodeid)]
        if left_out:
            config.hook.pytest_deselected(items=left_out)
            items[:] = [item for item in items if self.is_wanted(item.nodeid)]
        places = self.spec["places"]
        moved = [item for item in items if item.nodeid in places]
        rest = [item for item in items if item.nodeid not in places]
        for item in sorted(moved, key=lambda item: places[item.nodeid]):
            rest.insert(int(places[item.nodeid] * (len(rest) + 1)), item)
        items[:] = rest
        self.say(kind="collected", count=len(items))

    def is_wanted(self, name):
        if len(name) > _NAME:
            return False
        return not self.wanted or name in self.wanted or name.partition("[")[0] in self.wanted

    def pytest_runtest_logstart(self, nodeid, location):
        self.outcome[nodeid], self.detail[nodeid], self.line[nodeid] = "", "", 0
        self.frames[nodeid] = []
        if self.coverage:
            self.coverage.switch_context(nodeid)

    def pytest_runtest_logreport(self, report):
        name, xfail = report.nodeid, hasattr(report, "wasxfail")
        if report.failed:
            status = "fail" if report.when == "call" else "error"
            crash = getattr(report.longrepr, "reprcrash", None)
            self.detail[name] = (
                self.detail[name] or (crash.message if crash else str(report.longrepr))[:_DETAIL]
            )
            self.line[name] = line_in(report.longrepr, name.partition("::")[0])
            self.frames[name] = frames_of(report.longrepr)
        elif report.skipped:
            status = "xfail" if xfail else "skip"
        else:
            status = ("xpass" if xfail else "pass") if report.when == "call" else ""
        worse = self.outcome[name] in ("fail", "error")
        if status and not worse:
            self.outcome[name] = status

    def pytest_runtest_logfinish(self, nodeid, location):
        self.say(
            kind="test",
            id=nodeid,
            status=self.outcome.get(nodeid, ""),
            detail=self.detail.get(nodeid, ""),
            line=self.line.get(nodeid, 0),
            frames=self.frames.get(nodeid, []),
        )

    def finish(self, code, changed):
        row = {"kind": "done", "code": int(code), "changed": changed[:5]}
        if self.coverage:
            self.coverage.stop()
            row.update(self.covered(self.coverage.get_data()))
        self.say(**row)

    def covered(self, data):
        """Return which tests run which line.

        Lines that the same tests run share a number, for that is much shorter.
        """
        numbers, sets, lines = {}, {}, {}
        for file in data.measured_files():
            rows = lines[os.path.relpath(file)] = {}
            for line, tests in data.contexts_by_lineno(file).items():
                chosen = tuple(sorted(numbers.setdefault(test, len(numbers)) for test in tests if test))
                rows[str(line)] = sets.setdefault(chosen, len(sets))
        return {"names": list(numbers), "sets": list(sets), "lines": lines}


def prepare():
    """Take what is asked from stdin, and keep tests from it."""
    spec = json.loads(sys.stdin.buffer.read())
    sys.stdin = open(os.devnull)  # noqa: SIM115 (to the end)
    return spec


def run(spec):
    """Run the suite that ``spec`` describes; the plugin that saw it, and pytest's exit code."""
    sys.dont_write_bytecode = not spec["bytecode"]
    sys.path[:0] = [os.path.abspath(part) for part in spec["path"]]
    import pytest

    options = [
        "-c",
        os.devnull,
        "--rootdir",
        os.getcwd(),
        "-p",
        "no:cacheprovider",
        "-p",
        "no:hypothesispytest",
    ]
    options += ["--continue-on-collection-errors", "-o", "addopts=", "-o", "python_files=" + spec["pattern"]]
    options += ["-o", "markers=", "-W", "ignore", "--tb=short", f"--maxfail={spec['most_failing']}"]
    options += ["--collect-only"] * spec["collect_only"]
    options += [f"-pno:{name}" for name in spec["without"]]
    suite = SuitePlugin(spec)
    return suite, pytest.main([*options, *spec["targets"]], plugins=[suite])


def main():
    spec = prepare()
    import pytest  # noqa: F401 (before its functions are listed)

    before = functions_of(("_pytest", "pluggy"))
    suite, code = run(spec)
    after = functions_of(("_pytest", "pluggy"))
    changed = sorted(".".join(key) for key, value in before.items() if after.get(key) is not value)
    suite.finish(code, changed)


if __name__ == "__main__":
    main()
