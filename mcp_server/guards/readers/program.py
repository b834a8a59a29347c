"""The process that reads strangers' documents. Started by `worker.py`, in a sandbox without network.

It reads requests from standard input and writes answers to standard output, each as its length in four bytes and JSON;
the document follows the request. Nothing but plain data leaves it.
"""

import json
import resource
import struct
import sys
from dataclasses import asdict
from typing import Any

LENGTH = struct.Struct(">I")


def main() -> None:
    memory = int(sys.argv[1])
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    source, sink = sys.stdin.buffer, sys.stdout.buffer
    while head := source.read(LENGTH.size):
        request = json.loads(source.read(LENGTH.unpack(head)[0]))
        answer = json.dumps(answer_request(request, source.read(request["size"]))).encode()
        sink.write(LENGTH.pack(len(answer)) + answer)
        sink.flush()


def answer_request(request: dict[str, Any], document: bytes) -> dict[str, Any]:
    try:
        match request["kind"]:
            case "html":
                from mcp_server.guards.readers.html import read_html

                return asdict(read_html(document, request["charset"], request["address"]))
            case kind:
                return {"fault": f"there is no reader for `{kind}`"}
    except MemoryError:
        return {"fault": "reading it needs too much memory"}
    except ModuleNotFoundError as error:
        return {"missing": error.name}
    except Exception as error:
        return {"fault": f"it cannot be read ({type(error).__name__})"}


if __name__ == "__main__":
    main()
