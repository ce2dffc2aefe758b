package ledger;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.Properties;
import java.util.Set;
import org.omg.CORBA.ORB;
import org.omg.CORBA.Policy;
import org.omg.PortableServer.IdAssignmentPolicyValue;
import org.omg.PortableServer.LifespanPolicyValue;
import org.omg.PortableServer.POA;
import org.omg.PortableServer.POAHelper;

/**
 * The bank's server: an ordinary JacORB program, with nothing in it but its own business.
 *
 * <p>Options: {@code --listen HOST:PORT}, {@code --publish HOST:PORT} (the address that its
 * references name, if clients reach it by another one), {@code --name NAME} (what its object keys
 * begin with), {@code --ior FILE} (where it writes the reference of its object), {@code --delay-us
 * N}, {@code --crash-after N}, {@code --crash-at REFERENCE}.
 */
public final class Server {
  private static final Set<String> OPTIONS =
      Set.of(
          "--listen", "--publish", "--name", "--ior", "--delay-us", "--crash-after", "--crash-at");

  private Server() {}

  public static void main(String[] args) throws Exception {
    Arguments arguments;
    Properties properties;
    try {
      arguments = new Arguments(args, OPTIONS);
      properties = properties(arguments);
    } catch (IllegalArgumentException why) {
      System.err.println("bank-server: " + why.getMessage());
      System.exit(1);
      return;
    }
    ORB orb = ORB.init(new String[0], properties);
    POA root = POAHelper.narrow(orb.resolve_initial_references("RootPOA"));
    LedgerServant servant =
        new LedgerServant(
            arguments.number("--delay-us", 0),
            arguments.number("--crash-after", 0),
            arguments.text("--crash-at", ""));
    // Persistent, with a name of its own: so the object's key is the same after a restart, and in
    // every copy of this server. JacORB makes the key from ORB, POA and object: bank/bank/ledger,
    // or NAME/bank/ledger.
    Policy[] policies = {
      root.create_lifespan_policy(LifespanPolicyValue.PERSISTENT),
      root.create_id_assignment_policy(IdAssignmentPolicyValue.USER_ID)
    };
    POA poa = root.create_POA("bank", root.the_POAManager(), policies);
    byte[] id = "ledger".getBytes(StandardCharsets.US_ASCII);
    poa.activate_object_with_id(id, servant);
    // The plain name leads to it too: corbaloc::HOST:PORT/bank.
    String reference = orb.object_to_string(poa.id_to_reference(id));
    ((org.jacorb.orb.ORB) orb).addObjectKey("bank", reference);
    root.the_POAManager().activate();
    String file = arguments.text("--ior", "");
    if (!file.isEmpty()) {
      write(Path.of(file), reference);
    }
    System.out.println("READY");
    orb.run();
  }

  /** Whoever sees the file sees the whole reference. */
  private static void write(Path file, String reference) throws IOException {
    Path part = Path.of(file + ".part");
    Files.writeString(part, reference + "\n");
    Files.move(part, file, StandardCopyOption.ATOMIC_MOVE);
  }

  private static Properties properties(Arguments arguments) {
    String name = arguments.text("--name", "bank");
    Properties properties = Orbs.server(name, arguments.text("--listen", "127.0.0.1:0"));
    // One thread: calls run in the order in which they arrive.
    properties.setProperty("jacorb.poa.thread_pool_max", "1");
    String publish = arguments.text("--publish", "");
    if (!publish.isEmpty()) {
      Orbs.address(properties, publish, "jacorb.ior_proxy_host", "jacorb.ior_proxy_port");
    }
    return properties;
  }
}
