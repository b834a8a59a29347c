"""What can the operator set? One frozen value, read once. Only this module reads options and the environment."""

import getpass
import os
import pwd
import re
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from mcp_server.model.posture import Profile

if TYPE_CHECKING:
    from mcp_server.model.menus import Listing
    from mcp_server.state.account import KeyFolder

STATE_FOLDER = ".menugate"
OPERATORS_FILE = "menugate.yaml"
SHORTEST_SECRET = 8
HANDED_ON = """
LANG LANGUAGE TZ USER LOGNAME SHELL TERM COLORTERM CI NO_COLOR FORCE_COLOR VIRTUAL_ENV CONDA_PREFIX CONDA_DEFAULT_ENV
PYENV_ROOT PYENV_VERSION NVM_DIR VOLTA_HOME RUSTUP_HOME CARGO_HOME GOPATH GOROOT JAVA_HOME MAVEN_HOME GRADLE_HOME
ANDROID_HOME DOTNET_ROOT PNPM_HOME BUN_INSTALL RBENV_ROOT GEM_HOME SDKMAN_DIR SOURCE_DATE_EPOCH
"""
"""The variables passed on to programs that we start; all others stay with us."""
INSTALLERS_NAME = re.compile(
    r"(?:npm_config|uv|pip)_.*|(?:https?|all|no)_proxy|ssl_cert_(?:file|dir)|node_extra_ca_certs|requests_ca_bundle",
    re.IGNORECASE,
)
"""The variables that package managers obey."""
SECRET_NAME = re.compile(r"API_?KEY|SECRET|TOKEN|PASSWORD|PASSWD|CREDENTIAL|PRIVATE_KEY", re.IGNORECASE)
SESSION_VARIABLES = ("DBUS_SESSION_BUS_ADDRESS", "XDG_RUNTIME_DIR", "DISPLAY", "WAYLAND_DISPLAY", "XAUTHORITY")
Axis = TypeVar("Axis", "Listing", Profile)


class BuildError(Exception):
    """The server cannot be built; the message names every fault. It is here so that every command can catch it."""


class SettingsError(Exception):
    """A setting cannot be used; the message says which one, and what to do."""


