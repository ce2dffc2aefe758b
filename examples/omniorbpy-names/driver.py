"""Goes through every operation of a naming service and every exception that they raise, and
compares the exceptions' fields.

    driver.py NAMING OTHER WORD [ORB options]

NAMING is the reference of the service; OTHER that of another one, which a name goes on in; WORD the
name of the context in which everything is done. A name beyond Latin-1 is bound, so the ORB is to be
given `-ORBnativeCharCodeSet UTF-8`.

What it is not: a test of faults. Invariant: it ends with 0 only if all was as it must be, and then
nothing is left of what it has bound.
"""

import os
import sys

from omniORB import CORBA
import CosNaming
from CosNaming import BindingIterator, NameComponent, NamingContext, NamingContextExt

# So many names are bound for the iterators, and so many are asked for at a time.
MANY, PART = 300, 120
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


def name(*parts):
    """A name; a part is an id, or an id and a kind."""
    pairs = [(part, "") if isinstance(part, str) else part for part in parts]
    return [NameComponent(*pair) for pair in pairs]


def pairs(found):
    return [(component.id, component.kind) for component in found]


def is_not_found(exception, why, *rest):
    return (
        isinstance(exception, NamingContext.NotFound)
        and exception.why == why
        and pairs(exception.rest_of_name) == pairs(name(*rest))
    )


