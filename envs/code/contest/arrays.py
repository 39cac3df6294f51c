"""Contest problems on rows of numbers."""

from __future__ import annotations

from random import Random

from turnwise.envs.code.contest.core import Contest, contest, counted, plus, times, whole
from turnwise.envs.code.families.core import Arguments, program

_N = "1 ≤ n ≤ {:,} numbers"
_BIG = ", each from 1 to 1,000,000,000"


def _row(rng: Random, n: int) -> Arguments:
    return (whole(rng, n),)


def _signed(rng: Random, n: int) -> Arguments:
    most = 4 if n < 12 else 1000
    return ([rng.randint(-most, most) for _ in range(n)],)


@contest("arrays", m=(7, 11, 13, 30, 97, 360), r=(0, 1, 3, 5))
def residue_pairs(m: int, r: int) -> Contest:
    return Contest(
        "residue_pairs(weights: list) -> int",
        f"A warehouse ships its parcels in pairs. A pair is good if the weights of its two parcels, added, leave the remainder {r} when "
        f"divided by {m}. Given the weights of all parcels, return how many good pairs there are.",
        _N.format(60_000) + _BIG,
        program(
            """
            def residue_pairs(weights):
                seen, found = [0] * $m, 0
                for weight in weights:
                    found += seen[($r - weight) % $m]
                    seen[weight % $m] += 1
                return found
            """, m=m, r=r),
        program(
            """
            def residue_pairs(weights):
                found = 0
                for i in range(len(weights)):
                    for j in range(i):
                        if (weights[i] + weights[j]) % $m == $r:
                            found += 1
                return found
            """, m=m, r=r),
        _row, 60_000,
    )  # fmt: skip


@contest("arrays", d=(0, 2, 5, 40, 1000, 250_000, 3_000_000, 10_000_000))
def close_pairs(d: int) -> Contest:
    return Contest(
        "close_pairs(heights: list) -> int",
        f"Two dancers may dance together if their heights differ by at most {d:,}. Return how many pairs of dancers may dance together.",
        _N.format(60_000) + _BIG,
        program(
            """
            def close_pairs(heights):
                heights = sorted(heights)
                start = found = 0
                for end in range(len(heights)):
                    while heights[end] - heights[start] > $d:
                        start += 1
                    found += end - start
                return found
            """, d=d),
        program(
            """
            def close_pairs(heights):
                found = 0
                for i in range(len(heights)):
                    for j in range(i):
                        if abs(heights[i] - heights[j]) <= $d:
                            found += 1
                return found
            """, d=d),
        _row, 60_000,
    )  # fmt: skip


@contest("arrays", factor=(1, 2, 3, 4, 5), more=(0, 1, 3, 10))
def heavy_inversions(factor: int, more: int) -> Contest:
    return Contest(
        "heavy_inversions(values: list) -> int",
        f"Customers stand in a queue, the first one first, and each has a number. A customer with number a annoys one with number b who stands "
        f"behind if a > {times(factor)}b{plus(more)}. Return of how many pairs of customers the one in front annoys the one behind.",
        _N.format(50_000) + _BIG,
        program(
            """
            from bisect import bisect_right

            def heavy_inversions(values):
                order = sorted(set(values))
                tree, found, seen = [0] * (len(order) + 1), 0, 0
                for value in values:
                    place = bisect_right(order, $factor * value + $more)
                    below = 0
                    while place > 0:
                        below += tree[place]
                        place -= place & -place
                    found += seen - below
                    seen += 1
                    place = bisect_right(order, value)
                    while place <= len(order):
                        tree[place] += 1
                        place += place & -place
                return found
            """, factor=factor, more=more),
        program(
            """
            def heavy_inversions(values):
                return sum(values[i] > $factor * values[j] + $more for j in range(len(values)) for i in range(j))
            """, factor=factor, more=more),
        _row, 50_000,
    )  # fmt: skip


@contest("arrays", gap=(0, 1, 2, 3, 5, 100, 5000, 100_000))
def longest_climb(gap: int) -> Contest:
    step = f"at least {gap:,} higher than" if gap else "at least as high as"
    return Contest(
        "longest_climb(heights: list) -> int",
        f"A climber walks along a ridge from left to right and may leave rocks out. Each rock stepped on must be {step} the one stepped on "
        "before. Return the most rocks that can be stepped on.",
        _N.format(40_000) + _BIG,
        program(
            """
            from bisect import bisect_right

            def longest_climb(heights):
                tails = []
                for height in heights:
                    place = bisect_right(tails, height - $gap)
                    if place == len(tails):
                        tails.append(height)
                    elif height < tails[place]:
                        tails[place] = height
                return len(tails)
            """, gap=gap),
        program(
            """
            def longest_climb(heights):
                best = []
                for i, height in enumerate(heights):
                    best.append(1 + max((best[j] for j in range(i) if heights[j] + $gap <= height), default=0))
                return max(best)
            """, gap=gap),
        _row, 40_000,
    )  # fmt: skip


