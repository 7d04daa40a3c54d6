"""Pass 2: candidates, transformed, snapped, judged and digested. Not here: how they differ from what is published (`line.comparing`)."""
