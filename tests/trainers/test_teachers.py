"""What teachers read: the same sampled tokens, under contexts that know more, or less."""

from __future__ import annotations

import dataclasses
import logging
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from turnwise.agents.core import ROOT, Act, Episode, after
from turnwise.agents.policies.scripted import scripted
from turnwise.agents.rollout import Request, run_episodes
from turnwise.envs.core import EndReason
from turnwise.envs.messages import Message
from turnwise.envs.registry import get_suite, suite_task
from turnwise.errors import RecipeError
from turnwise.registry import get_component
from turnwise.tasks.core import Split
from turnwise.trainers.check.teacher import made, scene
from turnwise.trainers.core import TeacherTop
from turnwise.trainers.guide.toy import toy_model
from turnwise.trainers.kit.toy_batches import token_batch
from turnwise.trainers.learn.collate import TokenRows, collate
from turnwise.trainers.learn.learner import Learner
from turnwise.trainers.learn.model import load_model
from turnwise.trainers.learn.options import OptimizerOptions
from turnwise.trainers.recipe.load import load_recipe
from turnwise.trainers.teacher.core import TeacherSetup, taught

BATCH, GROUPS, SEE = scene()


def texts(rows: TokenRows) -> list[str]:
    """Each row as text."""
    return [
        SEE.renderer.tokenizer.decode(row[:n].tolist())
        for row, n in zip(rows.token_RT, rows.length_R.tolist(), strict=True)
    ]


def read(name: str, groups: list[list[Episode]] | None = None) -> TokenRows:
    teacher = made(get_component("teacher", name))
    rows = teacher.rows(SEE, BATCH, groups or GROUPS)
    assert torch.equal(rows.token_RT[rows.mask_RT], BATCH.rows.token_RT[BATCH.rows.mask_RT])
    return rows


def words(text: str) -> str:
    return " ".join(text.split())


def test_hindsight_knows_the_answer_to_each_reply_and_the_end() -> None:
    rows = read("hindsight")
    turns = [(episode, k) for episode in GROUPS[0] for k in range(len(episode.trajectory.turns))]
    assert len(rows.length_R) == len(turns)
    for text, (episode, k) in zip(texts(rows), turns, strict=True):
        played = episode.trajectory.turns
        shown = words(text[: text.rindex("After your reply")]), words(text[text.rindex("After your reply") :])
        if k + 1 < len(played):
            answer = words(" ".join(message.content for message in played[k + 1].observation))[:60]
            assert answer in shown[1]
            assert "The task will be" not in shown[1]
        else:
            assert "The task will be failed" in shown[1]


def test_a_reply_whose_told_conversation_is_too_long_is_read_as_it_was_sampled(caplog) -> None:
    """So that one long episode neither ends a run nor teaches anything."""
    whole = read("hindsight")
    longest = int(whole.length_R.max())
    teacher, turns = made(get_component("teacher", "hindsight")), []
    with caplog.at_level(logging.WARNING):
        rows = teacher.rows(dataclasses.replace(SEE, context=longest - 1), BATCH, GROUPS)
    for b, episode in enumerate(GROUPS[0]):
        turns += [(b, k) for k in range(len(episode.trajectory.turns))]
    own, played = 0, BATCH.rows
    for n, (b, k) in enumerate(turns):
        row = rows.token_RT[n, : int(rows.length_R[n])].tolist()
        if int(whole.length_R[n]) == longest:
            end = (
                int((played.turn_RT[b] == k).nonzero().max()) + 1
            )  # no chat template rewrote: one row a trajectory
            assert row == played.token_RT[b, :end].tolist()
            own += 1
        else:
            assert row == whole.token_RT[n, : int(whole.length_R[n])].tolist()
    assert 0 < own < len(turns)
    assert f"{own} of {len(turns)} replies as the policy did" in caplog.text
    assert torch.equal(rows.token_RT[rows.mask_RT], BATCH.rows.token_RT[BATCH.rows.mask_RT])


def test_the_blind_one_sees_the_task_and_no_answer() -> None:
    rows = read("blind")
    task = words(GROUPS[0][0].trajectory.turns[0].observation[-1].content)[:40]
    answers = [
        words(message.content)[:40]
        for episode in GROUPS[0]
        for turn in episode.trajectory.turns[1:]
        for message in turn.observation
    ]
    for text in map(words, texts(rows)):
        assert task in text
        assert not [answer for answer in answers if len(answer) > 20 and answer in text]
    assert sum("(not shown)" in text for text in texts(rows)) == len(rows.length_R) - len(GROUPS[0])


def test_a_peer_is_shown_to_failures_alone() -> None:
    """A success of the group is told to the other; without one the teacher reads what the policy read."""
    same = read("peer")
    assert torch.equal(same.token_RT, BATCH.rows.token_RT)
    winner, loser = GROUPS[0]
    won = dataclasses.replace(winner, end=EndReason.SOLVED)
    rows = read("peer", [[won, loser]])
    shown = [words(text) for text in texts(rows)]
    action = words(str(won.trajectory.turns[0].action))[:30]
    told = {
        int(b)
        for b, text in zip(rows.trajectory_R, shown, strict=True)
        if "An attempt that succeeded" in text
    }
    assert told == {1}
    assert any(
        action in text[text.index("An attempt that succeeded") :] for text in shown if "succeeded" in text
    )


