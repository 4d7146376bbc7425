"""Batches of microbatch models, as dbt runs them: each by itself, with hooks before the first alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from dbt_common.invocation import get_invocation_id


@dataclass(frozen=True)
class MicroBatch:
    """A batch of a microbatch model.

    Attributes:
        model: its name, in this run of dbt and no other.
        is_first: whether hooks run before it, as they do before no other batch.
    """

    model: str
    is_first: bool


def batch_of(config: Any) -> MicroBatch | None:
    """Return the batch that a model's config is of; None if the model does not run by batches."""
    model: Any = getattr(config, "model", None)
    if getattr(model, "batch", None) is None:
        return None
    return MicroBatch(f"{get_invocation_id()} {model.unique_id}", bool(model.config.pre_hook))
