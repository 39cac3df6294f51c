"""Contest problems on texts and words."""

from __future__ import annotations

from random import Random

from turnwise.envs.code.contest.core import Contest, contest, counted, times
from turnwise.envs.code.families.core import Arguments, program

_CAP = (1_000_000_007, 998_244_353, 10_007, 65_537)


def _uniform(rng: Random, n: int) -> Arguments:
    """A text that is nearly one letter again and again, the worst there is for comparing letter by letter."""
    if n < 12:
        return ("".join(rng.choice("ab") for _ in range(n)),)
    text = ["a"] * n
    for _ in range(3):
        text[n - 1 - rng.randrange(n // 20)] = "b"
    return ("".join(text),)


@contest("texts", weight=("length", "start", "one"), cap=_CAP)
def echo_total(weight: str, cap: int) -> Contest:
    worth = {"length": "z[i] * z[i]", "start": "z[i] * i", "one": "z[i]"}[weight]
    words = {
        "length": "the square of its length",
        "start": "its length times its position (from 0)",
        "one": "its length",
    }[weight]
    naive = {"length": "k * k", "start": "k * i", "one": "k"}[weight]
    return Contest(
        "echo_total(text: str) -> int",
        "The echo at a position of a text is the longest stretch that begins there and equals the beginning of the text; it may be empty. "
        f"The echo is worth {words}. Return the sum of what the echoes at all positions but the first are worth, modulo {cap}.",
        "a text of 1 to 30,000 letters a and b",
        program(
            f"""
            def echo_total(text):
                n = len(text)
                z, left, right, total = [0] * n, 0, 0, 0
                for i in range(1, n):
                    k = min(right - i, z[i - left]) if i < right else 0
                    while i + k < n and text[k] == text[i + k]:
                        k += 1
                    z[i] = k
                    if i + k > right:
                        left, right = i, i + k
                    total += {worth}
                return total % $cap
            """, cap=cap),
        program(
            f"""
            def echo_total(text):
                n, total = len(text), 0
                for i in range(1, n):
                    k = 0
                    while i + k < n and text[k] == text[i + k]:
                        k += 1
                    total += {naive}
                return total % $cap
            """, cap=cap),
        _uniform, 30_000,
    )  # fmt: skip


@contest("texts", least=(1, 2, 3, 4, 5), cap=(1_000_000_007, 998_244_353, 10_007, 97))
def mirror_count(least: int, cap: int) -> Contest:
    return Contest(
        "mirror_count(text: str) -> int",
        f"A mirror is a stretch of at least {counted(least, 'letter')} of a text that reads the same forwards and backwards. Return how many stretches "
        f"(by their places) are mirrors, modulo {cap}.",
        "a text of 1 to 30,000 letters a and b",
        program(
            """
            def mirror_count(text):
                marked = "^#" + "#".join(text) + "#$$"
                radius, centre, right, found = [0] * len(marked), 0, 0, 0
                for i in range(1, len(marked) - 1):
                    k = min(right - i, radius[2 * centre - i]) if i < right else 0
                    while marked[i + k + 1] == marked[i - k - 1]:
                        k += 1
                    radius[i] = k
                    if i + k > right:
                        centre, right = i, i + k
                    low = $least + (k - $least) % 2
                    if k >= low:
                        found += (k - low) // 2 + 1
                return found % $cap
            """, least=least, cap=cap),
        program(
            """
            def mirror_count(text):
                n, found = len(text), 0
                for middle in range(2 * n - 1):
                    left = middle // 2
                    right = left + middle % 2
                    while left >= 0 and right < n and text[left] == text[right]:
                        found += right - left + 1 >= $least
                        left, right = left - 1, right + 1
                return found % $cap
            """, least=least, cap=cap),
        _uniform, 30_000,
    )  # fmt: skip


@contest("texts", least=(1, 2, 3, 5, 10), factor=(1, 2, 3))
def border_total(least: int, factor: int) -> Contest:
    result = "the sum" if factor == 1 else f"{times(factor)}(the sum)"
    return Contest(
        "border_total(text: str) -> int",
        f"A border of a text is a shorter text of at least {counted(least, 'letter')} that is both its beginning and its end; the two may overlap. For each beginning of "
        f"the given text, from its first letter to all of it, take the length of its longest border, 0 if it has none. Return {result}.",
        "a text of 1 to 20,000 letters a and b",
        program(
            """
            def border_total(text):
                border, total = [0] * len(text), 0
                for i in range(1, len(text)):
                    k = border[i - 1]
                    while k and text[i] != text[k]:
                        k = border[k - 1]
                    border[i] = k + (text[i] == text[k])
                    total += border[i] if border[i] >= $least else 0
                return total * $factor
            """, least=least, factor=factor),
        program(
            """
            def border_total(text):
                total = 0
                for end in range(1, len(text) + 1):
                    for length in range(end - 1, $least - 1, -1):
                        if text[:length] == text[end - length:end]:
                            total += length
                            break
                return total * $factor
            """, least=least, factor=factor),
        _worst_borders, 20_000,
    )  # fmt: skip


def _worst_borders(rng: Random, n: int) -> Arguments:
    """One b at first: nothing is a border."""
    if n < 12:
        return ("".join(rng.choice("ab") for _ in range(n)),)
    return ("b" + "a" * (n - 1 - rng.randrange(9)),)


@contest("texts", what=("count", "longest", "total"), extra=(0, 1, 2, 5))
def valid_brackets(what: str, extra: int) -> Contest:
    def draw(rng: Random, n: int) -> Arguments:
        if n < 12:
            return ("".join(rng.choice("()") for _ in range(n)),)
        return ("(" * (n // 2) + "".join(rng.choice(("()", "(())", "(")) for _ in range(n // 6)),)

    fast = {
        "count": "found += runs[-1]",
        "longest": "found = max(found, i - start[-1])",
        "total": "found += i - start[-1]",
    }[what]
    words = {
        "count": "how many stretches of the text are sound",
        "longest": "the length of the longest sound stretch",
        "total": "the sum, over all closing brackets, of the length of the longest sound stretch that ends there",
    }[what]
    more = f"; add {extra} to this number" if extra else ""
    naive = {
        "count": "found += 1",
        "longest": "found = max(found, end - at + 1)",
        "total": "ends[end] = max(ends.get(end, 0), end - at + 1)",
    }[what]
    return Contest(
        "valid_brackets(text: str) -> int",
        f"A stretch of one or more brackets is sound if every bracket in it is closed or opened by another one in it, as in a formula. Return {words}{more}.",
        "a text of 1 to 30,000 brackets ( and )",
        program(
            f"""
            def valid_brackets(text):
                start, runs, found = [-1], [0], 0
                for i, sign in enumerate(text):
                    if sign == "(":
                        start.append(i)
                        runs.append(0)
                    elif len(start) > 1:
                        start.pop()
                        runs.pop()
                        runs[-1] += 1
                        {fast}
                    else:
                        start, runs = [i], [0]
                return found + $extra
            """, extra=extra),
        program(
            f"""
            def valid_brackets(text):
                found, ends = 0, {{}}
                for at in range(len(text)):
                    depth = 0
                    for end in range(at, len(text)):
                        depth += 1 if text[end] == "(" else -1
                        if depth < 0:
                            break
                        if depth == 0:
                            {naive}
                return found + sum(ends.values()) + $extra
            """, extra=extra),
        draw, 30_000,
    )  # fmt: skip


@contest("texts", off=(0, 1, 2, 3, 4, 5, 6, 8))
def shuffled_windows(off: int) -> Contest:
    change = f" and replacing at most {counted(off, 'letter')} by any other" if off else ""

    def draw(rng: Random, n: int) -> Arguments:
        letters = "abc" if n < 12 else "abcd"
        text = "".join(rng.choice(letters) for _ in range(n))
        width = rng.randint(1, max(1, n // 2)) if n < 12 else n // 4
        return text, "".join(rng.choice(letters) for _ in range(width))

    return Contest(
        "shuffled_windows(text: str, pattern: str) -> int",
        f"Return how many stretches of the text, as long as the pattern, can be turned into the pattern by putting their letters in any order{change}.",
        "a text of 1 to 60,000 small letters; the pattern has at least one letter and at most half of the text's, rounded up",
        program(
            """
            from collections import Counter

            def shuffled_windows(text, pattern):
                width, lack, found = len(pattern), Counter(pattern), 0
                apart = sum(lack.values())
                for i, letter in enumerate(text):
                    apart += abs(lack[letter] - 1) - abs(lack[letter])
                    lack[letter] -= 1
                    if i >= width:
                        old = text[i - width]
                        apart += abs(lack[old] + 1) - abs(lack[old])
                        lack[old] += 1
                    if i >= width - 1 and apart <= 2 * $off:
                        found += 1
                return found
            """, off=off),
        program(
            """
            from collections import Counter

            def shuffled_windows(text, pattern):
                width, found = len(pattern), 0
                for start in range(len(text) - width + 1):
                    lack = Counter(pattern)
                    lack.subtract(text[start:start + width])
                    found += sum(map(abs, lack.values())) <= 2 * $off
                return found
            """, off=off),
        draw, 60_000,
    )  # fmt: skip


@contest("texts", part=(2, 3, 4, 5), what=("smallest", "largest"))
def drop_digits(part: int, what: str) -> Contest:
    def draw(rng: Random, n: int) -> Arguments:
        if n < 12:
            return ("".join(rng.choice("123") for _ in range(n)),)
        ordered = sorted((rng.choice("123456789") for _ in range(n)), reverse=what == "largest")
        return ("".join(ordered),)

    sign, other = (">", "<") if what == "smallest" else ("<", ">")
    return Contest(
        "drop_digits(number: str) -> str",
        f"From a number of n digits, n // {part} digits are to be struck out; the others stay in their order. Return the {what} number that "
        "can be left, as a text.",
        "1 to 60,000 digits, each from 1 to 9; at least one is left",
        program(
            f"""
            def drop_digits(number):
                left, kept = len(number) // $part, []
                wanted = len(number) - left
                for digit in number:
                    while left and kept and kept[-1] {sign} digit:
                        kept.pop()
                        left -= 1
                    kept.append(digit)
                return "".join(kept[:wanted])
            """, part=part),
        program(
            f"""
            def drop_digits(number):
                for _ in range(len(number) // $part):
                    place = 0
                    while place + 1 < len(number) and not number[place + 1] {other} number[place]:
                        place += 1
                    number = number[:place] + number[place + 1:]
                return number
            """, part=part),
        draw, 60_000,
    )  # fmt: skip


@contest("texts", skip=(0, 1, 2, 3), cap=(1_000_000_007, 10_007))
def shuffled_pairs(skip: int, cap: int) -> Contest:
    same = f"what follows the first {counted(skip, 'letter')} of each consists" if skip else "they consist"

    def draw(rng: Random, n: int) -> Arguments:
        size = 2 if n < 12 else 6
        return (["".join(rng.choice("abc") for _ in range(skip + size)) for _ in range(n)],)

    return Contest(
        "shuffled_pairs(words: list) -> int",
        f"Two words are related if {same} of the same letters, each as often, in any order. Return how many pairs of words are related, modulo {cap}; a "
        "word that is listed twice is related to itself.",
        f"1 ≤ n ≤ 30,000 words of 2 to {skip + 6} letters a, b and c",
        program(
            """
            def shuffled_pairs(words):
                seen, found = {}, 0
                for word in words:
                    key = "".join(sorted(word[$skip:]))
                    found += seen.get(key, 0)
                    seen[key] = seen.get(key, 0) + 1
                return found % $cap
            """, skip=skip, cap=cap),
        program(
            """
            def shuffled_pairs(words):
                keys, found = [sorted(word[$skip:]) for word in words], 0
                for i in range(len(keys)):
                    for j in range(i):
                        found += keys[i] == keys[j]
                return found % $cap
            """, skip=skip, cap=cap),
        draw, 30_000,
    )  # fmt: skip


@contest("texts", least=(1, 2, 3, 4), end=("beginning", "end"))
def prefix_pairs(least: int, end: str) -> Contest:
    def draw(rng: Random, n: int) -> Arguments:
        return (
            ["".join(rng.choice("ab") for _ in range(rng.randint(1, 4 if n < 12 else 14))) for _ in range(n)],
        )

    part, method = ("word[:k]", "startswith") if end == "beginning" else ("word[-k:]", "endswith")
    return Contest(
        "prefix_pairs(words: list) -> int",
        f"Return how many ordered pairs of different places i and j there are for which the word at j has at least {counted(least, 'letter')} and is "
        f"the {end} of the word at i (or equals it).",
        "1 ≤ n ≤ 20,000 words of 1 to 14 letters a and b",
        program(
            f"""
            from collections import Counter

            def prefix_pairs(words):
                known, found = Counter(words), 0
                for word in words:
                    for k in range($least, len(word) + 1):
                        found += known.get({part}, 0)
                    found -= len(word) >= $least
                return found
            """, least=least),
        program(
            f"""
            def prefix_pairs(words):
                found = 0
                for i, word in enumerate(words):
                    for j, other in enumerate(words):
                        if i != j and len(other) >= $least and word.{method}(other):
                            found += 1
                return found
            """, least=least),
        draw, 20_000,
    )  # fmt: skip


@contest("texts", least=(1, 2, 3, 4), what=("count", "letters"))
def hidden_words(least: int, what: str) -> Contest:
    def draw(rng: Random, n: int) -> Arguments:
        known = "abc"
        if n < 12:
            return "".join(rng.choice(known) for _ in range(n)), [
                "".join(rng.choice(known) for _ in range(rng.randint(1, 3))) for _ in range(n)
            ]
        text = "".join(rng.choice(known) for _ in range(n - 50)) + "z" * 50
        words = [
            "".join(rng.choice(known) for _ in range(rng.randint(2, 8))) + rng.choice(("z", "y"))
            for _ in range(n // 4)
        ]
        return text, words

    worth = "1" if what == "count" else "len(word)"
    words = (
        "how many of the words are hidden"
        if what == "count"
        else "how many letters the hidden words have in all"
    )
    return Contest(
        "hidden_words(text: str, words: list) -> int",
        f"A word is hidden in a text if it has at least {counted(least, 'letter')} and they stand there in their order, with none or any others between them. Return {words}; a "
        "word that is listed twice counts twice.",
        "a text of 1 to 80,000 small letters, up to 20,000 words of 1 to 9 letters",
        program(
            f"""
            from bisect import bisect_left

            def hidden_words(text, words):
                places, found = {{}}, 0
                for i, letter in enumerate(text):
                    places.setdefault(letter, []).append(i)
                for word in words:
                    at = 0 if len(word) >= $least else len(text)
                    for letter in word:
                        known = places.get(letter, ())
                        place = bisect_left(known, at)
                        if place == len(known):
                            break
                        at = known[place] + 1
                    else:
                        found += {worth}
                return found
            """, least=least),
        program(
            f"""
            def hidden_words(text, words):
                found = 0
                for word in words:
                    rest = iter(text)
                    if len(word) >= $least and all(letter in rest for letter in word):
                        found += {worth}
                return found
            """, least=least),
        draw, 80_000,
    )  # fmt: skip
