"""Keys and tokens: used where they are needed, written nowhere.

A key is best given as a reference, ``${NAME}``, which stays one in recipes and logs and is looked up
(:func:`resolve`) when an environment is made or a server is connected to. What was given as it is, is made unreadable (:func:`redact`,
:func:`redact_options`) before anything is written: values of options whose names say that they are secret, names
and passwords in addresses, what has the form of a well-known kind of key, and what secret environment variables
hold. What an option has shown to be secret is hidden from then on wherever it stands.
"""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Mapping
from typing import Any

HIDDEN = "[hidden]"
_REFERENCE = re.compile(r"\$\{([A-Z][A-Z0-9_]*)\}")
_SECRET_NAME = re.compile(
    r"(^|[_\-.])(api[_-]?key|key|secret|tokens?|password|passwd|pwd|pass|passphrase|credentials?|authorization|auth|cookie|bearer"
    r"|dsn|pat|jwt)$"
    r"|(password|passwd|passphrase|apikey)$",
    re.IGNORECASE,
)
_PUBLIC_NAME = re.compile(
    r"(^|[_\-.])(state|sort|primary|foreign|public|cache|stop|pad|eos|bos|unk|sep|mask)[_-](key|tokens?)$"
    r"|(^|[_\-.])(max|min|most|number|new)[_-]tokens$",
    re.IGNORECASE,
)
_HANDS_OVER = re.compile(r"(^|_)(AUTH_SOCK|AGENT_INFO|AUTHORITY)$", re.IGNORECASE)
"""Variables whose value is no secret, and lets a program use those of its user."""
_ADDRESS = re.compile(
    r"(?<=://)(?:[^/?#\s@'\":]*:[^/?#\s@'\"]*|[^/?#\s@'\"]{16,})@"
)  # git@ is nobody's secret
_QUERY = re.compile(
    r"(?i)([?&#](?:api[_-]?key|key|token|access_token|secret|password|sig|signature)=)[^&#\s'\"\\,;]+"
)
_HEADER = re.compile(
    r"(?i)\b((?:authorization['\"]?\s*[:=]\s*['\"]?(?:bearer|basic)|(?:bearer|basic)(?=\s+\S*\d))\s+)[\w.~+/=\-]{8,}"
)
_SHAPES = re.compile(
    r"\b(?:sk|pk|rk)(?:-[\w\-]{16,}|_(?:live|test)_\w{8,})|\bnpm_\w{20,}|\bhf_\w{16,}|\bgh[pousr]_\w{16,}|\bgithub_pat_\w{16,}|\bxox[abposr]-[\w\-]{10,}"
    r"|\bA[KS]IA[0-9A-Z]{16}\b|\bAIza[\w\-]{30,}|\bglpat-[\w\-]{16,}|\beyJ[\w\-]{10,}\.[\w\-]{10,}\.[\w\-]{10,}"
)
_PEM = re.compile(
    r"-----BEGIN (?:[A-Z0-9]{1,12} ){0,4}PRIVATE KEY-----.*?(?:-----END (?:[A-Z0-9]{1,12} ){0,4}PRIVATE KEY-----|\Z)",
    re.DOTALL,
)
_OPTION = re.compile(
    r"(--[a-z\-]{0,20}?(?:token|api-key|password|secret|key)(?:=|\s{1,2}))(?=\S{0,200}[\d_A-Z\-])[^\s\[$-]\S{7,}"
)
_ASSIGNED = re.compile(
    r"(?i)((?:api[_-]?key|(?:access|secret|private|signing)[_-]?key|(?:access|auth|refresh|id)[_-]?token|client[_-]?secret"
    r"|passw(?:or)?d)\\?['\"]?\s{0,3}[:=]\s{0,3})"
    r"(?:\\?\"[^\"\\\n]{4,}|\\?'[^'\\\n]{4,}|(?![$\[])[^\s'\",;&)\]}\\]{8,})"
)
"""Pattern of what stands after a name that says that it is secret, in quotes or not."""
_ASSIGNED_WORD = re.compile(
    r"(?i)((?<!eos_)(?<!bos_)(?<!pad_)(?<!unk_)(?<!stop_)(?<!mask_)(?:secret|token)\\?['\"]?\s{0,3}[:=]\s{0,3}\\?['\"]?)"
    r"(?=[\w\-.~+/=]{0,64}\d)(?=[\w\-.~+/=]{0,64}[a-z])[\w\-.~+/=]{8,}"
)
"""The same after a word that stands in ordinary sentences too: what has digits and letters."""
_SHORTEST = 8  # a shorter value may stand anywhere by chance
_known: set[str] = set()


def resolve(text: str) -> str:
    """A text with its references, ``${NAME}``, replaced by what those environment variables hold.

    Raises:
        TurnwiseError: a variable is not set.
    """

    def value(match: re.Match[str]) -> str:
        if match[1] not in os.environ:
            from turnwise.errors import TurnwiseError  # which redacts what it says

            raise TurnwiseError(
                f"The environment variable {match[1]} is not set.", f"export {match[1]}=…, and run it again."
            )
        return os.environ[match[1]]

    return _REFERENCE.sub(value, text)


