"""The semantic model: what the GPU will do, as far as the source tells. Rules ask it questions."""

from __future__ import annotations

from gpulint.model.analysis import Analysis, analyse, reveal
from gpulint.model.base import confidence_of
from gpulint.model.model import Model
from gpulint.model.sites import Phase, Site, SiteKind
from gpulint.model.steps import Step
from gpulint.model.values import Device, Graph, Kind, Pin, Value

__all__ = [
    "Analysis",
    "Device",
    "Graph",
    "Kind",
    "Model",
    "Phase",
    "Pin",
    "Site",
    "SiteKind",
    "Step",
    "Value",
    "analyse",
    "confidence_of",
    "reveal",
]
