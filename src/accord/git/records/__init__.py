"""Decision records in a repository: storage in refs and notes, relinking, exchange with remotes."""
