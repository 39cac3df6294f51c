"""The results of a campaign, method by method and seed by seed, with the runs that are here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import pydantic
from markupsafe import Markup

from turnwise.agents.evaluation.statistics import Interval
from turnwise.errors import TurnwiseError
from turnwise.trainers.view.drawing import forest
from turnwise.trainers.view.places import ViewedPlace


class _Read(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(frozen=True, extra="ignore")


class _Band(_Read):
    low: float | None
    high: float | None

    @pydantic.model_validator(mode="before")
    @classmethod
    def _from_pair(cls, given: object) -> object:
        """Intervals are written as objects, and as pairs where they stand in a difference."""
        return dict(zip(("low", "high"), given, strict=True)) if isinstance(given, list) else given

    @property
    def interval(self) -> Interval:
        return Interval(
            float("-inf") if self.low is None else self.low, float("inf") if self.high is None else self.high
        )


class _Mean(_Read):
    mean: float
    interval: _Band


class _Measure(_Read):
    suite: str
    split: str
    mode: str


class _Standing(_Read):
    label: str
    runs: int
    success: _Mean
    before: _Mean | None = None
    mean_score: float
    turns: float


class _DifferenceRead(_Read):
    difference: float
    interval: _Band


class _Contrast(_Read):
    base: str
    other: str
    difference: _DifferenceRead
    adjusted_p: float


class _MeasureRead(_Read):
    measure: _Measure
    standings: tuple[_Standing, ...]
    contrasts: tuple[_Contrast, ...] = ()


class _ComparisonRead(_Read):
    measures: tuple[_MeasureRead, ...] = ()
    notes: tuple[str, ...] = ()


class _Stage(_Read):
    seeds: tuple[int, ...]
    states: Mapping[str, tuple[str, ...]]
    comparison: _ComparisonRead | None = None
    alone: Mapping[str, str] = {}


class _Choice(_Read):
    method: str
    confirmed: bool
    why: str


class _Setting(_Read):
    choices: tuple[_Choice, ...] = ()
    screen: _Stage | None = None
    confirm: _Stage | None = None


class _Campaign(_Read):
    name: str
    about: str = ""
    settings: Mapping[str, _Setting]


class CampaignCell(NamedTuple):
    """A run of a campaign: its seed, what is said of it, and its page, if it is here."""

    seed: int
    state: str
    run: str  # the id of its place


class CampaignMethod(NamedTuple):
    """A method with its cells, and what its success was where there is nothing to compare it with."""

    name: str
    cells: tuple[CampaignCell, ...]
    alone: str


class CampaignMeasure(NamedTuple):
    """A measure's standings and differences, and a picture of these."""

    name: str
    standings: tuple[_Standing, ...]
    contrasts: tuple[_Contrast, ...]
    picture: Markup


class CampaignStage(NamedTuple):
    """Screening or confirming in one setting."""

    name: str
    seeds: tuple[int, ...]
    methods: tuple[CampaignMethod, ...]
    measures: tuple[CampaignMeasure, ...]
    notes: tuple[str, ...]


class CampaignSetting(NamedTuple):
    """A setting with its stages, and which methods screening chose."""

    name: str
    choices: tuple[_Choice, ...]
    stages: tuple[CampaignStage, ...]


class CampaignShown(NamedTuple):
    """The page of a campaign."""

    place: ViewedPlace
    name: str
    about: str
    settings: tuple[CampaignSetting, ...]


def campaign_shown(place: ViewedPlace, places: Sequence[ViewedPlace] = ()) -> CampaignShown:
    """A campaign's result with links to those of its runs that are among ``places``.

    Raises:
        TurnwiseError: the file holds something else.
    """
    try:
        data = _Campaign.model_validate_json(place.path.read_bytes())
    except (OSError, pydantic.ValidationError) as error:
        said = error.errors()[0]["msg"] if isinstance(error, pydantic.ValidationError) else error
        raise TurnwiseError(
            f"{place.name} holds no result of a campaign: {said}.", "`campaign.py report` writes it."
        ) from None
    runs = {run.path.resolve().parts[-3:]: run.id for run in places if run.kind == "run"}
    settings: list[CampaignSetting] = []
    for name, setting in data.settings.items():
        stages = [
            _stage(stage, (data.name, name), one, runs)
            for stage, one in (("screening", setting.screen), ("confirmation", setting.confirm))
            if one is not None
        ]
        settings.append(CampaignSetting(name, setting.choices, tuple(stages)))
    return CampaignShown(place, data.name, data.about, tuple(settings))


def _stage(
    name: str, at: tuple[str, str], stage: _Stage, runs: Mapping[tuple[str, ...], str]
) -> CampaignStage:
    methods = [
        CampaignMethod(
            method,
            tuple(
                CampaignCell(seed, state or "done", runs.get((*at, f"{method}-{seed}"), ""))
                for seed, state in zip(stage.seeds, states, strict=False)
            ),
            stage.alone.get(method, ""),
        )
        for method, states in stage.states.items()
    ]
    read = stage.comparison.measures if stage.comparison else ()
    return CampaignStage(
        name,
        stage.seeds,
        tuple(methods),
        tuple(_measure(one) for one in read),
        stage.comparison.notes if stage.comparison else (),
    )


def _measure(one: _MeasureRead) -> CampaignMeasure:
    measure = one.measure
    rows = [
        (f"{c.other} – {c.base}", 100 * c.difference.difference, _percent(c.difference.interval.interval))
        for c in one.contrasts
    ]
    return CampaignMeasure(
        f"{measure.suite} · {measure.split} · {measure.mode}",
        one.standings,
        one.contrasts,
        forest(rows, label="Differences in success, in points"),
    )


def _percent(band: Interval) -> Interval:
    return Interval(100 * band.low, 100 * band.high)
