"""Extends a layout for Spark: the task that writes each file, and a grid that orders rows inside files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np
import numpy.typing as npt

from dbt_zorder.curve.grid import Grid
from dbt_zorder.layout.keys import Key, KeyValue
from dbt_zorder.layout.layout import Layout
from dbt_zorder.layout.sample import Sample


@dataclass(frozen=True)
class OrderGrid:
    """The order of rows inside every file by a few boundaries, see ``Grid``.

    Attributes:
        boundaries: ascending keys, one list per column.
        codes: codes of the intervals, one more than boundaries, one list per column.
    """

    boundaries: Sequence[Sequence[KeyValue]]
    codes: Sequence[Sequence[int]]

    @classmethod
    def of(cls, grid: Grid, sample: Sample, keys: Sequence[Key]) -> OrderGrid:
        """Convert the ranks of a grid to the shortest values that split rows in the same way."""
        each = enumerate(zip(keys, grid.cuts, strict=True))
        return cls([[sample.cut_value(n, cut, key.carrier) for cut in cuts] for n, (key, cuts) in each], grid.codes)


@dataclass(frozen=True)
class SparkLayout(Layout):
    """A layout that Spark places rows by.

    Attributes:
        task_of_file: shape (files,): Spark partition that writes each file, if one writes several; None if each file
            has a partition of its own.
        grid: order of rows inside files, in place of the levels below the file; None if these levels order rows.
    """

    task_of_file: npt.NDArray[np.int32] | None = None
    grid: OrderGrid | None = None

    @property
    def tasks(self) -> int:
        """Return the number of Spark partitions."""
        return self.files if self.task_of_file is None else int(self.task_of_file[-1]) + 1

    @classmethod
    def beside(
        cls, layout: Layout, task_of_file: npt.NDArray[np.int32] | None = None, grid: OrderGrid | None = None
    ) -> SparkLayout:
        """Return a layout extended for Spark; return a ``SparkLayout`` unchanged."""
        if isinstance(layout, SparkLayout):
            return layout
        return cls(
            **{one.name: getattr(layout, one.name) for one in fields(layout)}, task_of_file=task_of_file, grid=grid
        )
