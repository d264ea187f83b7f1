"""Hooks ask a server elsewhere through the proxy of the environment, as commands do."""

from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple
from urllib import request

import pytest

from accord.git.http.proxies import proxy_for
from tests.helpers.git.server_elsewhere import ServerElsewhere, profiles_file
from tests.helpers.git.work_tree import WorkTree
from tests.helpers.servers.certificates import CertificateAuthority, trust_authority
from tests.helpers.servers.connect_proxy import run_connect_proxy
from tests.helpers.servers.server_process import run_server

HOST = "accord.example.test"  # a name that nobody but the proxy can resolve
URL = f"https://{HOST}"
REFUSAL = "407 Proxy Authentication Required"


class Office(NamedTuple):
    """A person, and a server that only a proxy can reach."""

    alice: WorkTree
    elsewhere: ServerElsewhere


@pytest.fixture
def office(work: WorkTree, tmp_path: Path) -> Iterator[Office]:
    authority = CertificateAuthority(tmp_path / "authority")
    flags = authority.issue_certificate(names=(HOST, "127.0.0.1")).server_flags
    with (
        trust_authority(authority),
        run_server(tmp_path / "tls", "token", *flags, "--public-url", URL) as server,
    ):
        alice = work.with_environment(SSL_CERT_FILE=str(authority.file))
        yield Office(alice, ServerElsewhere(server))


def sign_in(office: Office, person: WorkTree) -> None:
    """A profile for the name, made through the proxy by the command."""
    request = {"id": "alice", "roles": ["admin", "driver"]}
    code = office.elsewhere.server.admin_request("POST", "/admin/invitations", request)["code"]
    ran = person.accord("login", f"{URL}#code={code}")
    assert ran.code == 0, ran.err


def test_a_commit_gets_its_record_through_a_proxy_in_one_tunnel_for_each_hook(
    office: Office,
) -> None:
    """Also the hook that renews the token asks over one connection."""
    with run_connect_proxy(office.elsewhere.server.port) as proxy:
        person = office.alice.with_environment(HTTPS_PROXY=f"http://olga:s%3Acret@{proxy.netloc}")
        sign_in(office, person)
        office.elsewhere.bind(person)
        office.elsewhere.prompt("Add a login")
        file = profiles_file(person)
        lines = file.read_text().splitlines(keepends=True)
        file.write_text(
            "".join("expires_at = 1\n" if "expires" in each else each for each in lines)
        )
        proxy.heads.clear()

        person.commit("feat: add a login")

    assert "expires_at = 1\n" not in file.read_text()
    assert "Add a login" in person.note()
    assert proxy.targets == [f"{HOST}:443"] * 2
    credentials = b64encode(b"olga:s:cret")
    assert all(b"Proxy-Authorization: Basic " + credentials in head for head in proxy.heads)


def test_a_proxy_that_refuses_leaves_the_commit_as_it_is(office: Office) -> None:
    with run_connect_proxy(office.elsewhere.server.port) as proxy:
        person = office.alice.with_environment(HTTPS_PROXY=f"http://{proxy.netloc}")
        sign_in(office, person)
        office.elsewhere.bind(person)
    office.elsewhere.prompt("Add a login")
    with run_connect_proxy(office.elsewhere.server.port, REFUSAL) as proxy:
        refused = person.with_environment(https_proxy=proxy.netloc)
        refused.commit("feat: add a login")
        assert set(proxy.targets) == {f"{HOST}:443"}

    assert refused.trailers() == {}


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "::1"])
def test_this_machine_is_asked_without_a_proxy(host: str) -> None:
    assert proxy_for(host, 443, {"HTTPS_PROXY": "http://proxy.example"}) == ""


@pytest.mark.parametrize(
    "exceptions",
    [
        "",
        "*",
        "example.test",
        ".example.test",
        "ACCORD.example.test",
        "accord.example.test:8443",
        "accord.example.test:443",
        "other.test, example.test",
        "ample.test",
        "cord.example.test",
        "*.example.test",
        ",",
    ],
)
def test_exceptions_are_those_of_the_commands(exceptions: str) -> None:
    env = {"HTTPS_PROXY": "http://proxy.example", "NO_PROXY": exceptions}

    proxy = proxy_for(HOST, 8443, env)

    # The standard library's own rule, which the commands follow; type stubs do not know it.
    excepted = getattr(request, "proxy_bypass_environment")(f"{HOST}:8443", {"no": exceptions})  # noqa: B009
    assert proxy == ("" if excepted else "http://proxy.example")


@pytest.mark.parametrize(
    ("env", "proxy"),
    [
        ({}, ""),
        ({"HTTP_PROXY": "http://a.example"}, ""),
        (
            {"HTTPS_PROXY": "http://a.example", "https_proxy": "http://b.example"},
            "http://b.example",
        ),
        ({"HTTPS_PROXY": "http://a.example", "https_proxy": ""}, ""),
    ],
)
def test_the_variable_in_lower_case_wins(env: dict[str, str], proxy: str) -> None:
    assert proxy_for(HOST, 443, env) == proxy
