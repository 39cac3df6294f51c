"""Kinds of chat templates with tokenisers that fit them, for benchmarks and tests of the token contract.

The templates (``templates/``) are written after the published formats; the tokenisers are trained on the spot.
"""

from __future__ import annotations

import functools
import json
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from tokenizers import Tokenizer
    from transformers import PreTrainedTokenizerFast

CORPUS = [
    f"the red scarf number {n} costs ${n}.99, see the page of the shop\n\nnext: size {n}" for n in range(60)
]


class TemplateFamily(NamedTuple):
    """Tokens that the tokeniser of a kind of chat template knows.

    Attributes:
        special: its special tokens; the first is the beginning of text, where there is one.
        eos: the token that ends a text.
        added: tokens that are not special, but are found in text.
        metaspace: spaces become ▁ and one is put before the text, as SentencePiece does.
        bos: there is a beginning of text.
    """

    special: str
    eos: str
    added: str = ""
    metaspace: bool = False
    bos: bool = False


FAMILIES = {
    "chatml": TemplateFamily(
        "<|endoftext|> <|im_start|> <|im_end|>", "<|im_end|>", "<tool_call> </tool_call>"
    ),
    "thinking": TemplateFamily(
        "<|endoftext|> <|im_start|> <|im_end|>",
        "<|im_end|>",
        "<tool_call> </tool_call> <tool_response> </tool_response> <think> </think>",
    ),
    "llama3": TemplateFamily(
        "<|begin_of_text|> <|end_of_text|> <|start_header_id|> <|end_header_id|> <|eot_id|> "
        + " ".join(f"<|reserved_special_token_{n}|>" for n in range(20)),
        "<|eot_id|>",
        bos=True,
    ),
    "mistral": TemplateFamily("<s> </s> [INST] [/INST]", "</s>", metaspace=True, bos=True),
    "mistral_tools": TemplateFamily(
        "<s> </s> [INST] [/INST] [AVAILABLE_TOOLS] [/AVAILABLE_TOOLS] [TOOL_CALLS] [TOOL_RESULTS] [/TOOL_RESULTS]",
        "</s>",
        metaspace=True,
        bos=True,
    ),
    "gemma": TemplateFamily(
        "<bos> <eos> <start_of_turn> <end_of_turn>", "<eos>", "\n\n <b>", metaspace=True, bos=True
    ),
    "glm": TemplateFamily(
        "<|endoftext|> [gMASK] <sop> <|system|> <|user|> <|assistant|> <|observation|>", "<|endoftext|>"
    ),
    "plain": TemplateFamily("</s> ¤", "</s>"),  # a control token of one character
}


@functools.cache
def family_tokenizer(
    name: str, corpus: tuple[str, ...] = tuple(CORPUS), vocab_size: int = 700
) -> PreTrainedTokenizerFast:
    """A tokeniser of a family, trained on a corpus, with the family's chat template."""
    from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    family = FAMILIES[name]
    special = family.special.split(" ")
    backend = Tokenizer(models.BPE(byte_fallback=family.metaspace, unk_token=None))
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    if family.metaspace:
        special += [f"<0x{n:02X}>" for n in range(256)]
        alphabet = []
        backend.normalizer = normalizers.Replace(" ", "▁") if name == "gemma" else None
        scheme = "never" if name == "gemma" else "first"
        backend.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme=scheme, split=name != "gemma")
        backend.decoder = decoders.Sequence(
            [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()]
        )
    else:
        backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        backend.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size, special_tokens=special, initial_alphabet=alphabet, show_progress=False
    )
    backend.train_from_iterator(corpus, trainer)
    if family.metaspace:  # bytes are ordinary tokens of the model, not control tokens
        backend = _without_added(backend, prefix="<0x")
    added = [token for token in family.added.split(" ") if token]
    backend.add_tokens([AddedToken(token, special=False, normalized=False) for token in added])
    return PreTrainedTokenizerFast(
        tokenizer_object=backend,
        eos_token=family.eos,
        bos_token=special[0] if family.bos else None,
        clean_up_tokenization_spaces=False,
        chat_template=(Path(__file__).parent / "templates" / f"{name}.jinja").read_text("utf-8"),
    )


def _without_added(backend: Tokenizer, prefix: str) -> Tokenizer:
    from tokenizers import Tokenizer

    spec = json.loads(backend.to_str())
    spec["added_tokens"] = [t for t in spec["added_tokens"] if not t["content"].startswith(prefix)]
    return Tokenizer.from_str(json.dumps(spec))
