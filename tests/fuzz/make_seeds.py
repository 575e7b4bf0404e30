"""Makes the fuzz targets' first inputs out of the recorded connections.

usage: make_seeds.py FOLDER_OF_RECORDINGS OUTPUT_FOLDER

Each target's source says how its inputs are laid out.
"""
import json
import pathlib
import struct
import sys

LONGEST = 3000
HANDSHAKE = bytes.fromhex("00cef7853c")
CODEC_A, CODEC_C, CODEC_REQUESTS, CODEC_REPLIES, CODEC_REPLY_READER, CODEC_OPENING = 1, 3, 4, 5, 6, 7
TOKEN = bytes([7]) + bytes(15)


def recorded(folder):
    """(name, exchange) of each recorded call: steps (connection, "C>S" or "S>C", bytes)."""
    for file in sorted(folder.glob("*.jsonl")):
        for number, line in enumerate(file.read_text().splitlines()):
            record = json.loads(line)
            steps = []
            for step in record["exchange"]:
                if "hex" in step and "then_mebibyte" not in step:
                    steps.append((step["conn"], step["dir"], bytes.fromhex(step["hex"])))
            if sum(len(step[2]) for step in steps) < LONGEST:
                yield f"{file.stem}-{number}", file.stem.startswith("torch-1"), steps


def text(data):
    return struct.pack("<I", len(data)) + data


def optional(data):
    return b"\0" if data is None else b"\1" + text(data)


def frame(request, kind, body=b""):
    return struct.pack("<IQB", 9 + len(body), request, kind) + body


def many(*items):
    return struct.pack("<I", len(items)) + b"".join(items)


def opening():
    return b"\xd5drun\r\n\0" + struct.pack("<HH", 1, 2)


def place(era, number, rank, nodes, casting=0xFFFFFFFF):
    return struct.pack("<QQIII", era, number, rank, nodes, casting)


VOTE = text(b"drun/a/") + b"\1" + place(1, 1, 0, 2, 0) + many(place(1, 2, 0, 1))


REQUESTS = [
    frame(1, 0x01, struct.pack("<II", 1000, 200)),
    frame(2, 0x02, struct.pack("<Q", 1) + TOKEN),
    frame(3, 0x03),
    frame(4, 0x04),
    frame(5, 0x05, many(text(b"a") + optional(None)) + many(text(b"a") + b"\0" + optional(b"1"))),
    frame(6, 0x05, many(text(b"a") + optional(b"1")) + many(text(b"b") + b"\1" + optional(b"2"),
                                                            text(b"a") + b"\0" + optional(None))),
    frame(7, 0x06, many(text(b"a"), text(b"b"))),
    frame(8, 0x07, text(b"") + b"\1"),
    frame(9, 0x08, text(b"a") + b"\1"),
    frame(10, 0x09, struct.pack("<Q", 9)),
    frame(11, 0x0A, many(text(b"a"), text(b"c"))),
    frame(12, 0x0B, struct.pack("<Q", 11)),
    frame(13, 0x0C),
    frame(14, 0x0D, text(b"ping")),
    frame(15, 0x0E, text(b"") + b"\0" + many()),
    frame(16, 0x0E, VOTE),
    frame(17, 0x0F, struct.pack("<Q", 0)),
    frame(18, 0x10, struct.pack("<IIQ", 1000, 200, 1) + VOTE),
    frame(19, 0x11, struct.pack("<Q", 1) + VOTE),
]
REVISION = struct.pack("<Q", 7)
REPLIES = [
    frame(0, 0x80, struct.pack("<HIIQI", 1, 1000, 100, 2000, 16)),
    frame(0, 0x81, struct.pack("<HH", 1, 1) + text(b"no")),
    frame(1, 0x82),
    frame(2, 0x83, struct.pack("<Q", 1) + TOKEN + struct.pack("<II", 1000, 200)),
    frame(3, 0x84, b"\2"),
    frame(4, 0x85, REVISION),
    frame(5, 0x86, REVISION + many(optional(None), optional(b"x"))),
    frame(6, 0x87, REVISION + many(optional(b""), optional(None))),
    frame(7, 0x88, REVISION + many(text(b"a") + optional(None))),
    frame(8, 0x89, REVISION + many(text(b"a") + optional(b"1"))),
    frame(9, 0x8A, REVISION + many(text(b"a") + optional(None), text(b"b") + optional(b"2"))),
    frame(10, 0x8B, many(text(b"keys") + REVISION)),
    frame(11, 0x8C, text(b"pong")),
    frame(13, 0x8D, struct.pack("<QI", 1, 20) + place(1, 1, 0xFFFFFFFF, 2, 0) + REVISION),
    frame(12, 0xFF, struct.pack("<H", 4) + text(b"limit")),
]


def codec_seeds(folder):
    for name, is_old, steps in recorded(folder):
        for number, (_, direction, data) in enumerate(steps):
            kind = CODEC_A if is_old else CODEC_C
            if direction == "C>S":
                yield f"{name}-{number}", bytes([kind, 3]) + data.removeprefix(HANDSHAKE)
                yield f"{name}-{number}-first", bytes([0, 0]) + data[:20]
            else:
                for shape in range(8):
                    yield f"{name}-{number}-{shape}", bytes([CODEC_REPLY_READER, 1, shape, 2]) + data
    for number, data in enumerate(REQUESTS):
        yield f"request-{number}", bytes([CODEC_REQUESTS, 5]) + data
    for number, data in enumerate(REPLIES):
        yield f"reply-{number}", bytes([CODEC_REPLIES, 5]) + data
    yield "requests", bytes([CODEC_REQUESTS, 5]) + b"".join(REQUESTS)
    yield "opening", bytes([CODEC_OPENING, 0]) + opening()


