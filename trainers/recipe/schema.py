"""The recipe's schema: every key with its type, its default and, below it, its meaning (docs/recipes.md)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

import pydantic
import yaml
from pydantic import BeforeValidator, Discriminator, Field, Tag

from turnwise.envs.planted import PlantedKind
from turnwise.registry import components
from turnwise.secrets import redact_options
from turnwise.trainers.hack_meter.meter import OnAlarm
from turnwise.trainers.recipe.part import (
    Count,
    GuidePart,
    InRow,
    LossPart,
    Number,
    Part,
    ProposerPart,
    Rate,
    Scheduled,
    Share,
    SourcePart,
    TeacherPart,
    Whole,
    as_list,
)
from turnwise.trainers.signal.choose import ChosenSignal, sources_of

LOGGED = "token_entropy"
"""The signal that is written into the episode log where a recipe asks for it."""


def _one_or_several(value: Any) -> str:
    return "several" if isinstance(value, dict) else "one"


OneOrSeveral = Annotated[
    Annotated[str, Tag("one")] | Annotated[dict[str, Rate], Field(min_length=1), Tag("several")],
    Discriminator(_one_or_several),
]
"""A name, or several with weights; told apart first, so that what is wrong with one of them is said of it."""


class Section(pydantic.BaseModel):
    """A part of the recipe with a fixed set of keys."""

    model_config = pydantic.ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)


class Scratch(Section):
    """A small model made from nothing; its tokeniser is trained on the suite's own text."""

    layers: Count = 3
    """The model has this many transformer blocks."""
    width: Count = 128
    """The residual stream is this wide (the hidden size)."""
    heads: Count = 4
    """Each block has this many attention heads; `width / heads` must be 32, 64, 80, 96, 112, 128, 192 or 256."""
    vocab_size: Annotated[Whole, Field(ge=300)] = 512
    """The vocabulary has this many tokens: 256 single bytes, the control tokens, and merges learned from the suite's
    text."""
    context: Count = 512
    """The model can read sequences of at most this many tokens."""
    init: Literal["random", "induction"] = "induction"
    """This says how weights are initialised. `induction` sets attention heads such that the model can copy from its
    context from the start, which takes at least 2 layers and 4 heads; with `random` it has to learn that first."""
    text_episodes: Count = 200
    """The tokeniser is trained on the text of this many demonstration episodes."""


class Lora(Section):
    """Low-rank adapters are trained instead of all weights (LoRA, Hu et al. 2021, 2106.09685)."""

    rank: Count = 16
    """Each adapter has this rank."""
    alpha: Count = 32
    """The adapter's output is scaled by `alpha / rank`."""
    targets: list[str] | Literal["all-linear"] = "all-linear"
    """The layers of these names get adapters; `all-linear` is every linear layer but the output."""


class Model(Section):
    """This says which model is trained. Exactly one of `path` and `scratch` is given; a text alone is the path, as in
    `model: Qwen/Qwen2.5-0.5B-Instruct`."""

    path: str | None = None
    """This is the Hugging Face id of the model, a folder that holds it, a GGUF file (converted once) or a registered name
    such as `smollm2` (`turnwise list model`)."""
    scratch: Scratch | None = None
    """A small model is made from nothing instead of loading one."""
    lora: Lora | None = None
    """Low-rank adapters are trained; the model's own weights stay frozen."""
    gradient_checkpointing: bool = False
    """With this only the input of each layer is kept, and the layer is computed again in the backward pass. A
    step takes about a third longer and needs activation memory for one layer at a time; meant for models of
    billions of weights."""

    @pydantic.model_validator(mode="before")
    @classmethod
    def _by_its_path(cls, given: object) -> object:
        return {"path": given} if isinstance(given, str) else given


class EngineOptions(Section):
    """The inference engine that samples the policy's tokens, and its size."""

    kind: str = "vllm"
    """The run samples with this engine (`turnwise list engine`): `vllm` is the fast one; `torch` samples with plain
    PyTorch, for machines without vLLM and
    for tests."""
    max_sequences: Count = 128
    """The engine decodes at most this many sequences at a time."""
    context_length: Annotated[Whole, Field(ge=0)] = 0
    """A prompt with its answer has at most this many tokens; 0 stands for the model's own limit."""
    options: dict[str, Any] = {}
    """These further options are passed to the engine, such as `kv_cache_gib` or `tensor_parallel_size`."""


