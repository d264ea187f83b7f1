"""What pages of other sites, and names that are pointed at this machine, get here: nothing."""

import pytest

from accord.core.kernel.refusal import Refused
from accord.transports.edge.origin import check_origin
from tests.helpers.attacks.approval_scene import get
from tests.helpers.servers.server_process import ServerProcess


async def test_on_trust_a_foreign_host_name_reads_nothing(open_server: ServerProcess) -> None:
    for path in ("/sessions?as=alice", "/", "/healthz"):
        assert (await get(f"{open_server.url}{path}", Host="evil.example"))[0] == 403
    assert (await get(f"{open_server.url}/sessions?as=alice"))[0] == 200


async def test_a_page_of_another_site_reads_and_changes_nothing(server: ServerProcess) -> None:
    token = server.issue_token("alice")
    for path in ("/sessions", "/sessions/x", "/admin/tokens"):
        status, said = await get(server.url + path, token, Origin="http://evil.example")
        assert status == 403
        assert "evil.example" in said["error"]["message"]


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
async def test_on_trust_an_image_of_another_page_keeps_nobody_present(
    open_server: ServerProcess, site: str
) -> None:
    sent = {"Sec-Fetch-Site": site, "Sec-Fetch-Mode": "no-cors", "Sec-Fetch-Dest": "image"}
    for path in ("/sessions", "/sessions/x/messages", "/sessions/x/events"):
        assert (await get(f"{open_server.url}{path}?as=alice", **sent))[0] == 403
    sent["Sec-Fetch-Site"] = "same-origin"
    assert (await get(f"{open_server.url}/sessions?as=alice", **sent))[0] == 200


async def test_a_page_of_this_server_reads_what_its_token_may(server: ServerProcess) -> None:
    token = server.issue_token("alice")
    assert (await get(f"{server.url}/sessions", token, Origin=server.url))[0] == 200


async def test_a_balancer_hears_that_the_server_is_alive(server: ServerProcess) -> None:
    assert (await get(f"{server.url}/healthz", Host="balancer.internal"))[0] == 200


@pytest.mark.parametrize(
    ("hosts", "origins"),
    [
        ([], []),
        (["localhost", "localhost"], []),
        (["[::1"], []),
        (["localhost.evil.example"], []),
        (["127.0.0.1.evil.example:80"], []),
        (["localhost:1"], ["null"]),
        (["localhost:1"], ["http://localhost:2"]),
        (["localhost:1"], ["http://localhost:1", "http://evil.example"]),
        (["localhost:1"], ["http://[::1"]),
    ],
)
def test_on_trust_only_this_machine_is_named(hosts: list[str], origins: list[str]) -> None:
    with pytest.raises(Refused):
        check_origin(hosts, origins, loopback_only=True)


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:7420", "127.0.0.1:1", "[::1]:7420"])
def test_on_trust_this_machine_goes_by_many_names(host: str) -> None:
    check_origin([host], [f"http://{host}"], loopback_only=True)
