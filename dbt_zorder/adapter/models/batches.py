"""Batches of microbatch models. dbt runs each batch by itself, and runs the pre-hooks before the first one only."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from dbt_common.invocation import get_invocation_id


@dataclass(frozen=True)
class MicroBatch:
    """One batch of a microbatch model.

    Attributes:
        model: name of the model, unique to this dbt invocation.
        is_first: whether pre-hooks run before the batch, which is true for the first batch only.
    """

    model: str
    is_first: bool


def batch_of(config: Any) -> MicroBatch | None:
    """Return the batch that a model's config belongs to, or None if the model has no batches."""
    model: Any = getattr(config, "model", None)
    if getattr(model, "batch", None) is None:
        return None
    return MicroBatch(f"{get_invocation_id()} {model.unique_id}", bool(model.config.pre_hook))
