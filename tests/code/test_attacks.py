"""Every attack of the battery, on every backend that isolates: no reward, no damage."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from turnwise.envs.code.attacks import BACKENDS, Traps, play_attack, traps
from turnwise.envs.code.battery import ATTACKS, CodeAttack
from turnwise.tools.sandbox.core import Backend

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def trap() -> Iterator[Traps]:
    with traps() as found:
        yield found


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("attack", ATTACKS, ids=[attack.name for attack in ATTACKS])
def test_attack(attack: CodeAttack, backend: str, trap: Traps, working: Callable[[str], Backend]) -> None:
    working(backend)
    verdict = play_attack(attack, backend, trap)
    assert verdict.ok, verdict


def test_the_battery_covers_its_rows() -> None:
    rows = {int(row) for attack in ATTACKS for row in attack.rows.split(",")}
    elsewhere = {47, 49, 59, 61, 62, 81}
    assert rows | elsewhere >= set(range(39, 85))
    assert len({attack.name for attack in ATTACKS}) == len(ATTACKS)
