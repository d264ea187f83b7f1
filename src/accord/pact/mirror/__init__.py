"""The pacts of repositories, copied one way onto the server's log and told to their sessions."""
