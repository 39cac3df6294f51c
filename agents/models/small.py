"""A small language model from scratch, for machines that can download nothing.

Its vocabulary is learned from the environment's own text, its weights are random; it is saved as an
ordinary Hugging Face folder, which transformers and vLLM load like any other.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias

from turnwise.errors import TurnwiseError

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

PAD, END, ROLES = "<|pad|>", "<|end|>", ("<|system|>", "<|user|>", "<|assistant|>", "<|tool|>")
CALL_TAGS = ("<tool_call>", "</tool_call>")
Init: TypeAlias = Literal["random", "induction"]
HEAD_DIMS = (32, 64, 80, 96, 112, 128, 192, 256)  # what vLLM's attention kernels for CPUs accept

# One token opens a message and one ends a reply: three tokens of structure per turn.
CHAT_TEMPLATE = """\
{%- if tools %}<|system|>{% for tool in tools %}{{ tool.function | tojson }}
{% endfor %}{% endif %}
{%- for message in messages %}
{{- '<|' + message.role + '|>' + (message.content or '') }}
{%- if message.role == 'assistant' %}
{%- for call in message.tool_calls or [] %}
{{- '<tool_call>' + {'name': call.function.name, 'arguments': call.function.arguments} | tojson + '</tool_call>' }}
{%- endfor %}{{ '<|end|>' }}{% endif %}
{%- endfor %}
{%- if add_generation_prompt %}<|assistant|>{% endif %}"""

# Words take the space *after* them along, so that a word is the same token behind "[" or a space and can
# be copied from one to the other; a number is one token wherever it stands.
_PIECES = r"\p{L}+ ?|\p{N}+|[^\s\p{L}\p{N}]+ ?|\s+"


def inner_width(width: int) -> int:
    """Return the width of the feed-forward layer of a small model: 8/3 of its own, in whole 32s.

    >>> inner_width(128)
    352
    """
    return -(-width * 8 // 3 // 32) * 32


def build_small_model(
    directory: str | Path,
    texts: Iterable[str],
    *,
    vocab_size: int = 768,
    layers: int = 4,
    width: int = 128,
    heads: int = 4,
    context: int = 2048,
    tie_embeddings: bool = False,
    init: Init = "random",
    seed: int = 0,
) -> Path:
    """Train a tokeniser on ``texts``, initialise a model and save both in ``directory``.

    The same arguments give the same files.

    Args:
        directory: is created; files of the same names are replaced.
        texts: what the environment says and receives, as much as makes its words frequent.
        vocab_size: tokens, at least 300: 256 bytes, the control tokens, the rest learned.
        layers: transformer blocks.
        width: of the residual stream; ``width / heads`` must be one of ``HEAD_DIMS``.
        heads: attention heads.
        context: the longest sequence, in tokens.
        tie_embeddings: share the input and output embeddings.
        init: of the weights: ``induction`` can copy from context from the start (:mod:`turnwise.agents.models.induction`).
        seed: of the weights.

    Raises:
        TurnwiseError: the sizes do not fit together.
    """
    if width % heads or width // heads not in HEAD_DIMS:
        raise TurnwiseError(
            f"width {width} with {heads} heads gives heads of {width / heads:g}, which vLLM cannot run.",
            f"Choose width = heads × one of {', '.join(map(str, HEAD_DIMS))}.",
        )
    path = Path(directory)
    tokenizer = train_tokenizer(texts, vocab_size=vocab_size, context=context)
    tokenizer.save_pretrained(path)
    _save_model(path, tokenizer, layers, width, heads, context, tie_embeddings, init, seed)
    return path


def train_tokenizer(
    texts: Iterable[str], *, vocab_size: int = 768, context: int = 2048
) -> PreTrainedTokenizerFast:
    """A byte-level BPE of ``texts`` with a compact chat template.

    Raises:
        TurnwiseError: ``vocab_size`` has no room for all bytes and the control tokens.
    """
    from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    if vocab_size < 300:
        raise TurnwiseError(f"vocab_size={vocab_size} is too small.", "Use 300 or more; 512–1024 is usual.")
    backend = Tokenizer(models.BPE())
    backend.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(_PIECES), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    backend.decoder = decoders.ByteLevel()
    backend.train_from_iterator(
        texts,
        trainers.BpeTrainer(
            vocab_size=vocab_size - len(CALL_TAGS),
            special_tokens=[PAD, END, *ROLES],
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
            show_progress=False,
        ),
    )
    backend.add_tokens([AddedToken(tag, normalized=False, special=False) for tag in CALL_TAGS])
    return PreTrainedTokenizerFast(
        tokenizer_object=backend,
        eos_token=END,
        pad_token=PAD,
        additional_special_tokens=list(ROLES),
        model_max_length=context,
        clean_up_tokenization_spaces=False,
        chat_template=CHAT_TEMPLATE,
    )


def _save_model(
    path: Path,
    tokenizer: PreTrainedTokenizerFast,
    layers: int,
    width: int,
    heads: int,
    context: int,
    tie_embeddings: bool,
    init: Init,
    seed: int,
) -> None:
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    from turnwise.agents.models.induction import ROPE_THETA, induction_init

    # Not Qwen2, though it has the bias on q, k, v that helps small models to copy: AutoTokenizer would
    # replace our tokeniser's way of splitting words by Qwen's.
    config = LlamaConfig(
        attention_bias=True,
        vocab_size=len(tokenizer),
        hidden_size=width,
        intermediate_size=inner_width(width),
        num_hidden_layers=layers,
        num_attention_heads=heads,
        num_key_value_heads=heads,
        max_position_embeddings=context,
        rope_parameters={
            "rope_type": "default",
            "rope_theta": ROPE_THETA if init == "induction" else 10_000.0,
        },
        tie_word_embeddings=tie_embeddings,
        bos_token_id=None,
        eos_token_id=tokenizer.backend_tokenizer.token_to_id(END),
        pad_token_id=tokenizer.backend_tokenizer.token_to_id(PAD),
        dtype="float32",
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = LlamaForCausalLM(config)
        if init == "induction":
            induction_init(model)
    model.save_pretrained(path)
