"""Reads shell text with tree-sitter's grammar of bash, into the values of `core.policy`.

A grammar for editors repairs what it cannot read; here such a text is a problem, and so is every
node that is not in the tables below. A script counts as plain only if the words that the standard
library's `shlex` finds are the same, because a gap between two parsers is where a command hides.

    python -I -m accord.shell_grammar

As a program it reads texts and writes what it found, for `shell_parser`. The parser is C code that
gets whatever an agent writes, so it runs apart, with little memory and little time for each text.
"""

import os
import re
import resource
import select
import shlex
import signal
import struct
import sys
from collections.abc import Iterator
from contextlib import suppress
from functools import cache

import msgspec
from tree_sitter import Language, Node, Parser

from accord.core.policy.shell_syntax import Redirect, Script, SimpleCommand, Word, read_word

MAX_COMMANDS = 512
MAX_DEPTH = 200
# The grammar's scanner (0.25.1) looks such characters up in a table that ends at 255 and may crash.
# To bash they are letters like any others, so it gets an underscore for each byte of them.
NOT_ASCII = re.compile(rb"[^\x00-\x7f]")

# What stands for one word.
WORD_TYPES = frozenset(
    {
        *("word", "string", "raw_string", "concatenation", "number", "ansi_c_string"),
        *("simple_expansion", "expansion", "command_substitution", "process_substitution"),
        *("translated_string", "arithmetic_expansion", "brace_expression", "special_variable_name"),
    }
)
# What a plain script may consist of, besides words.
PLAIN_TYPES = frozenset(
    {"program", "list", "pipeline", "command", "command_name", "redirected_statement"}
    | {"file_redirect", "file_descriptor", "string_content"}
)
PLAIN_OPERATORS = frozenset({"&&", "||", ";", "|", "|&", "\n", ">", ">>", "<", ">&", "&>", "<&"})
PUNCTUATION = ";<>|&()\n"
REDIRECT_TYPES = frozenset({"file_redirect", "heredoc_redirect", "herestring_redirect"})
# Constructs whose commands are read like any others.
TRANSPARENT_TYPES = frozenset(
    {
        *("program", "list", "pipeline", "command", "redirected_statement", "subshell"),
        *("compound_statement", "command_substitution", "process_substitution", "string"),
        *("concatenation", "if_statement", "elif_clause", "else_clause", "while_statement"),
        *("for_statement", "do_group", "case_statement", "case_item", "negated_command"),
        *("function_definition", "variable_assignment", "variable_assignments", "heredoc_body"),
        *("test_command", "unary_expression", "binary_expression", "expansion", "command_name"),
        *("file_redirect", "heredoc_redirect", "herestring_redirect", "parenthesized_expression"),
        *("arithmetic_expansion", "array", "declaration_command", "unset_command", "subscript"),
        *("c_style_for_statement", "ternary_expression", "postfix_expression", "translated_string"),
        *("heredoc_content", "simple_expansion", "brace_expression"),
    }
)
DECLARATIONS = frozenset({"declaration_command", "unset_command", "test_command"})

# As a program: a length of four bytes stands before each text and each answer.
LENGTH = struct.Struct(">I")
MAX_ANSWER_BYTES = 16 << 20
MAX_MEMORY_BYTES = 512 << 20
# A usual command takes a millisecond. Repetitions for which the grammar is ambiguous take minutes.
CPU_SECONDS = 0.5
IDLE_SECONDS = 30.0
STDIN, STDOUT = 0, 1


@cache
def _parser() -> Parser:
    import tree_sitter_bash

    return Parser(Language(tree_sitter_bash.language()))


def read_script(text: str) -> Script:
    """Everything that bash would run for this text, which has no NUL and no lone surrogate."""
    source = text.encode()
    root = _parser().parse(NOT_ASCII.sub(b"_", source)).root_node
    return _ScriptReader(text, source, root).script()


def serve() -> None:
    """Answer texts until there are no more; the end by a signal is the answer to a bad one."""
    limit_resources()
    encoder = msgspec.msgpack.Encoder()
    while select.select([STDIN], [], [], IDLE_SECONDS)[0] and (head := read_exactly(LENGTH.size)):
        (length,) = LENGTH.unpack(head)
        text = read_exactly(length).decode()
        signal.setitimer(signal.ITIMER_PROF, CPU_SECONDS)
        answer = encoder.encode(read_script(text))
        signal.setitimer(signal.ITIMER_PROF, 0)
        write_all(LENGTH.pack(len(answer)) + answer)


def limit_resources() -> None:
    """Limit the memory, and leave no core file behind."""
    for limit, most in ((resource.RLIMIT_AS, MAX_MEMORY_BYTES), (resource.RLIMIT_CORE, 0)):
        with suppress(OSError, ValueError):  # not every system has each limit
            resource.setrlimit(limit, (most, most))


def read_exactly(size: int) -> bytes:
    """So many bytes of the input; fewer if it has ended."""
    data = b""
    while len(data) < size and (part := os.read(STDIN, size - len(data))):
        data += part
    return data


def write_all(data: bytes) -> None:
    while data:
        data = data[os.write(STDOUT, data) :]


