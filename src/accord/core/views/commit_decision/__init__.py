"""The decision behind a commit, computed from the records of its session."""
