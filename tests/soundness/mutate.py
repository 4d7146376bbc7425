"""T4: applies mutants one by one; the exhaustive and the random tests must notice each.

python tests/soundness/mutate.py            all of them
python tests/soundness/mutate.py 5 17 40    some, by number
"""

# ruff: noqa: E501, T201
from __future__ import annotations

import importlib
import logging
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.soundness.mutants import MUTANTS

ORDER = [
    "condition.types",
    "condition.like",
    "condition.letter_case",
    "condition.operand",
    "condition.condition",
    "condition.times",
    "condition.constants",
    "condition.cases",
    "condition.monotone",
    "condition.local_time",
    "condition.bounds",
    "condition.atoms",
    "condition.translate",
    "files.evaluate",
    "files.exclusion",
    "plan",
    "top_rows.ranking",
    "plain_sql.metadata_answers",
]
"""Modules in the order of their imports: those behind a changed one are loaded again."""

SHARP = [
    "CAST(f64 AS string) = '-0.0'", "CAST(f64 AS string) = '0.0'", "CAST(f32 AS string) = '-0.0'",
    r"s LIKE 'pre\_%'", r"vc LIKE 'pre\_1%'", "s LIKE 'pre_%'", "s NOT LIKE 'pre_1%'", "s NOT LIKE 'a_%'", "s LIKE 'a%'",
    "vc NOT LIKE 'pre%_0'", "dec38 > 1.0000000000000000000001", "dec38 < 100.0000000000000000000001", "dec38 <> 1.0000000000000000000001",
    "s > 5", "s < 6", "vc = 10", "st.t <> 5", "s >= 9", "CAST(i32 AS tinyint) > 0", "CAST(i64 AS int) < 0", "CAST(i16 AS tinyint) = 5",
    "CAST(i64 AS int) = 0", "CAST(i64 AS int) = 1", "CAST(i32 AS smallint) = 0", "CAST(i32 AS tinyint) = 1",
    "CAST(dec38 AS decimal(20,0)) > 0", "CAST(dec38 AS decimal(20,2)) IS NULL", "CAST(dec18 AS decimal(7,4)) IS NULL",
    "CAST(dec38 AS decimal(20,10)) < 100", "CAST(dec38 AS decimal(20,10)) > 0",
    "lc = 'a'", "lc = 'A'", "lc = 'B'", "lc < 'b'", "lc IN ('X')", "lc >= 'Y'", "lc <= 'C'", "lc > 'b'", "lc <> 'b'",
    "(n1, n2) IN ((CAST(NULL AS INT), 1L), (2, CAST(NULL AS BIGINT)))", "(n1, n2) IN ((1, CAST(NULL AS BIGINT)))",
    "i32 > n1", "n1 >= i32", "n1 > st.i", "s > vc", "vc < s", "vc >= st.t", "st.t = s", "i32 = st.i", "n1 <> i32",
    "i8 <=> 'x'", "NOT (i8 <=> 'x')", "NOT (i16 <=> 'zz')", "i32 <=> 'abc' OR ok",
]  # fmt: skip

_TIMES = [
    f"{day} {clock}"
    for day in ("2010-11-06", "2010-11-07")
    for clock in ("23:01:00", "23:30:00", "00:00:30", "00:30:00", "23:02:00")
]
SHARP += [
    f"ntz {op} TIMESTAMP '{t}'"
    for op in ("<", ">", "=")
    for t in (*_TIMES, "2024-11-03 01:30:00", "2024-11-03 00:30:00", "2010-03-14 01:20:00")
]
SHARP += [f"CAST(ts AS timestamp_ntz) {op} TIMESTAMP_NTZ '{t}'" for op in ("<", ">") for t in _TIMES]
SHARP += [f"ts IN ('{t}', '1999-01-01')" for t in (*_TIMES, "2010-11-06 23:33:20", "2010-11-06 23:00:59")]
SHARP += [f"date(ts) {op} DATE '{day}'" for op in ("=", "<", ">", "<=", ">=") for day in ("2010-11-06", "2010-11-07")]
_SPANS = (
    "2010-11-06 23:30:00",
    "2010-11-07 00:30:00",
    "2010-11-07 01:30:00",
    "2010-03-14 00:30:00",
    "2010-03-14 01:30:00",
)
OF_FUNCTIONS: list[str] = []
"""Predicates on functions of a column, each near a bound that one of the mutants moves."""

