"""What the server knows of repositories: the decisions behind their commits."""
