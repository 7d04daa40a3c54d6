"""Looking at published versions: finding them, filtering them, writing them to files. Not here: changing them."""
