"""Build the filter on ``_metadata`` by which Spark skips files before it opens them.

In every form, the filter excludes exactly the given pairs of path and size. A file without statistics is read. So is a
file that was replaced under its old name by one of another size. A short list names each file. Long lists usually have
names that Spark numbered, ``part-00012-<id>-c000.snappy.parquet``. For those, the filter contains the rest of the path
once, and the sizes as one list by number (measured in docs/decisions/003-pruning-exclusion-form.md).
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from dbt_zorder.spark.sql import quote_string

KEY = "concat(_metadata.file_path, '|', _metadata.file_size)"
"""A file's path and size as one string; sizes contain no ``|``."""

LIST_UP_TO = 1_000
"""Maximum number of files that are listed one by one; beyond it, numbered names are packed."""

LIST_AT_MOST = 20_000
"""Maximum number of files outside packs that are listed one by one; any more are read."""

SHARE_AT_LEAST = 0.1
"""Minimum share of the rows that must be skipped, because the filter costs time for each row that is kept."""

PACKS_AT_MOST = 16
"""Maximum number of packs; each costs two string comparisons for every file and row."""

_NUMBERED = re.compile(r"(.*/part-)(\d{5,9})(-[^/]+)", re.DOTALL)
_NOT_EXCLUDED = "-1"


@dataclass(frozen=True)
class Exclusion:
    """A filter and the files that it excludes.

    Attributes:
        sql: SQL that is TRUE for every other file; None if no file is excluded.
        files: path and size (bytes) of each excluded file.
    """

    sql: str | None
    files: Sequence[tuple[str, int]] = ()


def worthwhile(rows: int, kept_rows: int) -> bool:
    """Return whether skipping files saves more than the filter costs on the rows that are kept."""
    return rows <= 0 or (rows - kept_rows) >= SHARE_AT_LEAST * rows


def exclude(excluded: Sequence[tuple[str, int]], kept: Sequence[str] = ()) -> Exclusion:
    """Return the filter that excludes the files with these paths and sizes (bytes).

    Args:
        excluded: path and size of the files to exclude.
        kept: paths of files that are read in any case; their rows skip the longer tests.
    """
    if not excluded:
        return Exclusion(None)
    if len(excluded) <= LIST_UP_TO:
        return Exclusion(f"NOT coalesce({_listed(excluded)}, false)", excluded)
    packs, rest = _packs(excluded)
    rest = sorted(rest, key=lambda file: -file[1])[:LIST_AT_MOST]  # drop the smallest files
    tests = [_packed(*key, sizes) for key, sizes in packs] + ([_listed(rest)] if rest else [])
    files = [(_named(*key, number), size) for key, sizes in packs for number, size in sizes.items()] + rest
    sql = f"NOT coalesce({' OR '.join(f'({test})' for test in tests)}, false)"
    if kept:
        sql = f"(_metadata.file_path IN ({', '.join(map(quote_string, kept))}) OR {sql})"
    return Exclusion(sql, files)


def _listed(files: Sequence[tuple[str, int]]) -> str:
    """Return SQL that is TRUE for exactly these files.

    Spark evaluates it for every row that is kept. Few files have exactly the size of another one, so one comparison of
    a number rejects nearly all of these rows.
    """
    keys = ", ".join(quote_string(f"{path}|{size}") for path, size in files)
    sizes = ", ".join(f"{size}L" for size in dict.fromkeys(size for _, size in files))
    return f"(_metadata.file_size IN ({sizes}) AND {KEY} IN ({keys}))"


_Key = tuple[str, str, int]


def _packs(
    excluded: Sequence[tuple[str, int]],
) -> tuple[list[tuple[_Key, dict[int, int]]], list[tuple[str, int]]]:
    """Return sizes by file number, for names that differ only in their number, and the remaining files."""
    groups: dict[_Key, dict[int, int]] = defaultdict(dict)
    rest: list[tuple[str, int]] = []
    for path, size in excluded:
        match = _NUMBERED.fullmatch(path)
        if match is None:
            rest.append((path, size))
        else:
            groups[match[1], match[3], len(match[2])][int(match[2])] = size
    # A pack is as long as its highest number. It pays off if that is not far above the number of its files.
    dense = [(key, sizes) for key, sizes in groups.items() if len(sizes) > 100 and max(sizes) < 20 * len(sizes)]
    packs = sorted(dense, key=lambda item: -len(item[1]))[:PACKS_AT_MOST]
    chosen = {key for key, _ in packs}
    for (prefix, suffix, digits), sizes in groups.items():
        if (prefix, suffix, digits) not in chosen:
            rest += [(_named(prefix, suffix, digits, number), size) for number, size in sizes.items()]
    return packs, rest


def _named(prefix: str, suffix: str, digits: int, number: int) -> str:
    return f"{prefix}{number:0{digits}d}{suffix}"


def _packed(prefix: str, suffix: str, digits: int, sizes: dict[int, int]) -> str:
    """Return SQL that is TRUE for ``prefix + number + suffix`` with exactly that number's size.

    The number must be formatted as Spark formats it, so that paths and numbers correspond one to one. Sizes are written
    as differences from the smallest size. The optimizer evaluates ``split`` and ``cast`` once.
    """
    path = "_metadata.file_path"
    least = min(sizes.values())
    by_number = ",".join(
        str(sizes[number] - least) if number in sizes else _NOT_EXCLUDED for number in range(max(sizes) + 1)
    )
    shown = f"substring({path}, {len(prefix) + 1}, {digits})"
    number = f"try_cast({shown} AS INT)"
    table = f"cast(split('{by_number}', ',') AS array<bigint>)"
    return (
        f"startswith({path}, {quote_string(prefix)}) AND endswith({path}, {quote_string(suffix)})"
        f" AND length({path}) = {len(prefix) + digits + len(suffix)}"
        f" AND lpad(cast({number} AS string), {digits}, '0') = {shown}"
        f" AND _metadata.file_size >= {least}L AND get({table}, {number}) = _metadata.file_size - {least}L"
    )
