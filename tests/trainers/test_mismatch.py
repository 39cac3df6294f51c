"""Logs with a fault each, made of a random model: the fault is named, with its place; and lines that are no rows are refused."""

import copy
import itertools
import json
import math
import random
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from turnwise.agents.models.loading import load_causal, load_tokenizer
from turnwise.agents.models.small import build_small_model
from turnwise.cli.app import run as run_verb
from turnwise.errors import TurnwiseError
from turnwise.trainers.mismatch import fitting
from turnwise.trainers.mismatch.asking import READ, ends_of, examine, located, mismatch
from turnwise.trainers.mismatch.case import OF_HALF, MismatchModels, prepare
from turnwise.trainers.mismatch.choices import averaged, evidence
from turnwise.trainers.mismatch.core import FAULTS, PLAIN, DeclaredSampling, Explanation, FaultPlace
from turnwise.trainers.mismatch.deciding import _likeliest, detectors
from turnwise.trainers.mismatch.faults import end_token
from turnwise.trainers.mismatch.faults.quantized import Rounding, _rounded, rounded
from turnwise.trainers.mismatch.faults.retokenized import _as_sampled, _encoded_again
from turnwise.trainers.mismatch.faults.truncated import _P, _SHARES_P
from turnwise.trainers.mismatch.fitting import after_a_system_prompt
from turnwise.trainers.mismatch.reading import read_rows, row_of
from turnwise.trainers.mismatch.scoring import in_half
from turnwise.trainers.mismatch.telling import REMEDIES, TITLES
from turnwise.trainers.mismatch.templates import SYSTEMS
from turnwise.trainers.mismatch.weighed import Weighed

