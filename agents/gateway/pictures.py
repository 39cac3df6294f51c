"""Pictures as clients send them: their bytes stand in the request, and are what they are said to be."""

from __future__ import annotations

import base64
import binascii
from typing import Any

from turnwise.agents.gateway.core import bad, read_object, read_text, unsupported
from turnwise.envs.messages import Image

_BEGINNINGS = {
    "image/png": (b"\x89PNG\r\n\x1a\n",),
    "image/jpeg": (b"\xff\xd8\xff",),
    "image/gif": (b"GIF87a", b"GIF89a"),
    "image/webp": (b"RIFF",),
}


def picture(media_type: str, data: str, param: str) -> Image:
    """A picture from its base64.

    Raises:
        RefusedError: it is none of these kinds, or something else than it says.
    """
    if media_type not in _BEGINNINGS:
        raise unsupported(param, media_type, f"pictures are {', '.join(_BEGINNINGS)}.")
    try:
        found = base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        raise bad(f"{param} is no base64.", param) from None
    if not found.startswith(_BEGINNINGS[media_type]):
        raise bad(f"{param} is said to be {media_type}, and its bytes are not.", param)
    return Image(found, media_type)


def read_data_uri(value: Any, param: str) -> Image:
    """A picture from its address, which must hold it: nothing is fetched for a client.

    Raises:
        RefusedError: as :func:`picture`; or it is an address of another kind.
    """
    head, comma, data = read_text(value, param).partition(",")
    if not (comma and head.startswith("data:") and head.endswith(";base64")):
        raise unsupported(param, value, "nothing is fetched for a client: give data:image/png;base64,….")
    return picture(head[len("data:") : -len(";base64")], data, param)


def read_detail(part: dict[str, Any], param: str) -> None:
    """Refuse a resolution that nobody here could keep to."""
    if part.get("detail") not in (None, "auto"):
        raise unsupported(f"{param}.detail", part["detail"], "it is the policy's own affair; leave it out.")


def read_image_url(part: dict[str, Any], param: str) -> Image:
    """OpenAI's ``image_url`` (chat completions) and ``input_image`` (responses)."""
    given = part.get("image_url")
    if isinstance(given, dict):
        read_detail(given, f"{param}.image_url")
        return read_data_uri(given.get("url"), f"{param}.image_url.url")
    read_detail(part, param)
    return read_data_uri(given, f"{param}.image_url")


def read_source(part: dict[str, Any], param: str) -> Image:
    """Anthropic's ``image``."""
    source = read_object(part.get("source"), f"{param}.source")
    if source.get("type") != "base64":
        why = "nothing is fetched for a client: give a source of the type base64."
        raise unsupported(f"{param}.source.type", source.get("type"), why)
    kind = read_text(source.get("media_type"), f"{param}.source.media_type")
    return picture(kind, read_text(source.get("data"), f"{param}.source.data"), f"{param}.source.data")
