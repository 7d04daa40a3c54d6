"""One function over many units, on all cores. Not here: what a unit does."""
