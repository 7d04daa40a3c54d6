"""What a delivery must satisfy before it is published: faults of rows, of the whole delivery, and the gate backwards (`infer`).

Not here: casts and transforms (`normalise`), the limits on change (`change.guards`), words on a screen (`render`).
"""
