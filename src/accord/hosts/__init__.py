"""Coding agents of other vendors: how they are connected, and the hook that gates their calls."""
