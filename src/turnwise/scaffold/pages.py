"""A page for each kind of component: ``python -m turnwise.scaffold.pages`` writes docs/extending, and the kinds into the form for issues."""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from turnwise.kinds import KINDS
from turnwise.requirements import requirements
from turnwise.scaffold import part_source

FORM = ".github/ISSUE_TEMPLATE/new-part.yml"


class PageText(NamedTuple):
    """Text of a page that the registry does not know."""

    form: str  # what is registered
    use: str  # how a run, a spec or an environment names it
    more: str = ""


TEXTS: Mapping[str, PageText] = {
    "sampler": PageText(
        "A subclass of `Sampler`, made with a `SamplerSetup` (the suites with their weights, the seed, the numbers of groups and episodes, where its phase begins).",
        "rollout: {sampler: {name: mine, times: 3}}",
        "`plan(update, played, groups)` gives the next tasks of an update, with chance from (seed, update) alone; `seen` is told what came of them; what it remembers is in `state()`. `returns = True` says that tasks come back.",
    ),
    "strategy": PageText(
        "An async function from a `RolloutRunner` and a plan (the requests of an update, group by group) to groups.",
        "rollout: {strategy: mine}",
        "What it measures goes into `Turn.signals` under names that it declares in `gives`. `whole_groups=True` says that a group which lost an episode means nothing.",
    ),
    "guide": PageText(
        "An async function from a `GuidePlayer` and the groups of an update to as many groups, some of whose episodes it had played again.",
        "guide: [mine]   # loss and correction of its tokens: guide: [{name: mine, correction: none}]",
        "Turns that the policy did not choose itself carry `guide/mine` in `Reply.source`; with `Turn.weight` 0 they are read and not learned. An action that was sampled under one prompt and is learned under another has the other one in `Reply.scored_ids`. What goes on from a moment of an episode (`moments`, `go_on`) shares its turns with it: one of the two reads them, or the guide declares `shared_turns=True`. A guide that remembers is a class with `async __call__(player, groups)`, `state` and `restore`, made with its options; if it has the property `instead` and that is true, nothing is played before it. One whose every episode stands where one counted and failed says so by `replaces_failures = True`, and may stand beside a sampler that adds episodes by how many succeeded. Signals that it writes into turns are declared in `gives`.",
    ),
    "judge": PageText(
        "An async function from groups to groups, with signals of each turn.",
        "judge: mine",
        "The signals' names are declared in `gives`. A judge that can have no effect, because no part needs what it gives, is refused. One that remembers is a class with `async __call__(groups)`, `state` and `restore`, made with its options.",
    ),
    "proposer": PageText(
        "A pure function from a `ProposerContext` to a list of `TaskProposal`s: tasks that the same update plays beside what the sampler chose.",
        "proposer: [{name: mine, most: 4, keep: 10}]",
        "`played` are the groups of the update so far, with what judges wrote and before rewards; those of earlier proposers come last. `pool` holds the "
        "tasks of earlier updates that are kept, for as many as `keep` says. Chance comes from `rng`. Since it is pure, `turnwise relearn` asks it again from "
        "the log: what a policy is to propose, it says in an environment, and the proposer reads that. A task on which the run is evaluated stops the run; "
        "where tasks are what a policy says, ask `held_out` and leave such out. `envs` names the environments of its "
        "tasks, beside those of the suites. Their figures are `success/pool:mine`, `groups_proposed` and `pool`.",
    ),
    "reward": PageText("A pure function from a group to a group with other rewards.", "reward: mine"),
    "source": PageText(
        "An async function from a `SourceContext` and the number of the update to a `SourceDraw`: episodes that are shown (imitated), and groups that join what is played. A class if it remembers.",
        "source: [{name: mine, weight: 0.1}]   # loss: [nll] and correction: none unless given",
        "Chance comes from the run's seed and the update alone. Log-probabilities that nobody knows are left empty. What was played for "
        "the update is in `SourceContext.played`; a source that looks at it declares `reads=(PLAYED,)` (`turnwise.kinds`).",
    ),
    "teacher": PageText(
        "A subclass of `Teacher`, made with a `TeacherSetup`: a `model` (None: the policy itself), and the rows that it reads.",
        "teacher: {name: mine, top: 16}\nloss: [distill]",
        "Losses and credit rules ask for `token_teacher_logp`, losses also for `teacher_top`, the `top` tokens that it finds likeliest. `learned` is called after each update.",
    ),
    "schedule": PageText(
        "A function from a `ScheduleMoment` (the update, the number that the recipe gives, the last value, the metrics of the update before) to a number.",
        "schedule: {loss.clip.high: {name: mine, every: 20}}",
        "It begins with the recipe's number. What it returns is in the metrics as `schedule/KEY`.",
    ),
    "signal": PageText(
        "A function from a `SignalContext`, a `TrainingBatch` and its groups to `Measured`; or, if it learns or remembers, a subclass of `Signal`, made with a `SignalSetup`.",
        "credit: a_rule_that_needs_it   # signals: [{name: mine, …}] sets its options",
        "It is measured where a part asks for one of the names in `gives`. `reads` says what it looks at; one that reads the policy's forward pass returns a `Reading` and shares the pass with others. A head in `module` is trained in the policy's own passes, by the errors that `gaps` gives. `reward: {name: from_signal, signal: mine}` pays it.\n\n"
        "A rule reads it by its name: `signal(batch, 'mine_size')` (`turnwise.trainers.kit.groups`), of turns (B, K) or of trajectories "
        "(B,). Losses read what is of tokens, under a name that begins with `token_`: `batch.signals['token_mine']` (R, T). In an example, "
        "`turn_batch([[0.0, 1.0]], signals={'mine_size': [[2.0, 2.0]]})` makes a batch that has it: lists of lists are per turn, one list is "
        "per trajectory.\n\n"
        "The words of `reads` are `tokens`, `forward pass`, `context`, `copy of the policy`, `rewards`, `outcomes`, `gold` and `memory`. "
        "`SignalContext` has `needs`, `learner`, `tokenizer`, `renderer`, `context` and `env_options`. `TrainingBatch` has `turns` (what "
        "credit rules see), `rows` (what losses see), `success_B`, `weight_BK`, `sources` and `top`. `Measured` holds figures of turns "
        "(`turn`), of tokens (`token`), and `metrics` for the log.\n\n"
        "Credit rules are checked on small processes, where there is no text to measure. `stand_in` says what the signal is there: a function "
        "of an `ExactProcess` to figures by name, such as `stand_in=lambda p: {'mine_size': 2 + wave(p)}` "
        "(`turnwise.trainers.kit.stand_in`). Without it, `turnwise check` cannot test a rule that needs the signal.",
    ),
    "search": PageText(
        "An async function from a `Searcher` to nothing: it plays further tries, scores them, and keeps the best.",
        "turnwise eval shop/easy --policy vllm:PATH --search mine:n=8 --budget 4000 --scorer judge:openai:MODEL@URL",
        "The searcher has played plainly already (`first`, from `root`). `again` plays another whole episode; with `forks=True`, "
        "`expand`, `step` and `play_on` go on from states in the middle. `offer` keeps what the scorer likes best, `keep` what the search "
        "does. Whatever samples raises `BudgetSpent` once the budget is spent, which ends the search with what was kept, so that no search "
        "counts tokens itself. A `SearchNode` shows what was said, and neither rewards nor how an episode ended; `verdict` tells that to "
        'scorers that declare `oracle`, and everything they choose is labelled so. `needs=("scorer",)` says that a scorer must be named.',
    ),
    "filter": PageText(
        "A function from a `TurnBatch` and the credit rule's advantages to a weight of at least 0 for each trajectory (B,).",
        "filter: mine",
        "It sees all that was played, and the advantages before any shape. What has weight 0 is not read by the learner and counts in denominators.",
    ),
    "shape": PageText(
        "A function from advantages, of turns (B, K) or a `TokenCredit`, and the `TurnBatch` to advantages of turns or of tokens.",
        "shape: [mine]",
        "`bias` says what it does to the expected update, in the words of [credit rules](credit.md). `needs` names the signals that a run must measure. Where advantages differ within a turn and its meaning would be lost, it raises a `RecipeError`, which is found when a recipe is read: shapes are tried on a small batch.",
    ),
    "credit": PageText(
        "A function from a `TurnBatch` to an advantage for each turn (B, K), or to a `TokenCredit` (R, T).",
        "credit: {name: mine, scale: 0.5}",
        "`bias` is `unbiased`, `biased: why` or `changes the objective: to what`; it is measured on five exact processes. `needs` names the signals that a run must measure; `signal(batch, 'entropy')` (`turnwise.trainers.kit.groups`) reads one. A signal of your own needs a `stand_in`, so that the rule can be checked ([signals](signal.md)).",
    ),
    "correction": PageText(
        "A function from a `TokenBatch` to weights of at least 0 (R, T), which multiply the advantages.",
        "correction: {name: mine, cap: 3.0}",
    ),
    "loss": PageText(
        "A function from a `TokenBatch` to a `TokenLoss`: a loss for each token (R, T), not reduced, and metrics. With `whole=True` it is a function from a `WholeBatch` to a `WholeLoss`: a scalar of a whole minibatch.",
        "loss: [mine, {name: kl, weight: 0.01}]",
        'A row\'s token losses may depend on that row alone; batch statistics, pairs, groups and sums over a trajectory are for losses of the whole, which see every log-probability of the minibatch as a leaf. `slope` is the slope in the log-probability of a fresh sample: `-A`, `-c·A` with a positive c for each token, or `own`. A loss of the whole may be a class with `state()` and `restore()`, which checkpoints keep. `needs=("reference",)` asks for the log-probabilities of the reference model; the signals that a loss of the whole needs are in `batch.signals`.',
    ),
    "reduce": PageText(
        "A function from the `RowMask` of a whole minibatch to a weight for each token (R, T).",
        "reduce: mine",
        "`bias` says what the denominator does to the expected update, in the words of [credit rules](credit.md).",
    ),
    "sink": PageText(
        "A class made with the run's folder and the newest update that counts, with `write(update, metrics)` and `close()`.",
        "sinks: [tensorboard, mine]",
        "After a resume, updates that were written by the interrupted process come again.",
    ),
    "engine": PageText(
        "A class made with a model (a folder or a Hugging Face id) that has `version`, `context_length`, async `generate(…)` and `close()`; to sample for a run also `dtype`, `score(…)` and `load_weights(weights, version)`, which takes `kv=…` where weights may change under requests in flight (`scale.staleness`). One that several runs can reach may have `belongs_to(run)`, called before it gets weights, and a static `check(run, **options)`, called before anything is spent. One that keeps a model's weights may have `load_adapters(weights, version)`, and is then sent the adapters of `model.lora` alone. `turnwise serve-engine --kind mine` serves one that has the methods of `ServedEngine` (`agents/remote/server.py`), or a static `serve(model, door, token_file, ready, **options)` of its own.",
        "engine: {kind: mine}   # or --policy mine:PATH",
        "`device`, `context_length` and `max_sequences` are given by the run; its other keyword-only parameters are what `engine.options` may set. `requires` names modules that must be installed.",
    ),
    "model": PageText(
        "A function without parameters that returns where the model is: a Hugging Face folder, a GGUF file (converted once, into the cache) or a Hugging Face id.",
        "model: mine   # or --policy vllm:mine, torch:mine",
        "`requires` names modules that must be installed, by which `turnwise doctor` says whether it is ready. The name comes before a folder that is called the same, which is then written `./mine`.",
    ),
    "policy": PageText(
        "A function from what stands after the colon of the spec, and `PolicyOptions`, to a `Policy`.",
        "turnwise eval shop/easy --policy mine",
        "`form` tells how the spec is written (`mine:MODEL@URL`); `files` gives the files that decide how it plays, so that an evaluation notices when they change. A policy for yourself alone needs no registration: `--policy python:FILE.py:OBJECT`.",
    ),
    "context": PageText(
        "A function from a `TalkSoFar` (what was said before the first action, and each message of the policy with its answer) to what is `ContextShown`.",
        "sampling: {context: {name: mine}}   # or turnwise eval SUITE --policy vllm:PATH --context mine:OPTION=VALUE",
        "It is a pure function, so that a resumed or forked episode is shown the same. `ContextShown(messages, ask=…)` has the policy write for its own later contexts: its reply makes a turn of kind `memory`, of which the environment is not told, and which stands among `talk.passages` from then on. A reply that calls nothing but `ContextShown.tools` makes such a turn, too. Between two actions there is at most one. `talk.size` counts tokens of messages, and `talk.frame` those of a prompt that are of no message.",
    ),
    "dialect": PageText(
        "A `Dialect`: `render` writes calls as text, `parse` reads them, `usage` tells a model how.",
        "sampling: {tools: mine}",
        "What cannot be read is `ParsedText.error`, never an exception, since it is the model that is informed.",
    ),
    "sandbox": PageText(
        "A `Backend` with `status()` and `start(image, limits)`.",
        "rollout: {env_options: {backend: mine}}",
        "`lacks` names the checks of the conformance suite that it does not claim, with reasons. Only a backend that declares `isolates=True` is chosen without being asked for. See [sandboxes](../sandboxes.md).",
    ),
}


