"""Text → tokens, such that only a chat template can write a control token (E8).

Tokenisers look for control tokens (``<|im_end|>``) in the whole text, so a web page that contains one
would end a turn. Here a twin of the tokeniser knows every control token by a private name instead. What
the template wrote is renamed before encoding; what data wrote keeps its spelling and means nothing.

Everything else goes through the tokeniser's own pipeline in one call: for text without control strings
the ids are those of ``apply_chat_template``, with the same merges across the border between template and
content. A control string inside data is merged like any other text around it.
"""

from __future__ import annotations

import bisect
import json
import re
from collections import defaultdict
from collections.abc import Container, Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from turnwise.agents.tokens.lines import LEAST, LINE_ENDS, reads_lines_alone
from turnwise.agents.tokens.shared import shared_length
from turnwise.agents.tokens.work import TokenWork
from turnwise.errors import TurnwiseError
from turnwise.text_cache import TextCache

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

MOST_KEPT = 1 << 21
"""Characters of text whose guarded form, and whose tokens, an encoder remembers; each is a pure function of the text."""
_CUT = "\U0010fffd"
_ANCHOR = "\U0010fffb"
_FIRST_NAME = 0x100000
_HTML = frozenset(
    [
        "a", "abbr", "article", "aside", "b", "blockquote", "body", "br", "button", "caption", "code", "col",
        "dd", "del", "div", "dl", "dt", "em", "figcaption", "figure", "footer", "form", "h1", "h2", "h3",
        "h4", "h5", "h6", "head", "header", "hr", "html", "i", "img", "input", "label", "li", "main", "mark",
        "nav", "ol", "option", "p", "pre", "q", "s", "script", "section", "select", "small", "span", "strong",
        "style", "sub", "summary", "sup", "table", "tbody", "td", "textarea", "tfoot", "th", "thead", "title",
        "tr", "u", "ul",
    ]
)  # fmt: skip
_RESERVED = "\ud800-\udfff\U00100000-\U0010ffff"


class ControlToken(NamedTuple):
    """A token that structures a conversation."""

    text: str
    id: int
    special: bool  # False: an added token such as <tool_call> or <|fim_prefix|>


class EncodedText(NamedTuple):
    """A rendered text with its tokens, and the places (in characters, in tokens) at which control tokens begin."""

    text: str
    ids: list[int]
    borders: list[tuple[int, int]]


