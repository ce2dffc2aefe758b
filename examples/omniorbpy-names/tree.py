"""Lists a naming service: one line for each binding, `object NAME` or `context NAME`.

    tree.py -ORBInitRef NameService=corbaloc::n1,:n2,:n3/NameService

Each binding is resolved, and each context is gone through once. With `--bind NAME` NAME is bound
first, to the root context itself, as an object.
"""

import os
import sys

from omniORB import CORBA
import CosNaming

# So many bindings are asked for in one call: few, so that iterators are used.
LISTED = 3


def bindings(context):
    """Every binding of a context."""
    found, iterator = context.list(LISTED)
    yield from found
    if iterator is None:
        return
    while True:
        has_more, found = iterator.next_n(LISTED)
        yield from found
        if not has_more:
            break
    iterator.destroy()


def show(root, context, path, seen):
    for binding in bindings(context):
        name = path + binding.binding_name
        found = root.resolve(name)
        text = root.to_string(name)
        if found is None:
            raise SystemExit(f"{text} is nil")
        if binding.binding_type == CosNaming.nobject:
            print("object", text)
            continue
        print("context", text)
        if not any(found._is_equivalent(other) for other in seen):
            seen.append(found)
            show(root, found._narrow(CosNaming.NamingContext), name, seen)


def main():
    orb = CORBA.ORB_init(sys.argv, CORBA.ORB_ID)
    root = orb.resolve_initial_references("NameService")._narrow(CosNaming.NamingContextExt)
    if root is None:
        raise SystemExit("NameService is no NamingContextExt")
    if sys.argv[1:2] == ["--bind"]:
        root.rebind(root.to_name(sys.argv[2]), root)
    show(root, root, [], [root])
    # A thread of the ORB that still waits for the interpreter would abort the process when the
    # interpreter ends: the process ends without it.
    sys.stdout.flush()
    os._exit(0)


main()