@contest("arrays", part=(2, 3, 4, 5, 6), what=("max", "min"))
def window_total(part: int, what: str) -> Contest:
    sign, word = (">=", "highest") if what == "max" else ("<=", "lowest")
    return Contest(
        "window_total(prices: list) -> int",
        f"With n prices, a window is any n // {part} + 1 prices that follow one another. Return the sum, over all windows, of the {word} "
        "price in the window.",
        _N.format(80_000) + _BIG,
        program(
            f"""
            from collections import deque

            def window_total(prices):
                width, kept, total = len(prices) // $part + 1, deque(), 0
                for i, price in enumerate(prices):
                    while kept and price {sign} prices[kept[-1]]:
                        kept.pop()
                    kept.append(i)
                    if kept[0] <= i - width:
                        kept.popleft()
                    if i >= width - 1:
                        total += prices[kept[0]]
                return total
            """, part=part),
        program(
            f"""
            def window_total(prices):
                width = len(prices) // $part + 1
                return sum({what}(prices[i:i + width]) for i in range(len(prices) - width + 1))
            """, part=part),
        _row, 80_000,
    )  # fmt: skip


@contest("arrays", sign=("<", "<=", ">", ">="), cap=(1_000_000_007, 998_244_353, 10_007))
def look_back(sign: str, cap: int) -> Contest:
    word = {
        "<": "is lower than",
        "<=": "is at most as high as",
        ">": "is higher than",
        ">=": "is at least as high as",
    }[sign]
    other = {"<": ">=", "<=": ">", ">": "<=", ">=": "<"}[sign]

    def draw(rng: Random, n: int) -> Arguments:
        row = sorted(whole(rng, n), reverse=sign.startswith("<"))
        if n >= 12:
            row = [value + rng.randint(0, 9) for value in row]
        elif rng.random() < 0.7:
            rng.shuffle(row)
        return (row,)

    return Contest(
        "look_back(towers: list) -> int",
        f"From each tower one looks back (to the left) and sees the nearest tower that {word} this one. Its distance is the difference of the "
        f"two positions, or 0 if there is no such tower. Multiply each distance by the position (from 1) of the tower one looks from, and "
        f"return the sum of the products modulo {cap}.",
        _N.format(50_000) + ", each from 1 to 1,000,000,009",
        program(
            f"""
            def look_back(towers):
                kept, total = [], 0
                for i, tower in enumerate(towers):
                    while kept and towers[kept[-1]] {other} tower:
                        kept.pop()
                    if kept:
                        total += (i - kept[-1]) * (i + 1)
                    kept.append(i)
                return total % $cap
            """, cap=cap),
        program(
            f"""
            def look_back(towers):
                total = 0
                for i in range(len(towers)):
                    for j in range(i - 1, -1, -1):
                        if towers[j] {sign} towers[i]:
                            total += (i - j) * (i + 1)
                            break
                return total % $cap
            """, cap=cap),
        draw, 50_000,
    )  # fmt: skip


@contest("arrays", goal=(-7, -3, 0, 1, 2, 5, 12, 30, 101))
def exact_stretches(goal: int) -> Contest:
    return Contest(
        "exact_stretches(changes: list) -> int",
        f"The balance of an account changes once a day. A stretch is one or more days in a row. Return for how many stretches "
        f"the changes add up to exactly {goal}.",
        _N.format(40_000) + ", each from -1000 to 1000",
        program(
            """
            def exact_stretches(changes):
                seen, total, found = {0: 1}, 0, 0
                for change in changes:
                    total += change
                    found += seen.get(total - $goal, 0)
                    seen[total] = seen.get(total, 0) + 1
                return found
            """, goal=goal),
        program(
            """
            def exact_stretches(changes):
                found = 0
                for start in range(len(changes)):
                    total = 0
                    for end in range(start, len(changes)):
                        total += changes[end]
                        found += total == $goal
                return found
            """, goal=goal),
        _signed, 40_000,
    )  # fmt: skip


