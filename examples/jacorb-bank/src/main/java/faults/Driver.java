package faults;

import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import ledger.Orbs;
import org.omg.CORBA.Any;
import org.omg.CORBA.ORB;
import org.omg.CORBA.TCKind;
import org.omg.CosEventComm.Disconnected;
import org.omg.CosNaming.NameComponent;
import org.omg.CosNaming.NameHelper;
import org.omg.CosNotification.EventHeader;
import org.omg.CosNotification.EventType;
import org.omg.CosNotification.FixedEventHeader;
import org.omg.CosNotification.Property;
import org.omg.CosNotification.StructuredEvent;
import org.omg.CosNotifyComm.SequencePushConsumerPOA;
import org.omg.CosNotifyComm.StructuredPushConsumerPOA;
import org.omg.FT.FaultNotifier;
import org.omg.FT.FaultNotifierHelper;
import org.omg.PortableServer.POA;
import org.omg.PortableServer.POAHelper;

/**
 * Goes through every operation of FT::FaultNotifier and the exceptions that they raise. It is
 * examples/omniorbpy-faults/driver.py in Java.
 *
 * <p>What it is not: a test of faults; it pushes its own. Invariant: it ends with 0 only if all was
 * as it must be, and then no consumer of it is left.
 */
public final class Driver {
  private static final String DOMAIN = "FT_CORBA";
  private static final String KIND = "ObjectCrashFault";

  /** Whose faults these are: no domain is called so, and no two runs have the same. */
  private static final String OWN = "driver-" + System.nanoTime();

  /** How long a report may take to come, and who is cut off to be forgotten. */
  private static final int SECONDS_MAX = 20;

  private static int steps;

  private final ORB orb;
  private final FaultNotifier notifier;

  /** What may be called. */
  interface Call {
    void call() throws Exception;
  }

  /** A consumer that keeps what it is given, or takes nothing. */
  private static final class Structured extends StructuredPushConsumerPOA {
    private final BlockingQueue<StructuredEvent> events = new LinkedBlockingQueue<>();
    private final boolean takes;

    private Structured(boolean takes) {
      this.takes = takes;
    }

    @Override
    public void offer_change(EventType[] added, EventType[] removed) {}

    @Override
    public void push_structured_event(StructuredEvent event) throws Disconnected {
      if (!takes) {
        throw new Disconnected();
      }
      events.add(event);
    }

    @Override
    public void disconnect_structured_push_consumer() {}
  }

  /** One that takes several at a time. */
  private static final class Sequence extends SequencePushConsumerPOA {
    private final BlockingQueue<StructuredEvent> events = new LinkedBlockingQueue<>();

    @Override
    public void offer_change(EventType[] added, EventType[] removed) {}

    @Override
    public void push_structured_events(StructuredEvent[] all) {
      events.addAll(List.of(all));
    }

    @Override
    public void disconnect_sequence_push_consumer() {}
  }

  private Driver(ORB orb, FaultNotifier notifier) {
    this.orb = orb;
    this.notifier = notifier;
  }

