"""What really changed: probe, classes, guards and plan, as values over columns. Not here: reading or writing anything (`dataset`, `writer`)."""
