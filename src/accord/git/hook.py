"""Former location of `accord.git.hooks.dispatch`; hooks installed by 0.1.0 still import it."""

from accord.git.hooks.dispatch import exit_now as leave
from accord.git.hooks.dispatch import main

__all__ = ["leave", "main"]
