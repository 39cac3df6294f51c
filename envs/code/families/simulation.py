"""Exercises on following rules step by step."""

from __future__ import annotations

from random import Random

from turnwise.envs.code.families.core import Arguments, Exercise, numbers, program, template


@template(
    "simulation", 2, width=(3, 4, 5, 6), height=(3, 4, 5), edge=("wall", "wrap"), turn=("left", "right")
)
def drive_robot(width: int, height: int, edge: str, turn: str) -> Exercise:
    solution = program(
        """
        def drive_robot(orders):
            x, y, dx, dy = 0, 0, 1, 0
            for order in orders:
                if order == "t":
                    dx, dy = (dy, -dx) if $left else (-dy, dx)
                elif order == "f":
                    nx, ny = x + dx, y + dy
                    if $wrap:
                        x, y = nx % $width, ny % $height
                    elif 0 <= nx < $width and 0 <= ny < $height:
                        x, y = nx, ny
            return (x, y)
        """,
        left=turn == "left",
        wrap=edge == "wrap",
        width=width,
        height=height,
    )
    beyond = "it comes back on the opposite side" if edge == "wrap" else "it stays where it is"
    text = (
        f"A robot stands on a grid at (0, 0) and looks towards larger x. x goes from 0 to {width - 1}, y from 0 to {height - 1} "
        f"(y grows downwards). 'f' moves it one place forward; where that leads off the grid, {beyond}. 't' turns it a "
        f"quarter to the {turn}. Other letters do nothing. Return its place as a tuple (x, y)."
    )

    def draw(rng: Random) -> Arguments:
        return ("".join(rng.choice("ffffttx") for _ in range(rng.randint(3, 24))),)

    edges = (("",), ("f" * 7,), ("tf",), ("tttf",), ("ttf",), ("f" * (width - 1) + "tfff",), ("fftfftff",), ("tttffffftf",), ("ttt" + "f" * 9,), ("t" + "f" * (height - 1),))  # fmt: skip
    return Exercise("drive_robot", "drive_robot(orders: str) -> tuple", text, solution, draw, edges)


@template("simulation", 2, desks=(1, 2, 3), pause=(0, 1, 2, 5), patience=(3, 5, 8, 12))
def serve_queue(desks: int, pause: int, patience: int) -> Exercise:
    solution = program(
        """
        def serve_queue(customers):
            free, left = [0] * $desks, 0
            for arrival, work in customers:
                desk = free.index(min(free))
                start = max(arrival, free[desk])
                if start - arrival > $patience:
                    left += 1
                else:
                    free[desk] = start + work + $pause
            return (left, max(free))
        """,
        desks=desks,
        pause=pause,
        patience=patience,
    )
    text = (
        f"customers is a list of [arrival, work] in the order of arrival. {desks} desk(s) are free from time 0. Each customer goes to "
        f"the desk that is free first (the first of equals) and starts when both are there. Who would wait longer than {patience} leaves "
        f"at once and takes no desk. A served customer keeps the desk for work + {pause}. Return a tuple: how many left, and the "
        "time at which the last desk becomes free."
    )

    def draw(rng: Random) -> Arguments:
        at, made = 0, list[list[int]]()
        for _ in range(rng.randint(1, 9)):
            at += rng.randint(0, 3)
            made.append([at, rng.randint(1, 6 * desks)])
        return (made,)

    edges = (([],), ([[0, patience - pause]] * (desks * 3),), ([[0, patience + 1 - pause]] * (desks + 1),), ([[9, 1]],), ([[0, patience + 9], [9, 1], [9, 1], [9, 2], [10, 3]],))  # fmt: skip
    return Exercise("serve_queue", "serve_queue(customers: list) -> tuple", text, solution, draw, edges)


