"""Exercises on nodes and edges."""

from __future__ import annotations

from random import Random

from turnwise.envs.code.families.core import Arguments, Exercise, program, template

_FORM = "Nodes are 0 to n - 1; edges is a list of [a, b], each leading both ways (a may be b, and an edge may occur twice)."


def _edges(rng: Random, n: int, count: int) -> list[list[int]]:
    return [[rng.randrange(n), rng.randrange(n)] for _ in range(count)]


def _sparse(rng: Random) -> Arguments:
    n = rng.randint(2, 9)
    return n, _edges(rng, n, rng.randint(1, n + 2))


@template("graphs", 2, start=("first", "last"), closed=(2, 3, 4, 5, 7), away=(-1, 0, 99))
def walk_distances(start: str, closed: int, away: int) -> Exercise:
    solution = program(
        f"""
        def walk_distances(n, edges):
            start = {"0" if start == "first" else "n - 1"}
            steps, queue = {{start: 0}}, [start]
            for node in queue:
                if node != start and node % $closed == 0:
                    continue
                for a, b in edges:
                    for here, there in ((a, b), (b, a)):
                        if here == node and there not in steps:
                            steps[there] = steps[node] + 1
                            queue.append(there)
            return [steps.get(node, $away) for node in range(n)]
        """,
        closed=closed,
        away=away,
    )
    text = (
        f"{_FORM} Return for each node the fewest edges on a way to it from the {start} node, or {away} if there is no way. A way may end at "
        f"a node that divides by {closed}, but not pass through it; the start itself is always open."
    )
    edges = ((1, []), (4, [[0, 1], [1, 2], [2, 3]]), (6, [[i, i + 1] for i in range(5)]), (9, [[i, i + 1] for i in range(8)] + [[0, 8]]), (5, [[4, 0], [0, 2], [3, 3]]), (9, [[8, 7], [7, 1], [1, 5], [5, 3]]))  # fmt: skip
    return Exercise(
        "walk_distances", "walk_distances(n: int, edges: list) -> list", text, solution, _sparse, edges
    )


@template("graphs", 2, least=(1, 2, 3, 4), what=("count", "sizes", "leaders"))
def find_groups(least: int, what: str) -> Exercise:
    answers = {
        "count": ("len(groups)", "how many such groups there are"),
        "sizes": ("sorted(len(group) for group in groups)", "the sorted list of their sizes"),
        "leaders": ("sorted(max(group) for group in groups)", "the sorted list of the largest node of each"),
    }
    solution = program(
        f"""
        def find_groups(n, edges):
            groups = [[node] for node in range(n)]
            for a, b in edges:
                one = next(group for group in groups if a in group)
                if b not in one:
                    other = next(group for group in groups if b in group)
                    groups.remove(other)
                    one += other
            groups = [group for group in groups if len(group) >= $least]
            return {answers[what][0]}
        """,
        least=least,
    )
    text = f"{_FORM} A group is all nodes that are linked, directly or through others. Of the groups with at least {least} node(s), return {answers[what][1]}."

    def draw(rng: Random) -> Arguments:
        n = rng.randint(2, 11)
        return n, _edges(rng, n, rng.randint(0, n - 1))

    edges = (
        (0, []),
        (1, []),
        (5, []),
        (6, [[0, 1], [2, 3], [1, 2]]),
        (4, [[3, 3], [0, 1], [1, 0]]),
        (9, [[0, 8], [8, 4], [1, 2], [5, 6], [6, 7], [7, 5]]),
    )
    return Exercise(
        "find_groups",
        "find_groups(n: int, edges: list) -> " + ("int" if what == "count" else "list"),
        text,
        solution,
        draw,
        edges,
    )


