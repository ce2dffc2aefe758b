package echo;

import java.nio.charset.StandardCharsets;
import java.util.Properties;
import java.util.Set;
import ledger.Arguments;
import ledger.Orbs;
import org.omg.CORBA.ORB;
import org.omg.CORBA.Policy;
import org.omg.FT.CheckpointablePOA;
import org.omg.FT.InvalidState;
import org.omg.PortableServer.IdAssignmentPolicyValue;
import org.omg.PortableServer.LifespanPolicyValue;
import org.omg.PortableServer.POA;
import org.omg.PortableServer.POAHelper;
import org.omg.PortableServer.Servant;

/**
 * Returns what it was given: the far end of a measurement, as omniorb-echo's server in C++.
 *
 * <p>Options: {@code --listen HOST:PORT}, {@code --threads N} that execute calls. With one, which
 * is the default, calls run in the order in which they arrive, and a call costs least.
 */
public final class Server {
  private static final Set<String> OPTIONS = Set.of("--listen", "--threads");

  private Server() {}

  public static void main(String[] args) throws Exception {
    Properties properties;
    try {
      Arguments arguments = new Arguments(args, OPTIONS);
      properties = Orbs.server("echo", arguments.text("--listen", "127.0.0.1:0"));
      String threads = Long.toString(arguments.number("--threads", 1));
      properties.setProperty("jacorb.poa.thread_pool_max", threads);
    } catch (IllegalArgumentException why) {
      System.err.println("echo-server: " + why.getMessage());
      System.exit(1);
      return;
    }
    ORB orb = ORB.init(new String[0], properties);
    POA root = POAHelper.narrow(orb.resolve_initial_references("RootPOA"));
    Policy[] policies = {
      root.create_lifespan_policy(LifespanPolicyValue.PERSISTENT),
      root.create_id_assignment_policy(IdAssignmentPolicyValue.USER_ID)
    };
    POA poa = root.create_POA("echo", root.the_POAManager(), policies);
    activate(orb, poa, "echo", new Echo());
    activate(orb, poa, "state", new EmptyState());
    root.the_POAManager().activate();
    System.out.println("READY");
    orb.run();
  }

  /** Makes the plain name lead to the object, too: corbaloc::HOST:PORT/NAME. */
  private static void activate(ORB orb, POA poa, String name, Servant servant) throws Exception {
    byte[] id = name.getBytes(StandardCharsets.US_ASCII);
    poa.activate_object_with_id(id, servant);
    String reference = orb.object_to_string(poa.id_to_reference(id));
    ((org.jacorb.orb.ORB) orb).addObjectKey(name, reference);
  }

  private static final class Echo extends EchoServicePOA {
    @Override
    public int[] echo(int[] values) {
      return values;
    }
  }

  /** It keeps nothing between calls. */
  private static final class EmptyState extends CheckpointablePOA {
    @Override
    public byte[] get_state() {
      return new byte[0];
    }

    @Override
    public void set_state(byte[] state) throws InvalidState {
      if (state.length != 0) {
        throw new InvalidState();
      }
    }
  }
}
