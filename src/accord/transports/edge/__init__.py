"""Defence against hostile bytes and slow clients, in front of every transport."""
