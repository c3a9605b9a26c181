# SPDX-License-Identifier: Apache-2.0
"""An exporter of connections to a collector: `conntrack -E | python log_exporter.py ipfix|syslog PORT [N]`.

It sends IPFIX of RFC 7011 with the elements of RFC 8158, or syslog of RFC 5426, and leaves each Nth record out.
"""

import re
import socket
import struct
import sys
from collections.abc import Iterator

LINE = re.compile(r"src=(\S+) dst=(\S+) sport=(\d+) dport=(\d+) .*src=\S+ dst=(\S+) sport=\d+ dport=(\d+)")
#: natEvent, source, destination, ports, postNAT source and port.
ELEMENTS = ((230, 1), (8, 4), (12, 4), (7, 2), (11, 2), (225, 4), (227, 2))
TEMPLATE = b"".join([struct.pack(">HHHH", 2, 8 + 4 * len(ELEMENTS), 256, len(ELEMENTS))] + [
    struct.pack(">HH", *element) for element in ELEMENTS
])  # fmt: skip


def message(sets: bytes, number: int) -> bytes:
    return struct.pack(">HHIII", 10, 16 + len(sets), 0, number, 1) + sets


def messages(kind: str, leave_out: int) -> Iterator[bytes]:
    if kind == "ipfix":
        yield message(TEMPLATE, 0)
    for number, line in enumerate(sys.stdin, 1):
        found = LINE.search(line)
        if found is None or (leave_out and number % leave_out == 0):
            continue
        if kind == "syslog":
            yield b"<134>1 - gateway nat - - - " + line.encode()
            continue
        source, destination, port, remote, outside, outside_port = found.groups()
        record = struct.pack(
            ">B4s4sHH4sH", 4, socket.inet_aton(source), socket.inet_aton(destination), int(port), int(remote),
            socket.inet_aton(outside), int(outside_port),
        )  # fmt: skip
        yield message(struct.pack(">HH", 256, 4 + len(record)) + record, number)


if __name__ == "__main__":
    out = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    for each in messages(sys.argv[1], int(sys.argv[3]) if len(sys.argv) > 3 else 0):
        out.sendto(each, ("127.0.0.1", int(sys.argv[2])))
