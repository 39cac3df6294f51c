"""Do something as soon as another package is imported, whoever imports it and whenever that is."""

from __future__ import annotations

import importlib.machinery
import importlib.util
import sys
from collections.abc import Callable, Sequence
from importlib.abc import MetaPathFinder
from types import ModuleType


def when_imported(name: str, then: Callable[[], object]) -> None:
    """Call ``then`` when the top-level module ``name`` has been imported: now, if it is there already."""
    if name in sys.modules:
        then()
    else:
        sys.meta_path.insert(0, _Listener(name, then))


class _Listener(MetaPathFinder):
    """Finds nothing itself; once, it has the loader that is found say when it is done."""

    def __init__(self, name: str, then: Callable[[], object]) -> None:
        self._name, self._then = name, then

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname != self._name:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(fullname)
        loader = spec.loader if spec else None
        if loader is not None:
            execute, then = loader.exec_module, self._then

            def executed(module: ModuleType) -> None:
                execute(module)
                then()

            loader.exec_module = executed
        return spec
