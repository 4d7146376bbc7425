"""Describe each new file of an Iceberg table: its size, its rows, and the metrics of each column.

Iceberg's own library reads those from the footers. Two facts about floats that only Iceberg's writer has are added:
the count of NaN, and bounds without NaN. A footer of a column with NaN has neither ("Manifests",
``nan_value_counts``).
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from dbt_zorder.spark.jvm import class_named, jvm_of
from dbt_zorder.tables.lakehouse.footer_bounds import float_values, is_bounded, leaf_numbers, statistics_of
from dbt_zorder.tables.lakehouse.written_file import WrittenFile

_NOT_KEPT, _COUNTS = "none", "counts"


@dataclass(frozen=True)
class FileMetrics:
    """A description of files for a table.

    Attributes:
        spark: the session.
        table: the table of Iceberg's library.
    """

    spark: SparkSession
    table: Any

    def data_file(self, written: WrittenFile) -> Any:
        """Return a file as Iceberg's ``DataFile``."""
        library, footer = self._library, written.footer
        file = library.io.newInputFile(written.path)
        metrics = self._with_float_facts(library.metrics.fileMetrics(file, library.config), written.place, footer)
        made = library.files.builder(library.spec).withInputFile(file).withMetrics(metrics)
        if footer.num_row_groups > 1:
            made = made.withSplitOffsets(library.longs(_offsets(footer)))
        if written.partition:
            made = made.withPartitionValues(library.texts(written.partition))
        return made.build()

    def _with_float_facts(self, metrics: Any, here: str, footer: pq.FileMetaData) -> Any:
        """Add the facts about floats to metrics, and remove bounds that do not cover all rows.

        Arrow omits a bound of more than 4,096 bytes from a row group. Iceberg then uses the other groups' bounds for
        the whole file.
        """
        nans: dict[int, int] = {}
        nulls: dict[int, int] = {}
        bounds: dict[int, tuple[bytes, bytes] | None] = {}
        places = leaf_numbers(footer)
        for name, (number, mode, is_float) in self._leaves.items():
            here_in = places.get(name, [])
            if is_bounded(statistics_of(footer, here_in)):
                if is_float:
                    nans[number] = 0
                continue
            bounds[number] = None
            if not is_float or len(here_in) != 1:
                continue
            found = float_values(here, name)
            nans[number], nulls[number] = found.nans, found.nulls
            if mode != _COUNTS and found.least is not None:
                bounds[number] = _packed(found.least, -0.0), _packed(found.most, 0.0)
        library, (lower, upper) = self._library, (metrics.lowerBounds(), metrics.upperBounds())
        counts, null_counts = metrics.valueCounts(), metrics.nullValueCounts()
        if not nans and not bounds:
            return metrics
        if nulls:  # columns without statistics in the footer
            counts, null_counts = library.copy(counts), library.copy(null_counts)
            counts.putAll(library.longs(dict.fromkeys(nulls, footer.num_rows)))
            null_counts.putAll(library.longs(nulls))
        if bounds:
            lower, upper = library.copy(lower), library.copy(upper)
        for number, both in bounds.items():
            for side, bound in zip((lower, upper), both or (None, None), strict=True):
                side.remove(number) if bound is None else side.put(number, library.wrap(bound))
        sizes, found_nans = metrics.columnSizes(), library.longs(nans)
        return library.make(metrics.recordCount(), sizes, counts, null_counts, found_nans, lower, upper)

    @cached_property
    def _leaves(self) -> Mapping[str, tuple[int, str, bool]]:
        """Id and mode of each leaf by name, and whether it is a float; arrays have no metrics."""
        kept, config = json.loads(str(self._library.to_json(self.table.schema()))), self._library.config
        found = {name: (number, str(config.columnMode(name)), kind) for name, number, kind in _leaves(kept, "")}
        return {name: leaf for name, leaf in found.items() if leaf[1] != _NOT_KEPT}

    @cached_property
    def _library(self) -> _Library:
        return _Library(jvm_of(self.spark), self.table)


class _Library:
    """Classes and methods of Iceberg's library and of Java's, looked up once: each lookup costs a call."""

    def __init__(self, jvm: Any, table: Any) -> None:
        self.io, self.spec = table.io(), table.spec()
        self.config = class_named(jvm, "org.apache.iceberg.MetricsConfig").forTable(table)
        self.metrics = class_named(jvm, "org.apache.iceberg.parquet.ParquetUtil")
        self.files = class_named(jvm, "org.apache.iceberg.DataFiles")
        self.make = class_named(jvm, "org.apache.iceberg.Metrics")
        self.to_json = class_named(jvm, "org.apache.iceberg.SchemaParser").toJson
        self.copy = class_named(jvm, "java.util.HashMap")
        self.wrap = class_named(jvm, "java.nio.ByteBuffer").wrap
        self._list_of = class_named(jvm, "java.util.ArrayList")
        self._mapper = class_named(jvm, "com.fasterxml.jackson.databind.ObjectMapper")()
        named, types = class_named(jvm, "java.lang.Class").forName, self._mapper.getTypeFactory()
        long = named("java.lang.Long")
        self._map = types.constructMapType(named("java.util.HashMap"), named("java.lang.Integer"), long)
        self._list = types.constructCollectionType(named("java.util.ArrayList"), long)

    def texts(self, values: Sequence[str | None]) -> Any:
        """Return texts as a Java list."""
        found = self._list_of()
        for value in values:
            found.add(value)
        return found

    def longs(self, values: Sequence[int] | Mapping[int, int]) -> Any:
        """Return integers as Java longs; Py4J passes small ones as Java integers."""
        return self._mapper.readValue(json.dumps(values), self._map if isinstance(values, Mapping) else self._list)


def _offsets(footer: pq.FileMetaData) -> list[int]:
    """Return the offset of each row group."""
    firsts = (footer.row_group(number).column(0) for number in range(footer.num_row_groups))
    return [one.dictionary_page_offset or one.data_page_offset for one in firsts]


def _leaves(kept: Mapping[str, Any], above: str) -> Iterator[tuple[str, int, bool]]:
    for field in kept["fields"]:
        kind, name = field["type"], f"{above}{field['name']}"
        if isinstance(kind, str):
            yield name, field["id"], kind in ("float", "double")
        elif kind["type"] == "struct":
            yield from _leaves(kind, f"{name}.")


def _packed(bound: pa.Scalar, zero: float) -> bytes:
    """Return a bound as Iceberg stores it ("Appendix D").

    The two zeros are equal in SQL, so use the outer one.
    """
    return struct.pack("<f" if pa.types.is_float32(bound.type) else "<d", bound.as_py() or zero)