OF_FUNCTIONS += [
    f"{made} {op} TIMESTAMP '{t}'"
    for made in ("date_trunc('hour', ts)", "date_trunc('minute', ntz)", "ts + INTERVAL '1' DAY", "ntz - INTERVAL 1 DAY")
    for op in ("<", ">")
    for t in _SPANS
]
OF_FUNCTIONS += [
    f"date_format(ts, 'yyyy-MM-dd HH:mm') {op} '{t[:16]}'" for op in ("<", ">", "=") for t in (*_TIMES, *_SPANS)
]
OF_FUNCTIONS += [
    f"CAST({c} AS STRING) {op} '{t}'"
    for c in ("ts", "ntz")
    for op in ("<", ">")
    for t in ("0001-01-01", "9999-12-31", "2010")
]
OF_FUNCTIONS += [
    f"date_format({c}, '{p}') {op} '{t}'"
    for c in ("d", "ts")
    for p, t in (("MM-yyyy", "11-2010"), ("MM-yyyy", "06-2000"), ("yyyy", "0001"), ("yyyy", "5000"))
    for op in ("<", ">")
]
OF_FUNCTIONS += [f"datediff(DATE '2024-01-01', d) {op} {n}" for op in ("<", ">") for n in (0, 1, 100)]
OF_FUNCTIONS += [f"month({c}) {op} {n}" for c in ("d", "ts") for op in ("<", ">", "=") for n in (1, 11, 12)]
OF_FUNCTIONS += [f"hour({c}) {op} {n}" for c in ("ntz", "ts") for op in ("<", ">") for n in (1, 12, 22)]
OF_FUNCTIONS += [
    f"{made} {op} {n}"
    for made in ("5 - n1", "i32 * -1", "- f64", "- i8", "-3 * n1", "f64 / -2")
    for op in ("<", ">", "=")
    for n in (-4, -2, 0, 1)
]
OF_FUNCTIONS += [
    f"{made} {op} {n}"
    for made in ("i32 + 1", "i64 - 5L", "i32 * 3", "floor(f64)", "CAST(f32 AS int)", "f64 * 2")
    for op in ("<", ">")
    for n in (-100, 0, 50, 2147483646)
]
OF_FUNCTIONS += [f"substr(s, 2, 1) {op} '{t}'" for op in ("<", ">", "=") for t in ("", "a", "r")]
OF_FUNCTIONS += [f"concat(vc, 'p') {op} '{t}'" for op in ("<", ">") for t in ("ap", "a p", "pre_1p", "1p", "zzp")]
OF_FUNCTIONS += [
    "CAST(n1 AS string) NOT IN ('01')",
    "CAST(n1 AS string) <> '01'",
    "CAST(n1 AS string) = '1'",
    "CAST(n2 AS string) <> '1'",
    "NOT (CAST(n1 AS string) = '2')",
]
OF_FUNCTIONS += [f"{c} RLIKE '{p}'" for c in ("s", "vc") for p in ("^pre_10?$", "^ab?", "^b|a", "^zz*", "^pre_1")] + [
    f"NOT (s RLIKE '{p}')" for p in ("^ab", "^a$", "^pre_1", "^pre_1$")
]
OF_FUNCTIONS += [
    f"{made} = '{text}'"
    for c in ("s", "vc")
    for made, text in (
        (f"lower({c})", "bob"), (f"lower({c})", "bobby"), (f"upper({c})", "BOC"), (f"lower({c})", "kg"), (f"upper({c})", "SSX"), (f"upper({c})", "FIX"),
        (f"lower({c})", "i\u0307x"), (f"upper({c})", "IX"), (f"lower({c})", "Bob"), (f"upper({c})", "\u212aG"),
    )
]  # fmt: skip
OF_FUNCTIONS += [
    "coalesce(i32, 'x') < '11'", "coalesce(i32, 'x') > '5'", "coalesce(i32, n1) = 1", "coalesce(n1, 9) = 9", "coalesce(n1, 9) = 2", "nullif(n1, 2) = 1",
    "nullif(n1, 2) IS NULL", "if(n1 = 2, i32, n2) = 3", "if(n1 = 2, 0, 1) = 1", "CASE WHEN n1 = 2 THEN 0 ELSE 1 END = 1", "CASE WHEN n1 = 1 THEN 'x' END = 'x'",
    "nvl2(n1, 1, 0) = 1", "nvl2(n1, 1, 0) = 0", "(n1 = 2) <=> false", "(n1 = 2) = false", "NOT ((n1 = 2) <=> true)", "(n1 < 2) = true", "ts < ntz", "ntz < ts", "d < ts", "ts = ntz",
]  # fmt: skip


