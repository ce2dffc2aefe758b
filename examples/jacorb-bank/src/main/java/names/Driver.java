package names;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import ledger.Orbs;
import org.omg.CORBA.ORB;
import org.omg.CosNaming.Binding;
import org.omg.CosNaming.BindingHolder;
import org.omg.CosNaming.BindingIterator;
import org.omg.CosNaming.BindingIteratorHolder;
import org.omg.CosNaming.BindingListHolder;
import org.omg.CosNaming.BindingType;
import org.omg.CosNaming.NameComponent;
import org.omg.CosNaming.NamingContext;
import org.omg.CosNaming.NamingContextExt;
import org.omg.CosNaming.NamingContextExtHelper;
import org.omg.CosNaming.NamingContextExtPackage.InvalidAddress;
import org.omg.CosNaming.NamingContextHelper;
import org.omg.CosNaming.NamingContextPackage.AlreadyBound;
import org.omg.CosNaming.NamingContextPackage.CannotProceed;
import org.omg.CosNaming.NamingContextPackage.InvalidName;
import org.omg.CosNaming.NamingContextPackage.NotEmpty;
import org.omg.CosNaming.NamingContextPackage.NotFound;
import org.omg.CosNaming.NamingContextPackage.NotFoundReason;

/**
 * Goes through every operation of a naming service and every exception that they raise, and
 * compares the exceptions' fields. It is examples/omniorbpy-names/driver.py in Java.
 *
 * <p>What it is not: a test of faults. Invariant: it ends with 0 only if all was as it must be, and
 * then nothing is left of what it has bound.
 */
public final class Driver {
  /** So many names are bound for the iterators. */
  private static final int MANY = 300;

  /** So many are asked for at a time. */
  private static final int PART = 120;

  /** What stands between an id and its kind, here alone. */
  private static final String KIND = "|";

  private static int steps;

  private final NamingContextExt root;
  private final NamingContext other;
  private final String word;
  private final org.omg.CORBA.Object thing;
  private final org.omg.CORBA.Object another;
  private NamingContextExt here;

  /** What may be called. */
  interface Call {
    void call() throws Exception;
  }

  /** What is called with a name. */
  interface Operation {
    void call(NameComponent[] name) throws Exception;
  }

  private Driver(ORB orb, NamingContextExt root, NamingContext other, String word) {
    this.root = root;
    this.other = other;
    this.word = word;
    thing = orb.string_to_object("corbaloc:iiop:1.2@127.0.0.1:9/thing");
    another = orb.string_to_object("corbaloc:iiop:1.2@127.0.0.1:9/another");
  }

  /**
   * @param arguments the reference of the service; that of another one, which a name goes on in;
   *     the name of the context in which everything is done
   */
  public static void main(String[] arguments) throws Exception {
    Properties properties = Orbs.client();
    properties.setProperty("jacorb.native_char_codeset", "UTF8");
    ORB orb = ORB.init(new String[0], properties);
    NamingContextExt root = NamingContextExtHelper.narrow(orb.string_to_object(arguments[0]));
    NamingContext other = NamingContextHelper.narrow(orb.string_to_object(arguments[1]));
    Driver driver = new Driver(orb, root, other, arguments[2]);
    driver.bindings();
    driver.contexts();
    driver.names();
    driver.texts();
    driver.iterators();
    driver.limits();
    driver.clean();
    System.out.println(steps + " steps");
    orb.shutdown(true);
  }

  private static void check(boolean isSo, String what) {
    if (!isSo) {
      System.err.println("not so: " + what);
      System.exit(1);
    }
    ++steps;
    System.out.println("ok " + steps + " " + what);
  }

  /** What a call raises; none if it returns. */
  private static Exception raised(Call call) {
    try {
      call.call();
      return null;
    } catch (Exception exception) {
      return exception;
    }
  }

  private static void raises(Class<? extends Exception> kind, String what, Call call) {
    Exception found = raised(call);
    check(kind.isInstance(found), what + ": " + kind.getSimpleName() + ", found " + found);
  }

