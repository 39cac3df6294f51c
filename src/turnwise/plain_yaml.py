"""YAML of people and of strangers, as data of bounded size: every YAML file and option is read here.

A few hundred bytes of aliases can stand for a thousand million values, and a number can have any length. What a text stands
for is counted before anything is made of it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import yaml

MOST_TEXT = 1 << 24
"""Characters of a text."""
MOST_VALUES = 1 << 16
"""Values that a text stands for, each as often as it is named."""
LONGEST_NUMBER = 128
_NUMBERS = ("tag:yaml.org,2002:int", "tag:yaml.org,2002:float")


class YamlText(NamedTuple):
    """The nodes of a text, which know their lines, and the data that it stands for."""

    node: yaml.Node | None
    data: Any


class YamlRefused(yaml.YAMLError):
    """A text that is YAML and that nothing is made of."""

    def __init__(self, problem: str, mark: yaml.Mark | None = None) -> None:
        self.problem, self.problem_mark = problem, mark
        where = f" at line {mark.line + 1}" if mark is not None else ""
        super().__init__(f"{problem}{where}")


def read_yaml(text: str, *, quick: bool = False) -> Any:
    """The data that a YAML text stands for: mappings, lists, texts, numbers, dates, truth values and null.

    Args:
        text: the YAML.
        quick: by the parser in C where PyYAML has it, which describes errors less well.

    Raises:
        yaml.YAMLError: it is none, or stands for more than anybody writes.
    """
    return read_yaml_text(text, quick=quick).data


def read_yaml_text(text: str, *, quick: bool = False) -> YamlText:
    """The same, with the nodes.

    Raises:
        yaml.YAMLError: as :func:`read_yaml`.
    """
    if len(text) > MOST_TEXT:
        raise YamlRefused(f"it has {len(text)} characters, and {MOST_TEXT} are the most that are read")
    kind = getattr(yaml, "CSafeLoader", yaml.SafeLoader) if quick else yaml.SafeLoader
    loader: Any = None
    try:
        loader = kind(text)
        node = loader.get_single_node()
        if node is None:
            return YamlText(None, None)
        _weigh(node, {})
        return YamlText(node, loader.construct_document(node))
    except RecursionError:
        raise YamlRefused("it is nested too deeply to be read") from None
    except (ValueError, TypeError, KeyError, AttributeError, IndexError, OverflowError) as error:
        # what the constructors of numbers, dates and tags raise, each in its own way
        raise YamlRefused(f"a value cannot be read ({type(error).__name__}: {error!s:.100})") from None
    finally:
        if loader is not None:
            loader.dispose()


def _weigh(node: yaml.Node, known: dict[int, int]) -> int:
    """Count the values that a node stands for.

    Raises:
        YamlRefused: too many, an alias inside of what it names, or a number of great length.
    """
    if id(node) in known:
        weight = known[id(node)]
        if not weight:
            raise YamlRefused("an alias stands inside of what it names", node.start_mark)
        return weight
    if isinstance(node, yaml.ScalarNode):
        if node.tag in _NUMBERS and len(node.value) > LONGEST_NUMBER:
            raise YamlRefused(f"a number has {len(node.value)} digits", node.start_mark)
        return 1
    known[id(node)] = 0
    parts = (
        node.value if isinstance(node, yaml.SequenceNode) else [part for pair in node.value for part in pair]
    )
    weight = 1
    for part in parts:
        weight += _weigh(part, known)
        if weight > MOST_VALUES:
            raise YamlRefused(f"it stands for more than {MOST_VALUES} values", node.start_mark)
    known[id(node)] = weight
    return weight
