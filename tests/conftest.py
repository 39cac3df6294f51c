"""What tests need of the machine and which of them run together; a small model; one vLLM engine for all.

The markers of a test follow from its fixtures and parameters (:data:`RESOURCES`), its tier from its markers:
docs/testing.md has both.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import psutil
import pytest
from choosing import choose, pytest_addoption, pytest_configure_node  # noqa: F401 (hooks)
from hypothesis import HealthCheck, settings
from recording import (  # noqa: F401 (hooks)
    pytest_collection_finish,
    pytest_runtest_logreport,
    pytest_runtest_makereport,
    pytest_terminal_summary,
    pytest_testnodedown,
    pytest_unconfigure,
)
from rewriting import pytest_sessionstart  # noqa: F401 (a hook)
from scheduling import GroupScheduling

from turnwise.envs.check import leaks
from turnwise.tools.browser.chromium import find_chromium
from turnwise.tools.sandbox.core import Backend
from turnwise.tools.sandbox.registry import get_backend

if TYPE_CHECKING:
    from turnwise.agents.engines.vllm import VllmEngine

# How fast this machine is just now says nothing of the code.
settings.register_profile("turnwise", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("turnwise")

VOCAB, CONTEXT = 320, 256

RESOURCES = {  # what a fixture of this name, or a parameter of this value, needs of the machine
    "vllm": "vllm",
    "vllm_engine": "vllm",
    "browser": "browser",
    "bubblewrap": "sandbox",
    "sandboxed": "sandbox",
    "docker": "docker",
    "ray": "ray",
}
TOGETHER = ("browser", "vllm", "docker")  # each in one worker; in the order in which they are started
WORKER_GIB = 3  # what a worker of the largest group needs
FOLDERS = Path(__file__).parent


@pytest.hookimpl(wrapper=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> Iterator[None]:
    """Mark each test with its resources and its group; choose among those that ``-m`` leaves; what takes longest starts first."""
    slow: set[str] = set()
    for item in items:
        for resource in sorted(_resources(item)):
            item.add_marker(resource)
        if item.get_closest_marker("xdist_group") is None:
            item.add_marker(pytest.mark.xdist_group(_group(item)))
        if item.get_closest_marker("slow"):
            slow.add(_group_of(item))
        if item.get_closest_marker("full") and item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(1800))
    yield
    choose(config, items, _group_of)
    if "PYTEST_XDIST_WORKER" in os.environ:
        rank = {name: number for number, name in enumerate(TOGETHER)}
        items.sort(key=lambda item: (rank.get(_group_of(item), len(rank)), _group_of(item) not in slow))


def pytest_make_parametrize_id(val: object) -> str | None:
    """Name long texts by their beginning and a digest: names cross to every worker, and one had nineteen megabytes."""
    if not isinstance(val, str | bytes) or len(val) <= 200:
        return None
    whole = val.encode("utf-8", "surrogatepass") if isinstance(val, str) else val
    return f"{val[:40]!a}...{hashlib.sha256(whole).hexdigest()[:8]}"


def _resources(item: pytest.Item) -> set[str]:
    names = set(getattr(item, "fixturenames", ()))
    values = item.callspec.params.values() if hasattr(item, "callspec") else ()
    return {
        RESOURCES[name] for name in names | {v for v in values if isinstance(v, str)} if name in RESOURCES
    }


def _group(item: pytest.Item) -> str:
    marks = {mark.name for mark in item.iter_markers()}
    shared = [name for name in TOGETHER if name in marks]
    if shared:
        return shared[0]
    file = item.path.relative_to(item.config.rootpath)
    return str(file if item.path.is_relative_to(FOLDERS) else file.parent)


def _group_of(item: pytest.Item) -> str:
    mark = item.get_closest_marker("xdist_group")
    return str(mark.args[0]) if mark else ""


def pytest_configure(config: pytest.Config) -> None:
    """Workers divide the cores: two of torch's threads in each of two workers are slower than one in each."""
    workers = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "0"))
    if workers:
        os.environ.setdefault("OMP_NUM_THREADS", str(max(1, (os.cpu_count() or 1) // workers)))


def pytest_xdist_auto_num_workers() -> int:
    """Three workers for two cores, since a part of the time is waiting, if there is memory for that many."""
    return max(
        1, min((os.cpu_count() or 1) * 3 // 2, int(psutil.virtual_memory().available / 2**30 / WORKER_GIB))
    )


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> GroupScheduling | None:
    """Groups as with pytest-xdist's own, in a run that survives its workers."""
    return GroupScheduling(config, log) if config.getoption("dist") == "loadgroup" else None


# --- what tests need of the machine ------------------------------------------------------------------


def absent(what: str) -> NoReturn:
    """Skip, or fail where the machine is said to have everything (CI)."""
    if "TURNWISE_REQUIRE_SANDBOXES" in os.environ:
        pytest.fail(what)
    pytest.skip(what)


@pytest.fixture(scope="session")
def browser() -> None:
    """Chromium is here; ``turnwise.tools.browser`` starts it."""
    if find_chromium() is None:
        absent("no Chromium here")


@pytest.fixture(scope="session")
def working() -> Callable[[str], Backend]:
    """``working("docker")``: the sandbox backend of that name, or a skip with the reason."""

    def find(name: str) -> Backend:
        backend = get_backend(name, unsafe=True)
        status = backend.status()
        if not status.ok:
            absent(f"{name}: {status.detail}. {status.remedy}")
        return backend

    return find


@pytest.fixture(scope="session")
def sandboxed() -> None:
    """A sandbox that isolates works here."""
    found = [get_backend(name).status() for name in ("bubblewrap", "docker")]
    if not any(status.ok for status in found):
        absent("; ".join(f"{status.detail} {status.remedy}" for status in found))


@pytest.fixture(scope="session")
def vllm() -> None:
    """vLLM is installed; for tests that start it in a process of their own."""
    pytest.importorskip("vllm", reason="vLLM is not installed")


@pytest.fixture(scope="session")
def ray() -> Any:
    """Ray is installed; for tests that start a cluster of this machine."""
    return pytest.importorskip("ray", reason="Ray is not installed: pip install 'turnwise[scale]'")


@pytest.fixture(params=["few tasks", pytest.param("all tasks", marks=pytest.mark.full)])
def copying(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """How much clause E8 lets an agent copy of each suite: a tenth, and in `make test-full` all."""
    if request.param == "few tasks":
        monkeypatch.setattr(leaks, "TASKS", 12)
        monkeypatch.setattr(leaks, "TRIES", 120)


# --- models and engines --------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def random_model() -> Callable[..., Any]:
    """``random_model(kind="llama", tied=True, seed=0)``: a causal model with 320 tokens, context 256."""

    def build(kind: str = "llama", *, tied: bool = True, seed: int = 0) -> Any:
        import torch
        import transformers

        family = {"llama": "Llama", "qwen2": "Qwen2", "qwen3": "Qwen3"}[kind]
        config = getattr(transformers, f"{family}Config")(
            vocab_size=VOCAB,
            hidden_size=64,
            intermediate_size=96,
            num_hidden_layers=2,
            num_attention_heads=2,
            num_key_value_heads=1,
            head_dim=32,
            max_position_embeddings=CONTEXT,
            initializer_range=0.2,  # far from uniform, so that wrong weights show
            tie_word_embeddings=tied,
        )
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            return getattr(transformers, f"{family}ForCausalLM")(config).eval()

    return build


@pytest.fixture(scope="session")
def tied_checkpoint(random_model: Callable[..., Any], tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tied")
    random_model(tied=True).save_pretrained(folder)
    return folder


@pytest.fixture(scope="session")
def smollm2() -> str:
    """The folder of the pretrained model that a package carries; converted where this machine has not done so yet."""
    from turnwise.agents.models.finding import find_model
    from turnwise.registry import get_component

    if lacking := get_component("model", "smollm2").lacking:
        absent(f"{', '.join(lacking)} is not installed: pip install 'turnwise[smol]'")
    return find_model("smollm2")


@pytest.fixture(scope="session")
def vllm_engine(vllm: None, tied_checkpoint: Path) -> Iterator[VllmEngine]:
    with contextlib.suppress(ImportError):  # an environment that uses numba; vLLM must start beside it
        importlib.import_module("llvmlite.binding")
    from turnwise.agents.engines.vllm import VllmEngine

    engine = VllmEngine(tied_checkpoint, context_length=CONTEXT, kv_cache_gib=0.25)
    yield engine
    engine.close()


@pytest.fixture
def kills(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The module of benchmarks/engine_kills.py, whose servers are processes of their own."""
    monkeypatch.syspath_prepend(str(FOLDERS.parent / "benchmarks"))
    return importlib.import_module("engine_kills")


@pytest.fixture
def started(kills: Any) -> Iterator[Callable[..., list[Any]]]:
    """``started(2, model, "torch", …)``: servers that answer."""
    servers: list[Any] = []

    def start(count: int, *given: Any, **options: Any) -> list[Any]:
        servers.extend(kills.Server(*given, **options) for _ in range(count))
        kills.wait_for(lambda: all(server.answers for server in servers))
        return servers

    yield start
    for server in servers:
        if server.running:
            server.end()
