"""Language of accounts: what can be asked of their owners, and what can be changed for them (language.yaml), with the words of all worlds."""

from __future__ import annotations

from turnwise.data_file import data_file
from turnwise.envs.toolworld.apps.account.state import APPS, DEVICES, FIRST_WORDS, KINDS, LAST_WORDS
from turnwise.envs.toolworld.domain import DomainLanguage
from turnwise.envs.toolworld.vocabulary import world_words

_APPS = "|".join(app.lower() for app in APPS)
_BOUGHT = "|".join(word.lower() for word in (*FIRST_WORDS, *LAST_WORDS, *KINDS))
_DEVICES = "|".join(DEVICES)
_READ = data_file("turnwise.envs.toolworld.apps", "language", DomainLanguage)
_PATTERNS = {
    "app": rf"\b({_APPS})\b",
    "tier": r"\b(basic|standard|premium)\b",
    "period": r"\b(monthly|yearly)\b",
    "device": rf"\b({_DEVICES})\b",
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
LANGUAGE = _READ._replace(
    senses={
        name: said._replace(nouns=said.nouns.format(apps=_APPS, bought=_BOUGHT, devices=_DEVICES))
        for name, said in _READ.senses.items()
    },
    patterns=_PATTERNS,
)
