"""The same clustered rows in tables of Delta Lake and Iceberg, by each format's own transactions.

Nothing of ours is kept beside such a table: no versions, no stats, no markers. Its own log has all that.
"""
