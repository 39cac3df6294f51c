"""Exercises on small data structures: a list of operations goes in, what they answer comes out."""

from __future__ import annotations

from random import Random
from typing import Any

from turnwise.envs.code.families.core import Arguments, Exercise, program, template


def _many(rng: Random, kinds: str, low: int, high: int, most: int = 14) -> list[list[Any]]:
    made: list[list[Any]] = []
    for _ in range(rng.randint(2, most)):
        kind = rng.choice(kinds.split())
        made.append([kind, rng.randint(low, high)] if kind in ("push", "add", "write") else [kind])
    return made


@template("structures", 3, room=(1, 2, 3, 4), missing=(-1, 0, None), touch=(True, False))
def run_cache(room: int, missing: int | None, touch: bool) -> Exercise:
    solution = program(
        """
        def run_cache(operations):
            kept, answers = {}, []
            for operation in operations:
                key = operation[1]
                if operation[0] == "get":
                    answers.append(kept.get(key, $missing))
                    if $touch and key in kept:
                        kept[key] = kept.pop(key)
                else:
                    kept.pop(key, 0)
                    kept[key] = operation[2]
                    if len(kept) > $room:
                        del kept[next(iter(kept))]
            return answers
        """,
        room=room,
        missing=missing,
        touch=touch,
    )
    age = "was put or got longest ago" if touch else "was put longest ago"
    text = (
        f"A cache holds {room} key(s). ['put', key, value] keeps a value, in place of the key's older one; where that makes too many keys, the one "
        f"that {age} is dropped. ['get', key] answers its value, or {missing!r} where there is none. Return the list of answers."
    )

    def draw(rng: Random) -> Arguments:
        made: list[list[Any]] = []
        for _ in range(rng.randint(4, 16)):
            key = rng.choice("abcdef"[: room + 2])
            made.append(["get", key] if rng.random() < 0.5 else ["put", key, rng.randint(1, 9)])
        return (made,)

    fill = [["put", key, i] for i, key in enumerate("abcde"[:room], 1)]
    look = [["get", key] for key in "abcdez"]
    edges = (([],), (look,), ([*fill, *look],), ([*fill, ["get", "a"], ["put", "z", 9], *look],), ([*fill, ["put", "a", 7], ["put", "z", 9], *look],))  # fmt: skip
    return Exercise("run_cache", "run_cache(operations: list) -> list", text, solution, draw, edges)


@template(
    "structures", 2, room=(2, 3, 4, 5), full=("ignore", "oldest"), asks=("max", "min", "sum"), none=(0, -1)
)
def run_stack(room: int, full: str, asks: str, none: int) -> Exercise:
    solution = program(
        f"""
        def run_stack(operations):
            stack, answers = [], []
            for operation in operations:
                if operation[0] == "push":
                    if len(stack) < $room:
                        stack.append(operation[1])
                    elif $oldest:
                        stack.pop(0)
                        stack.append(operation[1])
                elif operation[0] == "pop":
                    answers.append(stack.pop() if stack else $none)
                else:
                    answers.append({asks}(stack) if stack else $none)
            return answers
        """,
        room=room,
        oldest=full == "oldest",
        none=none,
    )
    over = "pushes out the number at the bottom" if full == "oldest" else "does nothing"
    text = (
        f"A stack holds {room} numbers. ['push', x] puts x on top; on a full stack it {over}. ['pop'] takes the top off and answers it. ['ask'] answers "
        f"the {asks} of the numbers in it. On an empty stack both answer {none}. Return the list of answers."
    )
    pushes = [["push", x] for x in (3, 9, 1, 7, 5, 8)]
    edges = (
        ([],),
        ([["pop"], ["ask"]],),
        ([*pushes, ["ask"], *[["pop"]] * 6],),
        ([*pushes[: room - 1], ["ask"], ["push", 4], ["ask"], ["pop"], ["ask"]],),
    )
    return Exercise(
        "run_stack",
        "run_stack(operations: list) -> list",
        text,
        solution,
        lambda rng: (_many(rng, "push push push pop ask", -9, 20),),
        edges,
    )