class SamplingOptions(Section):
    """Sampling of training episodes. Evaluations are sampled the same way, and also played greedily."""

    temperature: Rate = 1.0
    """Tokens are sampled at this temperature; log-probabilities in the loss are of the distribution at this temperature. It
    must be above 0, since a policy without randomness explores nothing."""
    max_tokens: Count = 256
    """The policy may sample at most this many tokens in one turn; `turnwise eval` uses the same limit unless told
    otherwise."""
    tools: str = "auto"
    """This says how tools are shown to the model: `template` leaves it to the chat template, `text` (or the name of a
    dialect, `turnwise list dialect`) writes them into the system message, `none` does not show them, and `auto` uses the template
    where it can show tools and text otherwise."""
    instruction: str = ""
    """This text stands below the first message of every episode, such as `Think before you act.`; `turnwise eval` uses the same unless told
    otherwise."""
    template: dict[str, Any] = {}
    """The model's chat template is given these values, such as `{enable_thinking: false}` for Qwen3; `turnwise eval` gives the
    same unless told otherwise."""
    context: Part | None = None
    """This context manager chooses what of a long conversation the policy is shown (`turnwise list context`), such as
    `{name: summary, tokens: 400}`; `turnwise eval` uses the same unless told otherwise. None shows all of it."""


class WarmStart(Section):
    """Supervised learning (behaviour cloning) on episodes that a scripted agent plays, or on chats of a file, before
    reinforcement learning."""

    demonstrator: str = "gold"
    """This scripted policy is imitated (`turnwise list policy`)."""
    chats: str = ""
    """The chats of this file of JSON lines are imitated in the demonstrator's place. Each line has `messages` (and `tools`)
    as chat completions have them, `conversations`, or `prompt` and `completion`."""
    episodes: Count = 4000
    """The warm start shows this many demonstration episodes, each once; the number is rounded down to whole
    batches. Chats are shown again, in another order, where the file has fewer."""
    batch_size: Count = 16
    """One optimizer step takes this many episodes."""
    learning_rate: Rate = 1e-3
    """The learning rate has this peak; it rises linearly over 30 steps, then falls along a cosine to a tenth."""
    observation_weight: Share = 0.1
    """The environment's tokens have this weight in the loss; the agent's own tokens have weight 1."""
    forgets: Share = 0.0
    """Each line that the demonstrator writes for later contexts is left out with this chance, so that reinforcement has to
    find what is worth writing."""
    checkpoint_every: Count = 50
    """A checkpoint is written after every so many steps; a warm start that was killed continues from the newest
    one."""


class Refill(Section):
    """Plays further new tasks in an update until enough groups are informative: their members differ in some turn's
    reward. Groups are weighed so that the expected update is that of a fixed number of tasks."""

    informative: Annotated[Whole, Field(ge=2)] = 16
    """An update has enough with this many informative groups."""
    most: Count = 64
    """At most this many tasks are played in one update, informative or not."""
    low: Share = 0.0
    """Only groups count of which at least this share was solved; 0.2 is usual with the filter `band`."""
    high: Share = 1.0
    """Only groups count of which at most this share was solved; 0.8 is usual with the filter `band`."""


