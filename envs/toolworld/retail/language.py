"""Language of orders: what can be asked of a customer, and what can be changed for them."""

from __future__ import annotations

from turnwise.envs.toolworld.speech.words import Concept

SLOTS = {
    "email": ("email", "email address", "mail address", "mail", "electronic address", "address on file with us"),
    "zip": ("zip", "zip code", "postal code", "postcode", "zipcode", "post code", "area code"),
    "name": (
        "name", "full name", "first and last name", "who am i speak", "who i am speak", "who am i talk", "whom am i speak",
        "who is this", "last name", "surname", "family name", "first name", "how may i address you", "who am i assist", "who i am talk",
    ),
    "reason": (
        "reason", "why", "no longer need", "by mistake", "what is wrong with it", "what happened", "motive", "cause", "what make you", "what made you",
    ),
    "payment": (
        "payment", "payment method", "method of payment", "which card", "what card", "your card or", "card or", "paypal or", "gift card or",
        "way of paying", "how would you like to pay", "how do you want to pay", "what to charge", "who pays the difference",
        "where should the difference go", "difference go", "difference be charged", "difference charged", "charge the difference",
        "settle the difference", "pay the difference", "refund the difference",
    ),
}  # fmt: skip
IDENTITY = ("email", "name", "zip")
_ITEM = (
    "item|variant|one|lamp|bottle|boot|chair|backpack|teapot|blanket|helmet|watch|speaker|frame|mat|product|model|article|order|"
    "color|colour|version|size"
)
SENSES = {
    "cancel_order": Concept("cancel|kill|axe|ditch|scratch|call off|void|annul|drop|cancellation|undo|scrap|stop|withdraw|terminate", "order|purchase"),
    "change_item": Concept(
        "change|swap|replace|switch|exchange|modify|substitute|trade|update|put|turn|make|give|take|get|go for|go with", _ITEM
    ),
    "change_address": Concept(
        "change|send|ship|update|deliver|redirect|set|modify|correct|reroute|forward|direct|put|go|use|replace|switch",
        "address|street|shipping address|delivery|destination",
    ),
    "return_items": Concept("return|take back|send back|go back|refund|bring back|accept back|process|give back|start|set up", f"{_ITEM}|return"),
    "exchange_item": Concept(
        "exchange|swap|replace|switch|change|trade|substitute|give|send|get|process|take|go for|go with", f"{_ITEM}|exchange"
    ),
}  # fmt: skip
SENSES |= {
    "change_payment": Concept(
        "change|switch|set|use|update|replace|alter|paid with", "payment|payment method|method of payment|way of paying"
    ),
    "remove_item": Concept("remove|take out|take the out|take that out|leave out|leave the out|delete|drop|strike", _ITEM),
    "wrap_order": Concept("wrap|gift-wrap|giftwrap|pack|add|put", "wrapping|wrap|wrapped|present|gift wrapping|gift-wrap|giftwrap|as a gift"),
    "change_user_address": Concept(
        "change|update|set|modify|correct|put|replace|switch|save", "address|account|profile|street"
    ),
}  # fmt: skip
_COLOURS = "red|blue|green|black|white|silver|gr[ae]y|yellow|orange|purple|pink|brown|beige|teal|plum|navy|turquoise|cream|violet|maroon|olive|copper|brass|bronze|oak|walnut|pine"
PATTERNS = {
    "address": r"\b(\d+[a-z]? (?:[a-z]+ ){1,2}?(?:street|road|row|close|lane|avenue|drive|court|way|place|square|terrace|hill|gardens?|crescent|park|quay|walk|alley|mews|boulevard|parade|grove|rise|yard|wharf|path))\b",
    "postcode": r"(?<![$\w.-])(\d{5})(?![\w-])",
    "colour": rf"\b({_COLOURS})\b",
    "taken": rf"\b(?:replace|swap|exchange|change|trade|substitute|instead of|in place of) (the (?:{_COLOURS}))\b",
    "rank": r"\b(not (?:quite |exactly )?the cheapest|cheapest|nicest|fanciest|finest|most expensive|priciest|dearest)\b",
    "thing": r"\b(lamp|bottle|boots|chair|backpack|teapot|blanket|helmet|watch|speaker|frame|mat)\b",
}
