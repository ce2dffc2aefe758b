"""omniidl back-end: Rust on top of the crate `corba`. `cargo xtask idl` runs it.

What it is not: complete. Valuetypes, fixed, native and local interfaces are refused by name.

Invariants: the output is a function of the IDL; names are those of the IDL in Rust's style; a type
of another file is named by its path from the crate's root, where every file's modules are.
"""

import re

from omniidl import idlast, idltype

KEYWORDS = set(
    "as async await become box break const continue crate do dyn else enum extern false final fn "
    "for gen if impl in let loop macro match mod move mut override priv pub ref return self static "
    "struct super trait true try type typeof unsafe unsized use virtual where while yield".split()
)

# Kind: type of Rust, kind of TypeCode.
BASE = {
    idltype.tk_void: ("()", "Void"),
    idltype.tk_short: ("i16", "Short"),
    idltype.tk_long: ("i32", "Long"),
    idltype.tk_longlong: ("i64", "LongLong"),
    idltype.tk_ushort: ("u16", "UShort"),
    idltype.tk_ulong: ("u32", "ULong"),
    idltype.tk_ulonglong: ("u64", "ULongLong"),
    idltype.tk_float: ("f32", "Float"),
    idltype.tk_double: ("f64", "Double"),
    idltype.tk_longdouble: ("corba::LongDouble", "LongDouble"),
    idltype.tk_boolean: ("bool", "Boolean"),
    idltype.tk_char: ("corba::Char", "Char"),
    idltype.tk_wchar: ("corba::WChar", "WChar"),
    idltype.tk_octet: ("u8", "Octet"),
    idltype.tk_any: ("corba::Any", "Any"),
    idltype.tk_TypeCode: ("corba::TypeCode", "TypeCode"),
}

# Kinds that have a name; the last two are declared ahead of what they are.
DECLARED = (
    idltype.tk_struct,
    idltype.tk_union,
    idltype.tk_enum,
    idltype.tk_alias,
    idltype.tk_except,
    idltype.ot_structforward,
    idltype.ot_unionforward,
)


def snake(name):
    name = re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", name)
    name = re.sub(r"([A-Z]+)([A-Z][a-z])", r"\1_\2", name)
    return name.lower()


def word(name):
    """A name of a value, kept from being a keyword."""
    name = snake(name)
    return name + "_" if name in ("self", "super", "crate") else "r#" * (name in KEYWORDS) + name


def camel(name):
    return "".join(part[:1].upper() + part[1:] for part in name.split("_"))


def text(value):
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'


def path(scoped_name):
    """Where a declaration is, from the crate's root."""
    return "::".join(
        ["crate"] + [snake(part) for part in scoped_name[:-1]] + [camel(scoped_name[-1])]
    )


def refuse(what):
    raise SystemExit("quorba_rust: " + what + " is not supported")


def rust_type(of):
    kind = of.kind()
    if kind in BASE:
        return BASE[kind][0]
    if kind == idltype.tk_string:
        return "corba::BoundedString<%d>" % of.bound() if of.bound() else "String"
    if kind == idltype.tk_wstring:
        return "corba::WString"
    if kind == idltype.tk_sequence:
        item = rust_type(of.seqType())
        return "corba::Bounded<%s, %d>" % (item, of.bound()) if of.bound() else "Vec<%s>" % item
    if kind == idltype.tk_objref:
        return "corba::Object"
    if kind in DECLARED:
        return path(of.scopedName())
    return refuse("a type of kind %d" % kind)


def with_sizes(inner, sizes):
    for size in reversed(sizes):
        inner = "[%s; %d]" % (inner, size)
    return inner


def array_code(inner, sizes):
    for size in reversed(sizes):
        inner = "corba::TypeCode::array(&%s, %d)" % (inner, size)
    return inner


def type_code(of):
    """The expression that makes a type's TypeCode, inside of those in `open`."""
    kind = of.kind()
    if kind in BASE:
        return "corba::TypeCode::basic(corba::Kind::%s)" % BASE[kind][1]
    if kind in (idltype.tk_string, idltype.tk_wstring):
        name = "string" if kind == idltype.tk_string else "wstring"
        return "corba::TypeCode::%s(%d)" % (name, of.bound())
    if kind == idltype.tk_sequence:
        return "corba::TypeCode::sequence(&%s, %d)" % (type_code(of.seqType()), of.bound())
    if kind == idltype.tk_objref:
        decl = of.decl()
        if decl is None or decl.scopedName() == ["CORBA", "Object"]:
            return "<corba::Object as corba::Typed>::type_code_within(open)"
        return "corba::TypeCode::object(%s, %s)" % (text(decl.repoId()), text(decl.identifier()))
    if kind == idltype.tk_alias:
        decl = of.decl()
        inner = array_code(type_code(decl.alias().aliasType()), decl.sizes())
        return "corba::TypeCode::alias(%s, %s, &%s)" % (
            text(decl.repoId()),
            text(decl.identifier()),
            inner,
        )
    return "<%s as corba::Typed>::type_code_within(open)" % rust_type(of)