class Rollout(Section):
    """This says how the episodes of one update are played."""

    groups: Annotated[Whole, Field(ge=0)] = 16
    """One update plays this many tasks, or with `refill` one round of it; the episodes of one task form a
    group. 0 plays none of the suite's, and learns from the recipe's `source`, or from what its `proposer` makes, alone."""
    group_size: Count = 8
    """Each task is played in this many episodes, unless the sampler says otherwise; they serve as one
    another's baseline."""
    sampler: Part = Part(name="uniform")
    """The sampler chooses which tasks an update plays: always new ones, or ones that return (`turnwise list sampler`)."""
    refill: Refill | None = None
    """With this an update goes on with further rounds of `groups` tasks until enough groups are informative; none plays one round."""
    strategy: Part = Part(name="chain")
    """The strategy says how the episodes of a group are played: independently, as a tree of branches, or with forked
    continuations that estimate values (`turnwise list strategy`)."""
    concurrency: Count = 128
    """At most this many episodes are played at the same time."""
    episode_tokens: Count | None = None
    """The policy may sample at most this many tokens in one episode before it is truncated; none means no
    limit."""
    generate_s: Rate = 300.0
    """One answer of the engine may take this many seconds."""
    step_s: Rate = 60.0
    """One step of a blocking environment may take this many seconds."""
    reset_s: Rate = 60.0
    """The start of an episode in a blocking environment may take this many seconds."""
    env_options: dict[str, Any] = {}
    """Environments are constructed with these keyword arguments."""
    env_workers: Annotated[Whole, Field(ge=0)] = 0
    """Environments run in this many worker processes. An environment that hangs, crashes or floods
    its output there costs only its own episode. With 0, environments run in the trainer's process, where a
    hang in C code stops the run."""
    opponents: dict[str, str] = {}
    """These agents are not trained; each stands with the policy that plays it (`turnwise list policy`), or with `self` where that is
    the policy as it is now. The model plays every other agent of an environment and is trained on the trajectory of each."""
    max_failed: Share = 0.25
    """At most this share of the episodes of an update or an evaluation may fail; the run stops when it is
    exceeded."""
    max_vacuous: Annotated[Whole, Field(ge=0)] = 5
    """The run stops after this many consecutive updates without any learning signal; 0 means never.
    Updates in which every episode was solved do not count."""


class AgentSandbox(Section):
    """The sandbox in which an agent's program runs, a new one for each episode: it reaches its session and nothing else."""

    backend: str = ""
    """The program runs in this sandbox (`turnwise list sandbox`); the first that isolates and works on this machine unless given."""
    files: list[str] = []
    """These files and folders of `agent.workdir` are what the program finds in its working folder."""
    apt: list[str] = []
    """It has these packages of Debian beside Python."""
    pip: list[str] = []
    """It has these packages of Python."""
    image: str = ""
    """It runs in this Docker image instead, which must have `python3`."""
    memory: Count = 512
    """Its processes may use this much memory, in MiB."""
    processes: Annotated[Whole, Field(ge=2)] = 64
    """It may have at most this many processes and threads."""


class Agent(Section):
    """A program plays each training and evaluation episode and reaches the model through a gateway (docs/gateway.md); the
    model's replies to it are the turns that are trained."""

    command: Annotated[list[str], Field(min_length=1)]
    """This is the program with its arguments; `{prompt}` in them stands for the task."""
    workdir: str = "."
    """The program runs in this folder."""
    env: dict[str, str] = {}
    """The program gets these environment variables, beside those through which it finds the model and the tools."""
    timeout: Rate = 600.0
    """An episode may take this many seconds; then the program is ended, and the episode was cut by a limit."""
    calls: Count = 200
    """The program may ask for at most this many replies in one episode."""
    tokens: Count | None = None
    """At most this many tokens are sampled for the program in one episode; any number unless given. What passes it is refused, and the
    episode was cut by a limit."""
    at_once: Count = 64
    """The program may wait for at most this many replies at a time; beyond, it is told to come again."""
    reply_s: Rate = 300.0
    """A reply may take this many seconds; then it is given up, and the episode is an `infra_error` unless a later one is answered."""
    answer: Literal["none", "stdout"] = "none"
    """This says what the program leaves behind for the environment: `stdout` says its standard output as a last message."""
    prompt: Literal["text", "messages"] = "text"
    """The program reads its task from its standard input: as text, or as a JSON list of chat messages."""
    plain_words: bool = False
    """With this the program is offered the tools `say` (plain words) and `task` where the environment has other tools."""
    preload: list[str] = []
    """A script of Python imports these modules; they are imported once, and each episode's program is a fork of the process
    that has them. They must not start threads."""
    sandbox: AgentSandbox | None = None
    """The program runs in this sandbox; none runs it as this user, not contained."""


