"""Questions with a short answer: numbers, words, dates, choices. Each maker draws one."""

from __future__ import annotations

import calendar
import math
from collections.abc import Sequence
from datetime import date, timedelta
from random import Random

from .kinds import Maker, Row

PEOPLE = ("Anna", "Bilal", "Chen", "Dora", "Emeka", "Farah", "Goran", "Hana", "Ivo", "Jamila", "Kofi", "Lena")
GOODS = (
    "apples",
    "pencils",
    "tickets",
    "stamps",
    "bolts",
    "postcards",
    "candles",
    "marbles",
    "eggs",
    "bulbs",
)
WORDS = (
    "lantern", "harbour", "copper", "meadow", "velvet", "cinder", "pebble", "saddle", "thistle", "walnut", "anchor",
    "basket", "candle", "dagger", "ember", "falcon", "garnet", "hammock", "island", "jasmine", "kettle", "ladder",
    "magnet", "needle", "orchid", "pocket", "quiver", "ribbon", "silver", "timber", "umbrella", "violet", "whistle",
)  # fmt: skip
CAPITALS = {
    "Spain": "Madrid", "Kenya": "Nairobi", "Peru": "Lima", "Norway": "Oslo", "Japan": "Tokyo", "Egypt": "Cairo",
    "Chile": "Santiago", "Ghana": "Accra", "Nepal": "Kathmandu", "Cuba": "Havana", "Latvia": "Riga", "Qatar": "Doha",
    "Austria": "Vienna", "Fiji": "Suva", "Senegal": "Dakar", "Uruguay": "Montevideo", "Mongolia": "Ulaanbaatar",
    "Jordan": "Amman", "Greece": "Athens", "Portugal": "Lisbon", "Croatia": "Zagreb", "Tunisia": "Tunis",
}  # fmt: skip
LETTERS = "ABCD"
_NUMBER_ONLY = ("Reply with the number only.", "Give just the number.", "Answer with one integer.")


def _row(key: str, prompts: Sequence[str], answer: object, rng: Random, rule: str = "") -> Row:
    wordings = tuple(f"{prompt} {rule}".strip() for prompt in prompts)
    return Row(key, rng.choice(wordings), str(answer), wordings=wordings)


def _number(key: str, prompts: Sequence[str], answer: int, rng: Random) -> Row:
    return _row(key, prompts, answer, rng, rng.choice(_NUMBER_ONLY))


def expression(rng: Random) -> Row:
    a, b, c = rng.randint(12, 99), rng.randint(3, 29), rng.randint(5, 90)
    told = f"{a} * {b} + {c}"
    return _number(told, (f"What is {told}?", f"Compute {told}.", f"Evaluate {told}."), a * b + c, rng)


def shopping(rng: Random) -> Row:
    who, what, n, price = rng.choice(PEOPLE), rng.choice(GOODS), rng.randint(3, 24), rng.randint(2, 19)
    paid = n * price + rng.randint(1, 40)
    told = (
        f"{who} buys {n} {what} at {price} coins each and pays with {paid} coins. How many coins come back?",
        f"{n} {what} cost {price} coins apiece. {who} hands over {paid} coins. How much change is due?",
    )
    return _number(f"change {n} {price} {paid}", told, paid - n * price, rng)


def remainder(rng: Random) -> Row:
    a, b = rng.randint(300, 9000), rng.randint(7, 60)
    told = (f"What is the remainder when {a} is divided by {b}?", f"Compute {a} mod {b}.")
    return _number(f"mod {a} {b}", told, a % b, rng)


def divisor(rng: Random) -> Row:
    common = rng.randint(3, 40)
    a, b = common * rng.randint(5, 30), common * rng.randint(5, 30)
    told = (f"What is the greatest common divisor of {a} and {b}?", f"Find gcd({a}, {b}).")
    return _number(f"gcd {min(a, b)} {max(a, b)}", told, math.gcd(a, b), rng)


def travel(rng: Random) -> Row:
    speed, hours, more = rng.randint(20, 95), rng.randint(2, 9), rng.randint(5, 60)
    told = (
        f"A train runs {hours} hours at {speed} km/h and then {more} km more. How many kilometres is that in all?",
        f"After {hours} hours at {speed} km/h a van drives another {more} km. How long is its way in kilometres?",
    )
    return _number(f"way {speed} {hours} {more}", told, speed * hours + more, rng)


def digits(rng: Random) -> Row:
    n = rng.randint(10_000, 9_999_999)
    told = (f"What is the sum of the digits of {n}?", f"Add up all digits of {n}.")
    return _number(f"digits {n}", told, sum(map(int, str(n))), rng)


def binary(rng: Random) -> Row:
    n = rng.randint(40, 900)
    told = (f"Which decimal number is {n:b} in base 2?", f"Convert the binary number {n:b} to decimal.")
    return _number(f"binary {n}", told, n, rng)


