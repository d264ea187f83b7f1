"""Metrics, traces, the server log and event-loop lag."""
