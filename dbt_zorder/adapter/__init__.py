"""dbt's interface: credentials, connections, model config and responses. It makes no layout or pruning decisions."""