@template("graphs", 3, tie=("smallest", "largest"), stuck=("empty", "part"), odd=(True, False))
def order_jobs(tie: str, stuck: str, odd: bool) -> Exercise:
    solution = program(
        f"""
        def order_jobs(n, before):
            order, waiting = [], set(range(n))
            while waiting:
                ready = [job for job in waiting if all(a not in waiting for a, b in before if b == job)]
                if not ready:
                    return {"[]" if stuck == "empty" else "order"}
                if $odd and any(job % 2 for job in ready):
                    ready = [job for job in ready if job % 2]
                job = {"min" if tie == "smallest" else "max"}(ready)
                waiting.remove(job)
                order.append(job)
            return order
        """,
        odd=odd,
    )
    first = "an odd one before any even one, else " if odd else ""
    text = (
        f"Jobs are 0 to n - 1; before is a list of [a, b]: a must be done before b. Do one job at a time; of those that may be done take {first}the "
        f"{tie}. Return the order as a list. If it comes to a point where jobs are left but none may be done, return "
        f"{'the empty list' if stuck == 'empty' else 'the order so far'}."
    )

    def draw(rng: Random) -> Arguments:
        n = rng.randint(2, 7)
        pairs = _edges(rng, n, rng.randint(1, n + 1))
        if rng.random() < 0.8:
            pairs = [[min(p), max(p)] for p in pairs if p[0] != p[1]]
        return n, pairs

    edges = (
        (0, []),
        (5, []),
        (2, [[0, 1], [1, 0]]),
        (3, [[1, 1]]),
        (5, [[4, 0], [4, 3], [0, 1]]),
        (6, [[5, 4], [3, 2], [1, 0], [2, 5]]),
    )
    return Exercise("order_jobs", "order_jobs(n: int, before: list) -> list", text, solution, draw, edges)


@template("graphs", 3, toll=(0, 1, 2, 5), free=(0, 2, 3), away=(-1, 0))
def cheapest_way(toll: int, free: int, away: int) -> Exercise:
    solution = program(
        """
        def cheapest_way(n, roads):
            cost = {0: 0}
            for _ in range(n):
                for a, b, length in roads:
                    for here, there in ((a, b), (b, a)):
                        if here in cost:
                            price = cost[here] + length + ($toll if length > $free else 0)
                            if there not in cost or price < cost[there]:
                                cost[there] = price
            return cost.get(n - 1, $away)
        """,
        toll=toll,
        free=free,
        away=away,
    )
    text = (
        f"Places are 0 to n - 1; roads is a list of [a, b, length], each leading both ways. Using a road costs its length, and {toll} more if it "
        f"is longer than {free}. Return the cost of the cheapest way from place 0 to place n - 1, or {away} if there is none."
    )

    def draw(rng: Random) -> Arguments:
        n = rng.randint(2, 7)
        return n, [[*pair, rng.randint(1, 6)] for pair in _edges(rng, n, rng.randint(n - 1, 2 * n))]

    long = [[i, i + 1, 1] for i in range(5)]
    edges = ((1, []), (2, []), (2, [[1, 0, 3]]), (2, [[0, 1, 9], [0, 1, 2]]), (6, [*long[::-1], [0, 5, 7]]), (4, [[3, 2, 1], [2, 1, 1], [1, 0, 1], [0, 3, 30]]), (2, [[0, 1, free + 1]]), (2, [[0, 1, max(free, 1)]]))  # fmt: skip
    return Exercise("cheapest_way", "cheapest_way(n: int, roads: list) -> int", text, solution, draw, edges)


@template("graphs", 1, least=(1, 2, 3), loops=("once", "twice", "never"), order=("up", "down"))
def busy_nodes(least: int, loops: str, order: str) -> Exercise:
    solution = program(
        """
        def busy_nodes(n, edges):
            ends = [0] * n
            for a, b in edges:
                if a == b:
                    ends[a] += $loop
                else:
                    ends[a] += 1
                    ends[b] += 1
            return sorted([node for node in range(n) if ends[node] >= $least], reverse=$down)
        """,
        least=least,
        loop={"once": 1, "twice": 2, "never": 0}[loops],
        down=order == "down",
    )
    count = {"once": "counts once", "twice": "counts twice", "never": "does not count"}[loops]
    text = (
        f"{_FORM} Return the nodes at which at least {least} edge end(s) lie, the {'smallest' if order == 'up' else 'largest'} first. "
        f"An edge from a node to itself {count}."
    )
    edges = (
        (0, []),
        (3, []),
        (3, [[0, 0], [1, 1], [1, 1], [1, 2]]),
        (5, [[0, 1], [1, 2], [2, 3], [3, 4], [3, 1]]),
        (2, [[0, 1]] * 3),
    )
    return Exercise("busy_nodes", "busy_nodes(n: int, edges: list) -> list", text, solution, _sparse, edges)