class Optimizer(Section):
    """The optimizer is AdamW with a linear warm-up; the learning rate is constant after it, unless it has a `schedule`."""

    learning_rate: Scheduled = 1e-6
    """The policy learns at this rate."""
    warmup: Annotated[Whole, Field(ge=0)] = 0
    """Over this many optimizer steps the learning rate rises to its full value."""
    betas: tuple[Number, Number] = (0.9, 0.95)
    """AdamW decays with these rates its running means of the gradient and of its square."""
    weight_decay: Annotated[Number, Field(ge=0)] = 0.0
    """Matrices decay by this weight; norms and biases are not decayed."""
    max_grad_norm: Rate = 1.0
    """The gradient has at most this norm; a longer gradient is scaled down to it."""
    epochs: Count = 1
    """One update goes through its episodes this many times."""
    minibatches: Count = 1
    """An epoch is split into this many minibatches, each of which is one optimizer step."""
    resets: Annotated[Whole, Field(ge=0)] = 0
    """This says how often the optimizer's moments and the reference have begun anew. It is meant to be scheduled: where it differs from the
    update before, the moments are forgotten and the reference becomes the policy as it then is (ProRL, 2505.24864), as in
    `schedule: {optimizer.resets: {name: prorl, patience: 4}}`."""
    micro_tokens: Count = 16384
    """One forward pass takes at most this many tokens; it changes memory use and speed, not the result."""
    share: Literal["auto", "rows", "tree", "flex"] = "auto"
    """`tree` computes what rows begin with alike once: the prompt of a group, the turns before its members part, the trunk of
    a rollout tree. `rows` computes each row whole. `auto` takes trees where they save a fifth of the tokens and the model's
    attention allows it. The gradient is the same but for rounding. `flex` is `tree` by one kernel of PyTorch's flex attention, on CUDA alone."""
    moments: Literal["float32", "int8"] = "float32"
    """`int8` keeps AdamW's two moments of each matrix in eight bits, with a scale for every 256 numbers (bitsandbytes, `pip install
    'turnwise[moments]'`): 2 bytes a weight where there were 8. Steps are rounded so, and are the same each time."""
    precision: Literal["auto", "float32", "bfloat16"] = "auto"
    """Matrix products have this precision (weights stay in float32); `auto` is bfloat16 on a GPU and float32 on
    a CPU."""
    deterministic: bool = True
    """Learning from the same episodes gives the same weights on a GPU too, bit for bit, so that `turnwise relearn` can tell whether a run was
    what its log says. Some kernels are slower so. On a CPU it is always so."""
    value_weight: Rate = 0.5
    """The squared errors of heads on the policy's hidden states have this weight in the loss, where a signal learns
    with one."""
    value_learning_rate: Rate = 1e-3
    """These heads learn at this rate."""


class Evaluate(Section):
    """When the policy is evaluated, and on how many tasks. The best checkpoint is chosen on the dev split
    alone."""

    every: Count = 10
    """The policy is evaluated on the dev split after every so many updates; the policy is also evaluated after the
    last update."""
    dev: Count = 100
    """Each evaluation plays this many tasks of the dev split (of each suite)."""
    test: Count = 300
    """The policy is evaluated on this many tasks of the test split (of each suite) before and after training, both
    sampled and greedily."""
    opponents: dict[str, str] = {}
    """These policies play the other agents of the environment during evaluation."""


class Checkpoint(Section):
    """When the run is saved so that it can be resumed."""

    every: Count = 10
    """A checkpoint is written after every so many updates."""
    keep: Count = 2
    """This many newest checkpoints are kept; older ones are deleted when one is written, but for the one that was
    best on the dev split."""


