"""Files of other trainers, as dotted settings: YAML with what it is based on, TOML, command lines in shell scripts, calls in Python.

Nothing is run: a value that a shell variable or code decides is said to be unknown, with its expression.
"""

from __future__ import annotations

import ast
import json
import re
import shlex
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from turnwise.errors import TurnwiseError
from turnwise.plain_yaml import read_yaml
from turnwise.tasks.core import Json
from turnwise.texts import read_utf8
from turnwise.trainers.others.core import Settings

_VARIABLE = re.compile(r"\$(?:([A-Za-z_]\w*)|\{([A-Za-z_]\w*)(?::?-([^}]*))?\})")
_REFERENCE = re.compile(r"\$\{\s*([A-Za-z_][\w.]*)\s*\}")
_ASSIGNED = re.compile(r"^\s*(?:export\s+)?([A-Za-z_]\w*)=(.*)$")
DEEPEST = 8
"""Files, each based on the next."""


def dotted(tree: Any, key: str = "") -> Iterator[tuple[str, Json]]:
    """Yield the leaves of nested mappings; a list is a leaf.

    >>> dict(dotted({"a": {"b": 1, "c": [2]}, "d": {}}))
    {'a.b': 1, 'a.c': [2], 'd': {}}
    """
    if isinstance(tree, Mapping) and tree:
        for name, value in tree.items():
            yield from dotted(value, f"{key}.{name}" if key else str(name))
    elif key:
        yield key, tree


def text_of(file: Path) -> str:
    """The text of a file that somebody names."""
    return read_utf8(file, "Give a text file that the trainer is started with.")


def yaml_tree(file: Path) -> dict[str, Any]:
    """The mapping in a YAML file."""
    try:
        tree = read_yaml(text_of(file))
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise TurnwiseError(
            f"{file} is not YAML: {error}.", remedy="Give the file that the trainer is started with."
        ) from None
    if not isinstance(tree, dict) or not tree:
        raise TurnwiseError(f"{file} holds no settings.", remedy="Give a file with a mapping of settings.")
    return tree


class BasedYaml(NamedTuple):
    """Settings of a YAML file with those that it is based on.

    Attributes:
        given: all of them.
        below: the keys of those that only a file below gives.
        missing: names of files that are not there.
    """

    given: dict[str, Json]
    below: frozenset[str]
    missing: list[str]


def based_yaml(file: Path, key: str = "defaults", depth: int = 0) -> BasedYaml:
    """Settings of a YAML file over those of the files that it names.

    A name is a path beside the file (NeMo RL) or a name in the search path (Hydra), which is looked for beside the file.
    """
    if depth > DEEPEST:
        raise TurnwiseError(
            f"{file} is based on itself, or on more than {DEEPEST} files.", remedy="Look at its `defaults`."
        )
    tree = yaml_tree(file)
    bases, below, missing = tree.pop(key, []), dict[str, Json](), list[str]()
    for base in [bases] if isinstance(bases, str) else bases or []:
        if not isinstance(base, str) or base == "_self_":
            continue
        found = [file.parent / base, file.parent / f"{base}.yaml"]
        place = next((path for path in found if path.is_file()), None)
        if place is None:
            missing.append(base)
            continue
        under = based_yaml(place, key, depth + 1)
        below |= under.given
        missing += under.missing
    own = dict(dotted(tree))
    return BasedYaml({**below, **own}, frozenset(below) - frozenset(own), missing)


def resolved(given: Mapping[str, Json]) -> tuple[dict[str, Json], dict[str, str]]:
    """Settings with references to others put in, and those whose reference leads outside of the file.

    >>> resolved({"a.b": 3, "c": "${a.b}", "d": "${oc.env:HOME}"})
    ({'a.b': 3, 'c': 3}, {'d': '${oc.env:HOME}'})
    """
    found, unknown = dict[str, Json](), dict[str, str]()
    for key, value in given.items():
        for _ in range(DEEPEST):
            reference = _REFERENCE.fullmatch(value.strip()) if isinstance(value, str) else None
            if reference is None or reference[1] not in given:
                break
            value = given[reference[1]]
        if isinstance(value, str) and "${" in value:
            unknown[key] = value
        else:
            found[key] = value
    return found, unknown


