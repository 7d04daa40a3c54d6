"""What is true of reference systems, units and areas, on top of PROJ: identity, parameters, metres, areas of use, operations, grids by name.

Everything here is a value or a function of its arguments. PROJ's database counts as a constant; PROJ's process-wide settings (data folders,
network) are neither changed nor relied on. Not here: reading files (`source`), moving coordinates (`normalise.transform`).
"""
