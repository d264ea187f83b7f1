"""The data directory notes which store a server uses, without secrets."""

from pathlib import Path

import pytest

from accord.data_dir import STORE_NAME_FILE, note_store, public_store_name, store_in_use


@pytest.mark.parametrize(
    ("url", "name"),
    [
        (
            "postgresql://ann:secret@db.example:5433/accord?sslmode=require",
            "postgresql://db.example:5433/accord",
        ),
        ("postgresql:///accord?host=/run/postgresql&password=secret", "postgresql:///accord"),
        ("postgres://db.example/accord", "postgres://db.example/accord"),
        (
            "nats://u:secret@a.example,u:p@b.example:4222/log?copy=x",
            "nats://a.example,b.example:4222/log",
        ),
    ],
)
def test_name_of_a_store_has_no_credentials(url: str, name: str, tmp_path: Path) -> None:
    note_store(tmp_path, url)

    assert public_store_name(url) == store_in_use(tmp_path) == name
    assert "secret" not in (tmp_path / STORE_NAME_FILE).read_text()


@pytest.mark.parametrize("own", ["sqlite:/data/accord.db", "memory:"])
def test_file_of_the_directory_needs_no_note(own: str, tmp_path: Path) -> None:
    note_store(tmp_path, own)
    assert store_in_use(tmp_path) == ""
    note_store(tmp_path, "nats://a.example")

    note_store(tmp_path, own)

    assert store_in_use(tmp_path) == ""
    assert list(tmp_path.iterdir()) == []
