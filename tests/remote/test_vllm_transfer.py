"""Weights from GPU to GPU by vLLM's own transfers, as far as they run without a GPU.

Both sides are vLLM's own classes, with its rendezvous, its packing into buffers and its calls, over real HTTP on the loopback
interface. Three things stand in: NCCL's broadcast goes through the group's TCP store (:class:`ByStore`), CUDA IPC's handles
lead to buffers of this process (:class:`Handles`), and streams and devices do nothing (:class:`OnCpu`). So no GPU has ever seen
any of this: NCCL, IPC and the order of streams are not tested.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest

torch = pytest.importorskip("torch")

from turnwise.agents.remote import vllm_transfer
from turnwise.agents.remote.adapters import AdaptedWeights, Adapter
from turnwise.agents.remote.client import Address, RemoteServer, Unreachable
from turnwise.agents.remote.protocol import EngineFacts, WeightsFacts
from turnwise.agents.remote.transfer import Publisher
from turnwise.agents.remote.vllm_transfer import (
    IpcPublisher,
    NcclPublisher,
    as_json,
    device_digest,
    digest_of,
    from_json,
    tensor_row,
)
from turnwise.errors import EngineError, MissingDependencyError, RecipeError
from turnwise.trainers.learn.whole import checkpoint_tensors
from turnwise.trainers.run.loop import train

OURS, OTHER = "GPU-ours", "GPU-other"

# --- checksums and handles ----------------------------------------------------------------------------


def by_hand(data: bytes) -> str:
    """The digest in plain numbers."""
    total = 0
    for place, byte in enumerate(data, 1):
        mixed = place * 0x1F123BB59E3779B1 % 2**64
        signed = mixed - 2**64 if mixed >= 2**63 else mixed
        mixed = (signed ^ (signed >> 29)) * 0x2545F4914F6CDD1D % 2**64 | 1
        total += byte * mixed
    return f"{len(data):x}-{total % 2**64:016x}"


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32, torch.int64, torch.bool])
def test_a_digest_is_the_sum_of_bytes_times_a_number_of_their_place(
    monkeypatch: pytest.MonkeyPatch, dtype: Any
):
    tensor = (torch.arange(33).reshape(3, 11) % 7).to(dtype)
    data = tensor.reshape(-1).view(torch.uint8).numpy().tobytes()
    assert device_digest(tensor) == by_hand(data)
    monkeypatch.setattr(vllm_transfer, "_CHUNK", 5)
    assert device_digest(tensor) == by_hand(data), "in several parts"
    assert device_digest(tensor.t()) == by_hand(tensor.t().contiguous().view(torch.uint8).numpy().tobytes())
    assert device_digest(torch.empty(0, dtype=dtype)) == "0-0000000000000000"


def test_a_checksum_sees_any_one_byte_two_that_are_exchanged_and_another_name_type_or_shape():
    one = {"a": torch.arange(64, dtype=torch.uint8), "b": torch.ones(3)}

    def checksum(weights: dict[str, Any]) -> str:
        return digest_of(tensor_row(name, tensor) for name, tensor in weights.items())

    known = checksum(one)
    assert known == checksum(dict(reversed(one.items())))
    for place in range(64):
        for change in (1, 127, 255):
            other = one["a"].clone()
            other[place] += change
            assert checksum(one | {"a": other}) != known
    assert checksum(one | {"a": one["a"].flip(0)}) != known
    assert checksum({"c": one["a"], "b": one["b"]}) != known
    assert checksum(one | {"a": one["a"].view(torch.int8)}) != known
    assert checksum(one | {"a": one["a"].reshape(8, 8)}) != known


def handle(name: bytes = b"memory") -> tuple[Any, ...]:
    """What rebuilds a buffer in another process, in the form that torch has for it."""
    return (
        torch.Tensor, torch.Size([64]), (1,), 0, torch.storage.TypedStorage, torch.uint8, 0, name, 64, 0, False,
        b"\x00counter\xff", 3, b"event", True,
    )  # fmt: skip


def test_a_handle_travels_as_json_and_is_nothing_but_a_buffer_of_bytes():
    info = {"names": ["a"], "dtype_names": ["float32"], "shapes": [[2]], "tensor_sizes": [8]}
    sent = json.loads(json.dumps(as_json({**info, "ipc_handles": {OURS: handle()}})))
    assert from_json(sent) == {**info, "ipc_handles": {OURS: handle()}}
    assert as_json(info) == from_json(info) == info
    for place, wrong in ((5, "float32"), (7, "?"), (7, 4), (13, None)):
        row = [*sent["ipc_handles"][OURS]]
        row[place] = wrong
        with pytest.raises(EngineError, match="cannot be read"):
            from_json({**sent, "ipc_handles": {OURS: row}})
    with pytest.raises(EngineError, match="cannot be read"):
        from_json({**sent, "ipc_handles": {OURS: sent["ipc_handles"][OURS][:7]}})


# --- what is refused ----------------------------------------------------------------------------------


@pytest.mark.parametrize("way", ["nccl", "ipc"])
def test_a_recipe_that_sends_from_gpu_to_gpu_is_refused_where_there_is_none(way: str, tmp_path: Path):
    if torch.cuda.is_available():
        pytest.skip("there is one")
    scale = {"scale.publish": way, "device": "cpu"}
    with pytest.raises(
        MissingDependencyError, match=rf"scale\.publish: {way} sends .* sees no CUDA device"
    ) as refused:
        train("shop-quick", out=tmp_path / "run", on="local:engines=1", **scale)
    assert "Leave scale.publish out" in refused.value.remedy
    with pytest.raises(RecipeError, match="this run's engine is in its own process"):
        train("shop-quick", out=tmp_path / "run", **scale)
    assert not (tmp_path / "run").exists()


def test_one_learner_alone_hands_weights_over_by_ipc(sending: None, tmp_path: Path):
    changes = {"scale.publish": "ipc", "scale.learners": 2, "device": "cpu"}
    with pytest.raises(RecipeError, match=r"works with 1 learner, and scale\.learners is 2"):
        train("shop-quick", out=tmp_path / "run", on="local:engines=1", **changes)


@pytest.mark.parametrize(
    ("publisher", "gpus", "why"),
    [
        (NcclPublisher, [], "only vLLM's servers on CUDA do"),
        (NcclPublisher, [OTHER, OURS], "on the learner's own GPU.*set scale.publish to ipc"),
        (IpcPublisher, [], "only vLLM's servers on CUDA do"),
        (IpcPublisher, [OTHER], "on other GPUs than the learner's.*set scale.publish to nccl"),
        (IpcPublisher, [OURS, OTHER], "on other GPUs than the learner's"),
    ],
)
def test_an_engine_whose_gpus_are_not_reached_is_refused(
    sending: None, publisher: Any, gpus: list[str], why: str
):
    server, sender = RemoteServer(Address("http://127.0.0.1:1")), publisher()
    server.facts = facts(gpus)
    with pytest.raises(EngineError, match=f"127.0.0.1:1 .*{why}"):
        sender.delivery(sender.offer([("a", torch.ones(2))], "float32"), server)


def facts(gpus: list[str], instance: str = "first", **weights: Any) -> EngineFacts:
    has = WeightsFacts(**{"version": "default", **weights})
    return EngineFacts(
        kind="vllm", instance=instance, dtype="float32", context_length=64, weights=has, gpus=gpus
    )


# --- both sides of vLLM's, without a GPU --------------------------------------------------------------


class ByStore:
    """In the place of NCCL's communicator: a broadcast goes through the store of vLLM's own process group.

    ``hold`` makes the sender wait, as NCCL does for a receiver that never comes, until the group is destroyed; ``damage``
    is done to what arrives.
    """

    hold = False
    damage: Callable[[Any], None] | None = None
    made: ClassVar[list[ByStore]] = []
    held = threading.Event()

    def __init__(self, group: Any, device: Any) -> None:
        self._group, self._destroyed = group, threading.Event()
        ByStore.made.append(self)

    def broadcast(self, tensor: Any, src: int, stream: Any = None) -> None:
        if self._group.rank == src and ByStore.hold:
            ByStore.held.set()
            self._destroyed.wait()
            self._group.broadcast(torch.empty(0), src)  # so that a receiver does not outlive the test
            raise RuntimeError("aborted")
        came = self._group.broadcast(tensor, src)
        if self._group.rank != src:
            tensor.copy_(came)
            if ByStore.damage is not None:
                ByStore.damage(tensor)

    def destroy(self) -> None:
        self._destroyed.set()

    @property
    def destroyed(self) -> bool:
        return self._destroyed.is_set()


class Handles:
    """In the place of CUDA's: handles by which buffers of this process are found again."""

    def __init__(self) -> None:
        self._buffers: dict[bytes, Any] = {}

    def reduce(self, tensor: Any) -> tuple[Any, Any]:
        name = f"buffer {len(self._buffers)}".encode()
        self._buffers[name] = tensor
        return None, handle(name)

    def rebuild(self, *args: Any) -> Any:
        assert args[5] is torch.uint8
        return self._buffers[args[7]]


