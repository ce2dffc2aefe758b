package services;

import java.net.InetAddress;
import java.net.ServerSocket;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.function.BiConsumer;
import java.util.function.BooleanSupplier;
import ledger.Orbs;
import org.omg.CORBA.Any;
import org.omg.CORBA.AnyHolder;
import org.omg.CORBA.ORB;
import org.omg.CosNaming.NameComponent;
import org.omg.CosNaming.NameHelper;
import org.omg.FT.FactoryInfo;
import org.omg.FT.FactoryInfosHelper;
import org.omg.FT.FaultMonitoringIntervalAndTimeoutValue;
import org.omg.FT.FaultMonitoringIntervalAndTimeoutValueHelper;
import org.omg.FT.GenericFactory;
import org.omg.FT.GenericFactoryHelper;
import org.omg.FT.GenericFactoryPOA;
import org.omg.FT.ObjectNotCreated;
import org.omg.FT.ObjectNotFound;
import org.omg.FT.PULL;
import org.omg.FT.PropertiesHelper;
import org.omg.FT.Property;
import org.omg.FT.PullMonitorable;
import org.omg.FT.PullMonitorableHelper;
import org.omg.FT.PullMonitorablePOA;
import org.omg.FT.ReplicationManager;
import org.omg.FT.STATELESS;
import org.omg.PortableServer.POA;
import org.omg.PortableServer.POAHelper;

/**
 * Factories of an application, one for each node and each in an ORB of its own, as a replication
 * manager calls them: objects are created, refused, replaced and deleted.
 *
 * <p>What it is not: an application. A thing does nothing but to be alive; one that has died is an
 * object that its ORB does not know any more.
 */
final class Factories {
  private static final String THING = "IDL:Test/Thing:1.0";
  private static final String OURS = "org.omg.ft.";

  private final ORB orb;
  private final ReplicationManager manager;
  private final String[] nodes;
  private final List<Factory> made = new ArrayList<>();

  Factories(ORB orb, ReplicationManager manager, String[] nodes) throws Exception {
    this.orb = orb;
    this.manager = manager;
    this.nodes = nodes;
    for (int index = 0; index < nodes.length; ++index) {
      made.add(new Factory());
    }
  }

  /** What a factory makes. */
  private static final class Thing extends PullMonitorablePOA {
    @Override
    public boolean is_alive() {
      return true;
    }
  }

  /** The factory of one node. */
  private static final class Factory extends GenericFactoryPOA {
    private final ORB server;
    private final POA poa;
    private final String reference;
    /** By number; empty: it has died. */
    private final Map<Integer, byte[]> things = new TreeMap<>();

    private String type = "";
    private Property[] criteria = {};
    private int last;
    private boolean refuses;

    Factory() throws Exception {
      int port;
      try (ServerSocket free = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
        port = free.getLocalPort();
      }
      server = ORB.init(new String[0], Orbs.server("factory", "127.0.0.1:" + port));
      poa = POAHelper.narrow(server.resolve_initial_references("RootPOA"));
      poa.the_POAManager().activate();
      reference = server.object_to_string(poa.servant_to_reference(this));
    }

    @Override
    public synchronized org.omg.CORBA.Object create_object(
        String typeId, Property[] given, AnyHolder id) throws ObjectNotCreated {
      type = typeId;
      criteria = given;
      if (refuses) {
        throw new ObjectNotCreated();
      }
      try {
        ++last;
        byte[] key = poa.activate_object(new Thing());
        things.put(last, key);
        id.value = server.create_any();
        id.value.insert_ulong(last);
        return poa.id_to_reference(key);
      } catch (org.omg.CORBA.UserException exception) {
        throw new IllegalStateException(exception);
      }
    }

    @Override
    public synchronized void delete_object(Any id) throws ObjectNotFound {
      byte[] key = things.remove(id.extract_ulong());
      if (key == null) {
        throw new ObjectNotFound();
      }
      end(key);
    }

    private void end(byte[] key) {
      try {
        if (key.length > 0) {
          poa.deactivate_object(key);
        }
      } catch (org.omg.CORBA.UserException exception) {
        throw new IllegalStateException(exception);
      }
    }

    synchronized void refuse(boolean nothing) {
      refuses = nothing;
    }

    /** What it has made dies; the factory knows it still. */
    synchronized void kill() {
      things.replaceAll(
          (number, key) -> {
            end(key);
            return new byte[0];
          });
    }

    synchronized int count() {
      return things.size();
    }

