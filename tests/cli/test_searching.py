"""`turnwise eval --search` on the command line: figures, a resume, and what is refused."""

from __future__ import annotations

from pathlib import Path

from turnwise.agents.log.episode_log import read_episodes


def test_eval_searches_resumes_and_refuses_another_search(turnwise_here, tmp_path: Path) -> None:
    line = [
        "eval",
        "shop/quick",
        "--policy",
        "mix:gold=1,random=1",
        "--search",
        "votes:n=3",
        "--budget",
        "200",
    ]
    out = ["--out", str(tmp_path / "e")]
    first = turnwise_here(*line, "--episodes", "3", *out, "--json")
    assert first.code == 0, first.out
    assert first.json["search"]["label"] == "chooses among whole episodes"
    before = [e.metrics for e in read_episodes(tmp_path / "e" / "episodes.jsonl.zst")]
    again = turnwise_here(*line, "--episodes", "5", *out, "--resume", "--json")
    after = [e.metrics for e in read_episodes(tmp_path / "e" / "episodes.jsonl.zst")]
    assert (again.json["episodes"], after[:3]) == (5, before)
    whole = turnwise_here(*line, "--episodes", "5", "--json")
    assert (whole.json["success"], whole.json["search"]) == (again.json["success"], again.json["search"])
    other = turnwise_here(*line[:-1], "300", "--episodes", "5", *out, "--resume")
    assert other.code
    assert "another search" in other.out + other.err
    for wrong, said in (
        (["--budget", "9"], "is of a search"),
        (["--search", "votes"], "--budget"),
    ):
        done = turnwise_here("eval", "shop/quick", "--policy", "scripted:gold", *wrong)
        assert done.code
        assert said in done.out + done.err
