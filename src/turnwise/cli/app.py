"""The command line as a whole: all commands, ``--json``, errors and Ctrl-C."""

from __future__ import annotations

import errno
import os
import tempfile
import traceback
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import App, CycloptsError, Group, Parameter
from cyclopts.exceptions import UnknownCommandError

import turnwise
from turnwise.cli import (
    audit,
    compare,
    components,
    credit,
    environments,
    evaluation,
    gateway,
    machine,
    mismatch,
    plan,
    serving,
    swe,
    top,
    training,
    view,
    worlds,
)
from turnwise.cli.answer import Output, VerbProblem, VerbResult
from turnwise.errors import TurnwiseError
from turnwise.extras import missing
from turnwise.open_files import open_files, raise_open_files
from turnwise.secrets import redact

if TYPE_CHECKING:
    from rich.console import Console

INTERRUPTED = 130

app = App(
    name="turnwise",
    help="Multi-turn environments for language-model agents, and trainers that give credit turn by turn.",
    version=turnwise.__version__,
    help_format="plaintext",
    suppress_keyboard_interrupt=False,
)
VERBS = {
    name: verb
    for module in (
        environments,
        components,
        evaluation,
        gateway,
        compare,
        audit,
        mismatch,
        plan,
        training,
        top,
        view,
        credit,
        machine,
        serving,
        swe,
        worlds,
    )
    for name, verb in module.VERBS.items()
}
for _name, _verb in VERBS.items():
    app.command(_verb, name=_name)
app.meta.group_parameters = Group("With every verb")
app.meta.suppress_keyboard_interrupt = False  # else Ctrl-C comes out as SystemExit


@app.meta.default
def _launch(
    *tokens: Annotated[str, Parameter(show=False, allow_leading_hyphen=True)],
    json: Annotated[bool, Parameter(negative=())] = False,
    debug: Annotated[bool, Parameter(negative=())] = False,
) -> VerbResult | None:
    """Run a verb.

    Args:
        json: Print exactly one JSON value on stdout, and nothing else.
        debug: Show the traceback of an error.
    """
    verb, bound, _ = app.parse_args(tokens, exit_on_error=False, print_error=False)
    return verb(*bound.args, **bound.kwargs)


def run(tokens: Sequence[str]) -> int:
    """Run one command line and return the exit code."""
    as_json, debug = "--json" in tokens, "--debug" in tokens
    raise_open_files()
    with Output(as_json) as output:
        try:
            if not as_json:
                app.console = _console()  # for help and version
            answer: Any = app.meta(
                tokens, exit_on_error=False, print_error=False, result_action="return_value"
            )
            if isinstance(answer, VerbResult):
                output.show(answer)
                return answer.code
            return 0
        except BrokenPipeError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), output.fileno())  # so that flushing at exit succeeds
            return 0
        except KeyboardInterrupt:
            output.fail(VerbProblem("KeyboardInterrupt", "Interrupted.", "What was finished before is kept."))
            return INTERRUPTED
        except (Exception, SystemExit) as error:  # noqa: BLE001 (the last resort)
            if debug:
                traceback.print_exc()
            output.fail(explain(error))
            return 2 if isinstance(error, CycloptsError) else 1


def _console() -> Console:
    from turnwise.console import SafeConsole

    return SafeConsole()


def explain(error: BaseException) -> VerbProblem:
    """Cause and remedy of any error."""
    kind = type(error).__name__
    match error:
        case TurnwiseError():
            return VerbProblem(kind, error.cause, error.remedy)
        case UnknownCommandError():
            return VerbProblem(
                kind, f"{error}".partition(" Available")[0], "`turnwise --help` lists the verbs."
            )
        case CycloptsError():
            verb = " ".join(["turnwise", *(error.command_chain or ())])
            return VerbProblem(kind, f"{error}", f"`{verb} --help` shows what can be given.")
        case OSError() if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            cause = f"The disk is full, or a limit is reached: {error.filename or error}."
            return VerbProblem(kind, cause, "Make room and run the same command again.")
        case OSError() if error.errno in (errno.EMFILE, errno.ENFILE):
            cause = f"More files, sockets and pipes are needed than the {open_files().most} that may be open."
            return VerbProblem(kind, cause, "Raise the limit (`ulimit -n 65536`), or lower --concurrency.")
        case PermissionError():
            return VerbProblem(
                kind, f"No permission: {error.filename or error}.", "Choose another place with --out."
            )
        case Exception() if where := _users_place(error):
            cause = f"{kind} at {where}: {error}".replace("\n", " ")[:300]
            return VerbProblem(kind, cause, f"Fix that line; the traceback is in {_write_traceback(error)}.")
        case ModuleNotFoundError():
            lack = missing(error.name or "")
            return VerbProblem(type(lack).__name__, lack.cause, lack.remedy)
        case _:
            cause = f"Unexpected {kind}: {error}".replace("\n", " ")[:300]
            remedy = f"The traceback is in {_write_traceback(error)}; please report it."
            return VerbProblem(kind, cause, remedy)


def _users_place(error: Exception) -> str:
    from turnwise.blame import users_place

    return users_place(error)


def _write_traceback(error: BaseException) -> str:
    text = redact("".join(traceback.format_exception(error)))
    with tempfile.NamedTemporaryFile("w", prefix="turnwise-error-", suffix=".txt", delete=False) as file:
        file.write(text)
        return file.name
