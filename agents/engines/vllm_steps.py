"""vLLM's synchronous engine as the loop of requests drives it, and its outputs as completions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from turnwise.agents.core import Completion, VersionSpan
from turnwise.errors import EngineError


class VllmRequest(NamedTuple):
    """A prompt, and vLLM's parameters of its sampling."""

    prompt_ids: Sequence[int]
    params: Any


class VllmSteps:
    """vLLM's synchronous engine, as the pump wants it.

    Attributes:
        adapters: vLLM's request for those that prompts are read with; None: none.
    """

    adapters: Any = None

    def __init__(self, engine: Any) -> None:
        self._engine = engine
        self._requests: dict[int, VllmRequest] = {}
        self._ended: list[Any] = []
        self._salt = ""  # prompts share the prefixes only of those that were computed under the same one

    def add(self, key: int, request: VllmRequest) -> None:
        prompt: dict[str, Any] = {"prompt_token_ids": list(request.prompt_ids)}
        if self._salt:
            prompt["cache_salt"] = self._salt
        self._engine.add_request(str(key), prompt, request.params, lora_request=self.adapters)
        self._requests[key] = request

    def abort(self, keys: Sequence[int]) -> None:
        self._engine.abort_request([str(key) for key in keys])
        for key in keys:
            self._requests.pop(key, None)

    def step(self) -> Iterable[tuple[int, Any]]:
        ended, self._ended = self._ended, []
        ended += [out for out in self._engine.step() if out.finished]
        for out in ended:
            self._requests.pop(int(out.request_id), None)
        return [(int(out.request_id), out) for out in ended]

    def run_beside(self, prompts: Mapping[str, Sequence[int]], params: Any) -> dict[str, Any]:
        """The outputs of some requests by their names; what else ends meanwhile is kept for the next step."""
        for name, ids in prompts.items():
            self._engine.add_request(
                name, {"prompt_token_ids": list(ids)}, params, lora_request=self.adapters
            )
        found: dict[str, Any] = {}
        while len(found) < len(prompts):
            for out in self._engine.step():
                if out.finished and out.request_id in prompts:
                    found[out.request_id] = out
                elif out.finished:
                    self._ended.append(out)
        return found

    def keep_apart(self, salt: str) -> None:
        """From now on read no prefix that was computed before; requests that have not begun are queued anew for it."""
        self._salt = salt
        begun = {
            int(state.external_req_id)
            for state in self._engine.output_processor.request_states.values()
            if state.detokenizer.num_output_tokens()
        }
        waiting = {key: request for key, request in self._requests.items() if key not in begun}
        self.abort([*waiting])
        for key, request in waiting.items():
            self.add(key, request)


def completion_of(output: Any) -> Completion:
    """The completion of an output that is finished."""
    answer = output.outputs[0]
    ids = tuple(answer.token_ids)
    flat = answer.logprobs
    if tuple(flat.token_ids) != ids:
        raise EngineError(
            "vLLM gave log-probabilities of other tokens than it sampled.", "Report it as a bug."
        )
    logprobs = tuple(flat.logprobs)
    spans = tuple(VersionSpan(span.start, int(span.version)) for span in answer.weight_versions)
    return Completion(ids, logprobs, answer.finish_reason == "stop", spans)