def load(name: str) -> Any:
    return importlib.import_module(f"dbt_zorder.pruning.{name}")


def apply(name: str, old: str, new: str) -> None:
    """Change the source of one module and load it and what imports it again."""
    target = load(name)
    source = Path(target.__file__).read_text()
    assert source.count(old) == 1, f"{name}: {source.count(old)} places for {old!r}"
    exec(compile(source.replace(old, new), target.__file__, "exec"), target.__dict__)
    for later in ORDER[ORDER.index(name) + 1 :] if name in ORDER else ORDER:
        importlib.reload(load(later))


def snapshot() -> dict[str, dict[str, Any]]:
    """Return what every module holds, so that its very classes can be put back: other modules refer to them."""
    return {name: dict(load(name).__dict__) for name in ["predicate.names", *ORDER]}


def restore(saved: dict[str, dict[str, Any]]) -> None:
    """Undo :func:`apply`."""
    for name, held in saved.items():
        load(name).__dict__.clear()
        load(name).__dict__.update(held)


class Suite:
    """T1 to T3 in small, with the truth worked out once."""

    def __init__(self, spark: SparkSession) -> None:
        from tests.soundness.grammar import Grammar
        from tests.soundness.judge import AS_WRITTEN, FAST, ask
        from tests.soundness.test_adversarial_stats import _kinds
        from tests.soundness.test_all_small_tables import Model
        from tests.soundness.world import make_world
        from tests.support import settings

        self.spark = spark
        with settings(spark, FAST):
            self.model = Model(spark)
        self.world = make_world(spark, 5, 200)
        grammar = Grammar(101, functions=False)
        with settings(spark, AS_WRITTEN):
            self.asked = ask(spark, self.world, SHARP + [grammar.atom() for _ in range(500)])
            self.of_functions = ask(spark, self.world, OF_FUNCTIONS)
        self.understand()
        kinds = _kinds(self.world.stats)
        self.bad = {
            name: kinds[name].cache() for name in ("no bounds", "no null count", "swapped bounds", "impossible counts")
        }
        self.doubled = kinds["doubled"].cache()

    def understand(self) -> None:
        from tests.soundness.judge import understand

        understand(self.spark, self.world, self.asked)
        understand(self.spark, self.world, self.of_functions)

    def hunt(self) -> str:
        """Return what was found wrong, or an empty string."""
        from tests.soundness.judge import AS_WRITTEN, FAST, judge
        from tests.soundness.ranking_model import aggregate_faults, faults
        from tests.support import settings

        with settings(self.spark, FAST | AS_WRITTEN):
            checks: tuple[Callable[[], list[str]], ...] = (
                lambda: faults(load("top_rows.ranking"), 3_000),
                lambda: aggregate_faults(load("plain_sql.metadata_answers"), 500),
                self._exclusion,
                self._decision,
                lambda: self.model.run("exact", 1500)[3],
                lambda: self.model.run("no bounds", 400)[3],
                lambda: self.model.run("no null count", 400)[3],
                lambda: judge(self.spark, self.world, self.asked).unsound,
                lambda: judge(self.spark, self.world, self.of_functions).unsound,
                *(
                    lambda s=stats: judge(self.spark, self.world, self.asked[:150], s).unsound
                    for stats in self.bad.values()
                ),
            )
            for check in checks:
                try:
                    found = check()
                except Exception as exc:
                    return f"an exception: {type(exc).__name__} {str(exc)[:100]}"
                if found:
                    return found[0]
        return ""

    def _decision(self) -> list[str]:
        """Files with two rows of statistics are never excluded."""
        item = next(item for item in self.asked if item.tree is not None and item.text == "i8 <=> 'x'")
        source = load("files.stats_source").check_shape(self.doubled)
        names = load("files.evaluate").stats_names(source.covered(item.tree))
        condition = load("condition.translate").Translator(names, item.types).translate(item.tree)
        found = []
        for is_local in (False, True):
            decision = load("files.evaluate").decide(replace(source, is_local=is_local), condition, names)
            found += [f"{path} has two rows of statistics" for path, size in decision.excluded if size % 2 == 0]
        return found

    def _exclusion(self) -> list[str]:
        """The filter leaves out the given pairs and nothing else, whatever the names."""
        known = [(f"file:/t/part-{n:05d}-aa-c000.parquet", 100 + n % 7) for n in range(3000)]
        foreign = [(p.replace("/t/", "/u/"), z) for p, z in known[:50]] + [
            (p.replace("-aa-", "-bb-"), z) for p, z in known[:50]
        ]
        foreign += [(p, z + 1) for p, z in known[:50]] + [(p.replace("part-0", "part-+"), z) for p, z in known[:50]]
        foreign += [
            ("file:/t/x.parquet", 100),
            ("file:/t/part-0000a-aa-c000.parquet", 100),
            ("file:/t/part-00001-aa-c000.parquet.b", 101),
        ]
        values = ", ".join(f"('{path}', {size}L)" for path, size in known + foreign)
        files = self.spark.sql(
            f"SELECT struct(p AS file_path, z AS file_size) _metadata FROM VALUES {values} AS t(p, z)"
        )
        wrong: list[str] = []
        for excluded in (known[::2], known[:7]):
            sql = load("files.exclusion").exclude(excluded).sql
            kept = {(row[0], row[1]) for row in files.where(sql).select("_metadata.*").collect()}
            wrong += [f"{key} is lost" for key in set(known + foreign) - set(excluded) - kept]
        return wrong