@contest("arrays", kinds=(2, 3, 4, 5, 8, 12), what=("at most", "exactly"))
def varied_stretches(kinds: int, what: str) -> Contest:
    def draw(rng: Random, n: int) -> Arguments:
        rare = 3 / n if n >= 12 else 0.3
        return ([kinds + 1 if rng.random() < rare else rng.randint(1, kinds) for _ in range(n)],)

    count = "count(kinds) - count(kinds - 1)" if what == "exactly" else "count(kinds)"
    test = "== $kinds" if what == "exactly" else "<= $kinds"
    return Contest(
        "varied_stretches(flowers: list) -> int",
        f"Flowers of several kinds stand in a row. A bouquet is one or more flowers that stand next to one another. Return how many "
        f"bouquets have {what} {kinds} different kinds.",
        _N.format(40_000) + " from 1 to 100, the kinds of the flowers",
        program(
            f"""
            def varied_stretches(flowers):
                def count(most):
                    number, start, found = {{}}, 0, 0
                    for end, flower in enumerate(flowers):
                        number[flower] = number.get(flower, 0) + 1
                        while len(number) > most:
                            first = flowers[start]
                            number[first] -= 1
                            if not number[first]:
                                del number[first]
                            start += 1
                        found += end - start + 1
                    return found

                kinds = $kinds
                return {count}
            """, kinds=kinds),
        program(
            f"""
            def varied_stretches(flowers):
                found = 0
                for start in range(len(flowers)):
                    seen = set()
                    for end in range(start, len(flowers)):
                        seen.add(flowers[end])
                        if len(seen) > $kinds:
                            break
                        found += len(seen) {test}
                return found
            """, kinds=kinds),
        draw, 40_000,
    )  # fmt: skip


@contest("arrays", rest=(1, 2, 3, 4, 5, 8, 20, 100))
def rested_harvest(rest: int) -> Contest:
    return Contest(
        "rested_harvest(yields: list) -> int",
        f"A field can be harvested on any days, but after a harvest it must rest for at least {counted(rest, 'day')}: a harvest on day i is followed "
        f"by one on day i + {rest + 1} at the earliest. Each day's yield is known and may be negative. Return the most that can be harvested in all; harvesting nothing gives 0.",
        _N.format(60_000) + ", each from -1000 to 1000",
        program(
            """
            def rested_harvest(yields):
                best = [0]
                for i, gain in enumerate(yields):
                    best.append(max(best[i], gain + best[max(0, i - $rest)]))
                return best[-1]
            """, rest=rest),
        program(
            """
            def rested_harvest(yields):
                ending = []
                for i, gain in enumerate(yields):
                    before = ending[:max(0, i - $rest)]
                    ending.append(gain + max(0, max(before, default=0)))
                return max(0, max(ending))
            """, rest=rest),
        _signed, 60_000,
    )  # fmt: skip


@contest("arrays", fee=(0, 1, 2, 5, 10, 50), hold=(0, 1, 2, 4))
def trade_with_fee(fee: int, hold: int) -> Contest:
    cost = f" Each sale costs a fee of {fee}." if fee else ""

    def draw(rng: Random, n: int) -> Arguments:
        return ([rng.randint(1, 12 if n < 12 else 5000) for _ in range(n)],)

    return Contest(
        "trade_with_fee(prices: list) -> int",
        f"A trader holds at most one share at a time; after a sale the next one may be bought on the same day.{cost} A share "
        f"bought on day i may be sold on day i + {hold + 1} or later. Return the largest profit, 0 if no trade pays.",
        _N.format(40_000) + ", each from 1 to 5,000",
        program(
            """
            def trade_with_fee(prices):
                done, holding = [0], float("-inf")
                for i, price in enumerate(prices):
                    bought = i - $hold - 1
                    if bought >= 0:
                        holding = max(holding, max(done[bought], done[bought + 1]) - prices[bought])
                    done.append(max(done[-1], holding + price - $fee))
                return done[-1]
            """, fee=fee, hold=hold),
        program(
            """
            def trade_with_fee(prices):
                done = [0]
                for i, price in enumerate(prices):
                    best = done[-1]
                    for j in range(i - $hold):
                        best = max(best, max(done[j], done[j + 1]) + price - prices[j] - $fee)
                    done.append(best)
                return done[-1]
            """, fee=fee, hold=hold),
        draw, 40_000,
    )  # fmt: skip


