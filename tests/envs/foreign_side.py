"""The other side of a stand-in package: it keeps the protocol, with the standard library alone, and fails where it is told to."""

from __future__ import annotations

import multiprocessing
import os
import random
import subprocess
import sys
import time

STARTED = time.monotonic()


class NumbersSide:
    """Find a number; the option ``fault`` says how the package misbehaves when it is told ``now``."""

    def open(self, options):
        print("a library that prints on stdout")
        os.write(1, b"and one that writes to the descriptor\n")
        self.options, self.turns = options, 0
        if options.get("fault") == "drifts":
            options["number"] += random.Random(time.monotonic()).randrange(1, 10**6)
        return {
            "text": f"Find the number. {options.get('hint', '')}",
            "admissible": ["say 1", "say 2", "say 3"],
            **({"tools": options["tools"]} if "tools" in options else {}),
        }

    def step(self, act):
        text, fault = act["text"], self.options.get("fault", "")
        if self.options.get("partner"):
            return self.between_two(act)
        self.turns += 1
        if fault == "tells" and act.get("calls"):
            return {"results": [self.options["hint"]]}
        if text == "now" and fault:
            return getattr(self, fault)()
        word, _, number = text.partition(" ")
        if word != "say" or not number.isascii() or not number.isdigit():
            self.turns -= 1
            return {"refused": "Write: say NUMBER"}
        if int(number) == self.options["number"]:
            return {"text": "Right.", "rewards": {"outcome": 1.0}, "end": "solved"}
        return {"text": f"Turn {self.turns}: no. {self.options['number'] if fault == 'drifts' else ''}"}

    def between_two(self, act):
        """The agent guesses, and a partner, who has a tool, says whether it is right."""
        self.turns += 1
        if self.turns % 2:
            asked = {"agent": "partner", "text": act["text"]}
            tool = {
                "name": "look",
                "description": "Look.",
                "parameters": {"type": "object", "properties": {}},
            }
            known = {"system": f"It is {self.options['number']}.", "tools": [tool]}
            return {**asked, **known} if self.turns == 1 else asked
        if act["text"] == "yes":
            return {"text": "Over.", "rewards": {"outcome": 1.0}, "end": "solved"}
        if act.get("calls"):
            self.turns -= 1
            return {"results": [f"You see {self.options['number'] + n}." for n in range(len(act["calls"]))]}
        return {"agent": "agent", "text": act["text"]}

    def gold(self):
        return [f"say {self.options['number']}"]

    def list(self, asked):
        return {"numbers": 1000, "pid": os.getpid(), **asked}

    # --- faults ----------------------------------------------------------------------------------

    def hangs(self):
        subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
        while True:
            pass

    def dies(self):
        os._exit(7)

    def raises(self):
        raise RuntimeError("the package is broken")

    def lies(self):
        return {"text": "", "rewards": {"outcome": float("inf")}}

    def invents(self):
        return {"text": "", "reward": 1.0}

    def mumbles(self):
        return {"text": 3}

    def scatters(self):
        return {"results": [1, 2]}

    def floods(self):
        return {"text": "x" * (2 << 20)}

    def forks(self):
        child = multiprocessing.get_context("fork").Process(target=sum, args=([1, 2],))
        child.start()
        child.join(20)
        return {"text": f"it ended with {child.exitcode}, and stdin has {sys.stdin.read()!r}"}

    def rearms(self):
        return {"text": "", "tools": self.options["then"]}

    def drifts(self):
        return {"text": ""}


SIDE = NumbersSide