class OnCpu:
    """torch, as vLLM's transfers see it: what they ask of a GPU is done on the CPU, or not at all."""

    class cuda:
        Stream = SimpleNamespace
        stream = staticmethod(lambda stream: contextlib.nullcontext())
        current_stream = staticmethod(lambda: SimpleNamespace(synchronize=lambda: None))
        get_device_properties = staticmethod(lambda index: SimpleNamespace(uuid=OURS))
        ipc_collect = synchronize = staticmethod(lambda: None)
        is_available = staticmethod(lambda: False)

    accelerator = SimpleNamespace(current_device_index=lambda: 0)

    def __getattr__(self, name: str) -> Any:
        return getattr(torch, name)

    @staticmethod
    def empty(*sizes: Any, device: Any = None, **options: Any) -> Any:
        return torch.empty(*sizes, **options)


class Model:
    """A model into which weights are loaded by the names of a checkpoint."""

    def __init__(self, names: list[str]) -> None:
        self.names, self.weights, self.steps = names, dict[str, Any](), list[str]()

    def named_parameters(self) -> Iterator[tuple[str, Any]]:
        return ((name, None) for name in self.names)

    def load_weights(self, weights: Any) -> set[str]:
        given = {name: tensor.clone() for name, tensor in weights}
        self.weights |= given
        self.steps.append("load")
        return set(given)


