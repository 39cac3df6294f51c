"""The one registry of what can be added: a kind, a name, and a function, class or object under it.

Ours are in the folder of their kind, one in a file, and are imported when they are asked for. Those of installed
packages are found through the one entry point ``turnwise.plugins``, which names a function that registers them, or
a module that does so when it is imported::

    [project.entry-points."turnwise.plugins"]
    mine = "turnwise_mine"

    @component("credit", "mine", bias="unbiased")
    def mine(batch: TurnBatch, *, scale: float = 1.0) -> Tensor: ...

The options of a component are its keyword-only parameters, whose types are checked before anything is built.
"""

from __future__ import annotations

import difflib
import functools
import importlib
import importlib.util
import inspect
import os
import pkgutil
import sys
import threading
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from importlib.machinery import PathFinder
from importlib.metadata import EntryPoint
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar, get_type_hints

from turnwise.blame import PLUGIN_GROUP, describe, installed_plugins, place, shown
from turnwise.errors import NotFoundError, RecipeError
from turnwise.kinds import AIMS, BIASES, KINDS, SLOPES
from turnwise.type_words import wanted_kind

OURS = "turnwise"
Target = TypeVar("Target")


@dataclass(frozen=True)
class Component:
    """A component that is registered under a kind and a name."""

    kind: str
    name: str
    target: Any
    module: str
    file: str
    paper: str = ""
    bias: str = ""
    needs: tuple[str, ...] = ()
    asks: tuple[str, ...] = ()
    hears: tuple[str, ...] = ()
    gives: tuple[str, ...] = ()
    reads: tuple[str, ...] = ()
    learns: bool = False
    critic: str = "advantages"
    whole: bool = False
    slope: str = ""
    only_measures: bool = False
    only_read: bool = False
    scripted: bool = False
    whole_groups: bool = False
    shared_turns: bool = False
    branches: bool = False
    instruction: str = ""
    requires: tuple[str, ...] = ()
    form: str = ""
    files: Callable[[str], list[Path]] | None = None
    costless: bool = False
    told_context: bool = False
    interactive: bool = False
    isolates: bool = False
    forks: bool = False
    envs: tuple[str, ...] = ()
    about: str = ""
    exact: Callable[[Any], Mapping[str, Any]] | None = None
    stand_in: Callable[[Any], Mapping[str, Any]] | None = None
    objective: str = ""

    @property
    def summary(self) -> str:
        """The description in a line: as it was declared, or the first line of the docstring."""
        return self.about or inspect.cleandoc(self.target.__doc__ or "").partition("\n")[0]

    @property
    def sees(self) -> str:
        """Of a credit rule: what it sees of an agent that has several conversations, such as one with sub-agents."""
        return "the tree of branches" if self.branches else "the order of time"

    @property
    def package(self) -> str:
        """The package that it comes with, or the file where it is in none."""
        return package_of(self.module) or shown(self.file, 0).rpartition(":")[0]

    @property
    def lacking(self) -> tuple[str, ...]:
        """Of the modules that it requires, those that are not installed; nothing is imported."""
        return tuple(name for name in self.requires if importlib.util.find_spec(name) is None)

    @property
    def options(self) -> dict[str, Any]:
        """Option names with their defaults."""
        return {p.name: p.default for p in self._parameters if p.kind is inspect.Parameter.KEYWORD_ONLY}

    def needs_with(self, options: Mapping[str, Any]) -> frozenset[str]:
        """The signals that it needs with these options."""
        asked = {**self.options, **options}
        return frozenset(self.needs) | {str(asked[name]) for name in self.asks if asked.get(name)}

    def heard_with(self, options: Mapping[str, Any]) -> frozenset[str]:
        """The signals of a strategy, a guide or a judge that it reads with these options, where they are there."""
        asked = {**self.options, **options}
        return frozenset(str(asked[name]) for name in self.hears if asked.get(name))

    def build(self, options: Mapping[str, Any]) -> Callable[..., Any]:
        """The function or class with its options fixed.

        Raises:
            RecipeError: an option is unknown or of the wrong type, or it is a class where a function belongs.
        """
        import pydantic

        if inspect.isclass(self.target) and KINDS[self.kind].is_function:
            raise RecipeError(
                f"{self.kind} {self.name!r} ({_home(self)}) is a class, and a {self.kind} is a function that is called "
                "with what an update holds.",
                f"Write it as a function (docs/extending/{self.kind}.md).",
            )
        known = self.options
        takes_any = any(p.kind is inspect.Parameter.VAR_KEYWORD for p in self._parameters)
        hints = get_type_hints(self._function)
        checked: dict[str, Any] = {}
        for name, value in options.items():
            if name not in known and not takes_any:
                error = NotFoundError(f"option of {self.kind} {self.name!r} called", name, known)
                raise RecipeError(error.cause, error.remedy)
            try:
                checked[name] = pydantic.TypeAdapter(hints.get(name, Any)).validate_python(value)
            except pydantic.ValidationError as error:
                wanted = wanted_kind(error.errors()[0])
                raise RecipeError(
                    f"{self.kind} {self.name!r}: {name}={value!r}: it must be {wanted}.",
                    f"Its default is {known[name]!r}.",
                ) from None
        return functools.partial(self.target, **checked)

    @property
    def _function(self) -> Any:
        return self.target.__init__ if inspect.isclass(self.target) else self.target

    @property
    def _parameters(self) -> list[inspect.Parameter]:
        return [*inspect.signature(self.target).parameters.values()] if callable(self.target) else []


