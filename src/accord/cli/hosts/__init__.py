"""`accord connect` and `accord disconnect`: agents of other vendors in a session."""