WORDS = [
    "the",
    "red",
    "wool",
    "scarf",
    "is",
    "in",
    "box",
    "seven",
    "and",
    "costs",
    "less",
    "than",
    "a",
    "blue",
    "hat",
    "of",
    "felt",
    "from",
    "the",
    "old",
    "shop",
]
ROWS, TURNS, LENGTH = 8, 2, 12


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A small model whose distributions are neither flat nor sure."""
    path = tmp_path_factory.mktemp("mismatch") / "model"
    build_small_model(path, [" ".join(WORDS)] * 4, layers=2, width=64, heads=2, vocab_size=320, context=256)
    model = load_causal(path, torch.float32)
    for weight in model.parameters():
        weight.data *= 2.5 if weight.dim() > 1 else 1.0
    model.save_pretrained(path)
    return path


@pytest.fixture(scope="module")
def model(folder):
    return load_causal(folder, torch.float32).eval()


@pytest.fixture(scope="module")
def tokenizer(folder):
    return load_tokenizer(folder)


@pytest.fixture(scope="module")
def other(model):
    """The model some steps of training ago."""
    moved = copy.deepcopy(model)
    generator = torch.Generator().manual_seed(1)
    for weight in moved.parameters():
        weight.data += 0.01 * torch.randn(weight.shape, generator=generator)
    return moved


class Talk:
    """Conversations that an engine samples; ``seen`` changes the prompt that it reads, ``kept`` what it read of its own turns."""

    def __init__(
        self,
        tokenizer,
        engine,
        settings=PLAIN,
        *,
        raw=False,
        late=None,
        seen=None,
        kept=None,
        stop=True,
        since=0,
    ):
        self.tokenizer, self.engine, self.settings, self.raw = tokenizer, engine, settings, raw
        self.late, self.seen, self.kept, self.stop, self.since = late, seen, kept, stop, since

    def encode(self, text):
        return self.tokenizer.encode(text, add_special_tokens=False)

    @torch.no_grad()
    def sample(self, model, context, rng, settings):
        cache, given, ids, logps = None, context, [], []
        for _ in range(LENGTH):
            out = model(input_ids=torch.tensor([given]), past_key_values=cache, use_cache=True)
            cache, logits = out.past_key_values, out.logits[0, -1].float()
            own = logits.log_softmax(-1)
            logp = (logits / settings.temperature).log_softmax(-1)
            order = logp.argsort(descending=True)
            before = logp[order].exp().cumsum(0) - logp[order].exp()
            cut = (
                order[before >= settings.top_p]
                if settings.top_p < 1
                else order[settings.top_k or len(order) :]
            )
            logp = logp.index_fill(0, cut, -math.inf).log_softmax(-1)
            token = rng.choices(range(len(logp)), logp.exp().tolist())[0]
            ids.append(token)
            logps.append(float((own if self.raw else logp)[token]))
            if self.stop and token == self.tokenizer.eos_token_id:
                break
            given = [token]
        return ids, logps

    def row(self, number, model):
        rng = random.Random(number)
        ids, context, sampled, logps, messages = [], [], [], [], []
        late = self.late is not None and number < self.since
        for turn in range(TURNS):
            said = " ".join(rng.choices(WORDS, k=6))
            messages.append({"role": "user", "content": said})
            closed = "<|end|>" if turn and ids[-1] != self.tokenizer.eos_token_id else ""
            piece = self.encode(f"{closed}<|user|>{said}<|assistant|>")
            ids += piece
            context += piece if self.seen is None or late else self.encode(self.seen(said, turn))
            new, logp = self.sample(self.late if late else model, context, rng, self.settings)
            sampled.append([len(ids), len(ids) + len(new)])
            ids += new
            context += self.kept(new) if self.kept else new
            logps += logp
            messages.append(
                {"role": "assistant", "content": self.tokenizer.decode(new, skip_special_tokens=True)}
            )
        return {"token_ids": ids, "sampled": sampled, "logprobs": logps, "messages": messages}

    def rows(self, count=ROWS):
        return [self.row(number, self.engine) for number in range(count)]


@pytest.fixture
def named(model, tokenizer):
    """The report on rows that a model should have sampled."""

    def ask(rows, **models):
        read = [row_of(json.loads(json.dumps(row)), number) for number, row in enumerate(rows)]
        return examine(read, MismatchModels(model, tokenizer, ends=ends_of(tokenizer, ()), **models))

    return ask


def again(tokenizer, ids):
    return tokenizer.encode(tokenizer.decode(ids), add_special_tokens=False)


def test_a_log_of_the_model_itself_has_no_fault_in_any_precision(named, tokenizer, model, other):
    report = named(Talk(tokenizer, model).rows(), also={"older": lambda: other})
    assert (report.fault, report.begins) == ("none", None)
    half = Talk(tokenizer, copy.deepcopy(model).to(torch.bfloat16)).rows(4)
    assert named(half).fault == "none"
    flat = copy.deepcopy(model)
    flat.get_output_embeddings().weight.data *= (
        0.25  # half precision moves it by less than the digits of float32
    )
    finer = [row_of(row, n) for n, row in enumerate(Talk(tokenizer, copy.deepcopy(flat).half()).rows(24))]
    models = MismatchModels(flat, tokenizer, ends=ends_of(tokenizer, ()))
    assert (
        prepare(finer, models, READ)[0].noise.mean > 1e-4
    )  # bfloat16's, and not the part of it that float32 is given
    assert examine(finer, models).fault == "none"
    declared = DeclaredSampling(0.7, 0.9)
    rows = [row | {"temperature": 0.7, "top_p": 0.9} for row in Talk(tokenizer, model, declared).rows()]
    assert named(rows).fault == "none"
    assert named([row | {"top_p": 0.7} for row in rows]).fault == "truncated_sampling"


def test_a_log_of_a_few_tokens_is_not_called_sound_where_all_of_them_differ_by_nats(named, tokenizer, model):
    def cut(row, logps):
        start = row["sampled"][0][0]
        return {
            "token_ids": row["token_ids"][: start + 3],
            "sampled": [[start, start + 3]],
            "logprobs": logps or row["logprobs"][:3],
        }

    rows = Talk(tokenizer, model).rows(2)
    far = named([cut(row, [-0.01, -9.0, -0.02]) for row in rows])
    assert far.fault != "none"
    assert far.confidence < 0.9
    assert named([cut(row, None) for row in rows]).fault == "none"


def test_weights_are_stale_from_the_row_on_where_they_were_not_renewed(named, tokenizer, model, other):
    rows = Talk(tokenizer, other, late=model, since=4).rows()
    report = named(rows, also={"older": lambda: other, "innocent": lambda: rounded(other, Rounding("int4"))})
    assert (report.fault, report.begins, report.data) == ("stale_weights", (4, 0, 0), {"weights": "older"})
    assert report.figures["left"] < 0.01
    unknown = named(rows)
    assert unknown.fault == "stale_weights"
    assert unknown.confidence < 0.7
    assert named(rows, without_adapter=lambda: other).fault == "missing_adapter"


def test_a_difference_as_small_as_half_precision_is_felt_where_other_rows_are_exact(named, tokenizer, model):
    """An engine in float32 whose first rows are its trainer's to the last digit rounds nothing in those that follow."""
    near = copy.deepcopy(model)
    generator = torch.Generator().manual_seed(2)
    for weight in near.parameters():
        weight.data += 0.0003 * torch.randn(weight.shape, generator=generator)
    rows = Talk(tokenizer, near, late=model, since=4).rows()
    report = named(rows, without_adapter=lambda: near)
    assert (report.fault, report.begins) == ("missing_adapter", (4, 0, 0))
    assert report.figures["mean_gap"] < 3 * report.figures["rounding_gap"] / OF_HALF
    half = Talk(
        tokenizer,
        copy.deepcopy(near).to(torch.bfloat16),
        late=copy.deepcopy(model).to(torch.bfloat16),
        since=4,
    )
    assert named(half.rows(), without_adapter=lambda: near).fault == "none"


