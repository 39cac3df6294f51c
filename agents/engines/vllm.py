"""vLLM in the trainer's own process: exact tokens in and out, many requests in flight.

Weights are handed over in place, without a file or a second process. Two settings must be made where
the process starts, before torch is loaded, and ``turnwise.cli`` makes them: ``OMP_WAIT_POLICY=passive``,
because OpenMP threads that spin while they wait ruin an engine that shares its cores with a trainer, and
``TORCH_CPP_LOG_LEVEL=ERROR``. The number of threads is torch's (``OMP_NUM_THREADS``).
"""

from __future__ import annotations

import gc
import os
import socket
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from turnwise.agents.core import Completion, Kv, Sampling
from turnwise.agents.engines.loop import EngineLoop
from turnwise.agents.engines.vllm_adapters import AddedAdapters, check_rank, rank_options
from turnwise.agents.engines.vllm_bytes import vllm_bytes
from turnwise.agents.engines.vllm_sleep import Sleep, Sleeper, check_sleep
from turnwise.agents.engines.vllm_start import check_context, start, use_cuda
from turnwise.agents.engines.vllm_steps import VllmRequest, VllmSteps, completion_of
from turnwise.agents.models.loading import stored_names
from turnwise.agents.remote.adapters import merged
from turnwise.agents.remote.transfer import PREFIX, save_in_memory, shared_memory
from turnwise.agents.remote.vllm_memory import memory_options
from turnwise.errors import EngineError
from turnwise.registry import component
from turnwise.tools.owner import name_of

if TYPE_CHECKING:
    from torch import Tensor

    from turnwise.agents.remote.adapters import AdaptedWeights

CPU_BLOCK = 32
"""Tokens per KV block on the CPU: vLLM's kernel wants multiples of 32, and its default of 128 computes up
to 127 tokens of a known prefix again in every turn (16 % of the shop's rollout speed)."""

_EXPERTS = ("num_experts", "num_local_experts", "n_routed_experts", "moe_num_experts")
"""Under which names configs say how many experts a layer has."""


