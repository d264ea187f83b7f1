"""The shelf: what lies there, for whom, and what becomes of it."""

import json
from hashlib import sha256
from typing import Any

import msgspec
import pytest
import rfc8785
from hypothesis import given as for_all
from hypothesis import strategies as st

from accord.core.dialects import pvp
from accord.core.dialects.codes import CODES
from accord.core.kernel.actor import POLICY, Actor
from accord.core.kernel.authority import Capability, Role
from accord.core.kernel.limits import Limits
from accord.core.kernel.log import fold
from accord.core.kernel.refusal import Refused, Why
from accord.core.room import CONTEXT
from accord.core.room.forks import ForkCreate
from accord.core.room.quota import OVERHEAD
from accord.core.room.shelf import (
    LARGEST_ITEM,
    ContextAdd,
    ContextAdded,
    ContextRemove,
    ContextRemoved,
    ContextUpdate,
    ContextUpdated,
    content_hash,
)
from accord.core.room.state import ContentRef, House, Item, Room
from tests.core.dialects.wire import QUICK, json_values
from tests.helpers.room import (
    ALICE,
    BOB,
    CAROL,
    CLAUDE,
    DAVE,
    T0,
    Facts,
    Step,
    after,
    given,
    joined,
    left,
    opened,
    prompts,
    refused,
    step,
    when,
)
from tests.spec import proves

R = Role
PEOPLE = {"alice": ALICE, "bob": BOB, "carol": CAROL, "claude": CLAUDE}


def adds(
    content: Any = "one\ntwo\n", *visible_to: str, key: str = "k", **fields: Any
) -> ContextAdd:
    kind = "structured" if isinstance(content, dict) else "text"
    whole = {"content_type": kind, "content": content, "visible_to": visible_to or None} | fields
    return ContextAdd(key=key, **whole)


def updates(key: str = "k", **fields: Any) -> ContextUpdate:
    return ContextUpdate(key=key, reason="Better", **(fields or {"new_content": "new"}))


def removes(key: str = "k") -> ContextRemove:
    return ContextRemove(key=key, reason="Old")


def ref(content: bytes = b"", **fields: Any) -> ContentRef:
    whole: dict[str, Any] = {"hash": sha256(content).hexdigest(), "size_bytes": len(content)}
    whole |= fields
    return ContentRef(mime_type="text/plain", storage="inline", **whole)


def some_room(*script: Step) -> Room:
    """Alice, Bob and Carol take part, Dave looks on, Claude drives."""
    return given(
        opened(),
        joined(BOB, R.DRIVER),
        joined(CAROL, R.NAVIGATOR),
        joined(DAVE, R.OBSERVER),
        joined(CLAUDE, R.DRIVER),
        *script,
    )


def item(room: Room, key: str = "k", fork: str = "") -> Item:
    return room.shelf[fork][key]


def heard(room: Room, facts: Facts) -> set[str]:
    """Everybody in the room who hears of any of it."""
    told: set[str] = set()
    for record in facts.records:
        to = CONTEXT.audience(room, record)
        told |= room.members.keys() if to is None else to
    return told


# Adding


@proves("PVP-9.1-1", "PVP-9.1-4")
def test_what_is_put_there_is_kept_as_it_was_given() -> None:
    body = adds({"a": [1]}, "carol", content_ref=ref(b'{"a":[1]}'), source="wiki", tags=("x", "y"))

    room = some_room(step(BOB, body, id="added"))

    kept = item(room)
    assert kept == Item(
        key="k",
        content_type="structured",
        content={"a": [1]},
        content_ref=ref(b'{"a":[1]}'),
        visible_to=frozenset({"carol"}),
        author="bob",
        source="wiki",
        tags=("x", "y"),
        changed=kept.changed,
        announced="added",
    )
    assert msgspec.json.decode(msgspec.json.encode(room), type=Room) == room


@proves("PVP-9.1-3", "OPEN-39")
def test_there_must_be_something_to_put() -> None:
    with refused(Why.MALFORMED, "content or content_ref"):
        when(some_room(), BOB, adds(None))
    assert when(some_room(), BOB, adds(""))
    assert when(some_room(), BOB, adds({}))


