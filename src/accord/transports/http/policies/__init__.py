"""Signed policies and standing grants over HTTP."""
