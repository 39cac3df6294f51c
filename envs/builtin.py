"""The environments and suites that come with Turnwise."""

from __future__ import annotations

ENVS = {
    "turnwise/Search-v0": (
        "turnwise.envs.search.env:SearchEnv",
        "Searching a library about a made-up world: multi-hop, comparing, counting, temporal and unanswerable questions.",
    ),
    "turnwise/Shop-v0": (
        "turnwise.envs.shop.env:ShopEnv",
        "Web shopping in text: search, compare, choose options, buy (WebShop's rules, procedural catalogues).",
    ),
    "turnwise/ShopBrowser-v0": (
        "turnwise.envs.shop.browser:ShopBrowserEnv",
        "The shop as a web site in a real browser: accessibility tree, HTML, text or screenshots.",
    ),
    "turnwise/ShopHuman-v0": (
        "turnwise.envs.shop.human.env:ShopHumanEnv",
        "Predicting what a described person does next in the shop: Shop-R1's task and hierarchical reward.",
    ),
    "turnwise/Tracker-v0": (
        "turnwise.envs.tracker.env:TrackerEnv",
        "An issue tracker in a real browser: create, edit, find, moderate; twenty templates, procedural projects.",
    ),
    "turnwise/Code-v0": (
        "turnwise.envs.code.env:CodeEnv",
        "Programming to a specification: test, run, submit; hidden tests by an answer-blind kernel in a sandbox.",
    ),
    "turnwise/Craft-v0": (
        "turnwise.envs.craft.env:CraftEnv",
        "Making things from recipe trees of chosen depth (TextCraft's kind), procedural recipes.",
    ),
    "turnwise/Dialogue-v0": (
        "turnwise.envs.dialogue.env:DialogueEnv",
        "Conversations with a goal: negotiation, persuasion, comfort, two-sided meetings; scripted partners or agents.",
    ),
    "turnwise/Games-v0": (
        "turnwise.envs.games.env:GamesEnv",
        "Wordle, mastermind, twenty questions; tic-tac-toe, connect four, Kuhn poker against scripts or agents.",
    ),
    "turnwise/Grid-v0": (
        "turnwise.envs.grid.env:GridEnv",
        "Games on a grid as text: Sokoban, mazes of keys and doors, frozen lakes (slippery or not).",
    ),
    "turnwise/Lab-v0": (
        "turnwise.envs.lab.env:LabEnv",
        "A laboratory in text: change states, mix, measure, wire, grow, classify (ScienceWorld's kinds of tasks).",
    ),
    "turnwise/Household-v0": (
        "turnwise.envs.household.env:HouseholdEnv",
        "A household in text: find, clean, heat, cool, put away (ALFWorld's task types, procedural houses).",
    ),
    "turnwise/ToolWorld-v0": (
        "turnwise.envs.toolworld.env:ToolWorldEnv",
        "Service desks and apps: tools over a database, a policy, a user with a wish (tau-bench's kind), procedural.",
    ),
    "turnwise/FunctionCall-v0": (
        "turnwise.envs.functioncall.env:FunctionCallEnv",
        "Function calling: parallel calls, several requests, nothing that fits, what must be asked for, failures.",
    ),
    "turnwise/SWE-v0": (
        "turnwise.envs.swe.env:SweEnv",
        "Repairing bugs in repositories: a shell, an editor, hidden tests run where the agent never was.",
    ),
    "turnwise/Calc-v0": (
        "turnwise.envs.small.calc:CalcEnv",
        "Arithmetic of any difficulty with a calculator, exact (RandomCalculation).",
    ),
    "turnwise/Deduce-v0": (
        "turnwise.envs.small.deduce:DeduceEnv",
        "Deduction over graphs of equations or rules; half of the questions have no answer, and why must be said.",
    ),
    "turnwise/Sort-v0": (
        "turnwise.envs.small.sort:SortEnv",
        "Sort-k: putting hidden values in order by comparing and swapping.",
    ),
    "turnwise/Judging-v0": (
        "turnwise.envs.judging.env:JudgingEnv",
        "Judging recorded episodes: solved or not, which is better, which turn is wrong, what was hidden; graded by what is known.",
    ),
}

