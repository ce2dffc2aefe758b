"""Suppliers and consumers of an event channel (CosEvent), for numbers in order.

    events.py consume CHANNEL        is pushed to, and prints each number
    events.py supply CHANNEL COUNT   pushes 1 to COUNT, and prints each number that was taken
    events.py pull CHANNEL           pulls, which waits for an event, and prints each number
    events.py source CHANNEL COUNT   is pulled for 1 to COUNT
    events.py waiting CHANNEL COUNT  the same by a supplier that has pull only, and no try_pull

CHANNEL is a reference, such as corbaloc::n1:2812,:n2:2812,:n3:2812/Events/alarms. A push whose
outcome is not known is repeated, as its user would do.
"""

import os
import sys
import threading
import time

from omniORB import CORBA, PortableServer, any as anys
import CosEventChannelAdmin
import CosEventComm
import CosEventComm__POA

# How long somebody goes on who is not answered.
PATIENCE = 60


# Calls of the channel are served by other threads.
SAYING = threading.Lock()


def say(what):
    with SAYING:
        print(what, flush=True)


class Consumer(CosEventComm__POA.PushConsumer):
    def push(self, data):
        say(anys.from_any(data))

    def disconnect_push_consumer(self):
        say("disconnected")


class Source(CosEventComm__POA.PullSupplier):
    def __init__(self, count):
        self.left = list(range(1, count + 1))
        self.lock = threading.Lock()

    def try_pull(self):
        with self.lock:
            if not self.left:
                return CORBA.Any(CORBA.TC_long, 0), False
            number = self.left.pop(0)
        say(number)
        return CORBA.Any(CORBA.TC_long, number), True

    def pull(self):
        raise CORBA.NO_IMPLEMENT()

    def disconnect_pull_supplier(self):
        say("disconnected")


class Waiting(Source):
    """One whose pull answers when there is a number."""

    def try_pull(self):
        raise CORBA.NO_IMPLEMENT()

    def pull(self):
        time.sleep(0.005)
        with self.lock:
            number = self.left.pop(0) if self.left else None
        if number is None:
            threading.Event().wait()
        say(number)
        return CORBA.Any(CORBA.TC_long, number)


def again(call):
    """Calls until it is answered: a member may end, or another one begin to lead."""
    end = time.monotonic() + PATIENCE
    while True:
        try:
            return call()
        except (CORBA.TRANSIENT, CORBA.COMM_FAILURE, CORBA.TIMEOUT):
            if time.monotonic() > end:
                raise
            time.sleep(0.02)


def consume(channel, poa, _):
    proxy = again(lambda: again(channel.for_consumers).obtain_push_supplier())
    consumer = Consumer()._this()
    again(lambda: proxy.connect_push_consumer(consumer))
    say("connected")
    threading.Event().wait()


def supply(channel, poa, count):
    proxy = again(lambda: again(channel.for_suppliers).obtain_push_consumer())
    again(lambda: proxy.connect_push_supplier(None))
    say("connected")
    for number in range(1, count + 1):
        data = CORBA.Any(CORBA.TC_long, number)
        again(lambda: proxy.push(data))
        say(number)


def pull(channel, poa, _):
    proxy = again(lambda: again(channel.for_consumers).obtain_pull_supplier())
    again(lambda: proxy.connect_pull_consumer(None))
    say("connected")
    while True:
        say(anys.from_any(again(proxy.pull)))


def source(channel, poa, count):
    is_pulled(channel, Source(count))


def waiting(channel, poa, count):
    is_pulled(channel, Waiting(count))


def is_pulled(channel, servant):
    proxy = again(lambda: again(channel.for_suppliers).obtain_pull_consumer())
    supplier = servant._this()
    again(lambda: proxy.connect_pull_supplier(supplier))
    say("connected")
    threading.Event().wait()


def main():
    orb = CORBA.ORB_init(sys.argv, CORBA.ORB_ID)
    poa = orb.resolve_initial_references("RootPOA")
    poa._get_the_POAManager().activate()
    role, reference, *more = sys.argv[1:]
    found = again(lambda: orb.string_to_object(reference)._narrow(
        CosEventChannelAdmin.EventChannel))
    if found is None:
        raise SystemExit(f"{reference} is no event channel")
    roles = {"consume": consume, "supply": supply, "pull": pull, "source": source,
             "waiting": waiting}
    roles[role](found, poa, int(more[0]) if more else 0)
    # A thread of the ORB that still waits for the interpreter would abort the process when the
    # interpreter ends: the process ends without it.
    sys.stdout.flush()
    os._exit(0)


main()
