"""Which paths does the person have to be asked about, and in which words?"""


def to_read(path: str) -> str | None:
    # Here and not above: this is asked about a call, and every start would wait for the port.
    from mcp_server.model.files import secret

    return f"`{path}` usually holds passwords or keys, which the model would see." if secret(path) else None


def to_change(*paths: str) -> str | None:
    from mcp_server.model.files import protected

    for path in paths:
        if protected(path):
            return f"`{path}` decides what other programs run, also after this session."
    return next((why for path in paths if (why := to_read(path))), None)


def to_move(source: str, destination: str) -> str | None:
    from mcp_server.model.files import installed

    if installed(destination) and not installed(source):
        return f"`{destination}` lies among what is installed, where secrets are not hidden from commands."
    return to_change(source, destination)