def test_a_named_precision_lets_smaller_faults_be_felt(named, tokenizer, model):
    near = copy.deepcopy(model)
    generator = torch.Generator().manual_seed(2)
    for weight in near.parameters():
        weight.data += 0.0002 * torch.randn(weight.shape, generator=generator)
    rows = Talk(tokenizer, near.half()).rows()
    unsaid = named(rows)
    assert unsaid.fault == "none", "in bfloat16 the model moves as much by itself"
    said = named(rows, engine_dtype=torch.float16)
    assert said.fault != "none"
    assert "rounding in float16 makes about" in " ".join(said.said)
    assert said.figures["rounding_gap"] < unsaid.figures["rounding_gap"] / 4
    own = Talk(tokenizer, copy.deepcopy(model).half()).rows()
    assert named(own, engine_dtype=torch.float16).fault == "none"
    assert named(own, engine_dtype=torch.float32).fault != "none"


@pytest.mark.parametrize(
    ("settings", "raw", "fault", "data"),
    [
        (DeclaredSampling(0.7), False, "temperature", {"temperature": 0.7}),
        (DeclaredSampling(0.4), True, "temperature", {"temperature": 0.4, "raw": True}),
        (DeclaredSampling(top_k=5), False, "truncated_sampling", {"top_k": 5}),
        (DeclaredSampling(top_p=0.8), True, "truncated_sampling", {"raw": True}),
    ],
)
def test_settings_are_seen_in_log_probabilities_or_else_in_the_tokens(
    named, tokenizer, model, settings, raw, fault, data
):
    report = named(Talk(tokenizer, model, settings, raw=raw).rows())
    assert report.fault == fault
    assert {
        key: pytest.approx(value, abs=0.11 if raw else 0.01) for key, value in data.items()
    }.items() <= report.data.items()
    assert report.begins == (0, 0, 0)


