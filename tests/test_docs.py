"""What the documents refer to exists: links, anchors, files and modules; and no reference goes by a number."""

from __future__ import annotations

import ast
import builtins
import functools
import io
import re
import subprocess
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

import turnwise

ROOT = Path(__file__).parents[1]
TRACKED = subprocess.run(
    ["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True, check=True
).stdout.split()
PAGES = sorted(name for name in TRACKED if name.endswith(".md") and (ROOT / name).is_file())
DIARIES = ("docs/lab-notes/", "CHANGELOG.md")  # dated: they name files as they were called on that day
POLICIES = {
    name for name in PAGES if name.endswith("/policy.md")
}  # told to agents, who are told a rule's number
SOURCES = sorted(name for name in TRACKED if name.endswith(".py") and (ROOT / name).is_file())
PACKAGES = ("agents", "envs", "trainers", "tools", "tasks", "src")
FOLDERS = "agents|envs|trainers|tools|tasks|tests|scripts|benchmarks|docs|src"

_LINK = re.compile(r"\]\((?!https?:|mailto:)([^)\s]+)\)")
_NAMED = re.compile(
    r"\[([\w.-]+(?:/[\w.-]+)+\.\w+)\]\((?!https?:)([^)#\s]+)"
)  # a label that looks like a path
_FENCE = re.compile(r"^```.*?^```", re.DOTALL | re.MULTILINE)
_DOCUMENT = re.compile(
    r"(?<![\w/.])((?:docs|benchmarks|papers|research)/[\w/-]+\.(?:md|json|svg|png))(#[\w-]+)?"
)
_PATH = re.compile(rf"`((?:{FOLDERS})/[\w/.-]*)`")
_MODULE = re.compile(r"\bpython3? -m (turnwise[\w.]+)|`(turnwise\.[a-z_]+(?:\.[a-z_]+)+)`")
_ROLE = re.compile(r":(?:func|class|meth|mod|attr|data):`~?\.?([\w.]+)(?:\(\))?`")
_NUMBERED = re.compile(r"§\s?\d")
_PAPER = re.compile(r"arXiv|\d{4}\.\d{4,5}|\b(?:19|20)\d\d\b")


def slug(heading: str) -> str:
    """The anchor that GitHub gives a heading."""
    plain = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading.strip().lower())
    return re.sub(r"[^\w\- ]", "", plain).replace(" ", "-")


@functools.cache
def anchors(page: Path) -> frozenset[str]:
    text = _FENCE.sub("", page.read_text("utf-8"))
    headings = [slug(found) for found in re.findall(r"^#+ (.*)$", text, re.MULTILINE)]
    return frozenset(headings) | frozenset(re.findall(r'<a (?:id|name)="([^"]+)"', text))


def broken(target: str, folder: Path) -> str:
    """What is wrong with a link from a page in this folder; empty where nothing is."""
    path, _, anchor = target.partition("#")
    file = (folder / path).resolve() if path else folder
    if not file.exists():
        return f"{target}: there is no such file"
    if anchor and file.suffix == ".md" and anchor not in anchors(file):
        return f"{target}: {file.name} has no such heading"
    return ""


@functools.cache
def prose(source: str) -> tuple[tuple[int, str], ...]:
    """The comments of a Python file, and its docstrings (also those below an attribute), with their lines."""
    if not re.search(r"§|\.(?:md|json|svg|png)\b", source):
        return ()  # most files name no document, and parsing them all takes seconds
    return tuple(_prose(source))


def _prose(source: str) -> Iterator[tuple[int, str]]:
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Expr(value=ast.Constant(value=str(text))):
                yield node.lineno, text


@pytest.mark.parametrize("page", PAGES)
def test_links_of_a_page_lead_somewhere(page: str) -> None:
    file = ROOT / page
    text = _FENCE.sub("", file.read_text("utf-8"))
    targets = [(found, file if found.startswith("#") else file.parent) for found in _LINK.findall(text)]
    assert not [fault for target, start in targets if (fault := broken(target, start))]
    paths = [(label, str((file.parent / target).resolve())) for label, target in _NAMED.findall(text)]
    assert not [f"{label} leads to {path}" for label, path in paths if not path.endswith(f"/{label}")]


