"""Measure how much of TPC-DS's fact tables is read, by plain SQL and by ``query``: ``python -m bench.tpcds``.

DuckDB makes the data and the 99 queries. The facts are z-ordered by date, item and customer, the dimensions are plain
tables. The rows of both ways must be equal. ``--contender parquet`` (``delta``, ``iceberg``) measures plain SQL on the
same tables in that format, in a process of its own.
"""

from __future__ import annotations

import json
import re
from importlib.util import find_spec
from pathlib import Path

from bench.statements import main
from bench.suites import Fact, Suite

_DATE_FIRST = [4.0, 1.0, 1.0]
"""Weight of the date beside the other keys, because nearly every query filters by it."""

FACTS = {
    "store_sales": Fact(["ss_sold_date_sk", "ss_item_sk", "ss_customer_sk"], 1, _DATE_FIRST),
    "catalog_sales": Fact(["cs_sold_date_sk", "cs_item_sk", "cs_bill_customer_sk"], 1, _DATE_FIRST),
    "web_sales": Fact(["ws_sold_date_sk", "ws_item_sk", "ws_bill_customer_sk"], 1, _DATE_FIRST),
    "inventory": Fact(["inv_date_sk", "inv_item_sk"], 1, _DATE_FIRST[:2]),
    "store_returns": Fact(["sr_returned_date_sk", "sr_item_sk"], 1 / 4, _DATE_FIRST[:2]),
    "catalog_returns": Fact(["cr_returned_date_sk", "cr_item_sk"], 1 / 4, _DATE_FIRST[:2]),
    "web_returns": Fact(["wr_returned_date_sk", "wr_item_sk"], 1 / 4, _DATE_FIRST[:2]),
}


def generate(folder: Path, scale: float = 1.0) -> dict[int, str]:
    """Write the tables as Parquet, unless they are there, and return the queries by number."""
    queries = folder / "queries.json"
    if not queries.exists():
        import duckdb

        folder.mkdir(parents=True, exist_ok=True)
        extension = find_spec("duckdb_extension_tpcds")
        found = None
        if extension is not None and extension.origin is not None:
            pattern = f"extensions/v{duckdb.__version__}/*.duckdb_extension"
            found = next(Path(extension.origin).parent.glob(pattern), None)
        if found is None:
            msg = f"DuckDB {duckdb.__version__} has no extension tpcds here. Install both in one version: "
            msg += "pip install duckdb==1.5.5 duckdb-extension-tpcds==1.5.5"
            raise SystemExit(msg)
        with duckdb.connect(config={"allow_unsigned_extensions": "true", "threads": 1}) as database:
            database.execute(f"LOAD '{found}'")
            database.execute(f"CALL dsdgen(sf={scale})")
            for (table,) in database.execute("SHOW TABLES").fetchall():
                database.execute(f"COPY {table} TO '{folder / table}.parquet' (FORMAT parquet)")
            asked = database.execute("SELECT query_nr, query FROM tpcds_queries()").fetchall()
        queries.write_text(json.dumps(asked))
    # Spark quotes names by backticks
    return {
        number: re.sub(r'"([^"]+)"', r"`\1`", text.strip().rstrip(";"))
        for number, text in json.loads(queries.read_text())
    }


SUITE = Suite("tpcds", FACTS, generate)

if __name__ == "__main__":
    main(SUITE, __doc__)
