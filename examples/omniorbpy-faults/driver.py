"""Goes through every operation of FT::FaultNotifier and the exceptions that they raise.

    driver.py NOTIFIER [ORB options]

What it is not: a test of faults; it pushes its own. Invariant: it ends with 0 only if all was as it
must be, and then no consumer of it is left.
"""

import os
import queue
import sys
import time

from omniORB import CORBA

import CosEventComm
import CosNaming
import CosNotification
import CosNotifyComm__POA
import FT

DOMAIN, KIND = "FT_CORBA", "ObjectCrashFault"
# Whose faults these are: no domain is called so, and no two runs have the same.
OWN = "driver-%d" % time.time_ns()
# How long a report may take to come, and who is cut off to be forgotten.
SECONDS_MAX = 20
steps = 0


def check(is_so, what):
    global steps
    if not is_so:
        sys.exit("not so: " + what)
    steps += 1
    print("ok %d %s" % (steps, what), flush=True)


def raised(call, *arguments):
    """What a call raises; none if it returns."""
    try:
        call(*arguments)
    except (CORBA.UserException, CORBA.SystemException) as exception:
        return exception
    return None


def raises(kind, what, call, *arguments):
    found = raised(call, *arguments)
    check(isinstance(found, kind), "%s: %s, found %r" % (what, kind.__name__, found))


class Structured(CosNotifyComm__POA.StructuredPushConsumer):
    def __init__(self, takes=True):
        self.events, self.takes = queue.Queue(), takes

    def offer_change(self, added, removed):
        pass

    def push_structured_event(self, notification):
        if not self.takes:
            raise CosEventComm.Disconnected()
        self.events.put(notification)

    def disconnect_structured_push_consumer(self):
        pass


class Sequence(CosNotifyComm__POA.SequencePushConsumer):
    def __init__(self):
        self.events = queue.Queue()

    def offer_change(self, added, removed):
        pass

    def push_structured_events(self, notifications):
        for notification in notifications:
            self.events.put(notification)

    def disconnect_sequence_push_consumer(self):
        pass


def fault(location, group, kind=KIND):
    def item(name, type_code, value):
        return CosNotification.Property(name, CORBA.Any(type_code, value))

    name = [CosNaming.NameComponent(location, "")]
    data = [
        item("FTDomainId", CORBA.TC_string, OWN),
        item("Location", CORBA.TypeCode("IDL:omg.org/CosNaming/Name:1.0"), name),
        item("TypeId", CORBA.TC_string, "IDL:Bank/Ledger:1.0"),
        item("ObjectGroupId", CORBA.TC_ulonglong, group),
    ]
    fixed = CosNotification.FixedEventHeader(CosNotification.EventType(DOMAIN, kind), "")
    return CosNotification.StructuredEvent(
        CosNotification.EventHeader(fixed, []), data, CORBA.Any(CORBA.TC_null, None)
    )


def items(event):
    return {item.name: item.value.value() for item in event.filterable_data}


def event_of(consumer):
    """The next report of this driver."""
    while True:
        event = consumer.events.get(timeout=SECONDS_MAX)
        if items(event).get("FTDomainId") == OWN:
            return event


def next_of(consumer, group="ObjectGroupId"):
    """Its group, by the name that events of this form have for it."""
    return items(event_of(consumer))[group]


def types(kind=KIND, domain=DOMAIN):
    return [CosNotification.EventType(domain, kind)]


def reports(notifier, one, many):
    """What is pushed comes to both kinds of consumers."""
    notifier.push_structured_fault(fault("n1", 1))
    event = event_of(one)
    kind = event.header.fixed_header.event_type
    check((kind.domain_name, kind.type_name) == (DOMAIN, KIND), "a report comes with its type")
    found = items(event)
    check([(part.id, part.kind) for part in found["Location"]] == [("n1", "")], "its location")
    check(found["TypeId"] == "IDL:Bank/Ledger:1.0", "its object's type")
    check(found["ObjectGroupId"] == 1, "and its group")
    check(next_of(many) == 1, "to who takes several at a time, too")
    notifier.push_sequence_fault([fault("n1", 2), fault("n2", 3)])
    check([next_of(one), next_of(one)] == [2, 3], "reports come one by one, in their order")
    check([next_of(many), next_of(many)] == [2, 3], "or together")
    notifier.push_sequence_fault([])
    too_large = fault("n1", 4)
    too_large.remainder_of_body = CORBA.Any(CORBA.TC_string, "x" * 20000)
    raises(CORBA.IMP_LIMIT, "a report of 20,000 octets",
           notifier.push_structured_fault, too_large)
    raises(CORBA.IMP_LIMIT, "or one in a sequence", notifier.push_sequence_fault, [too_large])


