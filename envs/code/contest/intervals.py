"""Contest problems on spans of time, changes of many places at once, and choices in good order."""

from __future__ import annotations

from random import Random

from turnwise.envs.code.contest.core import Contest, Draw, contest, counted, plus, times
from turnwise.envs.code.families.core import Arguments, program

_SPANS = "1 ≤ n ≤ {:,} pairs [start, end] with 0 ≤ start < end ≤ 1,000,000,000"


def _spans(share: int) -> Draw:
    """Spans whose length is at most a part of the whole time."""

    def draw(rng: Random, n: int) -> Arguments:
        most = 14 if n < 12 else 1_000_000_000
        made: list[list[int]] = []
        for _ in range(n):
            start = rng.randrange(most - 1)
            made.append([start, min(most, start + rng.randint(1, max(2, most // share)))])
        return (made,)

    return draw


@contest("intervals", rest=(0, 1, 2, 3, 5, 30, 60, 1000))
def rooms_needed(rest: int) -> Contest:
    cleaning = f", and {counted(rest, 'minute')} more for cleaning" if rest else ""
    return Contest(
        "rooms_needed(meetings: list) -> int",
        f"A meeting [start, end] needs a room to itself from start up to end{cleaning}: the next one in the same room may begin at end{plus(rest)} or "
        "later. Return the fewest rooms in which all meetings can be held.",
        _SPANS.format(30_000),
        program(
            """
            def rooms_needed(meetings):
                starts = sorted(start for start, _ in meetings)
                ends = sorted(end + $rest for _, end in meetings)
                free = most = 0
                for place, start in enumerate(starts):
                    while ends[free] <= start:
                        free += 1
                    most = max(most, place + 1 - free)
                return most
            """, rest=rest),
        program(
            """
            def rooms_needed(meetings):
                most = 0
                for moment, _ in meetings:
                    most = max(most, sum(start <= moment < end + $rest for start, end in meetings))
                return most
            """, rest=rest),
        _spans(3), 30_000,
    )  # fmt: skip


@contest("intervals", reach=(0, 1, 2, 3, 5, 20, 90, 1000))
def lit_length(reach: int) -> Contest:
    return Contest(
        "lit_length(lamps: list) -> int",
        f"A lamp [start, end] lights a street from metre start to metre end{plus(reach)}. Return how many metres of the street are lit by at least one lamp.",
        _SPANS.format(20_000),
        program(
            """
            def lit_length(lamps):
                total, edge = 0, -1
                for start, end in sorted(lamps):
                    end += $reach
                    if end > edge:
                        total += end - max(start, edge)
                        edge = end
                return total
            """, reach=reach),
        program(
            """
            def lit_length(lamps):
                kept = []
                for start, end in lamps:
                    end += $reach
                    apart = []
                    for other in kept:
                        if other[1] < start or end < other[0]:
                            apart.append(other)
                        else:
                            start, end = min(start, other[0]), max(end, other[1])
                    kept = [*apart, (start, end)]
                return sum(end - start for start, end in kept)
            """, reach=reach),
        _spans(10_000_000), 20_000,
    )  # fmt: skip


@contest("intervals", how=("strictly", "weakly"), cap=(1_000_000_007, 998_244_353, 10_007, 65_537, 9973))
def nested_spans(how: str, cap: int) -> Contest:
    inside = "a < c and d < b" if how == "strictly" else "a <= c and d <= b and (a, b) != (c, d)"
    words = (
        "begins earlier and ends later"
        if how == "strictly"
        else "begins no later and ends no earlier, and is not equal to it"
    )
    return Contest(
        "nested_spans(spans: list) -> int",
        f"A span contains another one if it {words}. Return how many ordered pairs (a span, one that it contains) there are, modulo {cap}. "
        "Equal spans in the list count each by itself.",
        _SPANS.format(30_000),
        program(
            """
            from bisect import bisect_left, bisect_right

            def nested_spans(spans):
                spans = sorted(spans, key=lambda span: -span[0])
                ends = sorted({end for _, end in spans})
                tree, found, i = [0] * (len(ends) + 1), 0, 0

                def upto(place):
                    total = 0
                    while place > 0:
                        total += tree[place]
                        place -= place & -place
                    return total

                def add(end):
                    place = bisect_right(ends, end)
                    while place <= len(ends):
                        tree[place] += 1
                        place += place & -place

                while i < len(spans):
                    j = i
                    while j < len(spans) and spans[j][0] == spans[i][0]:
                        j += 1
                    group = spans[i:j]
                    if $strictly:
                        for _, end in group:
                            found += upto(bisect_left(ends, end))
                        for _, end in group:
                            add(end)
                    else:
                        for _, end in group:
                            add(end)
                        same = {}
                        for _, end in group:
                            same[end] = same.get(end, 0) + 1
                        for _, end in group:
                            found += upto(bisect_right(ends, end)) - same[end]
                    i = j
                return found % $cap
            """, cap=cap, strictly=how == "strictly"),
        program(
            f"""
            def nested_spans(spans):
                found = 0
                for a, b in spans:
                    for c, d in spans:
                        if {inside}:
                            found += 1
                return found % $cap
            """, cap=cap),
        _spans(4), 30_000,
    )  # fmt: skip


@contest("intervals", late=(0, 1, 2, 5, 10), bonus=(0, 1, 3, 7))
def best_jobs(late: int, bonus: int) -> Contest:
    earned = f"its pay and a bonus of {bonus}" if bonus else "its pay"

    def draw(rng: Random, n: int) -> Arguments:
        most = 9 if n < 12 else n // 4
        return ([[rng.randint(1, most), rng.randint(1, 12 if n < 12 else 1_000_000)] for _ in range(n)],)

    return Contest(
        "best_jobs(jobs: list) -> int",
        f"A machine does one job a day, from day 1 on. A job [deadline, pay] brings {earned} if it is done on day deadline{plus(late)} or "
        "before, and nothing later; jobs may be left out. Return the most that can be earned.",
        "1 ≤ n ≤ 70,000 jobs, 1 ≤ deadline ≤ 70,000, 1 ≤ pay ≤ 1,000,000",
        program(
            """
            from heapq import heappop, heappush

            def best_jobs(jobs):
                kept = []
                for deadline, pay in sorted(jobs):
                    heappush(kept, pay)
                    if len(kept) > deadline + $late:
                        heappop(kept)
                return sum(kept) + $bonus * len(kept)
            """, late=late, bonus=bonus),
        program(
            """
            def best_jobs(jobs):
                kept = []
                for deadline, pay in sorted(jobs):
                    kept.append(pay)
                    if len(kept) > deadline + $late:
                        kept.remove(min(kept))
                return sum(kept) + $bonus * len(kept)
            """, late=late, bonus=bonus),
        draw, 70_000, small=9,
    )  # fmt: skip


@contest("intervals", factor=(1, 2, 3, 5), cap=(1_000_000_007, 998_244_353, 10_007))
def range_sums(factor: int, cap: int) -> Contest:
    def draw(rng: Random, n: int) -> Arguments:
        steps: list[list[int]] = []
        for _ in range(n):
            a, b = sorted((rng.randrange(n), rng.randrange(n)))
            steps.append([0, a, rng.randint(1, 1000)] if rng.random() < 0.4 else [1, a, b])
        return n, steps

    return Contest(
        "range_sums(n: int, steps: list) -> int",
        f"A register has places 0 to n - 1, all 0 at first. A step [0, i, v] adds {times(factor)}v to place i; a step [1, a, b] with a ≤ b reads the sum of places a "
        f"to b, both included. Return the sum of (number of the step, from 1) · (what it reads) over all reading steps, modulo {cap}.",
        "1 ≤ n ≤ 100,000 places and as many steps, 1 ≤ v ≤ 1,000",
        program(
            """
            def range_sums(n, steps):
                tree, found = [0] * (n + 1), 0
                for number, (kind, a, b) in enumerate(steps, 1):
                    if kind == 0:
                        place = a + 1
                        while place <= n:
                            tree[place] += $factor * b
                            place += place & -place
                    else:
                        total, place = 0, b + 1
                        while place > 0:
                            total += tree[place]
                            place -= place & -place
                        place = a
                        while place > 0:
                            total -= tree[place]
                            place -= place & -place
                        found += number * total
                return found % $cap
            """, factor=factor, cap=cap),
        program(
            """
            def range_sums(n, steps):
                places, found = [0] * n, 0
                for number, (kind, a, b) in enumerate(steps, 1):
                    if kind == 0:
                        places[a] += $factor * b
                    else:
                        found += number * sum(places[a:b + 1])
                return found % $cap
            """, factor=factor, cap=cap),
        draw, 100_000,
    )  # fmt: skip


@contest("intervals", extra=(0, 1, 2, 3), what=("jumps", "far"))
def fewest_jumps(extra: int, what: str) -> Contest:
    def draw(rng: Random, n: int) -> Arguments:
        if n < 12:
            return ([rng.randint(0, 4) for _ in range(n)],)
        return ([rng.randint(n // 4, n // 3) if i < n - 9 else 0 for i in range(n)],)

    wanted = "the fewest jumps" if what == "jumps" else "three times the fewest jumps"
    times = 1 if what == "jumps" else 3
    return Contest(
        "fewest_jumps(springs: list) -> int",
        f"From board i one may jump up to springs[i]{plus(extra)} boards to the right. Return {wanted} that lead from the first board to "
        "the last one, or -1 if no jumps lead there.",
        "1 ≤ n ≤ 30,000 boards, 0 ≤ springs[i] ≤ 30,000",
        program(
            """
            def fewest_jumps(springs):
                jumps = edge = far = 0
                for i in range(len(springs) - 1):
                    far = max(far, i + springs[i] + $extra)
                    if i == edge:
                        if far <= i:
                            return -1
                        jumps, edge = jumps + 1, far
                return jumps * $times
            """, extra=extra, times=times),
        program(
            """
            def fewest_jumps(springs):
                n = len(springs)
                best = [None] * n
                best[0] = 0
                for i in range(n):
                    if best[i] is None:
                        return -1
                    for j in range(i + 1, min(n, i + springs[i] + $extra + 1)):
                        if best[j] is None or best[j] > best[i] + 1:
                            best[j] = best[i] + 1
                return best[-1] * $times
            """, extra=extra, times=times),
        draw, 30_000,
    )  # fmt: skip


@contest("intervals", first=(1, 2, 3, 5), add=(0, 1, 7, 100))
def merge_ropes(first: int, add: int) -> Contest:
    def draw(rng: Random, n: int) -> Arguments:
        return ([rng.randint(1, 20 if n < 12 else 1_000_000_000) for _ in range(n)],)

    return Contest(
        "merge_ropes(lengths: list) -> int",
        f"Two ropes are knotted into one whose length L is that of both together; this knot costs {times(first)}L{plus(add)}. Return the least cost "
        "of making one rope of all.",
        "1 ≤ n ≤ 60,000 ropes, each from 1 to 1,000,000,000 long",
        program(
            """
            from heapq import heapify, heappop, heapreplace

            def merge_ropes(lengths):
                heapify(lengths)
                cost = 0
                while len(lengths) > 1:
                    one = heappop(lengths)
                    both = one + lengths[0]
                    heapreplace(lengths, both)
                    cost += $first * both + $add
                return cost
            """, first=first, add=add),
        program(
            """
            def merge_ropes(lengths):
                cost = 0
                while len(lengths) > 1:
                    one = min(lengths)
                    lengths.remove(one)
                    other = min(lengths)
                    lengths.remove(other)
                    lengths.append(one + other)
                    cost += $first * (one + other) + $add
                return cost
            """, first=first, add=add),
        draw, 60_000,
    )  # fmt: skip
