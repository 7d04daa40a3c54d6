"""The public library: one function for each thing that Merestone does. `import merestone` offers the names of this room.

Not here: any decision about data (the rooms below), words and exit codes (`cli`).
"""