class Engine:
    """A server of vLLM's routes around the worker side, as vLLM's worker calls it; it notes what it was asked."""

    def __init__(self, names: list[str], gpu: str) -> None:
        from turnwise.agents.remote.vllm_worker import PackTransfer  # pyright: ignore[reportAttributeAccessIssue]

        self.model, self.gpu, self.asked, self.die = Model(names), gpu, list[str](), False
        self.bodies: list[Any] = []
        parallel = SimpleNamespace(data_parallel_index=0, world_size=1, rank=0)
        config = SimpleNamespace(parallel_config=parallel, model_config=None)
        self.transfer = PackTransfer(None, config, SimpleNamespace(type="cpu", index=0), self.model)
        self.version, self.instance = "default", "first"
        engine = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self.answer(200, engine.facts().model_dump())

            def do_POST(self) -> None:
                data = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                path = self.path.partition("?")[0]
                engine.asked.append(path)
                if path == "/update_weights" and engine.die:
                    self.close_connection = True
                    return
                try:
                    engine.do(path, json.loads(data) if data else {})
                except Exception as error:  # noqa: BLE001 (as vLLM's routes answer)
                    self.answer(500, {"error": {"message": str(error)}})
                else:
                    self.answer(200, {})

            def answer(self, status: int, value: Any) -> None:
                body = json.dumps(value).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *said: Any) -> None:
                pass

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server = RemoteServer(Address(f"http://127.0.0.1:{self._http.server_port}"))
        threading.Thread(target=self._http.serve_forever, daemon=True).start()
        self.server.look()

    def do(self, path: str, body: Any) -> None:
        if path == "/init_weight_transfer_engine":
            self.transfer.init_transfer_engine(self.transfer.parse_init_info(body["init_info"]))
        elif path == "/start_weight_update":
            self.transfer.start_weight_update()
        elif path == "/update_weights":
            self.bodies.append(body["update_info"])
            self.transfer.receive_weights(self.transfer.parse_update_info(body["update_info"]))
        elif path == "/finish_weight_update":
            self.transfer.finish_weight_update()
            self.version = body["weight_version"]

    def facts(self) -> EngineFacts:
        has = {"version": self.version, "checksum": self.transfer.checksum, "settled": self.transfer.settled}
        return facts([self.gpu], self.instance, **has)

    def close(self) -> None:
        self._http.shutdown()
        self._http.server_close()