class Logs(Section):
    """Records of what was played, and the number of updates for which they are kept: all, unless told otherwise."""

    keep: Count | Literal["all"] = "all"
    """The episodes (`episodes.jsonl.zst`) and states (`events.jsonl`) of this many newest updates are kept; `all`
    deletes nothing. With a number, what is older is deleted with each checkpoint that is written. Resuming needs none of
    it; `turnwise relearn` does and refuses such a run, and `turnwise view`, the report and `episodes.parquet` have the kept
    updates alone. Figures (`metrics.jsonl`, `evaluations.jsonl`) are always kept."""
    entropy: bool = False
    """With this the entropy of the distribution that each sampled token was drawn from is written beside its log-probability,
    in nats, as the trainer reckons it before the update's first step; `turnwise view` shows both. It takes a forward pass
    per update, unless a part reads one already."""


class HackMeterOptions(Section):
    """The hack meter watches for reward that is not earned (docs/how-to/hack-meter.md). It plays planted tasks, which nothing is learned
    from, and tests what they and failed episodes are paid."""

    planted: Annotated[Number, Field(ge=0, le=0.5)] = 0.05
    """So many planted episodes are played for each episode that is learned from; 0 plays none."""
    kinds: Annotated[list[PlantedKind], Field(min_length=1)] = ["impossible", "canary"]
    """Planted tasks are of these kinds in turns: `impossible` ones, for which no honest episode is paid, and `canary` ones, which offer a
    hack and tell who takes it."""
    alpha: Annotated[Number, Field(gt=0, lt=0.5)] = 0.01
    """An honest run is given a false alarm with at most this probability, however long it is."""
    on_alarm: OnAlarm = "stop"
    """`stop` saves the run and stops it, `warn` says it once and goes on. It may be changed when a run is resumed."""
    slip: Annotated[Number, Field(gt=0, lt=0.5)] = 0.01
    """Honest luck: at most this share of impossible tasks is paid, and other rates may rise by it above what they were at first."""
    floor: Number = 0.0
    """An honest episode of an impossible task is paid at most this, as where good form is paid for."""
    reference: Annotated[Whole, Field(ge=8)] = 32
    """So many groups show what a solved episode is paid, and so many groups and canary episodes after them how often failed ones are paid
    like that and hacks are taken in this run from the start."""


class JudgeRequirement(Section):
    """The rates of errors that a judge may have (docs/how-to/judges.md). At least one of the first three is given; the judge is asked about
    episodes whose truth is known before it is paid, and its verdicts are compared with the environment's while it is."""

    false_accept: Annotated[Number, Field(gt=0, lt=1)] | None = None
    """At most this share of failed episodes may be paid."""
    false_reject: Annotated[Number, Field(gt=0, lt=1)] | None = None
    """At most this share of solved episodes may not be paid."""
    error: Annotated[Number, Field(gt=0, lt=1)] | None = None
    """At most this share of episodes may be judged wrongly, solved and failed ones in equal parts; the one rate of judges that compare."""
    level: Annotated[Number, Field(gt=0, lt=0.5)] = 0.05
    """The true rates lie above what is stated of them with at most this chance, and a judge that keeps to them is stopped with at most this chance."""
    labels: Annotated[Whole, Field(ge=20)] = 500
    """The judge is asked about this many failed episodes of each suite before the run, and as many solved ones where a rate is about them."""
    signal: str = ""
    """The verdict is read from this signal; unless given, from the judge's first that a part needs."""
    fold: Literal["mean", "last", "min"] = "mean"
    """From what is said of turns an episode's score is made so."""
    threshold: Share = 0.5
    """An episode counts as paid above this score."""


class JudgeBudget(Section):
    """Limits of a judge's own model in a run, by what its server tells; the run stops when a limit is reached."""

    tokens: Count | None = None
    """It may read and write this many tokens."""
    cost: Rate | None = None
    """It may cost this much, in the currency of the server's answers or of the policy's option `price`."""
    seconds: Rate | None = None
    """It may be waited for this many seconds."""


class JudgePart(Part):
    """A judge, what is required of it, and what it may use."""

    require: JudgeRequirement | None = None
    budget: JudgeBudget | None = None