def component(
    kind: str,
    name: str,
    *,
    about: str = "",
    paper: str = "",
    bias: str = "",
    needs: tuple[str, ...] = (),
    asks: tuple[str, ...] = (),
    hears: tuple[str, ...] = (),
    gives: tuple[str, ...] = (),
    reads: tuple[str, ...] = (),
    learns: bool = False,
    critic: str = "advantages",
    whole: bool = False,
    slope: str = "",
    objective: str = "",
    only_measures: bool = False,
    only_read: bool = False,
    scripted: bool = False,
    whole_groups: bool = False,
    shared_turns: bool = False,
    branches: bool = False,
    instruction: str = "",
    requires: tuple[str, ...] = (),
    form: str = "",
    files: Callable[[str], list[Path]] | None = None,
    costless: bool = False,
    told_context: bool = False,
    interactive: bool = False,
    isolates: bool = False,
    forks: bool = False,
    envs: tuple[str, ...] = (),
    exact: Callable[[Any], Mapping[str, Any]] | None = None,
    stand_in: Callable[[Any], Mapping[str, Any]] | None = None,
) -> Callable[[Target], Target]:
    """Register a function, a class or an object; it stays what it is.

    Args:
        kind: one of :data:`turnwise.kinds.KINDS`.
        name: under which recipes, policy specs and the command line find it.
        about: what it is, in a line; the docstring's first line unless given.
        paper: its arXiv id.
        bias: credit, reduce: ``unbiased``, ``biased: why`` or ``changes the objective: to what``.
        needs: signal, reward, credit, filter, shape, loss: the signals that a run must measure for it; search: ``scorer`` where it cannot choose without one.
        asks: reward, credit, filter, shape: its options whose values are names of signals, needed too.
        hears: signal: its options that may name what a strategy, a guide or a judge gives, which it reads where that is there.
        gives: strategy, guide, judge, teacher, signal: the signals that it measures.
        reads: signal: what it looks at, of :data:`turnwise.kinds.READS`; reward: ``votes`` where it pays what the group agrees on, ``words`` where it pays a way of speaking alone, ``rewards`` where its place among rewards counts, since
            it looks at what was paid before or takes it away; source: :data:`turnwise.kinds.PLAYED`, if it looks at what was played.
        learns: signal: it has weights that are trained in the run, so that it is never exact.
        critic: credit: what a learned value is fitted to: ``advantages``, A + V (a λ-return), or ``returns``.
        whole: loss: it is a function of the whole minibatch, a ``WholeBatch``; reward: of all groups of an update.
        slope: loss: its slope in the log-probability of a fresh sample, one of :data:`SLOPES`.
        objective: loss: what it pursues, in a phrase; the credit rule's unless given, where its slope is a policy gradient.
        only_measures: strategy: it has no effect where nobody needs what it gives.
        only_read: guide: the turns that it chooses are read and carry no loss.
        scripted: source: a script chose its tokens, so that nobody knows how likely they were.
        shared_turns: strategy, guide: several of its episodes may hold one and the same sampled turn; credit: it allows for that.
        branches: credit: it sees which turn goes on from which, and who called whom; others take turns in the order of time.
        whole_groups: strategy, credit: a group that lost an episode to a failure means nothing.
        instruction: source: how the text must begin that the policy reads when it plays, ``sampling.instruction``.
        requires: engine, model: modules that must be installed.
        form: policy: how its spec is written, such as ``openai:MODEL@URL``; NAME alone takes nothing.
        files: policy: from the part after the colon to the files that decide how it plays.
        costless: policy: making one costs nothing, so that a spec is checked by doing so.
        told_context: policy: it takes a context manager, ``PolicyOptions.context``.
        interactive: policy: a person is asked.
        isolates: sandbox: what runs in it can do no harm; others are only used where they are asked for by name.
        forks: search: it goes on from states of the world that is played, which a deployment cannot; others choose among whole episodes.
        envs: proposer: the environments of the tasks that it makes, beside those of the suites.
        exact: signal, strategy, guide, judge, teacher: from a process all of whose trajectories are known (an ``ExactProcess``) to the exact
            values there of what it gives, by name, for the laboratory.
        stand_in: the same where it means nothing on a process: numbers that are made up, so that formulas can be tried on them.

    Returns:
        A decorator.

    Raises:
        RecipeError: the kind is unknown, the name is taken, a bias or slope is not stated, or an option has no type.
    """
    caller = sys._getframe(1)  # pyright: ignore[reportPrivateUsage]
    module, file = str(caller.f_globals.get("__name__", "")), os.path.realpath(caller.f_code.co_filename)
    if kind not in KINDS:
        error = NotFoundError("kind of component", kind, KINDS)
        raise RecipeError(error.cause, error.remedy)
    if KINDS[kind].states_bias and bias.partition(":")[0] not in BIASES:
        raise RecipeError(
            f"{kind} {name!r} does not state its bias.", 'Say bias="unbiased" or "biased: why".'
        )
    if KINDS[kind].states_slope and slope not in SLOPES:
        raise RecipeError(
            f"{kind} {name!r} does not state its slope in log-probabilities on fresh samples.",
            'Say slope="-A" (a policy gradient), "-c·A" (up to a positive factor) or "own".',
        )

    def enter(target: Target) -> Target:
        _enter(
            Component(
                kind, name, target, module, file, paper, bias, needs, asks, hears, gives, reads, learns, critic, whole,
                slope, only_measures, only_read, scripted, whole_groups, shared_turns, branches, instruction, requires, form, files, costless,
                told_context, interactive, isolates, forks, envs, about, exact, stand_in, objective or AIMS.get(slope, ""),
            )
        )  # fmt: skip
        return target

    return enter


