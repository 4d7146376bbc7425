# a Python model is z-ordered like any other; what it returns may also be a pandas DataFrame or an Arrow table
from pyspark.sql import functions as f


def model(dbt, session):
    dbt.config(zorder_by=["tailnum", "dest"], zorder_files=4)
    airports = dbt.ref("nyc_airports").select(f.col("faa").alias("origin"), "airport")
    return (
        dbt.ref("flights")
        .filter("tailnum is not null")
        .groupBy("tailnum", "origin", "dest")
        .agg(f.count("*").alias("flights"), f.avg("arr_delay").alias("mean_arr_delay"))
        .join(airports, "origin")
    )
