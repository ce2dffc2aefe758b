"""Goes through every operation of a replication manager and every exception that they raise, and
compares the exceptions' fields; has a factory of its own called.

    driver.py MANAGER NODE NODE NODE [ORB options]

The stubs are those of FT.idl. With those of TAO-FT.idl everything is in the form of clients that
are linked with TAO, and its registry of factories is gone through, too. The domain has the type
IDL:Bank/Ledger:1.0.

What it is not: a test of repairs. Invariant: it ends with 0 only if all was as it must be, and then
nothing is left of what it has made.
"""

import importlib.util
import os
import socket
import sys
import time

from omniORB import CORBA
import CosNaming
import FT
import FT__POA

IS_TAO = importlib.util.find_spec("TAO_FT") is not None
if IS_TAO:
    import PortableGroup
    import PortableGroup__POA
    import TAO_FT

# Where exceptions are declared, what a factory is, and the manager's interface.
MODULE = PortableGroup if IS_TAO else FT
FACTORY = PortableGroup__POA.GenericFactory if IS_TAO else FT__POA.GenericFactory
MANAGER = TAO_FT.ReplicationManager if IS_TAO else FT.ReplicationManager
LEDGER, THING = "IDL:Bank/Ledger:1.0", "IDL:Driver/Thing:1.0"
STYLE, MEMBERSHIP = "org.omg.ft.ReplicationStyle", "org.omg.ft.MembershipStyle"
CONSISTENCY, FACTORIES = "org.omg.ft.ConsistencyStyle", "org.omg.ft.Factories"
INITIAL, MINIMUM = "org.omg.ft.InitialNumberReplicas", "org.omg.ft.MinimumNumberReplicas"
GRANULARITY = "org.omg.ft.FaultMonitoringGranularity"
MONITORING = "org.omg.ft.FaultMonitoringStyle"
TIMES = "org.omg.ft.FaultMonitoringIntervalAndTimeout"
CHECKPOINT, COLOUR = "org.omg.ft.CheckpointInterval", "org.omg.ft.Colour"
# What TAO calls some of them.
OF_TAO = {
    MEMBERSHIP: "org.omg.PortableGroup.MembershipStyle",
    FACTORIES: "org.omg.PortableGroup.Factories",
    INITIAL: "org.omg.PortableGroup.InitialNumberMembers",
    MINIMUM: "org.omg.PortableGroup.MinimumNumberMembers",
}
# What a factory gives that gives nothing.
NIL = "nil"
# How long what is seen late may take.
SECONDS_MAX = 20
steps = 0


def check(is_so, what):
    global steps
    if not is_so:
        sys.exit("not so: " + what)
    steps += 1
    print("ok %d %s" % (steps, what), flush=True)


def wait_until(is_so, what):
    end = time.monotonic() + SECONDS_MAX
    while not is_so() and time.monotonic() < end:
        time.sleep(0.01)
    check(is_so(), what)


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


def raises_property(kind, what, expected, call, *arguments):
    """An exception about a property, which it has with its value."""
    found = raised(call, *arguments)
    is_it = isinstance(found, kind) and is_about([FT.Property(found.nam, found.val)], [expected])
    check(is_it, "%s: %s, found %r" % (what, kind.__name__, found))


def name(id):
    return [CosNaming.NameComponent(id, "")]


def id_of(found):
    return found[0].id if len(found) == 1 and found[0].kind == "" else None


def prop(id, value, type_code=CORBA.TC_ushort):
    return FT.Property(name(id), CORBA.Any(type_code, value))


def type_of(id, module="FT"):
    return CORBA.TypeCode("IDL:omg.org/%s/%s:1.0" % (module, id))


def plain(value):
    """A property's value, for comparisons."""
    if isinstance(value, FT.FaultMonitoringIntervalAndTimeoutValue):
        return (value.monitoring_interval, value.timeout)
    if isinstance(value, list):
        return [id_of(one.the_location) for one in value]
    return value