def has_float(of, seen=()):
    """Whether values of a type cannot be compared exactly."""
    kind = of.kind()
    if kind in (idltype.tk_float, idltype.tk_double):
        return True
    if kind == idltype.tk_sequence:
        return has_float(of.seqType(), seen)
    if not isinstance(of, idltype.Declared) or of.decl() is None:
        return False
    decl = of.decl().fullDecl() if hasattr(of.decl(), "fullDecl") else of.decl()
    if decl in seen:
        return False
    seen = seen + (decl,)
    if kind == idltype.tk_alias:
        return has_float(decl.alias().aliasType(), seen)
    if isinstance(decl, (idlast.Struct, idlast.Exception)):
        return any(has_float(member.memberType(), seen) for member in decl.members())
    if isinstance(decl, idlast.Union):
        return any(has_float(case.caseType(), seen) for case in decl.cases())
    return False


def label_pattern(union, label):
    kind = union.switchType().unalias().kind()
    value = label.value()
    if kind == idltype.tk_enum:
        return "%s::%s" % (rust_type(union.switchType().unalias()), camel(value.identifier()))
    if kind == idltype.tk_boolean:
        return "true" if value else "false"
    if kind == idltype.tk_char:
        return "corba::Char(%d)" % ord(value)
    return str(value)


def label_number(union, label):
    kind = union.switchType().unalias().kind()
    if kind == idltype.tk_enum:
        return label.value().value()
    if kind == idltype.tk_char:
        return ord(label.value())
    return int(label.value())


def is_complete(union, labels):
    """Whether the labels are all values that the discriminator has."""
    of = union.switchType().unalias()
    if of.kind() == idltype.tk_enum:
        return len(labels) == len(of.decl().enumerators())
    return of.kind() == idltype.tk_boolean and len(labels) == 2


def error_type(operation):
    """What an operation's Result has as its error."""
    if not operation.raises():
        return "corba::giop::SystemException"
    return path(operation.scopedName()[:-1] + [camel(operation.identifier()) + "Error"])


def tuple_of(types):
    return types[0] if len(types) == 1 else "(%s)" % ", ".join(types)


class Method:
    """An operation, or one half of an attribute."""

    def __init__(
        self, name, wire, doc, takes, gives, error="corba::giop::SystemException", oneway=False
    ):
        self.name, self.wire, self.doc, self.error, self.oneway = name, wire, doc, error, oneway
        self.takes, self.gives = takes, gives

    def arguments(self, by):
        return "".join(", %s: %s%s" % (name, by, of) for name, of in self.takes)

    def outcome(self):
        return "Result<%s, %s>" % (tuple_of(self.gives), self.error)


def methods_of(callables):
    for it in callables:
        scoped = "::".join(it.scopedName()) if isinstance(it, idlast.Operation) else ""
        if isinstance(it, idlast.Operation):
            takes = [
                (word(p.identifier()), rust_type(p.paramType()))
                for p in it.parameters()
                if p.is_in()
            ]
            gives = (
                [] if it.returnType().kind() == idltype.tk_void else [rust_type(it.returnType())]
            )
            gives += [rust_type(p.paramType()) for p in it.parameters() if p.is_out()]
            name = word(it.identifier())
            yield Method(name, it.identifier(), scoped, takes, gives, error_type(it), it.oneway())
        else:
            for decl in it.declarators():
                of, name = rust_type(it.attrType()), decl.identifier()
                doc = "::".join(decl.scopedName())
                yield Method(word(name), "_get_" + name, "Reads `%s" % doc, [], [of])
                if not it.readonly():
                    setter, wire = "set_" + snake(name), "_set_" + name
                    yield Method(setter, wire, "Writes `%s" % doc, [(word(name), of)], [])