_components: dict[tuple[str, str], Component] = {}


def _enter(entry: Component) -> None:
    _check_options(entry)
    if not _is_ours(entry.module):
        _load_ours(entry.kind)  # so that it is theirs, not ours, whose name is taken
    taken = _components.get((entry.kind, entry.name))
    if taken is not None and not _same(taken, entry):
        raise RecipeError(
            f"{entry.kind} {entry.name!r} of {entry.package} ({_home(entry)}) is taken by {taken.package} "
            f"({_home(taken)}).",
            "Choose another name.",
        )
    _components[entry.kind, entry.name] = entry


def _same(one: Component, other: Component) -> bool:
    """Say whether it is one component that is defined anew, or whose file is imported under another name."""
    return _qualname(one) == _qualname(other) and (one.module == other.module or one.file == other.file)


def _qualname(entry: Component) -> str:
    return getattr(entry.target, "__qualname__", type(entry.target).__qualname__)


def _home(entry: Component) -> str:
    return f"{entry.module}.{_qualname(entry)}"


def _check_options(entry: Component) -> None:
    """Options come from recipes, which must know their types and may leave them out."""
    for parameter in entry._parameters:  # pyright: ignore[reportPrivateUsage]
        untyped = parameter.annotation is inspect.Parameter.empty
        if parameter.kind is not inspect.Parameter.KEYWORD_ONLY or not (
            untyped or parameter.default is inspect.Parameter.empty
        ):
            continue
        raise RecipeError(
            f"{entry.kind} {entry.name!r} ({_home(entry)}): its option {parameter.name!r} has no "
            f"{'type' if untyped else 'default'}.",
            f"Write it with both, such as {parameter.name}: float = 1.0.",
        )


def components(kind: str) -> list[Component]:
    """All components of a kind by name, ours before those of plugins."""
    _check_kind(kind)
    _load_ours(kind)
    load_plugins()
    found = [entry for (k, _), entry in _components.items() if k == kind]
    return sorted(found, key=lambda entry: (not _is_ours(entry.module), entry.name))


def get_component(kind: str, name: str) -> Component:
    """The component of this name.

    Raises:
        NotFoundError: there is none; the nearest is named, or where plugins are looked for.
    """
    if entry := likely_component(kind, name):
        return entry
    known = {entry.name: entry for entry in components(kind)}
    if name not in known:
        raise not_found(kind, name, known, "A recipe may also name its file (imports: [my_file.py]).")
    return known[name]


def likely_component(kind: str, name: str) -> Component | None:
    """The component of this name if it is known, or the module that is called like it registers it.

    Nothing else is imported: this is the quick way to what is ours.
    """
    _check_kind(kind)
    if (kind, name) not in _components:
        _load_one(kind, name)
    return _components.get((kind, name))


