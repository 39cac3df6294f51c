"""Language of trips: what can be asked of a traveller, and what can be changed for them."""

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
    "passengers": (
        "passenger name", "passenger detail", "who will travel", "who is travel", "who will be travel", "who will fly", "who is fly", "who will be fly",
        "who travel", "who flies", "who is the ticket for", "who is it for", "who is the seat for", "who shall i book", "who should i book",
        "travel alone", "fly alone", "travel with you", "fly with you", "come along", "just you", "only for you", "just for you",
        "for yourself", "yourself or", "anyone else", "somebody else", "someone else", "how many people", "how many person", "how many passenger",
        "how many traveller", "how many traveler", "how many of you", "name of each passenger", "name of each traveller", "name of all passenger",
        "name of the passenger", "name of the traveller", "name of every passenger", "traveller name", "which passenger will", "passenger's name", "passenger full name", "passenger's full name", "who is the passenger", "who are the passenger",
        "full name of the traveller", "full name of the traveler", "name of the traveler", "who the ticket is for", "who the seat is for", "who it is for",
        "whose name", "under what name", "under which name", "in what name", "in which name", "name on the ticket",
    ),
}  # fmt: skip
IDENTITY = ("user_id", "birthday")
_TRIP = "reservation|booking|trip|flight|ticket|itinerary|journey"
SENSES = {
    "cancel_reservation": Concept("cancel|call off|void|annul|drop|cancellation|undo|scrap|terminate", _TRIP),
    "change_flight": Concept(
        "move|change|rebook|switch|put|shift|reschedule|transfer|swap|book|reassign|place|modify", f"{_TRIP}|departure|you to|you on|you onto|date|rebook"
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
    "book_flight": Concept("book|reserve|purchase|buy|issue|booking|secure", "seat|ticket|flight|you on|you onto|you in|you a|you an|economy|reservation|booking"),
}  # fmt: skip
SENSES |= {
    "add_meal": Concept("order|add|book|put|set|arrange|note|request|get|reserve|change", "meal|food|dish|vegetarian|vegan|kosher|halal"),
    "add_insurance": Concept("add|insure|take|book|put|include|buy|arrange|get|take out", "insurance|insure|insured|cover"),
}  # fmt: skip
PATTERNS = {
    "bags": r"\b(\d+|one|a single) (?:more |extra |additional |checked |further |of the )*(?:bags?|suitcases?|pieces?)\b",
    "passenger": r"\b((?:alex|robin|sam|chris) (?!stay|come|goes|go\b|is\b|has\b|was\b|will\b|would\b|to\b|and\b|as\b|on\b|in\b|remain|become|keep|for\b|instead|with\b|from\b)[a-z]+)\b",
    "delay": r"\b(not )?(?:be )?delayed\b",
    "cabin": r"(?<!\bfrom )(?<!\bleave )(?<!\binstead of )(?<!\brather than )\b(business|economy|basic)\b",
    "meal": r"\b(vegetarian|vegan|kosher|halal)\b",
    "later": r"\b(day|week|month)s? (?:after|later|earlier)\b",
}
