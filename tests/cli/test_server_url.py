"""Server addresses as people type them."""

import pytest

from accord.cli.server_url import check_url
from accord.core.kernel.refusal import Refused


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("localhost:7420", "http://localhost:7420"),
        ("127.0.0.1:7420", "http://127.0.0.1:7420"),
        ("[::1]:7420", "http://[::1]:7420"),
        ("localhost", "http://localhost"),
        ("accord.example.org", "https://accord.example.org"),
        ("accord.example.org:8443/base", "https://accord.example.org:8443/base"),
        ("http://accord.example.org", "http://accord.example.org"),
    ],
)
def test_an_address_without_a_scheme_is_completed(typed: str, meant: str) -> None:
    assert check_url(typed) == meant


@pytest.mark.parametrize("typed", ["nonsense", "", "ftp://x.org", "http://", "x y.org", "a:b"])
def test_what_is_no_address_is_refused(typed: str) -> None:
    with pytest.raises(Refused, match="is not a server address"):
        check_url(typed)
