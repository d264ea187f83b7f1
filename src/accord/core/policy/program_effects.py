"""What programs do that do more than read, by their names and first words."""

from collections.abc import Sequence

from accord.core.policy.call_findings import Finding, names
from accord.core.policy.reading_programs import READS
from accord.core.room.room_settings import Category
from accord.core.room.state import Risk

SHELL, WRITE, DELETE = Category.SHELL_EXECUTE, Category.FILE_WRITE, Category.FILE_DELETE
NETWORK, DEPLOY, DATABASE = Category.NETWORK_REQUEST, Category.DEPLOY, Category.DATABASE
SECRET, API = Category.SECRET_ACCESS, Category.EXTERNAL_API
LOW, MEDIUM, HIGH, CRITICAL = Risk

Meaning = tuple[Category, Risk, str]


def _rows(meaning: Meaning, names: str) -> dict[str, Meaning]:
    return dict.fromkeys(names.split(), meaning)


MEANINGS: dict[str, Meaning] = {
    **_rows(
        (WRITE, MEDIUM, "writes files"),
        ("cp install ln mkdir mv patch split tee touch mktemp csplit sed awk sort uniq xxd ed ex"),
    ),
    **_rows((WRITE, HIGH, "changes who may use files"), "chgrp chmod chown setfacl chattr umask"),
    **_rows(
        (WRITE, MEDIUM, "unpacks or packs files"),
        ("ar bunzip2 bzip2 cpio gunzip gzip tar unxz unzip xz zip zstd 7z"),
    ),
    **_rows((DELETE, HIGH, "deletes files"), "rm rmdir shred truncate unlink wipe trash"),
    **_rows(
        (NETWORK, MEDIUM, "uses the network"),
        ("curl dig host http https nslookup ping traceroute wget whois"),
    ),
    **_rows(
        (NETWORK, HIGH, "connects to another machine"),
        ("ftp mosh nc ncat netcat rclone rsync scp sftp socat ssh telnet"),
    ),
    **_rows(
        (SHELL, CRITICAL, "controls the system"),
        (
            "apt apt-get at batch brew chroot crontab dd dnf doas dpkg fdisk halt insmod iptables "
            "launchctl mkfs modprobe mount nsenter pacman pkexec poweroff reboot rpm runuser "
            "service "
            "setcap shutdown snap su sudo systemctl umount unshare useradd usermod visudo yum"
        ),
    ),
    **_rows((SHELL, HIGH, "ends processes"), "kill killall pkill xkill"),
    **_rows(
        (SHELL, HIGH, "runs what its arguments or input say"),
        (
            "eval source . exec trap alias unalias enable hash shopt set declare export readonly "
            "local typeset unset bind complete parallel script expect gdb lldb strace ltrace "
            "osascript dbus-run-session systemd-run setsid screen tmux"
        ),
    ),
    **_rows(
        (DATABASE, HIGH, "uses a database"),
        (
            "psql mysql mariadb mongo mongosh redis-cli sqlite3 sqlcmd sqlplus cqlsh "
            "clickhouse-client influx pg_dump pg_restore mysqldump createdb dropdb bq snowsql "
            "duckdb"
        ),
    ),
    **_rows(
        (DEPLOY, HIGH, "changes running systems"),
        (
            "ansible ansible-playbook aws az cdk doctl eb fly flyctl gcloud heroku helm kubectl "
            "kustomize netlify nomad oc pulumi railway sam serverless sls terraform tofu vercel "
            "wrangler twine semantic-release goreleaser"
        ),
    ),
    **_rows(
        (SECRET, HIGH, "shows secrets"),
        (
            "env printenv gpg gpg2 keychain op pass secret-tool security ssh-add ssh-keygen "
            "vault bw "
            "age sops openssl compgen history fc"
        ),
    ),
    **_rows((API, MEDIUM, "acts on a service in its owner's name"), "gh glab hub jira stripe"),
    **_rows((SHELL, HIGH, "controls containers"), "docker podman nerdctl docker-compose buildah"),
}

# A program and its first words; longer rows win.
INSTALLS = (NETWORK, MEDIUM, "installs packages, which may run their own code")
PUBLISHES = (DEPLOY, HIGH, "publishes")
CREDENTIALS = (SECRET, HIGH, "shows or changes credentials")
SUBCOMMAND_MEANINGS: dict[tuple[str, ...], Meaning] = {
    **{
        (tool, "publish"): PUBLISHES
        for tool in names("npm pnpm yarn cargo poetry uv flit hatch bun dart gem make")
    },
    **{
        (tool, verb): INSTALLS
        for tool in names("npm pnpm yarn cargo pip pip3 poetry uv go gem bundle bun pipx composer")
        for verb in names("install add ci i update upgrade sync fetch get")
    },
    ("uv", "pip"): INSTALLS,
    ("docker", "push"): PUBLISHES,
    ("podman", "push"): PUBLISHES,
    ("gh", "release"): PUBLISHES,
    ("gh", "auth"): CREDENTIALS,
    ("gh", "secret"): CREDENTIALS,
    ("npm", "token"): CREDENTIALS,
    ("npm", "login"): CREDENTIALS,
    ("make", "deploy"): (DEPLOY, HIGH, "deploys"),
    ("make", "release"): PUBLISHES,
}

