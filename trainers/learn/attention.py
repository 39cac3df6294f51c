"""Attention over a tree of tokens, behind Transformers' interface for attention functions.

:func:`take_trees` gives a model an attention function that is SDPA as before for rows, and for a tree lets each node attend to
its ancestors and itself. It is given for good: a layer that is computed again in the backward pass must find the same function.
Rotary positions and windows are those of the rows, since a node's position is its depth.

Three forms compute the same. :func:`by_segments` runs SDPA once for each segment, on the keys of its path. :func:`by_flex` is one
kernel, PyTorch's flex attention, which leaves out blocks of the mask of ancestors in which nothing is seen; its backward pass needs
CUDA. :func:`by_mask` runs SDPA once with that mask, dense, and is what the others are tested against.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from turnwise.errors import RecipeError
from turnwise.trainers.learn.model import base_of, decode
from turnwise.trainers.learn.tree import Run, TokenTree, ends_of, joined

NAME = "turnwise_tree"
TreeAttention: TypeAlias = Callable[..., Tensor]
"""Attention over one tree: queries, keys, values, ``window`` and ``scale`` as :func:`by_segments` takes them."""
_KINDS = {"full_attention", "sliding_attention"}
_DENSE = ("num_experts", "num_local_experts", "n_routed_experts", "moe_num_experts")
_OTHER = ("attn_logit_softcapping", "attention_chunk_size", "alibi")
_rows_only: dict[type, str] = {}
"""Classes of models of which trying has shown that a tree is not exact, and how."""


def why_not(model: nn.Module) -> str:
    """Say why this model reads rows only; empty where it can read trees.

    A tree is exact where a token's state depends on the tokens before it and their positions alone, by attention of the usual
    kind. Recurrent layers, experts that are chosen per batch, caps and sinks of attention are refused.
    """
    base = base_of(model)
    if type(base) in _rows_only:
        return _rows_only[type(base)]
    config = base.config.get_text_config()
    takes = inspect.signature(base.get_decoder().forward).parameters
    kinds = set(getattr(config, "layer_types", None) or ["full_attention"])
    if getattr(base, "_is_stateful", False) or not kinds <= _KINDS:
        return f"its layers are {', '.join(sorted(map(str, kinds - _KINDS))) or 'recurrent'}"
    if not {"position_ids", "attention_mask"} <= set(takes) or not _passes_on(takes):
        return "its attention takes no positions"
    if not getattr(base, "_supports_sdpa", False) or not getattr(base, "_supports_attention_backend", False):
        return "its attention cannot be replaced"
    for name in (*_DENSE, *_OTHER):
        if getattr(config, name, None):
            return f"its config has {name}"
    scaling: Any = getattr(config, "rope_scaling", None) or {}
    each = [scaling, *(one for one in scaling.values() if isinstance(one, Mapping))]  # or by kind of layer
    if any(one.get("rope_type", one.get("type")) in ("longrope", "dynamic") for one in each):
        return "its rotary positions depend on the longest row"
    return ""


def refuse_trees(model: nn.Module, reason: str) -> None:
    """Have models of this class read rows only from now on, which :func:`why_not` then explains."""
    _rows_only[type(base_of(model))] = reason


def _passes_on(takes: Any) -> bool:
    return any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in takes.values())


def take_trees(model: nn.Module) -> None:
    """Give a model the attention function that reads rows and trees."""
    _register()
    base = base_of(model)
    if base.config._attn_implementation != NAME:
        base.set_attn_implementation(NAME)


@contextlib.contextmanager
def with_trees(model: nn.Module) -> Iterator[None]:
    """Give a model the attention function for a while. It must not be computed again after that in a backward pass."""
    base = base_of(model)
    before = base.config._attn_implementation
    take_trees(model)
    try:
        yield
    finally:
        base.set_attn_implementation(before)


TreeForm: TypeAlias = Callable[[TokenTree], TreeAttention]


def hidden_states_of(
    model: nn.Module, tree: TokenTree, device: torch.device, form: TreeForm | None = None
) -> Tensor:
    """Return the last hidden state of each node, (N, D), by :func:`by_segments` or another form.

    The model must have been given :func:`take_trees`.

    Raises:
        RecipeError: the model's layers keep the tree from its attention, so that every token would see all others.
    """
    attend, layers = (form or _segmented)(tree), list[int]()

    def attended(*given: Tensor, **more: Any) -> Tensor:
        layers.append(len(layers))
        return attend(*given, **more)

    found = decode(
        model,
        input_ids=tree.token_N[None].to(device),
        position_ids=tree.position_N[None].to(device),
        # Four axes: without them Transformers takes positions that fall for packed rows, and makes a mask of N × N.
        attention_mask=torch.zeros(1, 1, 1, 1, device=device),
        tree=attended,
    )[0]
    if not layers:
        raise RecipeError(
            f"{type(base_of(model)).__name__} cannot be read as a tree: its layers keep it from their attention.",
            "Set optimizer.share: rows, and report this model.",
        )
    return found


def _segmented(tree: TokenTree) -> TreeAttention:
    return functools.partial(by_segments, tree)


@functools.cache
def _register() -> None:
    from transformers import AttentionInterface
    from transformers.integrations.sdpa_attention import sdpa_attention_forward
    from transformers.masking_utils import AttentionMaskInterface, sdpa_mask

    def attend(
        module: nn.Module,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        attention_mask: Tensor | None,
        tree: TreeAttention | None = None,
        **more: Any,
    ) -> tuple[Tensor, None]:
        if tree is None:
            return sdpa_attention_forward(module, query, key, value, attention_mask, **more)
        window, scale = more.get("sliding_window"), more.get("scaling")
        return tree(query, key, value, window=window, scale=scale), None

    AttentionInterface.register(NAME, attend)
    AttentionMaskInterface.register(NAME, sdpa_mask)


def by_segments(
    tree: TokenTree,
    query_1HND: Tensor,
    key_1GND: Tensor,
    value_1GND: Tensor,
    *,
    window: int | None = None,
    scale: float | None = None,
) -> Tensor:
    """Return attention of each node over its ancestors and itself, (1, N, H, D), one segment after the other.

    G heads of keys serve H heads of queries, H/G each. ``window`` is how far back a node sees, itself counted.
    """
    runs = [joined(segment.path, (segment.begin, segment.end)) for segment in tree.segments]
    seen = [sum(end - begin for begin, end in own) for own in runs]
    every = [run for own in runs for run in own]
    keys, values = (
        _spread(query_1HND, _Seen.apply(x, every)).split(seen, 2)  # pyright: ignore
        for x in (key_1GND, value_1GND)
    )
    queries = query_1HND.split([segment.end - segment.begin for segment in tree.segments], 2)
    found = [_attended(*own, window, scale) for own in zip(queries, keys, values, strict=True)]
    return torch.cat(found, 2).transpose(1, 2).contiguous()


def _attended(query: Tensor, key: Tensor, value: Tensor, window: int | None, scale: float | None) -> Tensor:
    """Attention of the last nodes of a path over all of it."""
    new, seen = query.shape[2], key.shape[2]
    if new == seen and (not window or window >= seen):
        return F.scaled_dot_product_attention(query, key, value, is_causal=True, scale=scale)
    mask = _causal(new, seen, window, query.device)
    return F.scaled_dot_product_attention(query, key, value, attn_mask=mask, scale=scale)


class _Seen(torch.autograd.Function):
    """The nodes of runs, one run after the other.

    Its backward pass adds each run's gradient up in place: that of a slice writes zeros for all other nodes, which with many
    segments was half of an update.
    """

    @staticmethod
    def forward(ctx: Any, x_1GND: Tensor, runs: Sequence[Run]) -> Tensor:  # pyright: ignore
        ctx.runs, ctx.count = runs, x_1GND.shape[2]
        return torch.cat([x_1GND[:, :, begin:end] for begin, end in runs], 2)

    @staticmethod
    def backward(ctx: Any, slope_1GPD: Tensor) -> tuple[Tensor, None]:  # pyright: ignore
        one, heads, _, width = slope_1GPD.shape
        found, place = slope_1GPD.new_zeros(one, heads, ctx.count, width), 0
        for begin, end in ctx.runs:
            found[:, :, begin:end] += slope_1GPD[:, :, place : place + end - begin]
            place += end - begin
        return found, None


@functools.lru_cache(maxsize=64)
def _causal(new: int, seen: int, window: int | None, device: torch.device) -> Tensor:
    """Return the mask of which of ``seen`` positions each of the last ``new`` sees, (new, seen)."""
    ones = torch.ones(new, seen, dtype=torch.bool, device=device)
    mask = ones.tril(seen - new)
    return mask & ~ones.tril(seen - new - window) if window else mask


def by_mask(
    tree: TokenTree,
    query_1HND: Tensor,
    key_1GND: Tensor,
    value_1GND: Tensor,
    *,
    window: int | None = None,
    scale: float | None = None,
) -> Tensor:
    """Return the same as :func:`by_segments`, by a mask of ancestors, in memory of N²."""
    count = len(tree.parent_N)
    mask = torch.zeros(count, count, dtype=torch.bool)
    for node, parent in enumerate(tree.parent_N.tolist()):
        if parent >= 0:
            mask[node] = mask[parent]
        mask[node, node] = True
    if window:
        mask &= tree.position_N[:, None] - tree.position_N < window
    key, value = _spread(query_1HND, key_1GND), _spread(query_1HND, value_1GND)
    found = F.scaled_dot_product_attention(
        query_1HND, key, value, attn_mask=mask.to(query_1HND.device), scale=scale
    )
    return found.transpose(1, 2).contiguous()


def by_flex(tree: TokenTree) -> TreeAttention:
    """Return attention over a tree by one kernel, with block masks that all layers of a window share.

    A node sees what stands before it and above it: those whose nodes below reach beyond it.
    """
    from torch.nn.attention.flex_attention import BlockMask, create_block_mask, flex_attention

    masks = dict[int | None, BlockMask]()

    def masked(window: int | None, device: torch.device) -> BlockMask:
        end_N, position_N = ends_of(tree.parent_N).to(device), tree.position_N.to(device)

        def sees(_one: Tensor, _head: Tensor, query: Tensor, key: Tensor) -> Tensor:
            above = (key <= query) & (query < end_N[key])
            return above & (position_N[query] - position_N[key] < window) if window else above

        count = len(end_N)
        return create_block_mask(sees, None, None, count, count, device=str(device))

    def attended(
        query_1HND: Tensor,
        key_1GND: Tensor,
        value_1GND: Tensor,
        *,
        window: int | None = None,
        scale: float | None = None,
    ) -> Tensor:
        if window not in masks:
            masks[window] = masked(window, query_1HND.device)
        run = _compiled() if query_1HND.is_cuda else flex_attention
        shared = query_1HND.shape[1] != key_1GND.shape[1]
        found = run(
            query_1HND, key_1GND, value_1GND, block_mask=masks[window], scale=scale, enable_gqa=shared
        )
        return found.transpose(1, 2).contiguous()

    return attended


@functools.cache
def _compiled() -> Any:
    from torch.nn.attention.flex_attention import flex_attention

    return torch.compile(flex_attention, dynamic=True)


def _spread(query: Tensor, x: Tensor) -> Tensor:
    times = query.shape[1] // x.shape[1]
    return x.repeat_interleave(times, 1) if times > 1 else x
