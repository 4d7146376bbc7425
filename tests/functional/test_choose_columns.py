"""zorder_advise in a project whose models read one table."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from dbt.tests.util import run_dbt, run_dbt_and_capture
from pyspark.sql import SparkSession

from dbt_zorder import pruning

ROWS = 60_000
ORDERS = (
    "select id, pmod(hash(id), 5000) as customer_id, cast(date'2024-01-01' + cast(pmod(hash(id, 7), 365) as int) as "
    f"date) as day, pmod(hash(id, 9), 3) as kind, hash(id, 11) / 100.0d as total from range({ROWS})"
)
"""Values in no order, so that only a layout makes files narrow."""

OPTIONS = "materialized='table', file_format='parquet', zorder_files=32"
SCHEMA = """
models:
  - name: orders
    columns:
      - name: id
        data_tests: [not_null, unique]
"""


def ask(arguments: str, *, expect_pass: bool = True) -> str:
    _, output = run_dbt_and_capture(["run-operation", "zorder_advise", "--args", arguments], expect_pass=expect_pass)
    return " ".join(output.split())


class TestAdvice:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        table = "{{ config(materialized='table', file_format='parquet') }} "
        return {
            "orders.sql": "{{ config(" + OPTIONS + ") }} " + ORDERS,
            "recent.sql": "{{ config(materialized='view') }} with source as (select * from {{ ref('orders') }}) "
            "select * from source where day >= date'2024-12-01'",
            "dear.sql": "{{ config(materialized='ephemeral') }} select * from {{ ref('orders') }} where total > 1e9",
            "of_customer.sql": table + "select * from {{ ref('recent') }} where customer_id in (7, 42)",
            "month.sql": table + "with o as (select * from {{ ref('orders') }}) select customer_id, sum(total) as s "
            "from o where date_trunc('month', day) = '2024-03-01' group by 1",
            "one.sql": table + "select sum(total) as s from {{ ref('orders') }} where customer_id = 4711",
            "holidays.sql": table + "select date'2024-05-01' as day, true as is_off union all select date'2024-05-02', "
            "false",
            "off.sql": table
            + "select o.total from {{ ref('orders') }} o join {{ ref('holidays') }} h on o.day = h.day "
            "where h.is_off",
            "cheap.sql": table + "select * from {{ ref('dear') }}",
            "alone.sql": table + "select 1 as a",
            "schema.yml": SCHEMA,
        }

    @pytest.fixture(scope="class", autouse=True)
    def built(self, project: Any) -> None:
        run_dbt(["run"])

    def test_it_predicts_what_a_build_then_reads(self, project: Any, spark: SparkSession) -> None:
        output = ask("{model: orders}")
        config = re.search(r"orders: (zorder_by=\['day', 'customer_id'\].*?) The queries", output)
        assert config is not None, output
        assert "zorder_stats_columns=['id', 'total']" in config[1], "for not_null, and a filter that nothing matches"
        assert "The queries scan the table 7 times, 6 of them with a filter" in output, "the table's tests, too"
        row = re.search(r"z-order by day[^│]*statistics of id, total *│ (\S+) │ 32 │", output)
        assert row is not None
        path = Path(project.project_root, "models", "orders.sql")
        before = path.read_text()
        path.write_text(before.replace("zorder_files", f"{config[1]}, zorder_files"))
        run_dbt(["run", "--select", "orders"])
        read = []
        for sql in (
            "day >= date'2024-12-01' and customer_id in (7, 42)",
            "day >= date'2024-03-01' and day < date'2024-04-01'",
            "customer_id = 4711",
            "day = date'2024-05-01'",
            "total > 1e9",
            "id is null",
        ):
            explained = pruning.explain(spark, f"{project.test_schema}.orders", sql)
            assert explained.files_total == 32
            read.append(explained.files_read or 0)
        assert float(row[1]) == pytest.approx(sum(read) / len(read), rel=0.1)
        output = ask("{model: orders}")
        assert "The clustering by day, customer_id is good" in output, output
        path.write_text(before)

    def test_queries_and_weights_count(self, project: Any) -> None:
        output = ask("{model: orders, queries: ['kind = 1', \"select 1 from {{ ref('orders') }} where id = 7\"]}")
        assert "The queries scan the table 9 times, 8 of them" in output
        output = ask("{model: orders, weights: {one: 1000}}")
        assert "orders: zorder_by=['customer_id']" in output, output
        assert "One column is enough" in output

    def test_a_table_without_queries(self, project: Any) -> None:
        assert "alone: Don't: no query was found that reads the table" in ask("{model: alone}")
        output = ask(f"{{model: {project.test_schema}.holidays}}")
        assert "holidays: Don't: the table has" in output
        assert "which is 1 file of the target size" in output

    @pytest.mark.parametrize(
        ("arguments", "said"),
        [
            ("{model: ordrs}", "There is no model, seed or snapshot 'ordrs' in this project. Did you mean 'orders'?"),
            ("{model: recent}", "recent is a view, which has no files"),
            ("{model: orders, queries: [1]}", "queries is [1], but it must be a text or a list of texts"),
            ("{model: orders, weights: {mnth: 2}}", "no query of that name reads the table. Did you mean 'month'?"),
            ("{model: orders, weights: {month: 0}}", "but it must be positive numbers by name"),
        ],
    )
    def test_errors(self, project: Any, arguments: str, said: str) -> None:
        assert said in ask(arguments, expect_pass=False)

    def test_a_query_that_cannot_be_read_is_named(self, project: Any) -> None:
        assert "Not read: query 1: " in ask("{model: orders, queries: ['a = = b']}")