# These run the command in their words.
WRAPPERS = names(
    "builtin chrt command doas env ionice nice nohup numactl setarch setsid stdbuf strace sudo "
    "taskset time timeout "
    "unbuffer watch xargs"
)
SHELLS = names("bash sh dash zsh ksh mksh ash fish csh tcsh busybox nu")
INTERPRETERS = names(
    "bun deno julia lua node perl php python python2 python3 Rscript ruby tclsh ts-node tsx"
)
INLINE_CODE = frozenset({"-c", "-e", "-E", "-p", "-r", "--eval", "--print", "--execute", "eval"})
EDITORS = names(
    "vi vim nvim view nano pico emacs emacsclient ed ex joe micro helix hx code mcedit vimdiff"
)
# Programs that do nothing but show text on a terminal, page by page, with commands of their own.
PAGERS = names("less more most man info pg")
SCREENS = names(
    "htop top atop btop mc ranger nnn lazygit tig k9s fzf dialog whiptail screen tmux byobu "
    "zellij script telnet ftp sftp minicom cu picocom mutt irssi weechat lynx w3m links elinks "
    "ncdu passwd chsh chfn visudo"
)
CONSOLES = names(
    "irb pry ghci scala clojure iex erl sbt jshell R octave bc dc ipython ptpython bpython gdb "
    "lldb pdb julia lua node python python2 python3 perl php ruby tclsh swipl ocaml utop psql "
    "mysql mariadb mongo mongosh redis-cli sqlite3 sqlplus cqlsh duckdb gore evcxr groovysh "
    "nodejs deno bun wish gp maxima sage"
)
# Options with which a console runs something and ends.
CONSOLE_COMMANDS = names(
    "-c -e -f --command --eval --file --execute -m -r --run -p --print -x --batch -batch "
    "--version -V --help -h --eval-command run test"
)
RECURSIVE = names(
    "find grep egrep fgrep rg ag ack tar cp rsync rm chmod chown chgrp zip 7z du mv scp shred ln "
    "cpio fd tree"
)
HARMLESS_VARIABLES = names(
    "CI NO_COLOR FORCE_COLOR CLICOLOR TZ COLUMNS LINES PYTHONDONTWRITEBYTECODE PYTHONUNBUFFERED "
    "RUST_BACKTRACE RUST_LOG DEBUG NODE_ENV TERM GIT_OPTIONAL_LOCKS"
)
# Tools of hosts that change nothing outside the host.
HOST_TOOLS = names(
    "TodoWrite TodoRead ToolSearch ExitPlanMode EnterPlanMode AskUserQuestion TaskCreate "
    "TaskUpdate TaskList TaskGet "
    "BashOutput TaskOutput KillShell TaskStop update_plan todowrite "
    "todoread write_todos "
    "view_image request_user_input tool_search Task Agent ListMcpResourcesTool "
    "ReadMcpResourceTool wait_agent "
    "list_mcp_resources enter_plan_mode exit_plan_mode ask_user activate_skill"
)

# Claude Code runs the commands that a skill quotes (`!`…``) when it loads it, and tells no hook.
SKILL_TOOLS = frozenset({"Skill", "SlashCommand"})


def meaning_of(program: str, words: Sequence[str]) -> Finding:
    """What a program does with these words behind it, if no rule of the policy says."""
    shown = " ".join((program, *words[:1])).strip()
    row = SUBCOMMAND_MEANINGS.get((program, *words[:1])) or MEANINGS.get(program)
    if row is not None:
        return Finding(
            row[0],
            row[1],
            f"{shown if (program, *words[:1]) in SUBCOMMAND_MEANINGS else program} {row[2]}",
        )
    if program in READS:
        return Finding(SHELL, MEDIUM, f"{program} may do more than read with these words")
    if program in INTERPRETERS | SHELLS:
        inline = any(word in INLINE_CODE or word == "-" for word in words)
        risk = HIGH if inline or not words else MEDIUM
        return Finding(SHELL, risk, f"{program} runs a program of its own")
    return Finding(SHELL, MEDIUM, f"{program} is not a program that Accord or the policy knows")