  /**
   * @param arguments the reference of the notifier
   */
  public static void main(String[] arguments) throws Exception {
    ORB orb = ORB.init(new String[0], Orbs.client());
    POA poa = POAHelper.narrow(orb.resolve_initial_references("RootPOA"));
    poa.the_POAManager().activate();
    FaultNotifier notifier = FaultNotifierHelper.narrow(orb.string_to_object(arguments[0]));
    check(notifier != null, "it is a fault notifier");
    Driver driver = new Driver(orb, notifier);
    Structured one = new Structured(true);
    Sequence many = new Sequence();
    long first = notifier.connect_structured_fault_consumer(one._this(orb));
    long second = notifier.connect_sequence_fault_consumer(many._this(orb));
    check(first != second, "consumers have numbers");
    raises(
        org.omg.CORBA.BAD_PARAM.class,
        "nothing is no consumer",
        () -> notifier.connect_structured_fault_consumer(null));
    raises(
        org.omg.CORBA.BAD_PARAM.class,
        "nor one of sequences",
        () -> notifier.connect_sequence_fault_consumer(null));
    driver.reports(one, many);
    driver.constraints(first, one, many);
    driver.gone(first, second, one, many);
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

  private Any text(String value) {
    Any any = orb.create_any();
    any.insert_string(value);
    return any;
  }

  private StructuredEvent fault(String location, long group, String kind) {
    Any name = orb.create_any();
    NameHelper.insert(name, new NameComponent[] {new NameComponent(location, "")});
    Any number = orb.create_any();
    number.insert_ulonglong(group);
    Any nothing = orb.create_any();
    nothing.type(orb.get_primitive_tc(TCKind.tk_null));
    Property[] data = {
      new Property("FTDomainId", text(OWN)),
      new Property("Location", name),
      new Property("TypeId", text("IDL:Bank/Ledger:1.0")),
      new Property("ObjectGroupId", number),
    };
    FixedEventHeader fixed = new FixedEventHeader(new EventType(DOMAIN, kind), "");
    return new StructuredEvent(new EventHeader(fixed, new Property[0]), data, nothing);
  }

  private StructuredEvent fault(String location, long group) {
    return fault(location, group, KIND);
  }

  private static Map<String, Any> items(StructuredEvent event) {
    Map<String, Any> items = new HashMap<>();
    for (Property one : event.filterable_data) {
      items.put(one.name, one.value);
    }
    return items;
  }

  /** The next report of this driver. */
  private static StructuredEvent eventOf(BlockingQueue<StructuredEvent> events)
      throws InterruptedException {
    while (true) {
      StructuredEvent event = events.poll(SECONDS_MAX, TimeUnit.SECONDS);
      if (event == null) {
        check(false, "a report comes");
      }
      Any own = items(event).get("FTDomainId");
      if (own != null && own.extract_string().equals(OWN)) {
        return event;
      }
    }
  }

  /** The groups of the next ones. */
  private static boolean nextAre(BlockingQueue<StructuredEvent> events, long... groups)
      throws InterruptedException {
    for (long group : groups) {
      long found = items(eventOf(events)).get("ObjectGroupId").extract_ulonglong();
      if (found != group) {
        System.err.println("found " + found + " for " + group);
        return false;
      }
    }
    return true;
  }

  private static EventType[] types(String domain, String kind) {
    return new EventType[] {new EventType(domain, kind)};
  }

  /** What is pushed comes to both kinds of consumers. */
  private void reports(Structured one, Sequence many) throws Exception {
    notifier.push_structured_fault(fault("n1", 1));
    StructuredEvent event = eventOf(one.events);
    EventType kind = event.header.fixed_header.event_type;
    check(
        kind.domain_name.equals(DOMAIN) && kind.type_name.equals(KIND),
        "a report comes with its type");
    Map<String, Any> found = items(event);
    NameComponent[] name = NameHelper.extract(found.get("Location"));
    check(
        name.length == 1 && name[0].id.equals("n1") && name[0].kind.isEmpty(), "its location");
    check(
        found.get("TypeId").extract_string().equals("IDL:Bank/Ledger:1.0"),
        "its object's type");
    check(found.get("ObjectGroupId").extract_ulonglong() == 1, "and its group");
    check(nextAre(many.events, 1), "to who takes several at a time, too");
    notifier.push_sequence_fault(
        new StructuredEvent[] {fault("n1", 2), fault("n2", 3)});
    check(nextAre(one.events, 2, 3), "reports come one by one, in their order");
    check(nextAre(many.events, 2, 3), "or together");
    notifier.push_sequence_fault(new StructuredEvent[0]);
    StructuredEvent tooLarge = fault("n1", 4);
    tooLarge.remainder_of_body = text("x".repeat(20000));
    Class<? extends Exception> limit = org.omg.CORBA.IMP_LIMIT.class;
    raises(
        limit, "a report of 20,000 octets", () -> notifier.push_structured_fault(tooLarge));
    raises(
        limit,
        "or one in a sequence",
        () -> notifier.push_sequence_fault(new StructuredEvent[] {tooLarge}));
  }

  private void constraints(long first, Structured one, Sequence many) throws Exception {
    EventType[] ours = types(DOMAIN, KIND);
    notifier.replace_constraint(
        first, ours, "$ObjectGroupId == 5 and $Location[0].id == 'n2'");
    notifier.push_structured_fault(fault("n1", 5));
    notifier.push_structured_fault(fault("n2", 4));
    notifier.push_structured_fault(fault("n2", 5));
    check(nextAre(one.events, 5), "a constraint lets pass what it says");
    check(one.events.isEmpty(), "and nothing else");
    check(nextAre(many.events, 5, 4, 5), "others get everything");
    Class<? extends Exception> wrong = org.omg.CORBA.BAD_PARAM.class;
    for (String text : new String[] {"$a ==", "$a = 1", "(", "'"}) {
      raises(
          wrong,
          "a constraint that is none: " + text,
          () -> notifier.replace_constraint(first, ours, text));
    }
    raises(
        wrong,
        "and one for nobody",
        () -> notifier.replace_constraint(987654321, ours, "TRUE"));
    push(fault("n1", 6), fault("n2", 5));
    check(nextAre(one.events, 5), "what was refused has changed nothing");
    notifier.replace_constraint(first, types(DOMAIN, "Other"), "TRUE");
    push(fault("n1", 7), fault("n1", 8, "Other"));
    check(nextAre(one.events, 8), "a constraint is about types of events");
    notifier.replace_constraint(first, types("%ALL", "*"), "$ObjectGroupId == 9");
    push(fault("n1", 10), fault("n1", 9, "Other"));
    check(nextAre(one.events, 9), "or about all of them");
    notifier.replace_constraint(first, new EventType[0], "TRUE");
    push(fault("n1", 11));
    check(nextAre(one.events, 11), "and is replaced by the next one");
    check(nextAre(many.events, 6, 5, 7, 8, 10, 9, 11), "nobody else minds");
  }

  private void push(StructuredEvent... events) {
    notifier.push_sequence_fault(events);
  }

  private void gone(long first, long second, Structured one, Sequence many) throws Exception {
    Structured refusing = new Structured(false);
    long third = notifier.connect_structured_fault_consumer(refusing._this(orb));
    notifier.push_structured_fault(fault("n1", 12));
    check(
        nextAre(one.events, 12) && nextAre(many.events, 12),
        "who refuses keeps nobody waiting");
    EventType[] all = {};
    Exception found = null;
    long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(SECONDS_MAX);
    // It is cut off by a call of its own; until then it may have a constraint.
    while (found == null && System.nanoTime() < end) {
      found = raised(() -> notifier.replace_constraint(third, all, "TRUE"));
      Thread.sleep(20);
    }
    check(
        found instanceof org.omg.CORBA.BAD_PARAM,
        "who says that it is disconnected is forgotten");
    raises(
        Disconnected.class,
        "it is not disconnected again",
        () -> notifier.disconnect_consumer(third));
    notifier.disconnect_consumer(first);
    notifier.push_structured_fault(fault("n1", 13));
    check(
        nextAre(many.events, 13) && one.events.isEmpty(),
        "who is disconnected gets nothing more");
    raises(
        Disconnected.class,
        "and is not disconnected again",
        () -> notifier.disconnect_consumer(first));
    raises(
        org.omg.CORBA.BAD_PARAM.class,
        "nor has it a constraint",
        () -> notifier.replace_constraint(first, all, "TRUE"));
    notifier.disconnect_consumer(second);
    raises(
        Disconnected.class,
        "nor who took several",
        () -> notifier.disconnect_consumer(second));
    raises(
        Disconnected.class,
        "nor who never was",
        () -> notifier.disconnect_consumer(987654321));
  }
}
