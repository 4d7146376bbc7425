"""dbt's suites for seeds, plain and z-ordered, and what they do not ask."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from dbt.tests.adapter.simple_seed import seeds, test_seed
from dbt.tests.adapter.simple_seed.test_seed import (
    BaseBasicSeedTests,
    BaseSeedConfigFullRefreshOff,
    BaseSeedConfigFullRefreshOn,
    BaseSeedCustomSchema,
    BaseSeedParsing,
    BaseSeedSpecificFormats,
    BaseSeedWithEmptyDelimiter,
    BaseSeedWithUniqueDelimiter,
    BaseSeedWithWrongDelimiter,
    BaseSimpleSeedEnabledViaConfig,
    BaseSimpleSeedWithBOM,
    BaseTestEmptySeed,
)
from dbt.tests.adapter.simple_seed.test_seed_type_override import BaseSimpleSeedColumnOverride
from dbt.tests.util import copy_file, run_dbt, run_dbt_and_capture
from pyspark.sql import SparkSession

from dbt_zorder import pruning
from dbt_zorder.spark.catalog import TableName, describe
from tests.support import same_rows, settings


class ExpectedTable:
    """The table of the suites in Spark's words. A view on a seed stays when the seed is made anew: nothing cascades."""

    @pytest.fixture(scope="class", autouse=True)
    def setUp(self, project: Any) -> None:
        values = seeds.seeds__expected_sql.partition("VALUES")[2].strip().rstrip(";")
        project.run_sql(
            "create table {schema}.seed_expected as select cast(seed_id as bigint) as seed_id, first_name, email, "
            "ip_address, cast(birthday as timestamp) as birthday from values "
            + values
            + " as t(seed_id, first_name, email, ip_address, birthday)"
        )

    def _check_relation_end_state(self, run_result: Any, project: Any, exists: bool) -> None:
        super()._check_relation_end_state(run_result, project, True)  # type: ignore[misc]


class Zordered:
    """Every seed of a suite z-ordered."""

    @pytest.fixture(scope="class")
    def project_config_update(self) -> dict[str, Any]:
        return {"seeds": {"quote_columns": False, "+zorder_by": "seed_id", "+zorder_files": 3}}


class TestBasicSeeds(ExpectedTable, BaseBasicSeedTests):
    pass


@pytest.mark.slow
class TestZorderedBasicSeeds(Zordered, ExpectedTable, BaseBasicSeedTests):
    pass


@pytest.mark.slow
class TestFullRefreshOn(ExpectedTable, BaseSeedConfigFullRefreshOn):
    pass


@pytest.mark.slow
class TestFullRefreshOff(ExpectedTable, BaseSeedConfigFullRefreshOff):
    pass


@pytest.mark.slow
class TestCustomSchema(ExpectedTable, BaseSeedCustomSchema):
    pass


@pytest.mark.slow
class TestUniqueDelimiter(ExpectedTable, BaseSeedWithUniqueDelimiter):
    pass


class TestWrongDelimiter(ExpectedTable, BaseSeedWithWrongDelimiter):
    @pytest.fixture(autouse=True)
    def plain_alone(self, suites_run: str) -> None:
        if suites_run == "zordered":
            pytest.skip("the one column that is left may have any name there, so the seed does not fail")


class TestEmptyDelimiter(ExpectedTable, BaseSeedWithEmptyDelimiter):
    pass


@pytest.mark.slow
class TestEnabledViaConfig(BaseSimpleSeedEnabledViaConfig):
    pass


class TestParsing(ExpectedTable, BaseSeedParsing):
    pass


class TestByteOrderMark(ExpectedTable, BaseSimpleSeedWithBOM):
    @pytest.fixture(scope="class", autouse=True)
    def with_mark(self, project: Any) -> None:
        copy_file(
            Path(test_seed.__file__).parent, "seed_bom.csv", Path(project.project_root) / "seeds/seed_bom.csv", ""
        )


class TestSpecificFormats(BaseSeedSpecificFormats):
    """But for ``seed.with.dots``: no table of Hive's metastore may have a dot in its name."""

    @pytest.fixture(scope="class")
    def seeds(self, test_data_dir: Any) -> dict[str, str]:
        big = "\n".join(["seed_id", *map(str, range(20000))]) + "\n"
        return {
            "big_seed.csv": big,
            "second.csv": seeds.seed__with_dots_csv,
            "seed_unicode.csv": seeds.seed__unicode_csv,
        }


class TestEmptySeed(BaseTestEmptySeed):
    pass


class TestZorderedEmptySeed(BaseTestEmptySeed):
    @pytest.fixture(scope="class")
    def project_config_update(self) -> dict[str, Any]:
        return {"seeds": {"+zorder_by": "a"}}


