"""The rules of the kernel, in the order of a run."""