def page(kind: str) -> str:
    """The page of a kind."""
    text = TEXTS[kind]
    required = "\n".join(
        f"- **{name}**: {inspect.cleandoc(test.__doc__ or '').partition(chr(10))[0]}"
        for name, test in requirements(kind).items()
    )
    more = f"\n\n{text.more}" if text.more else ""
    return f"""# {"An" if kind[0] in "aeiou" else "A"} {kind} of your own

This page is written by `python -m turnwise.scaffold.pages`; a test keeps it up to date and runs its example.

{KINDS[kind].about} {text.form}{more}

Keyword-only parameters are options; each has a type and a default.

```python
{part_source(kind, "mine").strip()}
```

It is used by its name:

```
{text.use}
```

`turnwise check path/to/file.py` (or `module:Name`) tests it as it is. A recipe finds it by `imports: [path/to/file.py]`, and a program
that imports the file by its name, as in `import my_file; turnwise.train("my.yaml")`. To share it, put it into a package:
`turnwise new-part {kind} mine` writes one with its test. Its `pyproject.toml` has an entry point, which names a module
that registers, or a function that does so:

```toml
[project.entry-points."turnwise.plugins"]
turnwise_mine = "turnwise_mine"
```

After `pip install -e .`, `turnwise list {kind}` shows it with its package, and `turnwise check {kind}/mine` tests what
is required of every {kind}:

{required}
"""


