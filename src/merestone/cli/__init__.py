"""The command line: options in, a function of `run` called, text or JSON and an exit code out. Not here: any decision."""
