package services;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.function.Predicate;
import ledger.Orbs;
import org.omg.CORBA.Any;
import org.omg.CORBA.AnyHolder;
import org.omg.CORBA.ORB;
import org.omg.CORBA.TCKind;
import org.omg.CosNaming.NameComponent;
import org.omg.CosNaming.NameHelper;
import org.omg.FT.ACTIVE;
import org.omg.FT.BadReplicationStyle;
import org.omg.FT.CONS_APP_CTRL;
import org.omg.FT.CannotMeetCriteria;
import org.omg.FT.FactoryInfo;
import org.omg.FT.FactoryInfosHelper;
import org.omg.FT.FaultMonitoringIntervalAndTimeoutValue;
import org.omg.FT.FaultMonitoringIntervalAndTimeoutValueHelper;
import org.omg.FT.FaultNotifier;
import org.omg.FT.FaultNotifierHelper;
import org.omg.FT.InvalidCriteria;
import org.omg.FT.InvalidProperty;
import org.omg.FT.MEMB_APP_CTRL;
import org.omg.FT.MemberAlreadyPresent;
import org.omg.FT.MemberNotFound;
import org.omg.FT.NoFactory;
import org.omg.FT.ObjectGroupNotFound;
import org.omg.FT.ObjectNotAdded;
import org.omg.FT.ObjectNotFound;
import org.omg.FT.PrimaryNotSet;
import org.omg.FT.PropertiesHelper;
import org.omg.FT.Property;
import org.omg.FT.ReplicationManager;
import org.omg.FT.ReplicationManagerHelper;
import org.omg.FT.UnsupportedProperty;
import org.omg.FT.WARM_PASSIVE;

/**
 * Goes through every operation of a replication manager and every exception that they raise, and
 * compares the exceptions' fields. It is examples/omniorbpy-manager/driver.py in Java.
 *
 * <p>What it is not: a test of repairs. Invariant: it ends with 0 only if all was as it must be,
 * and then nothing is left of what it has made.
 */
public final class Driver {
  private static final String LEDGER = "IDL:Bank/Ledger:1.0";
  private static final String OURS = "org.omg.ft.";
  private static final String STYLE = "ReplicationStyle";
  private static final String INITIAL = "InitialNumberReplicas";
  private static final String MINIMUM = "MinimumNumberReplicas";

  private static int steps;

  private final ORB orb;
  private final ReplicationManager manager;
  private final String[] nodes;
  private final org.omg.CORBA.Object thing;
  private final Property wrong;
  private final Property unknown;

  /** What may be called. */
  interface Call {
    void call() throws Exception;
  }

  /** What is called with properties. */
  interface Setter {
    void call(Property... given) throws Exception;
  }

  /** What is called with a group. */
  interface OfGroup {
    void call(org.omg.CORBA.Object group) throws Exception;
  }

  private Driver(ORB orb, ReplicationManager manager, String[] nodes) {
    this.orb = orb;
    this.manager = manager;
    this.nodes = nodes;
    thing = orb.string_to_object("corbaloc:iiop:1.2@127.0.0.1:9/thing");
    wrong = number(STYLE, 77);
    unknown = number("Colour", 1);
  }

