"""Contest problems on roads, trees and maps."""

from __future__ import annotations

from random import Random

from turnwise.envs.code.contest.core import Contest, contest, plus
from turnwise.envs.code.families.core import Arguments, program

_CAP = (1_000_000_007, 998_244_353, 10_007)


def _long_road(rng: Random, n: int) -> Arguments:
    """Roads that lead on step by step, told from the far end, and dear short cuts."""
    roads = [[i, i + 1, rng.randint(1, 9)] for i in reversed(range(n - 1))]
    for _ in range(n):
        a, b = rng.randrange(n), rng.randrange(n)
        roads.append([a, b, rng.randint(1, 9) if n < 12 else 30 * abs(a - b) + rng.randint(10, 90)])
    return n, roads


@contest("networks", toll=(1, 2, 3, 5, 9), free=(2, 3, 4, 5, 7))
def toll_roads(toll: int, free: int) -> Contest:
    return Contest(
        "toll_roads(n: int, roads: list) -> int",
        f"Towns are numbered from 0 to n - 1. A road [a, b, length] leads both ways. Entering a town costs a toll of {toll}; towns whose number is "
        f"divisible by {free} are free. Return the least sum of lengths and tolls on a way from town 0, where one begins without toll, to town n - 1.",
        "1 ≤ n ≤ 12,000 towns, up to 24,000 roads; a way exists, and 1 ≤ length ≤ 400,000",
        program(
            """
            from heapq import heappop, heappush

            def toll_roads(n, roads):
                near = [[] for _ in range(n)]
                for a, b, length in roads:
                    near[a].append((b, length + (0 if b % $free == 0 else $toll)))
                    near[b].append((a, length + (0 if a % $free == 0 else $toll)))
                best, heap = {0: 0}, [(0, 0)]
                while heap:
                    cost, town = heappop(heap)
                    if town == n - 1:
                        return cost
                    if cost > best[town]:
                        continue
                    for other, more in near[town]:
                        if cost + more < best.get(other, float("inf")):
                            best[other] = cost + more
                            heappush(heap, (cost + more, other))
            """, toll=toll, free=free),
        program(
            """
            def toll_roads(n, roads):
                best = [float("inf")] * n
                best[0] = 0
                changed = True
                while changed:
                    changed = False
                    for a, b, length in roads:
                        for one, other in ((a, b), (b, a)):
                            cost = best[one] + length + (0 if other % $free == 0 else $toll)
                            if cost < best[other]:
                                best[other], changed = cost, True
                return best[-1]
            """, toll=toll, free=free),
        _long_road, 12_000,
    )  # fmt: skip