@pytest.mark.parametrize("page", [page for page in PAGES if not page.startswith(DIARIES)])
def test_files_and_modules_that_a_page_names_exist(page: str) -> None:
    text = (ROOT / page).read_text("utf-8")
    named = {path for path in _PATH.findall(text) if not (ROOT / path).exists()}
    named |= {path for path, _ in _DOCUMENT.findall(text) if not (ROOT / path).exists()}
    modules = {a or b for a, b in _MODULE.findall(text)}
    assert not named | {module for module in modules if not _importable(module)}


@pytest.mark.parametrize(
    "page", [page for page in PAGES if not page.startswith(DIARIES) and page not in POLICIES]
)
def test_a_page_refers_by_name_and_not_by_number(page: str) -> None:
    text = (ROOT / page).read_text("utf-8")
    assert not _NUMBERED.findall(text), "link to the heading instead: a number changes with the next section"
    assert not re.findall(r"^#+ \d+[.)] .*", text, re.MULTILINE), "headings carry no numbers"


@pytest.mark.slow
def test_documents_that_comments_and_docstrings_name_exist() -> None:
    faults = [
        f"{source}:{line}: {fault}"
        for source in SOURCES
        for line, text in prose((ROOT / source).read_text("utf-8"))
        for path, anchor in _DOCUMENT.findall(text)
        if (fault := broken(path + anchor, ROOT))
    ]
    assert not faults


def test_comments_and_docstrings_refer_by_name_and_not_by_number() -> None:
    """A paper's section may be cited beside the paper; a section of our own documents has a name."""
    faults = [
        f"{source}:{line}: {text.strip().splitlines()[0]}"
        for source in SOURCES
        for line, text in prose((ROOT / source).read_text("utf-8"))
        if _NUMBERED.search(text) and (not _PAPER.search(text) or re.search(r"\.md`*,? §", text))
    ]
    assert not faults


@pytest.mark.slow
def test_names_that_docstrings_refer_to_exist() -> None:
    seen, faults = 0, []
    for source in SOURCES:
        text = (ROOT / source).read_text("utf-8")
        roles = _ROLE.findall(text) if source.split("/")[0] in PACKAGES else []
        known = _identifiers(text) if roles else frozenset[str]()
        seen += len(roles)
        faults += [f"{source}: {role}" for role in roles if not _resolves(role, known)]
    assert seen > 200
    assert not faults, "name it in full (turnwise.module.name), or as it is called in this module"


def test_a_stale_link_and_a_stale_anchor_are_found() -> None:
    assert broken("docs/architecture.md#folders", ROOT) == ""
    assert "no such file" in broken("docs/architektur.md", ROOT)
    assert "no such heading" in broken("docs/architecture.md#8-decisions", ROOT)
    assert _resolves("turnwise.agents.gateway.core.ChatRequest.follows", frozenset())
    assert not _resolves("turnwise.agents.gateway.core.ChatRequest.leads", frozenset())
    assert not _resolves("turnwise.agents.gate.ChatRequest", frozenset())


def _identifiers(source: str) -> frozenset[str]:
    """What a module defines, imports or reads, by its last name."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                found.add(name)
            case ast.alias(name=name, asname=other):
                found.add(other or name.split(".")[0])
            case ast.Name(id=name) | ast.Attribute(attr=name) | ast.arg(arg=name):
                found.add(name)
            case _:
                pass
    return frozenset(found)


def _resolves(role: str, known: frozenset[str]) -> bool:
    """Whether a role's target is one of these names, one of Python's, or a name that a module of ours has."""
    words = role.split(".")
    if words[0] in sys.stdlib_module_names or hasattr(builtins, words[0]) or known.issuperset(words):
        return True
    if words[0] != "turnwise":
        return False
    if words[1] in turnwise.__all__:
        return True
    place = ROOT / "src"
    while words and (place / words[0]).is_dir():
        place /= words.pop(0)
    if words and (place / f"{words[0]}.py").exists():
        place /= f"{words.pop(0)}.py"
    else:
        place /= "__init__.py"
    return place.exists() and _identifiers(place.read_text("utf-8")).issuperset(words)


def _importable(name: str) -> bool:
    """Whether this is a module, or a name that a module defines; told by the files, since importing takes seconds."""
    place = ROOT / "src" / name.replace(".", "/")
    if place.is_dir() or place.with_suffix(".py").exists():
        return True
    module = next(
        (file for file in (place.parent.with_suffix(".py"), place.parent / "__init__.py") if file.exists()),
        None,
    )
    return module is not None and re.search(rf"\b{place.name}\b", module.read_text("utf-8")) is not None
