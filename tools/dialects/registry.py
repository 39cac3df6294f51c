"""The dialects by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from turnwise.errors import NotFoundError
from turnwise.tools.calls import ParsedText
from turnwise.tools.core import ToolSpec
from turnwise.tools.dialects.core import Dialect
from turnwise.tools.dialects.hermes import HERMES
from turnwise.tools.dialects.llama import LLAMA
from turnwise.tools.dialects.mistral import MISTRAL
from turnwise.tools.dialects.pythonic import PYTHONIC
from turnwise.tools.dialects.qwen_xml import QWEN_XML
from turnwise.tools.dialects.tags import TAGS

DIALECTS: Mapping[str, Dialect] = {
    dialect.name: dialect for dialect in (HERMES, LLAMA, MISTRAL, PYTHONIC, QWEN_XML, TAGS)
}


def get_dialect(name: str) -> Dialect:
    """The dialect of this name.

    Raises:
        NotFoundError: there is none; the nearest is named.
    """
    if name not in DIALECTS:
        raise NotFoundError("dialect of tool calls", name, DIALECTS)
    return DIALECTS[name]


def read_calls(text: str, specs: Sequence[ToolSpec] = ()) -> ParsedText:
    """Calls in whatever dialect a text is written, for policies of which nothing is known.

    The first dialect that finds calls reads them; if none does, the first that found broken ones explains.

    >>> read_calls('[TOOL_CALLS] [{"name": "f", "arguments": {}}]').calls
    (ToolCall(name='f', arguments={}, id='call_0'),)
    """
    tried = [dialect.parse(text, specs) for dialect in (HERMES, QWEN_XML, MISTRAL, PYTHONIC, TAGS, LLAMA)]
    found = next((parsed for parsed in tried if parsed.calls), None)
    return found or next((parsed for parsed in tried if parsed.error), tried[0])
