"""All hosts that can be connected, by name."""

from collections.abc import Mapping

from accord.hosts.adapters import claude_code, codex, cursor, gemini, opencode
from accord.hosts.adapters.host import HostAdapter

HOSTS: Mapping[str, HostAdapter] = {
    module.ADAPTER.name: module.ADAPTER for module in (claude_code, codex, gemini, opencode, cursor)
}
