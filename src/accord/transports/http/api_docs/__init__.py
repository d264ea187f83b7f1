"""The published description of the API: OpenAPI, JSON Schema and AsyncAPI."""
