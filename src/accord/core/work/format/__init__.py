"""File formats of Pact: log lines, STATE.yml, task files."""
