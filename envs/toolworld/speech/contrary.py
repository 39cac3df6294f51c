"""Offers of the contrary of what was asked for: off for on, back for there, to leave it for to do it."""

from __future__ import annotations

import functools
import re

from turnwise.envs.toolworld.speech.words import normal, stems, word_set

_NOT_DONE = re.compile(
    r"\b(?:shall|should|may|can|could|would|do|will|am) (?:i|we|you (?:want|like|wish|prefer) (?:me|us)(?: to)?) (?:rather |then |just |also |please |better )*"
    r"(?:not(?! only| just)|never|keep|leave|skip|spare)\b(?! (?:you\b|ahead|going|track|an eye|posted))|"
    r"\b(?:want|like|wish|prefer|ask) (?:me|us) (?:not to|to (?:not|keep|leave|skip))\b(?! (?:you\b|track|an eye))"
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
"""Other words for off in a wish; in an offer they stand for other things, such as costs."""
_ADDS = re.compile(r"\b(?:add|top up)(?:ed|ing|s)?\b|(?<!any )(?<!no )\bmore\b")
_TAKES_AWAY = re.compile(
    r"\btake (?:\S+ ){0,4}?(?:away|off)\b|\b(?:remove|subtract|deduct|drop)(?:d|s|ing)?\b|\bfewer\b"
)
_VALUE = re.compile(
    r"(?=\b([A-Z][a-z]+ [A-Z][a-z]+|\w+_\d+|\d+ [A-Z][a-z]+ [A-Z][a-z]+)\b)"
)  # a person, a means of payment, an address
_NEW_AFTER = re.compile(
    r"(?:\b(?:to|into|as|with|by|for|use|reads?|becomes?|be|called|named?|write|name is|address is|address of|renamed)|[:\u2192>]) (?:now )?[\"'\u201c]?$"
)
_NEW_BEFORE = re.compile(r"^[\"'\u201d]? (?:instead of|in place of|rather than)\b")
_OLD_AFTER = re.compile(
    r"\b(?:from|instead of|in place of|rather than|not|replace|listed as|change|rename|correct|update|name) (?:the )?[\"'\u201c]?$"
)
_OLD_BEFORE = re.compile(
    r"^(?:'s)?[\"'\u201d]?(?:'s)?(?: name)?(?: (?:to|into|with|is called|has a new name|must be|must read|should (?:be|read)|shall be|becomes?|is wrong)\b| ?[\u2192>]| ?->)"
)
"""Text that stands before or after a value that is to be there afterwards, and that was there before."""
_OF_ACCOUNT = re.compile(
    r"\baddress (?:\w+ ){0,3}?(?:of|in|on|for) (?:your|the|my) (?:account|profile)\b|"
    r"\b(?:account|profile|default)(?:'s)? address\b|\b(?:update|change|set|edit) (?:your|the|my) (?:account|profile) to\b"
)
_OF_ORDER = re.compile(
    r"(?<!\bfuture )(?<!\bmy )(?<!\bnew )(?<!\bother )\borders?\b|\b(?:my|the|this|that) order\b|\bparcel|\bpackage|\bship|\bdeliver|\bsend|\b[a-z]\d{3,}\b"
)
_ACCOUNT = re.compile(r"\baccount\b|\bprofile\b")
_OF_ORDERS = re.compile(r"\baddress (?:\w+ ){0,2}?(?:of|in|on|for) (?:your|the|all|these) (?:\w+ )?orders?\b")
_ACCOUNT_TOO = re.compile(
    r"\b(?:and|both|as well as|plus|also) (?:\w+ ){0,4}?(?:your|the) (?:account|profile)\b(?! (?:stays|remains|is not|will not|keeps))"
)


@functools.lru_cache(maxsize=4096)
def is_contrary(wish: str, text: str) -> bool:
    """Say whether a text offers to let be what a wish asks for, or to do it the other way round.

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
    return _turns_round(wish, text)


def _turns_round(wish: str, text: str) -> bool:
    """Say whether a value is to be taken away that a wish puts there, or put where the wish takes it away.

    >>> wish = "Please write Sam Novak instead of Sam Falk."
    >>> _turns_round(wish, "Shall I rename Sam Falk to Sam Novak?"), _turns_round(wish, "Shall I rename Sam Novak to Sam Falk?")
    (False, True)
    """
    new, old = _directions(wish)
    if not new and not old:
        return False
    put, taken = _directions(text)
    return not put & new and bool(put & old or taken & new)


@functools.lru_cache(maxsize=4096)
def _directions(text: str) -> tuple[frozenset[str], frozenset[str]]:
    """The values that are to be there afterwards, and those that are not any more; one that seems to be both is neither."""
    new, old = set[str](), set[str]()
    for match in _VALUE.finditer(text):
        before, after = text[max(0, match.start() - 24) : match.start()], text[match.end(1) :][:24]
        replaced = _OLD_BEFORE.search(after) is not None
        if _NEW_BEFORE.search(after) or (not replaced and _NEW_AFTER.search(before)):
            new.add(match[1])
        elif replaced or _OLD_AFTER.search(before):
            old.add(match[1])
    return frozenset(new - old), frozenset(old - new)


def _switches_round(own: str, said: str) -> bool:
    """Say whether the same thing is switched on for off, or taken away for added.

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
            return any(len(word) > 1 and word not in word_set("small") for word in shared)
    return False


def side_of(text: str) -> bool | None:
    """Say whether a text would switch something on (True) or off (False); None where it names neither or
    both.

    >>> [side_of(text) for text in ("Shall I turn it off?", "Shall I enable it?", "Shall I see to it?")]
    [False, True, None]
    """
    said = normal(text)
    on, off = _ON.search(said) is not None, _OFF.search(said) is not None
    return on if on != off else None


def _is_of_account(own: str, said: str) -> bool:
    """Say whether the account's address is offered to one who asks for an order's, or the other way round.

    >>> _is_of_account("send order w77 to 5 elm street", "shall i set the address of your account to 5 elm street?")
    True
    >>> _is_of_account("send order w77 to 5 elm street", "shall i set the address of w77 to 5 elm street? your account stays as it is.")
    False
    """
    if "address" not in own and "address" not in said:
        return False
    if "account" in own or "profile" in own:
        return _OF_ORDERS.search(said) is not None and _ACCOUNT.search(said) is None
    if _OF_ORDER.search(own) and _ACCOUNT_TOO.search(said):
        return True
    account = _OF_ACCOUNT.search(said) is not None
    return account and _OF_ORDER.search(own) is not None and _OF_ORDER.search(said) is None