@proves("PVP-9.2-1", "OPEN-40")
@pytest.mark.parametrize("storage", ["inline", "local", "s3", "ipfs"])
def test_what_lies_elsewhere_is_known_by_its_reference_and_never_fetched(storage: Any) -> None:
    elsewhere = ContentRef("ab" * 32, 1 << 40, "text/plain", storage, "http://169.254.169.254/")

    room = some_room(step(BOB, adds(None, content_ref=elsewhere)))

    assert (item(room).content, item(room).content_ref) == (None, elsewhere)


@proves("PVP-5.2-1", "PVP-5.2-2", "OPEN-39", "OPEN-40")
@pytest.mark.parametrize(
    ("content", "hashed"),
    [
        ("", b""),
        ("ö\r\n", "ö\r\n".encode()),
        ({"b": 1, "a": "ö"}, '{"a":"ö","b":1}'.encode()),
        ({"b": 1, "a": "ö"}, '{"b":1,"a":"ö"}'.encode()),
        ({"n": 1e21}, b'{"n":1e+21}'),
        ({"n": 2**60}, b'{"n":1152921504606846976}'),
    ],
)
def test_content_and_reference_go_together_if_the_hash_is_right(
    content: Any, hashed: bytes
) -> None:
    assert when(some_room(), BOB, adds(content, content_ref=ref(hashed)))


@proves("PVP-5.2-1", "PVP-5.2-2", "OPEN-39", "OPEN-40")
@pytest.mark.parametrize(
    ("content", "wrong"),
    [
        ("a", ref(b"b")),
        ("a", ref(hash=sha256(b"a").hexdigest().upper())),
        ("a", ref(hash="sha256:" + sha256(b"a").hexdigest())),
        ("a", ref(b'"a"')),
        ({"a": 1}, ref(b'{"a": 1}')),
        ({"n": 2**60}, ref(b"{}")),
    ],
)
def test_a_reference_to_something_else_is_refused(content: Any, wrong: ContentRef) -> None:
    with refused(Why.MALFORMED):
        when(some_room(), BOB, adds(content, content_ref=wrong))


@proves("OPEN-40")
@QUICK
@for_all(st.dictionaries(st.text(), json_values, max_size=4), st.randoms())
def test_the_order_of_keys_does_not_change_a_hash(content: dict[str, Any], random: Any) -> None:
    keys = list(content)
    random.shuffle(keys)
    other = {key: content[key] for key in keys}

    def hashed(each: dict[str, Any]) -> str | Why:
        try:
            return content_hash(each)
        except Refused as no:
            return no.why

    assert hashed(content) == hashed(other)
    assert hashed(content) in (Why.MALFORMED, sha256(canonical(content)).hexdigest())
    given_order = ref(msgspec.json.encode(content))
    assert when(some_room(), BOB, adds(content, content_ref=given_order))


def canonical(content: dict[str, Any]) -> bytes:
    """The form of RFC 8785, or nothing where there is none."""
    try:
        return rfc8785.dumps(content)
    except rfc8785.CanonicalizationError:
        return b""


@proves("OPEN-39", "PVP-9.1-4")
def test_an_empty_list_is_not_everybody() -> None:
    whole = json.loads(pvp.told("m", T0, "r", adds()))
    whole["payload"]["visible_to"] = []

    with refused(Why.MALFORMED, "visible_to"):
        pvp.decode(json.dumps(whole).encode())


@proves("OPEN-39", "PVP-9.1-1")
def test_its_author_may_put_it_there_anew() -> None:
    room = some_room(
        step(BOB, adds("old", "carol", tags=("t",)), id="one"), step(BOB, adds("new"), id="two")
    )

    again = item(room)

    assert (again.content, again.visible_to, again.tags) == ("new", None, ())
    assert (again.announced, len(room.shelf[""])) == ("two", 1)


@proves("OPEN-39")
def test_others_may_not_and_learn_whose_it_is_only_if_they_see_it() -> None:
    room = some_room(step(BOB, adds("old", "carol")))

    with refused(Why.WRONG_STATE, "^k is bob's; update it, or choose another key$"):
        when(room, CAROL, adds())
    for who in (ALICE, CLAUDE):
        with refused(Why.WRONG_STATE, "^k is taken; choose another key$"):
            when(room, who, adds())


