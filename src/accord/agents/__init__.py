"""Participants that are programs; they speak the client like anybody else."""
