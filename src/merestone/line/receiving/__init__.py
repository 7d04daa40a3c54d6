"""Pass 1: every delivered row, read once. Not here: what becomes of the candidates (`line.processing`)."""
