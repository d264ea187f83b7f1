"""A real nginx with the configuration of the page on several servers."""

import contextlib
import os
import re
import socket
import subprocess
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from tests.helpers.servers.certificates import CertificateFiles
from tests.helpers.servers.postgres_server import free_port
from tools.test_programs import NGINX

PAGE = Path(__file__).resolve().parents[3] / "docs" / "how-to" / "scale.md"
START_TIMEOUT_S = 60.0
# What a distribution's own nginx.conf says around a site; nothing outside the directory is written.
FRAME = """
{user}
daemon off;
worker_processes 1;
pid {folder}/nginx.pid;
error_log {folder}/error.log;
events {{ worker_connections 512; }}
http {{
    access_log off;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
{site}
}}
"""


def documented_site() -> str:
    """The configuration that the page shows."""
    found = re.search(r"^```nginx\n(.*?)^```$", PAGE.read_text("utf-8"), re.DOTALL | re.MULTILINE)
    assert found is not None
    return found[1]


def site_for(ports: Sequence[int], port: int, certificate: CertificateFiles) -> str:
    """The page's configuration with the addresses and files of a test."""
    places = {
        f"10.0.0.{11 + number}:7420": f"127.0.0.1:{upstream}"
        for number, upstream in enumerate(ports)
    }
    changed = places | {
        "listen 443": f"listen 127.0.0.1:{port}",
        "accord.example.org": "localhost",
        "/etc/ssl/accord.pem": str(certificate.cert),
        "/etc/ssl/accord.key": str(certificate.key),
    }
    site = documented_site()
    for documented, real in changed.items():
        assert site.count(documented) == 1, documented
        site = site.replace(documented, real)
    return site


@contextlib.contextmanager
def nginx_in_front_of(
    ports: Sequence[int], folder: Path, certificate: CertificateFiles
) -> Iterator[str]:
    """The proxy's URL."""
    program = NGINX.find()
    if program is None:
        (pytest.fail if os.environ.get("CI") else pytest.skip)(NGINX.how_to_install)
    folder.mkdir()
    port = free_port()
    user = "user root;" if os.geteuid() == 0 else ""
    text = FRAME.format(user=user, folder=folder, site=site_for(ports, port, certificate))
    (folder / "nginx.conf").write_text(text)
    log = folder / "error.log"
    words = [str(program), "-p", str(folder), "-e", str(log), "-c", str(folder / "nginx.conf")]
    with subprocess.Popen(words, stdin=subprocess.DEVNULL) as process:
        try:
            deadline = time.monotonic() + START_TIMEOUT_S
            while not accepts(port):
                assert process.poll() is None, log.read_text()
                assert time.monotonic() < deadline, log.read_text()
                time.sleep(0.02)
            yield f"https://localhost:{port}"
        finally:
            process.terminate()


def accepts(port: int) -> bool:
    """Whether something listens."""
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