@component("engine", "vllm", about="vLLM in this process: the fast one.", requires=("vllm",))
class VllmEngine:
    """Samples with vLLM (an :class:`~turnwise.agents.core.Engine`). One at a time can be open in a process.

    ``logprobs`` are of the distribution that was sampled from (``logprobs_mode=processed_logprobs``:
    after temperature and top-p); for greedy requests they are those at temperature 1. Each request has
    its own random stream, seeded by ``seed``; what a kernel rounds may still depend on what else is in
    the batch, so equal seeds give equal tokens up to ties at rounding.

    Args:
        model: a Hugging Face id or a local checkpoint folder.
        device: ``cuda``, ``cpu``, or ``auto`` for a GPU where there is one.
        dtype: ``auto`` is bfloat16 on CUDA and float32 on the CPU.
        context_length: longest prompt plus answer, in tokens.
        max_sequences: how many requests are decoded at a time; the others wait.
        block_size: tokens per block of the KV cache; prefixes are shared in whole blocks. 0: 32 on the
            CPU, vLLM's choice on CUDA.
        kv_cache_gib: KV cache in GiB. 0: 1 on the CPU, what ``gpu_memory_utilization`` leaves on CUDA, where vLLM then
            refuses to start while others free memory of the card.
        sleep: memory that is the learner's while it works, on a GPU: ``kv`` is the KV cache, ``weights`` the engine's weights
            too, which then come anew with each update.
        adapter_rank: adapters of at most this rank (``model.lora.rank``) are added up as the model computes, and only they are
            handed over with an update. 0: they are merged into its weights, which samples faster.
        compile: let torch.compile fuse the model: starts slower, and on the CPU needs a C++ compiler.
    """

    memory = staticmethod(vllm_bytes)

    @staticmethod
    def check_model(config: Any, device: str) -> None:
        """Refuse mixtures of experts on a CPU: vLLM packs their weights there when it loads them, and not when they are replaced.

        Raises:
            EngineError: the model is one.
        """
        text = config.get_text_config()
        if device == "cpu" and any((getattr(text, name, None) or 0) > 1 for name in _EXPERTS):
            raise EngineError(
                f"vLLM on a CPU cannot be given new weights of a mixture of experts ({config.model_type}): it goes on with the old.",
                "Sample with torch (--set engine.kind=torch), or train on a GPU.",
            )

    @staticmethod
    def check_use(
        options: Mapping[str, Any], *, device: str, in_flight: bool, elsewhere: bool, rank: int
    ) -> None:
        """Refuse ``sleep`` and ``adapter_rank`` where they cannot be had.

        Raises:
            EngineError: with the reason.
        """
        check_sleep(options.get("sleep", "no"), device, in_flight=in_flight, elsewhere=elsewhere)
        check_rank(options.get("adapter_rank", 0), rank, elsewhere=elsewhere)

    @staticmethod
    def check_names(published: frozenset[str], model: str) -> None:
        """Refuse weights that the model's files name otherwise: vLLM's loaders of each architecture know the names of the files alone.

        Raises:
            EngineError: there are some.
        """
        stored = stored_names(model)
        strange = sorted(published - stored)
        if stored and strange:
            raise EngineError(
                f"The weights of {model} have other names in training than in its files: {strange[0]}, of {len(strange)}. "
                "vLLM takes new weights by the names of the files.",
                "Save the model anew (AutoModelForCausalLM.from_pretrained and save_pretrained), or sample with torch "
                "(--set engine.kind=torch).",
            )

    @staticmethod
    def serve(
        model: str,
        door: socket.socket,
        token_file: str,
        ready: Callable[[str], None],
        *,
        device: str,
        dtype: str,
        **options: Any,
    ) -> int:
        """Run vLLM's own server at ``door``, in place of ours in front of this engine; returns its exit status."""
        from turnwise.agents.remote.serve import url_of
        from turnwise.agents.remote.vllm_server import start as start_server

        cuda = use_cuda(device)
        dtype = dtype if dtype != "auto" else "bfloat16" if cuda else "float32"
        check_context(model, options["context_length"])
        url = url_of(door)
        door.close()  # vLLM listens itself
        return start_server(model, url, token_file, ready, cuda=cuda, dtype=dtype, **options)

    _open: ClassVar[bool] = False  # vLLM's process groups are global: closing one engine ends another's

    def __init__(
        self,
        model: str | os.PathLike[str],
        *,
        device: str = "auto",
        dtype: str = "auto",
        context_length: int = 2048,
        max_sequences: int = 64,
        block_size: int = 0,
        kv_cache_gib: float = 0.0,
        gpu_memory_utilization: float = 0.6,
        tensor_parallel_size: int = 1,
        seed: int = 0,
        sleep: Sleep = "no",
        adapter_rank: int = 0,
        compile: bool = False,
        quiet: bool = True,
    ) -> None:
        self.version = 0
        self.context_length = context_length
        self.cuda = use_cuda(device)
        check_sleep(sleep, device)
        self.dtype = dtype if dtype != "auto" else "bfloat16" if self.cuda else "float32"
        options: dict[str, Any] = {
            "model": str(model),
            "dtype": self.dtype,
            "max_model_len": context_length,
            "max_num_seqs": max_sequences,
            "seed": seed,
            "enforce_eager": not compile,
            "tensor_parallel_size": tensor_parallel_size,
            **memory_options(
                cuda=self.cuda, kv_cache_gib=kv_cache_gib, gpu_memory_utilization=gpu_memory_utilization
            ),
            "enable_prefix_caching": True,
            "logprobs_mode": "processed_logprobs",
            "skip_tokenizer_init": True,  # tokens in, tokens out: text is the renderer's business
            "generation_config": "vllm",  # no sampling defaults from the checkpoint
            "disable_log_stats": True,
            "use_tqdm_on_load": not quiet,
            "enable_sleep_mode": sleep != "no",
            **rank_options(adapter_rank, model),
        }
        if not self.cuda:
            # A prompt in two pieces rewinds its generator, which CPU generators refuse (vLLM 0.32).
            options["enable_chunked_prefill"] = False
            options["max_num_batched_tokens"] = max(context_length, 4096)
        if block_size or not self.cuda:
            options["block_size"] = block_size or CPU_BLOCK
        if VllmEngine._open:
            raise EngineError(
                "This process has a vLLM engine already, and two would break each other.",
                "close() the first, or share it.",
            )
        self._engine: Any = start(options, quiet=quiet)
        VllmEngine._open = True
        self.vocabulary = int(self._engine.model_config.get_vocab_size())
        self._in_process = tensor_parallel_size == 1
        self._steps = VllmSteps(self._engine)
        self._loop = EngineLoop(self._steps, threaded=self.cuda)
        self._sleeper = Sleeper(self._engine, sleep)
        self._added = AddedAdapters(self._engine, adapter_rank) if adapter_rank else None
        self._name_weights(0)

    async def generate(
        self, prompt_ids: Sequence[int], sampling: Sampling, *, stop_ids: Sequence[int], seed: int
    ) -> Completion:
        """Sample one answer; a stop id that ends it is its last token.

        Raises:
            EngineError: the prompt leaves no room in the context, or the engine failed.
        """
        self._sleeper.check()
        return completion_of(await self._loop.submit(self._request(prompt_ids, sampling, stop_ids, seed)))

    def generate_all(self, requests: Sequence[VllmJob]) -> list[Completion]:
        """All answers, in order. Blocks: it is vLLM's ``LLM.generate``, which benchmarks compare with."""
        with self._loop.alone():
            for key, (prompt_ids, sampling, seed) in enumerate(requests):
                self._steps.add(key, self._request(prompt_ids, sampling, (), seed))
            answers: dict[int, Any] = {}
            while len(answers) < len(requests):
                answers |= self._steps.step()
        return [completion_of(answers[key]) for key in range(len(requests))]

    def reset_prefix_cache(self) -> None:
        """Drop all cached prefixes.

        Raises:
            EngineError: requests are in flight.
        """
        with self._loop.alone():
            self._forget_prefixes()

    def score(self, sequences: Sequence[Sequence[int]]) -> list[tuple[float, ...]]:
        """log p(token | all before it) at temperature 1, for every token but the first of each sequence.

        Blocks; from any thread. Requests in flight go on meanwhile, and get their answers at the next step.
        """
        from vllm import SamplingParams

        self._sleeper.check()
        params = SamplingParams(temperature=0.0, max_tokens=1, prompt_logprobs=0, detokenize=False)
        prompts = {f"score-{index}": ids for index, ids in enumerate(sequences)}
        with self._loop.between_steps():
            outputs = self._steps.run_beside(prompts, params)
        scores: list[tuple[float, ...]] = []
        for index, ids in enumerate(sequences):
            entries = outputs[f"score-{index}"].prompt_logprobs[1:]
            scores.append(tuple(e[token].logprob for e, token in zip(entries, ids[1:], strict=True)))
        return scores

    def load_weights(
        self, weights: Iterable[tuple[str, Tensor]], version: int, *, kv: Kv | None = None
    ) -> None:
        """Replace the weights in place, by checkpoint names, and forget all cached prefixes.

        Blocks; with ``kv`` from any thread. Requests in flight then wait between two tokens and go on with the new weights.

        Tied embeddings: hand over ``lm_head.weight`` too. On the CPU vLLM keeps the output head as a
        packed copy of its own, and a head that is not handed over silently keeps its old weights.

        Raises:
            EngineError: requests are in flight and ``kv`` does not say what becomes of them.
        """
        with self._changing(version, kv):
            self._reload(weights)
            if self._added is not None:
                self._added.drop()

    def load_adapters(self, weights: AdaptedWeights, version: int, *, kv: Kv | None = None) -> None:
        """As :meth:`load_weights`, of a base and what is added to it: merged one weight after the other, or with ``adapter_rank``
        the adapters alone, on the base that the engine has.

        Raises:
            EngineError: as there, or vLLM does not take such adapters.
        """
        if self._added is None:
            self.load_weights(merged(weights.base, weights.adapters), version, kv=kv)
            return
        with self._changing(version, kv):
            if self._sleeper.lost:
                self._added.drop()
            self._added.load(weights, lambda base: self._reload(base.items()))

    def sleep(self) -> None:
        """Leave memory to whoever works on the card until there are new weights, as the option ``sleep`` says; "no" leaves none.

        Raises:
            EngineError: requests are in flight.
        """
        with self._loop.alone():
            self._sleeper.sleep()

    @contextmanager
    def _changing(self, version: int, kv: Kv | None) -> Iterator[None]:
        """Hold the engine, awake, while its weights become those of ``version``."""
        with self._loop.alone() if kv is None else self._loop.between_steps():
            self._sleeper.wake_weights()
            yield
            self._sleeper.wake()
            self._steps.adapters = self._added and self._added.request
            if kv == "keep":  # what others hold cannot be emptied, so later prompts are kept apart from it
                self._steps.keep_apart(f"weights {version}")
            else:
                self._forget_prefixes(in_flight=kv == "recompute")
            self._name_weights(version)

    def _reload(self, weights: Iterable[tuple[str, Tensor]]) -> None:
        if self._in_process:
            self._engine.collective_rpc("reload_weights", kwargs={"weights_iterator": iter(weights)})
        else:
            self._reload_from_folder(weights)

    def _forget_prefixes(self, *, in_flight: bool = False) -> None:
        if not self._engine.reset_prefix_cache(reset_running_requests=in_flight):
            raise EngineError("vLLM keeps its prefix cache.", "Restart the engine.")

    def _name_weights(self, version: int) -> None:
        self._engine.set_weight_version(str(version))
        self.version = version

    @property
    def cache_use(self) -> float:
        """Share of the KV cache that requests in flight hold; 0 where the engine core is another process."""
        core = getattr(self._engine.engine_core, "engine_core", None)
        return float(core.scheduler.kv_cache_manager.usage) if core is not None else 0.0

    def close(self) -> None:
        """Free the engine's memory."""
        self._loop.close()
        if self._added is not None:
            self._added.close()
        engine, self._engine = self._engine, None
        if engine is not None:
            engine.engine_core.shutdown()
            VllmEngine._open = False
            gc.collect()

    def _reload_from_folder(self, weights: Iterable[tuple[str, Tensor]]) -> None:
        """Workers are other processes: they read the weights from memory-backed files."""
        whole = {name: tensor.detach().cpu().contiguous().clone() for name, tensor in weights}
        prefix = f"{PREFIX}{name_of(os.getpid())}-"
        with tempfile.TemporaryDirectory(prefix=prefix, dir=shared_memory()) as folder:
            save_in_memory(whole, Path(folder, "model.safetensors"))
            self._engine.collective_rpc("reload_weights", kwargs={"weights_path": folder})

    def _request(
        self, prompt_ids: Sequence[int], sampling: Sampling, stop_ids: Sequence[int], seed: int | None
    ) -> VllmRequest:
        room = self.context_length - len(prompt_ids)
        if room < 1 or not prompt_ids:
            raise EngineError(
                f"A prompt of {len(prompt_ids)} tokens does not fit a context of {self.context_length}.",
                "Raise context_length, or keep less history.",
            )
        from vllm import SamplingParams
        from vllm.sampling_params import RequestOutputKind

        params = SamplingParams(
            temperature=sampling.temperature,
            top_p=sampling.top_p,
            max_tokens=min(sampling.max_tokens, room),
            seed=None if seed is None else seed % 2**63,
            stop_token_ids=list(stop_ids),
            ignore_eos=True,  # only the caller's stop ids stop
            logprobs=0,
            flat_logprobs=True,  # no object for each token
            skip_clone=True,  # nobody else has these
            detokenize=False,
            output_kind=RequestOutputKind.FINAL_ONLY,
        )
        return VllmRequest(prompt_ids, params)


class VllmJob(NamedTuple):
    """A request for :meth:`VllmEngine.generate_all`."""

    prompt_ids: Sequence[int]
    sampling: Sampling
    seed: int | None  # None: the engine draws, without a generator of its own for this request
