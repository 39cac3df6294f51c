"""The documentation of the apps, and the tools through which all of them are used."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

import pydantic

from turnwise.envs.toolworld.apps import manual
from turnwise.envs.toolworld.apps.account.actions import LOOKUPS, NOTES
from turnwise.envs.toolworld.apps.account.changes import CHANGES
from turnwise.envs.toolworld.apps.account.state import TODAY
from turnwise.envs.toolworld.apps.leisure import LEISURE
from turnwise.envs.toolworld.apps.office import OFFICE
from turnwise.envs.toolworld.apps.state import Manual
from turnwise.envs.toolworld.database import Database, near
from turnwise.envs.toolworld.domain import DomainAction, Written, act, renamed
from turnwise.tasks.core import Json
from turnwise.tools.core import ToolCall, ToolError

APIS: Mapping[str, DomainAction] = {
    f"{app}.{function.__name__}": act(function, "write")
    for app, functions in {**OFFICE, **LEISURE}.items()
    for function in functions
}
"""Every API by its full name, such as ``mail.send_mail``."""

_APPS = tuple(dict.fromkeys(name.partition(".")[0] for name in APIS))
MOST = 50
"""Calls that one ``call_many`` may make."""


def names(seed: int, api: str) -> Mapping[str, str]:
    """Return the names that this world's documentation gives the arguments of an API."""
    return manual.names(APIS, seed, api)


@functools.lru_cache(maxsize=4096)
def _api(seed: int, api: str) -> DomainAction:
    told = {argument: manual.meaning(api, argument) for argument in APIS[api].tool.spec.argument_names}
    return renamed(APIS[api], names(seed, api), told)


def list_apis(db: Database, app: str) -> Json:
    """The APIs of an app: mail, calendar, files, contacts, payments, notes or music."""
    found = {name: made.tool.spec.description for name, made in APIS.items() if name.startswith(f"{app}.")}
    if not found:
        raise ToolError(f"There is no app {app[:40]!r}.{near(app, _APPS)} The apps are: {', '.join(_APPS)}.")
    return found


def read_doc(db: Database, api: str) -> Json:
    """The documentation of an API, such as "mail.send_mail": what it does and its arguments."""
    made = _find(db, api)
    return {"api": api, "does": made.tool.spec.description, "arguments": dict(made.tool.spec.parameters)}


def call_api(db: Database, api: str, arguments: dict[str, Any]) -> Written:
    """Call an API with arguments as its documentation names them."""
    return _run(db, api, arguments)


class ApiCall(pydantic.BaseModel, extra="forbid"):
    """One call of a batch."""

    api: str
    arguments: dict[str, Any] = {}


def call_many(db: Database, calls: list[ApiCall]) -> Written:
    """Call APIs one after the other, all of them or (if one fails) none. At most fifty."""
    if len(calls) > MOST:
        raise ToolError(f"At most {MOST} calls.")
    results: list[Json] = []
    for number, each in enumerate(calls, 1):
        try:
            db, result, _ = _run(db, each.api, each.arguments)
        except ToolError as error:
            raise ToolError(f"Call {number} failed, nothing was done. {error}") from None
        results.append(result)
    return Written(db, results)


def today(db: Database) -> str:
    """The date of today."""
    return TODAY


def _find(db: Database, api: str) -> DomainAction:
    if api not in APIS:
        raise ToolError(_unknown(api))
    own: Manual = db.get("manual", "me")
    return _api(own.seed, api)


def _unknown(api: str) -> str:
    """That there is no such API, and which one may be meant: a name may lack its app, or be an app's."""
    told = f"There is no API {api[:60]!r}."
    if api in _APPS:
        return f"{told} That is an app: list_apis({api!r}) tells its APIs."
    app, _, function = api.rpartition(".")
    named = [name for name in APIS if name.partition(".")[2] == function]
    if named and app not in _APPS:
        return f"{told} Did you mean {' or '.join(map(repr, named[:3]))}?"
    return told + (near(api, APIS) or " list_apis tells the APIs of an app.")


def checked(db: Database, api: str, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
    """An API's arguments under the names that its function has.

    Raises:
        ToolError: there is no such API, or they do not fit it.
    """
    made = _find(db, api)
    try:
        return made.tool.validate(ToolCall(api, arguments))
    except ToolError:
        raise ToolError(f"{api} {_misfit(made, arguments)}; read_doc({api!r}) tells what it takes.") from None


def _misfit(made: DomainAction, arguments: Mapping[str, Any]) -> str:
    """Why arguments do not fit an API, in the names that whoever calls has used; the others are for its documentation to say."""
    parameters = made.tool.spec.parameters
    known, wanted = parameters.get("properties", {}), parameters.get("required", ())
    if unknown := [name for name in arguments if name not in known]:
        return f"has no argument {' and no '.join(repr(name[:40]) for name in unknown[:4])}"
    if missing := sum(name not in arguments for name in wanted):
        return f"needs {missing} more argument{'s' * (missing > 1)}"
    wrong = [name for name, value in arguments.items() if not _takes(known[name], value)]
    return f"does not take {', '.join(f'{name}={arguments[name]!r}'[:60] for name in wrong or arguments)}"


def _takes(schema: Mapping[str, Any], value: object) -> bool:
    """Say whether a value may stand where a schema says what may."""
    if "enum" in schema:
        return value in schema["enum"]
    if schema.get("type") == "integer":
        return (isinstance(value, int) and not isinstance(value, bool)) or str(value).isdecimal()
    return schema.get("type") != "string" or isinstance(value, str)


def _run(db: Database, api: str, arguments: Mapping[str, Any]) -> Written:
    return _find(db, api).run(db, checked(db, api, arguments))


ACTS = (
    act(list_apis), act(read_doc), act(call_api, "errand"), act(call_many, "errand"), act(today), *LOOKUPS, *CHANGES, *NOTES,
)  # fmt: skip
