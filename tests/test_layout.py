"""Sizes of folders and files, and names that occur in more than one package."""

import ast
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

SOURCE = Path(__file__).resolve().parent.parent / "src" / "accord"
MAX_MODULES = 17
MAX_LINES = 450

Reasons = Mapping[str, Iterable[str]]

# Module names that occur in more than one package, by the reason.
SHARED_MODULE_NAMES: Reasons = {
    "every group of commands has its entry": ["command"],
    "every context, and the timeline, has its state": ["state"],
    "every store has this part": ["log", "pruning", "reader", "writer"],
    "each is the schema of its file or database": ["schema"],
    "each package turns the errors of a library or protocol into its own": ["errors"],
    "each context has one; the kernel's defines what it is, and a session's is its documents": [
        "context"
    ],
    "the command, and what it does": [
        *("attestation", "backup", "forks", "gates", "heartbeats", "inbox", "login", "membership"),
        *("relay", "remotes", "verify", "watch", "why"),
    ],
    "the shapes of a subject (api), its routes (transports), its rules or views (core)": [
        *("decisions", "git_hooks", "home", "pacts", "people", "responses", "session_threads"),
        *(
            "sessions",
            "sign_in",
            "signed_policies",
            "standing_grants",
            "threads",
            "tokens",
            "wakes",
        ),
        "votes",
    ],
    "each transport has its table of them": ["endpoint", "endpoints"],
    "the rules of a verb or card, and what performs or prints it": ["gate_card", "verbs"],
    "each accepts or serves on a socket": ["connection", "server"],
    "each is what a transport calls to do the work": ["service"],
    "of the room: what a join means; of the engine: how it is delivered": ["delivery", "joining"],
    "the client's settings, and the client": ["client"],
    "who somebody is: a key file, and the options that choose one": ["identity"],
    "what was said, as a reader of it needs it": ["conversation"],
    "the words of a subject": ["vocabulary"],
    "what the rules note of a delivery, and where the server asks for it": ["delivery_marks"],
    "the data of a subject": ["model"],
    "what is told about calls, and about items": ["reports"],
    "a repository on this machine": ["repository"],
}

# Class names that occur in more than one package, by the reason.
SHARED_CLASS_NAMES: Reasons = {
    "every store has this part": ["AppendJob", "Reader", "TailWatch", "Writer"],
    "the message or record, and its shape in a request or answer": [
        *("AckRead", "CallTarget", "EndedGate", "PostedMessage", "ReadyInfo", "StepResult"),
        *("TranscriptPage", "EncodedRecord"),
    ],
    "what it consists of, for its producer and for its verifier": ["Claims", "DecisionLink"],
    "the record on the log, and what a hook made of it": ["CommitRecord"],
    "MCP's word, in the tools and in what defines them": ["Annotations"],
    "each side of the pipe or socket with this name": ["Bridge", "Connection", "Relay"],
    "who acts, with a key": ["Identity", "Signer"],
    "PVP's, the pact's and the terminal's own word for it": [
        *("Cursor", "Member", "Profile", "Prompt", "Question", "Seat", "Token"),
    ],
    "what was said, as a reader of it needs it": ["Conversation"],
    "the text of a program that is run step by step": ["Script"],
    "how something ended": ["Outcome"],
    "something found": ["Finding"],
    "the process of a coding agent": ["HostProcess"],
    "a part of a text under a heading": ["Section"],
}


def modules() -> list[Path]:
    return sorted(SOURCE.rglob("*.py"))


def shared(places: Iterable[tuple[str, Path]]) -> set[str]:
    """The names that occur in more than one folder."""
    folders = defaultdict[str, set[Path]](set)
    for name, folder in places:
        folders[name].add(folder)
    return {name for name, found in folders.items() if len(found) > 1}


def module_names() -> Iterator[tuple[str, Path]]:
    for path in modules():
        if not path.stem.startswith("__"):
            yield path.stem, path.parent


def class_names() -> Iterator[tuple[str, Path]]:
    for path in modules():
        for node in ast.parse(path.read_text("utf-8")).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                yield node.name, path.parent


def listed(table: Reasons) -> set[str]:
    return {name for names in table.values() for name in names}


def test_no_folder_has_too_many_modules() -> None:
    folders = {path.parent for path in modules()}
    counts = {
        folder.relative_to(SOURCE).as_posix(): len(list(folder.glob("[!_]*.py")))
        for folder in folders
    }
    assert {name: count for name, count in counts.items() if count > MAX_MODULES} == {}


def test_no_file_is_too_long() -> None:
    lengths = {
        path.relative_to(SOURCE).as_posix(): path.read_text("utf-8").count("\n")
        for path in modules()
    }
    assert {name: length for name, length in lengths.items() if length > MAX_LINES} == {}


def test_module_names_in_several_packages_are_listed_with_a_reason() -> None:
    assert shared(module_names()) ^ listed(SHARED_MODULE_NAMES) == set()


def test_class_names_in_several_packages_are_listed_with_a_reason() -> None:
    assert shared(class_names()) ^ listed(SHARED_CLASS_NAMES) == set()
