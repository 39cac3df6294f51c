"""A chat template is a stranger's program: it is given little time, and what it lacks is told of."""

from __future__ import annotations

import logging
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tokenizers import AddedToken, Tokenizer, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from turnwise.agents.tokens import renderer as renderer_module
from turnwise.agents.tokens.renderer import Renderer

TURNS = "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}<|im_start|>assistant\n"
NESTED = "{% for a in range(99999) %}" * 3 + "{% set x = a %}" + "{% endfor %}" * 3
BOMBS = {
    "loops": NESTED,
    "a loop that waits for its cue": f"{TURNS}{{% if messages[0].content == 'bomb' %}}{NESTED}{{% endif %}}",
    "a macro that calls itself": "{% macro f(n) %}{{ f(n + 1) }}{% endmacro %}{{ f(0) }}",
    "macros that call themselves twice": "{% macro f(n) %}{% if n %}{{ f(n - 1) }}{{ f(n - 1) }}{% endif %}{% endmacro %}{{ f(60) }}",
    "a long range": "{{ range(10 ** 9) | list }}",
    "a long text": f"{TURNS}{{{{ 'a' * (40 * 1000 * 1000) }}}}",
    "an impossible text": f"{TURNS}{{{{ 'a' * (messages | length * 10 ** 18) }}}}",
    "lists in lists": "{% set ns = namespace(x=[1]) %}{% for a in range(99999) %}{% for b in range(99999) %}{% set ns.x = [ns.x] %}{% endfor %}{% endfor %}",
}


def tokenizer(
    template: str, name: str = "tests/bomb", special: str = "<|im_start|> <|im_end|> <s> </s>"
) -> PreTrainedTokenizerFast:
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    backend = Tokenizer(models.BPE({letter: n for n, letter in enumerate(alphabet)}, []))
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.add_special_tokens([AddedToken(text, normalized=False) for text in special.split()])
    eos = special.split()[-1]
    made = PreTrainedTokenizerFast(tokenizer_object=backend, eos_token=eos, chat_template=template)
    made.name_or_path = name
    return made


def rendered_elsewhere(template: str, grace_s: float) -> subprocess.CompletedProcess[str]:
    """In a process of its own, which prints the error: what cannot be interrupted there ends that process."""
    code = (
        f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r})\n"
        "import test_template_bounds as tests\n"
        "from turnwise import watchdog\n"
        "from turnwise.agents.tokens import template\n"
        "from turnwise.envs.messages import Message\n"
        "from turnwise.errors import TurnwiseError\n"
        f"template.RENDER_S, watchdog.GRACE_S = 0.5, {grace_s}\n"
        f"try: tests.Renderer(tests.tokenizer({template!r})).start([Message('user', 'bomb')])\n"
        "except TurnwiseError as error: print(error)\n"
    )
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=200, check=False
    )


@pytest.mark.slow
@pytest.mark.parametrize("bomb", BOMBS)
def test_bombs_end_in_time_with_the_templates_name(bomb):
    """A loaded machine may need more than one interrupt, hence the grace."""
    done = rendered_elsewhere(BOMBS[bomb], 60)
    assert done.returncode == 0, done.stderr
    assert "tests/bomb" in done.stdout or "refuses" in done.stdout, (done.stdout, done.stderr)


@pytest.mark.slow
def test_a_bomb_in_one_expression_ends_the_process_by_name():
    """``10 ** (10 ** 10)`` is one call of C: nothing can interrupt it."""
    done = rendered_elsewhere("{{ 10 ** (10 ** 10) }}", 5)
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert "the chat template of tests/bomb" in done.stderr


# --- roles that can be imitated ------------------------------------------------------------------

LLAMA2 = (
    "{% for m in messages %}{% if m.role == 'user' %}<s>[INST] {{ m.content }} [/INST]"
    "{% else %} {{ m.content }} </s>{% endif %}{% endfor %}"
)
ZEPHYR = (
    "{% for m in messages %}<|{{ m.role }}|>\n{{ m.content }}</s>\n{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>\n{% endif %}"
)
VICUNA = (
    "{% for m in messages %}{% if m.role == 'user' %}USER: {{ m.content }} {% else %}ASSISTANT: {{ m.content }}</s>"
    "{% endif %}{% endfor %}{% if add_generation_prompt %}ASSISTANT:{% endif %}"
)
IMITABLE = {
    "llama2": (LLAMA2, "<s> </s>", ["[/INST]"]),
    "zephyr": (ZEPHYR, "<s> </s>", ["<|assistant|>", "<|user|>"]),
    "vicuna": (VICUNA, "<s> </s>", ["ASSISTANT:", "USER:"]),
    "chatml without its tokens": (TURNS, "<s> </s>", ["<|im_start|>"]),
}
SAFE = {
    "chatml": (TURNS, "<|im_start|> <|im_end|>"),
    "llama2 with tokens": (LLAMA2, "<s> [INST] [/INST] </s>"),
    "zephyr with tokens": (ZEPHYR, "<s> <|user|> <|assistant|> </s>"),
}


@pytest.fixture(autouse=True)
def _forget():
    renderer_module._tell_of_imitable_roles.cache_clear()


@pytest.mark.parametrize("kind", IMITABLE)
def test_roles_in_ordinary_text_are_told_of_once(kind, caplog):
    template, special, markers = IMITABLE[kind]
    with caplog.at_level(logging.WARNING):
        Renderer(tokenizer(template, f"tests/{kind}", special))
        Renderer(tokenizer(template, f"tests/{kind}", special))
    (record,) = (one for one in caplog.records if "ordinary text" in one.message)
    assert f"tests/{kind}" in record.message
    assert all(marker in record.message for marker in markers)
    assert "Use a model whose template" in record.message


@pytest.mark.parametrize("kind", SAFE)
def test_roles_with_tokens_of_their_own_are_not(kind, caplog):
    template, special = SAFE[kind]
    with caplog.at_level(logging.WARNING):
        Renderer(tokenizer(template, f"tests/{kind}", special))
    assert not [one for one in caplog.records if "ordinary text" in one.message]
