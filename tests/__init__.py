"""The tests of Accord."""
