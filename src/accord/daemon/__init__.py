"""The daemon that gate hooks ask: one per user, with the agents' identities and connections."""
