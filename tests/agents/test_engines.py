"""Both engines against plain transformers: tokens, log-probabilities, seeds, limits, concurrency."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from random import Random
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from turnwise.agents.core import Completion, Sampling
from turnwise.agents.engines.decoding.draw import draw
from turnwise.agents.engines.loop import COMES_THROUGH_A_SOCKET, YIELDS, EngineLoop
from turnwise.agents.engines.torch import TorchEngine
from turnwise.errors import EngineError, MissingDependencyError

VOCAB, CONTEXT = 320, 256
GREEDY = Sampling(temperature=0.0, max_tokens=12)


def prompts(count: int, *, shortest: int = 3, longest: int = 40, seed: int = 0) -> list[list[int]]:
    rng = Random(seed)
    return [[rng.randrange(VOCAB) for _ in range(rng.randint(shortest, longest))] for _ in range(count)]


def sample(
    engine: Any,
    given: Sequence[Sequence[int]],
    sampling: Sampling,
    stop_ids: Sequence[int] = (),
    seed: int = 0,
) -> list[Completion]:
    """All at once."""

    async def together() -> list[Completion]:
        jobs = (engine.generate(p, sampling, stop_ids=stop_ids, seed=seed + i) for i, p in enumerate(given))
        return await asyncio.gather(*jobs)

    return asyncio.run(together())


def logprobs(
    model: Any, prompt: Sequence[int], answer: Sequence[int], temperature: float = 1.0
) -> list[float]:
    """By one full forward pass, without a cache."""
    ids = torch.tensor([[*prompt, *answer]])
    with torch.no_grad():
        logp = (model(ids).logits[0].float() / temperature).log_softmax(-1)
    return [logp[len(prompt) + i - 1, token].item() for i, token in enumerate(answer)]


def largest_gap(model: Any, given: Sequence[Sequence[int]], answers: Sequence[Completion]) -> float:
    return max(
        abs(ours - theirs)
        for prompt, answer in zip(given, answers, strict=True)
        for ours, theirs in zip(logprobs(model, prompt, answer.token_ids), answer.logprobs, strict=True)
    )


@pytest.fixture(scope="module")
def model(random_model: Callable[..., Any]) -> Any:
    return random_model()


@pytest.fixture(params=["torch", pytest.param("vllm", marks=pytest.mark.slow)])
def engine(request: pytest.FixtureRequest, model: Any) -> Iterator[Any]:
    if request.param == "vllm":
        yield request.getfixturevalue("vllm_engine")
        return
    engine = TorchEngine(model, context_length=CONTEXT, max_sequences=16)
    yield engine
    engine.close()


def test_greedy_equals_transformers(engine: Any, model: Any) -> None:
    given = prompts(6)
    for prompt, answer in zip(given, sample(engine, given, GREEDY), strict=True):
        ids = torch.tensor([prompt])
        expected = model.generate(
            ids, attention_mask=ids * 0 + 1, do_sample=False, max_new_tokens=12, eos_token_id=None
        )
        assert list(answer.token_ids) == expected[0, len(prompt) :].tolist()
        assert not answer.stopped


def test_logprobs_are_those_of_a_full_forward(engine: Any, model: Any) -> None:
    given = prompts(32)
    assert largest_gap(model, given, sample(engine, given, Sampling(max_tokens=20))) < 1e-3


def test_logprobs_are_of_the_distribution_that_was_sampled(engine: Any, model: Any) -> None:
    given = prompts(4)
    for prompt, answer in zip(given, sample(engine, given, Sampling(0.5, 1.0, 10)), strict=True):
        assert answer.logprobs == pytest.approx(logprobs(model, prompt, answer.token_ids, 0.5), abs=1e-3)


def test_top_p_keeps_the_nucleus_and_renormalises(engine: Any, model: Any) -> None:
    given = prompts(4)
    for prompt, answer in zip(given, sample(engine, given, Sampling(1.0, 0.5, 10)), strict=True):
        ids = torch.tensor([[*prompt, *answer.token_ids]])
        with torch.no_grad():
            p_TV = model(ids).logits[0, len(prompt) - 1 : -1].softmax(-1)
        for p_V, token, logp in zip(p_TV, answer.token_ids, answer.logprobs, strict=True):
            order = p_V.argsort(descending=True)
            size = int((p_V[order].cumsum(-1) < 0.5).sum()) + 1
            assert token in order[:size]
            assert logp == pytest.approx((p_V[token] / p_V[order[:size]].sum()).log().item(), abs=1e-3)


def test_seeds_reproduce_whatever_else_is_in_the_batch(engine: Any) -> None:
    given, sampling = prompts(24), Sampling(max_tokens=16)
    together = sample(engine, given, sampling, seed=100)
    assert [answer.token_ids for answer in sample(engine, given, sampling, seed=100)] == [
        answer.token_ids for answer in together
    ]
    alone = sample(engine, given[5:6], sampling, seed=105)[0]
    assert alone.token_ids == together[5].token_ids
    assert sample(engine, given[5:6], sampling, seed=106)[0].token_ids != alone.token_ids


def test_a_stop_id_ends_the_answer_and_is_its_last_token(engine: Any) -> None:
    prompt = prompts(1)[0]
    whole = sample(engine, [prompt], GREEDY)[0].token_ids
    stop = whole[4]
    answer = sample(engine, [prompt], GREEDY, stop_ids=[stop])[0]
    assert answer.token_ids == whole[: whole.index(stop) + 1]
    assert answer.stopped


def test_the_context_bounds_the_answer(engine: Any) -> None:
    prompt = prompts(1, shortest=CONTEXT - 5, longest=CONTEXT - 5)[0]
    answer = sample(engine, [prompt], Sampling(max_tokens=50))[0]
    assert len(answer.token_ids) == 5
    assert not answer.stopped
    with pytest.raises(EngineError, match="does not fit a context"):
        sample(engine, [prompts(1, shortest=CONTEXT, longest=CONTEXT)[0]], GREEDY)


@pytest.mark.slow
def test_turns_extend_the_prefix(engine: Any, model: Any) -> None:
    """Episodes of four turns, of different lengths, side by side: what is cached changes nothing."""

    async def episode(index: int) -> tuple[list[list[int]], list[Completion]]:
        rng = Random(index)
        history = prompts(1, shortest=20, longest=60, seed=index // 4)[0]  # groups share their prompt
        given: list[list[int]] = []
        answers: list[Completion] = []
        for turn in range(4):
            given.append(list(history))
            sampling = Sampling(max_tokens=rng.randint(3, 12))
            answers.append(await engine.generate(history, sampling, stop_ids=(), seed=index * 10 + turn))
            history = [
                *history,
                *answers[-1].token_ids,
                *(rng.randrange(VOCAB) for _ in range(rng.randint(2, 15))),
            ]
        return given, answers

    async def together() -> list[tuple[list[list[int]], list[Completion]]]:
        return await asyncio.gather(*map(episode, range(32)))

    for given, answers in asyncio.run(together()):
        assert largest_gap(model, given, answers) < 1e-3


def test_the_short_ones_finish_first(engine: Any) -> None:
    finished: list[int] = []

    async def one(length: int, prompt: Sequence[int]) -> None:
        await engine.generate(prompt, Sampling(max_tokens=length), stop_ids=(), seed=length)
        finished.append(length)

    async def together() -> None:
        await asyncio.gather(*map(one, (60, 5, 30), prompts(3)))

    asyncio.run(together())
    assert finished == [5, 30, 60]


def test_a_cancelled_request_leaves_the_batch(engine: Any) -> None:
    async def interrupted() -> Completion:
        long = asyncio.create_task(
            engine.generate(prompts(1)[0], Sampling(max_tokens=200), stop_ids=(), seed=0)
        )
        await asyncio.sleep(0.01)
        long.cancel()
        with pytest.raises(asyncio.CancelledError):
            await long
        return await engine.generate(prompts(2)[1], GREEDY, stop_ids=(), seed=0)

    assert asyncio.run(interrupted()).token_ids == sample(engine, [prompts(2)[1]], GREEDY)[0].token_ids


def test_weights_are_not_touched_under_way(engine: Any) -> None:
    async def meddle() -> None:
        request = asyncio.create_task(engine.generate(prompts(1)[0], GREEDY, stop_ids=(), seed=0))
        await asyncio.sleep(0)
        with pytest.raises(EngineError, match="in flight"):
            engine.load_weights([], 1)
        await request

    asyncio.run(meddle())


def test_scores_are_logprobs_of_the_prompt(engine: Any, model: Any) -> None:
    given = prompts(3, shortest=8)
    for ids, scores in zip(given, engine.score(given), strict=True):
        assert list(scores) == pytest.approx(logprobs(model, ids[:1], ids[1:]), abs=1e-3)


@pytest.mark.parametrize("kind", ["qwen2", "qwen3"])
def test_torch_engine_runs_other_families(random_model: Callable[..., Any], kind: str) -> None:
    model = random_model(kind, tied=False)
    engine = TorchEngine(model, context_length=CONTEXT, max_sequences=4)
    given = prompts(9)
    assert largest_gap(model, given, sample(engine, given, Sampling(max_tokens=20))) < 1e-3


def test_torch_engine_refuses_what_it_would_get_wrong(random_model: Callable[..., Any]) -> None:
    model = random_model()
    with pytest.raises(EngineError, match="max_position_embeddings"):
        TorchEngine(model, context_length=CONTEXT + 1)
    model.config.layer_types = ["full_attention", "sliding_attention"]
    model.config.sliding_window = 16
    with pytest.raises(EngineError, match="sliding_window"):
        TorchEngine(model, context_length=CONTEXT)
    model.config.layer_types = ["full_attention", "linear_attention"]
    with pytest.raises(EngineError, match="linear_attention"):
        TorchEngine(model, context_length=CONTEXT)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
@pytest.mark.parametrize("kind", ["torch", "vllm"])
def test_a_gpu_that_is_not_there_is_named(kind: str) -> None:
    from turnwise.agents.engines.vllm import VllmEngine

    start = {"torch": TorchEngine, "vllm": VllmEngine}[kind]
    with pytest.raises(MissingDependencyError, match="torch sees none"):
        start("somewhere", device="cuda")


@pytest.mark.slow
def test_a_second_vllm_engine_is_refused(vllm_engine: Any, tied_checkpoint: Path) -> None:
    from turnwise.agents.engines.vllm import VllmEngine

    with pytest.raises(EngineError, match="has a vLLM engine already"):
        VllmEngine(tied_checkpoint, context_length=CONTEXT)
    assert len(sample(vllm_engine, prompts(1), GREEDY)[0].token_ids) == 12


@pytest.mark.slow
@pytest.mark.usefixtures("vllm")
def test_what_vllm_refuses_is_said_in_a_sentence(tmp_path: Path) -> None:
    """In a process of its own, with a model that is not there."""
    code = f"from turnwise.agents.engines.vllm import VllmEngine; VllmEngine({str(tmp_path)!r})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "EngineError: vLLM does not start with" in done.stderr
    assert "→ Check the model's path" in done.stderr


def test_draws_follow_the_distribution() -> None:
    p_V = torch.tensor([0.5, 0.0, 0.3, 0.2])
    grid = [(i + 0.5) / 1000 for i in range(1000)]
    tokens, logp = draw(p_V.log().expand(1000, 4), [Sampling()] * 1000, grid)
    assert [tokens.count(token) for token in range(4)] == [500, 0, 300, 200]
    assert logp[0] == pytest.approx(-0.6931472)  # log 0.5


class Counter:
    """A stepper that answers each number with itself, after as many steps, and breaks at 13."""

    def __init__(self) -> None:
        self.left: dict[int, list[int]] = {}
        self.steps = 0

    def add(self, key: int, request: int) -> None:
        if request < 0:
            raise ValueError("negative")
        self.left[key] = [request, request]

    def abort(self, keys: Sequence[int]) -> None:
        for key in keys:
            self.left.pop(key, None)

    def step(self) -> list[tuple[int, int]]:
        self.steps += 1
        if any(request == 13 for request, _ in self.left.values()):
            raise RuntimeError("broken")
        for entry in self.left.values():
            entry[1] -= 1
        done = [(key, request) for key, (request, left) in self.left.items() if left <= 0]
        for key, _ in done:
            del self.left[key]
        return done


@pytest.mark.parametrize("threaded", [False, True])
class TestPump:
    def test_the_next_request_joins_the_next_step(self, threaded: bool) -> None:
        """Ten episodes of five one-step turns, each right after the other, take five steps."""
        counter = Counter()
        loop = EngineLoop(counter, threaded=threaded)

        async def episode() -> None:
            for _ in range(5):
                assert await loop.submit(1) == 1

        async def together() -> None:
            await asyncio.gather(*(episode() for _ in range(10)))

        asyncio.run(together())
        assert counter.steps == 5
        loop.close()

    @pytest.mark.slow
    @pytest.mark.parametrize("afar", [False, True])
    def test_callers_through_a_socket_are_given_time_to_join_the_next_step(
        self, threaded: bool, afar: bool
    ) -> None:
        """Who needs more turns of the event loop than an episode does misses steps, unless it is waited for."""
        counter = Counter()
        step = counter.step
        counter.step = lambda: [time.sleep(0.2), *step()][1:]  # type: ignore[method-assign]
        loop = EngineLoop(counter, threaded=threaded)

        async def program() -> int:
            COMES_THROUGH_A_SOCKET.set(afar)
            before = counter.steps
            for _ in range(4):
                assert await loop.submit(1) == 1
                for _ in range(2 * YIELDS):
                    await asyncio.sleep(0)
            return counter.steps - before

        async def beside_a_long_one() -> int:
            long = asyncio.create_task(loop.submit(20))
            await asyncio.sleep(0)
            took = await asyncio.create_task(program())
            long.cancel()
            return took

        steps = asyncio.run(beside_a_long_one())
        assert steps <= 5 if afar else steps >= 7  # 5: a thread may have begun a step before the program asks
        loop.close()

    @pytest.mark.slow
    def test_callers_through_a_socket_who_were_all_away_share_the_next_step(self, threaded: bool) -> None:
        """In each loop that an engine is used from: the first of them to come again is not stepped alone."""
        counter = Counter()
        step = counter.step
        counter.step = lambda: [time.sleep(0.3), *step()][1:]  # type: ignore[method-assign]
        loop = EngineLoop(counter, threaded=threaded)

        async def program(number: int) -> None:
            COMES_THROUGH_A_SOCKET.set(True)
            for _ in range(3):
                assert await loop.submit(1) == 1
                await asyncio.sleep(0.01 * (number + 1))  # nothing is in flight when the first comes

        async def together() -> int:
            before = counter.steps
            await asyncio.gather(*map(program, range(4)))
            return counter.steps - before

        for _ in range(2):
            assert asyncio.run(together()) == 3
        loop.close()

    def test_a_broken_step_fails_all_and_the_next_ones_work(self, threaded: bool) -> None:
        counter = Counter()
        loop = EngineLoop(counter, threaded=threaded)

        async def together(numbers: Sequence[int]) -> list[Any]:
            return await asyncio.gather(*map(loop.submit, numbers), return_exceptions=True)

        answers = asyncio.run(together([5, 13, 7]))
        assert [type(answer) for answer in answers] == [EngineError] * 3
        assert "broken" in str(answers[0])
        assert not counter.left
        assert asyncio.run(together([5, 7])) == [5, 7]
        loop.close()

    def test_a_bad_request_fails_alone(self, threaded: bool) -> None:
        loop = EngineLoop(Counter(), threaded=threaded)

        async def together() -> list[Any]:
            return await asyncio.gather(*map(loop.submit, [2, -1, 3]), return_exceptions=True)

        two, bad, three = asyncio.run(together())
        assert (two, three) == (2, 3)
        assert isinstance(bad, EngineError)
        loop.close()

    def test_another_thread_comes_between_two_steps(self, threaded: bool) -> None:
        """It is let in at once, and no step is made meanwhile, though a request is in flight all the time."""
        counter = Counter()
        loop = EngineLoop(counter, threaded=threaded)

        def meddle() -> None:
            with loop.between_steps():
                before = counter.steps
                assert loop.in_flight
                while not waiting.wait(
                    0.001
                ):  # the loop's own thread may be held up: it is this one that goes on
                    waiting.set()
                assert counter.steps == before

        waiting = threading.Event()

        async def run() -> None:
            long = asyncio.create_task(loop.submit(10**9))
            await loop.submit(5)
            for _ in range(20):
                await asyncio.to_thread(meddle)
            await loop.submit(1)  # and goes on
            long.cancel()

        asyncio.run(run())
        assert counter.steps > 5
        loop.close()

    def test_an_abandoned_loop_leaves_nothing_behind(self, threaded: bool) -> None:
        counter = Counter()
        loop = EngineLoop(counter, threaded=threaded)

        async def give_up() -> None:
            async with asyncio.timeout(0.05):
                await loop.submit(10**9)

        with pytest.raises(TimeoutError):
            asyncio.run(give_up())
        assert not loop.in_flight
        assert asyncio.run(loop.submit(3)) == 3
        assert not counter.left
        loop.close()