@proves("OPEN-10")
def test_an_observer_adds_nothing_unless_given_that_right() -> None:
    room = some_room(step(BOB, adds()))
    for body in (adds(key="other"), updates(), removes()):
        with refused(Why.FORBIDDEN, "add context"):
            when(room, DAVE, body)

    able = given(opened(), joined(DAVE, R.OBSERVER, capabilities=(Capability.ADD_CONTEXT,)))

    assert when(able, DAVE, adds())


# Who sees it


AUDIENCES = [((), {"alice", "bob", "carol", "dave", "claude"}), (("carol",), {"bob", "carol"})]


@proves("PVP-9.1-4", "OPEN-39", "UNI-12")
@pytest.mark.parametrize(("named", "seen"), AUDIENCES)
def test_those_who_see_it_hear_of_everything_about_it_and_nobody_else_does(
    named: tuple[str, ...], seen: set[str]
) -> None:
    room = some_room()
    added = when(room, BOB, adds("text\n", *named))
    room = after(room, added)

    changed = when(room, CAROL, updates())
    gone = when(after(room, changed), CAROL, removes())

    assert [heard(room, facts) for facts in (added, changed, gone)] == [seen] * 3


@proves("OPEN-39", "UNI-12")
@pytest.mark.parametrize("who", [ALICE, CLAUDE], ids=lambda who: who.seat)
@pytest.mark.parametrize(
    "body",
    [updates(), updates(diff="@@ -1 +1 @@\n-a\n+b\n"), updates(new_content_ref=ref()), removes()],
    ids=["content", "diff", "reference", "removal"],
)
def test_what_one_cannot_see_is_not_there(who: Actor, body: ContextUpdate) -> None:
    hidden = some_room(step(BOB, adds("secret plan", "carol")))

    with pytest.raises(Refused) as unseen:
        when(hidden, who, body)
    with pytest.raises(Refused) as unknown:
        when(some_room(), who, body)

    for no in (unseen.value, unknown.value):
        assert (no.why, no.detail, no.details) == (
            *(Why.UNKNOWN, "There is no context k here", None),
        )


@proves("OPEN-39")
def test_an_author_who_did_not_name_herself_still_sees_it() -> None:
    room = some_room(step(BOB, adds("a\n", "carol")))

    room = given(step(BOB, updates(diff="@@ -1 +1 @@\n-a\n+b\n")), room=room)

    assert item(room).content == "b\n"
    assert heard(room, when(room, BOB, removes())) == {"bob", "carol"}


@proves("OPEN-39")
def test_an_update_keeps_who_sees_it_and_whose_it_is() -> None:
    room = some_room(step(BOB, adds("a", "carol", source="wiki", tags=("t",)), id="added"))

    now = item(given(step(CAROL, updates(new_content="b")), room=room))

    assert now.changed > item(room).changed
    assert now == msgspec.structs.replace(item(room), content="b", changed=now.changed)


@proves("OPEN-39", "UNI-12")
@QUICK
@for_all(
    st.none() | st.sets(st.sampled_from([*PEOPLE, "dave", "later"]), min_size=1),
    st.sampled_from(sorted(PEOPLE)),
    st.sampled_from(sorted(PEOPLE)),
)
def test_seeing_hearing_changing_and_being_told_later_are_one_thing(
    named: set[str] | None, author: str, other: str
) -> None:
    body = adds("text", *sorted(named or ()))
    room = some_room(step(PEOPLE[author], body, id="added"))
    sees = named is None or other in named or other == author

    recalled = [each.body for each in CONTEXT.welcome(room, other)]
    try:
        told = other in heard(room, when(room, PEOPLE[other], updates()))
        gone = other in heard(room, when(room, PEOPLE[other], removes()))
    except Refused:
        told = gone = False

    assert (body in recalled, told, gone) == (sees, sees, sees)


@proves("OPEN-39", "UNI-12")
def test_somebody_who_comes_in_is_told_what_lies_there_for_them_as_it_is_now() -> None:
    room = some_room(
        step(BOB, adds("old", "carol", source="wiki", tags=("t",)), id="one"),
        step(BOB, updates(new_content="new")),
        step(ALICE, adds({"a": 1}, key="all", content_ref=ref(b'{"a":1}')), id="two"),
        step(ALICE, adds("x", "bob", key="hidden")),
    )

    (mine, common) = (each for each in CONTEXT.welcome(room, "carol") if each.body.type[0] == "c")

    assert (mine.id, mine.sender, mine.secret) == ("one", "bob", None)
    assert mine.body == adds("new", "carol", source="wiki", tags=("t",))
    assert (common.id, common.body) == (
        "two",
        adds({"a": 1}, key="all", content_ref=ref(b'{"a":1}')),
    )


