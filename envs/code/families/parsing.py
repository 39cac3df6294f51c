"""Exercises on reading texts with a form."""

from __future__ import annotations

from random import Random

from turnwise.envs.code.families.core import Arguments, Exercise, program, template, word


@template("parsing", 2, part=(";", ",", "|", "&"), link=("=", ":", "->"), wins=("first", "last"))
def read_settings(part: str, link: str, wins: str) -> Exercise:
    solution = program(
        """
        def read_settings(text):
            found = {}
            for piece in text.split($part):
                key, sign, value = piece.partition($link)
                key, value = key.strip(), value.strip()
                if not sign or not key or not value.isdigit():
                    continue
                if $first and key in found:
                    continue
                found[key] = int(value)
            return found
        """,
        part=part,
        link=link,
        first=wins == "first",
    )
    text = (
        f"The text has pieces parted by {part!r}, each a name, {link!r} and a number (digits only), with or without spaces "
        f"around the name and the number. Return a dict of names and numbers. A piece of another form, or without a name, "
        f"is skipped; of several with one name the {wins} counts. Only the first {link!r} of a piece divides it."
    )

    def draw(rng: Random) -> Arguments:
        pieces: list[str] = []
        for _ in range(rng.randint(1, 6)):
            name, value = rng.choice(["a", "b", "cd", "size"]), str(rng.randint(0, 99))
            space = rng.choice(["", " "])
            good = f"{space}{name}{space}{link}{space}{value}{space}"
            bad = rng.choice(
                [name, f"{link}{value}", f"{name}{link}", f"{name}{link}x", f"{name}{link}{link}3", ""]
            )
            pieces.append(good if rng.random() < 0.75 else bad)
        return (part.join(pieces),)

    edges = (("",), (f"a{link}1{part}a{link}2",), (f"a{link}-1{part} {link}3{part}b{link}{link}2{part} c {link} 07 ",), (f"a{part}b{link}2",))  # fmt: skip
    return Exercise("read_settings", "read_settings(text: str) -> dict", text, solution, draw, edges)


@template("parsing", 3, first=("+", "-", "*"), second=("+", "-", "*"), strong=("first", "second", "equal"))
def work_out(first: str, second: str, strong: str) -> Exercise:
    if first == second:
        second = {"+": "*", "-": "+", "*": "-"}[first]
    power = {"first": (2, 1), "second": (1, 2), "equal": (1, 1)}[strong]
    solution = program(
        """
        def work_out(text):
            power = {$first: $p, $second: $q}
            values, signs = [], []

            def apply():
                right, left, sign = values.pop(), values.pop(), signs.pop()
                if sign == "+":
                    values.append(left + right)
                elif sign == "-":
                    values.append(left - right)
                else:
                    values.append(left * right)

            for word in text.split():
                if word in power:
                    while signs and power[signs[-1]] >= power[word]:
                        apply()
                    signs.append(word)
                else:
                    values.append(int(word))
            while signs:
                apply()
            return values[0]
        """,
        first=first,
        second=second,
        p=power[0],
        q=power[1],
    )
    rules = {
        "first": f"{first} binds stronger than {second} (which may not be as in school)",
        "second": f"{second} binds stronger than {first} (which may not be as in school)",
        "equal": "both bind equally strong",
    }
    text = (
        f"The text has whole numbers with {first} or {second} between them, all parted by spaces. Work it out: {rules[strong]}, "
        "and what binds equally is done from left to right."
    )

    def draw(rng: Random) -> Arguments:
        words = [str(rng.randint(0, 9))]
        for _ in range(rng.randint(0, 5)):
            words += [rng.choice([first, second]), str(rng.randint(0, 9))]
        return (" ".join(words),)

    edges = (("7",), (f"2 {first} 3 {second} 4",), (f"2 {second} 3 {first} 4",), (f"9 {first} 3 {first} 2",), (f"9 {second} 3 {second} 2 {first} 5",))  # fmt: skip
    return Exercise("work_out", "work_out(text: str) -> int", text, solution, draw, edges)


