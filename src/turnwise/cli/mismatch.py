"""The command that names the fault for which an engine and a trainer disagree."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from turnwise.cli.answer import VerbResult
from turnwise.errors import TurnwiseError

if TYPE_CHECKING:
    from turnwise.console import SafeConsole

Models = Annotated[list[str] | None, Parameter(negative=(), consume_multiple=True)]


def mismatch(
    log: Path,
    /,
    *,
    model: str,
    adapter: str | None = None,
    also: Models = None,
    temperature: float = 1.0,
    top_p: float = 1.0,
    top_k: int = 0,
    min_p: float = 0.0,
    engine_dtype: Literal["float32", "bfloat16", "float16"] | None = None,
    version: int | None = None,
    tokens: int = 20_000,
) -> VerbResult:
    """Name the fault for which a log's log-probabilities, or its tokens, are not those of the model. Exit code 1: there is one.

    For example: `turnwise mismatch rollouts.jsonl --model runs/a@40 --also runs/a@36`.

    Args:
        log: JSON lines of any framework (docs/how-to/mismatch.md), an episode log, or a run's or evaluation's folder.
        model: That should have sampled: a folder, RUN@best, RUN@40, a registered name (smollm2) or a Hugging Face id.
        adapter: The folder of an adapter that the model should have had.
        also: Others that may have sampled, such as older checkpoints. Those just before RUN@40 are tried by themselves.
        temperature: That is declared, of rows that declare none.
        top_p: The same.
        top_k: The same.
        min_p: The same.
        engine_dtype: The precision in which the engine computed; smaller faults are felt where it is not bfloat16.
        version: Only rows that these weights sampled, as the log believes; with RUN@40 those of 40, where it has some.
        tokens: How much of the log is read.
    """
    from turnwise.trainers.mismatch.asking import mismatch as ask
    from turnwise.trainers.mismatch.reading import NoRowError, settled

    try:
        declared = settled(temperature, top_p, top_k, min_p)
    except NoRowError as error:
        raise TurnwiseError(
            f"The settings cannot be: {error}.", "Declare those that the trainer believes in."
        ) from None
    report = ask(
        log,
        model,
        adapter=adapter,
        also=also or (),
        declared=declared,
        engine_dtype=engine_dtype,
        version=version,
        tokens=tokens,
    )

    def show(console: SafeConsole) -> None:
        for line in report.said:
            console.print(line)
        console.print(f"Confidence {report.confidence:.0%}.")
        for note in report.notes:
            console.print(note)

    return VerbResult(report.to_json(), show, code=int(report.fault != "none"))


VERBS: dict[str, Callable[..., VerbResult]] = {"mismatch": mismatch}
