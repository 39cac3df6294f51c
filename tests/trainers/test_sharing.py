"""What rows have in common is read once, and nothing but rounding tells it from reading every row as a whole."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import CONFIG_MAPPING, AutoModelForCausalLM

from turnwise.trainers.learn.collate import TokenRows, plain_rows
from turnwise.trainers.learn.passes import Reader
from turnwise.trainers.learn.sharing import can_go_on, read_sharing, trunks_of

VOCABULARY = 40
SMALL = {
    "vocab_size": VOCABULARY,
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 48,
}
KINDS = {
    "llama": {**SMALL, "num_key_value_heads": 4},
    "qwen2": {**SMALL, "num_key_value_heads": 2},
    "qwen3": {**SMALL, "num_key_value_heads": 2, "head_dim": 8},
    "gpt2": {"vocab_size": VOCABULARY, "n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 128},
    "gpt_neox": SMALL,
}  # fmt: skip
OTHERS = {
    "mistral": {**SMALL, "num_key_value_heads": 2, "sliding_window": 8},
    "gemma3_text": {**SMALL, "num_key_value_heads": 2, "head_dim": 8, "sliding_window": 8},
    "mamba": {"vocab_size": VOCABULARY, "hidden_size": 32, "num_hidden_layers": 2, "state_size": 4},
}


def model_of(kind: str):
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = AutoModelForCausalLM.from_config(CONFIG_MAPPING[kind](**(KINDS | OTHERS)[kind]))
    return model.eval()


MODELS = {kind: model_of(kind) for kind in KINDS}


def rows_of(texts: list[list[int]], scored_from: list[int], owners: list[int]) -> TokenRows:
    return plain_rows(texts, scored_from)._replace(trajectory_R=torch.tensor(owners))


@st.composite
def talks(draw) -> tuple[TokenRows, TokenRows]:
    """Rows of three trajectories, each going on from some place of what was played, or from nowhere; and what was played."""
    tokens = st.integers(0, VOCABULARY - 1)
    played, texts, begins, owners = [], [], [], []
    for b in range(3):
        trunk = draw(st.lists(tokens, min_size=1, max_size=40))
        played.append(trunk)
        for _ in range(draw(st.integers(0, 5))):
            common = draw(st.integers(0, len(trunk)))
            rest = draw(st.lists(tokens, max_size=9))
            text = [*trunk[:common], *rest] or [1]
            texts.append(text)
            begins.append(draw(st.integers(1, len(text))))
            owners.append(b)
    return rows_of(texts or [[1, 2]], begins or [1], owners or [0]), rows_of(played, [0] * 3, [0, 1, 2])


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=40, deadline=None)
@given(talks(), st.sampled_from([1, 60, 200, 16384]))
def test_reading_from_a_common_beginning_is_reading_each_row(kind, talk, most):
    (rows, played), model = talk, MODELS[kind]
    reader = Reader(torch.device("cpu"), 1.0, "float32")
    whole = reader.scores(model, rows)
    before = reader.tokens_read
    seen: list[int] = []
    for index_N, part, hidden_RTD in read_sharing(reader, model, rows, played, most):
        found = reader.tokens(model, part, hidden_RTD)
        width = part.token_RT.shape[1]
        for x_RT, of_RT in zip(found, whole, strict=True):
            torch.testing.assert_close(x_RT, of_RT[index_N, :width], rtol=1e-4, atol=1e-4)
        seen += index_N.tolist()
    assert sorted(seen) == [*range(len(rows.length_R))]
    assert reader.tokens_read - before <= before, "more was read than without sharing"
    assert model.training is False


def test_what_is_read_grows_with_what_is_said():
    """Thirty turns of ten tokens, before each of which five more are told: 300 + 30 · 15 tokens at most, not 30 · 155."""
    turns, told = 30, [7] * 5
    trunk = [token % VOCABULARY for token in range(10 * turns)]
    texts = [[*trunk[: 10 * k + 5], *told, *trunk[10 * k + 5 : 10 * k + 10]] for k in range(turns)]
    rows, played = rows_of(texts, [len(text) - 5 for text in texts], [0] * turns), rows_of([trunk], [0], [0])
    reader = Reader(torch.device("cpu"), 1.0, "float32")
    list(read_sharing(reader, MODELS["llama"], rows, played, 16384))
    assert reader.tokens_read <= len(trunk) + turns * 10


@pytest.mark.parametrize("kind", OTHERS)
def test_a_model_that_keeps_more_or_less_than_keys_and_values_reads_rows_as_a_whole(kind):
    assert not can_go_on(model_of(kind))


def test_one_row_a_trajectory_shares_nothing():
    rows = rows_of([[1, 2, 3], [1, 2, 3]], [1, 1], [0, 1])
    assert trunks_of(rows, rows) == []


def test_a_model_that_recomputes_its_layers_is_read_too_and_stays_in_its_mode():
    model = model_of("llama")
    model.gradient_checkpointing_enable({"use_reentrant": False})
    model.train()
    rows = rows_of([[1, 2, 3, 4, 5], [1, 2, 3, 4, 6, 7]], [4, 4], [0, 0])
    reader = Reader(torch.device("cpu"), 1.0, "float32")
    (found,) = read_sharing(reader, model, rows, rows, 100)
    assert model.training
    assert reader.tokens_read == 6 + 1, "the longer row, and where the other one leaves it"
    torch.testing.assert_close(
        reader.tokens(model, found.part, found.hidden_RTD).logp_RT,
        reader.scores(MODELS["llama"], rows.select(found.index_N)).logp_RT,
    )
