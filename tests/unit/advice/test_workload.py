"""What queries ask of one table, read from their SQL."""

from __future__ import annotations

import pytest

from dbt_zorder.advice.condition import Comparison, Condition, Either, Every, Lookup, Scan, leaves
from dbt_zorder.advice.workload import Reader, TableKey, UnreadError

ORDERS = dict.fromkeys(("id", "customer_id", "day", "ts", "total", "status", "is_open"), "string")
OTHERS = {
    "days": dict.fromkeys(("day", "is_holiday"), "string"),
    "customers": dict.fromkeys(("id", "country"), "string"),
    "other": dict.fromkeys(("ts",), "string"),
    "more_orders": ORDERS,
}
VIEWS = {
    ("s", "big"): "with source as (select * from s.orders) select id, customer_id as customer, day from source "
    "where status = 'big'"
}


def columns_of(key: TableKey) -> dict[str, str]:
    return OTHERS.get(key[1], {})


READER = Reader(("s", "orders"), ORDERS, columns_of, VIEWS)


def scans(sql: str) -> list[Scan]:
    return READER.read("q", sql)


def asked(sql: str) -> Condition | None:
    found = scans(sql)
    assert len(found) == 1
    return found[0].condition


def in_order(condition: Condition | None) -> Condition | None:
    """Return a condition with its terms in one order: sqlglot has an order of its own."""
    if isinstance(condition, Every | Either):
        return type(condition)(tuple(sorted(filter(None, map(in_order, condition.terms)), key=repr)))
    return condition


def one(column: str, op: str, *values: str) -> Comparison:
    return Comparison(column, op, values)


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ("customer_id = 4", one("customer_id", "=", "4")),
        ("4 < customer_id", one("customer_id", ">", "4")),
        ("customer_id IN (1, 2)", one("customer_id", "=", "1", "2")),
        ("status <=> 'a'", one("status", "=", "'a'")),
        ("id IS NULL", one("id", "null")),
        ("is_open", one("is_open", "=", "TRUE")),
        ("NOT is_open", one("is_open", "=", "FALSE")),
        ("status LIKE 'ab%c'", one("status", "prefix", "'ab'")),
        ("CAST(day AS TIMESTAMP) >= '2024-01-01'", one("day", ">=", "'2024-01-01'")),
        ("day BETWEEN '2024-01-01' AND '2024-02-01'",
         Every((one("day", ">=", "'2024-01-01'"), one("day", "<=", "'2024-02-01'")))),
        ("id = 1 OR customer_id = 2", Either((one("id", "=", "1"), one("customer_id", "=", "2")))),
        ("ts >= current_date() - INTERVAL 7 DAYS", one("ts", ">=", "CURRENT_DATE - INTERVAL '7' DAYS")),
        ("ts > (SELECT max(ts) AS m FROM s.other o)", one("ts", ">", "(SELECT MAX(o.ts) AS m FROM s.other AS o)")),
        ("year(ts) = 2024",
         Every((one("ts", ">=", "make_date(2024, 1, 1)"), one("ts", "<", "make_date(2024 + 1, 1, 1)")))),
        ("date_trunc('month', ts) = '2024-03-01'",
         Every((one("ts", ">=", "('2024-03-01')"),
                one("ts", "<", "CAST(('2024-03-01') AS TIMESTAMP) + INTERVAL 1 MONTH")))),
        ("to_date(ts) <= '2024-03-01'",
         Every((one("ts", "<", "CAST(('2024-03-01') AS DATE) + INTERVAL 1 DAY"),))),
        ("customer_id IN (SELECT id FROM s.customers c WHERE country = 'NL')",
         Lookup("customer_id", "SELECT c.id AS id FROM s.customers AS c WHERE c.country = 'NL'")),
    ],
)  # fmt: skip
def test_filters(where: str, expected: Condition) -> None:
    assert in_order(asked(f"SELECT id FROM s.orders WHERE {where}")) == in_order(expected)


@pytest.mark.parametrize(
    "where",
    [
        "upper(status) = 'A'", "customer_id <> 4", "customer_id NOT IN (1, 2)", "id IS NOT NULL", "status LIKE '%a'",
        "status NOT LIKE 'a%'", "id = customer_id", "id = 1 OR upper(status) = 'A'", "id = NULL",
        "EXISTS (SELECT 1 FROM s.days d WHERE d.day = orders.day)",
    ],
)  # fmt: skip
def test_what_leaves_out_no_file(where: str) -> None:
    assert asked(f"SELECT id FROM s.orders WHERE {where}") is None


