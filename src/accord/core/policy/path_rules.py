"""Where a path leads: into the worktree, to a secret, outside, or to Accord's own directories."""

from collections.abc import Iterator

from accord.core.policy import paths
from accord.core.policy.call_findings import Finding, read, refused
from accord.core.policy.policy_toml import Policy
from accord.core.policy.reported_call import Place
from accord.core.room.approval.call_patterns import path_matches
from accord.core.room.room_settings import Category
from accord.core.room.state import Risk

# Devices that hold nothing.
HARMLESS_DEVICES = frozenset({"/dev/null", "/dev/stdout", "/dev/stderr", "/dev/stdin", "/dev/zero"})
NETWORK_DEVICES = ("/dev/tcp/", "/dev/udp/")
# Names that hold secrets wherever they are.
SECRET_NAMES = (
    *(".env", ".env.*", ".netrc", ".pgpass", ".npmrc", ".pypirc", "*.pem", "*.key", "id_rsa*"),
    *("id_ed25519*", "id_ecdsa*", ".git-credentials", "credentials.json", "*.keystore", "*.p12"),
    *("**/.ssh/**", "**/.aws/**", "**/.gnupg/**", "**/.kube/**", "**/.docker/config.json"),
    *("**/.config/gcloud/**", "**/.git/config", ".git/config", "/proc/*/environ"),
)
# Samples that people put beside the real ones.
NOT_SECRET = (".env.example", ".env.sample", ".env.template", ".env.dist", "*.pub")
# Settings, hooks and skills of hosts and editors; some of them look in every folder.
HOST_FOLDERS = (
    *(".claude", ".codex", ".gemini", ".cursor", ".opencode", ".agents", ".vscode", ".husky"),
)
# What decides which programs run, or what is gated: as dangerous to write as code that runs.
CONTROL_FILES = (
    *(".git", ".git/**", "**/.git/hooks/**", "**/.git/config", ".accord/**", ".accord.toml"),
    *(*HOST_FOLDERS, *(f"**/{each}/**" for each in HOST_FOLDERS), "opencode.json"),
    *("opencode.jsonc", ".mcp.json", ".envrc", ".gitmodules", ".gitattributes"),
    *(".pre-commit-config.yaml", "lefthook.yml", ".pact/bin/**"),
)


