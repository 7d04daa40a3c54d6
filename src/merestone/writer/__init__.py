"""The only writer of datasets. Not here: what to write (`change`), reading it back as a consumer does (`dataset`)."""
