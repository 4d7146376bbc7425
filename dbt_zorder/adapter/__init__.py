"""What dbt talks to: credentials, connections, model config and the response; no layout or pruning is decided here."""
