"""vLLM's memory, left to the learner on the same card and taken back with the next weights.

vLLM keeps what it allocates under tags (``enable_sleep_mode``) and lets a tag go in two ways. Of the KV cache alone: after a pause, with nothing in
flight and all memory there (``release_kv_cache_memory``). Of the weights too: by sleep of level 2, which keeps nothing but buffers. A
scheduler that was paused goes on once every tag is there again, so the cache comes last, behind the weights.
"""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

from turnwise.agents.engines.vllm_start import use_cuda
from turnwise.errors import EngineError

Sleep: TypeAlias = Literal["no", "kv", "weights"]


def check_sleep(sleep: Any, device: str, *, in_flight: bool = False, elsewhere: bool = False) -> None:
    """Refuse what cannot be let go of, before anything is spent.

    Raises:
        EngineError: there is no GPU, weights change while the engine samples, or the engine is in another process.
    """
    if sleep not in ("kv", "weights"):  # what is none of these, the engine refuses
        return
    asked = f"engine.options.sleep: {sleep} leaves the engine's memory to the learner while it works"
    if elsewhere:
        raise EngineError(
            f"{asked}, and an engine in another process is not told when that is.",
            "Leave it out, or leave engines out of --on.",
        )
    if not use_cuda(device):
        raise EngineError(
            f"{asked}: vLLM can do so on a GPU only, and this run is on a CPU.",
            "Leave it out; on a CPU kv_cache_gib says how much the cache takes.",
        )
    if in_flight:
        raise EngineError(
            f"{asked}, and with scale.staleness it samples all the while.",
            "Leave it out, or set scale.staleness to 0.",
        )


class Sleeper:
    """Puts a vLLM engine to sleep and wakes it up.

    Args:
        engine: vLLM's, in this process.
        sleep: the memory that is let go of.

    Attributes:
        asleep: whether it is let go of at present.
    """

    def __init__(self, engine: Any, sleep: Sleep) -> None:
        self._engine, self._sleep = engine, sleep
        self.asleep = False

    def sleep(self) -> None:
        """Let the memory go. Nothing may be in flight, which vLLM would abort."""
        if self.asleep or self._sleep == "no":
            return
        self.asleep = True
        if self._sleep == "kv":
            self._engine.step()  # workers hear of what has ended, which counts as a request until they do
            self._engine.sleep(0)
            self._engine.release_kv_cache_memory()
        else:
            self._engine.sleep(2)

    @property
    def lost(self) -> bool:
        """True if the engine's weights are gone, and all of them are to come anew."""
        return self.asleep and self._sleep == "weights"

    def wake_weights(self) -> None:
        """Have memory for weights again, where it was let go of; there are none in it."""
        if self.lost:
            _hand_back()
            self._engine.wake_up(["weights"])

    def wake(self) -> None:
        """Take everything back, weights having been loaded.

        Raises:
            EngineError: vLLM does not wake.
        """
        if not self.asleep:
            return
        _hand_back()
        if not self._engine.wake_up(["kv_cache"]):
            raise EngineError("vLLM sleeps on after it was woken.", "Leave engine.options.sleep out.")
        self.asleep = False

    def check(self) -> None:
        """Refuse to sample while the memory is gone.

        Raises:
            EngineError: it is.
        """
        if self.asleep:
            raise EngineError(
                "The engine sleeps while the learner works (engine.options.sleep), and was asked to sample.",
                "Load weights first, which wakes it, or leave the option out.",
            )


def _hand_back() -> None:
    """Let go of what PyTorch only keeps cached of the learner's passes: vLLM maps its memory anew, and takes it from the card."""
    import torch

    if torch.cuda.is_available():
        torch.cuda.empty_cache()
