"""A text above every task: worked examples or written experience, for any policy, without a weight that is changed."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from turnwise.agents.core import History, Policy, Reply
from turnwise.agents.policies.options import PolicyOptions
from turnwise.agents.policies.registry import files_of, make_policy
from turnwise.envs.messages import Messages
from turnwise.errors import TurnwiseError
from turnwise.registry import component


@dataclass
class PrimedPolicy:
    """A policy that reads a text above the first message of each episode."""

    name: str
    inner: Policy
    text: str

    @property
    def version(self) -> int:
        """That of the policy within."""
        return self.inner.version

    async def act(self, history: History) -> Reply:
        """The reply of the policy within, to whom the conversation begins with the text."""
        shown = _primed(history, self.text)
        reply = await self.inner.act(shown)
        history.memory, history.rendered, history.shown = shown.memory, shown.rendered, shown.shown
        return reply

    def close(self) -> None:
        """Close the policy within."""
        self.inner.close()


def _primed(history: History, text: str) -> History:
    if not history.turns:
        return replace(history, observation=above(history.observation, text))
    first, *others = history.turns
    return replace(history, turns=[replace(first, observation=above(first.observation, text)), *others])


def above(messages: Messages, text: str) -> Messages:
    """The messages with a text above the first that is no system message; two tasks then begin with the same tokens.

    >>> from turnwise.envs.messages import Message
    >>> [one.content for one in above(Messages([Message("system", "Play."), Message("user", "Go.")]), "An example.")]
    ['Play.', 'An example.\\n\\nGo.']
    """
    at = next((n for n, one in enumerate(messages) if one.role != "system"), None)
    if at is None or not text:
        return messages
    told = replace(messages[at], content=f"{text}\n\n{messages[at].content}")
    return Messages((*messages[:at], told, *messages[at + 1 :]))


def _text_of(target: str) -> tuple[Path, str]:
    file, equals, spec = target.partition("=")
    if not equals or not file or not spec:
        raise TurnwiseError(
            f"The policy 'primed:{target}' is not complete.", "Write primed:FILE=POLICY, such as primed:examples.txt=vllm:PATH."
        )  # fmt: skip
    return Path(file).expanduser(), spec


def _files(target: str) -> list[Path]:
    path, spec = _text_of(target)
    return [path, *files_of(spec)]


@component("policy", "primed", form="primed:FILE=POLICY", paper="2312.01552", files=_files, told_context=True)
def primed(target: str, options: PolicyOptions) -> PrimedPolicy:
    """Any policy with the text of a file above every task, such as worked examples (URIAL) or written experience.

    URIAL (Lin et al. 2024): a base model answers after a constant text and K = 3 worked examples, unchanged for all questions, so that a
    server reads them once. ``python -m turnwise.trainers.lab.experiences`` writes such a file by Training-Free GRPO.
    """
    path, spec = _text_of(target)
    try:
        text = path.read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise TurnwiseError(f"{path} cannot be read: {error}.", "Name a file of plain text.") from None
    inner = make_policy(spec, **options._asdict())
    return PrimedPolicy(f"primed:{path.name}={inner.name}", inner, text)
