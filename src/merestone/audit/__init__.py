"""What an auditor asks of a published dataset, answered: its record shown, judged, proved, handed out, taken in, and let go.

Not here: making a version (`line`), the events and their store (`lineage`), the text and XML of an answer (`render`).
"""
