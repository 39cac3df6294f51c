"""The benchmark of whole updates: both sides do the same, and it refuses to compare them where they do not."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Self

import pytest

torch = pytest.importorskip("torch")

from turnwise.agents.core import Completion, Sampling
from turnwise.agents.engines.torch import TorchEngine
from turnwise.agents.models.loading import load_causal, load_tokenizer
from turnwise.cli.machine import bench
from turnwise.errors import MissingDependencyError, RunError, TurnwiseError
from turnwise.trainers.bench import update
from turnwise.trainers.bench.laps import Played, UpdateLap, UpdateWorkload, check_alike, multiply_adds
from turnwise.trainers.bench.update import bench_update, make_models, never_ends

LAP = UpdateLap(2.0, 1.0, 0.5, 0.1, episodes=4, turns=12, sampled=192, read=800, steps=2)
TRL = pytest.mark.skipif(find_spec("trl") is None, reason="TRL is not installed")


class Here:
    """In place of a process of its own."""

    def __enter__(self) -> Self:
        return self

    def call(self, work: Callable[..., Any], *arguments: Any) -> Any:
        return work(*arguments)

    def __exit__(self, *error: object) -> None:
        pass


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"episodes": 3}, "4 episodes, one of b 3"),
        ({"turns": 11}, "12 turns, one of b 11"),
        ({"sampled": 191}, "192 sampled, one of b 191"),
        ({"steps": 1}, "2 steps, one of b 1"),
        ({"read": 820}, "800 read, one of b 820"),
    ],
)
def test_sides_that_did_not_do_the_same_are_not_compared(change: dict[str, Any], said: str):
    check_alike({"a": Played([LAP], [], 2), "b": Played([LAP._replace(read=804, seconds=9.0)], [], 2)})
    with pytest.raises(RunError, match=said):
        check_alike({"a": Played([LAP], [], 2), "b": Played([LAP._replace(**change)], [], 2)})


def test_sides_with_other_threads_are_not_compared():
    with pytest.raises(RunError, match="a had 2 threads and b 1"):
        check_alike({"a": Played([LAP], [], 2), "b": Played([LAP], [], 1)})


def test_arithmetic_is_linear_in_tokens_and_square_in_length():
    sizes = {"layers": 3, "width": 128, "vocab_size": 512}
    one = multiply_adds(LAP, sizes)
    assert one == 800 * (3 * 12 * 128**2 + 3 * 128 * 200) + 192 * 128 * 512
    more = multiply_adds(LAP._replace(episodes=8, sampled=384, read=1600), sizes)
    assert more == 2 * one, "twice the episodes"
    longer = multiply_adds(LAP._replace(sampled=384, read=1600), sizes)
    assert longer - more == 1600 * 3 * 128 * 200, "twice the turns: attention alone costs more"


@pytest.mark.slow
def test_the_model_never_ends_a_message_and_its_other_tokens_are_by_chance(tmp_path: Path):
    make_models(tmp_path / "short", tmp_path / "long", UpdateWorkload(turns=4, times=(2,)))
    end = load_tokenizer(tmp_path / "short").eos_token_id
    engine = TorchEngine(str(tmp_path / "short"), context_length=512)

    async def four() -> list[Completion]:
        drawn = Sampling(max_tokens=200)
        said = (engine.generate([5, 6, 7], drawn, stop_ids=(end,), seed=seed) for seed in range(4))
        return list(await asyncio.gather(*said))

    answers = asyncio.run(four())
    engine.close()
    assert all(len(one.token_ids) == 200 and end not in one.token_ids for one in answers)
    assert len({token for one in answers for token in one.token_ids}) > 300


@TRL
@pytest.mark.full  # five runs
@pytest.mark.slow
def test_turnwise_and_trl_do_the_same(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]):
    monkeypatch.setattr(update, "Apart", Here)
    monkeypatch.setenv("TRL_EXPERIMENTAL_SILENCE", "1")
    load = UpdateWorkload(
        groups=2, group_size=2, updates=1, engines=("torch",), trl=True, turns=3, times=(2,), grown_groups=2
    )
    figures = bench_update(repeats=1, workload=load)  # refuses where they differ
    assert figures["sampled"].value == 4 * 8 * 16
    assert figures["times_trl_torch"].value == pytest.approx(
        figures["trl_transformers"].value / figures["torch"].value
    )
    assert figures["trl_transformers_play"].value + figures["trl_transformers_learn"].value == pytest.approx(
        figures["trl_transformers"].value
    )
    assert figures["turns_2_times_s"].value > 0
    assert not capfd.readouterr().out, "TRL's last line is no part of --json"


@TRL
@pytest.mark.full  # eight runs of loops, and TRL's imports
@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_published_model_is_learned_and_updated_beside_trl_by_the_command_to_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(update, "Apart", Here)
    monkeypatch.setenv("TRL_EXPERIMENTAL_SILENCE", "1")
    published = tmp_path / "published"
    make_models(published, tmp_path / "long", UpdateWorkload(times=()))
    before = {file.name: file.read_bytes() for file in published.iterdir()}
    found: Any = bench("train", model=str(published)).value
    assert set(found["figures"]) == {
        "learner", "lean", "trl", "share_of_lean", "share_of_lean_cpu", "times_trl", "times_trl_cpu"
    }  # fmt: skip
    found = bench("update", model=str(published)).value
    figures = {name: row["value"] for name, row in found["figures"].items()}
    assert figures["sampled"] == 4 * 8 * 16, "no message ended before its limit"
    ratio = figures["trl_transformers"] / figures["torch"]  # of medians, and that is the median of ratios
    assert figures["times_trl_torch"] == pytest.approx(ratio, rel=0.5)
    assert not any(name.startswith("turns") for name in figures)
    assert {file.name: file.read_bytes() for file in published.iterdir()} == before, "a copy was changed"


def test_a_model_whose_head_is_its_embedding_never_ends_a_message_either(
    tmp_path: Path, random_model: Callable[..., Any], small_model: Path
):
    model = random_model(tied=True)
    model.save_pretrained(tmp_path / "tied")
    tokenizer = load_tokenizer(small_model)
    tokenizer.save_pretrained(tmp_path / "tied")
    never_ends(tmp_path / "tied", tmp_path / "copy")
    changed: Any = load_causal(tmp_path / "copy", torch.float32)
    with torch.no_grad():
        logits_RTV = changed(torch.arange(200)[None]).logits
    assert float(logits_RTV[..., tokenizer.eos_token_id].max()) < float(logits_RTV.mean(-1).min()) - 50
    assert not torch.equal(changed.lm_head.weight, changed.get_input_embeddings().weight)


def test_a_model_of_another_kind_is_refused(tmp_path: Path, small_model: Path):
    from transformers import GPT2Config, GPT2LMHeadModel

    GPT2LMHeadModel(GPT2Config(n_embd=32, n_layer=1, n_head=1, vocab_size=400)).save_pretrained(tmp_path)
    load_tokenizer(small_model).save_pretrained(tmp_path)
    with pytest.raises(TurnwiseError, match="GPT2LMHeadModel has no layers of the Llama kind"):
        never_ends(tmp_path, tmp_path / "copy")


def test_a_model_is_refused_where_trl_is_missing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setattr(update, "find_spec", lambda name: None)
    with pytest.raises(MissingDependencyError, match="TRL is not installed") as refused:
        bench_update(workload=UpdateWorkload(model=str(tmp_path)))
    assert "pip install trl" in str(refused.value)


def test_a_missing_trl_is_said(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(update, "find_spec", lambda name: None)
    with pytest.warns(UserWarning, match="pip install trl"):
        assert not update._with_trl()
