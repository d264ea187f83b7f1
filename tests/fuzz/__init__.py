"""Bytes from outside, tried at random and steered by which code they reach.

    python -m tests.fuzz                      lists the targets
    python -m tests.fuzz envelope             tries one for a minute
    python -m tests.fuzz envelope --seconds 3600 --keep
    python -m tests.fuzz envelope --replay .fuzz/envelope/crash-…

A target is a module here: `seeds` gives it something to begin with, `trial` makes the function that
takes any bytes and raises what must not happen, `plant` puts a defect in that the target must find.
`corpus/` holds inputs that reached something new; every test run tries them, also where the fuzzer
itself cannot be had.
"""