FILE_ENVS = {
    "turnwise/Math-v0": (
        "turnwise.envs.small.maths:MathEnv",
        "Published problems of mathematics (GSM8K, MATH, AIME), with an exact calculator.",
    ),
    "turnwise/Image-v0": (
        "turnwise.envs.images.env:ImageEnv",
        "Working in the image that a task brings: rows of SWE-bench's kind, folders of Harbor and Terminal-Bench.",
    ),
    "turnwise/Triples-v0": (
        "turnwise.envs.code.triples:TriplesEnv",
        "Programs with an input and an output, proposed and solved; tasks are made while a run trains (proposer azr_solve), or by chance (triples:propose, triples:solve).",
    ),
    "turnwise/Advised-v0": (
        "turnwise.envs.roles.advised:AdvisedEnv",
        "A strategist who writes a line before each act, and an actor who reads it, around any pure world (advised:SUITE).",
    ),
    "turnwise/Pair-v0": (
        "turnwise.envs.roles.pair:PairEnv",
        "Two attempts at one task, the second of which reads the first, around any pure world (pair:SUITE).",
    ),
    "turnwise/Simulated-v0": (
        "turnwise.envs.search.simulated:SimulatedEnv",
        "Questions whose searches an agent answers, from what it remembers (simulated:SUITE).",
    ),
    "turnwise/Refined-v0": (
        "turnwise.envs.roles.refined:RefinedEnv",
        "An attempt that is accepted after a look back, or cut at a turn and made anew from there, around any pure world (refined:SUITE).",
    ),
    "foreign/ReasoningGym-v0": (
        "turnwise.envs.foreign.reasoning_gym:ReasoningGymEnv",
        "reasoning-gym's generated questions, judged by its data sets (turnwise worlds add reasoning-gym).",
    ),
    "foreign/TextArena-v0": (
        "turnwise.envs.foreign.textarena:TextArenaEnv",
        "TextArena's games for one player (turnwise worlds add textarena).",
    ),
    "foreign/TextWorldExpress-v0": (
        "turnwise.envs.foreign.textworld_express:TextWorldExpressEnv",
        "TextWorldExpress's eight games (turnwise worlds add textworld-express; needs Java).",
    ),
    "foreign/BFCL-v0": (
        "turnwise.envs.foreign.bfcl:BfclEnv",
        "BFCL v4's function calls, of one turn and of several, by its own checkers (turnwise worlds add bfcl).",
    ),
    "foreign/OpenEnv-v0": (
        "turnwise.envs.foreign.openenv:OpenEnvEnv",
        "Episodes of a server of OpenEnv's protocol (turnwise worlds add openenv).",
    ),
    "foreign/Tau2-v0": (
        "turnwise.envs.foreign.tau2:Tau2Env",
        "τ²-bench: an agent and a user, each with tools, by its own evaluator (turnwise worlds add tau2).",
    ),
    "foreign/Verifiers-v0": (
        "turnwise.envs.foreign.verifiers:VerifiersEnv",
        "Tasksets of verifiers v1, with their own harness (turnwise worlds add verifiers).",
    ),
    "foreign/ScienceWorld-v0": (
        "turnwise.envs.foreign.scienceworld:ScienceWorldEnv",
        "ScienceWorld's tasks of a school laboratory (turnwise worlds add scienceworld; needs Java).",
    ),
}
"""Environments that have no tasks of their own, only those of files or of worlds of others that a user names."""