class Writer:
    """Collects lines; rustfmt lays them out."""

    def __init__(self):
        self.lines = []

    def put(self, line, *values):
        self.lines.append(line % values if values else line)

    def scope(self, name, doc, definitions, more=()):
        self.put("/// %s", doc)
        self.put("pub mod %s {", word(name))
        self.put("#[allow(unused_imports)] use corba::prelude::*; use quorba_corba as corba;")
        for it in definitions:
            self.declaration(it)
        for line in more:
            self.put("%s", line)
        self.put("}")

    def declaration(self, it):
        if not it.mainFile():
            return
        name = type(it).__name__
        if name in ("Forward", "StructForward", "UnionForward"):
            return
        visit = getattr(self, "visit_" + name.lower(), None)
        if visit is None:
            refuse("%s %s" % (name, getattr(it, "identifier", lambda: "")()))
        visit(it)

    def inside(self, it, nested):
        """Types that are declared where they are used."""
        if nested:
            doc = "What is declared in `%s`." % "::".join(it.scopedName())
            self.scope(it.identifier(), doc, nested)

    def visit_module(self, it):
        self.scope(it.identifier(), "`%s`." % "::".join(it.scopedName()), it.definitions())

    def visit_const(self, it):
        kind, value = it.constType().unalias().kind(), it.value()
        of = rust_type(it.constType())
        if kind == idltype.tk_string:
            of, value = "&str", text(value)
        elif kind == idltype.tk_enum:
            value = "%s::%s" % (of, camel(value.identifier()))
        elif kind == idltype.tk_boolean:
            value = "true" if value else "false"
        elif kind == idltype.tk_char:
            value = "corba::Char(%d)" % ord(value)
        self.put("/// `%s`.", "::".join(it.scopedName()))
        self.put("pub const %s: %s = %s;", snake(it.identifier()).upper(), of, value)

    def visit_typedef(self, it):
        if it.constrType():
            self.declaration(it.aliasType().decl())
        for decl in it.declarators():
            of = with_sizes(rust_type(it.aliasType()), decl.sizes())
            self.put("/// `%s`.", "::".join(decl.scopedName()))
            self.put("pub type %s = %s;", camel(decl.identifier()), of)

    def visit_enum(self, it):
        names = [camel(member.identifier()) for member in it.enumerators()]
        of = self.head(it, "Copy, Eq, PartialOrd, Ord", "enum")
        for member, name in zip(it.enumerators(), names):
            self.put("/// `%s`.", member.identifier())
            self.put("%s,", name)
        self.put("}")
        self.cdr(
            of,
            "4",
            "match from.read::<u32>()? {%s _ => Err(corba::invalid(%s, from)) }"
            % (
                "".join("%d => Ok(Self::%s)," % pair for pair in enumerate(names)),
                text(it.identifier()),
            ),
            "to.write(&(*self as u32));",
        )
        listed = ", ".join(text(member.identifier()) for member in it.enumerators())
        self.typed(
            of,
            "_",
            "corba::TypeCode::enumeration(%s, %s, &[%s])"
            % (text(it.repoId()), text(it.identifier()), listed),
        )

    def head(self, it, derives, keyword):
        of = camel(it.identifier())
        self.put("/// `%s`.", "::".join(it.scopedName()))
        self.put("#[derive(Clone, Debug, PartialEq%s)]", ", " + derives if derives else "")
        self.put("pub %s %s {", keyword, of)
        return of

    def cdr(self, of, bytes_min, read, write, unused=""):
        self.put("impl corba::Cdr for %s { const BYTES_MIN: usize = %s;", of, bytes_min)
        self.put("fn read(%sfrom: &mut corba::Decoder<'_>)", unused)
        self.put("-> Result<Self, corba::giop::MessageError> { %s }", read)
        self.put("fn write(&self, %sto: &mut corba::Encoder) { %s } }", unused, write)

    def typed(self, of, open_name, code):
        self.put("impl corba::Typed for %s {", of)
        self.put("fn type_code_within(%s: &mut Vec<&'static str>) -> corba::TypeCode {", open_name)
        self.put("%s } }", code)

    def composed(self, it, code):
        """A TypeCode that may contain itself."""
        self.typed(
            camel(it.identifier()),
            "open",
            """
            const ID: &str = %s;
            if open.contains(&ID) { return corba::TypeCode::recursive(ID); }
            open.push(ID); let type_code = %s; open.pop(); type_code""" % (text(it.repoId()), code),
        )

    def visit_struct(self, it):
        self.structure(it, "structure")

    def visit_exception(self, it):
        self.structure(it, "exception")
        of = camel(it.identifier())
        self.put(
            "impl corba::UserException for %s { const ID: &'static str = %s; }",
            of,
            text(it.repoId()),
        )

    def structure(self, it, kind):
        self.inside(it, [m.memberType().decl() for m in it.members() if m.constrType()])
        members = [
            (
                word(d.identifier()),
                with_sizes(rust_type(m.memberType()), d.sizes()),
                d,
                array_code(type_code(m.memberType()), d.sizes()),
            )
            for m in it.members()
            for d in m.declarators()
        ]
        exact = not any(has_float(member.memberType(), (it,)) for member in it.members())
        of = self.head(it, "Eq" if exact else "", "struct")
        for name, type_, decl, _ in members:
            self.put("/// `%s`.", decl.identifier())
            self.put("pub %s: %s,", name, type_)
        self.put("}")
        least = (
            " + ".join("<%s as corba::Cdr>::BYTES_MIN" % type_ for _, type_, _, _ in members) or "0"
        )
        read = "Ok(Self { %s })" % "".join("%s: from.read()?," % name for name, _, _, _ in members)
        write = "".join("to.write(&self.%s);" % name for name, _, _, _ in members)
        self.cdr(of, least, read, write, "" if members else "_")
        coded = "".join("(%s, %s)," % (text(d.identifier()), code) for _, _, d, code in members)
        self.composed(
            it, "corba::TypeCode::%s(ID, %s, &[%s])" % (kind, text(it.identifier()), coded)
        )

    def visit_union(self, it):
        nested = [it.switchType().decl()] if it.constrType() else []
        self.inside(
            it, nested + [case.caseType().decl() for case in it.cases() if case.constrType()]
        )
        switch = rust_type(it.switchType())
        labels = [label for case in it.cases() for label in case.labels() if not label.default()]
        has_default = any(label.default() for case in it.cases() for label in case.labels())
        exact = not any(has_float(case.caseType(), (it,)) for case in it.cases())
        of = self.head(it, "Eq" if exact else "", "enum")
        read, write = "", ""
        for case in it.cases():
            name = camel(case.declarator().identifier())
            type_ = with_sizes(rust_type(case.caseType()), case.declarator().sizes())
            self.put("/// `%s`.", case.declarator().identifier())
            alone = len(case.labels()) == 1 and not case.labels()[0].default()
            patterns = [label_pattern(it, label) for label in case.labels() if not label.default()]
            if alone:
                self.put("%s(%s),", name, type_)
                read += "%s => Ok(Self::%s(from.read()?))," % (patterns[0], name)
                write += "Self::%s(value) => { to.write::<%s>(&%s); to.write(value); }" % (
                    name,
                    switch,
                    patterns[0],
                )
            else:
                self.put("%s(%s, %s),", name, switch, type_)
                if any(label.default() for label in case.labels()):
                    default = "label => Ok(Self::%s(label, from.read()?))," % name
                else:
                    read += "label @ (%s) => Ok(Self::%s(label, from.read()?))," % (
                        " | ".join(patterns),
                        name,
                    )
                write += "Self::%s(label, value) => { to.write(label); to.write(value); }" % name
        if has_default:
            read += default
        elif not is_complete(it, labels):
            self.put("/// No member: another label.")
            self.put("Nothing(%s),", switch)
            read += "label => Ok(Self::Nothing(label)),"
            write += "Self::Nothing(label) => to.write(label),"
        self.put("}")
        self.cdr(
            of,
            "<%s as corba::Cdr>::BYTES_MIN" % switch,
            "match from.read::<%s>()? { %s }" % (switch, read),
            "match self { %s }" % write,
        )
        self.union_code(it)

    def union_code(self, it):
        arms, default = [], "None"
        for case in it.cases():
            code = array_code(type_code(case.caseType()), case.declarator().sizes())
            name = text(case.declarator().identifier())
            for label in case.labels():
                if label.default():
                    default = "Some(%d)" % len(arms)
                arms.append(
                    "(%d, %s, %s)" % (0 if label.default() else label_number(it, label), name, code)
                )
        self.composed(
            it,
            "corba::TypeCode::union(ID, %s, &%s, %s, &[%s])"
            % (text(it.identifier()), type_code(it.switchType()), default, ", ".join(arms)),
        )

    def visit_interface(self, it):
        if it.local() or it.abstract():
            refuse("the local or abstract interface " + it.identifier())
        operations = [c for c in it.callables() if isinstance(c, idlast.Operation) and c.raises()]
        errors = []
        for operation in operations:
            errors.append(
                "corba::raises! { /// What `%s` raises.\npub enum %sError { %s } }"
                % (
                    operation.identifier(),
                    camel(operation.identifier()),
                    ", ".join(
                        "%s(%s)" % (camel(e.identifier()), path(e.scopedName()))
                        for e in operation.raises()
                    ),
                )
            )
        if it.declarations() or errors:
            doc = "What is declared in `%s`." % "::".join(it.scopedName())
            self.scope(it.identifier(), doc, it.declarations(), errors)
        self.interface(it)

    def interface(self, it):
        of, scoped = camel(it.identifier()), "::".join(it.scopedName())
        ids, bases = [], list(it.inherits())
        for ancestor in [it] + ancestors(it):
            if ancestor.repoId() not in ids:
                ids.append(ancestor.repoId())
        self.put("/// `%s`: its repository id, and those of what it inherits.", scoped)
        self.put(
            "pub const %s: corba::Interface = corba::Interface(&[%s]);",
            snake(it.identifier()).upper(),
            ", ".join(text(id_) for id_ in ids),
        )
        own = list(methods_of(it.callables()))
        above = (
            ": " + " + ".join(path(base.fullDecl().scopedName()) for base in bases) if bases else ""
        )
        self.put("/// An implementation of `%s`.", scoped)
        self.put("pub trait %s%s {", of, above)
        for method in own:
            self.method_doc(method)
            self.put(
                "fn %s(&mut self%s) -> %s;", method.name, method.arguments(""), method.outcome()
            )
        self.put("}")
        self.skeleton(it, of, own, bases)
        self.stub(it, of, scoped)

    def method_doc(self, method):
        is_attribute = method.doc.startswith(("Reads ", "Writes "))
        self.put("/// %s`.", method.doc if is_attribute else "`" + method.doc)
        self.put("///\n/// # Errors\n/// What the operation raises.")

    def skeleton(self, it, of, own, bases):
        self.put("/// Executes a call of `%s` by its implementation.", "::".join(it.scopedName()))
        self.put("///\n/// # Errors\n/// The system exception to raise.")
        self.put(
            "pub fn dispatch_%s<S: %s + ?Sized>(servant: &mut S, call: &mut corba::Call<'_>)",
            snake(it.identifier()),
            of,
        )
        self.put("-> Result<(), corba::giop::SystemException> { match call.operation() {")
        for method in own:
            self.put("%s => {", text(method.wire))
            for name, type_ in method.takes:
                self.put("let %s: %s = call.argument()?;", name, type_)
            names = ["result%d" % index for index in range(len(method.gives))]
            self.put(
                "match %s::%s(servant%s) { Ok(%s) => { %s Ok(()) }",
                of,
                method.name,
                "".join(", " + name for name, _ in method.takes),
                tuple_of(names),
                "".join("call.result(&%s);" % name for name in names),
            )
            self.put("Err(raised) => corba::Raises::raise(raised, call), } }")
        for base in bases:
            base = base.fullDecl()
            wires = [m.wire for m in methods_of(all_callables(base))]
            known = [m.wire for m in own]
            wires = [
                text(wire)
                for index, wire in enumerate(wires)
                if wire not in wires[:index] and wire not in known
            ]
            if wires:
                at = path(base.scopedName())
                at = at[: at.rindex("::") + 2] + "dispatch_" + snake(base.identifier())
                self.put("%s => %s(servant, call),", " | ".join(wires), at)
        self.put("_ => Err(call.unknown_operation()), } }")

    def stub(self, it, of, scoped):
        self.put("/// Calls a `%s`.", scoped)
        self.put("pub struct %sStub<'t>(pub &'t mut dyn corba::Transport);", of)
        self.put("impl %sStub<'_> {", of)
        seen = set()
        for method in methods_of(all_callables(it)):
            if method.wire in seen:
                continue
            seen.add(method.wire)
            self.method_doc(method)
            self.put(
                "pub fn %s(&mut self%s) -> %s {",
                method.name,
                method.arguments("&"),
                method.outcome(),
            )
            write = "".join("to.write(%s);" % name for name, _ in method.takes)
            arguments = "&|%s| { %s }" % ("to" if write else "_", write)
            if method.oneway:
                self.put("corba::send(self.0, %s, %s) }", text(method.wire), arguments)
                continue
            results = {0: "|_| Ok(())", 1: "|from| from.read()"}.get(len(method.gives))
            results = results or "|from| Ok(%s)" % tuple_of(["from.read()?"] * len(method.gives))
            self.put("corba::call(self.0, %s, %s, %s) }", text(method.wire), arguments, results)
        self.put("}")


def ancestors(it):
    """All that an interface inherits, the nearest first."""
    found = []
    for base in it.inherits():
        base = base.fullDecl()
        found += [base] + ancestors(base)
    return found


def all_callables(it):
    return [c for part in [it] + ancestors(it) for c in part.callables()]


def run(tree, _arguments):
    writer = Writer()
    writer.put("#![allow(clippy::ptr_arg, clippy::too_many_arguments, clippy::type_complexity)]")
    for it in tree.declarations():
        writer.declaration(it)
    print("\n".join(writer.lines))
