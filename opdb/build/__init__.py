"""Derives `opdb/data` from what the frameworks publish. Never imported by a scan."""
