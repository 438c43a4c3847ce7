"""Arrow: corpora and tables in Parquet files and Arrow streams, packed or not."""

#: What it adds; see `headcount.plugins`.
ADDS = {"parts": {"binary records": "reading:arrow_records"}}