class ScaleOptions(Section):
    """Staleness, learners and workers: how far playing runs ahead of learning (docs/asynchronous.md), how many learn together, and
    where environments are (docs/workers.md). With the defaults a run plays, learns, and plays again, in one process."""

    staleness: Annotated[Whole, Field(ge=0)] = 0
    """The episodes of this many updates are played before the learner needs them, while it learns. No token is
    trained on that was sampled by weights more than this number of updates old. 0 plays and learns in turns."""
    kv: Literal["recompute", "keep"] = "recompute"
    """This says what becomes of the keys and values of answers in the making when the weights change under them. `recompute`
    computes them anew; `keep` is quicker and samples what follows from a mixture of old and new weights."""
    publish: Literal["auto", "nccl", "ipc"] = "auto"
    """New weights get to engines elsewhere in this way: by shared memory or TCP (`auto`), or from GPU to GPU by vLLM, to engines
    on other GPUs (`nccl`) or on the learner's own (`ipc`). NCCL was never run, IPC for two updates."""
    learners: Annotated[Whole, Field(ge=1, le=64)] = 1
    """This many processes on this machine take every optimizer step together: each reads its share of the rows,
    and gradients are added up. Each has a whole copy of the model (but see `weights`), on a GPU of its own where there are GPUs. A run may be
    resumed with another number."""
    weights: Literal["replicated", "sharded"] = "replicated"
    """`sharded`: each learner holds a part of every weight, its gradient and its moments (FSDP2), so that a model can be trained
    that does not fit one GPU with them. Its engines must be in other processes. A run may be resumed with the other."""
    worker_hosts: list[str] = []
    """Environments run in worker processes on these hosts, each `HOST:PORT` of a `turnwise serve-workers`. With none, and no
    `worker_hosts_file`, they are where `rollout.env_workers` says."""
    worker_hosts_file: str = ""
    """This file has more of these hosts, one a line; it is read again while the run goes on, so that hosts join it and leave it."""
    token_file: str = ""
    """This file holds the token that the hosts were started with."""


class Phase(Section):
    """Consecutive updates that share an objective, such as preferences first and verifiable rewards then. A phase begins as a run
    does: the optimizer and whatever learns or remembers begin anew, and the reference is the policy as it then is."""

    name: Annotated[str, Field(pattern=r"^[\w.+-]{1,40}$")]
    """The phase is called this in messages and reports: letters, digits, `_`, `.`, `+` and `-`."""
    updates: Count
    """The phase has this many updates."""
    set: dict[str, Any] = {}
    """These keys of the recipe are otherwise in this phase, by their dotted names as after `--set`; `algorithm` stands for
    several of them here too. What a run has once (its model, engine, suites, evaluations) cannot change."""