class Settings(Struct, frozen=True):
    workspace: Path
    state: Path
    """The folder for the state of this workspace, closed to every tool."""
    secrets: Path | None
    """The folder for keys: outside the workspace, so that a tool that writes there cannot forge its record. None if no
    folder is writable; keys then last as long as this process."""
    key_places: tuple[Path, ...] = ()
    """Every folder where keys of this account may be, now or at another start."""
    keys_volatile: bool = False
    """True if the folder for keys is emptied when the machine restarts."""
    operators: Path = Path("/nonexistent")
    """The usual folder of the operator's file; it may be missing."""
    config: Path | None = None
    named: tuple[Path, ...] = ()
    """The paths of the operator's files as given, before links are resolved."""
    menus: tuple[Path, ...] = ()
    http: tuple[str, int] | None = None
    mode: str | None = None
    listing: "Listing | None" = None
    profile: Profile | None = None
    max_profile: Profile | None = None
    auth: bool = True
    hosts: tuple[str, ...] = ()
    """More Host headers to accept, for use behind a proxy."""
    origins: tuple[str, ...] = ()
    person: str = "local"
    """The principal without a token: the person who runs this process."""
    search_path: str = os.defpath
    """PATH, where programs are found."""
    home: Path = Path("/nonexistent")
    """The person's home, which programs we start cannot see."""
    variables: tuple[tuple[str, str], ...] = ()
    """The environment of programs that we start."""
    variables_outside: tuple[tuple[str, str], ...] = ()
    """More variables for programs outside a sandbox, so that menugate finds the same state there."""
    secret_values: tuple[str, ...] = ()
    """Values that must never be shown: those of variables with names such as `API_KEY`."""
    installer_variables: tuple[tuple[str, str], ...] = ()
    """More variables for the package managers that fetch servers: their own, those about proxies and certificates."""
    keyring_variables: tuple[tuple[str, str], ...] = ()
    """The environment of the program that reaches the system keyring."""
    traces: str = ""
    """Where traces go: `otlp`, `console`, or nowhere if empty."""
    metrics: str = ""
    """Where metrics go: the same values."""
    answer_seconds: float = 300.0
    """How long a question in the host waits for the person."""
    approval_seconds: float = 3600.0
    """How long a question can be answered at a terminal, and how long the approval is then valid."""
    settle_seconds: float = 0.5
    """How long a change of mode waits for the client to list again; the slowest host measured takes 0.37 s."""

    @property
    def database(self) -> Path:
        return self.state / "state.db"

    @property
    def index(self) -> Path:
        """The index of the workspace's files: a cache that can be deleted at any time."""
        return self.state / "index.db"

    @property
    def state_folders(self) -> tuple[Path, ...]:
        """The state folder in the workspace, and those below it down to this account's."""
        top = self.workspace / STATE_FOLDER
        if not self.state.is_relative_to(top):
            return (self.state,)
        inner = reversed([self.state, *self.state.parents][: len(self.state.relative_to(top).parts)])
        return (top, *inner)

    @property
    def all_state_folders(self) -> tuple[Path, ...]:
        """Every folder where servers of this workspace may keep state, with any keys."""
        from mcp_server.state.location import find_all_state_folders

        found = find_all_state_folders(self.workspace / STATE_FOLDER, self.key_places)
        return tuple(dict.fromkeys((self.state, *found)))

    @property
    def keys_last(self) -> str:
        """How long the keys last, in words; empty if they last."""
        if self.secrets is None:
            return "for this process alone, because no folder that could keep them is writable"
        return "until this machine restarts" if self.keys_volatile else ""

    @property
    def private_folders(self) -> tuple[Path, ...]:
        """The folders that only this account may use."""
        return (self.state, *([self.secrets] if self.secrets else []))

    @property
    def foreign_state_file(self) -> Path | None:
        """The state file of another account in this workspace, if there is one."""
        return None if len(self.state_folders) == 1 else self.state_folders[0] / self.database.name

    @property
    def protected_places(self) -> tuple[Path, ...]:
        """Our folders and the operator's. No tool opens them, even if the workspace is a whole home."""
        operators = self.operators.resolve()
        if operators == self.workspace:
            # Protecting all of it would leave nothing for tools, so protect the operator's file alone.
            operators /= OPERATORS_FILE
        keys = (*([self.secrets] if self.secrets else []), *self.key_places)
        every = (self.workspace / STATE_FOLDER, *keys, operators, *([self.config] if self.config else []))
        return tuple(dict.fromkeys(path.resolve() for path in every))

    @property
    def protected_inside_workspace(self) -> tuple[Path, ...]:
        return tuple(path for path in self.protected_places if path.is_relative_to(self.workspace))

    @property
    def url(self) -> str:
        return f"sqlite:///{self.database}"


def read_settings(flags: Mapping[str, str | bool | None], environment: Mapping[str, str] | None = None) -> Settings:
    """Options win over `MENUGATE_*` variables, which win over defaults."""
    from mcp_server.model.menus import Listing  # a command that reads the place alone lists nothing

    env = os.environ if environment is None else environment
    get_given, home = partial(_get_given, flags, env), _find_home(env)
    http, listing = _parse_address(get_given("http")), get_given("listing")
    return replace(
        read_place(flags, env),
        menus=tuple(Path(one) for one in (get_given("menus") or "").split(os.pathsep) if one),
        http=http,
        mode=get_given("mode"),
        listing=None if listing in (None, "auto") else _parse_choice(Listing, "listing", listing),
        auth=_check_auth(not flags.get("no_auth") and env.get("MENUGATE_NO_AUTH", "") in ("", "0"), http),
        hosts=_parse_list(get_given("allowed_hosts")),
        origins=_parse_list(get_given("allowed_origins")),
        traces=_read_exporter(env, "TRACES"),
        metrics=_read_exporter(env, "METRICS"),
        search_path=env.get("PATH") or os.defpath,
        home=home,
        variables=_get_inherited_variables(env, home),
        variables_outside=_get_outside_variables(env),
        secret_values=_get_secret_values(env),
        installer_variables=tuple(sorted((name, env[name]) for name in env if INSTALLERS_NAME.fullmatch(name))),
        keyring_variables=_get_keyring_variables(env, home),
    )