def test_tokens_that_rounding_puts_outside_of_the_declared_cut_are_no_fault(named, tokenizer, model):
    """A flat distribution in bfloat16: the engine's twentieth token is the twenty-first here."""
    flat = copy.deepcopy(model)
    flat.get_output_embeddings().weight.data *= 0.25
    half, declared = copy.deepcopy(flat).to(torch.bfloat16), {"temperature": 1.3, "top_k": 20}

    def ask(engine, settings):
        rows = [row | declared for row in Talk(tokenizer, engine, settings, raw=True).rows(48)]
        read = [row_of(json.loads(json.dumps(row)), number) for number, row in enumerate(rows)]
        return examine(read, MismatchModels(flat, tokenizer, ends=ends_of(tokenizer, ())))

    assert ask(half, DeclaredSampling(1.3, top_k=20)).fault == "none"
    without = ask(half, DeclaredSampling(1.3))
    assert without.fault == "truncated_sampling"
    assert "lie outside" in without.said[0]


def test_a_setting_that_is_seldom_used_needs_more_evidence_and_its_rival_is_named(named, tokenizer, model):
    """On tokens alone a low top-p and a low temperature look alike; engines are seldom told a top-p below 0.7."""
    low, usual = (averaged([60.0 if p == one else -99.0 for p in _P], _SHARES_P) for one in (_P[2], _P[-3]))
    assert low < usual - 2
    report = named(Talk(tokenizer, model, DeclaredSampling(0.4), raw=True).rows())
    rival = max(one.evidence for one in report.ranked if one.fault == "truncated_sampling")
    ahead = max(one.evidence for one in report.ranked if one.fault == "temperature") - rival
    assert report.confidence <= 1 / (1 + math.exp(-ahead)) + 1e-6
    assert ("Nearly as likely" in " ".join(report.said)) == (ahead < 4)


def test_evidence_in_chosen_tokens_is_worth_1_on_average_where_there_is_no_fault():
    """All logs of three rows with two turns of a token, under the model's own chances: then 1/x bounds the chance of evidence x."""
    own, other = np.array([0.7, 0.2, 0.1]), np.array([0.3, 0.3, 0.4])
    case = SimpleNamespace(row_N=np.repeat(range(3), 2), turn_N=np.tile([0, 1], 3), rows=range(3))
    usable_N = np.array([True] * 5 + [False])
    total = 0.0
    for tokens in itertools.product(range(3), repeat=5):
        chosen = [*tokens, 0]
        found = evidence(case, np.log(other[chosen] / own[chosen]), usable_N)
        total += own[list(tokens)].prod() * math.exp(found.nats)
    assert total == pytest.approx(1.0)


def test_a_fault_of_the_choice_is_seen_from_whichever_turn_on_it_begins():
    rows, turns, late = 12, 9, 6
    turn_N = np.tile(range(turns), rows)
    case = SimpleNamespace(row_N=np.repeat(range(rows), turns), turn_N=turn_N, rows=range(rows))
    ratio_N = np.where(
        turn_N >= late, 0.7, -np.inf
    )  # before, tokens are chosen that the alternative never gives
    found = evidence(case, ratio_N, np.ones(len(turn_N), bool))
    assert found.nats > 0.7 * (turn_N >= late).sum() - 5
    assert turn_N[found.part_N].min() == late


def test_of_fits_one_is_named_that_explains_more_than_those_of_another_kind():
    def fit(fault: str, left: float, **data: str) -> Weighed:
        return Weighed(Explanation(fault, "", data=data), left, 100, 1.0)

    def likeliest(weights: float, prompt: float, other: float = 0.9) -> str | None:
        tried = [
            fit("stale_weights", weights, fitted="weights"),
            fit("wrong_template", prompt, fitted="prompt"),
        ]
        found = _likeliest(
            [*tried, fit("wrong_template", prompt + 0.01, fitted="system prompt"), fit("temperature", other)]
        )
        return found.explanation.fault if found else None

    assert likeliest(1.0, 0.72) == "wrong_template"
    assert likeliest(0.75, 0.9) == "stale_weights"
    assert likeliest(0.8, 0.75) is None, "both explain as much"
    assert likeliest(1.0, 0.85) is None, "it explains too little"
    assert likeliest(1.0, 0.72, other=0.6) == "temperature"


