"""Names of tools as servers accept them, and back: the one place where they are mapped."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable

from turnwise.tasks.core import Json

_ACCEPTED = re.compile(r"[a-zA-Z_][a-zA-Z0-9_-]{1,63}")
"""Pattern of the names that every known server accepts."""
_OTHERS = re.compile(r"[^a-zA-Z0-9_-]")
_LONGEST, _MARK = 64, 8


class ToolNames:
    """The names of some tools, ours and as they are sent.

    >>> names = ToolNames(["files.read", "add"])
    >>> names.sent("files.read"), names.sent("add"), names.ours("files_read")
    ('files_read', 'add', 'files.read')
    """

    def __init__(self, names: Iterable[str]) -> None:
        self._sent: dict[str, str] = {}
        self._ours: dict[str, str] = {}
        for name in sorted(dict.fromkeys(names), key=lambda name: accepted(name) != name):
            said = accepted(name)
            if said in self._ours:
                said = _marked(said, name)
            self._sent[name], self._ours[said] = said, name

    def sent(self, name: str) -> str:
        """A tool's name as a server accepts it; of a name that no tool has, one that looks like it."""
        return self._sent.get(name) or accepted(name)

    def sent_choice(self, choice: Json) -> Json:
        """A ``tool_choice`` whose tools have the names that they are sent under.

        >>> ToolNames(["files.read"]).sent_choice({"type": "function", "function": {"name": "files.read"}})
        {'type': 'function', 'function': {'name': 'files_read'}}
        """
        match choice:
            case {"allowed_tools": {"tools": list(tools)} as allowed}:
                return choice | {"allowed_tools": allowed | {"tools": [*map(self._sent_one, tools)]}}
            case {"tools": list(tools)}:
                return choice | {"tools": [*map(self._sent_one, tools)]}
            case _:
                return self._sent_one(choice)

    def _sent_one(self, choice: Json) -> Json:
        match choice:
            case {"function": {"name": str(name)} as function}:
                return choice | {"function": function | {"name": self.sent(name)}}
            case {"name": str(name)}:
                return choice | {"name": self.sent(name)}
            case _:
                return choice

    def ours(self, name: str) -> str:
        """The tool that a server means."""
        return self._ours.get(name, name)


def accepted(name: str) -> str:
    """A name like this one that servers accept; the name itself if they do.

    >>> accepted("files.read"), accepted("7"), accepted("look")
    ('files_read', 't_7', 'look')
    """
    if _ACCEPTED.fullmatch(name):
        return name
    said = _OTHERS.sub("_", name)
    if not said[:1].isalpha() and not said.startswith("_"):
        said = f"t_{said}"
    if len(said) > _LONGEST:
        said = _marked(said, name)
    return said if len(said) > 1 else f"{said}_"


def _marked(said: str, name: str) -> str:
    mark = hashlib.blake2b(name.encode("utf-8", "surrogatepass"), digest_size=_MARK // 2).hexdigest()
    return f"{said[: _LONGEST - _MARK - 1]}_{mark}"