@pytest.fixture
def sending(monkeypatch: pytest.MonkeyPatch) -> None:
    """This process has a GPU, as far as publishers ask."""
    for publisher in (NcclPublisher, IpcPublisher):
        monkeypatch.setattr(publisher, "check", classmethod(lambda cls: None))
    monkeypatch.setattr(vllm_transfer, "own_gpu", lambda: OURS)


@pytest.fixture
def transfers(sending: None, monkeypatch: pytest.MonkeyPatch) -> Any:
    """vLLM's transfers on the CPU; tensors go a few at a time."""
    pytest.importorskip("vllm")
    folder, handles = "vllm.distributed.weight_transfer", Handles()
    for module in ("packed_tensor", "nccl_engine", "ipc_engine", "nccl_common"):
        monkeypatch.setattr(f"{folder}.{module}.torch", OnCpu())
    streams = [SimpleNamespace(synchronize=lambda: None)] * 2
    monkeypatch.setattr(f"{folder}.packed_tensor._get_streams", lambda device, count: streams)
    for module in ("packed_tensor", "ipc_engine"):
        monkeypatch.setattr(f"{folder}.{module}.reduce_tensor", handles.reduce)
    monkeypatch.setattr("torch.multiprocessing.reductions.rebuild_cuda_tensor", handles.rebuild)
    monkeypatch.setattr("vllm.distributed.device_communicators.pynccl.PyNcclCommunicator", ByStore)
    for module in (
        "reload",
        "reload.layerwise",
    ):  # what becomes of a model is vLLM's, and packs' tests have it
        for step in ("initialize", "finalize"):
            place = f"vllm.model_executor.model_loader.{module}.{step}_layerwise_reload"
            monkeypatch.setattr(place, lambda model, *_, step=step: model.steps.append(step))
    monkeypatch.setattr(vllm_transfer, "BUFFER_BYTES", 8192)
    monkeypatch.setattr(ByStore, "hold", False)
    monkeypatch.setattr(ByStore, "damage", None)
    monkeypatch.setattr(ByStore, "made", [])
    ByStore.held.clear()
    return importlib.import_module(folder)


WAYS = pytest.mark.parametrize(("publisher", "gpu"), [(NcclPublisher, OTHER), (IpcPublisher, OURS)])
JOIN, START, UPDATE, FINISH = (
    "/init_weight_transfer_engine",
    "/start_weight_update",
    "/update_weights",
    "/finish_weight_update",
)


@pytest.fixture
def joined(transfers: Any) -> Iterator[Callable[..., tuple[Any, Engine]]]:
    """``joined(publisher, gpu, weights)``: a publisher, and an engine of a model with these weights."""
    with contextlib.ExitStack() as stack:

        def make(publisher: Any, gpu: str, weights: dict[str, Any]) -> tuple[Any, Engine]:
            engine, sender = Engine([*weights], gpu), publisher()
            stack.callback(engine.close)
            stack.callback(sender.close)
            return sender, engine

        yield make


def publish(sender: Any, engine: Engine, weights: dict[str, Any], version: int) -> None:
    offer = sender.offer(weights.items(), "float32")
    engine.server.publish(sender.delivery(offer, engine.server), version, "recompute")


def assert_has(engine: Engine, weights: dict[str, Any], dtype: Any = torch.float32) -> None:
    assert engine.model.weights.keys() == weights.keys()
    for name, tensor in weights.items():
        assert engine.model.weights[name].equal(tensor.to(dtype) if tensor.is_floating_point() else tensor), (
            name
        )


@pytest.mark.slow
@WAYS
def test_weights_are_packed_sent_loaded_and_attested(
    joined: Any, random_model: Any, publisher: Any, gpu: str
):
    weights = dict(checkpoint_tensors(random_model(seed=3)))
    sender, engine = joined(publisher, gpu, weights)
    publish(sender, engine, weights, 1)
    assert_has(engine, weights)
    updates = engine.asked.count(UPDATE)
    assert engine.asked == ["/pause", JOIN, START, *[UPDATE] * updates, FINISH, "/resume"]
    assert (updates > 1) == (publisher is IpcPublisher), (
        "vLLM's NCCL names all tensors at once, its IPC a buffer at a time"
    )
    said = [
        row
        for body in engine.bodies
        for row in zip(*(body["facts"][key] for key in ("names", "dtype_names", "shapes")), strict=True)
    ]
    assert said == [(name, "float32", list(tensor.shape)) for name, tensor in weights.items()]
    assert engine.model.steps[0] == "initialize"
    assert engine.model.steps[-1] == "finalize"
    assert engine.model.steps.count("load") > 1, "several buffers"
    assert (engine.server.version, engine.version) == (1, "1")
    newer = {name: tensor + 0.5 for name, tensor in weights.items()}
    del engine.asked[:]
    publish(sender, engine, newer, 2)
    assert_has(engine, newer)
    assert engine.asked == ["/pause", START, *[UPDATE] * updates, FINISH, "/resume"], "joined once"
    assert sender.written == 2 * sum(tensor.nbytes for tensor in weights.values())