def toml_settings(file: Path) -> Settings:
    """Settings of a TOML file; of a list of tables (sources, environments) each table under its number."""
    try:
        tree = tomllib.loads(text_of(file))
    except tomllib.TOMLDecodeError as error:
        raise TurnwiseError(
            f"{file} is not TOML: {error}.", remedy="Give the file that the trainer is started with."
        ) from None
    return Settings(file, dict(_numbered(tree)))


def _numbered(tree: Any, key: str = "") -> Iterator[tuple[str, Json]]:
    if isinstance(tree, list) and tree and all(isinstance(item, dict) for item in tree):
        for number, item in enumerate(tree):
            yield from _numbered(item, f"{key}.{number}")
    elif isinstance(tree, dict) and tree:
        for name, value in tree.items():
            yield from _numbered(value, f"{key}.{name}" if key else name)
    elif key:
        yield key, tree


def words_of(script: str) -> tuple[list[str], dict[str, str]]:
    """Words of a shell script's command lines, and the variables that it sets to one value.

    Loops, functions and substitutions are not run; what they decide stays written as it is, as does a variable with two values.
    """
    several = set[str]()
    variables, words = dict[str, str](), list[str]()
    for line in re.sub(r"\\\r?\n", " ", script).splitlines():
        line = line.strip()
        if not line or line.startswith("#"):
            continue
        assigned = _ASSIGNED.match(line)
        try:
            pieces = shlex.split(line, comments=True)
        except ValueError:  # a quote that a later line closes
            pieces = line.split()
        if assigned and len(pieces) == 1:
            value = pieces[0].partition("=")[2]
            if variables.setdefault(assigned[1], value) != value:
                several.add(assigned[1])
        elif line.startswith(("for ", "if ", "while ", "function ")):
            continue
        words += pieces
    return words, {name: value for name, value in variables.items() if name not in several}


def filled(text: str, variables: Mapping[str, str]) -> str:
    """A text with the variables that are known put in.

    >>> filled("$n x ${m:-4} $other", {"n": "8"})
    '8 x 4 $other'
    >>> filled("${n%.*} ${n[0]}", {"n": "8"})  # what the shell would cut out of a value is not guessed
    '${n%.*} ${n[0]}'
    """
    for _ in range(DEEPEST):
        new = _VARIABLE.sub(
            lambda hit: variables.get(hit[1] or hit[2], hit[0] if hit[3] is None else hit[3]), text
        )
        if new == text:
            break
        text = new
    return text


def assignments(file: Path, roots: Sequence[str]) -> tuple[dict[str, Json], dict[str, str]]:
    """Settings given as ``key=value`` (Hydra) in a shell script, of keys that begin with one of ``roots``; and unknown ones."""
    words, variables = words_of(text_of(file))
    given, unknown = dict[str, Json](), dict[str, str]()
    arrays = [
        word for value in variables.values() if value.startswith("(") for word in value.strip("()").split()
    ]
    for word in (*arrays, *words):
        if word.startswith("~"):  # Hydra takes such a key away
            gone = word[1:].partition("=")[0]
            for key in [key for key in given if key == gone or key.startswith(f"{gone}.")]:
                del given[key]
            continue
        word = re.sub(r"^\w+\+?=\(", "", word)  # an array begins
        key, equals, value = word.lstrip("+(").partition("=")
        if equals and key.split(".")[0] in roots and re.fullmatch(r"[\w.@/-]+", key):
            _set(given, unknown, key, filled(value.rstrip(")"), variables))
    return given, unknown


def options(file: Path) -> tuple[dict[str, Json], dict[str, str]]:
    """Settings given as ``--key value`` or ``--key=value`` in a shell script, and unknown ones."""
    return options_of(*words_of(text_of(file)))


