"""Evaluate policies on the same tasks, compare them in pairs, and look at single episodes.

Run it: ``python examples/evaluate_and_compare.py``
"""

import tempfile
from pathlib import Path

import turnwise

with tempfile.TemporaryDirectory() as folder:
    log = Path(folder) / "episodes.jsonl.zst"
    weak = turnwise.evaluate("calc/easy", "scripted:random", episodes=40)
    strong = turnwise.evaluate("calc/easy", "mix:gold=9,random=1", episodes=40, log=log)
    print(f"random: {weak.success:.2f} {weak.success_interval}")
    print(f"nine times of ten gold: {strong.success:.2f} {strong.success_interval}")

    # The same tasks were played, so that the difference is told task by task.
    contrast = turnwise.compare(weak, strong).measures[0].contrasts[0]
    print(contrast.verdict, contrast.difference.interval)

    # What was logged: every turn with its rewards, as objects or as a table.
    episodes = turnwise.load_episodes(log)
    failed = [episode for episode in episodes if not episode.success]
    print(f"{len(failed)} of {len(episodes)} episodes failed")
    table = episodes.to_arrow()  # or to_pandas()
    print(table.num_rows, "turns with the columns", ", ".join(table.column_names[:8]), "…")

    # And it is proof: played again, every byte is the same.
    print(turnwise.replay(log))
