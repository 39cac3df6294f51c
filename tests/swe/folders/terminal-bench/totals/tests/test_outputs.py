from pathlib import Path


def test_totals():
    assert Path("/app/totals.csv").read_text().split() == ["shop,amount", "east,4", "west,8"]
