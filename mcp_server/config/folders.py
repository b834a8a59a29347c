"""Which folders must exist before anything is opened, and are they really folders?"""

import os
from contextlib import suppress

from mcp_server.settings import OPERATORS_FILE, BuildError, Settings
from mcp_server.state.location import make_private_folder


def prepare_folders(settings: Settings) -> None:
    for folder in settings.state_folders:
        if folder.is_symlink():
            # The link may have come with the workspace, and lead to a folder where tools read and write.
            raise BuildError(f"{folder} is a link, but menugate keeps its state in a real folder; remove the link.")
    # A missing folder cannot be protected from a program that creates it, and a workspace may be a whole home.
    places = (settings.operators, *settings.key_places)
    inside = [place for place in places if place.resolve() in settings.protected_inside_workspace]
    for folder in (*settings.state_folders, *settings.private_folders, *inside):
        try:
            make_private_folder(folder)
        except OSError as wrong:
            raise BuildError(
                f"{folder} cannot be created ({wrong.strerror}); menugate keeps its state there."
            ) from wrong
    if settings.operators.resolve() == settings.workspace:
        with suppress(FileExistsError):
            os.close(os.open(settings.workspace / OPERATORS_FILE, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    ignore = settings.state_folders[0] / ".gitignore"
    # A courtesy to the user's repository. A failure must not keep a server from reading the state.
    with suppress(OSError):
        if not ignore.exists():
            ignore.write_text("*\n")