def said(properties):
    return {id_of(one.nam): plain(one.val.value()) for one in properties}


def is_about(found, expected):
    return said(found) == said(expected)


def own(*properties):
    """The criterion that a group has these properties."""
    return FT.Property(
        name("org.omg.ft.FTProperties"), CORBA.Any(type_of("Properties"), list(properties))
    )


def locations(manager, group):
    return [id_of(one) for one in manager.locations_of_members(group)]


WRONG, UNKNOWN = prop(STYLE, 77), prop(COLOUR, 1)


def properties(manager):
    """The PropertyManager."""
    times = FT.FaultMonitoringIntervalAndTimeoutValue(10000000, 5000000)
    ten = [
        prop(STYLE, FT.WARM_PASSIVE),
        prop(MEMBERSHIP, FT.MEMB_INF_CTRL),
        prop(CONSISTENCY, FT.CONS_INF_CTRL),
        prop(MONITORING, FT.PULL),
        prop(GRANULARITY, FT.LOC),
        prop(FACTORIES, [], type_of("FactoryInfos")),
        prop(INITIAL, 3),
        prop(MINIMUM, 2),
        prop(TIMES, times, type_of("FaultMonitoringIntervalAndTimeoutValue")),
        prop(CHECKPOINT, 20000000, CORBA.TC_ulonglong),
    ]

    def expected(properties):
        told = said(properties)
        return {OF_TAO.get(id, id) if IS_TAO else id: told[id] for id in told}

    manager.set_default_properties([prop(INITIAL, 2), prop(MINIMUM, 1)])
    found = said(manager.get_default_properties())
    check(found == expected([prop(INITIAL, 2), prop(MINIMUM, 1)]), "defaults: %r" % found)
    check(said(manager.get_type_properties(LEDGER)) == found, "count for types, too")
    manager.set_type_properties(LEDGER, ten)
    found = said(manager.get_type_properties(LEDGER))
    check(found == expected(ten), "all ten properties of a type go before: %r" % found)
    of_type = lambda call: lambda given: call(LEDGER, given)
    for what, call in [
        ("set_default", manager.set_default_properties),
        ("set_type", of_type(manager.set_type_properties)),
    ]:
        raises_property(MODULE.InvalidProperty, what + " of a wrong value", WRONG, call, [WRONG])
        raises_property(MODULE.UnsupportedProperty, what + " of an unknown one", UNKNOWN, call,
                        [prop(STYLE, 3), UNKNOWN])
        twice = prop(INITIAL, 5)
        raises_property(MODULE.InvalidProperty, what + " twice", twice, call, [twice, twice])
    manager.remove_type_properties(LEDGER, ten)
    found = said(manager.get_type_properties(LEDGER))
    check(found == expected([prop(INITIAL, 2), prop(MINIMUM, 1)]), "they are removed: %r" % found)
    for what, call in [
        ("remove_default", manager.remove_default_properties),
        ("remove_type", of_type(manager.remove_type_properties)),
    ]:
        absent = prop(MONITORING, 1)
        raises_property(MODULE.InvalidProperty, what + " of what is not set", absent, call,
                        [absent])
        raises_property(MODULE.UnsupportedProperty, what + " of an unknown one", UNKNOWN, call,
                        [UNKNOWN])
    manager.remove_default_properties([prop(INITIAL, 2), prop(MINIMUM, 1)])
    check(manager.get_default_properties() == [], "nothing is left of the defaults")


