"""Shoppers without a model, for the fairness table: a request's words taken for a product, and words compared."""

from __future__ import annotations

from turnwise.envs import baselines
from turnwise.envs.rivals import Rivals, of_script

RIVALS = Rivals(
    keyword=of_script(baselines.first),
    scan=of_script(baselines.scan),
    ladder={
        "random": of_script(baselines.random),
        "first": of_script(baselines.first),
        "scan": of_script(baselines.scan),
    },
)