def run(spark: SparkSession, numbers: list[int]) -> list[int]:
    """Return the numbers of the mutants that nothing noticed."""
    suite = Suite(spark)
    before = suite.hunt()
    assert not before, f"unsound without any change: {before}"
    alive = []
    saved = snapshot()
    for number in numbers:
        start = time.monotonic()
        try:
            apply(*MUTANTS[number])
            if MUTANTS[number][0] == "names":
                suite.understand()
            found = suite.hunt()
        finally:
            restore(saved)
            if MUTANTS[number][0] == "names":
                suite.understand()
        if not found:
            alive.append(number)
        verdict = found.replace("\n", " ")[:90] or "SURVIVES"
        print(f"mutant {number:2} {MUTANTS[number][0]}: {time.monotonic() - start:.1f} s: {verdict}", flush=True)
    return alive


def main() -> int:
    from dbt_zorder.adapter.session.open import open_session

    logging.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL)
    zone = {"spark.sql.ansi.enabled": "false", "spark.sql.session.timeZone": "America/St_Johns"}
    spark = open_session(zone, tempfile.mkdtemp())
    numbers = [int(number) for number in sys.argv[1:]] or list(range(len(MUTANTS)))
    alive = run(spark, numbers)
    print(f"{len(numbers) - len(alive)} of {len(numbers)} mutants killed; alive: {alive or 'none'}")
    return 1 if alive else 0


if __name__ == "__main__":
    sys.exit(main())
