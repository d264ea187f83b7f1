"""Session messages over HTTP: post, poll and server-sent events."""