def index() -> str:
    """The page that lists the kinds."""
    rows = "\n".join(f"| [{kind}]({kind}.md) | {about.about} |" for kind, about in KINDS.items())
    return f"""# Extending Turnwise

This page is written by `python -m turnwise.scaffold.pages`.

Whatever is chosen by a name can be added by a file that a recipe names (`imports: [my_rules.py]`), or for all of them by a package of
your own, through the entry point `turnwise.plugins`. A plugin
that fails to load is reported with its name and left out; a name that is taken is refused, and the message names both
packages. Environments have a page of their own: [writing an environment](../writing-an-environment.md).

| kind | what it does |
|---|---|
{rows}
"""


def with_kinds(form: str) -> str:
    """Return the form for a new part with every kind as a choice.

    >>> print(with_kinds("options: [credit, another]").replace(", ", " ")[:28])
    options: [sampler strategy g
    """
    return re.sub(r"options: \[[^\]]*\]", f"options: [{', '.join([*KINDS, 'another'])}]", form, count=1)


def main(folder: Path) -> None:
    """Write all pages."""
    form = folder.parent.parent / FORM
    if form.exists():
        form.write_text(with_kinds(form.read_text("utf-8")), "utf-8")
    folder.mkdir(parents=True, exist_ok=True)
    for kind in KINDS:
        (folder / f"{kind}.md").write_text(page(kind), "utf-8")
    (folder / "README.md").write_text(index(), "utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "docs/extending"))
