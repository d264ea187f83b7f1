"""Signing in over HTTP: codes, proofs, cookies, devices, and people for operators."""
