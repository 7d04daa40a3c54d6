"""The command line: options in, one function called, text or JSON and an exit code out. Not here: any decision."""
