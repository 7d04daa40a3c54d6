"""Candidates against published rows. Not here: the classes of change (`change`), whether the change may pass (`line.judging`)."""
