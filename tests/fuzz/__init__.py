"""Fuzzing: bytes from outside, mutated at random and guided by the code they reach.

    python -m tests.fuzz                      lists the targets
    python -m tests.fuzz envelope             fuzzes one target for a minute
    python -m tests.fuzz envelope --seconds 3600 --keep
    python -m tests.fuzz envelope --replay .fuzz/envelope/crash-…

A target is a module here: `seeds` yields inputs to start from, `make_runner` returns the function
that takes any bytes and raises when something is wrong, `plant_defect` breaks the code in a way
that the target must notice. `corpus/` holds inputs that reached new code.

The default suite gives the same answer on every machine: it replays the corpus and runs a fixed
number of inputs from a fixed seed, without the fuzzer (`support/fixed_inputs.py`). `make soak`
fuzzes each target by time, with libFuzzer through atheris.
"""
