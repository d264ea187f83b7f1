"""Streams in memory: state, cache, snapshots, start-up."""
