"""Makes every call that this torch's TCPStore has, and prints what each gave, one line a call.

usage: store_calls.py HOST:PORT    with that store
       store_calls.py own          with a server of torch's own

The lines are the same with every right store: values, not times or addresses.
"""
import datetime
import sys
import threading

import torch.distributed as dist

SECOND = datetime.timedelta(seconds=1)
PATIENCE = 60 * SECOND


def make_store(host, port, **arguments):
    arguments.setdefault("timeout", PATIENCE)
    try:  # Debian's torch 2.x has no libuv, and torch 1.13 no such argument
        return dist.TCPStore(host, port, use_libuv=False, **arguments)
    except TypeError:
        return dist.TCPStore(host, port, **arguments)


def show(name, call):
    try:
        outcome = call()
    except Exception as error:  # its text differs with the address
        outcome = type(error).__name__
    if isinstance(outcome, bytes) and len(outcome) > 100:
        outcome = f"{len(outcome)} bytes, sum {sum(outcome)}"
    print(f"{name}: {outcome!r}", flush=True)


def show_sent(name, store, call):
    """For calls without an answer: the next call of another connection could overtake them, so
    one that is answered follows on the same connection."""
    show(name, call)
    store.num_keys()


def have(store, name):
    if hasattr(store, name):
        return True
    print(f"{name}: not in this torch", flush=True)
    return False


def basics(a, b):
    show_sent("set", a, lambda: a.set("k", "v"))
    show("get", lambda: b.get("k"))
    show_sent("set bytes", a, lambda: a.set("bytes", bytes(range(256))))
    show("get bytes", lambda: list(b.get("bytes")))
    show_sent("set empty", a, lambda: a.set("empty", ""))
    show("get empty", lambda: b.get("empty"))
    show_sent("set with an empty key", a, lambda: a.set("", "nothing"))
    show("get with an empty key", lambda: b.get(""))
    show_sent("set a name", a, lambda: a.set("schl\u00fcssel", "wert"))
    show("get a name", lambda: b.get("schl\u00fcssel"))
    show_sent("set again", a, lambda: a.set("k", "w"))
    show("get again", lambda: b.get("k"))
    for number in (1, 5, -10, 0, 2**40, -(2**62)):
        show(f"add {number}", lambda: a.add("n", number))
    show("get of a sum", lambda: b.get("n"))
    show("add to nothing", lambda: a.add("new", 0))
    show("get of it", lambda: b.get("new"))
    show_sent("set a number", a, lambda: a.set("text", " 41x"))
    show("add to text", lambda: b.add("text", 1))
    show("num_keys", a.num_keys)
    show("delete_key", lambda: a.delete_key("k"))
    show("delete_key again", lambda: b.delete_key("k"))
    show("num_keys after it", b.num_keys)


def compare_sets(a, b):
    for expected, desired in [("", "one"), ("two", "three"), ("one", "two"), ("", "x"), ("two", "")]:
        show(f"compare_set {expected} {desired}", lambda: a.compare_set("c", expected, desired))
    show("compare_set to empty", lambda: b.compare_set("c", "", "again"))
    show("compare_set of nothing", lambda: b.compare_set("absent", "x", "y"))
    show("get of a winner", lambda: b.get("c"))


def waits(a, b, again):
    a.set("w1", "1")
    show("wait", lambda: b.wait(["w1"]))
    show("wait for two", lambda: b.wait(["w1", "n"]))
    show("wait with a limit", lambda: b.wait(["w1"], 20 * SECOND))
    setter = threading.Timer(0.05, lambda: a.set("later", "now"))
    setter.start()
    show("get waits", lambda: b.get("later"))
    setter.join()
    patient = again()
    show("wait in vain", lambda: patient.wait(["never"], SECOND / 5))
    hasty = again()
    show("set_timeout", lambda: hasty.set_timeout(SECOND / 5))
    show("get in vain", lambda: hasty.get("never"))
    if have(a, "check"):
        show("check", lambda: a.check(["n", "c"]))
        show("check of nothing", lambda: a.check(["n", "never"]))
        show("num_keys behind a wait in vain", lambda: patient.num_keys() == b.num_keys())
        show("add behind a wait in vain", lambda: hasty.add("hasty", 3))