def read_place(flags: Mapping[str, str | bool | None], environment: Mapping[str, str] | None = None) -> Settings:
    """Read only the workspace, the account and the limits, which is all that a change of the posture needs."""
    env = os.environ if environment is None else environment
    get_given, home = partial(_get_given, flags, env), _find_home(env)
    workspace = _find_workspace(get_given("workspace"))
    operators = Path(env.get("XDG_CONFIG_HOME") or home / ".config") / "menugate"
    config, named = _find_config(get_given("config"), operators)
    keys, key_places = _find_keys(env, workspace, home)
    secrets = keys.folder if keys else None
    return Settings(
        workspace=workspace,
        state=_find_state_folder(workspace / STATE_FOLDER, secrets),
        secrets=secrets,
        key_places=key_places,
        keys_volatile=keys is not None and keys.volatile,
        operators=operators,
        config=config,
        named=named,
        profile=_parse_choice(Profile, "profile", get_given("profile")),
        max_profile=_parse_choice(Profile, "max-profile", get_given("max_profile")),
        person=f"local:{_get_user_name()}",
    )


def _get_given(flags: Mapping[str, str | bool | None], env: Mapping[str, str], name: str) -> str | None:
    flag = flags.get(name)
    return flag if isinstance(flag, str) else env.get(f"MENUGATE_{name.upper()}") or None


def _find_home(env: Mapping[str, str]) -> Path:
    """HOME, or the home that the system knows; a service account may have none."""
    named = env.get("HOME", "")
    try:
        home = Path(named or pwd.getpwuid(os.getuid()).pw_dir)
    except KeyError:
        return Path("/nonexistent")
    try:
        (home / ".config").stat()
    except PermissionError as wrong:
        whose = f"HOME is {named}" if named else f"HOME is not set, and the home of this account is {wrong.filename}"
        raise SettingsError(
            f"{whose}, which the account {_get_user_name()} may not enter, so menugate cannot look for your "
            "configuration there. Set HOME to a folder of this account; with sudo, use `sudo -H`."
        ) from None
    except OSError:
        pass
    return home


def _check_auth(asked: bool, http: tuple[str, int] | None) -> bool:
    if http and not asked and not is_loopback(http[0]):
        raise SettingsError(
            f"--no-auth is for loopback only, and {http[0]} is not loopback; leave it out, and clients need a token."
        )
    return asked


def _read_state_home(env: Mapping[str, str], workspace: Path, home: Path) -> Path | None:
    """Read the folder that the operator named for keys; commands must not be able to write there."""
    if not (given := env.get("MENUGATE_STATE_HOME")):
        return None
    place = Path(given).resolve()
    for written in (workspace, *_get_cache_folders(home)):
        if place.is_relative_to(written) or written.is_relative_to(place):
            raise SettingsError(
                f"MENUGATE_STATE_HOME is {place}, and commands can write in {written}, so they could replace the keys "
                "and forge the record. Name another folder, or leave it out."
            )
    return place


def _get_cache_folders(home: Path) -> tuple[Path, ...]:
    from mcp_server.model.processes import CACHES

    return tuple((home / name).resolve() for name in CACHES.split())


def _find_keys(env: Mapping[str, str], workspace: Path, home: Path) -> "tuple[KeyFolder | None, tuple[Path, ...]]":
    """Find the folder for keys, and every folder where keys may be."""
    from mcp_server.state.account import is_usable, list_key_folders, move_keys

    named = _read_state_home(env, workspace, home)
    folders = list_key_folders(named)
    chosen, places = next(filter(is_usable, folders), None), [one.folder for one in folders]
    # Earlier versions kept them where the environment said.
    older = [Path(xdg).absolute() / "menugate"] if (xdg := env.get("XDG_STATE_HOME")) else []
    older.append(home.absolute() / ".local" / "state" / "menugate")
    if chosen and chosen.folder != named:
        # A named folder starts empty: the account's usual keys stay where they are.
        any(move_keys(one, chosen, (workspace, *_get_cache_folders(home))) for one in older if one not in places)
    return chosen, tuple(dict.fromkeys((*places, *older)))


def _find_state_folder(top: Path, secrets: Path | None) -> Path:
    from mcp_server.state.location import find_state_folder, is_closed_to_account

    try:
        if secrets is None and is_closed_to_account(top):
            raise SettingsError(
                f"{top} belongs to another account, and you may not enter it. Set MENUGATE_STATE_HOME to a folder that "
                "you can write, for your own state."
            )
        return find_state_folder(top, secrets)
    except OSError as wrong:
        raise SettingsError(
            f"{wrong.filename} cannot be used ({wrong.strerror}); menugate keeps its keys there."
        ) from None


def _get_secret_values(env: Mapping[str, str]) -> tuple[str, ...]:
    named = (value for name, value in sorted(env.items()) if SECRET_NAME.search(name))
    return tuple(value for value in named if len(value) >= SHORTEST_SECRET)