  /** A name; a part is an id, or an id, {@link #KIND} and a kind. */
  private static NameComponent[] name(String... parts) {
    NameComponent[] name = new NameComponent[parts.length];
    for (int index = 0; index < name.length; ++index) {
      int at = parts[index].indexOf(KIND);
      String id = at < 0 ? parts[index] : parts[index].substring(0, at);
      name[index] = new NameComponent(id, at < 0 ? "" : parts[index].substring(at + 1));
    }
    return name;
  }

  private static List<String> parts(NameComponent[] name) {
    List<String> parts = new ArrayList<>();
    for (NameComponent one : name) {
      parts.add(one.id + (one.kind.isEmpty() ? "" : KIND + one.kind));
    }
    return parts;
  }

  private static void notFound(String what, NotFoundReason why, Call call, String... rest) {
    Exception found = raised(call);
    boolean isIt =
        found instanceof NotFound
            && ((NotFound) found).why.value() == why.value()
            && parts(((NotFound) found).rest_of_name).equals(parts(name(rest)));
    check(isIt, what + ": NotFound, found " + found);
  }

  private NameComponent[] at(String... parts) {
    List<String> all = new ArrayList<>(List.of(word));
    all.addAll(Arrays.asList(parts));
    return name(all.toArray(new String[0]));
  }

  private boolean isAt(org.omg.CORBA.Object object, String... parts) throws Exception {
    return root.resolve(at(parts))._is_equivalent(object);
  }

  private void bindings() throws Exception {
    NamingContext made = root.bind_new_context(at());
    here = NamingContextExtHelper.narrow(made);
    check(here != null, "a new context is one with texts");
    check(isAt(made), "and is bound");
    raises(AlreadyBound.class, "another one", () -> root.bind_new_context(at()));
    root.bind(at("a"), thing);
    check(isAt(thing, "a"), "an object is bound");
    check(here.resolve(name("a"))._is_equivalent(thing), "in the context itself, too");
    raises(AlreadyBound.class, "bound again", () -> root.bind(at("a"), thing));
    root.rebind(at("a"), another);
    check(isAt(another, "a"), "it is another one");
    here.rebind(name("a|kind"), thing);
    check(isAt(thing, "a|kind"), "a kind is a name");
    check(isAt(another, "a"), "and its own");
    here.bind(name("nothing at all"), null);
    check(here.resolve(name("nothing at all")) == null, "nil can be bound");
  }

  private void contexts() throws Exception {
    NamingContext first = root.new_context();
    NamingContext second = here.new_context();
    check(!first._is_equivalent(second), "contexts differ");
    root.bind_context(at("sub"), first);
    check(isAt(first, "sub"), "a context is bound");
    raises(AlreadyBound.class, "a context again", () -> root.bind_context(at("sub"), second));
    raises(AlreadyBound.class, "an object there", () -> root.bind(at("sub"), thing));
    notFound(
        "rebind replaces no context",
        NotFoundReason.not_object,
        () -> root.rebind(at("sub"), thing),
        "sub");
    notFound(
        "rebind_context replaces no object",
        NotFoundReason.not_context,
        () -> root.rebind_context(at("a"), second),
        "a");
    root.rebind_context(at("sub"), second);
    check(isAt(second, "sub"), "another context is bound");
    raises(
        org.omg.CORBA.BAD_PARAM.class,
        "nil is no context",
        () -> root.bind_context(at("n"), null));
    raises(
        org.omg.CORBA.BAD_PARAM.class,
        "nor later",
        () -> root.rebind_context(at("sub"), null));
    raises(NotEmpty.class, "a context with bindings", () -> here.destroy());
    first.destroy();
    raises(
        org.omg.CORBA.OBJECT_NOT_EXIST.class, "what is destroyed", () -> first.new_context());
    root.rebind_context(at("gone"), second);
    second.destroy();
    check(root.resolve(at("gone")) != null, "a binding outlives its context");
  }

  /** Every operation that is given a name. */
  private Map<String, Operation> operations() {
    Map<String, Operation> all = new LinkedHashMap<>();
    all.put("bind", path -> root.bind(path, thing));
    all.put("rebind", path -> root.rebind(path, thing));
    all.put("bind_context", path -> root.bind_context(path, here));
    all.put("rebind_context", path -> root.rebind_context(path, here));
    all.put("resolve", path -> root.resolve(path));
    all.put("unbind", path -> root.unbind(path));
    all.put("bind_new_context", path -> root.bind_new_context(path));
    all.put(
        "resolve_str",
        path -> root.resolve_str(path.length == 0 ? "" : root.to_string(path)));
    return all;
  }

