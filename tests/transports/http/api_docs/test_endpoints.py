"""What the server says of itself to programs."""

from collections.abc import Iterator

import httpx
import jsonschema
import pytest

from accord.transports.http.api_docs.endpoints import DOCUMENTS
from tests.helpers.servers.server_process import ServerProcess, run_server
from tests.spec import proves


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    with run_server(tmp_path_factory.mktemp("house")) as server:
        yield server


@pytest.mark.parametrize("path", [path for path, _, _ in DOCUMENTS])
def test_it_is_there_for_everybody_and_sent_once(house: ServerProcess, path: str) -> None:
    first = httpx.get(house.url + path)
    assert first.status_code == 200
    assert first.json()
    again = httpx.get(house.url + path, headers={"if-none-match": first.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")


@proves("PVP-B-1")
def test_the_schema_is_where_its_name_says(house: ServerProcess) -> None:
    found = httpx.get(f"{house.url}/schema/v1/pvp.schema.json")
    assert found.headers["content-type"] == "application/schema+json"
    jsonschema.Draft202012Validator.check_schema(found.json())
    assert house.url + found.json()["$id"] == str(found.url)
