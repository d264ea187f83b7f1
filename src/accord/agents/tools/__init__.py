"""The tools that a model of ours can call, and what is reported about each call."""