@contest("arrays", low=("<", "<="), high=("<", "<="), cap=(1_000_000_007, 998_244_353, 10_007, 65_537))
def rising_triples(low: str, high: str, cap: int) -> Contest:
    word = {"<": "greater than", "<=": "at least"}
    return Contest(
        "rising_triples(values: list) -> int",
        f"Count the triples of positions i < j < k in which the second value is {word[low]} the first and the third is {word[high]} the second. "
        f"Return their number modulo {cap}.",
        _N.format(30_000) + _BIG,
        program(
            f"""
            from bisect import bisect_left, bisect_right

            def rising_triples(values):
                order = sorted(set(values))
                ones, pairs, found = [0] * (len(order) + 1), [0] * (len(order) + 1), 0

                def upto(tree, place):
                    total = 0
                    while place > 0:
                        total += tree[place]
                        place -= place & -place
                    return total

                for value in values:
                    left, right = bisect_left(order, value), bisect_right(order, value)
                    one = upto(ones, {"left" if low == "<" else "right"})
                    found += upto(pairs, {"left" if high == "<" else "right"})
                    place = right
                    while place <= len(order):
                        ones[place] += 1
                        pairs[place] += one
                        place += place & -place
                return found % $cap
            """, cap=cap),
        program(
            f"""
            def rising_triples(values):
                found = 0
                for j in range(len(values)):
                    before = sum(values[i] {low} values[j] for i in range(j))
                    found += before * sum(values[j] {high} values[k] for k in range(j + 1, len(values)))
                return found % $cap
            """, cap=cap),
        _row, 30_000,
    )  # fmt: skip


@contest("arrays", first=(1, 2, 3), second=(1, 2, 3, 4))
def spread_sum(first: int, second: int) -> Contest:
    return Contest(
        "spread_sum(values: list) -> int",
        f"A run is one or more neighbouring values, and its tension is {times(first)}(the greatest of them) - {times(second)}(the least of them). Return "
        "the sum of the tensions of all runs.",
        _N.format(50_000) + _BIG,
        program(
            """
            def spread_sum(values):
                def total(row):
                    kept, now, found = [], 0, 0
                    for i, value in enumerate(row):
                        while kept and row[kept[-1]] <= value:
                            place = kept.pop()
                            now -= row[place] * (place - (kept[-1] if kept else -1))
                        now += value * (i - (kept[-1] if kept else -1))
                        kept.append(i)
                        found += now
                    return found

                return $first * total(values) + $second * total([-value for value in values])
            """, first=first, second=second),
        program(
            """
            def spread_sum(values):
                found = 0
                for start in range(len(values)):
                    low = high = values[start]
                    for end in range(start, len(values)):
                        low, high = min(low, values[end]), max(high, values[end])
                        found += $first * high - $second * low
                return found
            """, first=first, second=second),
        _row, 50_000,
    )  # fmt: skip


@contest("arrays", least=(1, 2, 3, 4, 6, 9), what=("area", "width"))
def billboard(least: int, what: str) -> Contest:
    def draw(rng: Random, n: int) -> Arguments:
        if n < 12:
            return ([rng.randint(0, 12) for _ in range(n)],)
        return ([5000 + min(i, n - i) + rng.randint(0, 3) for i in range(n)],)

    value = "(end - start) * height" if what == "area" else "end - start"
    worth = "the largest area" if what == "area" else "the largest width"
    return Contest(
        "billboard(boards: list) -> int",
        f"Boards stand side by side, each 1 wide; their heights are given. A rectangular billboard is to be painted on neighbouring boards, from the ground up, and may be no "
        f"higher than the lowest board that it covers. It must be at least {least} high. Return {worth} that it can have, 0 if there is none.",
        _N.format(40_000) + ", each from 0 to 100,000",
        program(
            f"""
            def billboard(boards):
                kept, best = [], 0
                for end in range(len(boards) + 1):
                    now = boards[end] if end < len(boards) else -1
                    while kept and boards[kept[-1]] >= now:
                        height = boards[kept.pop()]
                        start = kept[-1] + 1 if kept else 0
                        if height >= $least:
                            best = max(best, {value})
                    kept.append(end)
                return best
            """, least=least),
        program(
            f"""
            def billboard(boards):
                best = 0
                for start in range(len(boards)):
                    height = boards[start]
                    for end in range(start + 1, len(boards) + 1):
                        height = min(height, boards[end - 1])
                        if height < $least:
                            break
                        best = max(best, {value})
                return best
            """, least=least),
        draw, 40_000,
    )  # fmt: skip