def creation(manager):
    """What a creation is refused for."""
    create = manager.create_object
    found = raised(create, "IDL:Nothing:1.0", [])
    check(isinstance(found, MODULE.NoFactory) and found.the_location == []
          and found.type_id == "IDL:Nothing:1.0", "nobody creates an unknown type: %r" % found)
    at_moon = FT.Property(
        name("org.omg.ft.ObjectLocation"),
        CORBA.Any(CORBA.TypeCode("IDL:omg.org/CosNaming/Name:1.0"), name("moon")),
    )
    found = raised(create, LEDGER, [at_moon])
    check(isinstance(found, MODULE.NoFactory) and id_of(found.the_location) == "moon"
          and found.type_id == LEDGER, "nor one anywhere: %r" % found)
    raises_property(MODULE.InvalidProperty, "a property that is wrong", WRONG, create, LEDGER,
                    [own(WRONG)])
    raises_property(MODULE.InvalidProperty, "or unknown", UNKNOWN, create, LEDGER, [own(UNKNOWN)])
    none = prop("org.omg.ft.FTProperties", 5)
    found = raised(create, LEDGER, [prop("size", 1), none])
    check(isinstance(found, MODULE.InvalidCriteria) and is_about(found.invalid_criteria, [none]),
          "FTProperties that are none: %r" % found)
    found = raised(create, LEDGER, [own(prop(INITIAL, 60))])
    check(isinstance(found, MODULE.CannotMeetCriteria)
          and is_about(found.unmet_criteria, [prop(INITIAL, 60)]), "too many: %r" % found)
    found = raised(create, LEDGER, [prop("size", 1)])
    check(isinstance(found, MODULE.CannotMeetCriteria)
          and is_about(found.unmet_criteria, [prop("size", 1)]), "no size is known: %r" % found)
    by_application = prop(CONSISTENCY, FT.CONS_APP_CTRL)
    raises_property(MODULE.InvalidProperty, "a passive group without states", by_application,
                    create, LEDGER, [own(prop(STYLE, FT.WARM_PASSIVE), by_application)])
    for wrong in [CORBA.Any(CORBA.TC_ulonglong, 987654321), CORBA.Any(CORBA.TC_string, "x")]:
        raises(MODULE.ObjectNotFound, "what was not created", manager.delete_object, wrong)


def members(manager, nodes):
    """A group whose members nodes start."""
    group, number = manager.create_object(
        LEDGER, [own(prop(STYLE, FT.WARM_PASSIVE), prop(INITIAL, 2), prop(MINIMUM, 1))]
    )
    check(locations(manager, group) == nodes[:2], "a group of two was created")
    check(group._is_a(LEDGER), "it is a ledger")
    check(manager.get_object_group_id(group) == number.value(), "it has its number")
    create = lambda at, criteria=[], of=LEDGER: manager.create_member(
        group, name(at), of, criteria
    )
    raises(MODULE.MemberAlreadyPresent, "a member is not created twice", create, nodes[0])
    found = raised(create, "moon")
    check(isinstance(found, MODULE.NoFactory) and id_of(found.the_location) == "moon"
          and found.type_id == LEDGER, "nor on the moon: %r" % found)
    found = raised(create, nodes[2], [], "IDL:Nothing:1.0")
    check(isinstance(found, MODULE.NoFactory) and id_of(found.the_location) == nodes[2]
          and found.type_id == "IDL:Nothing:1.0", "nor of an unknown type: %r" % found)
    none = prop("org.omg.ft.FTProperties", 5)
    found = raised(create, nodes[2], [none])
    check(isinstance(found, MODULE.InvalidCriteria) and is_about(found.invalid_criteria, [none]),
          "nor by wrong criteria: %r" % found)
    found = raised(create, nodes[2], [prop("size", 1)])
    check(isinstance(found, MODULE.CannotMeetCriteria)
          and is_about(found.unmet_criteria, [prop("size", 1)]), "or unknown ones: %r" % found)
    three = create(nodes[2])
    check(locations(manager, group) == nodes, "a third member was created")
    check(three._is_a(LEDGER), "in the same group")
    for at in ["moon", nodes[2]]:
        kind = MODULE.ObjectNotAdded if at == "moon" else MODULE.MemberAlreadyPresent
        raises(kind, "an object at " + at, manager.add_member, group, name(at), group)
    for what, call in [
        ("set_primary_member", manager.set_primary_member),
        ("get_member_ref", manager.get_member_ref),
        ("remove_member", manager.remove_member),
    ]:
        raises(MODULE.MemberNotFound, what + " of who is none", call, group, name("moon"))
    led = manager.set_primary_member(group, name(nodes[1]))
    check(led._is_a(LEDGER), "another member is the primary")
    check(manager.get_member_ref(group, name(nodes[1]))._is_a(LEDGER), "members have references")
    two = manager.remove_member(group, name(nodes[0]))
    check(locations(manager, group) == nodes[1:], "a member was removed")
    latest = manager.get_object_group_ref(group)
    check(latest._is_equivalent(two), "the latest reference is what was returned last")
    if IS_TAO:
        found = manager.get_object_group_ref_from_id(number.value())
        check(found._is_equivalent(two), "it is found by its number, too")
        there = manager.groups_at_location(name(nodes[1]))
        check(any(one._is_equivalent(two) for one in there), "and by where it is")
        check(manager.groups_at_location(name("moon")) == [], "and nowhere else")
    dynamically(manager, group)
    manager.delete_object(number)
    raises(MODULE.ObjectNotFound, "what was deleted", manager.delete_object, number)
    return group, number.value()


