"""Which approvals cover the content of a commit: what a call does to a file, and the rule."""