def test_what_was_put_there_outlives_its_author_s_leave() -> None:
    room = some_room(step(BOB, adds("text", "carol")), left(BOB))

    assert item(room).author == "bob"
    assert when(room, CAROL, removes())


@proves("OPEN-39")
def test_a_prompt_names_what_its_submitter_sees_and_delivers_what_its_agent_sees() -> None:
    room = some_room(
        step(BOB, adds(key="all")),
        step(BOB, adds("x", "carol", key="people")),
        step(ALICE, adds("x", "carol", key="hidden")),
    )
    keys = ("all", "people", "nowhere")
    naming = msgspec.structs.replace(prompts(), context_keys=keys)

    (submitted,) = when(room, BOB, naming).records

    assert msgspec.to_builtins(submitted.said)["context_keys"] == ("all", "nowhere")
    with refused(Why.FORBIDDEN, "hidden"):
        when(room, BOB, msgspec.structs.replace(prompts(), context_keys=("all", "hidden")))


# Changing and removing


@proves("PVP-9.3-1", "OPEN-40")
@pytest.mark.parametrize(
    ("body", "content", "content_ref"),
    [
        (updates(diff="@@ -2 +2 @@\n-two\n+2\n"), "one\n2\n", None),
        (updates(new_content="new"), "new", None),
        (updates(new_content=""), "", None),
        (updates(new_content={"a": 1}), {"a": 1}, None),
        (updates(new_content_ref=ref(b"x")), None, ref(b"x")),
    ],
)
def test_it_is_changed_by_a_diff_by_content_or_by_reference(
    body: ContextUpdate, content: Any, content_ref: ContentRef | None
) -> None:
    room = some_room(step(BOB, adds(content_ref=ref(b"one\ntwo\n"))), step(CLAUDE, body))

    assert (item(room).content, item(room).content_ref) == (content, content_ref)


@proves("OPEN-40")
@pytest.mark.parametrize(
    "ways",
    [
        {"diff": None},
        {"diff": "", "new_content": ""},
        {"diff": "", "new_content_ref": ref()},
        {"new_content": {}, "new_content_ref": ref()},
        {"diff": "", "new_content": "", "new_content_ref": ref()},
    ],
)
def test_it_is_changed_in_exactly_one_way(ways: dict[str, Any]) -> None:
    with refused(Why.MALFORMED, "exactly one"):
        when(some_room(step(BOB, adds())), BOB, updates(**ways))


@proves("OPEN-40")
@pytest.mark.parametrize(
    ("content", "diff"),
    [
        ("one\ntwo\n", "@@ -2 +2 @@\n-three\n+3\n"),
        ("one\ntwo\n", "@@ -1 +1 @@\n-one\n+1\n@@ -2 +2 @@\n-three\n+3\n"),
        ("one\ntwo\n", "please change two to 2"),
        ("one\ntwo\n", ""),
        ({"one": "two"}, "@@ -1 +1 @@\n-one\n+1\n"),
        (None, "@@ -0,0 +1 @@\n+1\n"),
    ],
)
def test_a_diff_that_does_not_fit_changes_nothing(content: Any, diff: str) -> None:
    elsewhere = ref(b"x") if content is None else None
    room = some_room(step(BOB, adds(content, content_ref=elsewhere)))

    with refused(Why.WRONG_STATE):
        when(room, BOB, updates(diff=diff))

    assert CODES[Why.WRONG_STATE].pvp == "INVALID_STATE"


@proves("PVP-9.3-1")
def test_what_is_removed_is_gone_and_its_key_free() -> None:
    room = some_room(step(BOB, adds()), step(CAROL, removes()))

    assert room.shelf[""] == {}
    assert not room.removed[""], "no open fork will ask for it"
    for body in (updates(), removes()):
        with refused(Why.UNKNOWN):
            when(room, BOB, body)
    assert when(room, CAROL, adds())


