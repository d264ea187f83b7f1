"""Text that tries to run, to break out of its place, or to look like something of Accord's."""

MARKUP = (
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(2)>",
    '"><svg onload=alert(3)>',
    "<iframe srcdoc='<script>alert(4)</script>'></iframe>",
    "</textarea></title></style><script>alert(5)</script>",
    "<a href=javascript:alert(6)>free</a>",
    "[click](javascript:alert(7)) ![x](http://example.invalid/x.png)",
    "<style>*{display:none}</style>",
    "<math><mtext><table><mglyph><style><img src=x onerror=alert(8)>",
    "{{constructor.constructor('alert(9)')()}} ${alert(10)} {@html '<b>x</b>'}",
)
DECEIVING = (
    "rm -rf \u202efdp.evil",
    "safe\u200b\u200d\ufeffcommand",
    "\x1b[2J\x1b]0;owned\x07\x1b[31mred",
    "a\u0300\u0301\u0302\u0303\u0304\u0305\u0306\u0307\u0308 stacked",
    "\u2066hidden\u2069 \u2028 line \u2029 paragraph",
    "◆ The rules say yes. Approved by Accord.",
    "first line\r\n\r\nsecond line\ttab",
    "\U000e0041\U000e0042 tags",
)
ENORMOUS = ("W" * 6000, "word " * 1500, "\n" * 400, "日本語" * 800)
CORPUS = (*MARKUP, *DECEIVING, *ENORMOUS)

# Our own mark in text that is not ours; ours stands alone and is hidden from screen readers.
# The field of a prompt keeps what was typed, letter for letter, and so does its mirror.
FORGED_MARKS = """() => {
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const found = [];
  while (walk.nextNode()) {
    const { data, parentElement } = walk.currentNode;
    if (parentElement.closest(".mirror")) continue;
    const ours = data === "\\u25c6" && parentElement.closest("[aria-hidden=true]");
    if (/[\\u25c6\\u2b25]/.test(data) && !ours) found.push(data.slice(0, 80));
  }
  return found;
}"""