class Driver:
    def __init__(self, orb, root, other, word):
        self.root, self.other, self.word = root, other, word
        self.thing = orb.string_to_object("corbaloc:iiop:1.2@127.0.0.1:9/thing")
        self.another = orb.string_to_object("corbaloc:iiop:1.2@127.0.0.1:9/another")
        self.nil = orb.string_to_object("IOR:00000000000000010000000000000000")
        self.here = None

    def at(self, *parts):
        return name(self.word, *parts)

    def bindings(self):
        root, thing, another = self.root, self.thing, self.another
        made = root.bind_new_context(self.at())
        self.here = made._narrow(NamingContextExt)
        check(self.here is not None, "a new context is one with texts")
        check(root.resolve(self.at())._is_equivalent(made), "and is bound")
        raises(NamingContext.AlreadyBound, "another one", root.bind_new_context, self.at())
        root.bind(self.at("a"), thing)
        check(root.resolve(self.at("a"))._is_equivalent(thing), "an object is bound")
        check(self.here.resolve(name("a"))._is_equivalent(thing), "in the context itself, too")
        raises(NamingContext.AlreadyBound, "bound again", root.bind, self.at("a"), thing)
        root.rebind(self.at("a"), another)
        check(root.resolve(self.at("a"))._is_equivalent(another), "it is another one")
        self.here.rebind(name(("a", "kind")), thing)
        check(root.resolve(self.at(("a", "kind")))._is_equivalent(thing), "a kind is a name")
        check(root.resolve(self.at("a"))._is_equivalent(another), "and its own")
        self.here.bind(name("nothing at all"), self.nil)
        found = self.here.resolve(name("nothing at all"))
        check(found is None, "nil can be bound")

    def contexts(self):
        root, here = self.root, self.here
        first, second = root.new_context(), here.new_context()
        check(not first._is_equivalent(second), "contexts differ")
        root.bind_context(self.at("sub"), first)
        check(root.resolve(self.at("sub"))._is_equivalent(first), "a context is bound")
        raises(NamingContext.AlreadyBound, "a context again", root.bind_context,
               self.at("sub"), second)
        raises(NamingContext.AlreadyBound, "an object there", root.bind, self.at("sub"),
               self.thing)
        found = raised(root.rebind, self.at("sub"), self.thing)
        check(is_not_found(found, NamingContext.not_object, "sub"),
              "rebind replaces no context: %r" % found)
        found = raised(root.rebind_context, self.at("a"), second)
        check(is_not_found(found, NamingContext.not_context, "a"),
              "rebind_context replaces no object: %r" % found)
        root.rebind_context(self.at("sub"), second)
        check(root.resolve(self.at("sub"))._is_equivalent(second), "another context is bound")
        raises(CORBA.BAD_PARAM, "nil is no context", root.bind_context, self.at("n"), None)
        raises(CORBA.BAD_PARAM, "nor later", root.rebind_context, self.at("sub"), None)
        raises(NamingContext.NotEmpty, "a context with bindings", here.destroy)
        first.destroy()
        raises(CORBA.OBJECT_NOT_EXIST, "what is destroyed", first.new_context)
        root.rebind_context(self.at("gone"), second)
        second.destroy()
        check(root.resolve(self.at("gone")) is not None, "a binding outlives its context")

    def operations(self):
        """Every operation that is given a name."""
        root = self.root
        return {
            "bind": lambda path: root.bind(path, self.thing),
            "rebind": lambda path: root.rebind(path, self.thing),
            "bind_context": lambda path: root.bind_context(path, self.here),
            "rebind_context": lambda path: root.rebind_context(path, self.here),
            "resolve": root.resolve,
            "unbind": root.unbind,
            "bind_new_context": root.bind_new_context,
            "resolve_str": lambda path: root.resolve_str(root.to_string(path) if path else ""),
        }

    def names(self):
        self.other.rebind(name(self.word), self.thing)
        self.root.bind_context(self.at("far"), self.other)
        for what, call in self.operations().items():
            found = raised(call, self.at("missing", "x"))
            check(is_not_found(found, NamingContext.missing_node, "missing", "x"),
                  "%s through what is not there: %r" % (what, found))
            found = raised(call, self.at("gone", ("x", "k")))
            check(is_not_found(found, NamingContext.missing_node, "gone", ("x", "k")),
                  "%s through what was destroyed: %r" % (what, found))
            found = raised(call, self.at(("a", "kind"), "x", "y"))
            check(is_not_found(found, NamingContext.not_context, ("a", "kind"), "x", "y"),
                  "%s through an object: %r" % (what, found))
            found = raised(call, self.at("far", ("x", "k"), "y"))
            check(isinstance(found, NamingContext.CannotProceed)
                  and found.cxt._is_equivalent(self.other)
                  and pairs(found.rest_of_name) == [("x", "k"), ("y", "")],
                  "%s through another service: %r" % (what, found))
            raises(NamingContext.InvalidName, what + " of nothing", call, [])
            if what in ("resolve", "unbind", "resolve_str"):
                found = raised(call, self.at("missing"))
                check(is_not_found(found, NamingContext.missing_node, "missing"),
                      "%s of what is not there: %r" % (what, found))
        found = raised(self.root.resolve, self.at("far", self.word))
        there = found.cxt.resolve(found.rest_of_name)
        check(there._is_equivalent(self.thing), "one goes on where it is said")
        self.other.unbind(name(self.word))

    def texts(self):
        root = self.root
        for found, text in [
            (name("a"), "a"),
            (name(("a", "b")), "a.b"),
            (name(("", "b")), ".b"),
            (name(("", "")), "."),
            (name("a", ("", ""), ("c", "d")), "a/./c.d"),
            (name(("a/b", "c.d"), "\\"), "a\\/b.c\\.d/\\\\"),
        ]:
            check(root.to_string(found) == text, "to_string gives " + text)
            check(pairs(root.to_name(text)) == pairs(found), "to_name takes " + text)
        raises(NamingContext.InvalidName, "to_string of nothing", root.to_string, [])
        for text in ["", "/", "a/", "/a", "a//b", "a.", "a.b.c", "a\\b", "a\\"]:
            raises(NamingContext.InvalidName, "to_name of " + text, root.to_name, text)
            raises(NamingContext.InvalidName, "resolve_str of " + text, root.resolve_str, text)
        self.here.bind(name(("sl/ash", "po.int")), self.thing)
        found = root.resolve_str(self.word + "/sl\\/ash.po\\.int")
        check(found._is_equivalent(self.thing), "resolve_str reads what is escaped")
        check(root.to_url(":h:2809", "x/y.z") == "corbaname::h:2809#x/y.z", "to_url")
        found = root.to_url("iiop:1.2@h:1,:i:2/Key", "a b\\.c")
        check(found == "corbaname:iiop:1.2@h:1,:i:2/Key#a%20b%5c.c", "to_url escapes: " + found)
        for address in ["", "http://x", ":h:99999"]:
            raises(NamingContextExt.InvalidAddress, "to_url at " + address, root.to_url,
                   address, "x")
        raises(NamingContext.InvalidName, "to_url of no name", root.to_url, ":h", "x//y")

    def iterators(self):
        many = self.here.bind_new_context(name("many"))
        check(many.list(10) == ([], None), "nothing is listed of an empty context")
        expected = [("many-%03d" % number, "k%d" % (number % 2)) for number in range(MANY)]
        for pair in expected:
            many.bind(name(pair), self.thing)
        found, rest = many.list(MANY)
        check(rest is None, "all at once leave no iterator")
        check([pairs(one.binding_name) for one in found] == [[pair] for pair in expected],
              "each name is listed once, in order")
        check(all(one.binding_type == CosNaming.nobject for one in found), "as an object")
        found, rest = many.list(0)
        check(found == [] and rest._narrow(BindingIterator) is not None, "or one by one")
        has_one, one = rest.next_one()
        check(has_one and pairs(one.binding_name) == expected[:1], "one")
        check(one.binding_type == CosNaming.nobject, "of an object")
        raises(CORBA.BAD_PARAM, "none at a time", rest.next_n, 0)
        has_more, found = True, [one]
        while has_more:
            has_more, part = rest.next_n(PART)
            check(len(part) <= PART and has_more == bool(part), "a part")
            found += part
        check([pairs(one.binding_name) for one in found] == [[pair] for pair in expected],
              "the parts are all")
        has_one, one = rest.next_one()
        check(not has_one and one.binding_name == [], "nothing comes behind the last")
        rest.destroy()
        raises(CORBA.OBJECT_NOT_EXIST, "next_one of what is destroyed", rest.next_one)
        raises(CORBA.OBJECT_NOT_EXIST, "next_n of it", rest.next_n, 1)
        raises(CORBA.OBJECT_NOT_EXIST, "destroy of it", rest.destroy)
        _, rest = many.list(MANY - 1)
        many.unbind(name(expected[-1]))
        check(rest.next_one()[0] is False, "what was unbound does not come")
        for pair in expected[:-1]:
            many.unbind(name(pair))
        many.destroy()
        raises(CORBA.OBJECT_NOT_EXIST, "an iterator of what is destroyed", rest.next_one)
        self.here.unbind(name("many"))

    def limits(self):
        here = self.here
        here.bind(name(("na\u00efve", "\u20ac")), self.thing)
        found, _ = here.list(100)
        check([("na\u00efve", "\u20ac")] in [pairs(one.binding_name) for one in found],
              "names may have any characters")
        here.unbind(name(("na\u00efve", "\u20ac")))
        raises(CORBA.IMP_LIMIT, "65 components", here.resolve, name(*["x"] * 65))
        raises(CORBA.IMP_LIMIT, "1,100 octets", here.bind, name("x" * 1100), self.thing)

    def clean(self):
        found, _ = self.here.list(100)
        kinds = {pairs(one.binding_name)[0]: one.binding_type for one in found}
        is_context = [one for one in kinds if kinds[one] == CosNaming.ncontext]
        check(is_context == [("far", ""), ("gone", ""), ("sub", "")], "contexts are told")
        for pair in kinds:
            self.here.unbind(name(pair))
        self.here.destroy()
        self.root.unbind(self.at())
        found = raised(self.root.resolve, self.at())
        check(is_not_found(found, NamingContext.missing_node, self.word), "nothing is left")


def main():
    orb = CORBA.ORB_init(sys.argv, CORBA.ORB_ID)
    root = orb.string_to_object(sys.argv[1])._narrow(NamingContextExt)
    other = orb.string_to_object(sys.argv[2])._narrow(NamingContext)
    check(root is not None and other is not None, "both are naming services")
    driver = Driver(orb, root, other, sys.argv[3])
    driver.bindings()
    driver.contexts()
    driver.names()
    driver.texts()
    driver.iterators()
    driver.limits()
    driver.clean()
    print("%d steps" % steps)
    orb.destroy()
    # A thread of the ORB that still waits for the interpreter would abort the process when the
    # interpreter ends: the process ends without it.
    sys.stdout.flush()
    os._exit(0)


main()