def dynamically(manager, group):
    change = lambda *given: manager.set_properties_dynamically(group, list(given))
    times = FT.FaultMonitoringIntervalAndTimeoutValue(10000000, 5000000)
    interval = prop(TIMES, times, type_of("FaultMonitoringIntervalAndTimeoutValue"))
    change(prop(MINIMUM, 2), prop(GRANULARITY, FT.LOC), interval,
           prop(CHECKPOINT, 30000000, CORBA.TC_ulonglong))
    found = said(manager.get_properties(group))
    minimum = OF_TAO[MINIMUM] if IS_TAO else MINIMUM
    check((found[minimum], found[GRANULARITY], found[TIMES], found[CHECKPOINT], found[STYLE])
          == (2, FT.LOC, (10000000, 5000000), 30000000, FT.WARM_PASSIVE),
          "four properties are set dynamically: %r" % found)
    for one in [prop(STYLE, FT.ACTIVE), prop(MEMBERSHIP, 0), prop(CONSISTENCY, 0),
                prop(MONITORING, 0), prop(INITIAL, 3), prop(MINIMUM, 0)]:
        raises_property(MODULE.InvalidProperty, "others are not", one, change, one)
    raises_property(MODULE.UnsupportedProperty, "nor unknown ones", UNKNOWN, change, UNKNOWN)


def not_found(manager, group, number, thing, node):
    """Every operation of a group that is none."""
    at = name(node)
    for what, call in [
        ("create_member", lambda of: manager.create_member(of, at, LEDGER, [])),
        ("add_member", lambda of: manager.add_member(of, at, thing)),
        ("remove_member", lambda of: manager.remove_member(of, at)),
        ("set_primary_member", lambda of: manager.set_primary_member(of, at)),
        ("locations_of_members", manager.locations_of_members),
        ("get_object_group_id", manager.get_object_group_id),
        ("get_object_group_ref", manager.get_object_group_ref),
        ("get_member_ref", lambda of: manager.get_member_ref(of, at)),
        ("get_properties", manager.get_properties),
        ("set_properties_dynamically",
         lambda of: manager.set_properties_dynamically(of, [prop(MINIMUM, 1)])),
    ]:
        raises(MODULE.ObjectGroupNotFound, what + " of a deleted group", call, group)
        raises(MODULE.ObjectGroupNotFound, what + " of what is none", call, thing)
        raises(MODULE.ObjectGroupNotFound, what + " of nothing", call, None)
    if IS_TAO:
        raises(MODULE.ObjectGroupNotFound, "get_object_group_ref_from_id",
               manager.get_object_group_ref_from_id, number)


