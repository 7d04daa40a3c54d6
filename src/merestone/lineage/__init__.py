"""The record of every move: events, their store, and reading them.

Not here: what the stages do (`normalise`, `gate`, `change`, `publish`), rendering of results (`render`).
"""
