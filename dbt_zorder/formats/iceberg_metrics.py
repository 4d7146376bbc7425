"""What an Iceberg table is told of the files that it gets: size, rows, and the metrics of each column.

Iceberg's own library reads those from the footers. What only its writer knows of floats is added: how many are NaN,
and bounds without them, which a footer does not tell where there are any ("Manifests", ``nan_value_counts``).
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from dbt_zorder.disk import on_disk
from dbt_zorder.errors import BuildError
from dbt_zorder.jvm import class_named, jvm_of
from dbt_zorder.table.leaves import leaves_of

_NOT_KEPT, _COUNTS = "none", "counts"


@dataclass(frozen=True)
class FileMetrics:
    """What tells a table of files.

    Attributes:
        spark: the session.
        table: of Iceberg's library.
    """

    spark: SparkSession
    table: Any

    def data_files(self, paths: Sequence[str], rows: int) -> Iterator[Any]:
        """Give each file as the table takes it.

        Args:
            paths: of them, as Iceberg spells them.
            rows: that they have together.

        Raises:
            BuildError: they have more or fewer.
        """
        found = 0
        for path in paths:
            place = on_disk(self.spark, path)
            assert place is not None
            footer = pq.read_metadata(place.path)
            found += footer.num_rows
            yield self._data_file(path, place.path, footer)
        if found != rows:
            msg = f"{rows} rows were laid out for {self.table.name()}, and {found} are in its files; it is as it was."
            raise BuildError(msg)

    def _data_file(self, path: str, here: str, footer: pq.FileMetaData) -> Any:
        library = self._library
        file = library.io.newInputFile(path)
        metrics = self._with_floats(library.metrics.fileMetrics(file, library.config), here, footer)
        made = library.files.builder(library.spec).withInputFile(file).withMetrics(metrics)
        if footer.num_row_groups > 1:
            made = made.withSplitOffsets(library.longs(_offsets(footer)))
        return made.build()

    def _with_floats(self, told: Any, here: str, footer: pq.FileMetaData) -> Any:
        """Return metrics with what there is to say of floats."""
        nans: dict[int, int] = {}
        nulls: dict[int, int] = {}
        bounds: dict[int, tuple[bytes, bytes]] = {}
        for name, (number, mode) in self._floats.items():
            if _is_bounded(footer, name):
                nans[number] = 0
                continue
            leaf = dict(leaves_of(pq.ParquetFile(here).read([name])))[name]
            values = leaf.drop_null()
            isnan = pc.is_nan(values)
            nans[number], nulls[number] = int(pc.sum(isnan).as_py() or 0), leaf.null_count
            least, most = pc.min_max(values.filter(pc.invert(isnan))).values()
            if mode != _COUNTS and least.is_valid:
                bounds[number] = _packed(least, -0.0), _packed(most, 0.0)
        if not nans:
            return told
        library, (lower, upper) = self._library, (told.lowerBounds(), told.upperBounds())
        counts, null_counts = told.valueCounts(), told.nullValueCounts()
        if nulls:  # of columns of which the footer tells nothing
            counts, null_counts = library.copy(counts), library.copy(null_counts)
            counts.putAll(library.longs(dict.fromkeys(nulls, footer.num_rows)))
            null_counts.putAll(library.longs(nulls))
        if bounds:
            lower, upper = library.copy(lower), library.copy(upper)
        for number, (least, most) in bounds.items():
            lower.put(number, library.wrap(least))
            upper.put(number, library.wrap(most))
        sizes, found = told.columnSizes(), library.longs(nans)
        return library.make(told.recordCount(), sizes, counts, null_counts, found, lower, upper)

    @cached_property
    def _floats(self) -> Mapping[str, tuple[int, str]]:
        """Number and mode of columns of floats by their names, those in structs too: of arrays there are no metrics."""
        kept, config = json.loads(str(self._library.to_json(self.table.schema()))), self._library.config
        found = {name: (number, str(config.columnMode(name))) for name, number in _floats(kept, "")}
        return {name: told for name, told in found.items() if told[1] != _NOT_KEPT}

    @cached_property
    def _library(self) -> _Library:
        return _Library(jvm_of(self.spark), self.table)


class _Library:
    """What of Iceberg's library, and of Java's own, is called for each file: to look for it takes a call each time."""

    def __init__(self, jvm: Any, table: Any) -> None:
        self.io, self.spec = table.io(), table.spec()
        self.config = class_named(jvm, "org.apache.iceberg.MetricsConfig").forTable(table)
        self.metrics = class_named(jvm, "org.apache.iceberg.parquet.ParquetUtil")
        self.files = class_named(jvm, "org.apache.iceberg.DataFiles")
        self.make = class_named(jvm, "org.apache.iceberg.Metrics")
        self.to_json = class_named(jvm, "org.apache.iceberg.SchemaParser").toJson
        self.copy = class_named(jvm, "java.util.HashMap")
        self.wrap = class_named(jvm, "java.nio.ByteBuffer").wrap
        self._mapper = class_named(jvm, "com.fasterxml.jackson.databind.ObjectMapper")()
        named, types = class_named(jvm, "java.lang.Class").forName, self._mapper.getTypeFactory()
        long = named("java.lang.Long")
        self._map = types.constructMapType(named("java.util.HashMap"), named("java.lang.Integer"), long)
        self._list = types.constructCollectionType(named("java.util.ArrayList"), long)

    def longs(self, values: Sequence[int] | Mapping[int, int]) -> Any:
        """Return whole numbers as Java's longs, which Py4J gives to a collection as shorter ones if they are small."""
        return self._mapper.readValue(json.dumps(values), self._map if isinstance(values, Mapping) else self._list)


def _offsets(footer: pq.FileMetaData) -> list[int]:
    """Return where each row group begins."""
    firsts = (footer.row_group(number).column(0) for number in range(footer.num_row_groups))
    return [one.dictionary_page_offset or one.data_page_offset for one in firsts]


def _floats(kept: Mapping[str, Any], above: str) -> Iterator[tuple[str, int]]:
    for field in kept["fields"]:
        kind, name = field["type"], f"{above}{field['name']}"
        if kind in ("float", "double"):
            yield name, field["id"]
        elif isinstance(kind, dict) and kind["type"] == "struct":
            yield from _floats(kind, f"{name}.")


def _is_bounded(footer: pq.FileMetaData, name: str) -> bool:
    """Tell whether all row groups of a file have bounds of a column, as our writer gives them where there is no NaN."""
    for number in range(footer.num_row_groups):
        group = footer.row_group(number)
        columns = (group.column(place) for place in range(group.num_columns))
        told = next(column.statistics for column in columns if column.path_in_schema == name)
        if told is None or not told.has_min_max:
            return False
    return True


def _packed(bound: pa.Scalar, zero: float) -> bytes:
    """Return a bound as Iceberg keeps it ("Appendix D"); of the two zeros, which are one to SQL, the outer one."""
    value = bound.as_py() or zero
    return struct.pack("<f" if pa.types.is_float32(bound.type) else "<d", value)
