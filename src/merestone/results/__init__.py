"""Results as values: findings, counts, and what a command answers. Not here: words (`render`)."""