def of_a_program(episode: Episode) -> Episode:
    """The same replies in two conversations, as a program may hold them: the second turn begins one of its own, and the third goes
    on with the first. The program told the policy other words than the environment's."""
    one, two, three, *_ = episode.trajectory.turns
    start = SEE.renderer.start([Message("system", "You are a shopper."), Message("user", "What now?")], ())
    acts = (Act(Message("assistant", "search[mug]"), 0, 0),)
    turns = [
        dataclasses.replace(one, acts=acts, reply=one.reply._replace(prompt_ids=start)),
        dataclasses.replace(two, acts=acts, reply=two.reply._replace(parent=ROOT, prompt_ids=start)),
        dataclasses.replace(three, acts=acts, reply=three.reply._replace(parent=after(0))),
    ]
    trajectory = dataclasses.replace(episode.trajectory, turns=tuple(turns))
    return dataclasses.replace(episode, trajectories={"agent": trajectory})


def test_hindsight_reads_a_program_of_several_conversations_reply_by_reply() -> None:
    """The batch has the third reply before the second, in the row of the first; rows come as its tokens lie."""
    groups = [[of_a_program(episode) for episode in GROUPS[0]]]
    batch, teacher = collate(groups), made(get_component("teacher", "hindsight"))
    assert batch.rows.turn_RT[0][batch.rows.mask_RT[0]].unique().tolist() == [0, 2]
    rows = teacher.rows(SEE, batch, groups)
    turns = [int(turn_T[mask_T][0]) for turn_T, mask_T in zip(rows.turn_RT, rows.mask_RT, strict=True)]
    assert turns == [0, 2, 1] * len(groups[0])
    assert rows.trajectory_R.tolist() == [b for b in range(len(groups[0])) for _ in range(3)]
    for r, (b, k) in enumerate(zip(rows.trajectory_R.tolist(), turns, strict=True)):
        assert int(rows.state_row_BK[b, k]) == r
        assert int(rows.state_position_BK[b, k]) == int(rows.mask_RT[r].nonzero()[0]) - 1
    found = taught(teacher, SEE, batch, groups, 2).turns.tokens
    assert found is not None
    told = SEE.learner.score(rows)
    assert found.signals["token_teacher_logp"][batch.rows.mask_RT].tolist() == pytest.approx(
        told[rows.mask_RT].tolist(), abs=1e-4
    )


def test_what_a_program_told_the_policy_is_not_written_anew() -> None:
    """Where nothing can be told below it, a reply is read as it was sampled."""
    episode = of_a_program(GROUPS[0][0])
    first = episode.trajectory.turns[0]
    cut = first.reply._replace(prompt_ids=first.reply.prompt_ids[:-1])  # not as the template ends a prompt
    turns = (dataclasses.replace(first, reply=cut),)
    groups = [
        [
            dataclasses.replace(
                episode, trajectories={"agent": dataclasses.replace(episode.trajectory, turns=turns)}
            )
        ]
    ]
    batch = collate(groups)
    rows = made(get_component("teacher", "hindsight")).rows(SEE, batch, groups)
    assert torch.equal(rows.token_RT, batch.rows.token_RT)


@pytest.mark.parametrize(
    ("teacher", "fits"),
    [("told", 0), ("peer", 0), ("blind", 0), ("hindsight", 1), ("model", 1), ("reference", 1)],
)
def test_a_program_has_no_teacher_that_writes_its_conversation_anew(teacher: str, fits: int) -> None:
    recipe = {
        "suite": "shop/quick",
        "model": {"scratch": {}},
        "sampling": {"max_tokens": 16},
        "agent": {"command": ["python3", "-c", "pass"]},
        "teacher": {"name": teacher, **({"path": "somewhere"} if teacher == "model" else {})},
        "loss": ["clip", "kdrl"],
    }
    if fits:
        assert load_recipe(recipe).teacher is not None
        return
    with pytest.raises(RecipeError, match=f"teacher '{teacher}' reads conversations written anew"):
        load_recipe(recipe)


@pytest.mark.parametrize(("name", "options"), [("peer", {}), ("told", {"demonstrator": "echo"})])
def test_where_nothing_is_told_what_was_played_stands_token_for_token(
    name: str, options: dict[str, str]
) -> None:
    """A group without a success, a demonstration that failed; the conversation is not as the environment's would be rendered."""
    groups = [[of_a_program(episode) for episode in GROUPS[0]]]
    batch = collate(groups)
    rows = get_component("teacher", name).build(options)(None).rows(SEE, batch, groups)
    assert torch.equal(rows.token_RT, batch.rows.token_RT)
    assert torch.equal(rows.mask_RT, batch.rows.mask_RT)


