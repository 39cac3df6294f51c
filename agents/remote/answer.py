"""An answer in the making: what has come of it, from which engine, and whether it is one.

What is lost on the way is never drawn anew. :meth:`Job.ask` says when the rest is drawn after the tokens that came, and
when the same seed is played again (docs/engines.md#what-becomes-of-a-lost-answer).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from turnwise.agents.core import Completion, Sampling, VersionSpan, lie_in
from turnwise.agents.remote.protocol import Choice, ExtraBody, GenerateBody, SamplingBody, spans_of
from turnwise.tasks.core import digest


class SampledTokens(NamedTuple):
    """Tokens that came, with their log-probabilities and the versions of the weights that sampled them."""

    ids: tuple[int, ...] = ()
    logprobs: tuple[float, ...] = ()
    versions: tuple[VersionSpan, ...] = ()

    def upto(self, count: int) -> SampledTokens:
        """The first ``count`` tokens."""
        spans = tuple(span for span in self.versions if span.start < count)
        return SampledTokens(self.ids[:count], self.logprobs[:count], spans)

    def and_then(self, rest: SampledTokens) -> SampledTokens:
        """These tokens and those of ``rest`` after them; neighbouring spans of one version are one."""
        spans = list(self.versions)
        for span in rest.versions:
            if not spans or spans[-1].version != span.version:
                spans.append(VersionSpan(span.start + len(self.ids), span.version))
        return SampledTokens((*self.ids, *rest.ids), (*self.logprobs, *rest.logprobs), tuple(spans))


class Lost(Exception):
    """An answer did not come, or what came is none. ``kept`` is what can be gone on from.

    ``cause`` is a word for the records: dead, wedged, truncated, aborted, unversioned, refused.
    """

    def __init__(self, cause: str, detail: str, kept: SampledTokens) -> None:
        self.cause, self.detail, self.kept = cause, detail, kept
        super().__init__(f"{cause}: {detail}")


class Job(NamedTuple):
    """A request to an engine, for one answer."""

    request_id: str
    prompt_ids: tuple[int, ...]
    sampling: Sampling
    stop_ids: tuple[int, ...]
    seed: int
    limit: int  # of tokens, the context's end included
    vocabulary: int = 0  # how many tokens the model has; 0: as the engine says

    def ask(self, kept: SampledTokens, *, version: int, resumes: bool) -> tuple[GenerateBody, SampledTokens]:
        """Build the request to an engine with weights ``version``, and return the tokens after which its answer comes.

        The rest is drawn after the tokens that came, from the same random stream where the engine can enter it midway
        (``resumes``): under the same weights the answer is then what it would have been. An engine that cannot is
        given the same seed from the start where its weights are those of all that came, and samples the same again; else
        the tokens that came stay, and the rest is drawn from a stream of its own.
        """
        if kept.ids and not resumes and {span.version for span in kept.versions} == {version}:
            kept = SampledTokens()
        drawn = len(kept.ids)
        seed = self.seed if resumes or not drawn else int(digest("rest", self.seed, drawn), 16) >> 1
        sampling = SamplingBody.of(self.sampling, self.limit - drawn, self.stop_ids, seed)
        if drawn and resumes:
            sampling.extra_args = ExtraBody(drawn=drawn)
        body = GenerateBody(
            request_id=f"{self.request_id}-{version}-{drawn}",  # under other weights it is another request
            token_ids=[*self.prompt_ids, *kept.ids],
            sampling_params=sampling,
            cache_salt=f"weights-{version}",  # prefixes of other weights are not this one's
        )
        return body, kept

    def whole(self, heard: SampledTokens) -> Completion | None:
        """The answer, if these tokens are all of it."""
        stopped = bool(heard.ids) and heard.ids[-1] in self.stop_ids
        if not stopped and len(heard.ids) < self.limit:
            return None
        return Completion(heard.ids, heard.logprobs, stopped, heard.versions)


class AnswerStream:
    """Reads the pieces of one answer.

    Args:
        job: what was asked.
        kept: the tokens that stand before what is read.
        version: the engine's weights when it was asked.
        body: how it was asked.
        vocabulary: how many tokens the model has.
    """

    def __init__(
        self, job: Job, kept: SampledTokens, version: int, body: GenerateBody, vocabulary: int
    ) -> None:
        self.job, self.kept, self.version, self.body = job, kept, version, body
        self.vocabulary = vocabulary
        self.ids: list[int] = []
        self.logprobs: list[float] = []
        self.spans: tuple[VersionSpan, ...] = ()
        self.spanned = 0  # of so many tokens the spans are known
        self.sure: int | None = None  # so many tokens came before the weights began to change
        self.finished = ""

    def update_begins(self) -> None:
        """The engine's weights are about to change: of what comes from now on the version is not known yet."""
        if self.sure is None:
            self.sure = len(self.ids)

    def take(self, choice: Choice) -> None:
        """Add a piece.

        Raises:
            Lost: it has no log-probabilities, not of its tokens, or what no engine can have sampled.
        """
        ids = choice.token_ids or []
        content = (choice.logprobs and choice.logprobs.content) or []
        if [entry.token_id for entry in content] != ids:
            raise self.lost("truncated", f"{len(ids)} tokens came with {len(content)} log-probabilities")
        room = self.job.limit - len(self.kept.ids) - len(self.ids)
        if len(ids) > room:
            raise self.lost("refused", f"{len(ids)} tokens came where {room} were asked for")
        self._refuse_lies(ids, [entry.logprob for entry in content])
        self.ids += ids
        self.logprobs += [entry.logprob for entry in content]
        if choice.weight_versions:
            self._take_spans(choice)
        self.finished = choice.finish_reason or self.finished

    def _refuse_lies(self, ids: Sequence[int], logprobs: Sequence[float]) -> None:
        told = ""
        if self.ids and ids and self.ids[-1] in self.job.stop_ids:
            told = f"{len(ids)} tokens come after a stop token"
        if told := told or lie_in(ids, logprobs, self.job.stop_ids, self.vocabulary):
            raise self.lost("refused", told)

    def _take_spans(self, choice: Choice) -> None:
        """The spans of the whole answer so far."""
        spans = spans_of(choice.weight_versions or (), len(self.ids))
        if spans is None:
            raise self.lost(
                "unversioned", f"the versions {choice.weight_versions} are not those of its tokens"
            )
        self.spans, self.spanned = spans, len(self.ids)

    def completion(self) -> Completion:
        """The answer, now that its stream has ended.

        Raises:
            Lost: what came is no answer.
        """
        if self.finished not in ("stop", "length"):
            cause = "aborted" if self.finished == "abort" else "truncated"
            raise self.lost(
                cause, f"it ended with {self.finished or 'no reason'} after {len(self.ids)} tokens"
            )
        if not self.spans and self.ids:
            raise self.lost("unversioned", "it does not say which weights sampled it")
        unexpected = {span.version for span in self.spans} - {self.version}
        if self.sure is None and unexpected:
            said = ", ".join(map(str, sorted(unexpected)))
            raise self.lost("unversioned", f"weights {self.version} were asked, and weights {said} answered")
        heard = self.kept.and_then(SampledTokens(tuple(self.ids), tuple(self.logprobs), self.spans))
        answer = self.job.whole(heard)
        if answer is None or answer.stopped != (self.finished == "stop"):
            raise self.lost(
                "truncated", f"{len(heard.ids)} of {self.job.limit} tokens came, and no stop token"
            )
        return answer

    def lost(self, cause: str, detail: str) -> Lost:
        """Return the error to raise, with the tokens whose weights are known."""
        if cause in ("unversioned", "refused"):
            return Lost(cause, detail, self.kept)
        sure = len(self.ids) if self.sure is None else self.sure
        if self.spanned >= sure:  # an engine of ours says it with each piece, vLLM with the last
            spans, sure = self.spans, self.spanned
        else:
            spans = (VersionSpan(0, self.version),)
        heard = SampledTokens(tuple(self.ids), tuple(self.logprobs), spans).upto(sure)
        return Lost(cause, detail, self.kept.and_then(heard))
