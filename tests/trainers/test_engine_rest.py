"""The engine's memory is the learner's while it works."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

torch = pytest.importorskip("torch")

from turnwise.agents.engines.torch import TorchEngine
from turnwise.trainers.learn.learner import Learner
from turnwise.trainers.run.loop import train


def test_the_engine_is_at_rest_while_the_learner_works_and_gets_weights_before_it_samples(
    tmp_path: Path, letters: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    happened: list[str] = []
    monkeypatch.setattr(TorchEngine, "sleep", lambda self: happened.append("sleep"), raising=False)
    for kind, name in ((TorchEngine, "load_weights"), (TorchEngine, "generate"), (Learner, "update")):
        method = getattr(kind, name)

        def noted(self: Any, *given: Any, _name: str = name, _method: Any = method, **named: Any) -> Any:
            if happened[-1:] != [_name]:
                happened.append(_name)
            return _method(self, *given, **named)

        monkeypatch.setattr(kind, name, noted)
    letters |= {"updates": 2, "evaluate": {"every": 2, "dev": 2, "test": 2}}
    (tmp_path / "letters.yaml").write_text(yaml.safe_dump(letters))
    train(tmp_path / "letters.yaml", out=tmp_path / "run", preflight=False, log=lambda line: None)
    rl = happened[happened.index("sleep") :]
    assert rl.count("sleep") == 2
    for place in (place for place, name in enumerate(rl) if name == "sleep"):
        assert rl[place + 1 : place + 3] == ["update", "load_weights"], "nothing is sampled in between"
