"""Whether somebody offers the contrary of what was asked for: off for on, back for there, to leave it for to do it."""

from __future__ import annotations

import functools
import re

from turnwise.envs.toolworld.speech.words import normal, stems

_NOT_DONE = re.compile(
    r"\b(?:shall|should|may|can|could|would|do|will|am) (?:i|we|you (?:want|like|wish|prefer) (?:me|us)(?: to)?) (?:rather |then |just |also |please |better )*"
    r"(?:not(?! only| just)|never|keep|leave|skip|spare)\b(?! (?:you|ahead|going|track|an eye|posted))|"
    r"\b(?:want|like|wish|prefer|ask) (?:me|us) (?:not to|to (?:not|keep|leave|skip))\b(?! (?:you|track|an eye))"
)
"""A question for leave to let something be."""
_LETS_BE = re.compile(r"\b(?:keep|leave)\b")
_PLACES = r"(?! (?:(?:your|the|my|this|that|our) )?(?:line|account|card|file|order|bill|reservation|booking|trip|plan|hold|time|top|\w*\d))"
_ON = re.compile(
    rf"\b(?:turn|switch|put|set|flip|toggle|flick|have|leave|keep|go|back)(?:ed|ing|s)?(?: (?!off\b)\S+){{0,4}}? on\b{_PLACES}|\b(?:enable|activate|allow|permit)(?:d|s|ing)?\b"
)
_OFF = re.compile(
    r"\b(?:turn|switch|put|set|flip|toggle|flick|take|have|leave|keep|go)(?:ed|ing|s)?(?: (?!on (?!(?:your|the|my|this|line|\w*\d)\b))\S+){0,4}? off\b|\b(?:disable|deactivate|disallow|forbid)(?:d|s|ing)?\b"
)
_WITHOUT = re.compile(r"\b(?:without|no longer|not need|do without)\b")
"""How a wish says off in other words; in an offer they stand for other things, such as costs."""
_ADDS = re.compile(r"\b(?:add|top up)(?:ed|ing|s)?\b|(?<!any )(?<!no )\bmore\b")
_TAKES_AWAY = re.compile(
    r"\btake (?:\S+ ){0,4}?(?:away|off)\b|\b(?:remove|subtract|deduct|drop)(?:d|s|ing)?\b|\bfewer\b"
)
_PERSON = re.compile(
    r"\b(?:to|into|as|reads?|becomes?|be|with|called) (?:now )?[\"'\u201c]?([A-Z][a-z]+ [A-Z][a-z]+)\b"
)
_OF_ACCOUNT = re.compile(
    r"\baddress (?:\w+ ){0,3}?(?:of|in|on|for) (?:your|the|my) (?:account|profile)\b|"
    r"\b(?:account|profile|default)(?:'s)? address\b|\b(?:update|change|set|edit) (?:your|the|my) (?:account|profile) to\b"
)
_OF_ORDER = re.compile(r"\border|\bparcel|\bpackage|\bship|\bdeliver|\bsend|\b[a-z]\d{3,}\b")


@functools.lru_cache(maxsize=4096)
def is_contrary(wish: str, text: str) -> bool:
    """Whether a text offers to let be what a wish asks for, or to do it the other way round.

    >>> is_contrary("Cancel order W77.", "Shall I keep order W77?"), is_contrary("Cancel order W77.", "Shall I cancel W77?")
    (True, False)
    >>> is_contrary("The name is wrong: Sam Falk should be Sam Novak.", "Shall I change Sam Novak to Sam Falk?")
    True
    """
    own, said = normal(wish), normal(text)
    if _NOT_DONE.search(said) and not _LETS_BE.search(own):
        return True
    if _switches_round(own, said) or _is_of_account(own, said):
        return True
    mine, theirs = set(_PERSON.findall(wish)), set(_PERSON.findall(text))
    return bool(mine and theirs) and not mine & theirs and any(name in wish for name in theirs)


def _switches_round(own: str, said: str) -> bool:
    """Whether the same thing is switched on for off, or taken away for added.

    >>> _switches_round("please switch roaming off on my line l77", "i will switch roaming on, okay?")
    True
    >>> _switches_round("please switch roaming off on my line l77", "i would take roaming off l77, okay?")
    False
    >>> _switches_round("add 4 gb of data", "shall i take 4 gb away?")
    True
    """
    for there, back in ((_ON, _OFF), (_OFF, _ON), (_WITHOUT, _ON), (_ADDS, _TAKES_AWAY)):
        as_wished = _OFF if there is _WITHOUT else there
        if there.search(own) and not back.search(own) and back.search(said) and not as_wished.search(said):
            shared = {*stems(own).split()} & {*stems(said).split()}
            return any(len(word) > 1 and word not in _SMALL for word in shared)
    return False


_SMALL = frozenset(
    stems(
        "the a an i you we my your me it is are of on off in to for and or with please turn switch put set line order "
        "shall should will would can could may do does now then that this"
    ).split()
)


def _is_of_account(own: str, said: str) -> bool:
    """Whether the account's address is offered to one who asks for an order's.

    >>> _is_of_account("send order w77 to 5 elm street", "shall i set the address of your account to 5 elm street?")
    True
    >>> _is_of_account("send order w77 to 5 elm street", "shall i set the address of w77 to 5 elm street? your account stays as it is.")
    False
    """
    if "address" not in said:
        return False
    account = _OF_ACCOUNT.search(said) is not None
    if "account" in own or "profile" in own:
        return False
    return account and _OF_ORDER.search(own) is not None and _OF_ORDER.search(said) is None