def constraints(notifier, first, one, many):
    notifier.replace_constraint(first, types(), "$ObjectGroupId == 5 and $Location[0].id == 'n2'")
    for location, group in [("n1", 5), ("n2", 4), ("n2", 5)]:
        notifier.push_structured_fault(fault(location, group))
    check(next_of(one) == 5, "a constraint lets pass what it says")
    check(one.events.empty(), "and nothing else")
    check([next_of(many) for _ in range(3)] == [5, 4, 5], "others get everything")
    for wrong in ["$a ==", "$a = 1", "(", "'"]:
        raises(CORBA.BAD_PARAM, "a constraint that is none: " + wrong,
               notifier.replace_constraint, first, types(), wrong)
    raises(CORBA.BAD_PARAM, "and one for nobody",
           notifier.replace_constraint, 987654321, types(), "TRUE")
    notifier.push_sequence_fault([fault("n1", 6), fault("n2", 5)])
    check(next_of(one) == 5, "what was refused has changed nothing")
    notifier.replace_constraint(first, types("Other"), "TRUE")
    notifier.push_sequence_fault([fault("n1", 7), fault("n1", 8, "Other")])
    check(next_of(one) == 8, "a constraint is about types of events")
    notifier.replace_constraint(first, types("*", "%ALL"), "$ObjectGroupId == 9")
    notifier.push_sequence_fault([fault("n1", 10), fault("n1", 9, "Other")])
    check(next_of(one) == 9, "or about all of them")
    notifier.replace_constraint(first, [], "TRUE")
    notifier.push_structured_fault(fault("n1", 11))
    check(next_of(one) == 11, "and is replaced by the next one")
    found = [next_of(many) for _ in range(7)]
    check(found == [6, 5, 7, 8, 10, 9, 11], "nobody else minds: %r" % found)


def gone(notifier, one, many, first, second):
    refusing = Structured(takes=False)
    third = notifier.connect_structured_fault_consumer(refusing._this())
    notifier.push_structured_fault(fault("n1", 12))
    check((next_of(one), next_of(many)) == (12, 12), "who refuses keeps nobody waiting")
    began, found = time.monotonic(), None
    # It is cut off by a call of its own; until then it may have a constraint.
    while found is None and time.monotonic() - began < SECONDS_MAX:
        found = raised(notifier.replace_constraint, third, [], "TRUE")
        time.sleep(0.02)
    check(isinstance(found, CORBA.BAD_PARAM), "who says that it is disconnected is forgotten")
    raises(CosEventComm.Disconnected, "it is not disconnected again",
           notifier.disconnect_consumer, third)
    notifier.disconnect_consumer(first)
    notifier.push_structured_fault(fault("n1", 13))
    check(next_of(many) == 13 and one.events.empty(), "who is disconnected gets nothing more")
    raises(CosEventComm.Disconnected, "and is not disconnected again",
           notifier.disconnect_consumer, first)
    raises(CORBA.BAD_PARAM, "nor has it a constraint",
           notifier.replace_constraint, first, [], "TRUE")
    notifier.disconnect_consumer(second)
    raises(CosEventComm.Disconnected, "nor who took several", notifier.disconnect_consumer, second)
    raises(CosEventComm.Disconnected, "nor who never was",
           notifier.disconnect_consumer, 987654321)


def main():
    orb = CORBA.ORB_init(sys.argv, CORBA.ORB_ID)
    poa = orb.resolve_initial_references("RootPOA")
    poa._get_the_POAManager().activate()
    notifier = orb.string_to_object(sys.argv[1])._narrow(FT.FaultNotifier)
    check(notifier is not None, "it is a fault notifier")
    one, many = Structured(), Sequence()
    first = notifier.connect_structured_fault_consumer(one._this())
    second = notifier.connect_sequence_fault_consumer(many._this())
    check(first != second, "consumers have numbers")
    raises(CORBA.BAD_PARAM, "nothing is no consumer",
           notifier.connect_structured_fault_consumer, None)
    raises(CORBA.BAD_PARAM, "nor one of sequences",
           notifier.connect_sequence_fault_consumer, None)
    reports(notifier, one, many)
    constraints(notifier, first, one, many)
    gone(notifier, one, many, first, second)
    print("%d steps" % steps)
    orb.destroy()
    # A thread of the ORB that still waits for the interpreter would abort the process when the
    # interpreter ends: the process ends without it.
    sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    main()