@pytest.mark.slow
@WAYS
def test_what_is_sent_is_what_was_offered_in_the_engine_s_type(joined: Any, publisher: Any, gpu: str):
    weights = {"w": torch.arange(6000.0).reshape(60, 100).t(), "steps": torch.tensor([3]), "b": torch.ones(7)}
    sender, engine = joined(publisher, gpu, weights)
    offer = sender.offer(weights.items(), "bfloat16")
    expected = {name: tensor.clone() for name, tensor in weights.items()}
    for tensor in weights.values():  # the learner goes on
        tensor.add_(1)
    engine.server.publish(sender.delivery(offer, engine.server), 1, "recompute")
    assert_has(engine, expected, torch.bfloat16)


def names_sent(engine: Engine) -> list[tuple[str, list[str]]]:
    """Of each part of an update, the kind of weights in it and their names; the engine forgets them."""
    found = [(body["holds"], list(body["facts"]["names"])) for body in engine.bodies]
    del engine.bodies[:]
    return found


@pytest.mark.slow
@WAYS
def test_adapters_go_alone_once_an_engine_has_their_base(joined: Any, publisher: Any, gpu: str):
    base = {"w": torch.ones(4, 3), "b": torch.ones(4)}
    a_KI, b_OK = torch.arange(6.0).reshape(2, 3), torch.arange(8.0).reshape(4, 2)
    sender, engine = joined(publisher, gpu, base)
    owner, alone = Handles(), ("adapters", ["w.lora_A", "w.lora_B", "w.lora_scale"])

    def publish_adapters(scale: float, version: int, weights: dict[str, Any] = base) -> None:
        offer = sender.offer_adapters(
            AdaptedWeights(owner, weights, {"w": Adapter(a_KI, b_OK, scale)}), "bfloat16"
        )
        engine.server.publish(sender.delivery(offer, engine.server), version, "recompute")
        expected = {"w": weights["w"] + b_OK @ a_KI * scale, "b": weights["b"].to(torch.bfloat16)}
        assert engine.model.weights.keys() == expected.keys()
        assert all(engine.model.weights[name].equal(tensor) for name, tensor in expected.items())

    publish_adapters(0.5, 1)
    assert names_sent(engine) == [("base", ["w", "b"]), alone]
    assert sender.written == a_KI.nbytes + b_OK.nbytes + 4, "of the base no copy is made"
    publish_adapters(0.25, 2)
    assert names_sent(engine) == [alone]
    engine.instance = "second"
    engine.server.look()
    publish_adapters(0.125, 3)
    assert names_sent(engine) == [("base", ["w", "b"]), alone], "one that was started anew has none"
    base["w"].add_(1)
    publish_adapters(0.5, 4)
    assert names_sent(engine) == [("base", ["w", "b"]), alone], "it has changed"
    publish(sender, engine, base, 5)
    publish_adapters(0.25, 6)
    assert [holds for holds, _ in names_sent(engine)] == ["whole", "base", "adapters"]


@pytest.mark.slow
@WAYS
def test_adapters_that_are_no_part_of_what_an_engine_has_are_refused(joined: Any, publisher: Any, gpu: str):
    base = {"w": torch.ones(4, 3), "b": torch.ones(4)}
    sender, engine = joined(publisher, gpu, base)
    adapter = Adapter(torch.ones(2, 3), torch.ones(4, 2), 0.5)
    offer = sender.offer_adapters(AdaptedWeights(engine, base, {"w": adapter}), "float32")
    engine.server.publish(sender.delivery(offer, engine.server), 1, "recompute")
    engine.transfer.own._base = {}
    with pytest.raises(EngineError, match="not what they are added to"):
        engine.server.publish(sender.delivery(offer, engine.server), 2, "recompute")
    engine.server.publish(sender.delivery(offer, engine.server), 2, "recompute")
    assert engine.facts().weights.settled, "the next time the base goes along"