def components_in(module: ModuleType) -> list[Component]:
    """List the components that a module that was imported has registered, in its order."""
    file = os.path.realpath(module.__file__ or "")
    return [entry for entry in _components.values() if entry.file == file]


def modules_of_others() -> list[str]:
    """The modules outside of Turnwise that have registered components, by which another process finds them too.

    Those that a recipe imports by their files have no name there.
    """
    found = {entry.module for entry in _components.values()}
    return sorted(module for module in found if not _is_ours(module) and _is_importable(module))


def files_of_others() -> list[Path]:
    """The files outside of Turnwise in which components are written."""
    found = {entry.file for entry in _components.values() if not _is_ours(entry.module)}
    return [Path(file) for file in sorted(found) if os.path.isfile(file)]


def _is_importable(module: str) -> bool:
    """Say whether a module is found by its name, and not only as a file that was run."""
    return module != "__main__" and PathFinder.find_spec(module.partition(".")[0]) is not None


def _check_kind(kind: str) -> None:
    if kind not in KINDS:
        raise NotFoundError("kind of component", kind, KINDS)


def _load_one(kind: str, name: str) -> None:
    module = f"{KINDS[kind].home}.{name.replace('-', '_')}"
    if name.replace("-", "_").isidentifier() and importlib.util.find_spec(module) is not None:
        importlib.import_module(module)


@functools.cache
def _load_ours(kind: str) -> None:
    package = importlib.import_module(KINDS[kind].home)
    for module in pkgutil.iter_modules(package.__path__):
        if not module.ispkg:
            importlib.import_module(f"{KINDS[kind].home}.{module.name}")


# --- plugins -----------------------------------------------------------------------------------------

_lock = threading.RLock()
_asked: set[str] = set()  # entry points that were loaded, or are being loaded
_broken: dict[str, str] = {}  # plugins that could not be loaded, and why


def load_plugins() -> None:
    """Load every plugin once; one that fails is left out with a warning, and the others are there."""
    with _lock:
        for entry in installed_plugins():
            if entry.value not in _asked and not _is_beginning(entry.module):
                _asked.add(entry.value)
                _load_plugin(entry)


def _is_beginning(module: str) -> bool:
    """Say whether a module is being imported just now, so that what it registers is not there yet."""
    spec = getattr(sys.modules.get(module), "__spec__", None)
    return bool(getattr(spec, "_initializing", False))


def _load_plugin(entry: EntryPoint) -> None:
    before = dict(_components)
    try:
        found = entry.load()
        if callable(found):
            found()
    except (Exception, SystemExit) as error:  # noqa: BLE001 (someone else's package may raise anything)
        _components.clear()
        _components.update(before)
        _broken[entry.name] = describe(error)
        file, _, line = place(error).rpartition(":")
        warnings.warn_explicit(
            f"The plugin {entry.name!r} ({entry.value}) is left out: {describe(error)}. "
            "→ Repair or uninstall that package.",
            UserWarning,
            file or "turnwise",
            int(line or 0),
        )


def package_of(module: str) -> str:
    """The name of the package (as pip knows it) that a module comes with: ours, or a plugin's; else empty.

    >>> package_of("turnwise.trainers.credit.rloo")
    'turnwise'
    """
    if _is_ours(module):
        return OURS
    top = module.partition(".")[0]
    return next(
        (e.dist.name for e in installed_plugins() if e.dist and e.module.partition(".")[0] == top), ""
    )


def not_found(kind: str, name: str, known: Iterable[str], otherwise: str = "") -> NotFoundError:
    """The error for an unknown name: the nearest one, or where plugins are looked for and which of them failed."""
    names = list(known)
    error = NotFoundError(kind, name, names)
    if _broken:
        plugins = "; ".join(f"{plugin!r} ({why})" for plugin, why in _broken.items())
        error.remedy += f" Or it comes with a plugin that failed to load: {plugins}."
    elif not any(_is_beside(name, near) for near in difflib.get_close_matches(name, names, n=1)):
        error.remedy += (
            f" If it is yours: is its package installed (pip install -e .), with an entry point in the group "
            f"{PLUGIN_GROUP!r} whose module or function registers it?{otherwise and f' {otherwise}'}"
        )
    return error


def _is_beside(name: str, near: str) -> bool:
    """Say whether two names can be one with a typing error: both have the same namespace, or none."""
    return name.rpartition("/")[0] == near.rpartition("/")[0]


def _is_ours(module: str) -> bool:
    return module.partition(".")[0] == OURS
