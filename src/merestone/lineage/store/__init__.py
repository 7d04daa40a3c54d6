"""The append-only store of events: writing and reading sealed runs. Not here: proofs (`proof`) and expiry (`retention`)."""