@template(
    "simulation",
    2,
    rule=(22, 30, 45, 54, 60, 73, 90, 105, 110, 150, 182),
    steps=(1, 2, 3, 4),
    edge=("wrap", "dead", "live"),
)
def grow_cells(rule: int, steps: int, edge: str) -> Exercise:
    solution = program(
        """
        def grow_cells(cells):
            n = len(cells)
            for _ in range($steps):
                made = []
                for i in range(n):
                    if $wrap:
                        left, right = cells[i - 1], cells[(i + 1) % n]
                    else:
                        left = cells[i - 1] if i > 0 else $outside
                        right = cells[i + 1] if i + 1 < n else $outside
                    made.append($rule >> (4 * left + 2 * cells[i] + right) & 1)
                cells = made
            return cells
        """,
        rule=rule,
        steps=steps,
        wrap=edge == "wrap",
        outside=int(edge == "live"),
    )
    beyond = {
        "wrap": "the row is a ring",
        "dead": "beyond both ends there are 0s",
        "live": "beyond both ends there are 1s",
    }[edge]
    text = (
        f"cells is a row of 0s and 1s; {beyond}. In a step each cell becomes bit number 4·left + 2·itself + right (0 is the lowest) of "
        f"the number {rule}, all cells at once. Return the row after {steps} step(s)."
    )

    def draw(rng: Random) -> Arguments:
        return ([rng.randint(0, 1) for _ in range(rng.randint(1, 12))],)

    edges = (
        ([],),
        ([0],),
        ([1],),
        ([1, 0],),
        ([0, 0, 0, 1, 0, 0, 0, 0],),
        ([1] * 7,),
        ([1, 1, 0, 1, 0, 0, 0, 1, 1, 1, 0, 1, 0, 1],),
    )
    return Exercise("grow_cells", "grow_cells(cells: list) -> list", text, solution, draw, edges)


@template("simulation", 1, hop=(2, 3, 4, 5), growth=(0, 1, 2), stop=(1, 2, 3))
def count_out(hop: int, growth: int, stop: int) -> Exercise:
    solution = program(
        """
        def count_out(names):
            ring, at, hop, gone = list(names), 0, $hop, []
            while len(ring) > $stop:
                at = (at + hop - 1) % len(ring)
                gone.append(ring.pop(at))
                hop += $growth
            return gone
        """,
        hop=hop,
        growth=growth,
        stop=stop,
    )
    more = f" After each the number to count to grows by {growth}." if growth else ""
    text = (
        f"names stand in a ring. Count from the first one up to {hop} (around the ring as often as it takes); who is reached goes out, and "
        f"counting begins again with the next one.{more} It ends when {stop} or fewer are left. Return the list of those who went out, in order."
    )

    def draw(rng: Random) -> Arguments:
        return (rng.sample("abcdefghijkl", rng.randint(1, 11)),)

    edges = (([],), (["a"],), (list("ab"),), (list("abc"),), (list("abcd"),), (list("abcdefghijkl"),))
    return Exercise("count_out", "count_out(names: list) -> list", text, solution, draw, edges)


@template("simulation", 3, size=(10, 20, 30), leak=(0, 1, 2), spill=("lost", "next"))
def fill_tanks(size: int, leak: int, spill: str) -> Exercise:
    solution = program(
        """
        def fill_tanks(tanks, rain):
            tanks, lost = list(tanks), 0
            for amount in rain:
                carried = 0
                for i in range(len(tanks)):
                    level = tanks[i] + amount + carried
                    carried = max(0, level - $size)
                    tanks[i] = max(0, min(level, $size) - $leak)
                    if not $next:
                        lost += carried
                        carried = 0
                lost += carried
            return (tanks, lost)
        """,
        size=size,
        leak=leak,
        next=spill == "next",
    )
    beyond = "runs into the next tank at once; from the last one it is lost" if spill == "next" else "is lost"
    text = (
        f"tanks are the levels of a row of tanks that hold {size} each. For each number of rain, one tank after the other takes that "
        f"much; what is above {size} {beyond}; then the tank loses {leak} (not below 0). Return a tuple: the list of levels, and how much was lost."
    )

    def draw(rng: Random) -> Arguments:
        return (numbers(rng, 0, size, 1, 5), numbers(rng, 0, size // 2, 0, 5))

    edges = (
        ([], [3]),
        ([size], []),
        ([size, size, 0], [1, 1]),
        ([0, 0], [0, leak, leak + 1]),
        ([size - 1, 1, size], [size // 2] * 4),
    )
    return Exercise("fill_tanks", "fill_tanks(tanks: list, rain: list) -> tuple", text, solution, draw, edges)
