"""Goes through every operation of a fault notifier, and of its filters, in the form of clients that
are linked with TAO, and the exceptions that they raise with their fields.

    tao.py NOTIFIER [ORB options]

The stubs are those of TAO-FT.idl. What it is not: a test of faults; it pushes its own. Invariant:
it ends with 0 only if all was as it must be, and then no consumer and no filter of it is left.
"""

import os
import sys

from omniORB import CORBA

import CosEventComm
import CosNotifyFilter
import TAO_FT
import driver
from driver import DOMAIN, KIND, check, fault, raised, raises, types


def next_of(consumer):
    return driver.next_of(consumer, "GroupId")


def expression(text, kind=KIND):
    return CosNotifyFilter.ConstraintExp(types(kind), text)


def told(infos):
    """Constraints by their numbers."""
    return {one.constraint_id: one.constraint_expression.constraint_expr for one in infos}


def raises_id(what, expected, call, *arguments):
    found = raised(call, *arguments)
    check(isinstance(found, CosNotifyFilter.ConstraintNotFound) and found.id == expected,
          "%s: ConstraintNotFound, found %r" % (what, found))


def raises_constraint(what, expected, call, *arguments):
    found = raised(call, *arguments)
    check(isinstance(found, CosNotifyFilter.InvalidConstraint)
          and found.constr.constraint_expr == expected
          and [(one.domain_name, one.type_name) for one in found.constr.event_types]
          == [(DOMAIN, KIND)],
          "%s: InvalidConstraint, found %r" % (what, found))


def filters(notifier):
    """A filter with two constraints, and its first one's number."""
    raises(CosNotifyFilter.InvalidGrammar, "an unknown grammar",
           notifier.create_subscription_filter, "PROSE")
    made = notifier.create_subscription_filter("EXTENDED_TCL")
    check(made._get_constraint_grammar() == "EXTENDED_TCL", "a filter has a grammar")
    check(made.get_all_constraints() == [], "and no constraints yet")
    added = made.add_constraints([expression("$ObjectGroupId == 1"), expression("FALSE")])
    first, second = [one.constraint_id for one in added]
    check(first != second and told(added) == told(made.get_all_constraints()), "two are added")
    check(told(made.get_constraints([second])) == {second: "FALSE"}, "one is got")
    raises_id("another one is not", 987654, made.get_constraints, [first, 987654])
    raises_constraint("what cannot be read is not added", "$a ==", made.add_constraints,
                      [expression("TRUE"), expression("$a ==")])
    info = CosNotifyFilter.ConstraintInfo
    raises_constraint("nor put in the place of one", "(", made.modify_constraints, [],
                      [info(expression("("), first)])
    raises_id("one that is not there is not modified", 987654, made.modify_constraints, [],
              [info(expression("TRUE"), 987654)])
    raises_id("nor removed", 987654, made.modify_constraints, [first, 987654], [])
    check(told(made.get_all_constraints()) == told(added), "what was refused has changed nothing")
    made.modify_constraints([first], [info(expression("$ObjectGroupId == 2"), second)])
    check(told(made.get_all_constraints()) == {second: "$ObjectGroupId == 2"}, "one is modified")
    return made


def matches(made):
    check(made.match_structured(fault("n1", 2)), "a report that fits matches")
    check(not made.match_structured(fault("n1", 3)), "another one does not")
    check(not made.match_structured(fault("n1", 2, "Other")), "nor one of another type")
    kind = CORBA.TypeCode("IDL:omg.org/CosNotification/StructuredEvent:1.0")
    check(made.match(CORBA.Any(kind, fault("n1", 2))), "in an any, too")
    raises(CosNotifyFilter.UnsupportedFilterableData, "a number is no report", made.match,
           CORBA.Any(CORBA.TC_long, 2))


def consumers(notifier, made):
    one, many, all_of_them = driver.Structured(), driver.Sequence(), driver.Structured()
    first = notifier.connect_structured_fault_consumer(one._this(), made)
    second = notifier.connect_sequence_fault_consumer(many._this(), made)
    third = notifier.connect_structured_fault_consumer(all_of_them._this(), None)
    raises(CORBA.BAD_PARAM, "nothing is no consumer",
           notifier.connect_structured_fault_consumer, None, made)
    raises(CORBA.BAD_PARAM, "nor one of sequences",
           notifier.connect_sequence_fault_consumer, None, made)
    notifier.push_structured_fault(fault("n1", 3))
    notifier.push_sequence_fault([fault("n1", 2), fault("n1", 4)])
    check((next_of(one), next_of(many)) == (2, 2), "a filter lets pass what fits")
    check([next_of(all_of_them) for _ in range(3)] == [3, 2, 4], "no filter lets pass all")
    check(one.events.empty() and many.events.empty(), "and nothing else came")
    made.remove_all_constraints()
    check(made.get_all_constraints() == [], "all constraints are removed")
    notifier.push_structured_fault(fault("n1", 5))
    check((next_of(one), next_of(many)) == (5, 5), "a filter without any lets pass all")
    made.destroy()
    raises(CORBA.OBJECT_NOT_EXIST, "what is destroyed", made.get_all_constraints)
    raises(CORBA.BAD_PARAM, "no consumer is connected with it",
           notifier.connect_structured_fault_consumer, one._this(), made)
    notifier.push_structured_fault(fault("n1", 6))
    check([next_of(all_of_them) for _ in range(2)] == [5, 6], "others go on")
    check(one.events.empty() and many.events.empty(), "it lets nothing pass any more")
    for connection in [first, second, third]:
        notifier.disconnect_consumer(connection)
        raises(CosEventComm.Disconnected, "who is disconnected", notifier.disconnect_consumer,
               connection)


def main():
    orb = CORBA.ORB_init(sys.argv, CORBA.ORB_ID)
    poa = orb.resolve_initial_references("RootPOA")
    poa._get_the_POAManager().activate()
    notifier = orb.string_to_object(sys.argv[1])._narrow(TAO_FT.FaultNotifier)
    check(notifier is not None and notifier.is_alive(), "it is a fault notifier, and alive")
    made = filters(notifier)
    matches(made)
    consumers(notifier, made)
    print("%d steps" % driver.steps)
    orb.destroy()
    # A thread of the ORB that still waits for the interpreter would abort the process when the
    # interpreter ends: the process ends without it.
    sys.stdout.flush()
    os._exit(0)


main()