def application(manager, nodes, thing, another):
    """Groups whose members the application says."""
    mine = prop(MEMBERSHIP, FT.MEMB_APP_CTRL)
    group, number = manager.create_object(LEDGER, [own(mine, prop(STYLE, FT.ACTIVE))])
    check(locations(manager, group) == [], "a group of the application begins without members")
    raises(MODULE.ObjectNotAdded, "nothing is no member", manager.add_member, group,
           name(nodes[0]), None)
    manager.add_member(group, name(nodes[0]), thing)
    check(locations(manager, group) == nodes[:1], "and takes its objects")
    found = manager.get_member_ref(group, name(nodes[0]))
    check(found._is_equivalent(thing), "which it gives back")
    raises(FT.BadReplicationStyle, "an active group has no primary", manager.set_primary_member,
           group, name(nodes[0]))
    manager.remove_member(group, name(nodes[0]))
    check(locations(manager, group) == [], "and takes away")
    manager.delete_object(number)
    # Nobody is there, so nobody is in.
    group, number = manager.create_object(LEDGER, [own(mine, prop(STYLE, FT.WARM_PASSIVE))])
    manager.add_member(group, name(nodes[0]), thing)
    raises(MODULE.ObjectNotAdded, "one server is one member", manager.add_member, group,
           name(nodes[1]), thing)
    manager.add_member(group, name(nodes[1]), another)
    raises(FT.PrimaryNotSet, "who is not in does not lead", manager.set_primary_member, group,
           name(nodes[1]))
    manager.delete_object(number)


class Thing(FT__POA.PullMonitorable):
    def __init__(self):
        self.asked = 0

    def is_alive(self):
        self.asked += 1
        return True


class Factory(FACTORY):
    """One for each node; it makes things at a port of its own, or raises what it is told."""

    def __init__(self, orb, poa, port):
        self.orb, self.poa, self.port = orb, poa, port
        self.calls, self.things, self.fault, self.last = [], {}, None, 0

    def reference(self, number):
        text = "corbaloc:iiop:1.2@127.0.0.1:%d/%s" % (self.port, self.key(number))
        return self.orb.string_to_object(text)

    def key(self, number):
        return "thing-%d-%d" % (self.port, number)

    def create_object(self, type_id, criteria):
        self.calls.append((type_id, criteria))
        if self.fault == NIL:
            return None, CORBA.Any(CORBA.TC_ulong, 0)
        if self.fault is not None:
            raise self.fault
        self.last += 1
        thing = Thing()
        self.poa.activate_object_with_id(self.key(self.last).encode(), thing)
        self.things[self.last] = thing
        return self.reference(self.last), CORBA.Any(CORBA.TC_ulong, self.last)

    def delete_object(self, number):
        if self.things.pop(number.value(), None) is None:
            raise MODULE.ObjectNotFound()


