"""Exercises on texts."""

from __future__ import annotations

from random import Random

from turnwise.envs.code.families.core import LETTERS, Arguments, Exercise, program, template, word


def _phrase(rng: Random) -> str:
    words = [word(rng, 1, 6, "abcdeimnou") for _ in range(rng.randint(1, 6))]
    return " ".join(w.capitalize() if rng.random() < 0.25 else w for w in words)


@template("strings", 1, shift=tuple(range(1, 26)), others=("keep", "drop"))
def shift_letters(shift: int, others: str) -> Exercise:
    solution = program(
        """
        def shift_letters(text):
            made = ""
            for sign in text:
                if "a" <= sign <= "z":
                    made += chr((ord(sign) - ord("a") + $shift) % 26 + ord("a"))
                elif $keep:
                    made += sign
            return made
        """,
        shift=shift,
        keep=others == "keep",
    )
    rest = "stays as it is" if others == "keep" else "is left out"
    text = f"Each of the small letters a to z moves {shift} places on in the alphabet, from z on to a; any other sign {rest}."

    def draw(rng: Random) -> Arguments:
        return ("".join(rng.choice(LETTERS + LETTERS + "AZ 9.{`") for _ in range(rng.randint(3, 14))),)

    edges = (("",), ("az",), ("AZ{`@[",), (LETTERS,))
    return Exercise("shift_letters", "shift_letters(text: str) -> str", text, solution, draw, edges)


@template("strings", 1, least=(2, 3, 4, 5), join=("", "-", ":", "*"), order=("count", "letter"))
def pack_runs(least: int, join: str, order: str) -> Exercise:
    solution = program(
        """
        def pack_runs(text):
            made, at = [], 0
            while at < len(text):
                end = at
                while end < len(text) and text[end] == text[at]:
                    end += 1
                count = end - at
                if count < $least:
                    made.append(text[at:end])
                elif $count_first:
                    made.append(str(count) + $join + text[at])
                else:
                    made.append(text[at] + $join + str(count))
                at = end
            return "".join(made)
        """,
        least=least,
        join=join,
        count_first=order == "count",
    )
    parts = ["its length", "the letter"] if order == "count" else ["the letter", "its length"]
    form = f"{parts[0]}, then {join!r}, then {parts[1]}" if join else f"{parts[0]}, then {parts[1]}"
    text = (
        f"A run is the same letter several times in a row, as long as possible. Replace each run of {least} or more "
        f"letters by {form}; shorter runs stay."
    )

    def draw(rng: Random) -> Arguments:
        return ("".join(rng.choice("abc") * rng.randint(1, least + 2) for _ in range(rng.randint(1, 5))),)

    edges = (("",), ("a",), ("b" * least,), ("b" * (least - 1),), ("ab" * 3,), ("a" * 12,))
    return Exercise("pack_runs", "pack_runs(text: str) -> str", text, solution, draw, edges)


@template("strings", 1, modulus=(2, 3, 4), rest=(0, 1), tie=("first", "last"), none=("", "-", "none"))
def pick_word(modulus: int, rest: int, tie: str, none: str) -> Exercise:
    solution = program(
        """
        def pick_word(text):
            best = None
            for word in text.split():
                if len(word) % $modulus != $rest:
                    continue
                if best is None or len(word) > len(best) or ($last and len(word) == len(best)):
                    best = word
            return $none if best is None else best
        """,
        modulus=modulus,
        rest=rest,
        last=tie == "last",
        none=none,
    )
    text = (
        f"Of the words (parted by spaces) whose length divided by {modulus} leaves {rest}, return the longest; of equally "
        f"long ones the {tie}. Where there is none, return {none!r}."
    )
    edges = (("",), ("a",), ("ab",), ("abc",), ("abcd",), ("abcd efgh ab cd",), ("abc def a b",))
    return Exercise(
        "pick_word", "pick_word(text: str) -> str", text, solution, lambda rng: (_phrase(rng),), edges
    )


@template(
    "strings", 2, step=(2, 3, 4, 5), kind=("vowel", "small letter", "capital letter"), sign=("*", "#", "_")
)
def mask_signs(step: int, kind: str, sign: str) -> Exercise:
    tests = {
        "vowel": "c in 'aeiouAEIOU'",
        "small letter": "'a' <= c <= 'z'",
        "capital letter": "'A' <= c <= 'Z'",
    }
    solution = program(
        f"""
        def mask_signs(text):
            made, seen = [], 0
            for c in text:
                if {tests[kind]}:
                    seen += 1
                    if seen % $step == 0:
                        made.append($sign)
                        continue
                made.append(c)
            return "".join(made)
        """,
        step=step,
        sign=sign,
    )
    text = f"Count the {kind}s from the left, beginning with 1. Replace each whose number divides by {step} with {sign!r}."

    def draw(rng: Random) -> Arguments:
        return ("".join(rng.choice("aeiouAEUbcdzBXZ 1") for _ in range(rng.randint(4, 24))),)

    edges = (("",), ("a" * 11,), ("Z" * 11,), ("zzAAeeAAzzEEaa",), (LETTERS,), (LETTERS.upper(),))
    return Exercise("mask_signs", "mask_signs(text: str) -> str", text, solution, draw, edges)


@template("strings", 2, width=tuple(range(6, 16)), side=("left", "right"), fill=(".", "_", "~"))
def wrap_words(width: int, side: str, fill: str) -> Exercise:
    solution = program(
        """
        def wrap_words(text):
            lines, line = [], ""
            for word in text.split():
                if line and len(line) + 1 + len(word) > $width:
                    lines.append(line)
                    line = word
                else:
                    line = line + " " + word if line else word
            if line:
                lines.append(line)
            if $left:
                return [line.ljust($width, $fill) for line in lines]
            return [line.rjust($width, $fill) for line in lines]
        """,
        width=width,
        left=side == "left",
        fill=fill,
    )
    end = "end" if side == "left" else "beginning"
    text = (
        f"Put the words of the text (parted by spaces) into lines of at most {width} signs, one space between words, as "
        f"many words per line as fit, in their order; a longer word has a line of its own. Fill shorter lines up to "
        f"{width} signs with {fill!r} at their {end}. Return the list of lines."
    )

    def draw(rng: Random) -> Arguments:
        return (" ".join(word(rng, 1, 9) for _ in range(rng.randint(1, 9))),)

    half = "b" * ((width - 1) // 2)
    edges = (("",), ("a" * width,), ("a" * (width + 2) + " b",), (f"{half} {half} {half} {half}",), (f"{'a' * (width - 2)} b c",))  # fmt: skip
    return Exercise("wrap_words", "wrap_words(text: str) -> list", text, solution, draw, edges)
