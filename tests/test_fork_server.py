"""The process that test servers are forked from."""

import os

import pytest

from tests.helpers.servers import fork_server


def test_new_process_does_not_get_the_exit_status_of_an_earlier_one_with_its_id(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(fork_server, "statuses", {4711: -9})
    monkeypatch.setattr(os, "fork", lambda: 4711)

    assert fork_server.fork([], "log", ".", {}) == 4711

    assert fork_server.statuses == {}