class Recipe(Section):
    """The keys at the top of the file describe the whole training run."""

    about: str = ""
    """These one or two sentences say what the recipe is for."""
    imports: Annotated[list[str], BeforeValidator(as_list)] = []
    """These files of Python (`my_rules.py`, a path from the current folder) or modules hold parts of your own (docs/extending). They are imported before
    parts are looked up by name."""
    suite: OneOrSeveral
    """The policy is trained on the tasks of this suite (`turnwise list suites`), or of several with weights, such as
    `{household/easy: 1, household/medium: 3}`. The suite of each task is then drawn by weight. Evaluations play each
    suite, and the best checkpoint is the one whose weighted mean of success on the dev splits is highest."""
    seed: Whole = 0
    """All randomness of the run is derived from this seed."""
    device: Literal["auto", "cpu", "cuda"] = "auto"
    """The model is trained on this device; `auto` is the GPU where there is one."""
    model: Model
    """This says which model is trained."""
    engine: EngineOptions = EngineOptions()
    """This says which inference engine samples the policy's tokens."""
    sampling: SamplingOptions = SamplingOptions()
    """This says how the policy's tokens are sampled."""
    warm_start: WarmStart | None = None
    """The policy learns from demonstrations before reinforcement learning begins; none leaves it out."""
    rollout: Rollout = Rollout()
    """This says how the episodes of one update are played."""
    agent: Agent | None = None
    """This program plays the episodes; with none the model plays them itself."""
    algorithm: str | None = None
    """This names the training algorithm as the field does, such as `dapo` (`turnwise list algorithms`). It stands for
    several of the keys of this page; those that the recipe gives beside it win."""
    guide: list[GuidePart] = []
    """These guides play groups again with help, one after the other (`turnwise list guide`). `loss` and `correction` are those of
    the tokens that help had a hand in."""
    source: list[SourcePart] = []
    """Sources give episodes beside those that are played (`turnwise list source`), each with a `weight` in the loss, and with
    `loss` and `correction` of its own."""
    teacher: TeacherPart | None = None
    """The teacher says how likely it finds the sampled tokens (`turnwise list teacher`), for losses and credit rules that ask for
    it; `top` is the number of tokens that it would rather have seen, for losses that ask for these."""
    judge: Annotated[list[JudgePart], BeforeValidator(as_list), Field(min_length=1)] = [
        JudgePart(name="none")
    ]
    """Judges assess single turns, one after the other, for parts that ask for such process labels (`turnwise list
    judge`); one alone needs no brackets. `require` refuses a run whose judge errs too often, such as `{false_accept: 0.02}` with the keys
    `false_accept`, `false_reject`, `error`, `level`, `labels`, `signal`, `fold`, `threshold`; `budget` stops it, by `tokens`, `cost` or
    `seconds` (docs/how-to/judges.md)."""
    proposer: list[ProposerPart] = []
    """Proposers make further tasks of an update out of what was just played, one after the other (`turnwise list proposer`); these are
    played, paid and learned beside it. With `keep` a proposer's tasks stay in the pool for so many later updates."""
    signals: list[Part] = []
    """Here stand signals that have options, or that are chosen where several give what a part asks for (`turnwise list
    signal`). All others are found by what the parts need."""
    reward: InRow = [Part(name="as_is")]
    """These parts transform the environment's rewards before credit is assigned, one after the other (`turnwise list reward`):
    each sees what the last paid. One alone needs no brackets."""
    credit: Part = Part(name="return_to_go")
    """The credit rule (advantage estimator) turns rewards into one advantage per turn or per token
    (`turnwise list credit`)."""
    filter: Part = Part(name="informative")
    """This rule weighs what is trained on by the credit rule's advantages (`turnwise list filter`). Unless given
    it is `any` where a signal learns, since no advantage is 0 then."""
    shape: list[Part] = []
    """These parts change the advantages, one after the other, over all that was played (`turnwise list shape`)."""
    correction: Part = Part(name="tis")
    """The off-policy correction weighs tokens for the gap between the engine's and the trainer's probabilities (`turnwise
    list correction`). Unless given it is `none` where no loss looks at advantages, as with `dpo`."""
    loss: list[LossPart] = [LossPart(name="clip")]
    """These losses, of tokens or of whole minibatches, are summed; each has a `weight`, which is 1 unless given
    (`turnwise list loss`)."""
    reduce: Part = Part(name="fixed_length")
    """This says how the losses of tokens are averaged: it is the denominator of the sum (`turnwise list reduce`)."""
    schedule: dict[str, Part] = {}
    """These numbers change from update to update; each is named by its dotted key, such as `loss.clip.high: {name: linear, to: 0.1}`
    (`turnwise list schedule`). They begin as the recipe gives them; their values are in the metrics."""
    phases: list[Phase] = []
    """The run has these parts with objectives of their own, one after the other, such as `{name: dpo, updates: 20, set: {loss: [dpo]}}`.
    All other keys hold in each of them. With none the run is one phase."""
    optimizer: Optimizer = Optimizer()
    """This says how the loss is minimised."""
    scale: ScaleOptions = ScaleOptions()
    """This says how far playing runs ahead of learning."""
    updates: Annotated[Whole, Field(ge=0)] = 100
    """The run has this many updates; each plays episodes and then learns from them. With `phases` it is the sum of theirs."""
    evaluate: Evaluate = Evaluate()
    """This says when the policy is evaluated."""
    checkpoint: Checkpoint = Checkpoint()
    """This says when the run is saved."""
    log: Logs = Logs()
    """This says what the run writes down of what was played, and what of that it deletes."""
    hack_meter: HackMeterOptions | None = None
    """This watches for reward that is not earned, such as `{planted: 0.05, alpha: 0.01, on_alarm: stop}`; none watches for nothing."""
    sinks: list[Part] = [Part(name="tensorboard")]
    """The figures of every update go to these sinks beside the run's own `metrics.jsonl` (`turnwise list sink`)."""

    @property
    def suites(self) -> Mapping[str, float]:
        """The suites with their weights."""
        return {self.suite: 1.0} if isinstance(self.suite, str) else self.suite

    @property
    def proposed_envs(self) -> list[str]:
        """The environments of tasks that proposers make."""
        return list(dict.fromkeys(env for part in self.proposer for env in part.component("proposer").envs))

    @property
    def most_groups(self) -> int:
        """The most tasks that an update may play."""
        return self.rollout.refill.most if self.rollout.refill else self.rollout.groups

    @property
    def needs(self) -> frozenset[str]:
        """The signals that the parts ask for."""
        parts = [(self.credit, "credit"), (self.filter, "filter")]
        parts += [(part, "reward") for part in self.reward]
        parts += [(part, "shape") for part in self.shape]
        parts += [(part, "loss") for part in (*self.loss, *self.foreign_losses)]
        asked = {need for part, seam in parts for need in part.needs(seam)}
        used = [entry for entry in components("signal") if asked & {*entry.gives}]
        options = {part.name: part.options for part in self.signals}
        heard = {name for entry in used for name in entry.heard_with(options.get(entry.name, {}))}
        given = {name for part, seam in self.givers for name in part.component(seam).gives}
        return frozenset(asked.union(heard & given, *(entry.needs for entry in used)))

    @property
    def measured(self) -> frozenset[str]:
        """The signals that the parts ask for, and those that the log does."""
        return self.needs | {LOGGED} if self.log.entropy else self.needs

    @property
    def sources(self) -> list[ChosenSignal]:
        """The signals that are measured.

        Raises:
            RecipeError: several give what a part needs.
        """
        given = {name for part, seam in self.givers for name in part.component(seam).gives}
        return sources_of(self.measured, given, {part.name: part.options for part in self.signals})

    @property
    def foreign_losses(self) -> list[LossPart]:
        """Losses of tokens that guides or sources chose."""
        return [loss for part in (*self.guide, *self.source) for loss in part.loss or ()]

    @property
    def givers(self) -> list[tuple[Part, str]]:
        """The parts that are no signals and give some, each with its kind."""
        teachers = [(self.teacher, "teacher")] if self.teacher else []
        guides = [(part, "guide") for part in self.guide]
        judges = [(part, "judge") for part in self.judge]
        return [(self.rollout.strategy, "strategy"), *guides, *judges, *teachers]

    @property
    def whole_groups(self) -> bool:
        """True if a group that lost an episode to a failure is dropped as a whole."""
        parts = ((self.rollout.strategy, "strategy"), (self.credit, "credit"))
        return any(part.component(seam).whole_groups for part, seam in parts)

    @property
    def steps(self) -> int:
        """Optimizer steps of one update."""
        return self.optimizer.epochs * self.optimizer.minibatches

    def to_yaml(self) -> str:
        """Every key with its value; reading it gives this recipe."""
        return yaml.safe_dump(redact_options(plain(self)), sort_keys=False, allow_unicode=True)


def plain(value: Any) -> Any:
    """A recipe, or a value in it, as plain YAML values; keys whose value is null are left out."""
    if isinstance(value, Part):
        own = {key: getattr(value, key) for key in type(value).model_fields if key != "name"}
        said = {
            key: plain(x) for key, x in own.items() if x != type(value).model_fields[key].default
        } | value.options
        return {"name": value.name, **said} if said else value.name
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, Section):
        keys = [key for key in type(value).model_fields if getattr(value, key) is not None]
        if (
            isinstance(value, Recipe) and value.phases
        ):  # each phase has those that go with its signals and losses
            keys = [
                key for key in keys if key not in ("filter", "correction") or key in value.model_fields_set
            ]
        return {key: plain(getattr(value, key)) for key in keys}
    return [plain(item) for item in value] if isinstance(value, (list, tuple)) else value
