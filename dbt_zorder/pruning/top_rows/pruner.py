"""Exclude the files of a scan that hold none of the first rows that a limit keeps."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from functools import cached_property
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql import functions as f

from dbt_zorder.pruning.files.column_bounds import ColumnBounds, FileBounds, FileRows, read_bounds, read_rows
from dbt_zorder.pruning.files.stats_source import Stats
from dbt_zorder.pruning.joins.keys import compared, is_compared, is_exact
from dbt_zorder.pruning.joins.pruner import APART_AT_LEAST
from dbt_zorder.pruning.plans.exclusion import PlanExclusion
from dbt_zorder.pruning.plans.pins import WHOLE_TABLE_FILES_AT_MOST, listed_files, pin_leaves
from dbt_zorder.pruning.plans.tree import METADATA, PlanTrees, node_at, with_node
from dbt_zorder.pruning.predicate.tree import Column
from dbt_zorder.pruning.top_rows.limits import Limit, find_limits, first_attributes
from dbt_zorder.pruning.top_rows.ranking import Ranking, Worst, enough
from dbt_zorder.spark.conf import IGNORED_FILES, is_on
from dbt_zorder.spark.jvm import class_named, frame_of_plan, jvm_of
from dbt_zorder.spark.messages import first_line

_LOG = logging.getLogger("dbt_zorder")

FILES_AT_LEAST = 8
BYTES_AT_LEAST = 16 << 20
"""Minimum number and size of the files left of a filtered table, for its best files to be read first."""

ROWS_AT_MOST = 10_000
"""Maximum number of rows of a limit whose keys are read from the best files."""

ROWS_TIMES = 4
"""Rows of the best files that are read first, as a multiple of the limit; a filter drops rows."""

_TURNS = 3
"""Maximum number of times that the best files are read; each time they are four times as many."""

_SHARE_AT_MOST = 0.25
"""Maximum size of the best files as a share of all that are left."""

_FILTER = "org.apache.spark.sql.catalyst.plans.logical.Filter"


class TopPruner:
    """Pruning of one statement by its limits."""

    def __init__(self, spark: SparkSession, plans: PlanTrees) -> None:
        self._spark = spark
        self._plans = plans

    def exclude(
        self, relation: Any, tests: Sequence[Any], stats: Stats, columns: Mapping[str, Column], out: Collection[str]
    ) -> PlanExclusion:
        """Return the files of a scan that hold none of the rows which the limit above it keeps. Never raises.

        Args:
            relation: leaf of the plan.
            tests: tests directly above it, which its rows must pass.
            stats: the table's statistics.
            columns: columns whose statistics may be used, by name.
            out: paths of files that are excluded for another reason.
        """
        try:
            asked = self._limits.get(int(relation.output().head().exprId().id()))
            if asked is None:
                return PlanExclusion()
            found = self._excluded(*asked, relation, tests, stats, columns, out)
        except Exception as exc:  # any doubt is a full read
            _LOG.debug("limits exclude no file: %s", first_line(exc))
            return PlanExclusion()
        return PlanExclusion(reason=f"{asked[0]}: {found}") if isinstance(found, str) else found

    @cached_property
    def _limits(self) -> dict[int, tuple[Limit, int]]:
        """Return the limit of each scan with the number of its plan, by the scan's first attribute."""
        times = Counter(first for tree in self._plans.trees for first in first_attributes(tree))
        return {
            first: (limit, number)
            for number, tree in enumerate(self._plans.trees)
            for first, limit in find_limits(tree).items()
            if times[first] == 1  # two scans of one name leave open which one is meant
        }

    def _excluded(
        self,
        limit: Limit,
        root: int,
        relation: Any,
        tests: Sequence[Any],
        stats: Stats,
        columns: Mapping[str, Column],
        out: Collection[str],
    ) -> PlanExclusion | str:
        """Return the files that a limit excludes, or why it excludes none."""
        if any(is_on(self._spark, key) for key in IGNORED_FILES):
            return "the session ignores files that cannot be read"
        listed = listed_files(self._spark, relation)
        if limit.tests != len(tests):
            return "its tests are mixed with those of another scan"
        if listed is None:
            return "the table's files are listed when it is read"

        def is_there(file: FileRows) -> bool:
            return listed.get(file.path) == file.size and file.path not in out

        plan = node_at(self._plans.roots[root], limit.sorted_rows) if limit.is_filtered else relation
        pinned = pin_leaves(plan, WHOLE_TABLE_FILES_AT_MOST)
        if pinned is None:
            return "files of a table that its rows depend on are listed when it is read"
        if not limit.key:
            files = [one for one in read_rows(stats) if is_there(one)]
            chosen = {one.path for one in enough(files, limit.rows) or files}
            left_out = {one.path: one for one in files if one.path not in chosen}
        else:
            if limit.key not in columns or not is_compared(columns[limit.key].data_type):
                return f"no bounds of {limit.key} order its rows"
            bounds = [one for one in read_bounds(stats, columns[limit.key]).files if is_there(one)]
            ranking = Ranking(limit.falls, limit.nulls_first)
            worst = (
                self._worst(limit, plan, tests, ranking, bounds)
                if limit.is_filtered
                else ranking.worst(bounds, limit.rows)
            )
            if isinstance(worst, str):
                return worst
            left_out = {} if worst is None else ranking.without(bounds, worst)
        return PlanExclusion(left_out, [str(limit)], dict(pinned[0])) if left_out else "every file may hold one"

    def _worst(
        self, limit: Limit, plan: Any, tests: Sequence[Any], ranking: Ranking, files: Sequence[FileBounds]
    ) -> Worst | str:
        """Return the key of the last row that a limit would keep of the best files, or why it is not read.

        Args:
            limit: limit over a filtered scan.
            plan: plan whose rows are sorted.
            tests: tests directly above the scan in it.
            ranking: their order.
            files: files with bounds.
        """
        size = sum(one.size for one in files)
        if len(files) < FILES_AT_LEAST or size < BYTES_AT_LEAST:
            return "the table is too small for its best files to be read first"
        if limit.rows > ROWS_AT_MOST:
            return f"it keeps more than {ROWS_AT_MOST:,} rows"
        if ColumnBounds(files).share_apart < APART_AT_LEAST:
            return f"nearly every file holds values of {limit.key} in the same range"
        ordered = ranking.best_first(files)
        count = _first(ordered, ROWS_TIMES * limit.rows)
        for _ in range(_TURNS):
            if sum(one.size for one in ordered[:count]) > _SHARE_AT_MOST * size:
                break
            found = self._last_key(limit, plan, tests, [one.path for one in ordered[:count]])
            if found is not None:
                return found
            count *= 4
        return "the best files hold too few rows that pass the filter"

    def _last_key(self, limit: Limit, plan: Any, tests: Sequence[Any], paths: Sequence[str]) -> Worst | None:
        """Return the key of the last row that a limit would keep of these files; None if they hold too few rows."""
        spark = self._spark
        above = limit.scan[len(limit.sorted_rows) : -1]
        scan = frame_of_plan(spark, _without_metadata(node_at(plan, above).child()))
        best: Any = scan.where(f.col(METADATA).getField("file_path").isin(*paths))
        passed = best._jdf.queryExecution().analyzed()
        for test in tests:
            passed = class_named(jvm_of(spark), _FILTER)(test, passed)
        rows = frame_of_plan(spark, with_node(spark, plan, above, passed))
        rows = rows.toDF(*(f"c{place}" for place in range(len(rows.columns))))
        key = f.col(f"c{limit.place}")
        if limit.falls:
            order = key.desc_nulls_first() if limit.nulls_first else key.desc_nulls_last()
        else:
            order = key.asc_nulls_first() if limit.nulls_first else key.asc_nulls_last()
        kind = rows.schema[limit.place].dataType
        first = rows.select(key).orderBy(order).limit(limit.rows).select(compared(key, kind)).collect()
        if len(first) < limit.rows:
            return None
        value = first[-1][0]
        return Worst(value) if is_exact(value) and (value is not None or limit.nulls_first) else None


def _without_metadata(relation: Any) -> Any:
    """Return a relation without the metadata of its mark: the optimizer left only the size of a file in it."""
    fields = [relation.productElement(number) for number in range(relation.productArity())]
    if relation.output().last().name() == METADATA:
        fields[1] = relation.output().init()
    return relation.copy(*fields)


def _first(files: Sequence[FileBounds], rows: int) -> int:
    """Return how many of the first files have a number of rows together."""
    count = 0
    for one in files:
        if rows <= 0:
            break
        rows -= one.rows
        count += 1
    return count