class Encoder:
    """Encodes rendered chats; data must have passed :meth:`guard` before it was rendered.

    Args:
        tokenizer: any Hugging Face tokeniser with a ``tokenizers`` backend.
        source: the chat template; all added tokens that it mentions are control tokens.
    """

    def __init__(self, tokenizer: PreTrainedTokenizerFast, source: str) -> None:
        import tokenizers

        self.work = TokenWork()
        self._guarded = TextCache[tuple[bool, str], str](MOST_KEPT)
        self._begun = TextCache[str, tuple[int, ...]](MOST_KEPT)  # tokens of texts with which all begins
        self._encoded = TextCache[str, tuple[int, ...]](MOST_KEPT)  # and of those that continue another
        spec = json.loads(tokenizer.backend_tokenizer.to_str())
        self.controls = _find_controls(spec["added_tokens"], source)
        # A token of one character cannot be cut in two, so data must do without that character.
        single = [t["content"] for t in spec["added_tokens"] if t["special"] and len(t["content"]) == 1]
        self._unsayable = re.compile(f"[{_RESERVED}{''.join(map(re.escape, single))}]")
        self._ids = {c.text: c.id for c in self.controls}
        self._names = {c.text: chr(_FIRST_NAME + i) for i, c in enumerate(self.controls)}
        self._any = _Strings(self._names)
        self._special = _Strings(c.text for c in self.controls if c.special)
        edges = {end for control in self.controls for end in (control.text[0], control.text[-1])}
        self._suspicious = re.compile(f"[{_RESERVED}{re.escape(''.join(sorted({*single, *edges})))}]")
        self._twin = tokenizers.Tokenizer.from_str(json.dumps(_renamed(spec, self._names)))
        self._twin.add_special_tokens([tokenizers.AddedToken(_ANCHOR, normalized=False)])
        self._apart = _stand_apart(spec["added_tokens"], self._names)
        self._by_lines = self._apart and reads_lines_alone(spec)
        for control in self.controls:
            if self._twin.token_to_id(self._names[control.text]) != control.id:
                raise TurnwiseError(
                    f"The id of the control token {control.text!r} does not follow from the tokeniser's file.",
                    "Save the tokeniser again with tokenizer.save_pretrained(…) and use that folder.",
                )

    def guard(self, text: str, *, own: bool = False) -> str:
        """Make ``text`` safe to be put into a template.

        With ``own`` (the policy's words) added tokens that are not special keep their meaning, since
        thinking and calling tools are written with them. Characters that cannot be encoded (lone
        surrogates), are used here (the private plane 16) or are control tokens by themselves become U+FFFD.
        """
        if (safe := self._guarded.get((own, text))) is None:
            safe = self._guard(text, own)
            self._guarded.keep((own, text), safe, len(text))
        return safe

    def _guard(self, text: str, own: bool) -> str:
        self.work.guarded += len(text)
        if self._harmless(text):
            return text
        if self._unsayable.search(text):
            text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
            text = self._unsayable.sub("\ufffd", text)
        return (self._special if own else self._any).cut(text)

    def _harmless(self, text: str) -> bool:
        """Say whether a text has no character with which a control token begins or ends, and lies in none: most have none."""
        return not self._suspicious.search(text) and not self._any.holds(text)

    def guard_json(self, value: Any) -> Any:
        """:meth:`guard` for every string of a JSON value, keys included."""
        if isinstance(value, str):  # most are words of a schema, for which the cache takes longer
            return value if self._harmless(value) else self.guard(value)
        if isinstance(value, dict):
            return {self.guard_json(key): self.guard_json(item) for key, item in value.items()}
        if isinstance(value, (list, tuple)):
            return [self.guard_json(item) for item in value]
        return value

    def encode(self, text: str) -> list[int]:
        """Token ids of a rendered text. No token is added that is not in the text."""
        if not self._apart:
            return [*self._cached(self._any.pattern.sub(self._rename, text), begins=True)]
        return self._by_pieces(text, 0, [], [])

    def encode_after(self, text: str) -> list[int]:
        """Token ids of a text that continues another: no tokeniser's start-of-text space is added."""
        if not self._apart:
            return [*self._cached(self._any.pattern.sub(self._rename, text))]
        return self._by_pieces(text, 0, [], [], begins=False)

    def encode_on(self, text: str, known: EncodedText | None) -> EncodedText:
        """A rendered text with its token ids; what it begins with like a known one is not tokenised again.

        Two texts have the same tokens up to the last control token that stands in what they share. The known one is used
        up: its lists become those of the new one.
        """
        if not self._apart:
            return EncodedText(text, self.encode(text), [])
        if known is None:
            borders: list[tuple[int, int]] = []
            return EncodedText(text, self._by_pieces(text, 0, [], borders), borders)
        # without the control token there, and a longer one that could begin in it
        shared = shared_length(known.text, text) - 2 * self._any.longest
        place = bisect.bisect_right(known.borders, (shared, 1 << 62)) - 1
        if place < 0:
            return self.encode_on(text, None)
        start, tokens = known.borders[place]
        ids, kept = known.ids, known.borders
        del ids[tokens:], kept[place:]
        return EncodedText(text, self._by_pieces(text, start, ids, kept), kept)

    def _by_pieces(
        self, text: str, start: int, ids: list[int], borders: list[tuple[int, int]], *, begins: bool = True
    ) -> list[int]:
        """Add the tokens of a text from ``start`` on, and where in it control tokens begin, with how many tokens stand there."""
        at_first = begins and start == 0
        for match in self._any.pattern.finditer(text, start):
            if match.start() > start:
                ids += self._piece(text[start : match.start()], at_first)
            borders.append((match.start(), len(ids)))
            ids.append(self._ids[match[0]])
            start, at_first = match.end(), False
        if start < len(text):
            ids += self._piece(text[start:], at_first)
        return ids

    def _piece(self, text: str, begins: bool) -> Sequence[int]:
        """Token ids of a text without control tokens, between two of them or where all begins."""
        said = plain(text)
        if not said:
            return ()
        if self._by_lines and len(said) >= LEAST and said not in (self._begun if begins else self._encoded):
            return self._of_lines(said, begins)
        return self._cached(said, begins=begins)

    def _of_lines(self, said: str, begins: bool) -> Sequence[int]:
        """The same of a long text, of whose lines those are tokenised that are new."""
        first, *others = LINE_ENDS.split(said)
        ids = [*self._cached(first, begins=begins)]
        for line in others:
            ids += self._cached(line)
        (self._begun if begins else self._encoded).keep(said, tuple(ids), len(said))
        return ids

    def _cached(self, text: str, *, begins: bool = False) -> Sequence[int]:
        kept = self._begun if begins else self._encoded
        if (ids := kept.get(text)) is None:
            whole = text if begins else _ANCHOR + text
            self.work.encoded += len(whole)
            ids = tuple(self._twin.encode(plain(whole), add_special_tokens=False).ids)[0 if begins else 1 :]
            kept.keep(text, ids, len(whole))
        return ids

    def first_control(self, text: str) -> ControlToken | None:
        """The first control token that the template wrote into ``text``."""
        match = self._any.pattern.search(text)
        if match is None:
            return None
        return next(control for control in self.controls if control.text == match[0])

    def _rename(self, match: re.Match[str]) -> str:
        return self._names[match[0]]


