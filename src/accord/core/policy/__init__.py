"""Policy: what category and risk a call of an agent's host has, and which calls are refused.

    from accord.core.policy.call_classification import classify
    from accord.core.policy.policy_toml import parse_policy
    from accord.core.policy.reported_call import CallKind, Place, ReportedCall
    from accord.shell_parser import parse_shell

    place = Place(cwd="/home/ada/shop", worktree="/home/ada/shop", home="/home/ada",
                  protected=("/home/ada/.config/accord", …))
    call = ReportedCall(CallKind.SHELL, "Bash", {"command": "git status"}, place)
    found = classify(call, policy, parse_shell)     # policy: parse_policy(text), or NO_POLICY
    found.category, found.risk, found.categories    # of `core.room.state`
    found.is_read                                   # needs no gate, also without a signed policy
    found.refusal                                   # not "": refuse it outright, with this sentence
    found.explanation                               # "git push: sends commits to a remote"

A caller normalizes its host's tools to a `CallKind`; the arguments keep the host's own names and
values, because they are what people approve and what a grant's digest covers:

    SHELL   `command`, the text as bash gets it, or `argv`
    WRITE   a path (`file_path`, `path`, …) or `paths`; also edits and notebooks
    PATCH   `patch`, `input` or `command`: a unified diff or a patch of Codex
    READ    a path, `paths`, or none: the working directory; also searching and listing
    FETCH   `url`
    MCP     `Place.mcp_server` and the tool's name; calls of Accord's own server are not reported
    OTHER   everything else

Symbolic links. The core sees no disk, so the caller resolves: `paths_named(call, parse)` gives the
paths that a call names, absolute and perhaps with globs. For each, `Place.resolved` holds the real
paths that it stands for now (of every match of a glob). A path missing there counts as outside the
worktree. `accord.real_paths.resolve` does this.

`tool.propose` carries the same as `metadata.reported` (`reported_metadata`), and the server
computes again from it with the newest signed policy of the repository. A claim of the agent
only raises it.
"""
