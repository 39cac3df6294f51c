"""Exercises on lists of numbers."""

from __future__ import annotations

from random import Random

from turnwise.envs.code.families.core import Arguments, Exercise, numbers, program, template


@template("sequences", 1, width=(2, 3, 4), step=(1, 2, 3), inner=("sum", "max", "min"), outer=("max", "min"))
def best_window(width: int, step: int, inner: str, outer: str) -> Exercise:
    solution = program(
        f"""
        def best_window(xs):
            best = None
            for start in range(0, len(xs) - $width + 1, $step):
                value = {inner}(xs[start:start + $width])
                if best is None or value {">" if outer == "max" else "<"} best:
                    best = value
            return 0 if best is None else best
        """,
        width=width,
        step=step,
    )
    names = {"sum": "sum", "max": "largest number", "min": "smallest number"}
    wanted = "largest" if outer == "max" else "smallest"
    text = (
        f"A window is {width} neighbours in xs; the first begins at the first number, each next one {step} further on. "
        f"For each full window take its {names[inner]}; return the {wanted} of these, or 0 if there is no full window."
    )
    edges = (([],), ([5] * (width - 1),), (list(range(1, width + 1)),), (list(range(9)),), (list(range(9, 0, -1)),), ([-5, -3, -9, -4, -7, -1, -8],))  # fmt: skip
    return Exercise(
        "best_window",
        "best_window(xs: list) -> int",
        text,
        solution,
        lambda rng: (numbers(rng, -9, 9, 2, 10),),
        edges,
    )


@template("sequences", 1, most=(1, 2, 3), keep=("first", "last"), apart=(1, 2, 3, 5))
def limit_repeats(most: int, keep: str, apart: int) -> Exercise:
    solution = program(
        """
        def limit_repeats(xs):
            made, counts = [], {}
            for x in (xs if $first else xs[::-1]):
                key = x // $apart
                counts[key] = counts.get(key, 0) + 1
                if counts[key] <= $most:
                    made.append(x)
            return made if $first else made[::-1]
        """,
        first=keep == "first",
        most=most,
        apart=apart,
    )
    kin = "they are equal" if apart == 1 else f"x // {apart} is the same for both"
    text = f"Two numbers are kin if {kin}. Of all that are kin keep only the {keep} {most}, in the order of the list."
    edges = (([],), ([4] * 5,), (list(range(12)),), ([3, 1, 3, 2, 3, 1, 1, 0, 0, -1, -1],))
    return Exercise(
        "limit_repeats",
        "limit_repeats(xs: list) -> list",
        text,
        solution,
        lambda rng: (numbers(rng, -4, 9, 3, 12),),
        edges,
    )


@template("sequences", 1, modulus=(2, 3, 4, 5, 6, 7), groups=("up", "down"), inside=("up", "down"))
def sort_by_rest(modulus: int, groups: str, inside: str) -> Exercise:
    solution = program(
        """
        def sort_by_rest(xs):
            return sorted(xs, key=lambda x: ($a * (x % $modulus), $b * x))
        """,
        modulus=modulus,
        a=1 if groups == "up" else -1,
        b=1 if inside == "up" else -1,
    )
    way = {"up": "smallest first", "down": "largest first"}
    text = (
        f"Sort the numbers by what each leaves divided by {modulus} (as % does), {way[groups]}; among those with the same "
        f"rest by the numbers themselves, {way[inside]}."
    )
    edges = (([],), (list(range(-7, 8)),), ([7, 7, 1],))
    return Exercise(
        "sort_by_rest",
        "sort_by_rest(xs: list) -> list",
        text,
        solution,
        lambda rng: (numbers(rng, -20, 40, 3, 10),),
        edges,
    )


@template("sequences", 2, gap=(1, 2, 3, 4), kind=("rise", "stay"), what=("length", "sum"))
def longest_stretch(gap: int, kind: str, what: str) -> Exercise:
    test = "xs[i] - xs[i - 1] >= $gap" if kind == "rise" else "abs(xs[i] - xs[i - 1]) <= $gap"
    solution = program(
        f"""
        def longest_stretch(xs):
            best, start = [], 0
            for i in range(len(xs)):
                if i > 0 and not ({test}):
                    start = i
                if i - start + 1 > len(best):
                    best = xs[start:i + 1]
            return {"len(best)" if what == "length" else "sum(best)"}
        """,
        gap=gap,
    )
    rule = (
        f"each number is at least {gap} more than the one before"
        if kind == "rise"
        else f"neighbours differ by at most {gap}"
    )
    text = f"Find the longest stretch of xs in which {rule} (the first of equally long ones); return its {what}. An empty list gives 0."

    def draw(rng: Random) -> Arguments:
        xs, at = [rng.randint(-5, 5)], 0
        for _ in range(rng.randint(2, 11)):
            at = xs[-1] + rng.choice([gap, gap, gap + 1, gap - 1, -1, -gap, -gap - 1, gap + 2])
            xs.append(at)
        return (xs,)

    edges = (
        ([],),
        ([3],),
        ([3, 3, 3],),
        ([0, gap, 2 * gap, 9 * gap, 0],),
        ([5, 5 - gap, 5 - 2 * gap, 4, 90, 91],),
    )
    return Exercise("longest_stretch", "longest_stretch(xs: list) -> int", text, solution, draw, edges)


@template("sequences", 2, apart=(1, 2, 3, 4), modulus=(2, 3, 4, 5, 6), how=("sum", "difference"))
def count_pairs(apart: int, modulus: int, how: str) -> Exercise:
    solution = program(
        f"""
        def count_pairs(xs):
            count = 0
            for i in range(len(xs)):
                for j in range(i + $apart, len(xs)):
                    if (xs[j] {"+" if how == "sum" else "-"} xs[i]) % $modulus == 0:
                        count += 1
            return count
        """,
        apart=apart,
        modulus=modulus,
    )
    text = f"Count the pairs of places that are at least {apart} apart and whose numbers have a {how} that divides by {modulus}."
    edges = (([],), ([0] * 6,), (list(range(10)),), ([modulus] * (apart + 1),), ([1] * 7,), ([0] * apart,))
    return Exercise(
        "count_pairs",
        "count_pairs(xs: list) -> int",
        text,
        solution,
        lambda rng: (numbers(rng, -9, 19, 3, 9),),
        edges,
    )
