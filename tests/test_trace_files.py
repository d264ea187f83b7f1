"""One proposal on its way to a git note crosses few files: small modules stay together."""

from tools.trace_files import package_of, trace

MAX_FILES = 69


def test_a_proposal_crosses_fewer_than_seventy_files_on_its_way_to_its_git_note() -> None:
    files = trace()

    # The ends of the way, so that a trace which misses a part of it does not count as short.
    assert "Connection.on_ws_frame" in files["transports/websocket/connection.py"]
    assert "propose_tool" in files["core/room/approval/tool_proposals.py"]
    assert "add_trailers" in files["git/hooks/message_hooks.py"]
    assert "record_commit" in files["git/hooks/post_commit.py"]
    assert len(files) <= MAX_FILES, sorted(files, key=lambda file: (package_of(file), file))