def options_of(words: Sequence[str], variables: Mapping[str, str]) -> tuple[dict[str, Json], dict[str, str]]:
    """Settings among the words of a command, and unknown ones; one without a value is a switch that is on.

    >>> options_of("a.py --use_vllm --vllm-mode colocate --lr=$lr".split(), {})
    ({'use_vllm': True, 'vllm_mode': 'colocate'}, {'lr': '$lr'})
    """
    given, unknown = dict[str, Json](), dict[str, str]()
    for word, after in zip(words, [*words[1:], "--"], strict=True):
        if not word.startswith("--") or len(word) < 3:
            continue
        key, equals, value = word[2:].partition("=")
        value = value if equals else ("true" if after.startswith("--") else after)
        _set(given, unknown, key.replace("-", "_"), filled(value, variables))
    return given, unknown


def _set(given: dict[str, Json], unknown: dict[str, str], key: str, value: str) -> None:
    if "$" in value or "`" in value:
        unknown[key] = value
        given.pop(key, None)
        return
    unknown.pop(key, None)
    given[key] = plain(value)


def plain(value: str) -> Json:
    """The value that a command line means.

    >>> plain("0.5"), plain("True"), plain("null"), plain("[a,b]"), plain("token-mean")
    (0.5, True, None, '[a,b]', 'token-mean')
    """
    lowered = value.strip().strip("'\"").lower()
    if lowered in ("true", "false"):
        return lowered == "true"
    if lowered in ("null", "none", "~"):
        return None
    try:
        number = float(lowered)
    except ValueError:
        return value.strip().strip("'\"")
    return int(number) if number.is_integer() and "." not in lowered and "e" not in lowered else number


def calls(
    source: str, names: Sequence[str], file: Path
) -> Iterator[tuple[str, dict[str, Json], dict[str, str]]]:
    """Yield each call of one of the names in Python source: its keywords with plain values, and those that code decides."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError) as error:
        raise TurnwiseError(
            f"{file} is not Python: {error}.", remedy="Give the program with which training is started."
        ) from None
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        name = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
        if name not in names:
            continue
        given, unknown = dict[str, Json](), dict[str, str]()
        for keyword in _keywords(node, tree):
            if keyword.arg is None:
                unknown[f"**{ast.unparse(keyword.value)}"] = "keywords that code puts together"
                continue
            try:
                given[keyword.arg] = ast.literal_eval(keyword.value)
            except (ValueError, TypeError, SyntaxError):
                unknown[keyword.arg] = ast.unparse(keyword.value)
        yield name, given, unknown


def _keywords(call: ast.Call, tree: ast.Module) -> Iterator[ast.keyword]:
    """Yield the keywords of a call; of `**name` those of the one `name = dict(…)`, and itself, as code may have changed it since."""
    for keyword in call.keywords:
        if keyword.arg is None and isinstance(keyword.value, ast.Name):
            made = [
                node.value
                for node in ast.walk(tree)
                if isinstance(node, ast.Assign | ast.AnnAssign)
                for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
                if isinstance(target, ast.Name) and target.id == keyword.value.id
            ]
            if len(made) == 1 and isinstance(made[0], ast.Call):
                yield from made[0].keywords
        yield keyword


def notebook_source(file: Path) -> str:
    """The code of a notebook, without the lines that are commands of the shell or of the notebook."""
    try:
        cells = json.loads(text_of(file))["cells"]
        lines = [
            line
            for cell in cells
            if cell["cell_type"] == "code"
            for line in ["", *"".join(cell["source"]).splitlines()]
        ]
    except (ValueError, KeyError, TypeError) as error:
        raise TurnwiseError(
            f"{file} is not a notebook: {error}.", remedy="Give a notebook, or the program in it."
        ) from None
    return "\n".join("" if line.lstrip().startswith(("!", "%")) else line for line in lines)
