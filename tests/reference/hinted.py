"""The guide that hints: what stands in the prompt, who wrote it, and that it is learned as if it had not stood there."""

from __future__ import annotations

from helped import FORGETS, Part, guided, is_hinted
from plain import reference
from rows_helped import SIZE, Knowing, learned_under, never, on_riddles, sampled_under, source_of


@reference("guide", "hint", demonstrator=["null"], turns=[4, 2], writer=["self", "scripted:echo"])
def hint(guide: Part, demonstrator: str = "gold", turns: int = 1, writer: str = "") -> None:
    if writer:
        is_written(guide, writer if demonstrator == "gold" else "")
        return
    is_begun(guide, demonstrator, turns)
    for suite, template in (("calc/bare", ""), ("shop/quick", ""), ("shop/quick", FORGETS)):
        plain, found, plans = guided(guide, suite, template=template)
        assert len(found) == len(plain)
        helped = 0
        for number, (before, after, plan) in enumerate(zip(plain, found, plans, strict=True)):
            if number in (1, 2) or demonstrator == "null" or len(plan) > turns:
                assert after == before
                continue
            helped += 1
            assert len(after) == len(before)
            for one, other in zip(after, before, strict=True):
                is_hinted(one, other, plan[:turns], template)
        assert helped == (0 if demonstrator == "null" or len(plans[0]) > turns else 2)


def is_begun(guide: Part, demonstrator: str, turns: int) -> None:
    """The hint is so many actions of the solution; where it does not help, it leaves nothing."""
    rows = on_riddles(guide, Knowing(never), words=5)
    assert rows.found == rows.plain
    told = [] if demonstrator == "null" else [0, 2]
    assert rows.hints == [["\n".join(rows.plans[n][:turns])] * SIZE * (n in told) for n in range(3)]


def is_written(guide: Part, writer: str) -> None:
    """By whoever is named, who is told the solution, or by nobody; a hint that says nothing, or gives the answer away, is not used."""
    helped = [0, 2] if writer == "self" else []
    for answer in ("think twice", " ", "You: BUY, search or product!"):
        rows = on_riddles(guide, engine := Knowing(lambda hint, plan: True, answer=answer))
        for n, question in zip(helped, engine.questions, strict=True):
            solution = "\n".join(rows.plans[n])
            assert f"Task:\n{rows.plain[n][0].task.prompt}\n\nSolution:\n{solution}<|" in question
        for n, (old, new) in enumerate(zip(rows.plain, rows.found, strict=True)):
            if n not in helped or answer != "think twice":
                assert new == old
                assert rows.hints[n] == []
                continue
            assert rows.hints[n] == [answer] * SIZE
            assert len(new) == SIZE
            for one in new:
                assert one.success
                assert source_of(one) == "guide/hint"
                assert sampled_under(one, engine).replace(f"\n\nHint: {answer}", "") == learned_under(
                    one, engine
                )