@template("structures", 2, size=(2, 3, 4, 5), asks=("sum", "max", "spread"), part=("all", "even"))
def run_ring(size: int, asks: str, part: str) -> Exercise:
    answer = {"sum": "sum(seen)", "max": "max(seen)", "spread": "max(seen) - min(seen)"}[asks]
    solution = program(
        f"""
        def run_ring(operations):
            ring, answers = [], []
            for operation in operations:
                if operation[0] == "write":
                    ring.append(operation[1])
                    if len(ring) > $size:
                        ring.pop(0)
                elif operation[0] == "clear":
                    ring = []
                else:
                    seen = {"ring" if part == "all" else "[x for x in ring if x % 2 == 0]"}
                    answers.append({answer} if seen else 0)
            return answers
        """,
        size=size,
    )
    whole = {"sum": "the sum", "max": "the largest", "spread": "the largest minus the smallest"}[asks]
    text = (
        f"A ring remembers the last {size} numbers. ['write', x] writes one, ['clear'] forgets all, ['ask'] answers {whole} of the "
        f"{'numbers' if part == 'all' else 'even numbers'} that it remembers, or 0 if there are none. Return the list of answers."
    )
    writes = [["write", x] for x in (4, 8, 3, 6, 1, 2)]
    edges = (([],), ([["ask"]],), ([*writes, ["ask"], ["clear"], ["ask"]],), ([step for write in writes for step in (write, ["ask"])],), ([["write", 5], ["ask"], ["write", -2], ["ask"]],))  # fmt: skip
    return Exercise(
        "run_ring",
        "run_ring(operations: list) -> list",
        text,
        solution,
        lambda rng: (_many(rng, "write write write write ask ask clear", -9, 20),),
        edges,
    )


@template("structures", 3, first=("smallest", "largest"), tie=("old", "new"), none=("", "-"))
def run_line(first: str, tie: str, none: str) -> Exercise:
    better = {"smallest": "<", "largest": ">"}[first]
    solution = program(
        f"""
        def run_line(operations):
            line, answers = [], []
            for operation in operations:
                if operation[0] == "add":
                    line.append((operation[1], operation[2]))
                elif operation[0] == "drop":
                    line = [entry for entry in line if entry[1] != operation[1]]
                else:
                    best = None
                    for i in range(len(line)):
                        if best is None or line[i][0] {better}{"=" if tie == "new" else ""} line[best][0]:
                            best = i
                    answers.append($none if best is None else line.pop(best)[1])
            return answers
        """,
        none=none,
    )
    text = (
        f"['add', rank, name] puts a name in line; ['drop', name] takes out all entries with this name; ['next'] takes out and answers the name with the "
        f"{first} rank, of equal ones the one that was added {'first' if tie == 'old' else 'last'}, or {none!r} if the line is empty. Return the list of answers."
    )

    def draw(rng: Random) -> Arguments:
        made: list[list[Any]] = []
        for _ in range(rng.randint(3, 14)):
            kind = rng.choice(["add", "add", "add", "next", "next", "drop"])
            name = rng.choice("abcde")
            made.append(
                {"add": ["add", rng.randint(1, 4), name], "next": ["next"], "drop": ["drop", name]}[kind]
            )
        return (made,)

    adds = [["add", r, n] for r, n in ((2, "a"), (1, "b"), (2, "c"), (1, "d"), (3, "e"))]
    edges = (
        ([],),
        ([["next"]],),
        ([*adds, *[["next"]] * 6],),
        ([*adds, ["drop", "b"], ["drop", "z"], *[["next"]] * 5],),
    )
    return Exercise("run_line", "run_line(operations: list) -> list", text, solution, draw, edges)


@template("structures", 2, top=(1, 2, 3), tie=("name", "early"), least=(1, 2))
def run_counter(top: int, tie: str, least: int) -> Exercise:
    key = "(-counts[name], name)" if tie == "name" else "-counts[name]"
    solution = program(
        f"""
        def run_counter(operations):
            counts, answers = {{}}, []
            for operation in operations:
                if operation[0] == "top":
                    names = [name for name in counts if counts[name] >= $least]
                    answers.append(sorted(names, key=lambda name: {key})[:$top])
                else:
                    step = 1 if operation[0] == "add" else -1
                    counts[operation[1]] = max(0, counts.get(operation[1], 0) + step)
            return answers
        """,
        top=top,
        least=least,
    )
    second = "by the alphabet" if tie == "name" else "in the order in which they were first added or taken"
    text = (
        f"['add', name] counts a name once more, ['take', name] once less (not below 0), ['top'] answers the list of the {top} name(s) with the "
        f"highest counts, highest first, equal ones {second}; names with a count below {least} are left out. Return the list of answers."
    )

    def draw(rng: Random) -> Arguments:
        made: list[list[Any]] = []
        for _ in range(rng.randint(4, 18)):
            kind = rng.choice(["add", "add", "add", "add", "take", "top"])
            made.append(["top"] if kind == "top" else [kind, rng.choice("dacb")])
        return ([*made, ["top"]],)

    adds = [["add", name] for name in "dbacabddc"]
    edges = (([],), ([["top"]],), ([*adds, ["top"]],), ([["take", "b"], ["add", "b"], ["top"], ["add", "a"], ["top"], ["add", "b"], ["add", "b"], ["top"]],), ([*adds, *[["take", "d"]] * 4, ["add", "d"], ["top"]],))  # fmt: skip
    return Exercise("run_counter", "run_counter(operations: list) -> list", text, solution, draw, edges)
