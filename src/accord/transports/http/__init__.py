"""The HTTP API: routing, authentication, responses, errors."""
