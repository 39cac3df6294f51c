"""Language of accounts: what can be asked of their owners, and what can be changed for them."""

from __future__ import annotations

from turnwise.envs.toolworld.apps.account.state import APPS, DEVICES, FIRST_WORDS, KINDS, LAST_WORDS
from turnwise.envs.toolworld.speech.words import Concept
from turnwise.envs.toolworld.vocabulary import world_words

SLOTS = {
    "email": (
        "email", "email address", "mail address", "address of your account", "account's address", "login", "email of your account",
        "which account", "address you sign in with",
    ),
    "passcode": (
        "passcode", "pass code", "code", "pin", "six digit code", "6 digit code", "six-digit code", "6-digit code", "security code", "password",
        "account code", "secret code", "access code",
    ),
}  # fmt: skip
IDENTITY = ("email", "passcode")
_APPS = "|".join(app.lower() for app in APPS)
_SUBSCRIPTION = f"subscription|membership|{_APPS}"
_BOUGHT = "|".join(word.lower() for word in (*FIRST_WORDS, *LAST_WORDS, *KINDS))
_DEVICES = "|".join(("device", "computer", "tv", "gadget", "lost mode", "lost", *DEVICES))
SENSES = {
    "cancel_subscription": Concept("cancel|end|stop|terminate|call off|quit|unsubscribe|cancellation|drop|discontinue", f"{_SUBSCRIPTION}|renewal"),
    "change_tier": Concept(
        "change|switch|move|upgrade|downgrade|put|set|raise|lower|go|bump|take|give", "tier|basic|standard|premium|level"
    ),
    "change_period": Concept(
        "change|switch|move|set|put|go|bill|pay|convert|make",
        "yearly|monthly|annual|annually|by the year|by the month|period|billing|monthly payment|yearly payment|billing period|every month|every year|per year|per month",
    ),
    "pause_subscription": Concept("pause|suspend|freeze|hold|put on hold|halt|interrupt|break", f"{_SUBSCRIPTION}|hold|pause|month"),
    "resume_subscription": Concept(
        "resume|restart|reactivate|continue|unpause|unfreeze|start again|start up|end the pause|end|lift|take off|restore", f"{_SUBSCRIPTION}|pause"
    ),
    "subscribe": Concept("subscribe|sign up|sign you up|take out|start|book|get|set up|order|buy|add|open|purchase", f"{_SUBSCRIPTION}|subscribe"),
    "share_subscription": Concept(
        "share|unshare|open|extend|grant|turn on|turn off|enable|disable|stop|end|make available|let|give|keep|sharing", f"{_SUBSCRIPTION}|family|sharing|share|everyone"
    ),
    "refund_purchase": Concept(
        "refund|give back|return|reimburse|pay back|send back|put back|credit|get back|process|issue|take back", f"purchase|money|price|app|game|film|book|item|amount|refund|pre-order|preorder|payment|{_BOUGHT}"
    ),
    "open_dispute": Concept("open|dispute|file|raise|start|contest|lodge|report|challenge|query|submit", "dispute|charge|claim|case|purchase|bank"),
}  # fmt: skip
SENSES |= {
    "redeem_code": Concept("redeem|apply|add|credit|use|enter|put|cash in|load|activate", "code|gift code|gift card|voucher|credit|balance"),
    "buy_gift_code": Concept("buy|send|order|purchase|get|issue|create|give|make out|charge|make|go|pay", "gift code|gift card|gift|code|voucher|present"),
    "change_card": Concept("change|set|switch|use|update|replace|charge|put|save|make", "card|payment|payment method|payment card"),
    "change_storage": Concept(
        "change|switch|upgrade|downgrade|move|put|set|go|expand|reduce|raise|take|give|increase", "storage|cloud|plan|gb|gigabyte|space"
    ),
    "change_email": Concept("change|update|set|replace|switch|correct|save|put|make|use", "email|address|email address|mail address|login|link"),
    "remove_device": Concept("remove|sign out|take off|unlink|delete|log out|disconnect|deregister|detach|unregister|take", _DEVICES),
    "lock_device": Concept("lock|block|mark|put|disable|secure|set|report", _DEVICES),
    "export_data": Concept("export|send|prepare|put|copy|request|download|create|get|make|order|start|email|generate", "data|export|copy|archive|file|json|csv|html"),
    "delete_app_data": Concept("delete|erase|wipe|remove|clear|purge|destroy", f"data|everything|content|history|{_APPS}"),
    "delete_account": Concept("delete|close|erase|remove|shut down|terminate|deactivate|shut|closure", "account|profile"),
    "add_family_member": Concept("add|invite|put|include|bring|join|take|let", "family|member|family group|household"),
    "remove_family_member": Concept("remove|take|take out|take off|delete|drop|kick|exclude", "family|member|family group|household"),
    "set_age_limit": Concept("set|change|raise|lower|put|limit|restrict|adjust|move|allow", "age limit|limit|age|rating|content limit"),
    "set_allowance": Concept("set|change|raise|lower|put|give|adjust|increase|reduce|limit|make|allow", "allowance|pocket money|spending limit|budget|spending"),
    "add_seats": Concept("add|buy|book|get|increase|order|purchase|raise|take|expand", "seat|license|licence|place"),
    "remove_seats": Concept("remove|reduce|drop|cancel|cut|take off|give back|return|give up|take away|lower|hand back", "seat|license|licence|place"),
    "assign_seat": Concept("assign|give|put|invite|add|hand|grant|allot|set up", "seat|license|licence|colleague|team|place"),
    "free_seat": Concept("free|take|remove|release|unassign|revoke|withdraw|take away|free up|clear", "seat|license|licence|access|place|team"),
}  # fmt: skip
PATTERNS = {
    "app": rf"\b({_APPS})\b",
    "tier": r"\b(basic|standard|premium)\b",
    "period": r"\b(monthly|yearly)\b",
    "device": rf"\b({'|'.join(DEVICES)})\b",
    "format": r"\b(json|csv|html)\b",
    "seats": r"\b(\d+)(?= (?:more |extra |additional |further |free |new |spare )*seats?\b)",
    "months": r"\b(\d+)(?= months?\b)",
    "gigabytes": r"\b(\d+)(?= ?(?:gb|gigabytes?)\b)",
    "allowance": r"\b(\d+)(?:\.\d\d)?(?: dollars)?(?= (?:a|per|each|every) month\b| allowance_dollars)",
    "rating": r"\b(\d+)\+",
    "email": r"([\w.-]+@[\w.-]*\w)",
    "first": rf"\b({'|'.join(name.lower() for name in world_words().first)})\b",
    "refunded to": r"(?:(?<=to )|(?<=your )|(?<=my )|(?<=the )|(?<=as )|(?<=store )|(?<=account )|\b(?=(?:card|credit) to$))(card|credit)\b",
}