def factories(manager, nodes, orb, poa, ports):
    """A factory of the application at each node."""
    made = {node: Factory(orb, poa, port) for node, port in zip(nodes, ports)}
    for node in nodes:
        poa.activate_object_with_id(b"factory-" + node.encode(), made[node])
    blue = prop("colour", 7)
    # TAO's factories are of another type, and go where the standard's go.
    one = lambda node: made[node]._this()._unchecked_narrow(FT.GenericFactory)
    infos = [FT.FactoryInfo(one(node), name(node), [blue]) for node in nodes]
    manager.set_type_properties(THING, [
        prop(FACTORIES, infos, type_of("FactoryInfos")),
        prop(CONSISTENCY, FT.CONS_APP_CTRL),
        prop(MINIMUM, 1),
    ])
    found = said(manager.get_type_properties(THING))
    check(found[OF_TAO[FACTORIES] if IS_TAO else FACTORIES] == nodes, "factories are a property")
    group, number = manager.create_object(THING, [own(prop(INITIAL, 2)), prop("size", 5)])
    check(locations(manager, group) == nodes[:2], "factories make the members")
    for node in nodes[:2]:
        (type_id, criteria), = made[node].calls
        given = said([one for one in criteria if id_of(one.nam) != "org.omg.ft.ObjectLocation"])
        place = [one.val.value() for one in criteria
                 if id_of(one.nam) == "org.omg.ft.ObjectLocation"]
        check((type_id, given) == (THING, {"colour": 7, "size": 5}),
              "a factory is told the type and the criteria: %r" % given)
        check([id_of(one) for one in place] == [node], "and where")
        found = manager.get_member_ref(group, name(node))
        check(found._is_equivalent(made[node].reference(1)), "what it returns is the member")
    alive = group._narrow(FT.PullMonitorable)
    check(alive is not None and alive.is_alive(), "the group is called")
    # The reply has come of one of them.
    asked = lambda: [made[node].things[1].asked for node in nodes[:2]]
    wait_until(lambda: 0 not in asked(), "both objects are called")
    check(asked() == [1, 1], "each once")
    manager.create_member(group, name(nodes[2]), THING, [])
    check(locations(manager, group) == nodes and len(made[nodes[2]].things) == 1, "one more")
    manager.remove_member(group, name(nodes[2]))
    check(made[nodes[2]].things == {}, "is deleted when it is removed")
    refused(manager, nodes, made, group)
    manager.delete_object(number)
    check(all(one.things == {} for one in made.values()), "and all with their group")
    group, number = manager.create_object(THING, [own(prop(INITIAL, 1))])
    made[nodes[0]].things.clear()
    manager.delete_object(number)
    check(True, "a group goes although its factory has not found the object")
    manager.remove_type_properties(THING, [prop(one, 0) for one in
                                           [FACTORIES, CONSISTENCY, MINIMUM]])
    return infos


def refused(manager, nodes, made, group):
    """Factories that raise something."""
    size = prop("size", 9)
    three = [own(prop(INITIAL, 3)), size]
    last = made[nodes[2]]
    before = {node: len(made[node].things) for node in nodes}
    for fault, is_it in [
        (MODULE.NoFactory(name(nodes[2]), THING), lambda found: isinstance(found, MODULE.NoFactory)
         and id_of(found.the_location) == nodes[2] and found.type_id == THING),
        (MODULE.ObjectNotCreated(), lambda found: isinstance(found, MODULE.ObjectNotCreated)),
        (MODULE.InvalidCriteria([size]), lambda found: isinstance(found, MODULE.InvalidCriteria)
         and is_about(found.invalid_criteria, [size])),
        (MODULE.CannotMeetCriteria([size]),
         lambda found: isinstance(found, MODULE.CannotMeetCriteria)
         and is_about(found.unmet_criteria, [size])),
        (CORBA.NO_RESOURCES(), lambda found: isinstance(found, MODULE.ObjectNotCreated)),
        (NIL, lambda found: isinstance(found, MODULE.ObjectNotCreated)),
    ]:
        last.fault = fault
        found = raised(manager.create_object, THING, three)
        check(is_it(found), "create_object of a factory with %r: %r" % (fault, found))
        found = raised(manager.create_member, group, name(nodes[2]), THING, [size])
        check(is_it(found), "create_member of it: %r" % found)
        check({node: len(made[node].things) for node in nodes} == before, "nothing is left")
    last.fault = MODULE.InvalidProperty(name(STYLE), CORBA.Any(CORBA.TC_ushort, 77))
    raises_property(MODULE.InvalidProperty, "of a wrong property", WRONG, manager.create_object,
                    THING, three)
    last.fault = None
    nobody = last.orb.string_to_object("corbaloc:iiop:1.2@127.0.0.1:9/factory")
    info = FT.FactoryInfo(nobody._unchecked_narrow(FT.GenericFactory), name(nodes[0]), [])
    away = [own(prop(INITIAL, 1), prop(FACTORIES, [info], type_of("FactoryInfos")))]
    raises(MODULE.ObjectNotCreated, "a factory that is away", manager.create_object, THING, away)