def test_a_lookup_in_the_table_itself_is_not_run() -> None:
    found = scans("SELECT id FROM s.orders WHERE id IN (SELECT id FROM s.orders WHERE total > 5)")
    assert {scan.condition for scan in found} == {None, one("total", ">", "5")}


def test_filters_reach_the_table_through_ctes_and_views() -> None:
    sql = (
        "WITH source AS (SELECT * FROM s.big), final AS (SELECT * FROM source) "
        "SELECT count(*) FROM final WHERE customer = 5"
    )
    found = scans(sql)
    assert len(found) == 1
    assert set(leaves(found[0].condition)) == {one("customer_id", "=", "5"), one("status", "=", "'big'")}
    assert found[0].columns == {"customer_id", "status"}


def test_a_name_of_a_cte_counts_only_where_it_is_given() -> None:
    sql = "SELECT * FROM (WITH orders AS (SELECT 1 AS id) SELECT id FROM orders) WHERE id = 3"
    assert scans(sql) == []
    assert len(scans(f"{sql} UNION ALL SELECT id FROM S.ORDERS")) == 1


def test_joins_look_up_the_keys_of_a_filtered_table() -> None:
    lookup = Lookup("day", "SELECT d.day FROM s.days AS d WHERE d.is_holiday")
    on = "SELECT o.total FROM s.orders o {} JOIN s.days d ON o.day = d.day AND d.is_holiday"
    assert asked(on.format("")) == lookup
    assert asked(on.format("LEFT SEMI")) == lookup
    assert asked(on.format("LEFT")) is None
    assert asked(on.format("LEFT ANTI")) is None
    assert asked(on.format("FULL")) is None
    assert asked("SELECT o.total FROM s.orders o, s.days d WHERE o.day = d.day AND d.is_holiday") == lookup
    assert asked("SELECT o.total FROM s.orders o JOIN s.days d ON o.day = d.day") is None, "all days are looked up"
    using = "SELECT total FROM s.orders JOIN (SELECT * FROM s.days WHERE is_holiday) USING (day) WHERE customer_id = 4"
    found = set(leaves(asked(using)))
    assert one("customer_id", "=", "4") in found
    assert [leaf.query for leaf in found if isinstance(leaf, Lookup)] == [
        "SELECT _0.day FROM (SELECT days.day AS day FROM s.days AS days WHERE days.is_holiday) AS _0"
    ]
    semi = "SELECT c.id FROM s.customers c LEFT SEMI JOIN s.orders o ON c.id = o.customer_id AND o.day > '2024-01-01'"
    assert asked(semi) == one("day", ">", "'2024-01-01'")


def test_a_filter_of_a_left_join_does_not_bound_the_left_side() -> None:
    assert asked("SELECT o.id FROM s.orders o LEFT JOIN s.days d ON o.day = d.day AND o.id = 3") is None
    right = asked("SELECT o.id FROM s.days d LEFT JOIN s.orders o ON o.day = d.day AND o.id = 3")
    assert right == one("id", "=", "3")


def test_only_the_columns_that_a_query_needs() -> None:
    assert scans("SELECT count(*) FROM (SELECT * FROM s.orders WHERE id IS NULL)")[0].columns == {"id"}
    assert scans("SELECT * FROM s.orders")[0].columns == set(ORDERS)


def test_each_scan_counts() -> None:
    found = scans("SELECT id FROM s.orders WHERE id = 1 UNION ALL SELECT id FROM s.orders WHERE id = 2")
    assert [scan.condition for scan in found] == [one("id", "=", "1"), one("id", "=", "2")]
    assert scans("SELECT 1 FROM s.days") == []
    assert scans("SELECT * FROM other_schema.orders") == []


def test_a_predicate_is_a_query() -> None:
    assert in_order(asked("total > 5 OR id = 3")) == Either((one("id", "=", "3"), one("total", ">", "5")))


@pytest.mark.parametrize(
    ("sql", "reason"),
    [
        ("a = = 3", "expression"),
        ("WITH RECURSIVE a AS (SELECT 1 AS n) SELECT * FROM a, s.orders", "it is recursive"),
        (
            "WITH a0 AS (SELECT * FROM s.orders), "
            + ", ".join(f"a{n + 1} AS (SELECT * FROM a{n} UNION ALL SELECT * FROM a{n})" for n in range(20))
            + " SELECT * FROM a20",
            "it is too large",
        ),
    ],
)
def test_what_cannot_be_read(sql: str, reason: str) -> None:
    with pytest.raises(UnreadError, match=reason):
        scans(sql)