def test_unknown_weights_and_an_unknown_prompt_are_told_apart_by_what_is_fitted(
    named, tokenizer, model, monkeypatch
):
    asked = Talk(tokenizer, model, seen=lambda said, turn: f"@@ w {said} @@").rows(12)
    report = named(asked)
    assert report.fault == "wrong_template"
    with monkeypatch.context() as patched:
        patched.setattr(fitting, "MOST_WORK", 0.0)
        assert any("ask again on a GPU" in line for line in named(asked).said)
    assert not any("ask again on a GPU" in line for line in report.said)
    trained = copy.deepcopy(model).train()
    optimizer = torch.optim.AdamW(trained.parameters(), lr=2e-3)
    for _ in range(4):
        ids = torch.tensor([tokenizer.encode(" ".join(WORDS), add_special_tokens=False)])
        trained(input_ids=ids, labels=ids).loss.backward()
        optimizer.step()
    assert named(Talk(tokenizer, trained.eval()).rows(12)).fault == "stale_weights"


def test_a_system_prompt_is_put_before_rows_of_later_calls_whose_replies_keep_their_tokens(tokenizer):
    def encode(text):
        return tokenizer.encode(text, add_special_tokens=False)

    letters = [token for letter in "felt" for token in encode(letter)]
    rest = [*encode("<|user|>the hat<|assistant|>"), *letters, *encode("<|end|><|user|>and<|assistant|>")]
    written = [[*encode("<|system|>Be short."), *rest], rest, encode("no template at all")]
    rows = [
        row_of({"prompt_ids": ids, "completion_ids": [40, 41], "logprobs": [-1.0, -1.0]}, 0)
        for ids in written
    ]
    found = after_a_system_prompt(SimpleNamespace(rows=rows, models=SimpleNamespace(tokenizer=tokenizer)))
    assert letters != encode("felt")
    assert found == dict.fromkeys((0, 1), (*encode(f"<|system|>{SYSTEMS[0]}"), *rest, 40, 41))


def test_the_way_in_which_weights_are_rounded_is_found(named, tokenizer, model):
    report = named(Talk(tokenizer, rounded(model, Rounding("int4", 32))).rows(6))
    assert (report.fault, report.data["way"]) == ("quantized_engine", "int4, with one scale for 32 weights")
    whole = named(Talk(tokenizer, rounded(model, Rounding("int8", head=True))).rows(6))
    assert whole.data["way"] == "int8, with one scale for a channel, with the head"


def test_a_channel_that_groups_do_not_divide_has_one_scale():
    weight = torch.randn(6, 96, generator=torch.Generator().manual_seed(0))
    whole = _rounded(weight, Rounding("int4"))
    assert torch.equal(_rounded(weight, Rounding("int4", 64)), whole)
    assert torch.equal(
        _rounded(weight[:, :64], Rounding("int4", 32))[:, :32], _rounded(weight[:, :32], Rounding("int4"))
    )


