"""Texts that are hard to read, of any length: for tests and for ``benchmarks/reading.py``.

``repeated`` shapes make calls or pieces of calls again and again; ``unclosed`` ones are a beginning and then nothing
but filling, on which a pattern that tries every way of dividing it takes a time that is no longer linear.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import TypeAlias

Shape: TypeAlias = Callable[[int], str]

REPEATED: Mapping[str, Shape] = {
    "hermes calls": lambda n: '<tool_call>{"name": "f"}</tool_call>' * n,
    "hermes empty": lambda n: "<tool_call></tool_call>" * n,
    "llama calls": lambda n: '{"name": "f", "parameters": {}}; ' * n,
    "llama objects": lambda n: "{}; " * n,
    "mistral calls": lambda n: "[TOOL_CALLS]" + "f{}" * n,
    "mistral marked calls": lambda n: "[TOOL_CALLS]f{}" * n,
    "python calls": lambda n: "[" + "f(), " * n + "]",
    "python blocks": lambda n: "```tool_code\nf()\n```" * n,
    "qwen-xml calls": lambda n: "<tool_call><function=f></function></tool_call>" * n,
    "qwen-xml parameters": lambda n: (
        "<function=f>" + "".join(f"<parameter={k}>1</parameter>" for k in range(n)) + "</function>"
    ),
    "glm calls": lambda n: "<tool_call>f</tool_call>" * n,
    "glm arguments": lambda n: (
        "<tool_call>f"
        + "".join(f"<arg_key>{k}</arg_key><arg_value>1</arg_value>" for k in range(n))
        + "</tool_call>"
    ),
    "harmony calls": lambda n: (
        "<|start|>assistant<|channel|>commentary to=functions.f<|message|>{}<|call|>" * n
    ),
    "harmony messages": lambda n: "<|start|>assistant<|channel|>final<|message|>a<|end|>" * n,
    "tags calls": lambda n: "<search>a</search>" * n,
    "tags arguments": lambda n: "<search>" + "<query>a</query>" * n + "</search>",
    "long list": lambda n: f'<tool_call>{{"name": "f", "arguments": {{"x": [{"1, " * n}1]}}}}</tool_call>',
    "quoted": lambda n: f"<tool_call>{json.dumps({'name': 'f', 'arguments': {'x': '[{' * n}})}</tool_call>",
}
UNCLOSED: Mapping[str, Shape] = {
    "hermes tags": lambda n: "<tool_call>" * n,
    "hermes brackets": lambda n: "<tool_call>" + "[" * n,
    "hermes quotes": lambda n: '<tool_call>"' + '\\"' * n,
    "llama blanks": lambda n: '{"name": "f"}' + " " * n + '{"name": "f"}',
    "llama brackets": lambda n: '{"name": ' + "[" * n,
    "mistral blanks": lambda n: "[TOOL_CALLS]f" + " " * n,
    "mistral marks": lambda n: "[TOOL_CALLS]" * n,
    "mistral name": lambda n: "[TOOL_CALLS]" + "f" * n,
    "python blanks before": lambda n: " " * n + "x",
    "python blanks inside": lambda n: "[f(" + " " * n + "]x",
    "python blanks after": lambda n: "[f(1]" + " " * n + "x",
    "python names": lambda n: "[f" + ".a" * n + "()]",
    "python signs": lambda n: "[f(x=" + "-" * n + "1)]",
    "python digits": lambda n: "[f(x=" + "9" * n + ")]",
    "python hexadecimal digits": lambda n: "[f(x=0x" + "f" * n + ")]",
    "python brackets": lambda n: "[f(" * n,
    "python blocks": lambda n: "```tool_code\n" * n,
    "qwen-xml names": lambda n: "<function=" * n,
    "qwen-xml functions": lambda n: "<function=f>" * n,
    "qwen-xml parameters": lambda n: "<function=f>" + "<parameter=" * n,
    "qwen-xml blanks": lambda n: "<function=f>" + " " * n + "x",
    "glm names": lambda n: "<tool_call>" + "f" * n,
    "glm blanks": lambda n: "<tool_call>f" + " " * n + "x",
    "glm keys": lambda n: "<tool_call>f" + "<arg_key>" * n,
    "glm values": lambda n: "<tool_call>f<arg_key>x</arg_key><arg_value>" + "<arg_value>" * n,
    "harmony starts": lambda n: "<|start|>" * n,
    "harmony channels": lambda n: "<|channel|>" * n,
    "harmony open messages": lambda n: "<|channel|>final<|message|>" * n,
    "harmony blanks": lambda n: "<|start|>" + " " * n + "x",
    "harmony words": lambda n: "<|channel|>" + "a" * n,
    "harmony brackets": lambda n: "<|channel|>commentary to=functions.f<|message|>{" + "[" * n,
    "harmony thoughts": lambda n: "<|channel|>analysis <|message|>" * n,
    "tags": lambda n: "<search>" * n,
    "tags arguments": lambda n: "<search>" + "<query>" * n + "</search>",
    "tags blanks": lambda n: "<search>" + " " * n + "<query>" + " " * n + "</search>",
    "verb brackets": lambda n: "search[" + "] " * n + "x",
    "verb blanks": lambda n: "search[]" + " " * n + "x",
}