  private void names() throws Exception {
    other.rebind(name(word), thing);
    root.bind_context(at("far"), other);
    NotFoundReason missing = NotFoundReason.missing_node;
    for (Map.Entry<String, Operation> one : operations().entrySet()) {
      String what = one.getKey();
      Operation call = one.getValue();
      notFound(
          what + " through what is not there",
          missing,
          () -> call.call(at("missing", "x")),
          "missing",
          "x");
      notFound(
          what + " through what was destroyed",
          missing,
          () -> call.call(at("gone", "x|k")),
          "gone",
          "x|k");
      notFound(
          what + " through an object",
          NotFoundReason.not_context,
          () -> call.call(at("a|kind", "x", "y")),
          "a|kind",
          "x",
          "y");
      Exception found = raised(() -> call.call(at("far", "x|k", "y")));
      boolean isIt =
          found instanceof CannotProceed
              && ((CannotProceed) found).cxt._is_equivalent(other)
              && parts(((CannotProceed) found).rest_of_name).equals(List.of("x|k", "y"));
      check(isIt, what + " through another service: " + found);
      raises(InvalidName.class, what + " of nothing", () -> call.call(new NameComponent[0]));
      if (List.of("resolve", "unbind", "resolve_str").contains(what)) {
        notFound(
            what + " of what is not there", missing, () -> call.call(at("missing")), "missing");
      }
    }
    Exception found = raised(() -> root.resolve(at("far", word)));
    org.omg.CORBA.Object there =
        ((CannotProceed) found).cxt.resolve(((CannotProceed) found).rest_of_name);
    check(there._is_equivalent(thing), "one goes on where it is said");
    other.unbind(name(word));
  }

  private void texts() throws Exception {
    Map<String, NameComponent[]> all = new LinkedHashMap<>();
    all.put("a", name("a"));
    all.put("a.b", name("a|b"));
    all.put(".b", name("|b"));
    all.put(".", name("|"));
    all.put("a/./c.d", name("a", "|", "c|d"));
    all.put("a\\/b.c\\.d/\\\\", name("a/b|c.d", "\\"));
    for (Map.Entry<String, NameComponent[]> one : all.entrySet()) {
      String text = one.getKey();
      check(root.to_string(one.getValue()).equals(text), "to_string gives " + text);
      check(parts(root.to_name(text)).equals(parts(one.getValue())), "to_name takes " + text);
    }
    raises(InvalidName.class, "to_string of nothing", () -> root.to_string(name()));
    String[] wrong = {"", "/", "a/", "/a", "a//b", "a.", "a.b.c", "a\\b", "a\\"};
    for (String text : wrong) {
      raises(InvalidName.class, "to_name of " + text, () -> root.to_name(text));
      raises(InvalidName.class, "resolve_str of " + text, () -> root.resolve_str(text));
    }
    here.bind(name("sl/ash|po.int"), thing);
    check(
        root.resolve_str(word + "/sl\\/ash.po\\.int")._is_equivalent(thing),
        "resolve_str reads what is escaped");
    check(root.to_url(":h:2809", "x/y.z").equals("corbaname::h:2809#x/y.z"), "to_url");
    String url = root.to_url("iiop:1.2@h:1,:i:2/Key", "a b\\.c");
    check(
        url.equals("corbaname:iiop:1.2@h:1,:i:2/Key#a%20b%5c.c"), "to_url escapes: " + url);
    for (String address : new String[] {"", "http://x", ":h:99999"}) {
      raises(InvalidAddress.class, "to_url at " + address, () -> root.to_url(address, "x"));
    }
    raises(InvalidName.class, "to_url of no name", () -> root.to_url(":h", "x//y"));
  }

  private static List<String> listed(Iterable<Binding> bindings) {
    List<String> names = new ArrayList<>();
    for (Binding one : bindings) {
      names.addAll(parts(one.binding_name));
    }
    return names;
  }

  /** Lists a context: its names are in {@code found}. */
  private static BindingIterator list(NamingContext context, int count, List<Binding> found) {
    BindingListHolder list = new BindingListHolder();
    BindingIteratorHolder rest = new BindingIteratorHolder();
    context.list(count, list, rest);
    found.addAll(List.of(list.value));
    return rest.value;
  }

