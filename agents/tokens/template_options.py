"""The options of a chat template: the names that it reads from outside."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from turnwise.registry import not_found

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
    import jinja2
    import jinja2.ext
    from jinja2 import meta, nodes

    class Generation(jinja2.ext.Extension):
        tags = {"generation"}  # noqa: RUF012

        def parse(self, parser: Any) -> nodes.Node:
            line = next(parser.stream).lineno
            body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
            return nodes.Scope(body, lineno=line)

    env = jinja2.Environment(extensions=["jinja2.ext.loopcontrols", Generation])
    try:
        read = meta.find_undeclared_variables(env.parse(source))
    except jinja2.TemplateError:
        return ()  # its first use says what is wrong with it
    return tuple(sorted(read - _ALWAYS_GIVEN))
