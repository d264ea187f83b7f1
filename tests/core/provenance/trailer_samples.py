"""Messages with the trailers that git finds in them."""

from accord.core.provenance.commit_message.trailers import SCISSORS_LINE

TOLD: dict[str, list[str]] = {
    "Key: the title": [],
    "x\n\nKey: a\n": ["Key: a"],
    "x\n\nKey : a \t\n\n \n": ["Key: a"],
    "x\n\nKey: a\n  b\n\tc\n": ["Key: a b c"],
    "x\n\nKey: a\n\nwords\n": [],
    "x\n\nwords\nKey: a\n": [],
    "x\n\n  indented\nKey: a\n": [],
    "x\n\nwords\n\nKey: a\n": ["Key: a"],
    "x\n\nwords\nmore\n indented\nSigned-off-by: A <a@b>\n": ["Signed-off-by: A <a@b>"],
    "x\n\n1\n2\n3\n4\nSigned-off-by: A <a@b>\n": [],
    "x\n\n(cherry picked from commit abc)\nKey: a\n": ["Key: a"],
    "x\n\nKey: a\n# comment\n  not continued\n": [],
    "x\n\nKey: a\n# comment\nOther: b\n": ["Key: a", "Other: b"],
    "x\n\nKey: a\n\n# comment\n": ["Key: a"],
    "# comment\nx\n\nKey: a\n": ["Key: a"],
    "x\n\nKey: a\n\nConflicts:\n\tone\n\ttwo\n": ["Key: a"],
    "x\n\nConflicts:\n\tone\nwords\n\nKey: a\n": ["Key: a"],
    "Conflicts:\n\tone\nwords\n\nKey: a\n": ["Key: a"],
    f"x\n\nKey: a\n{SCISSORS_LINE}diff\n\nOther: b\n": ["Key: a"],
    f"{SCISSORS_LINE}x\n\nKey: a\n": [],
    "x\n\n: no key\n": [],
    "": [],
}
