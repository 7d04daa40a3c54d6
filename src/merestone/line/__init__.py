"""The order of the line, and the only place that reads clock, environment and settings. Not here: any single step of it."""
