"""Commit messages: parse, write and lint; trailers."""
