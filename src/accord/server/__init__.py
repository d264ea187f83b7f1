"""The assembled server: application, listening socket, start and stop."""
