"""Events and rejection logs of other tools. Not here: the product's own events (`line`)."""
