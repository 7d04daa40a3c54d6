"""What is settled before a row is read. Not here: any row."""
