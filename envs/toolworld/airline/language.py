"""How people speak of trips: what can be asked of a traveller, and what can be changed for him."""

from __future__ import annotations

from turnwise.envs.toolworld.speech.words import Concept

SLOTS = {
    "user_id": (
        "user id", "user number", "id", "customer number", "customer id", "account number", "member id", "membership number",
        "account id", "user identification", "frequent flyer number", "login", "username", "user name", "customer identification",
    ),
    "birthday": (
        "birthday", "date of birth", "born", "birth date", "birthdate", "dob", "day of birth", "day you were born",
    ),
}  # fmt: skip
IDENTITY = ("user_id", "birthday")
_TRIP = "reservation|booking|trip|flight|ticket|itinerary|journey"
SENSES = {
    "cancel_reservation": Concept("cancel|call off|void|annul|drop|cancellation|undo|scrap|terminate", _TRIP),
    "change_flight": Concept(
        "move|change|rebook|switch|put|shift|reschedule|transfer|swap|book|reassign|place|modify", f"{_TRIP}|departure|you|date"
    ),
    "change_cabin": Concept(
        "upgrade|change|move|switch|downgrade|put|bump|book|transfer|raise|take", "cabin|business|economy|basic|class|business class|seat"
    ),
    "add_bags": Concept("add|check|register|book|include|put|attach|append|take|bring|check in", "bag|baggage|luggage|suitcase|piece"),
    "rename_passenger": Concept(
        "change|correct|rename|update|fix|replace|amend|adjust|modify|edit|spell|put|set|record|correction", "name|passenger|spelling|surname|last name|robin|alex|sam|chris|ticket"
    ),
    "issue_certificate": Concept(
        "issue|give|grant|offer|compensate|send|provide|credit|award|get|receive|pay|compensation|put",
        "certificate|voucher|compensation|credit|travel certificate|travel credit|amount",
    ),
    "book_flight": Concept("book|reserve|purchase|buy|issue|booking|secure", "seat|ticket|flight|you|economy|reservation|booking"),
}  # fmt: skip
SENSES |= {
    "add_meal": Concept("order|add|book|put|set|arrange|note|request|get|reserve|change", "meal|food|dish|vegetarian|vegan|kosher|halal"),
    "add_insurance": Concept("add|insure|take|book|put|include|buy|arrange|get|take out", "insurance|insure|insured|cover"),
}  # fmt: skip
PATTERNS = {
    "bags": r"\b(\d+|one|a single) (?:more |extra |additional |checked |further |of the )*(?:bags?|suitcases?|pieces?)\b",
    "passenger": r"\b((?:alex|robin|sam|chris) (?!stay|come|goes|go\b|is\b|has\b|was\b|will\b|would\b|to\b|and\b|as\b|on\b|in\b|remain|become|keep|for\b|instead|with\b|from\b)[a-z]+)\b",
    "delay": r"\b(not )?(?:be )?delayed\b",
    "cabin": r"\b(business|economy|basic)\b",
    "meal": r"\b(vegetarian|vegan|kosher|halal)\b",
    "later": r"\b(day|week|month)s? (?:after|later|earlier)\b",
}
