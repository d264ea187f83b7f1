"""The one loop between transports and the log, and the ports it asks the world through."""