@template(
    "parsing", 2, pairs=("()[]", "()<>", "[]{}", "<>{}", "(){}"), what=("depth", "count"), bad=(-1, 0, -9)
)
def read_brackets(pairs: str, what: str, bad: int) -> Exercise:
    solution = program(
        f"""
        def read_brackets(text):
            closes = {{$b: $a, $d: $c}}
            open_now, deepest, count = [], 0, 0
            for sign in text:
                if sign in closes.values():
                    open_now.append(sign)
                    deepest = max(deepest, len(open_now))
                elif sign in closes:
                    if not open_now or open_now.pop() != closes[sign]:
                        return $bad
                    count += 1
            return {"deepest" if what == "depth" else "count"} if not open_now else $bad
        """,
        **dict(zip("abcd", pairs, strict=True)),
        bad=bad,
    )
    wanted = "how deep they are nested at most" if what == "depth" else "how many pairs there are"
    text = (
        f"Brackets are {pairs[:2]} and {pairs[2:]}; other signs do not matter. If each bracket is closed by its own kind, in "
        f"the right order, return {wanted}, else {bad}."
    )

    def draw(rng: Random) -> Arguments:
        def grow(depth: int) -> str:
            opening, closing = rng.choice([pairs[:2], pairs[2:]])
            inner = "".join(grow(depth + 1) for _ in range(rng.randint(0, 2))) if depth < 3 else "x"
            return f"{opening}{inner}{closing}"

        made = "".join(grow(0) for _ in range(rng.randint(1, 3)))
        if rng.random() < 0.3:
            at = rng.randrange(len(made))
            made = made[:at] + rng.choice(["", *pairs]) + made[at + 1 :]
        return (made,)

    a, b, c, d = pairs
    edges = (
        ("",),
        ("xy",),
        (a,),
        (b,),
        (a + c + b + d,),
        (a + b + c + d,),
        (a * 3 + b * 3,),
        (a + d,),
        (a + b + b,),
        (f"{c}q{d}",),
    )
    return Exercise("read_brackets", "read_brackets(text: str) -> int", text, solution, draw, edges)


@template("parsing", 1, large=(20, 24, 30, 60, 100), small=(5, 7, 10, 12, 50), bad=(-1, 0))
def read_amount(large: int, small: int, bad: int) -> Exercise:
    solution = program(
        """
        def read_amount(text):
            total, digits = 0, ""
            for sign in text:
                if sign.isdigit():
                    digits += sign
                elif sign in "xyz" and digits:
                    total += int(digits) * {"x": $top, "y": $small, "z": 1}[sign]
                    digits = ""
                else:
                    return $bad
            return $bad if digits else total
        """,
        top=large * small,
        small=small,
        bad=bad,
    )
    text = (
        f"A text such as 2x3y1z is an amount: a z is 1, a y is {small} z, an x is {large} y; each letter has a number before "
        f"it, and they come in any order and any number of times. Return the amount in z. The empty text is 0; a text of another form gives {bad}."
    )

    def draw(rng: Random) -> Arguments:
        made = "".join(f"{rng.randint(0, 120)}{rng.choice('xyz')}" for _ in range(rng.randint(1, 4)))
        if rng.random() < 0.25:
            at = rng.randrange(len(made))
            made = made[:at] + rng.choice(["", "q", "x", " "]) + made[at + 1 :]
        return (made,)

    edges = (("",), ("5",), ("x",), ("1x",), ("1y",), ("1z",), ("1x2",), ("3y4y10z",), ("12q",))
    return Exercise("read_amount", "read_amount(text: str) -> int", text, solution, draw, edges)


@template("parsing", 2, comma=(",", ";", "|"), quote=("'", '"', "`"), empty=("keep", "drop"))
def read_row(comma: str, quote: str, empty: str) -> Exercise:
    solution = program(
        """
        def read_row(text):
            fields, field, quoted = [], "", False
            for sign in text:
                if sign == $quote:
                    quoted = not quoted
                elif sign == $comma and not quoted:
                    fields.append(field)
                    field = ""
                else:
                    field += sign
            fields.append(field)
            return fields if $keep else [field for field in fields if field]
        """,
        comma=comma,
        quote=quote,
        keep=empty == "keep",
    )
    end = "Empty fields are kept." if empty == "keep" else "Empty fields are left out."
    text = (
        f"The text has fields parted by {comma!r}. A {quote!r} begins or ends a quoted stretch, in which {comma!r} is a sign "
        f"like any other; the {quote!r} themselves belong to no field. Return the list of fields. {end}"
    )

    def draw(rng: Random) -> Arguments:
        fields: list[str] = []
        for _ in range(rng.randint(1, 5)):
            inner = word(rng, 0, 4)
            fields.append(f"{quote}{inner}{comma}{word(rng, 0, 2)}{quote}" if rng.random() < 0.4 else inner)
        return (comma.join(fields),)

    edges = (
        ("",),
        (comma,),
        (f"a{comma}{comma}b",),
        (f"{quote}a{comma}b{quote}{comma}c",),
        (f"x{quote}a{comma}",),
        (f"{quote}{quote}",),
    )
    return Exercise("read_row", "read_row(text: str) -> list", text, solution, draw, edges)