    /** What it was told last, in words. */
    synchronized String told() {
      Map<String, String> told = new TreeMap<>();
      for (Property one : criteria) {
        boolean isPlace = one.nam[0].id.equals(OURS + "ObjectLocation");
        String value =
            isPlace ? NameHelper.extract(one.val)[0].id : "" + one.val.extract_ushort();
        told.put(one.nam[0].id, value);
      }
      return type + " " + told;
    }
  }

  void run(BiConsumer<Boolean, String> check) throws Exception {
    FactoryInfo[] infos = new FactoryInfo[nodes.length];
    for (int index = 0; index < nodes.length; ++index) {
      org.omg.CORBA.Object object = orb.string_to_object(made.get(index).reference);
      GenericFactory factory = GenericFactoryHelper.unchecked_narrow(object);
      Property[] colour = {number("colour", 7)};
      infos[index] = new FactoryInfo(factory, name(nodes[index]), colour);
    }
    AnyHolder id = new AnyHolder();
    org.omg.CORBA.Object group = manager.create_object(THING, wanted(infos, 2), id);
    List<String> first = List.of(nodes[0], nodes[1]);
    check.accept(locations(group).equals(first), "factories make the members");
    String told = THING + " {colour=7, " + OURS + "ObjectLocation=" + nodes[0] + ", size=5}";
    check.accept(made.get(0).told().equals(told), "they are told: " + made.get(0).told());
    PullMonitorable called = PullMonitorableHelper.narrow(group);
    check.accept(called != null && called.is_alive(), "the group is called");

    made.get(2).refuse(true);
    boolean isRefused = false;
    try {
      manager.create_object(THING, wanted(infos, 3), new AnyHolder());
    } catch (ObjectNotCreated refused) {
      isRefused = true;
    }
    check.accept(isRefused, "what a factory does not create is not created");
    check.accept(counts().equals("110"), "and what others have made for it is deleted");
    made.get(2).refuse(false);

    made.get(0).kill();
    List<String> after = List.of(nodes[1], nodes[2]);
    boolean isReplaced = inTime(() -> locations(group).equals(after));
    check.accept(isReplaced, "who has died is replaced by another factory");
    check.accept(inTime(() -> counts().equals("011")), "and its factory is told that it goes");
    manager.delete_object(id.value);
    check.accept(counts().equals("000"), "all objects go with their group");
    for (Factory factory : made) {
      factory.server.shutdown(true);
    }
  }

  private String counts() {
    StringBuilder text = new StringBuilder();
    made.forEach(factory -> text.append(factory.count()));
    return text.toString();
  }

  private List<String> locations(org.omg.CORBA.Object group) {
    List<String> found = new ArrayList<>();
    try {
      for (NameComponent[] one : manager.locations_of_members(group)) {
        found.add(one[0].id);
      }
    } catch (org.omg.CORBA.UserException exception) {
      throw new IllegalStateException(exception);
    }
    return found;
  }

  private static boolean inTime(BooleanSupplier isSo) throws InterruptedException {
    for (int tries = 0; tries < 1200; ++tries) {
      if (isSo.getAsBoolean()) {
        return true;
      }
      Thread.sleep(50);
    }
    return false;
  }

  private static NameComponent[] name(String id) {
    return new NameComponent[] {new NameComponent(id, "")};
  }

  private Property number(String id, int value) {
    Any any = orb.create_any();
    any.insert_ushort((short) value);
    return new Property(name(id), any);
  }

  /** A group whose objects are asked every 50 ms. */
  private Property[] wanted(FactoryInfo[] infos, int initial) {
    Any all = orb.create_any();
    FactoryInfosHelper.insert(all, infos);
    Any times = orb.create_any();
    FaultMonitoringIntervalAndTimeoutValueHelper.insert(
        times, new FaultMonitoringIntervalAndTimeoutValue(500000, 20000000));
    Property[] own = {
      new Property(name(OURS + "Factories"), all),
      number(OURS + "ReplicationStyle", STATELESS.value),
      number(OURS + "InitialNumberReplicas", initial),
      number(OURS + "MinimumNumberReplicas", 2),
      number(OURS + "FaultMonitoringStyle", PULL.value),
      new Property(name(OURS + "FaultMonitoringIntervalAndTimeout"), times),
    };
    Any said = orb.create_any();
    PropertiesHelper.insert(said, own);
    return new Property[] {new Property(name(OURS + "FTProperties"), said), number("size", 5)};
  }
}