def test_half_precision_on_a_cpu_moves_log_probabilities_as_much_as_its_own_products_do(model):
    ids = torch.randint(10, 300, (4, 60), generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        own, half, wanted = (
            one(ids).logits.float().log_softmax(-1)
            for one in (model, in_half(model, torch.bfloat16), copy.deepcopy(model).to(torch.bfloat16))
        )
    moved = (half - own).abs().mean()
    assert moved == pytest.approx((wanted - own).abs().mean(), rel=0.1)
    assert (half - wanted).abs().mean() < moved / 2


def test_a_prompt_of_another_template_is_found_from_the_turn_on_where_it_was_read(named, tokenizer, model):
    def seen(said, turn):
        ours = f"<|user|>{said}<|assistant|>"
        return f"<|im_end|>\n<|im_start|>user\n{said}<|im_end|>\n<|im_start|>assistant\n" if turn else ours

    report = named(Talk(tokenizer, model, seen=seen).rows())
    assert (report.fault, report.begins) == ("wrong_template", (0, 1, 0))
    assert "ChatML" in report.said[0]


def test_a_row_that_is_not_what_the_template_writes_for_its_messages_is_found(named, tokenizer, model):
    rows = Talk(tokenizer, model).rows()
    report = named(
        [row | {"messages": [{"role": "system", "content": "Be short."}, *row["messages"]]} for row in rows]
    )
    assert (report.fault, report.begins) == ("wrong_template", (0, 0, 0))


def test_an_end_that_the_framework_put_there_is_found(named, tokenizer, model):
    rows = []
    for row in Talk(tokenizer, model).rows():
        ids, spans, logps, at = [], [], iter(row["logprobs"]), 0
        said = []
        for start, stop in row["sampled"]:
            ids += [*row["token_ids"][at:start], *row["token_ids"][start:stop], tokenizer.eos_token_id]
            spans.append([len(ids) - (stop - start) - 1, len(ids)])
            said += [*(next(logps) for _ in range(start, stop)), 0.0]
            at = stop + 1  # the template's own end
        rows.append({"token_ids": ids, "sampled": spans, "logprobs": said})
    report = named(rows)
    assert report.fault == "wrong_end_token"
    assert report.begins.token == LENGTH
    assert "not sampled" in report.said[0]


@pytest.mark.parametrize(
    ("short", "chance", "found"),
    [(6, 0.8, 1), (6, 0.01, 0), (4, 0.9, 0), (0, 0.9, 0), (30, 0.2, 1), (30, 0.01, 0)],
)
def test_turns_that_a_limit_ended_do_not_hide_those_that_were_cut_off(monkeypatch, short, chance, found):
    """Forty turns are as long as the limit lets them be, where the model would have gone on; a few are shorter, and would have ended."""
    lengths = [12] * 40 + [5 + n % 6 for n in range(short)]
    ids = [(9,) * length for length in lengths]

    def asked_after(model, asked, ends):
        return SimpleNamespace(end_N=np.log([chance if one.ids != ids[0] else 1e-4 for one in asked]))

    monkeypatch.setattr(end_token, "distributions", asked_after)
    last_M = np.cumsum(lengths) - 1
    case = SimpleNamespace(
        models=SimpleNamespace(ends=(2,), model=None),
        rows=[SimpleNamespace(ids=one, number=n, turn=None) for n, one in enumerate(ids)],
        row_N=np.repeat(range(len(ids)), lengths),
        turn_N=np.zeros(sum(lengths), int),
        token_N=np.concatenate([np.arange(length) for length in lengths]),
        position_N=np.concatenate([np.arange(length) for length in lengths]),
        found=SimpleNamespace(end_N=np.full(sum(lengths), math.log(0.01))),
        place=lambda n: FaultPlace(int(case.row_N[n]), 0, int(case.token_N[n])),
    )
    told = [*end_token._cut_off(case, last_M)]
    assert len(told) == found
    assert all(one.begins == (40, 0, 4) for one in told)


def test_a_reply_may_lose_its_control_tokens_and_white_space_on_its_way_through_text(tokenizer):
    def encode(text):
        return tokenizer.encode(text, add_special_tokens=False)

    end = tokenizer.eos_token_id
    opened, later = encode("<|user|>the<|assistant|>"), encode("<|user|>red<|assistant|>")
    said, again = encode(" a hat<|user|> of felt "), encode("a hat of felt")
    ids = [*opened, *said, end, *later, *encode("wool")]
    spans = [[len(opened), len(opened) + len(said) + 1], [len(ids) - len(encode("wool")), len(ids)]]
    row = row_of({"token_ids": ids, "sampled": spans, "logprobs": [-1.0] * sum(b - a for a, b in spans)}, 0)
    case = SimpleNamespace(rows=[row], models=SimpleNamespace(tokenizer=tokenizer, ends=(end,)))
    both = " without its control tokens and white space around it"
    assert [one.ids for one in _encoded_again(case, both)] == [(*opened, *again, end, *later)]
    kept = [*_encoded_again(case, "")]
    assert all("<|user|> of" in tokenizer.decode(one.ids) for one in kept)


def test_history_that_went_through_text_is_found_in_the_row_and_between_calls(named, tokenizer, model):
    talk = Talk(tokenizer, model, kept=lambda ids: again(tokenizer, ids))
    rows = talk.rows()
    report = named(rows)
    assert (report.fault, report.begins.turn) == ("retokenized_history", 1)
    sampled = Talk(tokenizer, model).rows()
    calls = []
    for number, row in enumerate(sampled):
        (a, b), (c, d) = row["sampled"]
        ids, n = row["token_ids"], b - a
        calls.append(
            {
                "episode": number,
                "turn": 0,
                "prompt_ids": ids[:a],
                "completion_ids": ids[a:b],
                "logprobs": row["logprobs"][:n],
            }
        )
        prompt = [*ids[:a], *again(tokenizer, ids[a:b]), *ids[b:c]]
        calls.append(
            {
                "episode": number,
                "turn": 1,
                "prompt_ids": prompt,
                "completion_ids": ids[c:d],
                "logprobs": row["logprobs"][n:],
            }
        )
    report = named(calls)
    assert report.fault == "retokenized_history"
    assert report.begins.turn == 1
    assert "the row has" in report.said[0]


@pytest.mark.parametrize("control", [False, True])
def test_calls_whose_history_went_through_text_were_read_as_all_of_it_was_sampled(tokenizer, control: bool):
    def encode(text: str) -> list[int]:
        return tokenizer.encode(text, add_special_tokens=False)

    apart, end = [token for letter in "the" for token in encode(letter)], [tokenizer.eos_token_id]
    assert apart != encode("the")
    lost = encode("<|assistant|>") if control else []
    asked, more, last = (
        encode("<|user|>red<|assistant|>"),
        encode("<|user|>hat<|assistant|>"),
        encode("<|user|>felt<|assistant|>"),
    )
    said, again = [*apart, *lost, *end], [*encode("the"), *end]
    prompts = [asked, [*asked, *again, *more], [*asked, *again, *more, *again, *last]]
    rows = [
        row_of(
            {
                "episode": 0,
                "turn": k,
                "prompt_ids": one,
                "completion_ids": said,
                "logprobs": [-1.0] * len(said),
            },
            k,
        )
        for k, one in enumerate(prompts)
    ]
    case = SimpleNamespace(rows=rows, models=SimpleNamespace(tokenizer=tokenizer, ends=tuple(end)))
    assert [(one.row, list(one.ids)) for one in _as_sampled(case)] == [
        (1, [*asked, *said, *more]),
        (2, [*asked, *said, *more, *said, *last]),
    ]


def test_what_other_trainers_hold_is_read_under_their_names(tmp_path):
    log = tmp_path / "log.jsonl"
    batch = {
        "prompt_token_ids": [[5, 6]] * 2,
        "response_ids": [[7, 8, 9]] * 2,
        "loss_masks": [[1, 0, 1]] * 2,
        "rewards": [0, 1],
    }
    lines = [
        {
            "prompt_ids": [5, 6],
            "response_ids": [7, 8, 9],
            "response_mask": [1, 0, 1],
            "response_logprobs": [-1, 0, -2],
        },
        {
            "input_ids": [5, 6, 7, 8, 9],
            "loss_mask": [False, False, True, False, True],
            "inference_logprobs": [0, 0, -1, 0, -2],
        },
        batch | {"rollout_logprobs": [[-1, 0, -2]] * 2},
    ]
    log.write_text("\n".join(map(json.dumps, lines)))
    rows = read_rows(log)
    assert {(row.ids, row.turns, str(row.logprobs)) for row in rows} == {
        ((5, 6, 7, 8, 9), ((2, 3), (4, 5)), "(nan, nan, -1.0, nan, -2.0)")
    }
    assert [row.number for row in rows] == [0, 1, 2, 3]


def test_rows_are_the_same_in_each_of_their_forms():
    forms = [
        {"token_ids": [5, 6, 7, 8, 9], "sampled": [[2, 3], [4, 5]], "logprobs": [-1, -2.0]},
        {"token_ids": [5, 6, 7, 8, 9], "mask": [0, 0, 1, 0, 1], "logprobs": [None, None, -1, 0, -2.0]},
        {"prompt_ids": [5, 6], "completion_ids": [7, 8, 9], "mask": [1, 0, 1], "logprobs": [-1, 0, -2.0]},
    ]
    read = [row_of(form, 0) for form in forms]
    assert {(row.ids, row.turns) for row in read} == {((5, 6, 7, 8, 9), ((2, 3), (4, 5)))}
    assert {str(row.logprobs) for row in read} == {"(nan, nan, -1.0, nan, -2.0)"}
    assert [*read[0].pieces] == [(5, 6), (8,), ()]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("[]", "no object"),
        ("", "holds no rows"),
        ('{"ids": [1]}', "neither token_ids nor"),
        ('{"token_ids": [1, 2]}', "neither sampled nor mask"),
        ('{"token_ids": [1, "a"], "mask": [0, 1]}', "no list of token ids"),
        ('{"token_ids": [1, 2], "sampled": [[1, 3]], "logprobs": [-1, -1]}', "leave the 2 tokens"),
        ('{"token_ids": [1, 2], "sampled": [[0, 1]], "logprobs": [-1]}', "after no prompt"),
        ('{"token_ids": [1, 2], "mask": [0, 1], "logprobs": [-1, -1, -1]}', "logprobs has 3 entries"),
        ('{"token_ids": [1, 2], "mask": [0, 1], "logprobs": [0.7]}', "a log-probability is 0.7"),
        ('{"token_ids": [1, 2], "mask": [0, 1], "logprobs": [NaN]}', "a log-probability is nan"),
        ('{"token_ids": [1, 2], "mask": [0, 1], "logprobs": [-1], "top_p": 0}', "top_p is 0"),
        (
            '{"token_ids": [1, 2], "mask": [0, 1], "logprobs": [-1], "logprobs_mode": "own"}',
            "raw or processed",
        ),
        (
            '{"token_ids": [1, 2], "mask": [0, 1], "logprobs": [null]}',
            "no sampled token with a log-probability",
        ),
    ],
)
def test_a_line_that_is_no_row_is_refused_with_its_place(tmp_path, line, said):
    log = tmp_path / "log.jsonl"
    log.write_text(line + "\n")
    with pytest.raises(TurnwiseError) as error:
        read_rows(log)
    assert said in error.value.cause
    assert "log.jsonl" in error.value.cause


