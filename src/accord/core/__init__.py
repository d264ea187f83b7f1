"""What Accord knows: values in, values out; no clock, no chance, no I/O."""
