"""An MCP server over stdio with one tool, ``note``, that does what its first argument names. It needs nothing but Python."""

from __future__ import annotations

import json
import os
import sys
import time
from typing import Any

HOW = sys.argv[1]
TEXT = [{"type": "text", "text": "noted: x"}]
ERRORS = {
    "invalid params": -32602,
    "no such tool": -32601,
    "internal error": -32603,
    "own code": -1,
    "code of an application": 4711,
}


def said(number: Any, result: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": number, "result": result}


def called(number: Any) -> dict[str, Any]:
    """The answer to a call of the tool."""
    if HOW in ERRORS:
        return {"jsonrpc": "2.0", "id": number, "error": {"code": ERRORS[HOW], "message": f"refused: {HOW}"}}
    if HOW == "error of the tool":
        return said(number, {"content": [{"type": "text", "text": "refused: no paper"}], "isError": True})
    if HOW == "empty":
        return said(number, {"content": []})
    if HOW == "other words":
        return said(number, {"words": "noted"})
    if HOW == "dies":
        os._exit(3)
    if HOW == "hangs":
        time.sleep(60)
    if HOW == "bytes":
        sys.stdout.buffer.write(
            b'{"jsonrpc": "2.0", "id": 1, "result": {"content": [{"type": "text", "text": "\xff\xfe"}]}}\n'
        )
        sys.stdout.buffer.flush()
        time.sleep(60)
    if HOW == "other id":
        return said(10**6, {"content": TEXT})
    if HOW == "chatter":
        print("starting up ...", flush=True)
    return said(number, {"content": TEXT})


def main() -> None:
    schema = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
    tool: dict[str, Any] = {"name": "note", "description": "Note a text.", "inputSchema": schema}
    if HOW == "schema without structure":
        tool["outputSchema"] = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    for line in sys.stdin:
        asked = json.loads(line)
        method, number = asked.get("method", ""), asked.get("id")
        if number is None:
            continue
        if method == "initialize":
            told = {"protocolVersion": asked["params"]["protocolVersion"], "capabilities": {"tools": {}}}
            answer = said(number, {**told, "serverInfo": {"name": "faulty", "version": "1"}})
        elif method == "tools/list":
            answer = said(number, {"tools": [tool]})
        elif method == "tools/call":
            answer = called(number)
        elif method == "ping":
            answer = said(number, {})
        else:
            answer = {
                "jsonrpc": "2.0",
                "id": number,
                "error": {"code": -32601, "message": "Method not found"},
            }
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
