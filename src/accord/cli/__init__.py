"""The command line: one command, one file; its docstring is the help."""
