"""Goes through every operation of FT::FaultNotifier and the exceptions that they raise.

What it is not: a test of faults; it pushes its own. Invariant: it ends with 0 only if all was as it
must be.
"""

import queue
import sys

from omniORB import CORBA

import CosEventComm
import CosNaming
import CosNotification
import CosNotifyComm__POA
import FT

DOMAIN, KIND = "FT_CORBA", "ObjectCrashFault"
steps = 0


def check(is_so, what):
    global steps
    if not is_so:
        sys.exit("not so: " + what)
    steps += 1
    print("ok %d %s" % (steps, what), flush=True)


def raises(exception, what, call, *arguments):
    try:
        call(*arguments)
    except exception:
        return check(True, what)
    check(False, what)


class Structured(CosNotifyComm__POA.StructuredPushConsumer):
    def __init__(self):
        self.events = queue.Queue()

    def offer_change(self, added, removed):
        pass

    def push_structured_event(self, notification):
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


def fault(location, group):
    def item(name, type_code, value):
        return CosNotification.Property(name, CORBA.Any(type_code, value))

    name = [CosNaming.NameComponent(location, "")]
    data = [
        item("FTDomainId", CORBA.TC_string, "driver"),
        item("Location", CORBA.TypeCode("IDL:omg.org/CosNaming/Name:1.0"), name),
        item("TypeId", CORBA.TC_string, "IDL:Bank/Ledger:1.0"),
        item("ObjectGroupId", CORBA.TC_ulonglong, group),
    ]
    fixed = CosNotification.FixedEventHeader(CosNotification.EventType(DOMAIN, KIND), "")
    return CosNotification.StructuredEvent(
        CosNotification.EventHeader(fixed, []), data, CORBA.Any(CORBA.TC_null, None)
    )



def next_of(consumer):
    """The group of the next report of this driver."""
    while True:
        event = consumer.events.get(timeout=20)
        items = {item.name: item.value.value() for item in event.filterable_data}
        if items.get("FTDomainId") == "driver":
            return items["ObjectGroupId"]


def main():
    orb = CORBA.ORB_init(sys.argv)
    poa = orb.resolve_initial_references("RootPOA")
    poa._get_the_POAManager().activate()
    notifier = orb.string_to_object(sys.argv[1])._narrow(FT.FaultNotifier)
    check(notifier is not None, "it is a fault notifier")
    one, many = Structured(), Sequence()
    first = notifier.connect_structured_fault_consumer(one._this())
    second = notifier.connect_sequence_fault_consumer(many._this())
    check(first != second, "consumers have numbers")
    notifier.push_structured_fault(fault("n1", 1))
    check(next_of(one) == 1 and next_of(many) == 1, "a report reaches both")
    notifier.push_sequence_fault([fault("n1", 2), fault("n2", 3)])
    check([next_of(one), next_of(one)] == [2, 3], "reports come one by one, in their order")
    check([next_of(many), next_of(many)] == [2, 3], "or together")
    types = [CosNotification.EventType(DOMAIN, KIND)]
    notifier.replace_constraint(first, types, "$ObjectGroupId == 5 and $Location[0].id == 'n2'")
    for location, group in [("n1", 5), ("n2", 4), ("n2", 5)]:
        notifier.push_structured_fault(fault(location, group))
    check(next_of(one) == 5, "a constraint lets pass what it says")
    check(one.events.empty(), "and nothing else")
    check([next_of(many) for _ in range(3)] == [5, 4, 5], "others get everything")
    raises(CORBA.BAD_PARAM, "a constraint that is none is refused",
           notifier.replace_constraint, first, types, "$a ==")
    raises(CORBA.BAD_PARAM, "and one for nobody",
           notifier.replace_constraint, 987654321, types, "TRUE")
    raises(CORBA.BAD_PARAM, "nothing is no consumer",
           notifier.connect_structured_fault_consumer, None)
    notifier.disconnect_consumer(first)
    notifier.disconnect_consumer(second)
    raises(CosEventComm.Disconnected, "who is disconnected is not disconnected again",
           notifier.disconnect_consumer, first)
    print("%d steps" % steps)


main()