def raw_step(connection, data, cut):
    assert len(data) < 5000
    return bytes([connection % 4 + 4, cut]) + struct.pack("<H", len(data)) + data


def session_seeds(folder):
    for options in (0, 1, 2, 3):
        whole = {}
        for name, is_old, steps in recorded(folder):
            sent = [(connection, data) for connection, direction, data in steps if direction == "C>S"]
            first = {connection: bytes([connection % 4 + 4 * 5, 1]) for connection, _ in sent}
            head = b"" if is_old else b"".join(first.values())
            body = b"".join(raw_step(*step, 1) for step in sent)
            yield f"{name}-{options}", bytes([options]) + head + body
            if len(whole.setdefault(is_old, head)) < LONGEST:
                whole[is_old] += body
        for is_old, data in whole.items():
            yield f"all-{is_old}-{options}", bytes([options]) + data
        control = raw_step(0, opening(), 1) + raw_step(1, opening() + REQUESTS[0], 2)
        for number, data in enumerate(REQUESTS):
            yield f"request-{number}-{options}", bytes([options]) + control + raw_step(0, data, 1)
            control += raw_step(number % 2, data, 2)
        yield f"control-{options}", bytes([options]) + control
    # Requests made up from few bytes: each kind, on each protocol, after an opening.
    for kind in range(18):
        steps = b"".join(bytes([20 + c, c % 2 + 2]) for c in range(4))
        for connection in range(4):
            action = 16 if connection % 2 == 0 else 8
            tail = bytes([1, kind + 1]) if action == 16 else bytes([kind])
            steps += bytes([action + connection, 1]) + tail + bytes([2, 1, 1, 2, 1, 1])
        yield f"made-{kind}", b"\1" + steps


def model_seeds(_):
    for kind in range(18):
        steps = b"".join(bytes([client, client, (kind + client * 5) % 18, client % 3, 1, 1, 2])
                         for client in range(12))
        yield f"kind-{kind}", steps


def relay_seeds(folder):
    for name, data in model_seeds(folder):
        yield f"model-{name}", b"\0" + data
        yield f"store-{name}", b"\x80\1" + data
        yield f"relay-{name}", b"\xC0\3" + data


def snapshot_seeds(_):
    def vec(data):
        return struct.pack("<Q", len(data)) + data

    def count(*items):
        return struct.pack("<Q", len(items)) + b"".join(items)

    session = struct.pack("<Q", 1) + TOKEN + struct.pack("<QQ", 1000, 200)
    keys = count(vec(b"a") + vec(b"1") + struct.pack("<Q", 0), vec(b"b") + vec(b"2") + struct.pack("<Q", 1))
    queues = count(vec(b"q") + count(vec(b"x"), vec(b"yy")))
    body = struct.pack("<Q", 5) + count(session) + keys + queues
    yield "body", b"\0" + body
    yield "empty", b"\0" + struct.pack("<Q", 0) + count() + count() + count()
    yield "keys", b"\0" + struct.pack("<Q", 1) + count() + keys.replace(b"\1", b"\0") + count()
    yield "file", b"\1drunsnap" + struct.pack("<IQ", 1, len(body)) + body + bytes(8)


def http_seeds(_):
    get = b"GET /metrics?ranks=1 HTTP/1.1\r\nHost: [::1]:9000\r\nAccept: application/openmetrics-text;q=0.9,text/plain\r\n"
    yield "get", b"\0" + get + b"\r\n"
    yield "head", b"\1HEAD / HTTP/1.0\r\n\r\n"
    yield "pipelined", b"\2" + get + b"\r\n" + get + b"\n"
    yield "body", b"\3POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4\r\n\r\nbody"
    yield "post", b"\7POST /stacks HTTP/1.1\r\nHost: h:1\r\nOrigin: http://h:1\r\nAuthorization: Bearer abc\r\nContent-Length: 0\r\n\r\n"
    yield "folded", b"\4" + get + b" more\r\n\r\n"
    yield "line-feeds", b"\5" + get.replace(b"\r", b"") + b"\n"
    yield "tls", b"\6\x16\x03\x01\x02\x00\x01"


def tls_seeds(_):
    all_of_it, some, said = 253, 4 * 50 + 1, 4 * 40 + 3
    shaken = bytes([all_of_it, all_of_it])
    hello = b"\x16\x03\x01\x00\x20\x01" + bytes(31)
    alert = b"\x15\x03\x03\x00\x02\x01\x00"
    for options in (0, 1):
        head = bytes([options])
        yield f"whole-{options}", head + shaken + bytes([said, all_of_it, said, all_of_it])
        yield f"pieces-{options}", head + bytes([some] * 12) + bytes([said, some, some, some])
        yield f"hello-{options}", head + bytes([4 * len(hello)]) + hello
        yield f"end-{options}", head + bytes([all_of_it, 4 * len(alert)]) + alert
        yield f"alert-{options}", head + shaken + bytes([4 * len(alert)]) + alert
        for step, bit in ((254, 0), (4 * 9 + 2, 3), (4 * 60 + 2, 7)):
            yield f"changed-{options}-{step}", head + bytes([some, step, bit]) + shaken
            yield f"broken-{options}-{step}", head + shaken + bytes([said, 4 * 5 + 1, step, bit]) + shaken


def main():
    recordings, output = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    for target, seeds in [("codec", codec_seeds), ("session", session_seeds), ("model", model_seeds),
                          ("relay", relay_seeds),
                          ("snapshot", snapshot_seeds), ("http", http_seeds), ("tls", tls_seeds)]:
        folder = output / target
        folder.mkdir(parents=True, exist_ok=True)
        for name, data in seeds(recordings):
            (folder / name).write_bytes(data)
    (output / ".complete").touch()


main()