class TestColumnOverride(BaseSimpleSeedColumnOverride):
    """With the names that Spark gives the types."""

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        from dbt.tests.adapter.simple_seed.fixtures import properties__schema_yml

        text = properties__schema_yml.replace("timestamp without time zone", "timestamp")
        return {"schema.yml": text.replace("type: text", "type: string").replace("type: integer", "type: bigint")}

    @staticmethod
    def seed_enabled_types() -> dict[str, str]:
        return {"seed_id": "string", "birthday": "date"}

    @staticmethod
    def seed_tricky_types() -> dict[str, str]:
        return {"seed_id_str": "string", "looks_like_a_bool": "string", "looks_like_a_date": "string"}


TYPED = r"""id,name,amount,flag,day,at,zoned,price,code,P
1,O'Brien \ %s,1.5,true,2020-01-02,2020-01-02 03:04:05,2020-01-02T03:04:05+02:00,12.345,007,x
2,,,,,,,,,y
12345678901,None,-2,False,1969-12-31,1969-12-31 23:59:59,2020-07-02T03:04:05Z,0.5,,x
"""
CHOSEN = {"price": "decimal(10,3)", "code": "string"}
ROWS = [
    (1, r"O'Brien \ %s", 1.5, True, dt.date(2020, 1, 2), "2020-01-02 03:04:05", 1577927045, Decimal("12.345"), "007"),
    (2, None, None, None, None, None, None, None, None),
    (
        12345678901,
        "None",
        -2.0,
        False,
        dt.date(1969, 12, 31),
        "1969-12-31 23:59:59",
        1593659045,
        Decimal("0.500"),
        None,
    ),
]
QUERY = "select id, name, amount, flag, day, cast(at as string), unix_timestamp(zoned), price, code from {} order by id"
TYPES = ["bigint", "string", "double", "boolean", "date", "timestamp", "timestamp", "decimal(10,3)", "string", "string"]


class TestTypes:
    @pytest.fixture(scope="class")
    def seeds(self) -> dict[str, str]:
        return {"plain.csv": TYPED, "zordered.csv": TYPED, "parted.csv": TYPED, "elsewhere.csv": TYPED}

    @pytest.fixture(scope="class")
    def project_config_update(self, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
        return {
            "seeds": {
                "test": {
                    "+column_types": CHOSEN,
                    "zordered": {"+zorder_by": ["id", "day"], "+zorder_files": 2},
                    "parted": {"+partition_by": "name", "+file_format": "parquet"},
                    "elsewhere": {"+location_root": str(tmp_path_factory.mktemp("elsewhere")), "+file_format": "orc"},
                }
            }
        }

    def test_values_and_types_are_those_of_the_file(self, project: Any, spark: SparkSession, suites_run: str) -> None:
        for ansi in ("false", "true"):
            with settings(spark, {"spark.sql.ansi.enabled": ansi}):
                results = run_dbt(["seed"])
            message = {r.node.name: r.message for r in results}["plain"]
            assert message.startswith("INSERT 3" if suites_run == "plain" else "zorder: ")
            for name in ("plain", "zordered", "parted", "elsewhere"):
                table = spark.table(f"{project.test_schema}.{name}")
                assert spark.sql(QUERY.format(f"{project.test_schema}.{name}")).collect() == ROWS, "each row once"
                types = dict(table.dtypes)
                assert [types[column] for column in TYPED.splitlines()[0].split(",")] == TYPES

    def test_a_seed_with_zorder_by_is_z_ordered(self, project: Any, spark: SparkSession) -> None:
        (result,) = run_dbt(["seed", "--full-refresh", "--select", "zordered"])
        assert result.adapter_response["files_written"] == 2
        assert result.message.startswith("zorder: 2 files, point query on id reads 1 of 2, day 1 of 2")
        name = f"{project.test_schema}.zordered"
        assert pruning.explain(spark, name, "day = date'2020-01-02'").files_read == 1
        assert pruning.sound(spark, name, ["id = 1", "day is null"]) == []

    def test_a_value_that_does_not_fit_leaves_the_table(self, project: Any, spark: SparkSession) -> None:
        run_dbt(["seed"])
        before = {name: describe(spark, TableName(project.test_schema, name)) for name in ("plain", "zordered")}
        for name in before:
            path = Path(project.project_root) / "seeds" / f"{name}.csv"
            path.write_text(TYPED.replace("12.345", "cheap"))
        for ansi in ("false", "true"):
            with settings(spark, {"spark.sql.ansi.enabled": ansi}):
                _, text = run_dbt_and_capture(["seed", "--select", "plain", "zordered"], expect_pass=False)
            assert text.count("does not fit into decimal(10,3): cheap") >= 2
        assert "\tat " not in text
        for name, info in before.items():
            assert describe(spark, TableName(project.test_schema, name)) == info
            assert same_rows(
                spark.table(f"{project.test_schema}.{name}"), spark.table(f"{project.test_schema}.elsewhere")
            )