def test_a_fork_has_a_shelf_of_its_own() -> None:
    fork = ForkCreate("Try", "prompt", "To see", ("claude",), copy_context=True)
    room = some_room(
        step(BOB, prompts(), id="prompt"),
        step(BOB, adds("trunk")),
        step(ALICE, fork),
        step(CLAUDE, updates(new_content="fork"), fork="try"),
        step(ALICE, adds("more", key="more"), fork="try"),
    )

    added = when(room, CLAUDE, adds(key="other"), fork="try")

    assert (item(room).content, item(room, fork="try").content) == ("trunk", "fork")
    assert "more" not in room.shelf[""]
    assert heard(room, added) == {"alice", "claude"}
    with refused(Why.UNKNOWN, "There is no context more here"):
        when(room, ALICE, removes("more"))


# Size


@proves("OPEN-40", "PVP-17-9")
@pytest.mark.parametrize(
    ("just", "more"),
    [
        ("x" * LARGEST_ITEM, "x" * (LARGEST_ITEM + 1)),
        ("ö" * (LARGEST_ITEM // 2), "ö" * (LARGEST_ITEM // 2 + 1)),
        ({"k": "x" * (LARGEST_ITEM - 8)}, {"k": "x" * (LARGEST_ITEM - 7)}),
    ],
    ids=["letters", "umlauts", "object"],
)
def test_one_mebibyte_is_the_most(just: Any, more: Any) -> None:
    room = some_room(step(BOB, adds(just)))

    for body in (adds(more, key="other"), adds(more), updates(new_content=more)):
        with pytest.raises(Refused) as no:
            when(room, BOB, body)
        assert CODES[no.value.why].pvp == "CONTEXT_TOO_LARGE"
        assert no.value.details == {"limit": "context_item", "most": 1 << 20}


@proves("OPEN-40")
def test_a_diff_cannot_make_it_larger_than_that() -> None:
    room = some_room(step(BOB, adds("x" * (LARGEST_ITEM - 1) + "\n")))

    with refused(Why.TOO_LARGE):
        when(room, BOB, updates(diff="@@ -1,0 +2 @@\n+y\n"))


def test_all_of_it_together_has_a_bound_which_forks_do_not_widen() -> None:
    empty = 2 * (OVERHEAD + 1)  # two items without content
    house = House(limits=Limits(context=empty + 10))
    fork = ForkCreate("Try", "prompt", "To see", (), copy_context=True)
    script = (step(BOB, prompts(), id="prompt"), step(BOB, adds("four")))
    room, forked = some_room(*script), some_room(*script, step(ALICE, fork))

    assert when(room, BOB, adds("x" * (10 + OVERHEAD + 1)), house=house)
    assert when(room, BOB, adds("x" * 6, key="b"), house=house)
    with refused(Why.TOO_LARGE, f"full: a session's context may have {empty + 10} bytes"):
        when(room, BOB, adds("x" * 7, key="b"), house=house)
    assert when(forked, ALICE, updates(new_content="x" * 6), fork="try", house=house)
    with refused(Why.TOO_LARGE):
        when(forked, ALICE, updates(new_content="x" * 7), fork="try", house=house)
    with refused(Why.TOO_LARGE):
        when(room, BOB, adds(None, key="b", content_ref=ref(b"far away")), house=house)


# Reserved keys

TASK = {
    "id": "t1",
    "title": "Tokens",
    "status": "in_progress",
    "priority": "high",
    "created_at": "2026-01-30T20:00:00Z",
    "updated_at": "2026-01-30T20:00:00Z",
}
MORE = {"description": "Sign them", "completed_at": None, "mood": "fine"}
TASKS = {"goal": {"goal": "Ship", "set_by": "claude"}, "tasks": [TASK, TASK | MORE]}
KEY = "session:tasks"


@proves("OPEN-41", "PVP-9.4-2")
@pytest.mark.parametrize("key", ["session:", "session:notes", KEY])
def test_the_session_s_own_keys_are_not_for_people(key: str) -> None:
    held = some_room(step(CLAUDE, adds(TASKS, key=key)))

    for body in (adds(TASKS, key=key), updates(key, new_content=TASKS), removes(key)):
        with refused(Why.FORBIDDEN, "belong to agents"):
            when(held, ALICE, body)
        assert when(held, CLAUDE, body)


@proves("OPEN-41")
def test_agents_and_the_server_write_them() -> None:
    room = some_room()

    for who in (CLAUDE, POLICY):
        assert when(room, who, adds(TASKS, key=KEY))
    assert when(room, ALICE, adds(key="session"))
    assert when(room, ALICE, adds(key="my session:notes"))


@proves("PVP-9.4-1", "OPEN-41")
@pytest.mark.parametrize(
    "content", [TASKS, {"goal": None, "tasks": []}, {"goal": "Ship", "tasks": [], "more": 1}]
)
def test_the_tasks_are_a_goal_and_tasks(content: Any) -> None:
    room = some_room(step(CLAUDE, adds(content, key=KEY)))

    assert item(room, KEY).content == content
    assert when(room, CLAUDE, updates(KEY, new_content=TASKS))


BAD_TASKS: list[Any] = [
    "goal",
    {},
    {"goal": "Ship"},
    {"tasks": []},
    {"goal": 7, "tasks": []},
    {"goal": "", "tasks": {}},
    {"goal": "", "tasks": [TASK | {"id": ""}]},
    {"goal": "", "tasks": [TASK | {"status": "stuck"}]},
    {"goal": "", "tasks": [TASK | {"priority": 1}]},
    {"goal": "", "tasks": [TASK | {"description": 7}]},
    *({"goal": "", "tasks": [{k: v for k, v in TASK.items() if k != gone}]} for gone in TASK),
]


@proves("PVP-9.4-1", "OPEN-41")
@pytest.mark.parametrize("content", BAD_TASKS)
def test_the_tasks_are_never_anything_else(content: Any) -> None:
    room = some_room(step(CLAUDE, adds(TASKS, key=KEY)))

    for body in (adds(content, key=KEY), updates(KEY, new_content=content)):
        with refused(Why.MALFORMED, KEY):
            when(room, CLAUDE, body)


@proves("PVP-9.4-1", "OPEN-41")
def test_the_tasks_are_structured_and_here() -> None:
    room = some_room(step(CLAUDE, adds(TASKS, key=KEY)))

    for body in (
        adds(TASKS, key=KEY, content_type="text"),
        adds(None, key=KEY, content_type="structured", content_ref=ref()),
        updates(KEY, new_content_ref=ref()),
    ):
        with refused(Why.MALFORMED, KEY):
            when(room, CLAUDE, body)
    with refused(Why.WRONG_STATE, "not text"):
        when(room, CLAUDE, updates(KEY, diff="@@ -1 +1 @@\n-a\n+b\n"))


# Folding


def test_a_log_that_changes_what_is_not_there_or_does_not_fit_still_folds() -> None:
    room = some_room(step(BOB, adds("other")))
    misfit = when(some_room(step(BOB, adds("a\n"))), BOB, updates(diff="@@ -1 +1 @@\n-a\n+b\n"))
    absent = when(some_room(step(BOB, adds(key="x"))), BOB, updates("x"))
    gone = when(some_room(step(BOB, adds(key="x"))), BOB, removes("x"))

    assert [type(facts[0]) for facts in (misfit, absent, gone)] == [
        *(ContextUpdated, ContextUpdated, ContextRemoved),
    ]
    assert fold(CONTEXT, room, misfit.records) == room
    assert fold(CONTEXT, room, absent.records) == room
    assert fold(CONTEXT, room, gone.records).shelf == room.shelf


@QUICK
@for_all(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from(["add", "set", "del"]))))
def test_the_shelf_is_what_its_history_says(script: list[tuple[str, str]]) -> None:
    room, expected = some_room(), dict[str, str]()
    for number, (key, what) in enumerate(script):
        text = str(number)
        body: ContextAdd | ContextUpdate | ContextRemove = {
            "add": adds(text, key=key),
            "set": updates(key, new_content=text),
            "del": removes(key),
        }[what]  # type: ignore[assignment]
        if what != "add" and key not in expected:
            with refused(Why.UNKNOWN):
                when(room, BOB, body)
            continue
        facts = when(room, BOB, body)
        assert type(facts[0]) in {ContextAdded, ContextUpdated, ContextRemoved}
        room = after(room, facts)
        expected.pop(key, None) if what == "del" else expected.update({key: text})

    assert {key: each.content for key, each in room.shelf.get("", {}).items()} == expected
