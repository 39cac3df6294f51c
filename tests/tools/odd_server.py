"""An MCP server by hand whose tools answer as the SDK's servers do not; standard library alone."""

import base64
import json
import os
import sys

TEXT = [{"type": "text", "text": "seven"}]
PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
PLAIN = {"type": "object", "properties": {}}
SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
ERRORS = (-32000, -32001, -32002, 404, 1, -32603)
TOOLS = {
    "promised": {"outputSchema": SCHEMA},
    "other": {"outputSchema": SCHEMA},
    "nonsense_schema": {"outputSchema": {"type": "object", "properties": {"n": {"type": 7}}}},
    "null": {"inputSchema": {"type": "object", "properties": None}},
    "unusable": {"inputSchema": {"type": "object", "properties": {"n": {"type": 7}}}},
    "half": {}, "bytes": {}, "picture": {}, "no_picture": {}, "shapeless": {}, "noise": {}, "error": {}, "die": {}, "silent": {},
    "finish": {}, "server_finish": {}, "files.read": {},
}  # fmt: skip


def say(line):
    sys.stdout.buffer.write(line if isinstance(line, bytes) else line.encode())
    sys.stdout.buffer.write(b"\n")
    sys.stdout.flush()


def result(name):
    if name == "other":
        return {"content": TEXT, "structuredContent": {"n": "no number"}}
    if name == "picture":
        image = {"type": "image", "mimeType": "image/png", "data": base64.b64encode(PIXEL).decode()}
        return {"content": [*TEXT, image]}
    if name == "no_picture":
        return {"content": [{"type": "image", "mimeType": "image/png", "data": "!!"}]}
    if name == "shapeless":
        return {"content": [{"type": "text"}]}
    return (
        {"content": [{"type": "text", "text": f"{name} was called"}]}
        if "finish" in name
        else {"content": TEXT}
    )


def answer(asked):
    number, parameters = asked["id"], asked.get("params", {})
    if asked["method"] == "initialize":
        about = {
            "protocolVersion": parameters["protocolVersion"],
            "serverInfo": {"name": "odd", "version": "1"},
        }
        return {"id": number, "result": {**about, "capabilities": {"tools": {}}}}
    if asked["method"] == "tools/list":
        tools = [{"name": name, "inputSchema": PLAIN, **more} for name, more in TOOLS.items()]
        return {"id": number, "result": {"tools": tools}}
    if asked["method"] != "tools/call":
        return {"id": number, "error": {"code": -32601, "message": "unknown"}}
    name = parameters["name"]
    if name == "die":
        os._exit(3)
    if name == "silent":
        return None
    if name == "error":
        return {"id": number, "error": {"code": parameters["arguments"]["code"], "message": "No such file"}}
    said = {"id": number, "result": result(name)}
    if name == "half":
        return f'{{"jsonrpc": "2.0", "id": {number}, "result": {{"content": [{{"type": "text", "text": "a\\ud800b"}}]}}}}'
    if name == "bytes":
        return json.dumps({"jsonrpc": "2.0", **said}).encode().replace(b"seven", b"Z\xfcrich")
    if name == "noise":
        say("starting up {not json")
    return said


for line in sys.stdin:
    asked = json.loads(line)
    said = answer(asked) if "id" in asked and "method" in asked else None
    if said is not None:
        say(json.dumps({"jsonrpc": "2.0", **said}) if isinstance(said, dict) else said)
