"""What every context shares: the log, actors, authority, ballots, refusals."""
