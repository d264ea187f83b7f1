"""A host's terminal under a PTY of ours, so that its agent can be woken at an empty prompt."""