@contest("networks", what=("groups", "largest", "pairs"), cap=_CAP)
def falling_bridges(what: str, cap: int) -> Contest:
    def draw(rng: Random, n: int) -> Arguments:
        bridges = [[i, i + 1] for i in range(n - 1)] + [
            [rng.randrange(n), rng.randrange(n)] for _ in range(n // 2 + 1)
        ]
        rng.shuffle(bridges)
        return n, bridges

    fast = {"groups": "n - joined", "largest": "most", "pairs": "pairs"}[what]
    words = {
        "groups": "the number of groups",
        "largest": "the number of islands in the largest group",
        "pairs": "the number of pairs of islands that are in the same group",
    }[what]
    naive = {
        "groups": "len(sizes)",
        "largest": "max(sizes)",
        "pairs": "sum(s * (s - 1) // 2 for s in sizes)",
    }[what]
    return Contest(
        "falling_bridges(n: int, bridges: list) -> int",
        "Islands 0 to n - 1 are linked by bridges [a, b], which fall one after the other in the order of the list; two may link the same islands. Islands that can "
        f"be reached from one another form a group, as does an island by itself. After each fall write down {words}. Return the sum of all these numbers modulo {cap}.",
        "1 ≤ n ≤ 20,000 islands, up to 30,000 bridges",
        program(
            f"""
            def falling_bridges(n, bridges):
                leader, size = list(range(n)), [1] * n
                joined, most, pairs, total = 0, 1, 0, 0

                def find(one):
                    while leader[one] != one:
                        leader[one] = leader[leader[one]]
                        one = leader[one]
                    return one

                for a, b in reversed(bridges):
                    total += {fast}
                    a, b = find(a), find(b)
                    if a != b:
                        if size[a] < size[b]:
                            a, b = b, a
                        pairs += size[a] * size[b]
                        leader[b] = a
                        size[a] += size[b]
                        joined, most = joined + 1, max(most, size[a])
                return total % $cap
            """, cap=cap),
        program(
            f"""
            def falling_bridges(n, bridges):
                total = 0
                for fallen in range(1, len(bridges) + 1):
                    near = [[] for _ in range(n)]
                    for a, b in bridges[fallen:]:
                        near[a].append(b)
                        near[b].append(a)
                    seen, sizes = [False] * n, []
                    for start in range(n):
                        if not seen[start]:
                            seen[start], group = True, [start]
                            for one in group:
                                for other in near[one]:
                                    if not seen[other]:
                                        seen[other] = True
                                        group.append(other)
                            sizes.append(len(group))
                    total += {naive}
                return total % $cap
            """, cap=cap),
        draw, 20_000,
    )  # fmt: skip


def _ladder(rng: Random, n: int) -> Arguments:
    """Steps that fork and meet again, so that ways double again and again."""
    edges = [[i, i + 1] for i in range(n - 1)] + [[i, i + 2] for i in range(n - 2)]
    edges += [sorted(rng.sample(range(n), 2)) for _ in range(n // 3) if n > 1]
    rng.shuffle(edges)
    return n, edges


@contest("networks", closed=(2, 3, 4, 5, 7, 9), cap=_CAP)
def count_routes(closed: int, cap: int) -> Contest:
    return Contest(
        "count_routes(n: int, slopes: list) -> int",
        f"Ski slopes [a, b] lead from hut a down to hut b, with a < b; the same slope may be listed twice and then counts as two. Hut i, with "
        f"0 < i < n - 1, is closed if i leaves the remainder {closed - 1} when divided by {closed * 7}. Return in how many ways one can ski from "
        f"hut 0 to hut n - 1 through open huts, modulo {cap}.",
        "1 ≤ n ≤ 40,000 huts, up to 100,000 slopes",
        program(
            """
            def count_routes(n, slopes):
                ways = [0] * n
                ways[0] = 1
                for a, b in sorted(slopes):
                    if b == n - 1 or b % $every != $rest:
                        ways[b] = (ways[b] + ways[a]) % $cap
                return ways[-1] % $cap
            """, every=closed * 7, rest=closed - 1, cap=cap),
        program(
            """
            def count_routes(n, slopes):
                down = {}
                for a, b in slopes:
                    if b == n - 1 or b % $every != $rest:
                        down.setdefault(a, []).append(b)
                found, stack = 0, [0]
                while stack:
                    hut = stack.pop()
                    if hut == n - 1:
                        found += 1
                    else:
                        stack += down.get(hut, ())
                return found % $cap
            """, every=closed * 7, rest=closed - 1, cap=cap),
        _ladder, 40_000, small=11,
    )  # fmt: skip


@contest("networks", bonus=(1, 2, 3, 10), every=(2, 3, 5, 8))
def longest_descent(bonus: int, every: int) -> Contest:
    return Contest(
        "longest_descent(n: int, slopes: list) -> int",
        f"Slopes [a, b] lead from hut a to hut b, with a < b. A slope is worth 1, and {bonus} more if a + b is divisible by {every}. A way begins at hut 0 and "
        "may end at any hut. Return the most that its slopes can be worth in all.",
        "1 ≤ n ≤ 40,000 huts, up to 100,000 slopes",
        program(
            """
            def longest_descent(n, slopes):
                best = [float("-inf")] * n
                best[0] = 0
                for a, b in sorted(slopes):
                    best[b] = max(best[b], best[a] + 1 + ($bonus if (a + b) % $every == 0 else 0))
                return max(best)
            """, bonus=bonus, every=every),
        program(
            """
            def longest_descent(n, slopes):
                down = {}
                for a, b in slopes:
                    down.setdefault(a, []).append((b, 1 + ($bonus if (a + b) % $every == 0 else 0)))
                best, stack = 0, [(0, 0)]
                while stack:
                    hut, worth = stack.pop()
                    best = max(best, worth)
                    stack += [(other, worth + more) for other, more in down.get(hut, ())]
                return best
            """, bonus=bonus, every=every),
        _ladder, 40_000, small=11,
    )  # fmt: skip


def _deep_tree(rng: Random, n: int) -> list[int]:
    """Parents of nodes 1, 2, … of ``n``, two at least: a long trunk with twigs."""
    n = max(n, 2)
    return (
        [max(0, i - rng.choice((1, 1, 1, 2))) for i in range(n - 1)]
        if n >= 12
        else [rng.randrange(i + 1) for i in range(n - 1)]
    )


@contest("networks", base=(0, 1, 2, 5), cap=(*_CAP, 65_537))
def tree_distances(base: int, cap: int) -> Contest:
    return Contest(
        "tree_distances(parents: list) -> int",
        f"Rivers join: spring 0 is the mouth, and spring i (from 1) flows into spring parents[i - 1], which has a smaller number. The stretch between "
        f"i and the one it flows into is (i mod 3){plus(base + 1)} long. Return the sum of the distances between all pairs of springs, each pair once, modulo {cap}.",
        "2 ≤ n ≤ 30,000 springs",
        program(
            """
            def tree_distances(parents):
                n = len(parents) + 1
                size, total = [1] * n, 0
                for i in range(n - 1, 0, -1):
                    size[parents[i - 1]] += size[i]
                    total += size[i] * (n - size[i]) * ($base + i % 3 + 1)
                return total % $cap
            """, base=base, cap=cap),
        program(
            """
            def tree_distances(parents):
                n = len(parents) + 1
                near = [[] for _ in range(n)]
                for i, parent in enumerate(parents, 1):
                    near[i].append((parent, $base + i % 3 + 1))
                    near[parent].append((i, $base + i % 3 + 1))
                total = 0
                for start in range(n):
                    stack = [(start, -1, 0)]
                    while stack:
                        one, came, far = stack.pop()
                        total += far
                        stack += [(other, one, far + length) for other, length in near[one] if other != came]
                return total // 2 % $cap
            """, base=base, cap=cap),
        lambda rng, n: (_deep_tree(rng, n),), 30_000, small=9,
    )  # fmt: skip


@contest("networks", what=("meeting", "distance", "depth"), cap=_CAP)
def common_boss(what: str, cap: int) -> Contest:
    def draw(rng: Random, n: int) -> Arguments:
        parents = _deep_tree(rng, n)
        last = len(parents)
        low = last - n // 8 if n >= 12 else 0
        return parents, [[rng.randint(low, last), rng.randint(0, last)] for _ in range(n)]

    worth = {"meeting": "a", "distance": "depth[one] + depth[other] - 2 * depth[a]", "depth": "depth[a]"}[
        what
    ]
    words = {
        "meeting": "the number of their nearest common boss",
        "distance": "the number of links on the way from one to the other",
        "depth": "how many links their nearest common boss is below person 0",
    }[what]
    return Contest(
        "common_boss(parents: list, pairs: list) -> int",
        "Person 0 leads a company; the boss of person i (from 1) is parents[i - 1], a smaller number. A boss's boss is a boss too, and everyone counts as a boss "
        f"of themselves. For each of the pairs [i, j] take {words}. Return the sum over all pairs modulo {cap}.",
        "2 ≤ n ≤ 40,000 persons, up to 40,000 pairs",
        program(
            f"""
            def common_boss(parents, pairs):
                n = len(parents) + 1
                boss, depth, jump = [0, *parents], [0] * n, [0] * n
                for i in range(1, n):
                    up = boss[i]
                    depth[i] = depth[up] + 1
                    far = jump[up]
                    jump[i] = jump[far] if depth[up] - depth[far] == depth[far] - depth[jump[far]] else up
                total = 0
                for one, other in pairs:
                    a, b = one, other
                    if depth[a] < depth[b]:
                        a, b = b, a
                    while depth[a] > depth[b]:
                        a = jump[a] if depth[jump[a]] >= depth[b] else boss[a]
                    while a != b:
                        if jump[a] != jump[b]:
                            a, b = jump[a], jump[b]
                        else:
                            a, b = boss[a], boss[b]
                    total += {worth}
                return total % $cap
            """, cap=cap),
        program(
            f"""
            def common_boss(parents, pairs):
                boss, depth = [0, *parents], [0] * (len(parents) + 1)
                for i in range(1, len(boss)):
                    depth[i] = depth[boss[i]] + 1
                total = 0
                for one, other in pairs:
                    a, b = one, other
                    while a != b:
                        if depth[a] < depth[b]:
                            a, b = b, a
                        a = boss[a]
                    total += {worth}
                return total % $cap
            """, cap=cap),
        draw, 40_000, small=9,
    )  # fmt: skip


@contest("networks", start=(0, 1, 2, 5, 10), way=("four", "eight"))
def rising_water(start: int, way: str) -> Contest:
    def draw(rng: Random, n: int) -> Arguments:
        if n < 12:
            return ([[rng.randint(0, 9) for _ in range(n)] for _ in range(n)],)
        wall = [
            [0 if x < n // 2 else rng.randint(0, 400_000_000) + 5_000_000 * x for x in range(n)]
            for _ in range(n)
        ]
        return (wall,)

    steps = [(0, 1), (1, 0), (0, -1), (-1, 0)] + (
        [(1, 1), (1, -1), (-1, 1), (-1, -1)] if way == "eight" else []
    )
    words = "side by side" if way == "four" else "side by side or corner to corner"
    level = f"t{plus(start)}"
    return Contest(
        "rising_water(heights: list) -> int",
        f"A boat lies in the top left field of a square map of heights and is to go to the bottom right one. It moves between fields that lie {words}, in no time, but only "
        f"over fields that are under water, the first and the last one included. At hour t the water stands at {level}, which covers fields of that height or lower. "
        "Return the first hour t ≥ 0 at which the boat can get there.",
        "a square of up to 110 × 110 fields, each from 0 to 1,000,000,000 high",
        program(
            """
            from heapq import heappop, heappush

            def rising_water(heights):
                n = len(heights)
                heap, seen = [(heights[0][0], 0, 0)], {(0, 0)}
                while heap:
                    level, y, x = heappop(heap)
                    if y == x == n - 1:
                        return max(0, level - $start)
                    for dy, dx in $steps:
                        a, b = y + dy, x + dx
                        if 0 <= a < n and 0 <= b < n and (a, b) not in seen:
                            seen.add((a, b))
                            heappush(heap, (max(level, heights[a][b]), a, b))
            """, start=start, steps=steps),
        program(
            """
            def rising_water(heights):
                n = len(heights)
                for level in sorted({$start, *(height for row in heights for height in row)}):
                    if level < $start or heights[0][0] > level:
                        continue
                    seen, edge = {(0, 0)}, [(0, 0)]
                    for y, x in edge:
                        for dy, dx in $steps:
                            a, b = y + dy, x + dx
                            if 0 <= a < n and 0 <= b < n and (a, b) not in seen and heights[a][b] <= level:
                                seen.add((a, b))
                                edge.append((a, b))
                    if (n - 1, n - 1) in seen:
                        return level - $start
            """, start=start, steps=steps),
        draw, 110, small=5,
    )  # fmt: skip


@contest("networks", which=("smallest", "largest"), cap=(*_CAP, 65_537, 97))
def cooking_order(which: str, cap: int) -> Contest:
    def draw(rng: Random, n: int) -> Arguments:
        rules = [sorted(rng.sample(range(n), 2)) for _ in range(n // 4)] if n > 1 else []
        names = rng.sample(range(n), n)
        return n, [[names[a], names[b]] for a, b in rules]

    pick, sign = ("min(free)", "") if which == "smallest" else ("max(free)", "-")
    return Contest(
        "cooking_order(n: int, rules: list) -> int",
        f"Dishes 0 to n - 1 are cooked one after the other. A rule [a, b] says that a must be cooked before b. The cook always takes the dish with the {which} "
        f"number of those that may be cooked. Return the sum of (place, from 1) · (dish) over the whole order, modulo {cap}.",
        "1 ≤ n ≤ 60,000 dishes, up to 15,000 rules that do not contradict each other",
        program(
            f"""
            from heapq import heapify, heappop, heappush

            def cooking_order(n, rules):
                after, waits = [[] for _ in range(n)], [0] * n
                for a, b in rules:
                    after[a].append(b)
                    waits[b] += 1
                free = [{sign}dish for dish in range(n) if not waits[dish]]
                heapify(free)
                total = 0
                for place in range(1, n + 1):
                    dish = {sign}heappop(free)
                    total += place * dish
                    for other in after[dish]:
                        waits[other] -= 1
                        if not waits[other]:
                            heappush(free, {sign}other)
                return total % $cap
            """, cap=cap),
        program(
            f"""
            def cooking_order(n, rules):
                after, waits = [[] for _ in range(n)], [0] * n
                for a, b in rules:
                    after[a].append(b)
                    waits[b] += 1
                free = [dish for dish in range(n) if not waits[dish]]
                total = 0
                for place in range(1, n + 1):
                    dish = {pick}
                    free.remove(dish)
                    total += place * dish
                    for other in after[dish]:
                        waits[other] -= 1
                        if not waits[other]:
                            free.append(other)
                return total % $cap
            """, cap=cap),
        draw, 60_000,
    )  # fmt: skip