FORMS = {
    "swebench": "turnwise.envs.images.tasks:rows_suite",
    "humaneval": "turnwise.envs.code.published:humaneval_suite",
    "mbpp": "turnwise.envs.code.published:mbpp_suite",
    "evalplus": "turnwise.envs.code.published:evalplus_suite",
    "livecodebench": "turnwise.envs.code.published:livecodebench_suite",
    "searchqa": "turnwise.envs.search.tasks:searchqa_suite",
    "gsm8k": "turnwise.envs.small.maths:gsm8k_suite",
    "math": "turnwise.envs.small.maths:math_suite",
    "aime": "turnwise.envs.small.maths:aime_suite",
    "harbor": "turnwise.envs.images.tasks:folders_suite",
    "reasoning-gym": "turnwise.envs.foreign.reasoning_gym:suite_of",
    "textarena": "turnwise.envs.foreign.textarena:suite_of",
    "textworld-express": "turnwise.envs.foreign.textworld_express:suite_of",
    "bfcl": "turnwise.envs.foreign.bfcl:suite_of",
    "openenv": "turnwise.envs.foreign.openenv:suite_of",
    "tau2": "turnwise.envs.foreign.tau2:suite_of",
    "verifiers": "turnwise.envs.foreign.verifiers:suite_of",
    "scienceworld": "turnwise.envs.foreign.scienceworld:suite_of",
    "judging": "turnwise.envs.judging.tasks:log_suite",
    "advised": "turnwise.envs.roles.advised:advised_suite",
    "pair": "turnwise.envs.roles.pair:pair_suite",
    "simulated": "turnwise.envs.search.simulated:simulated_suite",
    "refined": "turnwise.envs.roles.refined:refined_suite",
    "triples": "turnwise.envs.code.triples:triples_suite",
    "impossible": "turnwise.envs.registry:impossible_suite",
    "canary": "turnwise.envs.registry:canary_suite",
}
"""Suites that are named by a form and a path, or another suite's name."""

RIVALS = {
    "turnwise/Search-v0": "turnwise.envs.search.rivals:RIVALS",
    "turnwise/Shop-v0": "turnwise.envs.shop.rivals:RIVALS",
    "turnwise/Dialogue-v0": "turnwise.envs.dialogue.rivals:RIVALS",
    "turnwise/ToolWorld-v0": "turnwise.envs.toolworld.rivals:RIVALS",
    "turnwise/FunctionCall-v0": "turnwise.envs.functioncall.rivals:RIVALS",
    "turnwise/Judging-v0": "turnwise.envs.judging.rivals:RIVALS",
}
"""Modules in which families keep the agents that their fairness is measured by (envs/rivals.py)."""


def register_gymnasium() -> None:
    """Make our ids known to ``gymnasium.make``."""
    import gymnasium

    for name, (entry_point, _) in (ENVS | FILE_ENVS).items():
        if name not in gymnasium.registry:
            gymnasium.register(name, entry_point=entry_point)


def register_all() -> None:
    """Make the environments and the suites known to Turnwise."""
    from importlib.resources import files

    from turnwise.envs.registry import register, register_form, register_suite
    from turnwise.plain_yaml import read_yaml
    from turnwise.tasks.core import Suite

    for name, (entry_point, about) in (ENVS | FILE_ENVS).items():
        register(name, entry_point, about, rivals=RIVALS.get(name, ""))
    for form, entry_point in FORMS.items():
        register_form(form, entry_point)
    for file in sorted(files("turnwise.tasks.suites").iterdir(), key=lambda file: file.name):
        if file.name.endswith(".yaml"):
            for name, suite in read_yaml(file.read_text("utf-8"), quick=True).items():
                if not _there(suite.get("needs", "")):
                    continue
                register_suite(
                    Suite(
                        name, suite["env"], suite["about"], suite.get("knobs", {}), suite.get("size"),
                        language=suite.get("language", ""),
                    )
                )  # fmt: skip


def _there(needed: str) -> bool:
    """Say whether a suite's requirement is there: nothing, a named language model (``speaker``), or a file."""
    if needed == "speaker":
        from turnwise.envs.worlds.speaking import default_spec

        return bool(default_spec())
    return not needed or _cached(needed)


def _cached(path: str) -> bool:
    """Say whether a file is in the cache, as made by one of Turnwise's commands."""
    from turnwise.cache_folder import cache_folder

    return cache_folder(path).is_file()
