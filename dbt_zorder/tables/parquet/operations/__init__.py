"""Operate on the versions of one table: verify, vacuum, roll back, rebuild stats, drop and rename."""
