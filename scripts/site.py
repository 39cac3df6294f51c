"""What the documentation site has beside docs/: pages made from the code, links that leave docs/, and forgotten pages.

mkdocs calls the functions ``on_…``. The generated pages are written when the site is built, so they cannot be stale.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Mapping
from dataclasses import is_dataclass
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parents[1]
_OUTSIDE = re.compile(r"(!?\[[^\]]*\]\()((?:\.\./)+[^)\s#]*)((?:#[^)\s]*)?\))")
_CONSOLE = re.compile(r"(^```(?:console)?\n)((?=[^`]*^[$] ).*?)(^```$)", re.MULTILINE | re.DOTALL)
_RANKED = (
    ("reference/modules", 0.2),
    ("lab-notes", 0.2),
    ("audit", 0.3),
    ("papers", 0.5),
    ("references", 0.3),
)
"""Beginnings of pages that name everything and explain little, and how they weigh in the search."""
_FIGURE = re.compile(r"<!-- figure: .*?-->|<!-- table(?:: .*?| ends) -->\n*")
MODULES = (
    "turnwise.tools.core", "turnwise.envs.acting", "turnwise.envs.live", "turnwise.registry", "turnwise.requirements",
    "turnwise.trainers.core", "turnwise.agents.evaluation.statistics", "turnwise.extras",
)  # fmt: skip
EXIT_CODES = {
    0: "It is done, and what was asked for holds.",
    1: "It is done and the answer is no (a check failed, too many episodes failed), or it could not be done: see the error.",
    2: "The command line itself is wrong: an unknown verb or option, or a value of the wrong type.",
    130: "It was interrupted (Ctrl-C). What was finished is kept, and `--resume` goes on.",
}


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Every page has a place: `extending/` is spelled out, and what the navigation forgot stands under More."""
    docs = Path(config.docs_dir)
    nav: list[Any] = [_spelled_out(entry, docs) for entry in config.nav or []]
    listed = set(_pages(nav))
    forgotten = sorted(
        str(path.relative_to(docs))
        for path in docs.rglob("*.md")
        if str(path.relative_to(docs)) not in listed
    )
    config.nav = [*nav, {"More": forgotten}] if forgotten else nav
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add what is made from the code."""
    for name, text in generated().items():
        files.append(File.generated(config, name, content=text))
    return files


def on_page_markdown(markdown: str, *, page: Any, config: MkDocsConfig, files: Files) -> str:
    """Links that lead out of docs/ lead to the repository; commands are copied without their prompts; long records rank last."""
    text = _FIGURE.sub("", outside_links(markdown, page.file.src_uri, str(config.repo_url)))
    boost = next((boost for start, boost in _RANKED if page.file.src_uri.startswith(start)), None)
    if boost is not None:
        page.meta.setdefault("search", {})["boost"] = boost
    return without_prompts(text)


def without_prompts(markdown: str) -> str:
    """Blocks of commands as they are typed, so that what is copied can be pasted."""
    return _CONSOLE.sub(
        lambda block: f"{block[1]}{re.sub(r'^[$] ', '', block[2], flags=re.MULTILINE)}{block[3]}", markdown
    )


def outside_links(markdown: str, page: str, repository: str) -> str:
    """The text of a page in which links to files outside of docs/ are addresses in the repository."""

    def lead(found: re.Match[str]) -> str:
        target = (ROOT / "docs" / page).parent / found[2]
        path = Path(target.resolve())
        if not path.is_relative_to(ROOT) or path.is_relative_to(ROOT / "docs"):
            return found[0]
        kind = "tree" if path.is_dir() else "blob"
        return f"{found[1]}{repository.rstrip('/')}/{kind}/main/{path.relative_to(ROOT)}{found[3]}"

    return _OUTSIDE.sub(lead, markdown)


def generated() -> dict[str, str]:
    """The generated pages, by their place in docs/."""
    return {
        "reference/command-line.md": command_line(),
        "reference/suites.md": suites(),
        "reference/parts.md": parts(),
        "reference/modules.md": modules(),
    }


def command_line() -> str:
    """Every verb with its options and an example, the exit codes, and the forms of JSON."""
    from turnwise.cli.app import VERBS
    from turnwise.cli.forms import FORMS

    lines = [
        "# Command line",
        "",
        "Every verb takes `--json` (exactly one JSON value on stdout) and `--debug`.",
        "",
    ]
    lines += ["## Exit codes", "", *table(("code", "meaning"), EXIT_CODES.items()), ""]
    for name, verb in VERBS.items():
        lines += [f"## turnwise {name}", "", *_described(verb), ""]
        lines += [f"With `--json`: {FORMS[name]}" if name in FORMS else "With `--json`: one value.", ""]
    lines += [
        "## Errors",
        "",
        "An error is one value with `--json`: `error` (its kind), `cause` and `remedy`; otherwise at most five lines on stderr.",
    ]
    return "\n".join(lines) + "\n"


def _described(verb: Any) -> Iterable[str]:
    text = inspect.cleandoc(verb.__doc__ or "")
    about, _, arguments = text.partition("\nArgs:\n")
    yield about.strip()
    yield ""
    parameters = dict(inspect.signature(verb).parameters)
    shared = [type(one.default) for one in parameters.values() if is_dataclass(one.default)]
    for one in shared:  # options that several verbs have
        arguments += "\n" + inspect.cleandoc(one.__doc__ or "").partition("\nAttributes:\n")[2]
        parameters |= inspect.signature(one).parameters
    for name, said in re.findall(r"^    (\w+): (.*(?:\n        .*)*)", arguments, re.MULTILINE):
        kind = parameters[name].kind
        option = (
            name.upper()
            if kind is not inspect.Parameter.KEYWORD_ONLY
            else f"--{name.rstrip('_').replace('_', '-')}"
        )
        yield f"- `{option}`: {' '.join(said.split())}"


def suites() -> str:
    """Every suite, by its environment."""
    from turnwise.envs.registry import env_entries
    from turnwise.envs.registry import suites as all_suites

    lines = [
        "# Suites",
        "",
        "`turnwise list suites --json` has the knobs too. Tasks of a suite without a size never end.",
        "",
    ]
    for entry in env_entries():
        own = [suite for suite in all_suites() if suite.env == entry.name]
        lines += [f"## {entry.name}", "", cell(entry.about), ""]
        if own:
            rows = [(f"`{suite.name}`", suite.about, suite.size or "endless") for suite in own]
            lines += [*table(("suite", "what it is", "tasks"), rows), ""]
    return "\n".join(lines) + "\n"


def parts() -> str:
    """Every component of every kind, with its bias, its paper and its options."""
    from turnwise.kinds import KINDS
    from turnwise.registry import components

    lines = [
        "# Parts",
        "",
        "What a recipe, a policy or a sandbox can be made of; `turnwise list KIND` shows the same.",
        "",
    ]
    for kind, about in KINDS.items():
        found = components(kind)
        heads = ("name", "what it is", "bias", "paper", "needs", "options")
        rows = [
            (
                f"`{one.name}`",
                one.summary,
                one.bias,
                one.paper,
                ", ".join(one.needs),
                ", ".join(f"`{k}={v!r}`" for k, v in one.options.items()),
            )
            for one in found
        ]
        used = [i for i in range(len(heads)) if i < 2 or any(row[i] for row in rows)]
        lines += [f"## {kind}", "", about.about, ""]
        lines += [*table([heads[i] for i in used], [[row[i] for i in used] for row in rows]), ""]
    return "\n".join(lines) + "\n"


def modules() -> str:
    """The modules that authors of components import, by their docstrings."""
    head = [
        "# Modules for authors",
        "",
        "What a package of yours may import beside `turnwise` ([API reference](../api.md)).",
        "",
    ]
    return "\n".join(
        [
            *head,
            *(
                f"## {name}\n\n::: {name}\n    options: {{heading_level: 4, show_root_heading: false}}\n"
                for name in MODULES
            ),
        ]
    )


def table(heads: Iterable[str], rows: Iterable[Iterable[Any]]) -> list[str]:
    """A table in Markdown."""
    heads = list(heads)
    lines = [f"| {' | '.join(heads)} |", f"|{'---|' * len(heads)}"]
    return lines + [f"| {' | '.join(cell(value) for value in row)} |" for row in rows]


def cell(value: object) -> str:
    """A value in a cell of a table.

    >>> cell("a | b\\nc"), cell("see <id>")
    ('a \\\\| b c', 'see &lt;id>')
    """
    return " ".join(str(value).split()).replace("|", "\\|").replace("<", "&lt;").replace("``", "`")


def _spelled_out(entry: Any, docs: Path) -> Any:
    if isinstance(entry, dict):
        ((title, value),) = entry.items()
        if isinstance(value, str) and value.endswith("/"):
            names = sorted(str(path.relative_to(docs)) for path in (docs / value).glob("*.md"))
            return {title: sorted(names, key=lambda name: not name.endswith("README.md"))}
        if isinstance(value, list):
            return {title: list(value)}
    return entry


def _pages(nav: Iterable[Any]) -> Iterable[str]:
    for entry in nav:
        if isinstance(entry, str):
            yield entry
        elif isinstance(entry, Mapping):
            for value in entry.values():
                yield from _pages(value if isinstance(value, list) else [value])