  private void iterators() throws Exception {
    NamingContext many = here.bind_new_context(name("many"));
    List<Binding> found = new ArrayList<>();
    BindingIterator rest = list(many, 10, found);
    check(found.isEmpty() && rest == null, "nothing is listed of an empty context");
    List<String> expected = new ArrayList<>();
    for (int number = 0; number < MANY; ++number) {
      expected.add(String.format("many-%03d|k%d", number, number % 2));
      many.bind(name(expected.get(number)), thing);
    }
    rest = list(many, MANY, found);
    check(rest == null, "all at once leave no iterator");
    check(listed(found).equals(expected), "each name is listed once, in order");
    check(
        found.stream().allMatch(one -> one.binding_type.value() == BindingType._nobject),
        "as an object");
    found.clear();
    rest = list(many, 0, found);
    check(found.isEmpty() && rest != null, "or one by one");
    parts(rest, expected);
    found.clear();
    BindingIterator last = list(many, MANY - 1, found);
    many.unbind(name(expected.get(MANY - 1)));
    check(!last.next_one(new BindingHolder()), "what was unbound does not come");
    for (String one : expected.subList(0, MANY - 1)) {
      many.unbind(name(one));
    }
    many.destroy();
    raises(
        org.omg.CORBA.OBJECT_NOT_EXIST.class,
        "an iterator of what is destroyed",
        () -> last.next_one(new BindingHolder()));
    here.unbind(name("many"));
  }

  /** Goes through an iterator that has given nothing yet. */
  private static void parts(BindingIterator rest, List<String> expected) {
    BindingHolder one = new BindingHolder();
    check(
        rest.next_one(one) && parts(one.value.binding_name).equals(expected.subList(0, 1)),
        "one");
    check(one.value.binding_type.value() == BindingType._nobject, "of an object");
    BindingListHolder part = new BindingListHolder();
    raises(org.omg.CORBA.BAD_PARAM.class, "none at a time", () -> rest.next_n(0, part));
    List<Binding> found = new ArrayList<>(List.of(one.value));
    boolean hasMore = true;
    while (hasMore) {
      hasMore = rest.next_n(PART, part);
      check(part.value.length <= PART && hasMore == (part.value.length > 0), "a part");
      found.addAll(List.of(part.value));
    }
    check(listed(found).equals(expected), "the parts are all");
    check(
        !rest.next_one(one) && one.value.binding_name.length == 0,
        "nothing comes behind the last");
    rest.destroy();
    Class<? extends Exception> gone = org.omg.CORBA.OBJECT_NOT_EXIST.class;
    raises(gone, "next_one of what is destroyed", () -> rest.next_one(one));
    raises(gone, "next_n of it", () -> rest.next_n(1, part));
    raises(gone, "destroy of it", () -> rest.destroy());
  }

  private void limits() throws Exception {
    here.bind(name("na\u00efve|\u20ac"), thing);
    List<Binding> found = new ArrayList<>();
    list(here, 100, found);
    check(listed(found).contains("na\u00efve|\u20ac"), "names may have any characters");
    here.unbind(name("na\u00efve|\u20ac"));
    String[] long65 = new String[65];
    Arrays.fill(long65, "x");
    raises(
        org.omg.CORBA.IMP_LIMIT.class, "65 components", () -> here.resolve(name(long65)));
    raises(
        org.omg.CORBA.IMP_LIMIT.class,
        "1,100 octets",
        () -> here.bind(name("x".repeat(1100)), thing));
  }

  private void clean() throws Exception {
    List<Binding> found = new ArrayList<>();
    list(here, 100, found);
    List<String> contexts = new ArrayList<>();
    for (Binding one : found) {
      if (one.binding_type.value() == BindingType._ncontext) {
        contexts.addAll(parts(one.binding_name));
      }
    }
    check(contexts.equals(List.of("far", "gone", "sub")), "contexts are told");
    for (Binding one : found) {
      here.unbind(one.binding_name);
    }
    here.destroy();
    root.unbind(at());
    notFound(
        "nothing is left", NotFoundReason.missing_node, () -> root.resolve(at()), word);
  }
}
