"""Adapters go alone to engines elsewhere, which then sample from the merged weights."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
from lazily import needs

needs("peft")

from answers import PROMPTS, assert_same, moved, sample, wait_for

from turnwise.agents.engines.torch import TorchEngine
from turnwise.agents.remote import transfer
from turnwise.agents.remote.adapters import Adapter, adapter_tensors, merged, read_adapters
from turnwise.agents.remote.server import EngineServer
from turnwise.errors import EngineError
from turnwise.trainers.learn.sync import push_weights
from turnwise.trainers.learn.whole import adapted_weights, checkpoint_tensors

Fleet = Callable[..., Any]


def assert_samples_merged(remote: Any, servers: Any, model: Any, alone: TorchEngine) -> None:
    """Every engine has the merged weights to the last bit, and scores and samples as one that was given them whole."""
    alone.load_weights(checkpoint_tensors(model), remote.version)
    whole = dict(alone.tensors())
    for server in servers:
        assert all(torch.equal(tensor, whole[name]) for name, tensor in server.engine.tensors())
    assert_same(sample(remote), sample(alone))
    ours, theirs = torch.tensor(remote.score(PROMPTS[:1])), torch.tensor(alone.score(PROMPTS[:1]))
    assert (ours - theirs).abs().max() < 1e-6


@pytest.mark.slow
@pytest.mark.parametrize("where", ["shared memory", "TCP"])
def test_only_adapters_travel_after_the_first_time(
    served: Any, fleet: Fleet, alone: TorchEngine, lora: Any, monkeypatch: pytest.MonkeyPatch, where: str
):
    if where == "TCP":
        monkeypatch.setattr("turnwise.agents.remote.transfer.locality", lambda: "elsewhere")
    servers = [served(), served()]
    remote, model = fleet(*(server.url for server in servers)), lora()
    packed: list[int] = []
    for version in (1, 2, 3):
        moved(model, version)
        before = remote.bytes_published
        assert push_weights(model, remote, version).max_logp_gap < 1e-4
        packed.append(remote.bytes_published - before)
        assert_samples_merged(remote, servers, model, alone)
    adapters = sum(p.nbytes for name, p in model.named_parameters() if "lora_" in name)
    assert packed[1] == packed[2] < 1.5 * adapters + (1 << 13)  # and the index
    assert packed[0] > packed[1] + sum(tensor.nbytes for _, tensor in checkpoint_tensors(model))


def test_an_engine_that_joins_or_is_back_gets_base_and_adapters(
    served: Any, fleet: Fleet, alone: TorchEngine, lora: Any
):
    first = served()
    remote, model = fleet(first.url), lora()
    push_weights(model, remote, 1)
    moved(model, 9)
    push_weights(model, remote, 2)
    late = served()
    remote.join(late.url)
    wait_for(lambda: all(row.serving and row.version == 2 for row in remote.health()))
    assert_samples_merged(remote, [first, late], model, alone)


@pytest.mark.slow
def test_a_base_that_changed_is_sent_again(served: Any, fleet: Fleet, alone: TorchEngine, lora: Any):
    server = served()
    remote, model = fleet(server.url), lora()
    push_weights(model, remote, 1)
    with torch.no_grad():
        model.get_base_model().model.norm.weight.mul_(1.3)
    push_weights(model, remote, 2)
    assert_samples_merged(remote, [server], model, alone)
    push_weights(other := lora(1), remote, 3)  # another model of the same shape, as after a phase
    assert_samples_merged(remote, [server], other, alone)


def test_merging_for_a_checkpoint_does_not_send_the_base_again(served: Any, fleet: Fleet, lora: Any):
    remote, model = fleet(served().url), lora()
    push_weights(model, remote, 1)
    before = remote.bytes_published
    push_weights(model, remote, 2)
    once = remote.bytes_published - before
    dict(checkpoint_tensors(model))
    push_weights(model, remote, 3)
    assert remote.bytes_published - before == 2 * once


def test_whole_weights_follow_adapters_and_adapters_whole_weights(
    served: Any, fleet: Fleet, alone: TorchEngine, lora: Any, random_model: Any
):
    server = served()
    remote = fleet(server.url)
    for version, model in enumerate((lora(), random_model(seed=4), lora(2)), 1):
        push_weights(model, remote, version)
        assert_samples_merged(remote, [server], model, alone)


@pytest.mark.slow
@pytest.mark.parametrize("which", ["base", "adapters"])
def test_a_damaged_pack_changes_nothing(
    served: Any, fleet: Fleet, alone: TorchEngine, lora: Any, monkeypatch: pytest.MonkeyPatch, which: str
):
    server = served()
    remote, model = fleet(server.url), lora()
    push_weights(model, remote, 1)
    whole = transfer.Publisher.by_file

    def damaged(publisher: Any, offer: Any) -> Any:
        info = whole(publisher, offer)
        file = Path(info.path if which == "adapters" else info.base.path)
        data = bytearray(file.read_bytes())
        data[10] ^= 1
        file.unlink()  # the engine has the other file open
        file.write_bytes(data)
        return info

    moved(other := lora(5), 5)
    with torch.no_grad():
        other.get_base_model().model.norm.weight.mul_(1.3)
    with monkeypatch.context() as patched:
        patched.setattr(transfer.Publisher, "by_file", damaged)
        with pytest.raises(EngineError, match="No engine took weights 2"):
            push_weights(other, remote, 2)
    wait_for(lambda: all(row.serving for row in remote.health()))
    assert_samples_merged(remote, [server], model, alone)


class Forgetful(EngineServer):
    """Loses one adapter on its way into the engine."""

    def _attested(self, update: Any) -> str:
        with torch.no_grad():
            dict(self.engine.tensors())["model.layers.0.mlp.up_proj.weight"].zero_()
        return super()._attested(update)


def test_an_engine_that_lost_an_adapter_is_seen(served: Any, fleet: Fleet, lora: Any):
    remote = fleet(served(server=Forgetful).url)
    with pytest.raises(EngineError, match="No engine took weights 1"):
        push_weights(lora(), remote, 1)


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"use_dora": True}, "are a variant"),
        ({"modules_to_save": ["norm"]}, "modules_to_save"),
        ({"target_modules": ["embed_tokens"], "tied": False}, "1 of Embedding"),
    ],
)
def test_adapters_of_another_form_go_merged_and_it_is_said_why(
    served: Any,
    fleet: Fleet,
    lora: Any,
    caplog: pytest.LogCaptureFixture,
    options: dict[str, Any],
    why: str,
):
    remote = fleet(served().url)
    with caplog.at_level(logging.WARNING):
        assert adapted_weights(model := lora(**options)) is None
    assert why in caplog.text
    if "tied" not in options:  # the engine's are
        assert push_weights(model, remote, 1).max_logp_gap < 1e-4


def test_adapters_that_do_not_fit_are_refused():
    base = {"w": torch.zeros(3, 2)}
    sent = dict(adapter_tensors({"w": Adapter(torch.ones(1, 2), torch.ones(3, 1), 2.0)}))
    came = read_adapters(base, sent.items())
    assert torch.equal(dict(merged(base, came))["w"], torch.full((3, 2), 2.0))
    for change, why in (
        ({"w.lora_B": None}, "is not whole"),
        ({"w.lora_B": torch.ones(2, 1)}, "no weight w"),
        ({"w.lora_A": torch.ones(2)}, "no weight w"),
        ({"v": torch.ones(1)}, "v is no part"),
    ):
        wrong = {name: tensor for name, tensor in (sent | change).items() if tensor is not None}
        with pytest.raises(EngineError, match=why):
            read_adapters(base, wrong.items())
    with pytest.raises(EngineError, match="no weight w"):
        read_adapters({}, sent.items())
