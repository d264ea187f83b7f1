"""Request and response shapes of the HTTP API, which server and client share.

The server describes them in OpenAPI; the client decodes them.
"""