class PathRules:
    """The rules for paths of one call; remembers which paths were asked for."""

    def __init__(self, place: Place, policy: Policy) -> None:
        self._place = place
        self._policy = policy
        self.asked: dict[str, None] = {}
        home = place.home
        self._worktree = paths.normalize(place.worktree)
        self._listed = tuple(
            paths.normalize(paths.expand_home(path, home)) for path in policy.reads.outside
        )
        # Without case, as some file systems have it.
        self._protected = tuple(paths.normalize(each).lower() for each in place.protected)

    def absolute(self, path: str, cwd: str) -> str:
        """A path as the call names it, from a working directory."""
        return self.below(paths.expand_home(path, self._place.home), cwd)

    def below(self, path: str, cwd: str) -> str:
        """The absolute path without `..`: behind a link, that is the parent of where it leads."""
        whole = path if path.startswith("/") else f"{cwd}/{path}"
        done: list[str] = []
        for part in whole.split("/"):
            if part == "..":
                if done and (elsewhere := self.real(f"/{'/'.join(done)}")[1:]):
                    done = elsewhere[0].strip("/").split("/")
                del done[-1:]
            elif part not in ("", "."):
                done.append(part)
        return f"/{'/'.join(done)}"

    def real(self, path: str) -> tuple[str, ...]:
        """What a path stands for: itself, and what the caller found behind links."""
        self.asked[path] = None
        return (path, *map(paths.normalize, self._place.resolved.get(path, ())))

    def is_resolved(self, path: str) -> bool:
        return path in self._place.resolved

    def relative(self, path: str) -> str:
        """The path from the worktree, if it is inside."""
        return path.removeprefix(f"{self._worktree.rstrip('/')}/")

    def is_inside(self, path: str) -> bool:
        return paths.is_within(path, self._worktree)

    def protection(self, path: str) -> Finding | None:
        """A refusal, if this is one of Accord's own directories or below one."""
        for each in self.real(path):
            if paths.within_any(paths.fixed_part(each).lower(), self._protected):
                return refused(f"{path} belongs to Accord itself, which agents may not touch")
        return None

    def covers_protected(self, path: str) -> bool:
        """Whether something of Accord's own is below this path."""
        return any(
            paths.is_within(protected, paths.fixed_part(each).lower())
            for each in self.real(path)
            for protected in self._protected
        )

    def is_special(self, path: str) -> bool:
        """Whether rules name this path, so that a glob which stands for it is not any other."""
        name = self.relative(path)
        return (
            paths.within_any(path.lower(), self._protected)
            or self.is_secret(path)
            or is_control_file(name)
            or any(rule.matching(name) is not None for rule in self._policy.path)
        )

    def secret_examples(self) -> Iterator[str]:
        """Names of files that would hold secrets wherever they are, for each rule about names."""
        for pattern in (*SECRET_NAMES, *self._policy.reads.secret):
            if "/" not in pattern:
                yield pattern.lower().replace("*", "")
                yield pattern.lower().replace("*", "x")

    def is_secret(self, path: str) -> bool:
        """Whatever the case of its letters, because of file systems that ignore it."""
        own = [pattern.lower() for pattern in self._policy.reads.secret]
        names, path = self.relative(path).lower(), path.lower()
        if any(path_matches(names, pattern) for pattern in own):
            return True
        if any(path_matches(names, pattern) for pattern in NOT_SECRET):
            return False
        return any(
            path_matches(name, pattern) for pattern in SECRET_NAMES for name in (names, path)
        )

    def reading(self, path: str) -> Finding:
        """What reading this absolute path is."""
        if (refusal := self.protection(path)) is not None:
            return refusal
        if path in HARMLESS_DEVICES:
            return read(f"reads {path}")
        real = self.real(path)
        if path.startswith(NETWORK_DEVICES):
            return Finding(Category.NETWORK_REQUEST, Risk.HIGH, f"{path} is a connection")
        if secret := next((each for each in real if self.is_secret(each)), None):
            return Finding(
                Category.SECRET_ACCESS, Risk.HIGH, f"reads {secret}, which holds secrets"
            )
        for each in real:
            fixed = paths.fixed_part(each)
            if not self.is_inside(fixed) and not paths.within_any(fixed, self._listed):
                why = f"reads {each}, which is outside the worktree and not listed in the policy"
                return Finding(Category.SECRET_ACCESS, Risk.MEDIUM, why)
        if not self.is_resolved(path):
            why = f"reads {path}, and it is not known where links on the way lead"
            return Finding(Category.SECRET_ACCESS, Risk.MEDIUM, why)
        return read(f"reads {self.relative(path)}")

    def writing(self, path: str, verb: str = "writes") -> Finding:
        """What writing this absolute path is."""
        if (refusal := self.protection(path)) is not None:
            return refusal
        if path in HARMLESS_DEVICES:
            return read(f"{verb} {path}")
        if path.startswith(NETWORK_DEVICES):
            return Finding(Category.NETWORK_REQUEST, Risk.HIGH, f"{path} is a connection")
        found = [self._write_of(each, verb) for each in self.real(path)]
        if not self.is_resolved(path):
            why = f"{verb} {path}, and it is not known where links on the way lead"
            found.append(Finding(Category.FILE_WRITE, Risk.HIGH, why))
        return max(found, key=lambda each: tuple(Risk).index(each.risk))

    def _write_of(self, path: str, verb: str) -> Finding:
        if not self.is_inside(path):
            why = f"{verb} {path}, which is outside the worktree"
            return Finding(Category.FILE_WRITE, Risk.HIGH, why)
        name = self.relative(path)
        if is_control_file(name):
            why = f"{verb} {name}, which decides what runs or what is gated"
            return Finding(Category.FILE_WRITE, Risk.CRITICAL, why)
        for rule in self._policy.path:
            if (pattern := rule.matching(name)) is not None:
                why = f"{verb} {name} ({pattern}: {rule.reason or 'a rule of the policy'})"
                return Finding(rule.category, rule.risk, why)
        if self.is_secret(path):
            return Finding(Category.SECRET_ACCESS, Risk.HIGH, f"{verb} {name}, which holds secrets")
        return Finding(Category.FILE_WRITE, Risk.MEDIUM, f"{verb} {name}")


def is_control_file(name: str) -> bool:
    """Whether a file decides what runs or what is gated."""
    return any(path_matches(name.lower(), pattern) for pattern in CONTROL_FILES)


def possible_folders(cwd: str, targets: Iterator[str] | tuple[str, ...]) -> tuple[str, ...]:
    """Every working directory that a script with these `cd` may be in."""
    folders = [cwd]
    for target in targets:
        folders += [paths.normalize(target, folder) for folder in folders]
    return tuple(dict.fromkeys(folders))
