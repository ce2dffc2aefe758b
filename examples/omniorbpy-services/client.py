"""A client of the naming service and of the replication manager that does what it is told, one
operation for each line that it reads, and prints one line for each: what came of it.

    client.py NAMING MANAGER [ORB options]

Words of a line are parted by tabulators:

    bind NAME OBJECT, rebind NAME OBJECT, unbind NAME, mkctx NAME, resolve NAME,
    create TYPE STYLE MEMBERSHIP INITIAL MINIMUM, create_member GROUP NODE TYPE,
    add_member GROUP NODE OBJECT, remove_member GROUP NODE, locations GROUP, delete ID

Its answer is `ok` and what was returned, or `user ID`, or `system ID COMPLETED MINOR`. It repeats
nothing; who tells it what to do decides that. The stubs of FT.idl are found by PYTHONPATH.
"""

import os
import sys

from omniORB import CORBA
import CosNaming
import FT

COMPLETED = {
    CORBA.COMPLETED_YES: "yes",
    CORBA.COMPLETED_NO: "no",
    CORBA.COMPLETED_MAYBE: "maybe",
}
PROPERTIES = [
    "org.omg.ft.ReplicationStyle",
    "org.omg.ft.MembershipStyle",
    "org.omg.ft.InitialNumberReplicas",
    "org.omg.ft.MinimumNumberReplicas",
]


def name(path):
    return [CosNaming.NameComponent(part, "") for part in path.split("/")]


def main():
    orb = CORBA.ORB_init(sys.argv, CORBA.ORB_ID)
    # Unchecked: to ask for its type would fail if it is just being restarted.
    naming = orb.string_to_object(sys.argv[1])._unchecked_narrow(CosNaming.NamingContextExt)
    manager = orb.string_to_object(sys.argv[2])._unchecked_narrow(FT.ReplicationManager)
    read, text = orb.string_to_object, orb.object_to_string

    def create(type_id, *values):
        own = [
            FT.Property(name(id), CORBA.Any(CORBA.TC_ushort, int(value)))
            for id, value in zip(PROPERTIES, values)
        ]
        properties = CORBA.Any(CORBA.TypeCode("IDL:omg.org/FT/Properties:1.0"), own)
        criteria = [FT.Property(name("org.omg.ft.FTProperties"), properties)]
        group, number = manager.create_object(type_id, criteria)
        return text(group) + "\t" + str(number.value())

    def locations(group):
        found = manager.locations_of_members(read(group))
        return " ".join(location[0].id for location in found)

    operations = {
        "bind": lambda path, target: naming.bind(name(path), read(target)),
        "rebind": lambda path, target: naming.rebind(name(path), read(target)),
        "unbind": lambda path: naming.unbind(name(path)),
        "mkctx": lambda path: text(naming.bind_new_context(name(path))),
        "resolve": lambda path: text(naming.resolve(name(path))),
        "create": create,
        "create_member": lambda group, node, type_id: text(
            manager.create_member(read(group), name(node), type_id, [])
        ),
        "add_member": lambda group, node, target: text(
            manager.add_member(read(group), name(node), read(target))
        ),
        "remove_member": lambda group, node: text(
            manager.remove_member(read(group), name(node))
        ),
        "locations": locations,
        "delete": lambda number: manager.delete_object(
            CORBA.Any(CORBA.TC_ulonglong, int(number))
        ),
    }
    for line in sys.stdin:
        what, *words = line.rstrip("\n").split("\t")
        try:
            found = operations[what](*words)
            answer = "ok\t" + found if found else "ok"
        except CORBA.SystemException as raised:
            completed = COMPLETED[raised.completed]
            answer = "system\t%s\t%s\t%d" % (raised._NP_RepositoryId, completed, raised.minor)
        except CORBA.UserException as raised:
            answer = "user\t" + raised._NP_RepositoryId
        print(answer, flush=True)
    # A thread of the ORB that still waits for the interpreter would abort the process when the
    # interpreter ends: the process ends without it.
    sys.stdout.flush()
    os._exit(0)


main()
