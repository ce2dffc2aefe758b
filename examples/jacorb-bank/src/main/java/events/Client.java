package events;

import java.util.Properties;
import ledger.Orbs;
import org.omg.CORBA.Any;
import org.omg.CORBA.BooleanHolder;
import org.omg.CORBA.COMM_FAILURE;
import org.omg.CORBA.NO_IMPLEMENT;
import org.omg.CORBA.ORB;
import org.omg.CORBA.TIMEOUT;
import org.omg.CORBA.TRANSIENT;
import org.omg.CORBA.UserException;
import org.omg.CosEventChannelAdmin.EventChannel;
import org.omg.CosEventChannelAdmin.EventChannelHelper;
import org.omg.CosEventChannelAdmin.ProxyPullConsumer;
import org.omg.CosEventChannelAdmin.ProxyPullSupplier;
import org.omg.CosEventChannelAdmin.ProxyPushConsumer;
import org.omg.CosEventChannelAdmin.ProxyPushSupplier;
import org.omg.CosEventComm.PullSupplierPOA;
import org.omg.CosEventComm.PushConsumerPOA;
import org.omg.PortableServer.POA;
import org.omg.PortableServer.POAHelper;

/**
 * Suppliers and consumers of an event channel (CosEvent), for numbers in order. The roles and what
 * they print are those of examples/omniorb-events/client.cc. A call whose outcome is not known is
 * repeated, as its user would do.
 */
public final class Client {
  /** How long somebody goes on who is not answered, in milliseconds. */
  private static final long PATIENCE = 60_000;

  private static final long PAUSE = 20;

  private final ORB orb;
  private final POA poa;
  private final EventChannel channel;

  private Client(ORB orb, POA poa, EventChannel channel) {
    this.orb = orb;
    this.poa = poa;
    this.channel = channel;
  }

  /**
   * @param arguments consume, supply, pull or source; a channel's reference; how many numbers
   */
  public static void main(String[] arguments) throws Exception {
    Properties properties = Orbs.client();
    // Who is called back listens where the nodes are.
    properties.setProperty("OAIAddr", System.getProperty("events.host", "127.0.0.1"));
    ORB orb = ORB.init(new String[0], properties);
    POA poa = POAHelper.narrow(orb.resolve_initial_references("RootPOA"));
    poa.the_POAManager().activate();
    org.omg.CORBA.Object object = orb.string_to_object(arguments[1]);
    // Unchecked: asking for its type would fail if it is just being restarted.
    Client client = new Client(orb, poa, EventChannelHelper.unchecked_narrow(object));
    int count = arguments.length > 2 ? Integer.parseInt(arguments[2]) : 0;
    switch (arguments[0]) {
      case "consume" -> client.consume();
      case "supply" -> client.supply(count);
      case "pull" -> client.pull();
      case "source" -> client.source(count);
      default -> throw new IllegalArgumentException("no such role: " + arguments[0]);
    }
    orb.shutdown(true);
  }

  private void consume() throws Exception {
    ProxyPushSupplier proxy = again(() -> again(channel::for_consumers).obtain_push_supplier());
    org.omg.CosEventComm.PushConsumer consumer =
        org.omg.CosEventComm.PushConsumerHelper.narrow(
            poa.servant_to_reference(new Consumer()));
    again(() -> proxy.connect_push_consumer(consumer));
    say("connected");
    orb.run();
  }

  private void supply(int count) throws Exception {
    ProxyPushConsumer proxy = again(() -> again(channel::for_suppliers).obtain_push_consumer());
    again(() -> proxy.connect_push_supplier(null));
    say("connected");
    for (int number = 1; number <= count; ++number) {
      Any data = any(number);
      again(() -> proxy.push(data));
      say(number);
    }
  }

  private void pull() throws Exception {
    ProxyPullSupplier proxy = again(() -> again(channel::for_consumers).obtain_pull_supplier());
    again(() -> proxy.connect_pull_consumer(null));
    say("connected");
    while (true) {
      say(again(proxy::pull).extract_long());
    }
  }

  private void source(int count) throws Exception {
    ProxyPullConsumer proxy = again(() -> again(channel::for_suppliers).obtain_pull_consumer());
    org.omg.CosEventComm.PullSupplier supplier =
        org.omg.CosEventComm.PullSupplierHelper.narrow(
            poa.servant_to_reference(new Source(count)));
    again(() -> proxy.connect_pull_supplier(supplier));
    say("connected");
    orb.run();
  }

  private Any any(int number) {
    Any any = orb.create_any();
    any.insert_long(number);
    return any;
  }

  private static synchronized void say(Object what) {
    System.out.println(what);
  }

  private interface Call<T> {
    T make() throws UserException;
  }

  private interface Deed {
    void make() throws UserException;
  }

  private static void again(Deed deed) throws Exception {
    again(
        () -> {
          deed.make();
          return null;
        });
  }

  /** Calls until it is answered: a member may end, or another one begin to lead. */
  private static <T> T again(Call<T> call) throws UserException {
    long end = System.currentTimeMillis() + PATIENCE;
    while (true) {
      try {
        return call.make();
      } catch (TRANSIENT | COMM_FAILURE | TIMEOUT raised) {
        if (System.currentTimeMillis() > end) {
          throw raised;
        }
      }
      try {
        Thread.sleep(PAUSE);
      } catch (InterruptedException interrupted) {
        throw new IllegalStateException(interrupted);
      }
    }
  }

  private static final class Consumer extends PushConsumerPOA {
    @Override
    public void push(Any data) {
      say(data.extract_long());
    }

    @Override
    public void disconnect_push_consumer() {
      say("disconnected");
    }
  }

  private final class Source extends PullSupplierPOA {
    private final int count;
    private int given;

    private Source(int count) {
      this.count = count;
    }

    @Override
    public synchronized Any try_pull(BooleanHolder hasEvent) {
      hasEvent.value = given < count;
      if (hasEvent.value) {
        say(++given);
      }
      return any(given);
    }

    @Override
    public Any pull() {
      throw new NO_IMPLEMENT();
    }

    @Override
    public void disconnect_pull_supplier() {
      say("disconnected");
    }
  }
}
