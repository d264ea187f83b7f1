"""The options of a server process, and the id of the operator who starts it."""

import os
from pathlib import Path
from typing import TYPE_CHECKING

from accord.data_dir import store_url_of
from accord.settings.server import ServerConfig

if TYPE_CHECKING:
    from accord.settings.server.certificate_reload import CertificateReloader


class ServerOptions(ServerConfig, frozen=True, kw_only=True):
    """The settings of a server, and where its data is."""

    home: Path
    sign_in_link: bool = False  # whether the operator gets a one-time code at start

    @classmethod
    def from_config(
        cls, config: ServerConfig, home: Path, *, sign_in_link: bool = False
    ) -> "ServerOptions":
        """From flags, environment and configuration file."""
        settings = {name: getattr(config, name) for name in config.__struct_fields__}
        return cls(**settings, home=home, sign_in_link=sign_in_link)

    def load_certificate(self) -> "CertificateReloader | None":
        """The TLS certificate, if configured; Refused if it cannot be used."""
        if self.tls is None:
            return None
        from accord.settings.server.certificate_reload import (
            CertificateReloader,  # imported late: most servers have a proxy for TLS
        )

        return CertificateReloader(*self.tls)

    @property
    def store_url(self) -> str:
        """URL of the store; defaults to a file in the data directory."""
        return store_url_of(self.home, self.store)


def account_name() -> str:
    """The name of the operating-system user; empty for one without an account, as in containers."""
    import pwd  # only where the environment does not say it

    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return ""


def operator_id() -> str:
    """Participant id of the operating-system user who started the server."""
    name = os.environ.get("SUDO_USER") or os.environ.get("USER") or account_name()
    slug = "".join(c if c.isalnum() and c.isascii() else "-" for c in name.lower()).strip("-")
    return slug if slug and slug != "system" else "admin"