def resolve_options(value: Any) -> Any:
    """:func:`resolve` for every text of options; what is secret among them is hidden from now on."""
    resolved = _resolved(value)
    redact_options(resolved)
    return resolved


def redact(text: str) -> str:
    """A text without keys, tokens and passwords; references stay.

    >>> redact("openai:m@http://me:secret@host/v1?token=abc, Authorization: Bearer abcdefgh")
    'openai:m@http://[hidden]@host/v1?token=[hidden], Authorization: Bearer [hidden]'
    >>> redact("http://:${TOKEN}@host")
    'http://:${TOKEN}@host'
    """
    for value in _secret_values(_environment(), frozenset(_known)):
        text = text.replace(value, HIDDEN)
    text = _ADDRESS.sub(_hide_address, text)
    text = _QUERY.sub(rf"\1{HIDDEN}", text)
    text = _HEADER.sub(rf"\1{HIDDEN}", text)
    if "--" in text:
        text = _OPTION.sub(rf"\1{HIDDEN}", _PEM.sub(HIDDEN, text))
    if ":" in text or "=" in text:
        text = _ASSIGNED_WORD.sub(rf"\1{HIDDEN}", _ASSIGNED.sub(_hide_assigned, text))
    return _SHAPES.sub(HIDDEN, text)


def redact_options(value: Any, name: str = "") -> Any:
    """The same for options: a JSON value whose names tell what is secret.

    >>> redact_options({"api_key": "abc", "headers": {"Authorization": "${KEY}"}, "max_tokens": 5})
    {'api_key': '[hidden]', 'headers': {'Authorization': '${KEY}'}, 'max_tokens': 5}
    """
    if isinstance(value, Mapping):
        return {key: redact_options(item, str(key)) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [redact_options(item, name) for item in value]
    if not isinstance(value, str):
        return value
    if _names_secret(name) and _REFERENCE.sub("", value.removeprefix("Bearer ")):
        _remember(value)
        return HIDDEN
    for within in _ADDRESS.findall(value):
        _remember(within[:-1].rpartition(":")[2])
    return redact(value)


def _remember(value: str) -> None:
    """Only what stands in options: if any text could name a secret, a page could hide words from every log."""
    value = value.removeprefix("Bearer ").removeprefix("Basic ")
    if len(value) >= _SHORTEST and not _REFERENCE.search(value) and value != HIDDEN:
        _known.add(value)


def _resolved(value: Any) -> Any:
    if isinstance(value, str):
        return resolve(value)
    if isinstance(value, Mapping):
        return {key: _resolved(item) for key, item in value.items()}
    return [_resolved(item) for item in value] if isinstance(value, list) else value


def _hide_address(match: re.Match[str]) -> str:
    password = match[0][:-1].rpartition(":")[2]
    return f"{HIDDEN}@" if _REFERENCE.sub("", password) else match[0]


def _hide_assigned(match: re.Match[str]) -> str:
    """The name and the quotes stay, as does a value that is a reference or hidden already."""
    value = match[0][len(match[1]) :]
    quote = value[: len(value) - len(value.lstrip("\\'\""))]
    inside = value[len(quote) :]
    return match[0] if inside.startswith((HIDDEN, "Bearer ", "${")) else f"{match[1]}{quote}{HIDDEN}"


def public_environment() -> dict[str, str]:
    """This process's environment variables without those that hold a secret or let use one: for foreign programs.

    Secret are those whose names say so, and those whose value is an address with a password in it.
    """
    return {
        name: value
        for name, value in os.environ.items()
        if not (_holds_secret(name, value) or _HANDS_OVER.search(name) or _opens(value))
    }


@functools.lru_cache(maxsize=4096)
def _names_secret(name: str) -> bool:
    return bool(_SECRET_NAME.search(name)) and not _PUBLIC_NAME.search(name)


def _holds_secret(name: str, value: str) -> bool:
    """Say whether an environment variable holds a secret; the shell's own PWD is a folder."""
    return name != "PWD" and _names_secret(name) and not value.isdigit()


def _opens(value: str) -> bool:
    return "://" in value and any(_hide_address(found) != found[0] for found in _ADDRESS.finditer(value))


def _environment() -> tuple[tuple[str, str], ...]:
    return tuple(
        (name, value)
        for name, value in os.environ.items()
        if len(value) >= _SHORTEST and _holds_secret(name, value)
    )


@functools.lru_cache(maxsize=4)
def _secret_values(environment: tuple[tuple[str, str], ...], known: frozenset[str]) -> tuple[str, ...]:
    """Collect what secret environment variables hold and options have shown, the longest first."""
    return tuple(sorted({value for _, value in environment} | known, key=len, reverse=True))
