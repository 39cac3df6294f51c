"""The source of a chat template: the names that it reads from outside, and the strings that it looks for in texts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from turnwise.registry import not_found

if TYPE_CHECKING:
    from jinja2 import nodes

_ALWAYS_GIVEN = frozenset(
    (
        "messages",
        "tools",
        "documents",
        "add_generation_prompt",
        "raise_exception",
        "strftime_now",
        "range",
        "dict",
        "lipsum",
        "cycler",
        "joiner",
        "namespace",
        *(f"{name}_token" for name in ("bos", "eos", "pad", "unk", "sep", "cls", "mask")),
    )
)
"""Names that a template reads and that are no choice of whoever uses it."""


def check_options(options: Mapping[str, Any], source: str, name: str) -> None:
    """Refuse options that the template never reads: it would play as if they had not been given.

    Raises:
        NotFoundError: with the nearest name that it reads.
    """
    if not options:
        return
    known = template_options(source)
    for option in options:
        if option not in known:
            raise not_found(f"option of the chat template of {name}", option, known)


def template_options(source: str) -> tuple[str, ...]:
    """The names that a chat template reads from outside, beside those that every template is given.

    >>> template_options("{% if enable_thinking %}{{ messages[0].content }}{% endif %}")
    ('enable_thinking',)
    """
    from jinja2 import meta

    tree = _parsed(source)
    if tree is None:
        return ()  # its first use says what is wrong with it
    return tuple(sorted(meta.find_undeclared_variables(tree) - _ALWAYS_GIVEN))


class LookedFor(NamedTuple):
    """Strings by which a template may decide what it writes, or change it: ``inside`` texts, and those that it compares ``equal``."""

    inside: tuple[str, ...]
    equal: tuple[str, ...]
    known: bool = True  # the source could be read, and does nothing else with texts


def words_looked_for(source: str) -> LookedFor:
    """The strings that a chat template may look for in what messages say; white space aside.

    >>> words_looked_for("{% if '</think>' in m.content and m['role'] == 'user' %}{{ 'Hi ' + m.content.split('#')[0] }}{% endif %}")
    LookedFor(inside=('#', '</think>'), equal=('user',), known=True)

    A template that may decide by something else of a text, such as its length, is not known.

    >>> words_looked_for("{% if m.content|length > 4000 %}too long{% endif %}").known
    False
    """
    from jinja2 import nodes

    tree = _parsed(source)
    if tree is None or any(map(_decides_otherwise, tree.find_all((nodes.Filter, nodes.Call, nodes.Getitem)))):
        return LookedFor((), (), known=False)
    inside, equal = set[str](), set[str]()
    _look(tree, inside, equal, written=False)
    inside_words, equal_words = (
        tuple(sorted(word for word in words if word.strip())) for words in (inside, equal)
    )
    return LookedFor(inside_words, equal_words)


_FILTERS = frozenset(
    [
        "trim",
        "tojson",
        "string",
        "safe",
        "list",
        "map",
        "selectattr",
        "rejectattr",
        "join",
        "items",
        "default",
        "d",
        "first",
        "last",
        "indent",
        "dictsort",
        "reverse",
        "int",
    ]
)
_METHODS = frozenset(
    [
        "split",
        "rsplit",
        "strip",
        "lstrip",
        "rstrip",
        "startswith",
        "endswith",
        "replace",
        "append",
        "items",
        "get",
        "keys",
        "values",
    ]
)
"""Filters and methods that show strings which are looked for, or change each text alike, so that odd words show it."""
_LISTS = ("messages", "tools", "tool_calls", "documents", "functions")
_FEATURES = frozenset(("role", "id", "tool_call_id"))
"""Attributes that are no text of a message: turns that differ in them are of different forms."""


def _decides_otherwise(node: nodes.Node) -> bool:
    """Say whether a filter, a call or a slice may depend on a text by more than the strings that stand beside it."""
    from jinja2 import nodes

    if isinstance(node, nodes.Filter):
        if isinstance(node.node, nodes.Getattr) and node.node.attr in _FEATURES:
            return False
        return not _is_list(node.node) if node.name in ("length", "count") else node.name not in _FILTERS
    if isinstance(node, nodes.Call):
        return isinstance(node.node, nodes.Getattr) and node.node.attr not in _METHODS
    if isinstance(node, nodes.Getitem):
        return isinstance(node.arg, nodes.Slice) and not _is_list(node.node)
    return False


def _is_list(node: nodes.Node | None) -> bool:
    """Say whether an expression is a list of messages, tools or calls, by its name."""
    from jinja2 import nodes

    if isinstance(node, nodes.Name):
        return node.name.endswith(_LISTS)
    if isinstance(node, nodes.Getattr):
        return node.attr.endswith(_LISTS)
    if isinstance(node, nodes.Getitem):
        key = node.arg
        if isinstance(key, nodes.Const) and isinstance(key.value, str):
            return key.value.endswith(_LISTS)
        return isinstance(key, nodes.Slice) and _is_list(node.node)
    return isinstance(node, nodes.Filter) and _is_list(node.node)


def _look(node: nodes.Node, inside: set[str], equal: set[str], *, written: bool) -> None:
    """Collect the strings below a node, which is ``written`` as it stands or not."""
    from jinja2 import nodes

    if isinstance(node, nodes.Const):
        if isinstance(node.value, str) and not written:
            inside.add(node.value)
        return
    if isinstance(node, nodes.Compare) and _compares_whole(node):
        for one in (node.expr, *(operand.expr for operand in node.ops)):
            _look(one, equal if isinstance(one, nodes.Const) else inside, equal, written=False)
        return
    if isinstance(node, nodes.CondExpr):
        _look(node.test, inside, equal, written=False)
        for one in (node.expr1, node.expr2):
            if one is not None:
                _look(one, inside, equal, written=written)
        return
    below = list(node.iter_child_nodes())
    if isinstance(node, (nodes.Getitem, nodes.Pair)):  # a key, which is no part of a text
        key = node.arg if isinstance(node, nodes.Getitem) else node.key
        below = [one for one in below if one is not key or not isinstance(one, nodes.Const)]
    passes = isinstance(node, nodes.Output) or (written and isinstance(node, (nodes.Add, nodes.Concat)))
    for one in below:
        _look(one, inside, equal, written=passes)


def _compares_whole(node: nodes.Compare) -> bool:
    """Say whether whole values are compared, no parts of them."""
    from jinja2 import nodes

    return all(one.op in ("eq", "ne") for one in node.ops) and node.find(nodes.Slice) is None


def _parsed(source: str) -> nodes.Template | None:
    """The syntax of a template; None where it has a mistake."""
    import jinja2
    import jinja2.ext
    from jinja2 import nodes

    class Generation(jinja2.ext.Extension):
        tags = {"generation"}  # noqa: RUF012

        def parse(self, parser: Any) -> nodes.Node:
            line = next(parser.stream).lineno
            body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
            return nodes.Scope(body, lineno=line)

    env = jinja2.Environment(extensions=["jinja2.ext.loopcontrols", Generation])
    try:
        return env.parse(source)
    except jinja2.TemplateError:
        return None
