"""The names that other trainers have for the parts of a row, so that what they hold in memory can be dumped as it is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

NAMES: Mapping[str, str] = {
    "input_ids": "token_ids",  # prime-rl's micro-batches
    "prompt_token_ids": "prompt_ids",  # SkyRL, Harbor
    "response_ids": "completion_ids",  # verl, SkyRL
    "completion_token_ids": "completion_ids",  # Harbor
    "response_mask": "mask",  # verl
    "completion_mask": "mask",  # prime-rl, verifiers
    "loss_mask": "mask",  # SkyRL, prime-rl's micro-batches
    "loss_masks": "mask",
    "env_mask": "mask",  # TRL
    "response_logprobs": "logprobs",  # verl
    "completion_logprobs": "logprobs",  # prime-rl, verifiers
    "rollout_logprobs": "logprobs",  # SkyRL
    "inference_logprobs": "logprobs",  # prime-rl's micro-batches
}
_COLUMNS = ("token_ids", "prompt_ids", "completion_ids", "mask", "logprobs")


def in_our_words(value: object) -> Iterator[object]:
    """The rows of a line, under our names: one, or those of a batch whose parts are lists of lists.

    >>> list(in_our_words({"prompt_token_ids": [[1], [2]], "response_ids": [[3], [4]], "rewards": [0, 1]}))
    [{'prompt_ids': [1], 'completion_ids': [3]}, {'prompt_ids': [2], 'completion_ids': [4]}]
    """
    if not isinstance(value, dict):
        yield value
        return
    given: dict[str, Any] = {NAMES.get(name, name): one for name, one in value.items()}
    own = given.get("token_ids", given.get("completion_ids"))
    if not (isinstance(own, list) and own and all(isinstance(one, list) for one in own)):
        yield given
        return
    columns = {name: given[name] for name in _COLUMNS if given.get(name) is not None}
    for i in range(len(own)):
        yield {name: column[i] for name, column in columns.items() if i < len(column)}
