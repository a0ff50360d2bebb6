"""The way of a probe's events to Interlock: sealed lines, written where tested code cannot take them back.

A line is a JSON array, a space, and a keyed digest of the line and of the digest before it. Whoever shares the process
can write to the descriptor; without the key, which is kept in a closure, such a line does not fit the chain.
"""
# pyright: basic

import hashlib
import json
import os
import threading


def sealer(key, lane):
    """Return a function that makes the next sealed line of a lane from an event.

    `key` has 32 secret bytes; `lane` is the name of a worker, empty for the process that was started.
    """
    digest, dumps, lock = hashlib.blake2b, json.dumps, threading.Lock()
    last = [lane.encode()]

    def seal(event):
        with lock:
            body = dumps(event).encode()
            last[0] = digest(last[0] + body, key=key, digest_size=16).hexdigest().encode()
            return body + b" " + last[0]

    return seal


def writer(fd):
    """Return a function that writes lines to a descriptor, in this process alone, even when nobody reads them."""
    write, getpid, lock = os.write, os.getpid, threading.Lock()
    mine = getpid()

    def put(line):
        if getpid() != mine:
            return
        data = line + b"\n"
        with lock:
            try:
                while data:
                    data = data[write(fd, data) :]
            except OSError:
                return

    return put


def read_spec(fd):
    """Read the JSON of a descriptor to its end, and close it."""
    parts = []
    while True:
        part = os.read(fd, 65536)
        if not part:
            break
        parts.append(part)
    os.close(fd)
    return json.loads(b"".join(parts))


def opened(spec_fd, stream_fd):
    """Return the specification of a descriptor, and a function that writes an event to the other one."""
    spec = read_spec(spec_fd)
    os.set_inheritable(stream_fd, False)
    seal, put = sealer(bytes.fromhex(spec["key"]), ""), writer(stream_fd)

    def emit(event):
        put(seal(event))

    return spec, emit
