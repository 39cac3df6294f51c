"""The command ``turnwise``. Light to import: each verb loads what it needs when it runs."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

# Read by libraries when they are loaded, so they stand before everything else.
_QUIET = {
    "OMP_WAIT_POLICY": "passive",  # OpenMP threads that spin ruin an engine sharing its cores with a trainer
    "VLLM_LOGGING_LEVEL": "ERROR",
    "VLLM_NO_USAGE_STATS": "1",
    "TORCH_CPP_LOG_LEVEL": "ERROR",
    "TRANSFORMERS_VERBOSITY": "error",
    "TOKENIZERS_PARALLELISM": "false",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "HF_HUB_VERBOSITY": "error",
}


def main(arguments: Sequence[str] | None = None) -> None:
    """The entry point: run a verb and exit with its code."""
    for name, value in _QUIET.items():
        os.environ.setdefault(name, value)
    if not sys.stderr.isatty():
        os.environ.setdefault("TQDM_DISABLE", "1")
    from turnwise.cli.app import INTERRUPTED, run
    from turnwise.terminal import guard

    guard()  # for good, so that what is said while leaving is guarded too

    code = run(list(sys.argv[1:] if arguments is None else arguments))
    if code == INTERRUPTED:  # threads of a stopped run must not hold up who asked to leave
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    sys.exit(code)
