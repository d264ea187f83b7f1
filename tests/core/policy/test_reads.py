"""Commands that only read, and the many that only look so."""

import pytest

from tests.core.policy.calls import class_of_command

READS = [
    "ls", "ls -la src", "cat README.md", "cat -n a b", "head -5 a", "head -n 5 a", "tail -n +5 a",
    "wc -l a", "cat a | wc -l", "cat a | head -5 | tail -1", "git status", "git status -sb",
    "git log --oneline -5", "git log -n 3 -p -- src", "git diff", "git diff HEAD~1 -- src",
    "git diff --stat main...HEAD", "git show HEAD", "git show HEAD:README.md", "git blame -L 1,5 a",
    "git --no-pager log", "git -C sub status", "git rev-parse HEAD", "git branch", "git branch -a",
    "git branch --show-current", "git tag -l 'v*'", "git remote -v", "git stash list",
    "git ls-files",
    "git grep -n foo", "git config --get user.name", "git ls-tree -r HEAD", "git cat-file -p HEAD",
    "git worktree list", "git describe --tags", "git log --format=%H", "git log -S foo",
    "grep -rn foo src", "grep -c foo a", "grep 'a.*b' f", "grep -A3 -B 2 foo f", "grep -e a -e b f",
    "rg foo", "rg -n 'a b' src", "rg --files", "rg foo -g '*.py'", "find . -name '*.py'",
    "find src -type f -maxdepth 2", "find . ! -name x -print", "sed -n '1,20p' a", "sed -n 5p a",
    "sed 's/a/b/g' a", "awk '{print $1}' a", "awk -F, '{print $1, $3}' a", "awk 'NR==1' a",
    "sort a", "sort -u -k2 a", "sort a | uniq -c | sort -rn", "cut -d, -f1 a", "tr a b", "diff a b",
    "diff -u a b", "stat a", "file a", "du -sh .", "df -h", "tree -L 2", "pwd", "whoami",
    "uname -a",
    "date", "date +%s", "echo hello", "echo 'a > b'", 'echo "a; rm b"', "printf '%s' x", "true",
    "printf '[%s]' x",
    "which python", "type ls", "command -v git", "test -f a", "test -d src && ls src", "sleep 1",
    "cd src && ls", "cd src; git status", "cd /home/ada/shop && git log", "jq .name package.json",
    "cat package.json | jq -r '.scripts'", "python --version", "node --version", "go version",
    "ls 2>/dev/null", "ls > /dev/null 2>&1", "ls &>/dev/null", "cat < a", "ls src/*.py",
    "cat ./*.md", "timeout 5 git status", "time ls", "command ls", "ls\nls src", "ls || true",
    "nice ls", "md5sum a", "basename a/b", "realpath a", "od -c a", "xxd a", "strings a", "rev a",
    "cat 'a b'", 'cat "a b"', "cat HEAD~1", "git diff stash@{0}", "ls -- -x", "echo a;", "",
    "  ls  ", "cat /dev/null", "cat a | cat -", "cat .env.example", "ls .git", "cat src/.gitignore",
]  # fmt: skip


@pytest.mark.parametrize("command", READS)
def test_a_command_that_only_reads_needs_no_gate(command: str) -> None:
    found = class_of_command(command)

    assert found.is_read, found