def prefixes(a, b):
    outer = dist.PrefixStore("pre", a)
    inner = dist.PrefixStore("in", outer)
    show_sent("prefix set", a, lambda: outer.set("k", "outer"))
    show("prefix add", lambda: inner.add("k", 7))
    show("prefix get", lambda: b.get("pre/k"))
    show("prefix of a prefix", lambda: b.get("pre/in/k"))
    show("prefix wait", lambda: inner.wait(["k"]))
    show("prefix compare_set", lambda: inner.compare_set("cas", "", "x"))
    show("prefix delete", lambda: outer.delete_key("k"))
    show("prefix num_keys", lambda: inner.num_keys() == b.num_keys())


def large_and_many(a, b):
    for size in (1439, 1440, 4096, 70_000, 8 * 1024 * 1024):
        value = bytes(i * 7 % 251 for i in range(1000)) * (size // 1000 + 1)
        show_sent(f"set of {size}", a, lambda: a.set("large", value[:size]))
        show(f"get of {size}", lambda: b.get("large"))
    show_sent("a long key", a, lambda: a.set("x" * 8000, "y"))
    show("get of it", lambda: b.get("x" * 8000))
    for number in range(2000):
        a.set(f"many/{number}", str(number))
    show("many", lambda: sum(int(b.get(f"many/{number}")) for number in range(2000)))
    show("wait for many", lambda: b.wait([f"many/{number}" for number in range(2000)]))
    show("num_keys of many", b.num_keys)


def extended(a, b, again):
    if have(a, "has_extended_api"):
        show("has_extended_api", a.has_extended_api)
    if have(a, "append"):
        show_sent("append to nothing", a, lambda: a.append("ap", "abc"))
        show_sent("append", b, lambda: b.append("ap", "def"))
        show("get of both", lambda: a.get("ap"))
    if have(a, "multi_set"):
        show_sent("multi_set", a, lambda: a.multi_set(["m1", "m2", "m3"], ["1", "", "333"]))
        show("multi_get", lambda: b.multi_get(["m3", "m1", "m2"]))
        show("multi_get of none", lambda: b.multi_get([]))
        keys = [f"mm/{number}" for number in range(3000)]
        show_sent("multi_set of many", a, lambda: a.multi_set(keys, keys))
        show("multi_get of many", lambda: [bytes(v).decode() for v in b.multi_get(keys)] == keys)
    if have(a, "queue_push"):
        show("queue_push", lambda: a.queue_push("q", "item"))
        show("queue_len", lambda: a.queue_len("q"))
        show("queue_pop", lambda: a.queue_pop("q", False))
    if have(a, "list_keys"):
        show("list_keys", lambda: sorted(k for k in a.list_keys() if len(k) < 20 and k[:1] != "m"))
        show("list_keys counts", lambda: len(b.list_keys()) == b.num_keys())
        prefixed = dist.PrefixStore("pre", a)
        if hasattr(prefixed, "list_keys"):
            show("list_keys of a prefix", lambda: sorted(prefixed.list_keys()))
    if have(a, "barrier"):
        other = again()
        waiter = threading.Thread(target=lambda: other.barrier("bar", 2))
        try:
            waiter.start()
            show("barrier", lambda: a.barrier("bar", 2))
        finally:
            waiter.join()
        show("barrier of one", lambda: a.barrier("bar1", 1))
        show("get of a barrier", lambda: b.get("bar"))
    if have(a, "clone"):
        copy = a.clone()
        show("clone", lambda: copy.get("n") == a.get("n"))


def properties(store, host, port):
    show("host", lambda: store.host == host)
    show("port", lambda: store.port == port)
    if have(store, "timeout"):
        show("timeout", lambda: store.timeout)


def main():
    print(dist.TCPStore.__name__, "of torch", sys.modules["torch"].__version__)
    if sys.argv[1] == "own":
        server = make_store("127.0.0.1", 0, is_master=True, wait_for_workers=False)
        host, port = "127.0.0.1", server.port
    else:
        host, port = sys.argv[1].rsplit(":", 1)
        port = int(port)

    def again():
        return make_store(host, port, is_master=False, wait_for_workers=False)

    a, b = again(), again()
    properties(a, host, port)
    basics(a, b)
    compare_sets(a, b)
    waits(a, b, again)
    prefixes(a, b)
    extended(a, b, again)
    large_and_many(a, b)
    # A worker among many announces itself; the first of them waits for all.
    counted = make_store(host, port, world_size=1, is_master=False)
    show("workers", lambda: counted.num_keys() == a.num_keys())
    show("num_keys in the end", a.num_keys)


main()