  /**
   * @param arguments the reference of the manager, and the names of three nodes
   */
  public static void main(String[] arguments) throws Exception {
    ORB orb = ORB.init(new String[0], Orbs.client());
    org.omg.CORBA.Object object = orb.string_to_object(arguments[0]);
    ReplicationManager manager = ReplicationManagerHelper.narrow(object);
    check(manager != null, "it is a replication manager");
    Driver driver = new Driver(orb, manager, Arrays.copyOfRange(arguments, 1, 4));
    driver.properties();
    driver.removals();
    driver.creation();
    driver.members();
    driver.application();
    driver.notifier();
    new Factories(orb, manager, driver.nodes).run(Driver::check);
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

  private static <E extends Exception> void raises(
      Class<E> kind, String what, Call call, Predicate<E> isIt) {
    Exception found = null;
    try {
      call.call();
    } catch (Exception exception) {
      found = exception;
    }
    boolean isSo = kind.isInstance(found) && isIt.test(kind.cast(found));
    check(isSo, what + ": " + kind.getSimpleName() + ", found " + found);
  }

  private static void raises(Class<? extends Exception> kind, String what, Call call) {
    raises(kind, what, call, found -> true);
  }

  private void invalid(String what, Property expected, Call call) {
    raises(
        InvalidProperty.class,
        what,
        call,
        found -> said(new Property(found.nam, found.val)).equals(said(expected)));
  }

  private void unsupported(String what, Call call) {
    raises(
        UnsupportedProperty.class,
        what,
        call,
        found -> said(new Property(found.nam, found.val)).equals(said(unknown)));
  }

  private static NameComponent[] name(String id) {
    return new NameComponent[] {new NameComponent(id, "")};
  }

  private static String idOf(NameComponent[] name) {
    return name.length == 1 && name[0].kind.isEmpty() ? name[0].id : "";
  }

  private Property number(String id, int value) {
    Any any = orb.create_any();
    any.insert_ushort((short) value);
    return new Property(name(OURS + id), any);
  }

  private Property time(String id, long value) {
    Any any = orb.create_any();
    any.insert_ulonglong(value);
    return new Property(name(OURS + id), any);
  }

  private Property times(long interval, long timeout) {
    Any any = orb.create_any();
    FaultMonitoringIntervalAndTimeoutValueHelper.insert(
        any, new FaultMonitoringIntervalAndTimeoutValue(interval, timeout));
    return new Property(name(OURS + "FaultMonitoringIntervalAndTimeout"), any);
  }

  private Property factories() {
    Any any = orb.create_any();
    FactoryInfosHelper.insert(
        any, new FactoryInfo[] {new FactoryInfo(null, name("n1"), new Property[0])});
    return new Property(name(OURS + "Factories"), any);
  }

  /** The criteria that a group has these properties. */
  private Property[] own(Property... properties) {
    Any any = orb.create_any();
    PropertiesHelper.insert(any, properties);
    return new Property[] {new Property(name(OURS + "FTProperties"), any)};
  }

  /** Properties in words, for comparisons. */
  private static Map<String, String> said(Property... properties) {
    Map<String, String> said = new TreeMap<>();
    for (Property one : properties) {
      said.put(idOf(one.nam), plain(one.val));
    }
    return said;
  }

  private static String plain(Any any) {
    switch (any.type().kind().value()) {
      case TCKind._tk_ushort:
        return Short.toString(any.extract_ushort());
      case TCKind._tk_ulonglong:
        return Long.toString(any.extract_ulonglong());
      case TCKind._tk_alias:
      case TCKind._tk_sequence:
        List<String> there = new ArrayList<>();
        for (FactoryInfo one : FactoryInfosHelper.extract(any)) {
          there.add((one.the_factory == null) + " " + idOf(one.the_location));
        }
        return there.toString();
      default:
        FaultMonitoringIntervalAndTimeoutValue times =
            FaultMonitoringIntervalAndTimeoutValueHelper.extract(any);
        return times.monitoring_interval + " " + times.timeout;
    }
  }

  private List<String> locations(org.omg.CORBA.Object group) throws Exception {
    List<String> found = new ArrayList<>();
    for (NameComponent[] one : manager.locations_of_members(group)) {
      found.add(idOf(one));
    }
    return found;
  }

  private Property[] ten() {
    return new Property[] {
      number(STYLE, WARM_PASSIVE.value),
      number("MembershipStyle", 1),
      number("ConsistencyStyle", 1),
      number("FaultMonitoringStyle", 0),
      number("FaultMonitoringGranularity", 1),
      factories(),
      number(INITIAL, 3),
      number(MINIMUM, 2),
      times(10000000, 5000000),
      time("CheckpointInterval", 20000000),
    };
  }

  /** The PropertyManager. */
  private void properties() throws Exception {
    Property[] two = {number(INITIAL, 2), number(MINIMUM, 1)};
    manager.set_default_properties(two);
    check(said(manager.get_default_properties()).equals(said(two)), "defaults");
    check(said(manager.get_type_properties(LEDGER)).equals(said(two)), "count for types");
    manager.set_type_properties(LEDGER, ten());
    Map<String, String> found = said(manager.get_type_properties(LEDGER));
    check(found.equals(said(ten())), "all ten properties of a type go before: " + found);
    Map<String, Setter> setters = new LinkedHashMap<>();
    setters.put("set_default", manager::set_default_properties);
    setters.put("set_type", given -> manager.set_type_properties(LEDGER, given));
    for (Map.Entry<String, Setter> one : setters.entrySet()) {
      String what = one.getKey();
      Setter call = one.getValue();
      invalid(what + " of a wrong value", wrong, () -> call.call(wrong));
      unsupported(
          what + " of an unknown one", () -> call.call(number("MembershipStyle", 1), unknown));
      Property twice = number(INITIAL, 5);
      invalid(what + " twice", twice, () -> call.call(twice, twice));
    }
    manager.remove_type_properties(LEDGER, ten());
    check(said(manager.get_type_properties(LEDGER)).equals(said(two)), "they are removed");
  }

  private void removals() throws Exception {
    Map<String, Setter> removers = new LinkedHashMap<>();
    removers.put("remove_default", manager::remove_default_properties);
    removers.put("remove_type", given -> manager.remove_type_properties(LEDGER, given));
    for (Map.Entry<String, Setter> one : removers.entrySet()) {
      Property absent = number("FaultMonitoringStyle", 1);
      Setter call = one.getValue();
      invalid(one.getKey() + " of what is not set", absent, () -> call.call(absent));
      unsupported(one.getKey() + " of an unknown one", () -> call.call(unknown));
    }
    manager.remove_default_properties(
        new Property[] {number(INITIAL, 2), number(MINIMUM, 1)});
    check(manager.get_default_properties().length == 0, "nothing is left of the defaults");
  }

  private void create(String type, Property... criteria) throws Exception {
    manager.create_object(type, criteria, new AnyHolder());
  }

  /** What a creation is refused for. */
  private void creation() throws Exception {
    raises(
        NoFactory.class,
        "nobody creates an unknown type",
        () -> create("IDL:Nothing:1.0"),
        found ->
            found.the_location.length == 0 && found.type_id.equals("IDL:Nothing:1.0"));
    Any moon = orb.create_any();
    NameHelper.insert(moon, name("moon"));
    raises(
        NoFactory.class,
        "nor one anywhere",
        () -> create(LEDGER, new Property(name(OURS + "ObjectLocation"), moon)),
        found -> idOf(found.the_location).equals("moon") && found.type_id.equals(LEDGER));
    invalid("a property that is wrong", wrong, () -> create(LEDGER, own(wrong)));
    invalid("or unknown", unknown, () -> create(LEDGER, own(unknown)));
    Property none = number("FTProperties", 5);
    Property size = number("size", 1);
    raises(
        InvalidCriteria.class,
        "FTProperties that are none",
        () -> create(LEDGER, size, none),
        found -> said(found.invalid_criteria).equals(said(none)));
    raises(
        CannotMeetCriteria.class,
        "too many",
        () -> create(LEDGER, own(number(INITIAL, 60))),
        found -> said(found.unmet_criteria).equals(said(number(INITIAL, 60))));
    raises(
        CannotMeetCriteria.class,
        "no size is known",
        () -> create(LEDGER, size),
        found -> said(found.unmet_criteria).equals(said(size)));
    Property[] stateless =
        own(
            number(STYLE, WARM_PASSIVE.value),
            number("ConsistencyStyle", CONS_APP_CTRL.value));
    raises(
        InvalidProperty.class,
        "a passive group without states",
        () -> create(LEDGER, stateless));
    for (Any id : new Any[] {time("", 987654321).val, moon}) {
      raises(
          ObjectNotFound.class, "what was not created", () -> manager.delete_object(id));
    }
  }

  /** A group whose members nodes start. */
  private void members() throws Exception {
    AnyHolder id = new AnyHolder();
    Property[] criteria =
        own(number(STYLE, WARM_PASSIVE.value), number(INITIAL, 2), number(MINIMUM, 1));
    org.omg.CORBA.Object group = manager.create_object(LEDGER, criteria, id);
    check(locations(group).equals(List.of(nodes[0], nodes[1])), "a group of two was created");
    check(group._is_a(LEDGER), "it is a ledger");
    long number = manager.get_object_group_id(group);
    check(number == id.value.extract_ulonglong(), "it has its number");
    refusedMembers(group);
    Property[] none = {};
    org.omg.CORBA.Object three = manager.create_member(group, name(nodes[2]), LEDGER, none);
    check(locations(group).equals(List.of(nodes)), "a third member was created");
    check(three._is_a(LEDGER), "in the same group");
    raises(
        ObjectNotAdded.class,
        "an object on the moon",
        () -> manager.add_member(group, name("moon"), thing));
    raises(
        MemberAlreadyPresent.class,
        "an object where there is a member",
        () -> manager.add_member(group, name(nodes[2]), thing));
    Map<String, Call> calls = new LinkedHashMap<>();
    calls.put("set_primary_member", () -> manager.set_primary_member(group, name("moon")));
    calls.put("get_member_ref", () -> manager.get_member_ref(group, name("moon")));
    calls.put("remove_member", () -> manager.remove_member(group, name("moon")));
    calls.forEach((what, call) -> raises(MemberNotFound.class, what + " of none", call));
    org.omg.CORBA.Object led = manager.set_primary_member(group, name(nodes[1]));
    check(led._is_a(LEDGER), "another member is the primary");
    check(
        manager.get_member_ref(group, name(nodes[1]))._is_a(LEDGER), "members have references");
    org.omg.CORBA.Object two = manager.remove_member(group, name(nodes[0]));
    check(locations(group).equals(List.of(nodes[1], nodes[2])), "a member was removed");
    check(
        manager.get_object_group_ref(group)._is_equivalent(two),
        "the latest reference is what was returned last");
    dynamically(group);
    manager.delete_object(id.value);
    raises(
        ObjectNotFound.class, "what was deleted", () -> manager.delete_object(id.value));
    notFound(group);
  }

  /** What a new member is refused for. */
  private void refusedMembers(org.omg.CORBA.Object group) {
    Property[] nothing = {};
    raises(
        MemberAlreadyPresent.class,
        "a member is not created twice",
        () -> manager.create_member(group, name(nodes[0]), LEDGER, nothing));
    raises(
        NoFactory.class,
        "nor on the moon",
        () -> manager.create_member(group, name("moon"), LEDGER, nothing),
        found -> idOf(found.the_location).equals("moon") && found.type_id.equals(LEDGER));
    String other = "IDL:Nothing:1.0";
    raises(
        NoFactory.class,
        "nor of an unknown type",
        () -> manager.create_member(group, name(nodes[2]), other, nothing),
        found -> idOf(found.the_location).equals(nodes[2]) && found.type_id.equals(other));
    Property none = number("FTProperties", 5);
    raises(
        InvalidCriteria.class,
        "nor by wrong criteria",
        () -> manager.create_member(group, name(nodes[2]), LEDGER, new Property[] {none}),
        found -> said(found.invalid_criteria).equals(said(none)));
    Property size = number("size", 1);
    raises(
        CannotMeetCriteria.class,
        "nor by unknown ones",
        () -> manager.create_member(group, name(nodes[2]), LEDGER, new Property[] {size}),
        found -> said(found.unmet_criteria).equals(said(size)));
  }

  private void dynamically(org.omg.CORBA.Object group) throws Exception {
    Property[] four = {
      number(MINIMUM, 2),
      number("FaultMonitoringGranularity", 1),
      times(10000000, 5000000),
      time("CheckpointInterval", 30000000),
    };
    manager.set_properties_dynamically(group, four);
    Map<String, String> found = said(manager.get_properties(group));
    check(
        found.entrySet().containsAll(said(four).entrySet()),
        "four properties are set dynamically: " + found);
    check(found.get(OURS + STYLE).equals("2"), "others are as they were");
    Property[] others = {
      number(STYLE, ACTIVE.value),
      number("MembershipStyle", 0),
      number("ConsistencyStyle", 0),
      number("FaultMonitoringStyle", 0),
      number(INITIAL, 3),
      number(MINIMUM, 0),
    };
    for (Property one : others) {
      invalid(
          "this one is not",
          one,
          () -> manager.set_properties_dynamically(group, new Property[] {one}));
    }
    unsupported(
        "nor unknown ones",
        () -> manager.set_properties_dynamically(group, new Property[] {unknown}));
  }

  /** Every operation of a group that is none. */
  private void notFound(org.omg.CORBA.Object deleted) {
    NameComponent[] at = name(nodes[0]);
    Property[] none = {};
    Map<String, OfGroup> calls = new LinkedHashMap<>();
    calls.put("create_member", of -> manager.create_member(of, at, LEDGER, none));
    calls.put("add_member", of -> manager.add_member(of, at, thing));
    calls.put("remove_member", of -> manager.remove_member(of, at));
    calls.put("set_primary_member", of -> manager.set_primary_member(of, at));
    calls.put("locations_of_members", of -> manager.locations_of_members(of));
    calls.put("get_object_group_id", of -> manager.get_object_group_id(of));
    calls.put("get_object_group_ref", of -> manager.get_object_group_ref(of));
    calls.put("get_member_ref", of -> manager.get_member_ref(of, at));
    calls.put("get_properties", of -> manager.get_properties(of));
    calls.put(
        "set_properties_dynamically",
        of -> manager.set_properties_dynamically(of, new Property[] {number(MINIMUM, 1)}));
    Class<? extends Exception> kind = ObjectGroupNotFound.class;
    calls.forEach(
        (what, call) -> {
          raises(kind, what + " of a deleted group", () -> call.call(deleted));
          raises(kind, what + " of what is none", () -> call.call(thing));
          raises(kind, what + " of nothing", () -> call.call(null));
        });
  }

  /** Groups whose members the application says. */
  private void application() throws Exception {
    AnyHolder id = new AnyHolder();
    Property mine = number("MembershipStyle", MEMB_APP_CTRL.value);
    Property[] active = own(mine, number(STYLE, ACTIVE.value));
    org.omg.CORBA.Object group = manager.create_object(LEDGER, active, id);
    check(
        locations(group).isEmpty(), "a group of the application begins without members");
    raises(
        ObjectNotAdded.class,
        "nothing is no member",
        () -> manager.add_member(group, name(nodes[0]), null));
    manager.add_member(group, name(nodes[0]), thing);
    check(locations(group).equals(List.of(nodes[0])), "and takes its objects");
    check(
        manager.get_member_ref(group, name(nodes[0]))._is_equivalent(thing),
        "which it gives back");
    raises(
        BadReplicationStyle.class,
        "an active group has no primary",
        () -> manager.set_primary_member(group, name(nodes[0])));
    manager.remove_member(group, name(nodes[0]));
    check(locations(group).isEmpty(), "and takes away");
    manager.delete_object(id.value);
    // Nobody is there, so nobody is in.
    Property[] passive = own(mine, number(STYLE, WARM_PASSIVE.value));
    org.omg.CORBA.Object other = manager.create_object(LEDGER, passive, id);
    manager.add_member(other, name(nodes[0]), thing);
    raises(
        ObjectNotAdded.class,
        "one server is one member",
        () -> manager.add_member(other, name(nodes[1]), thing));
    String elsewhere = "corbaloc:iiop:1.2@127.0.0.1:8/another";
    manager.add_member(other, name(nodes[1]), orb.string_to_object(elsewhere));
    raises(
        PrimaryNotSet.class,
        "who is not in does not lead",
        () -> manager.set_primary_member(other, name(nodes[1])));
    manager.delete_object(id.value);
  }

  private void notifier() throws Exception {
    FaultNotifier own = manager.get_fault_notifier();
    check(own != null, "the domain has a notifier of its own");
    FaultNotifier some = FaultNotifierHelper.unchecked_narrow(thing);
    manager.register_fault_notifier(some);
    check(manager.get_fault_notifier()._is_equivalent(some), "a notifier is registered");
    manager.register_fault_notifier(null);
    check(manager.get_fault_notifier()._is_equivalent(own), "and is not any more");
  }
}
