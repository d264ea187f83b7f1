"""The former module path, which hooks installed by 0.1.0 still import."""

from accord.git import hook
from accord.git.hooks import dispatch


def test_former_module_path_still_runs_the_hooks() -> None:
    assert (hook.main, hook.leave) == (dispatch.main, dispatch.exit_now)
