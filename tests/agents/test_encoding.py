"""Control tokens are what templates write, for every kind of tokeniser and every place of a cut."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lazily import Lazily

from turnwise.agents.tokens.encoding import Encoder
from turnwise.agents.tokens.lines import KNOWN_PATTERNS, LEAST

tokenizers, transformers = Lazily("tokenizers"), Lazily("transformers")
CORPUS = ["the red scarf <|of|> the shop [INST] costs 12"] * 3
SPECIAL = ["<|end|>", "<|end|>>", "[INST]", "¤"]
SOURCE = "{{ '<|end|>' }} <call> x"


class Made(dict[str, Any]):
    """What is made of each kind when it is first asked for, since collecting tests is to be quick."""

    def __init__(self, make: Callable[[str], Any]) -> None:
        super().__init__()
        self._make = make

    def __missing__(self, kind: str) -> Any:
        return self.setdefault(kind, self._make(kind))


def tokenizer(kind: str) -> Any:
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, trainers

    if kind == "unigram":
        vocab = [("<unk>", 0.0), *((c, -2.0) for c in sorted({*"".join(CORPUS), *"<|end>[INST]cal/"}))]
        backend = Tokenizer(models.Unigram([*vocab, ("the", -1.0), ("[INST]", -1.0)], unk_id=0))
    elif kind == "wordpiece":
        backend = Tokenizer(models.WordPiece(unk_token="[UNK]"))
        backend.normalizer = normalizers.Lowercase()
        backend.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
        backend.train_from_iterator(
            CORPUS, trainers.WordPieceTrainer(special_tokens=["[UNK]"], show_progress=False)
        )
    elif kind == "metaspace":  # as SentencePiece: a space before the text, and only there
        backend = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True))
        backend.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first")
        backend.train_from_iterator(
            CORPUS, trainers.BpeTrainer(special_tokens=["<unk>"], show_progress=False)
        )
    else:
        backend = Tokenizer(models.BPE())
        backend.pre_tokenizer = pre_tokenizers.ByteLevel()  # with a space before the text
        alphabet = pre_tokenizers.ByteLevel.alphabet()
        backend.train_from_iterator(
            CORPUS, trainers.BpeTrainer(vocab_size=300, initial_alphabet=alphabet, show_progress=False)
        )
    backend.add_special_tokens(
        [tokenizers.AddedToken(text, rstrip=text == "[INST]", normalized=False) for text in SPECIAL]
    )
    backend.add_tokens(
        [
            tokenizers.AddedToken(text, normalized=False)
            for text in ("<call>", "</call>", "scarf", "\n\n", "<b>")
        ]
    )
    return transformers.PreTrainedTokenizerFast(tokenizer_object=backend)


KINDS = Made(tokenizer)
ENCODERS = Made(lambda kind: Encoder(KINDS[kind], SOURCE))
every_kind = pytest.mark.parametrize("kind", ["bpe", "metaspace", "unigram", "wordpiece"])


def control_ids(kind: str, text: str) -> list[int]:
    known = {KINDS[kind].get_vocab()[name] for name in [*SPECIAL, "<call>", "</call>"]}
    return [token for token in ENCODERS[kind].encode(text) if token in known]


def test_what_is_a_control_token() -> None:
    assert [control.text for control in ENCODERS["bpe"].controls] == [
        "<|end|>", "<|end|>>", "[INST]", "<call>", "</call>",
    ]  # fmt: skip


@every_kind
@given(st.text(st.sampled_from("the red scarf 12\n<|>[]é中")))
def test_a_template_is_encoded_as_by_the_tokenizer(kind: str, text: str) -> None:
    whole = f"[INST] {text}<|end|><|end|>> x</call> the"
    assert ENCODERS[kind].encode(whole) == KINDS[kind].encode(whole, add_special_tokens=False)


@every_kind
@pytest.mark.parametrize("control", [*SPECIAL[:3], "<call>", "</call>"])
def test_no_half_of_a_control_token_is_completed(kind: str, control: str) -> None:
    guard = ENCODERS[kind].guard
    assert len(control_ids(kind, control)) == 1
    assert control_ids(kind, guard(control)) == []
    for cut in range(1, len(control)):
        head, tail = control[:cut], control[cut:]
        written = control_ids(kind, head)  # "<|end|>" is the head of "<|end|>>", and a token
        assert control_ids(kind, guard(head) + tail) == []
        assert control_ids(kind, head + guard(tail)) == written
        assert control_ids(kind, head + guard(tail[:1]) + tail[1:]) == written
        assert control_ids(kind, guard(head + control + tail)) == []


@every_kind
@pytest.mark.parametrize("own", [False, True])
def test_a_text_that_is_left_as_it_is_would_have_been_left_by_the_search(kind: str, own: bool) -> None:
    encoder, rng = ENCODERS[kind], Random(kind)
    strings = encoder._special if own else encoder._any
    parts = [
        *"ab <>[]|/\n¤",
        *(control.text[a:b] for control in encoder.controls for a, b in ((0, 2), (1, 3), (-2, None))),
    ]
    left = 0
    for _ in range(2000):
        text = "".join(rng.choices(parts, k=rng.randrange(4)))
        said = encoder._unsayable.sub("\ufffd", text)
        assert encoder.guard(text, own=own) == strings.cut(said)
        assert own or encoder.guard_json(text) == strings.cut(said)
        left += encoder._harmless(text)
    assert 100 < left < 1900  # some of each


@every_kind
def test_a_token_of_one_character_is_replaced(kind: str) -> None:
    assert control_ids(kind, ENCODERS[kind].guard("a¤b")) == []
    assert len(control_ids(kind, "a¤b")) == 1


def test_the_policy_keeps_the_tokens_that_are_not_special() -> None:
    guard = ENCODERS["bpe"].guard
    assert len(control_ids("bpe", guard("<call></call><|end|>", own=True))) == 2


@pytest.mark.parametrize(
    ("text", "becomes"),
    [
        ("a\ud800b", "a\ufffdb"),
        ("\ud83d\ude42", "🙂"),  # halves that belong together
        ("\U00100000\U0010fffc\U0010fffd\U0010ffff", "\ufffd" * 4),
        ("\x00é中\n", "\x00é中\n"),
    ],
)
def test_what_cannot_be_encoded(text: str, becomes: str) -> None:
    assert ENCODERS["bpe"].guard(text) == becomes


def test_json_is_guarded_throughout() -> None:
    guarded = ENCODERS["bpe"].guard_json({"<|end|>": ["<|end|>", {"x": ("<|end|>", 1, None)}]})
    assert control_ids("bpe", str(guarded)) == []


@every_kind
@pytest.mark.parametrize("text", ["the", " the", "<|end|>the", "\nthe"])
def test_continuing_a_text_gives_the_tokens_it_has_there(kind: str, text: str) -> None:
    encoder = ENCODERS[kind]
    assert [*encoder.encode("<|end|>"), *encoder.encode_after(text)] == encoder.encode("<|end|>" + text)


def test_a_text_of_its_own_may_begin_with_a_space() -> None:
    assert ENCODERS["metaspace"].encode("the") != ENCODERS["metaspace"].encode_after("the")


@pytest.mark.parametrize("text", ["<|end|>", "<|", "<", "[INST", "the red scarf "])
def test_guarding_is_linear(text: str) -> None:
    """What looks at the rest of the text at every place would take an hour here; nothing is timed."""
    names = [tokenizers.AddedToken(f"<|reserved_{n}|>", special=True) for n in range(250)]
    made = tokenizer("bpe")
    made.backend_tokenizer.add_special_tokens(names)
    encoder = Encoder(made, SOURCE)
    encoder.guard(text * (500_000 // len(text)))


# --- added tokens that no template mentions (Qwen2.5's <|fim_prefix|>, <|file_sep|>) -------------

UNMENTIONED = ["<|fim_prefix|>", "<|file_sep|>", "<unused0>", "[META]", "<｜x｜>"]
ORDINARY = ["<table>", "</td>", "<h1>", "\n\n", "scarf"]


def with_added(kind: str) -> Any:
    made = tokenizer(kind)
    backend = made.backend_tokenizer
    backend.add_tokens([tokenizers.AddedToken(text, normalized=False) for text in [*UNMENTIONED, *ORDINARY]])
    return transformers.PreTrainedTokenizerFast(tokenizer_object=backend)


ADDED = Made(with_added)
ADDED_ENCODERS = Made(lambda kind: Encoder(ADDED[kind], SOURCE))


@every_kind
@pytest.mark.parametrize("token", UNMENTIONED)
def test_no_added_token_comes_out_of_data(kind: str, token: str) -> None:
    encoder, number = ADDED_ENCODERS[kind], ADDED[kind].get_vocab()[token]
    for text in (token, f"the {token} shop", f"{token}{token}", f"{token[:-1]}{token}"):
        assert number not in encoder.encode(encoder.guard(text))
        assert number in encoder.encode(encoder.guard(text, own=True))  # a policy may say it
    assert number in encoder.encode(f"the {token}")  # and so may a template
    half = encoder.guard(token[:3]) + encoder.guard(token[3:])
    assert number not in encoder.encode(half)


@every_kind
@pytest.mark.parametrize("token", ORDINARY)
def test_added_tokens_that_are_ordinary_text_stay(kind: str, token: str) -> None:
    encoder, made = ADDED_ENCODERS[kind], ADDED[kind]
    text = f"the {token} shop"
    assert encoder.encode(encoder.guard(text)) == made.encode(text, add_special_tokens=False)
    assert made.get_vocab()[token] in encoder.encode(encoder.guard(text))


# --- lines that come again ---------------------------------------------------------------------------

LINES = ["the red scarf costs $12.99 {a: [1, 22]} it's; (x)\n\n  \tI'LL é 中 e\u0301\u00a0\u2028 \r\n"]


def by_lines(kind: str, **flags: Any) -> Any:
    """A byte-level tokeniser that cuts words as those of this model do."""
    from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers, trainers

    backend = Tokenizer(models.BPE())
    byte_level = pre_tokenizers.ByteLevel(add_prefix_space=kind == "spaced", use_regex=kind not in PATTERNS)
    first: list[Any] = []
    if kind in PATTERNS:
        first = [pre_tokenizers.Split(Regex(PATTERNS[kind]), "isolated")]
        backend.normalizer = normalizers.NFC()
    elif kind == "digits":
        first = [pre_tokenizers.Digits(individual_digits=True)]
    backend.pre_tokenizer = pre_tokenizers.Sequence([*first, byte_level])
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=400, initial_alphabet=alphabet, show_progress=False)
    backend.train_from_iterator([*LINES, "}\n{ ]\n\n", "a\nb 1\n2 \n"] * 9, trainer)
    backend.add_special_tokens([tokenizers.AddedToken("<|end|>", normalized=False)])
    if flags:
        backend.add_tokens([tokenizers.AddedToken("odd", normalized=False, **flags)])
    return transformers.PreTrainedTokenizerFast(tokenizer_object=backend)


PATTERNS = {"qwen": KNOWN_PATTERNS[0], "llama": KNOWN_PATTERNS[1], "other": r"\S+\s*|\s+"}
LINE_KINDS = Made(lambda kind: Encoder(by_lines(kind), "<|end|>"))


@pytest.mark.parametrize("kind", ["gpt2", "digits", "qwen", "llama"])
@settings(max_examples=30)
@given(
    words=st.lists(
        st.sampled_from(["\n", "\n", "{", "}", " ", "a", "I'", "ll", "1", "22", "\r", "\t", "é", "e\u0301", "\u0301", "\u2028", "中", "__"]),
        min_size=60, max_size=150,
    )
)  # fmt: skip
def test_a_text_has_the_tokens_of_its_lines(kind: str, words: list[str]) -> None:
    text = "".join(words) + LEAST * "x"
    encoder = LINE_KINDS[kind]
    for begins in (True, False):
        said = text if begins else f"<|end|>{text}"
        read = encoder.encode(said)
        assert read[not begins :] == encoder._twin.encode(text).ids
        assert encoder.encode_after(text) == read[not begins :]


def test_lines_that_came_before_are_not_tokenised_again() -> None:
    encoder = Encoder(by_lines("qwen"), "<|end|>")
    lines = [f'{{"name": "tool_{n}", "about": "It does {n} things."}}' for n in range(40)]
    first, other = "\n".join(lines), "\n".join(reversed(lines))
    encoder.encode(f"<|end|>{first}")
    work = encoder.work.encoded
    assert encoder.encode(f"<|end|>{other}") == [*encoder.encode("<|end|>"), *encoder._twin.encode(other).ids]
    assert encoder.work.encoded - work < 3 * len(lines[0]), (
        "the first and the last line stand at the border of a text"
    )


@pytest.mark.parametrize("odd", ["spaced", "other", "lstrip"])
def test_a_tokeniser_of_which_nothing_is_known_is_given_whole_texts(odd: str) -> None:
    made = by_lines("gpt2", lstrip=True) if odd == "lstrip" else by_lines(odd)
    encoder = Encoder(made, "<|end|>")
    text = "\n".join(f"line {n} odd" for n in range(90))
    read = encoder.encode(f"<|end|>{text}")
    assert read[1:] == encoder.encode_after(text)
    assert encoder.work.encoded <= 2 * len(text) + 2
    again = encoder.work.encoded
    encoder.encode(f"<|end|>{text}\nline 1")
    assert encoder.work.encoded - again > len(text), "it is tokenised as a whole"
