"""The base of the configuration's sections."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Section(BaseModel):
    """The base of every section. Frozen; unknown keys are errors."""

    model_config = ConfigDict(extra="forbid", frozen=True)