class _ScriptReader:
    def __init__(self, text: str, source: bytes, root: Node) -> None:
        self._text = text
        self._bytes = source
        self._root = root
        self._commands: list[SimpleCommand] = []
        self._problem = ""

    def script(self) -> Script:
        if self._root.has_error:
            self._problem = "bash's grammar does not accept it"
        self._read(self._root, (), piped=False, depth=0)
        commands = tuple(self._commands)
        if len(commands) > MAX_COMMANDS:
            return Script(problem=f"it has more than {MAX_COMMANDS} commands")
        plain = not self._problem and self._is_plain()
        return Script(commands, self._problem, plain)

    def _read(
        self, node: Node, redirects: tuple[Redirect, ...], *, piped: bool, depth: int
    ) -> None:
        """Collect the commands in a node, which has these redirections."""
        if depth > MAX_DEPTH:
            self._problem = "it is nested too deeply"
            return
        if node.type == "command":
            self._read_command(node, redirects, piped=piped)
        elif node.type in DECLARATIONS:
            name = self._source(node.children[0])
            words = (Word(name), Word(self._source(node), literal=False))
            self._commands.append(SimpleCommand(words, (), redirects, piped=piped))
        elif node.type == "redirected_statement":
            redirects = (*redirects, *map(self._redirect, _redirect_nodes(node)))
            if node.child_by_field_name("body") is None:
                self._commands.append(SimpleCommand((), (), redirects, piped=piped))
        elif node.type == "function_definition":
            self._problem = self._problem or "it defines a function"
        elif node.type == "variable_assignment" and _is_statement(node):
            self._commands.append(SimpleCommand((), (self._assignment(node),), redirects))
        elif node.is_named and node.type not in TRANSPARENT_TYPES | WORD_TYPES and node.children:
            self._problem = self._problem or f"{node.type.replace('_', ' ')} is not understood"
        after_pipe = False
        for child in node.children:
            inner = redirects if _carries_redirects(node, child) else ()
            feeds = after_pipe or (piped and node.type != "command")
            self._read(child, inner, piped=feeds, depth=depth + 1)
            after_pipe = after_pipe or child.type in {"|", "|&"}

    def _read_command(self, node: Node, redirects: tuple[Redirect, ...], *, piped: bool) -> None:
        assignments, words = [], []
        for child in node.children:
            if child.type == "variable_assignment":
                assignments.append(self._assignment(child))
            elif child.type == "command_name":
                words.append(read_word(self._source(child)))
            elif child.type in REDIRECT_TYPES:
                redirects = (*redirects, self._redirect(child))
            else:
                words.append(read_word(self._source(child)))
        self._commands.append(
            SimpleCommand(tuple(words), tuple(assignments), redirects, piped=piped)
        )

    # Plain scripts

    def _is_plain(self) -> bool:
        units = list(self._units(self._root))
        if None in units:
            return False
        words = [_plain_text(unit) for unit in units if unit is not None]
        if None in words:
            return False
        return [word for word in words if word != "\n"] == _shlex_words(self._text)

    # Nodes

    def _redirect(self, node: Node) -> Redirect:
        descriptor = next(
            (self._source(c) for c in node.children if c.type == "file_descriptor"), ""
        )
        operator = next((self._source(c) for c in node.children if not c.is_named), "?")
        if node.type == "heredoc_redirect":
            body = next((c for c in node.children if c.type == "heredoc_body"), None)
            expands = body is not None and any(
                c.is_named and c.type != "heredoc_content" for c in body.children
            )
            text = "" if body is None else self._source(body)
            return Redirect(operator, Word(text, literal=not expands, raw=text), descriptor)
        targets = [c for c in node.children if c.is_named and c.type != "file_descriptor"]
        target = (
            read_word(self._source(targets[0])) if len(targets) == 1 else Word("", literal=False)
        )
        return Redirect(operator, target, descriptor)

    def _assignment(self, node: Node) -> tuple[str, Word]:
        name, _, value = self._source(node).partition("=")
        return name, read_word(value)

    def _source(self, node: Node) -> str:
        return self._bytes[node.start_byte : node.end_byte].decode(errors="replace")

    def _units(self, node: Node) -> Iterator[str | None]:
        """The words and operators of a plain script in order; None for anything else."""
        if node.type in WORD_TYPES:
            yield self._source(node)
        elif not node.is_named:
            yield self._source(node) if node.type in PLAIN_OPERATORS else None
        elif node.type == "file_descriptor":
            yield self._source(node)
        elif node.type not in PLAIN_TYPES:
            yield None
        else:
            for child in node.children:
                yield from self._units(child)


def _is_statement(node: Node) -> bool:
    return node.parent is not None and node.parent.type not in {"command", "declaration_command"}


def _carries_redirects(node: Node, child: Node) -> bool:
    """Whether redirections of a node apply to the commands in this child."""
    return child.type not in REDIRECT_TYPES and node.type not in {"command", *WORD_TYPES}


def _redirect_nodes(node: Node) -> Iterator[Node]:
    for child in node.children:
        if child.type in REDIRECT_TYPES:
            yield child
            # A redirection behind a here-document's start is a child of the here-document.
            yield from (inner for inner in child.children if inner.type in REDIRECT_TYPES)


def _plain_text(unit: str) -> str | None:
    if unit in PLAIN_OPERATORS:
        return unit
    word = read_word(unit)
    return word.text if word.literal and "\\" not in unit and "\n" not in unit else None


def _shlex_words(text: str) -> list[str]:
    """The words and operators as `shlex` reads them; empty if it cannot."""
    lexer = shlex.shlex(text, posix=True, punctuation_chars=PUNCTUATION)
    lexer.whitespace, lexer.commenters = " \t", ""
    lexer.whitespace_split = True
    try:
        words = list(lexer)
    except ValueError:
        return []
    return [
        bare
        for word in words
        if (bare := word if set(word) - set(PUNCTUATION) else word.replace("\n", ""))
    ]


if __name__ == "__main__":
    with suppress(BrokenPipeError):
        serve()
    sys.exit(0)