def seats(rng: Random) -> Row:
    rows, more, first = rng.randint(6, 20), rng.randint(2, 5), rng.randint(8, 25)
    told = (
        f"A hall has {rows} rows. The first has {first} seats, each next one {more} more. How many seats are there?",
        f"{rows} rows of seats: {first} in the first, then {more} more from row to row. How many seats in all?",
    )
    return _number(f"seats {rows} {more} {first}", told, rows * first + more * rows * (rows - 1) // 2, rng)


def days_between(rng: Random) -> Row:
    start = date(rng.randint(1998, 2031), rng.randint(1, 12), rng.randint(1, 28))
    end = start + timedelta(rng.randint(20, 400))
    told = (f"How many days are there from {start} to {end}?", f"Count the days between {start} and {end}.")
    return _number(f"days {start} {end}", told, (end - start).days, rng)


def _day(rng: Random) -> date:
    return date(rng.randint(1990, 2035), rng.randint(1, 12), rng.randint(1, 28))


def later(rng: Random) -> Row:
    day, days = _day(rng), rng.randint(20, 300)
    told = (f"Which date is {days} days after {day}?", f"Add {days} days to {day}.")
    return _row(f"later {day} {days}", told, day + timedelta(days), rng, "Answer as YYYY-MM-DD.")


def month_end(rng: Random) -> Row:
    day = _day(rng)
    last = day.replace(day=calendar.monthrange(day.year, day.month)[1])
    told = (f"What is the last day of the month of {day}?", f"On which date does the month of {day} end?")
    return _row(f"end {day}", told, last, rng, "Write it as YYYY-MM-DD.")


def weekday(rng: Random) -> Row:
    day = _day(rng)
    told = (f"Which weekday is {day}?", f"On what day of the week does {day} fall?")
    return _row(f"weekday {day}", told, day.strftime("%A").lower(), rng, "One lower-case word.")


def backwards(rng: Random) -> Row:
    word = rng.choice(WORDS) + rng.choice(WORDS)
    told = (f'Write "{word}" backwards.', f'Reverse the string "{word}".')
    return _row(f"reverse {word}", told, word[::-1], rng, "Nothing else.")


def caesar(rng: Random) -> Row:
    word, by = rng.choice(WORDS), rng.randint(2, 9)
    moved = "".join(chr((ord(c) - 97 + by) % 26 + 97) for c in word)
    told = (f'Shift each letter of "{word}" forward by {by} (z goes on with a).',)
    return _row(f"caesar {word} {by}", told, moved, rng, "Reply with the result only.")


def acronym(rng: Random) -> Row:
    words = rng.sample(WORDS, rng.randint(4, 6))
    told = (f"Which string do the last letters of these words make: {' '.join(words)}?",)
    return _row(f"last {words}", told, "".join(word[-1] for word in words), rng, "Lower case, no spaces.")


def roman(rng: Random) -> Row:
    n = rng.randint(21, 1999)
    told = (f"Write {n} as a Roman numeral.", f"What is {n} in Roman numerals?")
    return _row(f"roman {n}", told, to_roman(n), rng, "Capital letters only.")


def to_roman(n: int) -> str:
    """A number as a Roman numeral."""
    steps = (1000, "M"), (900, "CM"), (500, "D"), (400, "CD"), (100, "C"), (90, "XC"), (50, "L"), (40, "XL")
    said = ""
    for value, letters in (*steps, (10, "X"), (9, "IX"), (5, "V"), (4, "IV"), (1, "I")):
        said, n = said + letters * (n // value), n % value
    return said


def yes_or_no(rng: Random) -> Row:
    n, by = rng.randint(200, 3000), rng.choice((3, 7, 9, 11, 13))
    told = (
        f"Is {n} divisible by {by}, or is there no whole quotient?",
        f"Does {by} divide {n} with no rest?",
    )
    return _row(f"divides {n} {by}", told, "yes" if n % by == 0 else "no", rng, "Answer yes or no.")


def largest(rng: Random) -> Row:
    numbers = rng.sample(range(100, 999), 5)
    told = (f"Which of these is the largest: {', '.join(map(str, numbers))}?",)
    return _number(f"largest {sorted(numbers)}", told, max(numbers), rng)


def first_word(rng: Random) -> Row:
    words = rng.sample(WORDS, 5)
    told = (f"Which of these words comes first in a dictionary: {', '.join(words)}?",)
    return _row(f"first {sorted(words)}", told, min(words), rng, "One word.")


def choice(rng: Random) -> Row:
    """A question with options A to D; the answer is a letter."""
    country = rng.choice(tuple(CAPITALS))
    others = rng.sample([city for city in CAPITALS.values() if city != CAPITALS[country]], 3)
    options = rng.sample([CAPITALS[country], *others], 4)
    told = f"What is the capital of {country}?\n" + options_of(options) + "\nAnswer with one letter."
    return Row(f"capital {country}", told, LETTERS[options.index(CAPITALS[country])])


def options_of(options: Sequence[object]) -> str:
    """Options, a line each."""
    return "\n".join(f"{letter}) {option}" for letter, option in zip(LETTERS, options, strict=True))


def sum_choice(rng: Random) -> Row:
    a, b = rng.randint(120, 899), rng.randint(120, 899)
    options = rng.sample([a + b, a + b + 10, a + b - 1, a + b + 100], 4)
    told = f"{a} + {b} = ?\n" + options_of(options) + "\nAnswer with one letter."
    return Row(f"sum {min(a, b)} {max(a, b)}", told, LETTERS[options.index(a + b)])


def vowels(rng: Random) -> Row:
    """A list as the answer, with commas."""
    word = rng.choice(WORDS) + rng.choice(WORDS)
    there = sorted({letter for letter in word if letter in "aeiou"})
    told = (
        f'Which vowels occur in "{word}"? List each once, in alphabetical order, with commas and no spaces.'
    )
    return Row(f"vowels {word}", told, ",".join(there))


NUMBERS: tuple[Maker, ...] = (
    expression, shopping, remainder, divisor, travel, digits, binary, seats, days_between,
)  # fmt: skip
DATES: tuple[Maker, ...] = (later, month_end)
TEXTS: tuple[Maker, ...] = (backwards, caesar, acronym, weekday)
BARE: tuple[Maker, ...] = (*NUMBERS, *DATES, *TEXTS)
CHOICES: tuple[Maker, ...] = (choice, sum_choice)