def test_a_demonstration_that_failed_is_no_solution() -> None:
    told = get_component("teacher", "told")
    tasks = [suite_task(get_suite("shop/quick"), Split.TRAIN, index) for index in range(6)]
    groups = [[dataclasses.replace(GROUPS[0][0], task=task)] for task in tasks]
    shown = run_episodes([Request(task, 0) for task in tasks], scripted("demonstrator"))
    wins = [episode.success for episode in shown]
    assert {*wins} == {True, False}
    rows = told.build({"demonstrator": "demonstrator"})(None).rows(SEE, collate(groups), groups)
    assert ["A solution:" in text for text in texts(rows)] == wins


@pytest.mark.parametrize("more", [64, -40])
@pytest.mark.parametrize("top", [0, 3, 1000])
def test_a_teacher_with_a_head_of_another_size_is_over_the_policys_tokens(
    tmp_path: Path, more: int, top: int
) -> None:
    """A model of one family with another padding: 64 rows that the policy lacks take no share, and one that the teacher lacks is at −20 nats."""
    transformers = pytest.importorskip("transformers")
    model = transformers.AutoModelForCausalLM.from_pretrained(toy_model())
    rows = model.config.vocab_size
    model.resize_token_embeddings(rows + more, mean_resizing=False)
    if more > 0:
        with torch.no_grad():
            model.get_output_embeddings().weight[rows:] = model.get_output_embeddings().weight[:more]
    model.save_pretrained(tmp_path)
    SEE.renderer.tokenizer.save_pretrained(tmp_path)
    entry = get_component("teacher", "model")
    other = load_model(tmp_path, torch.device("cpu"), frozen=True)
    setup = TeacherSetup(lambda path: other, lambda: other, SEE.renderer.tokenizer)
    found = taught(entry.build({"path": str(tmp_path)})(setup), SEE, BATCH, GROUPS, top)
    assert found.turns.tokens is not None
    logp_RT = found.turns.tokens.signals["token_teacher_logp"].float()
    mask_RT, own_RT = BATCH.rows.mask_RT, SEE.learner.score(BATCH.rows)
    if more > 0:  # otherwise the teacher is the policy
        assert torch.allclose(logp_RT[mask_RT], own_RT[mask_RT], atol=1e-5)
    lacks_RT = mask_RT & (BATCH.rows.token_RT >= rows + more)
    assert bool(lacks_RT.any()) == (more < 0)
    assert (logp_RT[lacks_RT] == -20).all()
    assert (logp_RT[mask_RT & ~lacks_RT] > -20).all()
    if top:
        assert found.top is not None
        assert found.top.token_RTJ.shape[-1] == min(top, rows, rows + more)
        assert int(found.top.token_RTJ.max()) < min(rows, rows + more)
        if top == 1000:
            assert torch.allclose(
                found.top.teacher_logp_RTJ[mask_RT].exp().sum(-1), torch.tensor(1.0), atol=1e-5
            )


@pytest.mark.parametrize("adapted", [False, True])
def test_the_reference_teaches_its_whole_distributions_whatever_the_policy_became(adapted: bool) -> None:
    """KL(π₀ ‖ π) by `distill`, against the sum over the vocabulary of two plain forward passes."""
    cpu = torch.device("cpu")
    policy, start = load_model(toy_model(), cpu), load_model(toy_model(), cpu, frozen=True)
    if adapted:
        peft = pytest.importorskip("peft")
        policy = peft.get_peft_model(
            policy, peft.LoraConfig(r=4, target_modules="all-linear", init_lora_weights=False)
        )
    learner = Learner(policy, OptimizerOptions(), reference=None if adapted else start)
    with torch.no_grad():
        for weight in policy.parameters():
            weight.add_(
                (1.0 if adapted else 0.05)
                * torch.randn(weight.shape, generator=torch.Generator().manual_seed(7))
                * weight.requires_grad
            )
    batch, rows = collate(GROUPS), BATCH.rows
    see = dataclasses.replace(SEE, learner=learner)
    found = taught(made(get_component("teacher", "reference")), see, batch, GROUPS, 1 << 20)
    assert found.top is not None
    with torch.no_grad():
        before, now = (
            model(rows.token_RT, attention_mask=(torch.arange(rows.token_RT.shape[1]) < rows.length_R[:, None]).long())
            .logits[:, :-1].log_softmax(-1) for model in (start, policy)
        )  # fmt: skip
    inside = rows.mask_RT[:, 1:]
    token_RT1 = rows.token_RT[:, 1:, None]
    assert found.turns.tokens is not None
    said = found.turns.tokens.signals["token_teacher_logp"][:, 1:][inside]
    assert torch.allclose(said.float(), before.gather(-1, token_RT1)[..., 0][inside], atol=1e-4)
    own = now.gather(-1, found.top.token_RTJ[:, 1:])
    whole = TeacherTop(found.top.token_RTJ[:, 1:], found.top.teacher_logp_RTJ[:, 1:], own)
    tokens = dataclasses.replace(token_batch([[-1]]), top=whole, mask_RT=inside)
    loss_RT = get_component("loss", "distill").build({})(tokens).loss_RT
    kl = (before.exp() * (before - now)).sum(-1)
    assert torch.allclose(loss_RT[inside], kl[inside], atol=1e-3)
    assert float(kl[inside].mean()) > 0.01