def _get_keyring_variables(env: Mapping[str, str], home: Path) -> tuple[tuple[str, str], ...]:
    """How a program finds the session's keyring. Hosts often drop these variables, so we name the usual place."""
    found = {"PATH": env.get("PATH") or os.defpath, "HOME": str(home), "LC_ALL": "C.UTF-8"}
    found |= {name: env[name] for name in SESSION_VARIABLES if name in env}
    bus = f"/run/user/{os.getuid()}/bus"
    if "DBUS_SESSION_BUS_ADDRESS" not in found and os.path.exists(bus):  # noqa: PTH110  # every start passes here
        found["DBUS_SESSION_BUS_ADDRESS"] = f"unix:path={bus}"
    return tuple(sorted(found.items()))


def _get_inherited_variables(env: Mapping[str, str], home: Path) -> tuple[tuple[str, str], ...]:
    found = {name: env[name] for name in HANDED_ON.split() if name in env}
    found |= {name: value for name, value in env.items() if name.startswith("LC_")}
    found |= {"PATH": env.get("PATH") or os.defpath, "HOME": str(home)}
    return tuple(sorted(found.items()))


def _get_outside_variables(env: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    given = env.get("MENUGATE_STATE_HOME")
    return (("MENUGATE_STATE_HOME", str(Path(given).resolve())),) if given else ()


def may_use_colours(environment: Mapping[str, str] | None = None) -> bool:
    env = os.environ if environment is None else environment
    return not env.get("NO_COLOR") and env.get("TERM") != "dumb"


def read_columns(environment: Mapping[str, str] | None = None) -> int:
    """Read how wide text may be from `COLUMNS`; 0 if it says nothing."""
    given = (os.environ if environment is None else environment).get("COLUMNS", "")
    return int(given) if given.isascii() and given.isdigit() and len(given) < 6 else 0


def read_variable(name: str, environment: Mapping[str, str] | None = None) -> str:
    """Read a variable that a configuration file names; empty if it is not set."""
    env = os.environ if environment is None else environment
    return env.get(name, "").strip()


def find_variable(name: str, environment: Mapping[str, str] | None = None) -> str | None:
    """Find the exact value of a variable that a configuration file names; None if it is not set."""
    return (os.environ if environment is None else environment).get(name)


def is_loopback(host: str) -> bool:
    return host in ("localhost", "::1") or host.startswith("127.")


def _find_workspace(given: str | None) -> Path:
    try:
        path = Path(given or ".").resolve()
    except FileNotFoundError:
        raise SettingsError("the current folder no longer exists; change to another one.") from None
    if not path.is_dir():
        raise SettingsError(f"the workspace {path} is not a folder; name one with --workspace.")
    return path


def _find_config(given: str | None, folder: Path) -> tuple[Path | None, tuple[Path, ...]]:
    """Find the operator's file, and its path as given."""
    if given:
        path = Path(given).resolve()
        if not path.is_file():
            raise SettingsError(f"the configuration {path} is not a file; name one with --config, or leave it out.")
        return path, (Path(given).absolute(),)
    usual = folder / OPERATORS_FILE
    return usual if usual.is_file() else None, (usual,) if os.path.lexists(folder) else ()


def _parse_address(given: str | None) -> tuple[str, int] | None:
    if given is None:
        return None
    host, colon, port = given.rpartition(":")
    if not colon or not port.isdigit() or int(port) > 65535:
        raise SettingsError(f"`{given}` is not HOST:PORT; for example --http 127.0.0.1:7391.")
    return host.strip("[]") or "127.0.0.1", int(port)


def _parse_choice(axis: type[Axis], name: str, given: str | None) -> Axis | None:
    if given is None:
        return None
    try:
        return axis(given)
    except ValueError:
        raise SettingsError(f"--{name} must be one of {', '.join(axis)}, not `{given}`.") from None


def _read_exporter(env: Mapping[str, str], signal: str) -> str:
    """Read the exporter from the standard variables; an endpoint alone means OTLP, and no variable means none."""
    if env.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
        return ""
    asked = env.get(f"OTEL_{signal}_EXPORTER", "").strip().lower()
    endpoint = env.get(f"OTEL_EXPORTER_OTLP_{signal}_ENDPOINT") or env.get("OTEL_EXPORTER_OTLP_ENDPOINT")
    return "" if asked == "none" else asked or ("otlp" if endpoint else "")


def _parse_list(given: str | None) -> tuple[str, ...]:
    return tuple(part.strip() for part in (given or "").split(",") if part.strip())


def _get_user_name() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return str(os.getuid())
