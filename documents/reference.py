"""Write the tables of the reference pages from the code's own tables: ``python -m documents.reference``.

A table stands between two comments of its page. ``tests/unit/test_reference_pages.py`` fails if one is out of date.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

from dbt_zorder.adapter.config import KEYS, ModelSettings
from dbt_zorder.layout.curves import CURVES, ENCODINGS
from dbt_zorder.layout.spec import MOST_COLUMNS
from dbt_zorder.pruning.condition.monotone import FUNCTIONS, Monotone
from dbt_zorder.pruning.condition.types import Family

ROOT = Path(__file__).parents[1]
REFERENCE = ROOT / "docs" / "reference"
MACROS = ROOT / "macros"

CONFIGS: dict[str, tuple[str, str]] = {
    "zorder_by": (
        f"a column, or a list of 1 to {MOST_COLUMNS}",
        (
            "clusters the table by these columns. Name the fields of structs with dots. `null` unsets an "
            "inherited value; "
            "dbt-spark then builds the model"
        ),
    ),
    "zorder_curve": ("{}", "the order of cells. `linear` sorts by one column after another"),
    "zorder_encoding": (
        "{}",
        (
            "how values become numbers: their `rank` among sampled boundaries, or the `bits` of the type, "
            "which ignore the "
            "data. `bits` has no effect with `linear`, so the two together are an error"
        ),
    ),
    "zorder_file_size": (
        "`auto`, a text such as `'64MB'`, or a number of bytes from 1000",
        "target size of a file. `auto` is 128 MB, 256 MB above 100 GB, and 1 GB above 5 TB",
    ),
    "zorder_files": (
        "a positive number",
        (
            "exact number of files (of each partition, if partitioned), in place of a size. Fewer come out if "
            "too few rows "
            "differ"
        ),
    ),
    "zorder_weights": (
        "a list, or numbers by column name",
        (
            "how much filters on each column count: `{'customer_id': 2, 'event_ts': 1}` cuts more often by the "
            "customer. "
            "Only with `zorder_curve: zorder`"
        ),
    ),
    "zorder_bloom": (
        "a column, or a list",
        "columns with a Parquet Bloom filter, sized by the rows of a file. FLOAT and DOUBLE are an error",
    ),
    "zorder_keep_versions": ("a whole number", "number of old versions to keep"),
    "zorder_grace_hours": (
        "hours, at most a million",
        "minimum hours that a replaced version stays, for readers that began with it",
    ),
    "zorder_stats_columns": (
        "a column, or a list",
        "further columns with statistics. The columns of `zorder_by` always have them",
    ),
    "zorder_optimize": (
        "`auto`, `never`, `native`",
        (
            "`auto` rebuilds an incremental table when that is due, `never` does not. `native` lets Delta Lake "
            "or Iceberg "
            "do it with its own command, and is an error on Parquet"
        ),
    ),
    "zorder_in_memory": (
        "a size up to `512MB`, or `never`",
        "memory that dbt's process may use for rows that it lays out itself. `never` leaves the layout to Spark",
    ),
    "zorder_skip": ("`true`, `false`", "`true` builds the model as dbt-spark does"),
}
"""Allowed values and meaning of each config. ``{}`` stands for the names in the code."""

CHOICES = {"zorder_curve": CURVES, "zorder_encoding": ENCODINGS}

KINDS = {
    Family.INTEGRAL: "integers",
    Family.DECIMAL: "decimals",
    Family.BINARY_FLOAT: "floats",
    Family.STRING: "texts",
    Family.DATE: "dates",
    Family.TIMESTAMP: "TIMESTAMP",
    Family.TIMESTAMP_NTZ: "TIMESTAMP_NTZ",
}


def config_rows() -> Iterator[str]:
    """Return the rows of the table of model configs; defaults are those of a model that sets only ``zorder_by``."""
    settings = ModelSettings.from_config("model", {"zorder_by": "a"})
    yield "| key | values | default | meaning |"
    yield "|---|---|---|---|"
    for key in KEYS:
        values, meaning = CONFIGS[key]
        values = values.format(", ".join(f"`{name}`" for name in CHOICES.get(key, ())))
        default = None if key == "zorder_by" else getattr(settings, key.removeprefix("zorder_"), False)
        yield f"| `{key}` | {values} | {_default(key, default)} | {meaning} |"


def _default(key: str, value: object) -> str:
    if value is None or value == ():
        return "none"
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    if key == "zorder_in_memory" and isinstance(value, int):
        return f"`{value >> 20}MB`"
    return f"`{value:g}`" if isinstance(value, float) else f"`{value}`"


def function_rows() -> Iterator[str]:
    """Return the rows of the table of functions that prune; functions that differ only in their form share a row."""
    yield "| functions | of | order | remarks |"
    yield "|---|---|---|---|"
    groups: dict[object, list[Monotone]] = {}
    for rule in FUNCTIONS:
        key = (rule.accepts, rule.reads, rule.falls, rule.signed, rule.local, rule.nulls, rule.period)
        groups.setdefault(key, []).append(rule)
    for rules in groups.values():
        yield _function_row(rules)


def _function_row(rules: list[Monotone]) -> str:
    rule = rules[0]
    forms = ", ".join(f"`{one.form.replace('|', chr(92) + '|')}`" for one in rules)
    kinds = ", ".join(name for kind, name in KINDS.items() if kind in rule.accepts)
    remarks = [f"reads it as {rule.reads.value.upper()}"] if rule.reads and rule.accepts != {rule.reads} else []
    remarks += ["follows the clock of the session's time zone"] * rule.local
    remarks += ["may be NULL"] * rule.nulls
    return f"| {forms} | {kinds} | {_order(rule)} | {'; '.join(remarks)} |"


def _order(rule: Monotone) -> str:
    order = "falls" if rule.falls else "rises; falls if `v` is negative" if rule.signed else "rises"
    return f"{order} within one `{rule.period.format(c='c')}`" if rule.period else order


def operation_rows() -> Iterator[str]:
    """Return the rows of the table of run-operations, from the macros' own signatures and comments."""
    yield "| operation | arguments | what it does |"
    yield "|---|---|---|"
    for path in sorted((MACROS / "operations").glob("*.sql")):
        begin, macro = (
            r"\{#-\s*((?:(?!-#\}).)*?)[.:]\s(?:(?!-#\}).)*-#\}\s*",
            rf"\{{% macro {path.stem}\(([^)]+)\) %\}}",
        )
        found = re.match(begin + macro, path.read_text(encoding="utf-8"), re.DOTALL)
        if found:
            meaning = " ".join(found[1].split())
            yield f"| [`{path.stem}`](#{path.stem}) | `{found[2]}` | {meaning[0].lower()}{meaning[1:]} |"


TABLES: dict[str, tuple[str, Callable[[], Iterator[str]]]] = {
    "configs": ("model-configs.md", config_rows),
    "functions": ("predicates.md", function_rows),
    "operations": ("operations.md", operation_rows),
}
"""Page and rows of each generated table."""


def insert(text: str, name: str, rows: Iterator[str]) -> str:
    """Return a page with the table of that name replaced.

    Raises:
        ValueError: the page has no such table.
    """
    begin, end = f"<!-- table: {name}, written by documents/reference.py -->\n", "<!-- end of the table -->"
    head, found, rest = text.partition(begin)
    _, closed, tail = rest.partition(end)
    if not found or not closed:
        msg = f"The page has no table {name!r} between {begin.strip()!r} and {end!r}."
        raise ValueError(msg)
    return "\n".join([f"{head}{begin}", *rows, "", f"{end}{tail}"])


def main() -> None:
    """Write all tables into their pages."""
    for name, (page, rows) in TABLES.items():
        path = REFERENCE / page
        path.write_text(insert(path.read_text(encoding="utf-8"), name, rows()), encoding="utf-8")


if __name__ == "__main__":
    main()
