"""`accord login` and `accord logout`: a one-time code becomes a profile, and back."""

from collections.abc import Mapping
from typing import NamedTuple
from urllib.parse import parse_qs, urlsplit, urlunsplit

import msgspec

from accord.api.people import SignedIn, SignInRequest
from accord.client.errors import ClientError
from accord.client.http_client import HttpClient
from accord.client.identity import parse_address
from accord.client.sign_in.profile_token import ProfileToken, expiry_of
from accord.settings.profile_store import (
    locked_profiles,
    new_device_key,
    write_profiles,
)
from accord.settings.profiles import (
    Profile,
    ProfileError,
    may_carry_token,
    plain_http_sentence,
    server_address,
)

SIGN_IN_PATH = ("sign-in",)
DEVICES_PATH = ("sign-in", "devices")
CODE_PARAMETER = "code"


class SignInLink(NamedTuple):
    """A server's address, and the one-time code if the link has one."""

    url: str
    code: str


def parse_link(text: str) -> SignInLink:
    """Split `URL#code=CODE`; raises ProfileError if there is no address in it."""
    parts = urlsplit(text.strip())
    code = parse_qs(parts.fragment).get(CODE_PARAMETER, [""])[0]
    bare = urlunsplit((parts.scheme, parts.netloc, parts.path, "", ""))
    return SignInLink(server_address(bare), code)


def make_link(url: str, code: str) -> str:
    """The link that signs in; a browser does not send the part behind `#`."""
    return f"{url.rstrip('/')}#{CODE_PARAMETER}={code}"


async def log_in(
    link: SignInLink, env: Mapping[str, str], name: str = ""
) -> tuple[Profile, SignedIn]:
    """Use the code, and store the profile; it is the current one from now on.

    Raises ProfileError before the code is used if the profile could not be stored.
    """
    if not may_carry_token(link.url):
        raise ProfileError(plain_http_sentence(link.url))
    with locked_profiles(env) as stored:
        private, public = new_device_key()
        request = msgspec.json.encode(SignInRequest(code=link.code, public_key=public))
        http = HttpClient(parse_address(link.url))
        account = await http.read(SignedIn, SIGN_IN_PATH, method="POST", body=request)
        token = account.token or ""
        profile = Profile(
            name or f"{account.id}@{urlsplit(link.url).netloc}",
            url=link.url,
            server=account.server,
            id=account.id,
            device=account.device,
            key=private,
            token=token,
            expires_at=expiry_of(token),
        )
        replaced = stored.by_name.get(profile.name)
        stored.by_name[profile.name] = profile
        stored.current = profile.name
        write_profiles(env, stored)
    if replaced is not None and (replaced.url, replaced.id) == (profile.url, profile.id):
        await revoke_quietly(http_of(profile, env), (*DEVICES_PATH, replaced.device))
    return profile, account


async def log_out(profile: Profile, env: Mapping[str, str]) -> bool:
    """Revoke the device and remove the profile; False if the server did not confirm.

    The profile is removed in any case.
    """
    revoked = await revoke_quietly(http_of(profile, env), SIGN_IN_PATH)
    with locked_profiles(env) as stored:
        stored.by_name.pop(profile.name, None)
        if stored.current == profile.name:
            stored.current = ""
        write_profiles(env, stored)
    return revoked


def http_of(profile: Profile, env: Mapping[str, str]) -> HttpClient:
    """Sends requests as the profile's person."""
    return HttpClient(parse_address(profile.url), ProfileToken(profile, env))


async def revoke_quietly(http: HttpClient, path: tuple[str, ...]) -> bool:
    """Revoke a device; False if it could not be done."""
    try:
        await http.request(path, method="DELETE")
    except (ClientError, ProfileError):
        return False
    return True
