"""The page's files: where they are served, with which headers, and what they may contain."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Route
from starlette.testclient import TestClient

from accord.transports.http.page import (
    ASSETS_ROOT,
    BUILT_PAGE,
    INDEX,
    PageMiddleware,
    page,
    page_files,
    wants_page,
)

ROOT = Path(__file__).resolve().parents[3]
HTML = "text/html,application/xhtml+xml,*/*;q=0.8"


@pytest.fixture(scope="module")
def client() -> TestClient:
    other = Route("/{path:path}", lambda _: PlainTextResponse("the API"))
    app = Starlette(routes=[Route("/", page), other])
    return TestClient(PageMiddleware(app))


@pytest.mark.parametrize(
    "path",
    [
        *("/", "/s/01ABC", "/s/01ABC/f/01DEF", "/g/01ABC", "/why", "/board"),
        *("/threads", "/docket/a/b/c", "/people", "/settings", "/grants", "/sign-in"),
    ],
)
def test_page_answers_at_the_addresses_of_its_screens(client: TestClient, path: str) -> None:
    response = client.get(path, headers={"accept": HTML})

    assert response.status_code == 200
    assert response.headers["content-type"].startswith("text/html")
    assert response.headers["cache-control"] == "no-cache"


@pytest.mark.parametrize(
    "path", ["/sessions", "/sessions/01ABC", "/home", "/sign-in/devices", "/groups", "/index.html"]
)
def test_other_addresses_belong_to_the_api(client: TestClient, path: str) -> None:
    assert client.get(path, headers={"accept": HTML}).text == "the API"


def test_sign_in_answers_programs_with_json(client: TestClient) -> None:
    assert client.get("/sign-in", headers={"accept": "application/json"}).text == "the API"
    assert client.post("/sign-in", headers={"accept": HTML}).status_code == 405
    assert not wants_page("/sign-in", "*/*")


def test_page_allows_only_its_own_files_and_no_html_strings(client: TestClient) -> None:
    policy = client.get("/").headers["content-security-policy"]

    assert "default-src 'none'" in policy
    assert "require-trusted-types-for 'script'" in policy
    assert policy.endswith("; trusted-types accord-notices")
    assert "worker-src 'self'" in policy
    assert "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy
    assert "data:" not in policy


def test_the_one_policy_gives_the_address_of_a_worker_that_sees_no_request() -> None:
    made = [
        source
        for file in page_files().values()
        if "createPolicy" in (source := file.data.decode(errors="replace"))
    ]
    assert len(made) == 1
    assert re.search(r"createPolicy\([^)]*createScriptURL:\(\)=>", made[0])
    worker = page_files()["/notices-worker.js"]
    assert worker.headers["content-type"].startswith("text/javascript")
    assert worker.headers["cache-control"] == "no-cache"
    for word in (b"fetch", b"caches", b"importScripts", b"indexedDB"):
        assert word not in worker.data


def test_assets_are_immutable_and_compressed(client: TestClient) -> None:
    path = next(name for name in page_files() if re.fullmatch(r"/assets/first-.*\.js", name))

    response = client.get(path, headers={"accept-encoding": "gzip"})

    assert "immutable" in response.headers["cache-control"]
    assert response.headers["content-encoding"] == "gzip"
    assert response.content == (BUILT_PAGE / path.lstrip("/")).read_bytes()
    plain = client.get(path, headers={"accept-encoding": "identity"})
    assert "content-encoding" not in plain.headers


def test_page_is_not_sent_again_if_it_did_not_change(client: TestClient) -> None:
    tag = client.get("/").headers["etag"]

    again = client.get("/", headers={"if-none-match": tag})

    assert again.status_code == 304
    assert not again.content


def test_page_names_no_other_host() -> None:
    # Namespaces of SVG and MathML are names, and errors of libraries name a page to read; neither
    # is ever asked.
    allowed = ("http://www.w3.org/", "https://svelte.dev/e/", "https://github.com/markedjs/marked")
    for name, file in page_files().items():
        if not name.endswith((".js", ".css", ".html", ".svg", ".webmanifest")):
            continue
        found = re.findall(r"(?:https?|wss?)://[\w.-]+[^\s\"'`)]*", file.data.decode())
        assert not [url for url in found if not url.startswith(allowed)], name


def test_page_contains_the_licences_of_its_packages() -> None:
    text = (BUILT_PAGE / "licences.txt").read_text("utf-8")

    assert "svelte" in text
    assert "SIL OPEN FONT LICENSE" in text.upper()


# What is imported at once; a screen that is loaded later is in a call of `import()`.
STATIC_IMPORT = re.compile(r"""(?:from|import|src=|href=)\s*["']\.?/([\w./-]+\.(?:js|css))""")


def script_of(screen: str) -> str:
    return next(n for n in page_files() if n.startswith(f"/assets/{screen}-") and n.endswith("js"))


def loaded_first(screen: str) -> int:
    """Compressed bytes of script and style that the screen of this name needs."""
    found, wanted = set[str](), [INDEX, script_of(screen)]
    while wanted:
        name = wanted.pop()
        if name in found or name not in page_files():
            continue
        found.add(name)
        text = page_files()[name].data.decode()
        static = STATIC_IMPORT.findall(text)
        wanted += [f"/{each}" if "/" in each else f"{ASSETS_ROOT}{each}" for each in static]
    return sum(len(file.compressed or file.data) for n, file in page_files().items() if n in found)


def test_screen_of_a_gate_loads_little() -> None:
    assert 20 << 10 < loaded_first("Gate") < 60 << 10


@pytest.mark.network
@pytest.mark.timeout(300)
def test_built_page_is_what_the_sources_say(tmp_path: Path) -> None:
    words = [sys.executable, str(ROOT / "tools" / "page.py"), "build", "--out", str(tmp_path)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr

    assert contents(tmp_path) == contents(BUILT_PAGE), "run `make page` and commit the result"


def contents(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }
