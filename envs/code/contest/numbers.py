"""Contest problems whose answer is counted, not listed: recurrences, digits, divisors, choices."""

from __future__ import annotations

from random import Random

from turnwise.envs.code.contest.core import Contest, Draw, contest, counted, nth, plus, times
from turnwise.envs.code.families.core import Arguments, program

_CAP = (1_000_000_007, 998_244_353, 10_007)


def _one(most: int) -> Draw:
    """One number: small, or close to the largest that is allowed."""

    def draw(rng: Random, n: int) -> Arguments:
        return (rng.randint(1, 6 * n) if n < 1000 else rng.randint(most - most // 10, most),)

    return draw


@contest("numbers", a=(1, 2, 3), b=(1, 2, 5), cap=_CAP)
def far_rabbits(a: int, b: int, cap: int) -> Contest:
    return Contest(
        "far_rabbits(n: int) -> int",
        f"There is 1 rabbit in month 0 and 1 in month 1. From then on, if there were p rabbits a month before and q two months before, there are "
        f"{times(a)}p + {times(b)}q + 1. Return how many there are in month n, modulo {cap}.",
        "0 ≤ n ≤ 10^18",
        program(
            """
            def far_rabbits(n):
                def times(p, q):
                    return [[sum(p[i][k] * q[k][j] for k in range(3)) % $cap for j in range(3)] for i in range(3)]

                power, step = [[1, 0, 0], [0, 1, 0], [0, 0, 1]], [[$a, $b, 1], [1, 0, 0], [0, 0, 1]]
                while n:
                    if n % 2:
                        power = times(power, step)
                    step, n = times(step, step), n // 2
                return sum(power[1]) % $cap
            """, a=a, b=b, cap=cap),
        program(
            """
            def far_rabbits(n):
                now, then = 1, 1
                for _ in range(n):
                    now, then = then, ($a * then + $b * now + 1) % $cap
                return now % $cap
            """, a=a, b=b, cap=cap),
        _one(10**18), 1000,
    )  # fmt: skip


@contest("numbers", without=(0, 3, 4, 7, 9), m=(2, 3, 5, 7, 9, 11))
def clean_numbers(without: int, m: int) -> Contest:
    return Contest(
        "clean_numbers(top: int) -> int",
        f"Return how many whole numbers from 1 to top have no digit {without} and a sum of digits that is divisible by {m}.",
        "1 ≤ top ≤ 10^18",
        program(
            """
            def clean_numbers(top):
                digits, free, tight, tight_sum = str(top), [0] * $m, True, 0
                for place, sign in enumerate(digits):
                    after = [0] * $m
                    for rest in range($m):
                        for digit in range(10):
                            if digit != $without:
                                after[(rest + digit) % $m] += free[rest]
                    if tight:
                        for digit in range(0 if place else 1, int(sign)):
                            if digit != $without:
                                after[(tight_sum + digit) % $m] += 1
                        tight_sum += int(sign)
                        tight = int(sign) != $without
                    if place:
                        for digit in range(1, 10):
                            if digit != $without:
                                after[digit % $m] += 1
                    free = after
                return free[0] + (tight and tight_sum % $m == 0)
            """, without=without, m=m),
        program(
            """
            def clean_numbers(top):
                return sum(
                    "$without" not in str(number) and sum(map(int, str(number))) % $m == 0
                    for number in range(1, top + 1)
                )
            """, without=without, m=m),
        _one(10**18), 1000,
    )  # fmt: skip


@contest("numbers", coins=("1 2 5", "1 3 4", "2 3 7", "1 5 10 25", "3 5 8 13", "2 5 9"), cap=_CAP)
def ways_to_pay(coins: str, cap: int) -> Contest:
    known = [int(coin) for coin in coins.split()]
    return Contest(
        "ways_to_pay(amount: int) -> int",
        f"A machine takes coins of {', '.join(map(str, known[:-1]))} and {known[-1]} cents, one after the other. Return in how many orders of coins exactly this "
        f"amount can be paid ({known[0]}, {known[1]} and {known[1]}, {known[0]} are two orders; equal coins are not told apart), modulo {cap}.",
        "1 ≤ amount ≤ 200,000 cents",
        program(
            """
            def ways_to_pay(amount):
                ways = [1]
                for now in range(1, amount + 1):
                    ways.append(sum(ways[now - coin] for coin in $coins if coin <= now) % $cap)
                return ways[amount]
            """, coins=known, cap=cap),
        program(
            """
            def ways_to_pay(amount):
                found, stack = 0, [amount]
                while stack:
                    left = stack.pop()
                    if left == 0:
                        found += 1
                    stack += [left - coin for coin in $coins if coin <= left]
                return found % $cap
            """, coins=known, cap=cap),
        lambda rng, n: (rng.randint(1, 14) if n < 1000 else rng.randint(180_000, 200_000),), 1000,
    )  # fmt: skip


@contest("numbers", factors=(1, 2, 3, 4), last=("any", 1, 3, 7, 9))
def factor_count(factors: int, last: str | int) -> Contest:
    # nine of ten numbers need work, so that trial division stays too slow
    more = "" if last == "any" else f" and do not end in {last}"
    ends = "True" if last == "any" else f"number % 10 != {last}"
    return Contest(
        "factor_count(top: int) -> int",
        f"Return how many whole numbers from 2 to top have exactly {counted(factors, 'prime factor')}, each counted as often as it occurs (12 = 2 · 2 · 3 has three){more}.",
        "2 ≤ top ≤ 500,000",
        program(
            f"""
            def factor_count(top):
                least, found = list(range(top + 1)), 0
                number = 2
                while number * number <= top:
                    if least[number] == number:
                        for other in range(number * number, top + 1, number):
                            if least[other] == other:
                                least[other] = number
                    number += 1
                count = [0] * (top + 1)
                for number in range(2, top + 1):
                    count[number] = count[number // least[number]] + 1
                    found += count[number] == $factors and {ends}
                return found
            """, factors=factors),
        program(
            f"""
            def factor_count(top):
                found = 0
                for number in range(2, top + 1):
                    rest, factor, count = number, 2, 0
                    while rest > 1:
                        if rest % factor == 0:
                            rest, count = rest // factor, count + 1
                        else:
                            factor += 1
                    found += count == $factors and {ends}
                return found
            """, factors=factors),
        lambda rng, n: (rng.randint(2, 12 * n) if n < 1000 else rng.randint(480_000, 500_000),), 1000,
    )  # fmt: skip


@contest("numbers", factor=(1, 2, 3, 5), cap=(*_CAP, 65_537))
def divisor_total(factor: int, cap: int) -> Contest:
    return Contest(
        "divisor_total(n: int) -> int",
        f"For each whole number i from 1 to n multiply n // i (rounded down) by {times(factor)}i. Return the sum of the products modulo {cap}.",
        "1 ≤ n ≤ 10^11",
        program(
            """
            def divisor_total(n):
                total, i = 0, 1
                while i <= n:
                    part = n // i
                    end = n // part
                    total += part * ((i + end) * (end - i + 1) // 2)
                    i = end + 1
                return total * $factor % $cap
            """, factor=factor, cap=cap),
        program(
            """
            def divisor_total(n):
                return sum(n // i * $factor * i for i in range(1, n + 1)) % $cap
            """, factor=factor, cap=cap),
        _one(10**11), 1000,
    )  # fmt: skip


@contest("numbers", gap=(0, 1, 2, 5), most=(1, 2, 3))
def reachable_weights(gap: int, most: int) -> Contest:
    often = "" if most == 1 else f" up to {most} times, as if there were as many of it"

    def draw(rng: Random, n: int) -> Arguments:
        return ([rng.randint(1, 9 if n < 12 else 100) for _ in range(n)],)

    return Contest(
        "reachable_weights(stones: list) -> int",
        f"Stones are put on a scale; each of those listed may be left out, or put on it{often}. Return how many different weights greater than {gap} the scale can show.",
        "1 ≤ n ≤ 120 stones, each of weight 1 to 100",
        program(
            """
            def reachable_weights(stones):
                known = 1
                for stone in stones:
                    for _ in range($most):
                        known |= known << stone
                return bin(known >> ($gap + 1)).count("1")
            """, gap=gap, most=most),
        program(
            """
            def reachable_weights(stones):
                shown, stack = set(), [(0, 0)]
                while stack:
                    place, weight = stack.pop()
                    if place == len(stones):
                        shown.add(weight)
                    else:
                        stack += [(place + 1, weight + copies * stones[place]) for copies in range($most + 1)]
                return sum(weight > $gap for weight in shown)
            """, gap=gap, most=most),
        draw, 120, small=6,
    )  # fmt: skip


@contest("numbers", step=(2, 3, 4, 5, 7, 11), start=(0, 1, 2, 3))
def last_in_circle(step: int, start: int) -> Contest:
    return Contest(
        "last_in_circle(n: int) -> int",
        f"n children, numbered 0 to n - 1, stand in a circle. They are counted in the order of their numbers, child {start} % n as the first one; every {nth(step)} child that is "
        "counted leaves, and counting goes on with the next one. Return the number of the child that is left in the end.",
        "1 ≤ n ≤ 1,000,000",
        program(
            """
            def last_in_circle(n):
                place = 0
                for size in range(2, n + 1):
                    place = (place + $step) % size
                return (place + $start) % n
            """, step=step, start=start),
        program(
            """
            def last_in_circle(n):
                circle, place = list(range(n)), $start % n
                while len(circle) > 1:
                    place = (place + $step - 1) % len(circle)
                    circle.pop(place)
                return circle[0]
            """, step=step, start=start),
        lambda rng, n: (rng.randint(1, 4 * n) if n < 1000 else rng.randint(900_000, 1_000_000),), 1000,
    )  # fmt: skip


@contest("numbers", shift=(0, 1, 2, 3, 5), side=("smallest", "largest"))
def table_rank(shift: int, side: str) -> Contest:
    formula = f"(i{plus(shift)}) · j" if shift else "i · j"

    def draw(rng: Random, n: int) -> Arguments:
        high, wide = (
            (rng.randint(1, n), rng.randint(1, n))
            if n < 1000
            else (rng.randint(45_000, 50_000), rng.randint(45_000, 50_000))
        )
        return high, wide, rng.randint(1, high * wide)

    rank = "rank" if side == "smallest" else "rows * columns + 1 - rank"
    return Contest(
        "table_rank(rows: int, columns: int, rank: int) -> int",
        f"A table has the number {formula} in row i and column j, both counted from 1. Its numbers are put in a row, the "
        f"{side} first and equal ones each by itself. Return the number at place rank of this row, counted from 1.",
        "1 ≤ rows, columns ≤ 50,000, and 1 ≤ rank ≤ rows · columns",
        program(
            f"""
            def table_rank(rows, columns, rank):
                rank = {rank}
                low, high = 1, (rows + $shift) * columns
                while low < high:
                    middle = (low + high) // 2
                    if sum(min(columns, middle // (i + $shift)) for i in range(1, rows + 1)) >= rank:
                        high = middle
                    else:
                        low = middle + 1
                return low
            """, shift=shift),
        program(
            f"""
            def table_rank(rows, columns, rank):
                rank, number = {rank}, 0
                while rank > 0:
                    number += 1
                    for i in range(1, rows + 1):
                        rank -= number % (i + $shift) == 0 and number // (i + $shift) <= columns
                return number
            """, shift=shift),
        draw, 1000,
    )  # fmt: skip


@contest("numbers", moves=("1 3 4", "2 3 7", "1 4 6", "2 5 8", "1 2 6 9", "3 4 5"), rule=("last", "misere"))
def winning_heaps(moves: str, rule: str) -> Contest:
    known = [int(move) for move in moves.split()]
    ends = "wins" if rule == "misere" else "loses"
    start = "True" if rule == "misere" else "False"
    return Contest(
        "winning_heaps(top: int) -> int",
        f"Two players in turn take {', '.join(map(str, known[:-1]))} or {known[-1]} stones from one heap. Who cannot move {ends}. Return for how many of the heaps of 1 to "
        "top stones the player who begins can force a win.",
        "1 ≤ top ≤ 200,000",
        program(
            f"""
            def winning_heaps(top):
                wins = []
                for heap in range(top + 1):
                    can = [move for move in $moves if move <= heap]
                    wins.append(any(not wins[heap - move] for move in can) if can else {start})
                return sum(wins[1:])
            """, moves=known),
        program(
            f"""
            def winning_heaps(top):
                def wins(heap):
                    can = [move for move in $moves if move <= heap]
                    return any(not wins(heap - move) for move in can) if can else {start}

                return sum(wins(heap) for heap in range(1, top + 1))
            """, moves=known),
        lambda rng, n: (rng.randint(1, 2 * n + 2) if n < 1000 else rng.randint(180_000, 200_000),), 1000,
    )  # fmt: skip


@contest("numbers", extra=(0, 1, 2, 5), what=("least", "most"))
def shared_order(extra: int, what: str) -> Contest:
    def draw(rng: Random, n: int) -> Arguments:
        return rng.sample(range(n), n), rng.sample(range(n), n)

    more = f"; add {extra} to this number" if extra else ""
    result = "len(tails)" if what == "most" else "len(first) - len(tails)"
    slow = "row[-1]" if what == "most" else "len(first) - row[-1]"
    words = (
        "the most songs that can be kept" if what == "most" else "the fewest songs that must be struck out"
    )
    return Contest(
        "shared_order(first: list, second: list) -> int",
        f"Two programmes list the same n songs, 0 to n - 1, in two orders. Some songs are struck out of both so that the rest stands in the same order in both. Return {words}"
        f"{more}.",
        "1 ≤ n ≤ 40,000 songs",
        program(
            f"""
            from bisect import bisect_left

            def shared_order(first, second):
                place = {{song: i for i, song in enumerate(second)}}
                tails = []
                for song in first:
                    at = bisect_left(tails, place[song])
                    tails[at:at + 1] = [place[song]]
                return {result} + $extra
            """, extra=extra),
        program(
            f"""
            def shared_order(first, second):
                row = [0] * (len(second) + 1)
                for song in first:
                    after = [0]
                    for i, other in enumerate(second):
                        after.append(row[i] + 1 if song == other else max(row[i + 1], after[-1]))
                    row = after
                return {slow} + $extra
            """, extra=extra),
        draw, 40_000,
    )  # fmt: skip


@contest("numbers", limit=(0, 1, 5, 20), what=("count", "best"))
def half_picks(limit: int, what: str) -> Contest:
    def draw(rng: Random, n: int) -> Arguments:
        gifts = [rng.randint(1, 12 if n < 12 else 10**9) for _ in range(n)]
        return gifts, sum(gifts) // rng.randint(2, 4)

    result = "found" if what == "count" else "best"
    words = (
        "how many choices do so (to choose none or all is one too; gifts of the same cost are different gifts)"
        if what == "count"
        else "the most that such a choice can cost"
    )
    return Contest(
        "half_picks(gifts: list, budget: int) -> int",
        f"Choose some of the gifts so that they cost at most budget{plus(limit)} in all. Return {words}.",
        "1 ≤ n ≤ 32 gifts that cost 1 to 1,000,000,000 each, and 0 ≤ budget ≤ what all cost together",
        program(
            f"""
            from bisect import bisect_right

            def half_picks(gifts, budget):
                def sums(part):
                    made = [0]
                    for gift in part:
                        made += [one + gift for one in made]
                    return made

                budget += $limit
                half = len(gifts) // 2
                others = sorted(sums(gifts[half:]))
                found = best = 0
                for one in sums(gifts[:half]):
                    place = bisect_right(others, budget - one)
                    found += place
                    if place:
                        best = max(best, one + others[place - 1])
                return {result}
            """, limit=limit),
        program(
            f"""
            def half_picks(gifts, budget):
                found = best = 0
                stack = [(0, 0)]
                while stack:
                    place, cost = stack.pop()
                    if place == len(gifts):
                        if cost <= budget + $limit:
                            found, best = found + 1, max(best, cost)
                    else:
                        stack += [(place + 1, cost), (place + 1, cost + gifts[place])]
                return {result}
            """, limit=limit),
        draw, 32, small=7,
    )  # fmt: skip
