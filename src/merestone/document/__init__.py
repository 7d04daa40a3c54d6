"""YAML and JSON as people write them: limits, positions, forms. Not here: what a contract or a publication means."""