def test_a_log_of_another_tokeniser_and_a_checkpoint_that_is_not_there_are_refused(tmp_path, folder):
    log = tmp_path / "log.jsonl"
    log.write_text('{"token_ids": [1, 5000], "mask": [0, 1], "logprobs": [-1]}')
    with pytest.raises(TurnwiseError, match="has the token 5000"):
        mismatch(log, str(folder))
    (tmp_path / "run" / "checkpoints" / "step-000040").mkdir(parents=True)
    with pytest.raises(TurnwiseError) as error:
        located(f"{tmp_path}/run@41")
    assert "@40" in error.value.remedy


def test_every_fault_has_its_words_and_at_least_one_detector(named, tokenizer, model):
    assert {*TITLES} == {*REMEDIES} == {*FAULTS}
    assert len(detectors()) >= len(FAULTS) - 1


def test_the_command_answers_in_json_and_by_its_exit_code(tmp_path, folder, tokenizer, model, capfd):
    log = tmp_path / "log.jsonl"
    rows = Talk(tokenizer, model, DeclaredSampling(0.6)).rows(5)
    log.write_text("\n".join(json.dumps(row) for row in rows))
    assert run_verb(["mismatch", str(log), "--model", str(folder), "--json"]) == 1
    assert json.loads(capfd.readouterr().out)["fault"] == "temperature"
    assert run_verb(["mismatch", str(log), "--model", str(folder), "--temperature", "0.6"]) == 0
    assert "No fault" in capfd.readouterr().out