def notifier(manager, thing):
    own = manager.get_fault_notifier()
    check(own is not None, "the domain has a notifier of its own")
    manager.register_fault_notifier(thing._unchecked_narrow(FT.FaultNotifier))
    check(manager.get_fault_notifier()._is_equivalent(thing), "a notifier is registered")
    manager.register_fault_notifier(None)
    check(manager.get_fault_notifier()._is_equivalent(own), "and is not any more")


def registry(manager, nodes, infos):
    """TAO's registry of factories."""
    found = manager.get_factory_registry([])
    check(found is not None, "there is a registry of factories")
    at = [name(node) for node in nodes]
    found.register_factory("role", THING, infos[0])
    found.register_factory("role", THING, infos[1])
    raises(MODULE.MemberAlreadyPresent, "one for a place", found.register_factory, "role", THING,
           infos[0])
    raises(MODULE.TypeConflict, "one type for a role", found.register_factory, "role", LEDGER,
           infos[2])
    found.register_factory("other", THING, infos[2])
    listed, type_id = found.list_factories_by_role("role")
    check(plain(listed) == nodes[:2] and type_id == THING, "they are listed by role")
    check(listed[0].the_factory._is_equivalent(infos[0].the_factory), "as they were given")
    check(said(listed[0].the_criteria) == {"colour": 7}, "with their criteria")
    check(found.list_factories_by_role("none") == ([], ""), "of a role that there is")
    check(plain(found.list_factories_by_location(at[2])) == nodes[2:], "or by place")
    group, number = manager.create_object(
        THING, [own(prop(INITIAL, 2), prop(CONSISTENCY, FT.CONS_APP_CTRL))]
    )
    check(len(locations(manager, group)) == 2, "they make what is of their type")
    manager.delete_object(number)
    raises(MODULE.MemberNotFound, "who is not registered", found.unregister_factory, "role",
           at[2])
    found.unregister_factory("role", at[0])
    check(plain(found.list_factories_by_role("role")[0]) == nodes[1:2], "one is gone")
    found.unregister_factory_by_role("role")
    check(found.list_factories_by_role("role") == ([], ""), "and all of a role")
    found.unregister_factory_by_location(at[2])
    check(found.list_factories_by_role("other") == ([], ""), "and all of a place")
    manager.shutdown()
    check(manager.get_default_properties() == [], "shutdown is nobody's but an operator's")


def free_ports(count):
    """Ports that nobody else has: what factories make is told apart by them."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


def main():
    ports = free_ports(3)
    for port in ports:
        sys.argv += ["-ORBendPoint", "giop:tcp:127.0.0.1:%d" % port]
    orb = CORBA.ORB_init(sys.argv, CORBA.ORB_ID)
    poa = orb.resolve_initial_references("omniINSPOA")
    poa._get_the_POAManager().activate()
    manager = orb.string_to_object(sys.argv[1])._narrow(MANAGER)
    nodes = sys.argv[2:5]
    check(manager is not None, "it is a replication manager")
    thing = orb.string_to_object("corbaloc:iiop:1.2@127.0.0.1:9/thing")
    another = orb.string_to_object("corbaloc:iiop:1.2@127.0.0.1:8/another")
    properties(manager)
    creation(manager)
    group, number = members(manager, nodes)
    not_found(manager, group, number, thing, nodes[0])
    application(manager, nodes, thing, another)
    infos = factories(manager, nodes, orb, poa, ports)
    notifier(manager, thing)
    if IS_TAO:
        registry(manager, nodes, infos)
    print("%d steps" % steps)
    orb.destroy()
    # A thread of the ORB that still waits for the interpreter would abort the process when the
    # interpreter ends: the process ends without it.
    sys.stdout.flush()
    os._exit(0)


main()