@pytest.mark.slow
@WAYS
def test_an_engine_that_was_started_anew_is_joined_anew(joined: Any, publisher: Any, gpu: str):
    weights = {"w": torch.ones(4, 3)}
    sender, engine = joined(publisher, gpu, weights)
    publish(sender, engine, weights, 1)
    first = [*ByStore.made]
    engine.instance, engine.version = "second", "default"
    engine.server.look()
    publish(sender, engine, weights, 2)
    assert engine.asked.count(JOIN) == 2
    assert all(group.destroyed for group in first)
    assert not any(group.destroyed for group in ByStore.made[len(first) :])
    sender.close()
    assert all(group.destroyed for group in ByStore.made if group._group.rank == 0)


@pytest.mark.slow
def test_damage_on_the_way_is_seen(joined: Any, monkeypatch: pytest.MonkeyPatch):
    weights = {"w": torch.ones(4, 3)}
    sender, engine = joined(NcclPublisher, OTHER, weights)
    monkeypatch.setattr(ByStore, "damage", staticmethod(lambda tensor: tensor[9].add_(1)))
    with pytest.raises(EngineError, match=r"has weights 1 .*and not weights 1"):
        publish(sender, engine, weights, 1)
    assert "/resume" not in engine.asked
    monkeypatch.setattr(ByStore, "damage", None)
    publish(sender, engine, weights, 1)
    assert_has(engine, weights)


@pytest.mark.slow
@WAYS
def test_weights_that_leave_a_part_of_the_model_as_it_was_are_refused(joined: Any, publisher: Any, gpu: str):
    weights = {"w": torch.ones(4, 3), "b": torch.ones(4)}
    sender, engine = joined(publisher, gpu, weights)
    with pytest.raises(EngineError, match="The weights lack b"):
        publish(sender, engine, {"w": weights["w"]}, 1)
    assert not engine.facts().weights.settled
    publish(sender, engine, weights, 1)
    assert engine.facts().weights.settled


@pytest.mark.slow
@pytest.mark.parametrize("ends", ["dies", "never answers"])
def test_an_engine_that_ends_in_the_middle_holds_nobody_up(
    joined: Any, monkeypatch: pytest.MonkeyPatch, ends: str
):
    """NCCL waits for ever for a receiver that does not come; its group is destroyed, and the next time it is joined anew."""
    weights = {"w": torch.ones(4, 3)}
    sender, engine = joined(NcclPublisher, OTHER, weights)
    publish(sender, engine, weights, 1)
    group = next(group for group in ByStore.made if group._group.rank == 0)
    monkeypatch.setattr(ByStore, "hold", True)
    engine.die = ends == "dies"
    if not engine.die:  # all the time that it may take is over when the sender waits for it
        late = SimpleNamespace(monotonic=lambda: 1e9 if ByStore.held.is_set() else time.monotonic())
        monkeypatch.setattr(vllm_transfer, "time", late)
    with pytest.raises(
        Unreachable, match=r"does not answer /update_weights|has not taken the weights by nccl"
    ):
        publish(sender, engine, weights, 2)
    assert group.destroyed
    monkeypatch.setattr(ByStore, "hold", False)
    engine.die, engine.instance = False, "second"
    engine.server.look()
    publish(sender, engine, weights, 2)
    assert_has(engine, weights)


@pytest.mark.slow
def test_the_same_worker_takes_packs_and_what_nobody_joined_is_refused(joined: Any):
    weights = {"w": torch.ones(4, 3)}
    _, engine = joined(NcclPublisher, OTHER, weights)
    packs = Publisher()
    try:
        publish(packs, engine, weights, 1)
        assert_has(engine, weights)
        assert engine.model.steps == ["initialize", "load", "finalize"]
        for path, body, why in (
            (UPDATE, {"update_info": {"way": "nccl"}}, "Nobody has joined"),
            (JOIN, {"init_info": {"way": "sharded_rdt"}}, "no way 'sharded_rdt' here"),
        ):
            with pytest.raises(EngineError, match=why):
                engine.server.call("POST", path, body)
    finally:
        packs.close()
