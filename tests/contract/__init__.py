"""One suite per port: an adapter is right when it passes, and never before."""
