"""The loop between transports and the log, and the ports through which it reaches the outside."""