def plain(text: str) -> str:
    """A guarded or rendered text without the traces of guarding."""
    return text.replace(_CUT, "")


class _Strings:
    """A set of strings, each to be cut wherever it occurs, even half."""

    def __init__(self, strings: Iterable[str]) -> None:
        # Longest first, as tokenisers match: of two that begin at one place, the longer counts. Grouped by
        # their beginnings, because Llama 3 has hundreds of them and web pages are full of "<".
        known = sorted(strings, key=lambda string: (-len(string), string))
        groups: dict[str, list[str]] = defaultdict(list)
        for string in known:
            groups[string[:2]].append(re.escape(string))
        parts = [f"(?:{'|'.join(group)})" for group in groups.values()]
        self.pattern = re.compile("|".join(parts) if parts else r"(?!)")
        self._heads = {string[:end] for string in known for end in range(1, len(string))}
        self._tails = {string[start:] for string in known for start in range(1, len(string))}
        self.longest = max(map(len, known), default=0)
        self._joined = "\0".join(known)

    def holds(self, text: str) -> bool:
        """Say whether a text is a part of one of the strings."""
        return 0 < len(text) < self.longest and text in self._joined

    def cut(self, text: str) -> str:
        pieces: list[str] = []
        done = 0
        match = self.pattern.search(text)
        while match is not None:  # matches may overlap; each is cut after its first character
            pieces.append(text[done : match.start() + 1])
            done = match.start() + 1
            match = self.pattern.search(text, done)
        whole = _CUT.join([*pieces, text[done:]])
        # A string could also be completed by what the template writes around the text.
        lengths = range(1, min(self.longest, len(text) + 1))
        inside = self.holds(text)
        before = inside or any(text[:n] in self._tails for n in lengths)
        after = any(text[-n:] in self._heads for n in lengths)
        return f"{_CUT if before else ''}{whole}{_CUT if after else ''}"


def _find_controls(added: Iterable[dict[str, Any]], source: str) -> tuple[ControlToken, ...]:
    """Special tokens, and other added tokens that the template mentions (they, or their opening or closing twin) or
    that stand in brackets.

    White space, plain words and tags of HTML among the latter (some tokenisers add "\\n\\n" or "<table>") are
    ordinary text.
    """
    mentioned = source.replace("/", "")
    return tuple(
        ControlToken(text, token["id"], token["special"])
        for token in added
        if len(text := token["content"]) > 1
        and not text.isspace()
        and (
            token["special"]
            or (text.replace("/", "") in mentioned and not text.isalnum())
            or (text[0] in "<[{" and text[-1] in ">]}" and text.strip("</>").lower() not in _HTML)
        )
    )


def _stand_apart(added: Iterable[dict[str, Any]], controls: Container[str]) -> bool:
    """Return whether text beside a control token has the same tokens as alone: none takes white space along, or is
    normalised."""
    odd = ("lstrip", "rstrip", "single_word", "normalized")
    return not any(token.get(flag) for token in added if token["content"] in controls for flag in odd)


def _renamed(spec: dict[str, Any], names: dict[str, str]) -> dict[str, Any]:
    """The tokeniser's description with other names for some tokens and no post-processing."""
    added = [
        {**token, "content": names.get(token["content"], token["content"])} for token in spec["added_tokens"]
    ]
    model = dict(spec["model"])
    if model.get("unk_token") in names:
        model["unk_token"] = names[model["unk_token"]]
    vocab = model["vocab"]
    if isinstance(vocab, dict):
        model["vocab"] = {names.get(text, text): number for text, number in vocab.items()}
    else:  # Unigram: [text, score]
        model["vocab"] = [[names.get(text, text), score] for text, score in vocab]
    return {
        **spec,
        "added_tokens": added,
        "model": model,
        "post_processor": None,
        "truncation": None,
        "padding": None,
    }
