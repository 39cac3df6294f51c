"""OpenEnv's side: its own client, connected to a server. Runs in the world's interpreter."""
# pyright: basic, reportMissingImports=false

from __future__ import annotations

import json
import urllib.request
from typing import Any

from openenv.core import GenericEnvClient  # type: ignore[import-not-found]

ENDS = ("solved", "failed", "gave_up", "turn_limit", "token_limit", "time_limit")


class OpenEnvSide:
    """An episode at a server."""

    url = ""

    def open(self, options: dict[str, Any]) -> dict[str, Any]:
        """Connect, unless it is the same server, and begin the episode of a seed."""
        if options["url"] != self.url:
            with urllib.request.urlopen(f"{options['url']}/schema", timeout=30) as answer:
                fields = dict(json.load(answer)["action"].get("properties", {}))
            fields.pop("metadata", None)
            self.fields = fields
            self.client = GenericEnvClient(base_url=options["url"]).sync()
            self.client.connect()
            self.url = options["url"]
        seen = self.client.reset(seed=options["seed"], **options.get("knobs", {}))
        return self._told(seen, opening=True)

    def step(self, act: dict[str, Any]) -> dict[str, Any]:
        """Say words, or make calls, in the form that the server's actions have."""
        if {"text", "calls"} <= self.fields.keys():
            action = {"text": act["text"], "calls": act.get("calls", [])}
        elif len(self.fields) == 1 and not act.get("calls"):
            action = {next(iter(self.fields)): act["text"]}
        elif len(act.get("calls", [])) == 1:
            action = act["calls"][0]["arguments"]
        else:
            return {"refused": f"Make one call of act, with {', '.join(self.fields)}."}
        try:
            return self._told(self.client.step(action))
        except RuntimeError as error:
            if "VALIDATION_ERROR" not in str(error):
                raise
            return {"refused": str(error)}

    def gold(self) -> None:
        """Nobody knows it."""

    def list(self, asked: dict[str, Any]) -> list[str]:
        """A server does not say which seeds it has."""
        return []

    def _told(self, seen: Any, opening: bool = False) -> dict[str, Any]:
        observation = dict(seen.observation or {})
        messages = observation.pop("messages", None)
        text = observation.pop("text", None)
        told: dict[str, Any] = {}
        if isinstance(messages, list):
            told["system"] = "\n\n".join(m["content"] for m in messages if m["role"] == "system")
            text = "\n\n".join(m["content"] for m in messages if m["role"] != "system" and m["content"])
        told["text"] = text if isinstance(text, str) else json.dumps(observation, sort_keys=True)
        if observation.get("tools") is not None:
            told["tools"] = [tool["function"] for tool in observation["tools"]]
        elif opening and len(self.fields) > 1 and "calls" not in self.fields:
            told["tools"] = [
                {
                    "name": "act",
                    "description": "Act.",
                    "parameters": {"type": "object", "properties": self.fields},
                }
            ]
        if not opening:
            told["rewards"] = {"outcome": float(seen.reward or 0.0)}
        if seen.done:
            end = observation.get("end")
            told["end"] = end if end in ENDS else "solved" if (seen.reward or 0.0) >= 1.0 else "failed"
        return told


SIDE = OpenEnvSide
