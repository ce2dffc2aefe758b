package services;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.Properties;
import ledger.Orbs;
import org.omg.CORBA.Any;
import org.omg.CORBA.AnyHolder;
import org.omg.CORBA.CompletionStatus;
import org.omg.CORBA.ORB;
import org.omg.CORBA.SystemException;
import org.omg.CORBA.UserException;
import org.omg.CosNaming.NameComponent;
import org.omg.CosNaming.NamingContextExt;
import org.omg.CosNaming.NamingContextExtHelper;
import org.omg.FT.PropertiesHelper;
import org.omg.FT.Property;
import org.omg.FT.ReplicationManager;
import org.omg.FT.ReplicationManagerHelper;

/**
 * A client of the naming service and of the replication manager that does what it is told, one
 * operation for each line that it reads, and prints one line for each: what came of it. The lines
 * are those of examples/omniorb-manager/client.cc. It repeats nothing; who tells it what to do
 * decides that.
 */
public final class Client {
  private static final String[] PROPERTIES = {
    "org.omg.ft.ReplicationStyle",
    "org.omg.ft.MembershipStyle",
    "org.omg.ft.InitialNumberReplicas",
    "org.omg.ft.MinimumNumberReplicas",
  };

  private final ORB orb;
  private final NamingContextExt naming;
  private final ReplicationManager manager;

  private Client(ORB orb, String naming, String manager) {
    this.orb = orb;
    // Unchecked: asking for its type would fail if it is just being restarted.
    this.naming = NamingContextExtHelper.unchecked_narrow(object(naming));
    this.manager = ReplicationManagerHelper.unchecked_narrow(object(manager));
  }

  /**
   * @param arguments the references of the two services
   */
  public static void main(String[] arguments) throws Exception {
    Properties properties = Orbs.client();
    ORB orb = ORB.init(new String[0], properties);
    Client client = new Client(orb, arguments[0], arguments[1]);
    InputStreamReader reader = new InputStreamReader(System.in, StandardCharsets.UTF_8);
    BufferedReader lines = new BufferedReader(reader);
    for (String line = lines.readLine(); line != null; line = lines.readLine()) {
      System.out.println(client.answer(line.split("\t")));
    }
    orb.shutdown(true);
  }

  private String answer(String[] words) {
    try {
      String found = perform(words);
      return found.isEmpty() ? "ok" : "ok\t" + found;
    } catch (SystemException raised) {
      String id = "IDL:omg.org/CORBA/" + raised.getClass().getSimpleName() + ":1.0";
      return "system\t" + id + "\t" + word(raised.completed) + "\t" + raised.minor;
    } catch (UserException raised) {
      // "IDL:omg.org/FT/NoFactory:1.0", or that and what is told of it.
      return "user\t" + raised.getMessage().split("\\s")[0];
    }
  }

  private static String word(CompletionStatus completed) {
    return switch (completed.value()) {
      case CompletionStatus._COMPLETED_YES -> "yes";
      case CompletionStatus._COMPLETED_NO -> "no";
      default -> "maybe";
    };
  }

  private String perform(String[] words) throws UserException {
    switch (words[0]) {
      case "bind":
        naming.bind(name(words[1]), object(words[2]));
        return "";
      case "rebind":
        naming.rebind(name(words[1]), object(words[2]));
        return "";
      case "unbind":
        naming.unbind(name(words[1]));
        return "";
      case "mkctx":
        return text(naming.bind_new_context(name(words[1])));
      case "resolve":
        return text(naming.resolve(name(words[1])));
      case "create":
        return create(words);
      case "create_member":
        return text(
            manager.create_member(
                object(words[1]), name(words[2]), words[3], new Property[0]));
      case "add_member":
        return text(manager.add_member(object(words[1]), name(words[2]), object(words[3])));
      case "remove_member":
        return text(manager.remove_member(object(words[1]), name(words[2])));
      case "locations":
        return locations(object(words[1]));
      case "delete":
        manager.delete_object(number(words[1]));
        return "";
      default:
        throw new IllegalArgumentException("no such operation: " + words[0]);
    }
  }

  private String create(String[] words) throws UserException {
    Property[] own = new Property[PROPERTIES.length];
    for (int index = 0; index < own.length; ++index) {
      Any value = orb.create_any();
      value.insert_ushort(Short.parseShort(words[2 + index]));
      own[index] = new Property(name(PROPERTIES[index]), value);
    }
    Any properties = orb.create_any();
    PropertiesHelper.insert(properties, own);
    Property[] criteria = {new Property(name("org.omg.ft.FTProperties"), properties)};
    AnyHolder id = new AnyHolder();
    String group = text(manager.create_object(words[1], criteria, id));
    return group + "\t" + Long.toUnsignedString(id.value.extract_ulonglong());
  }

  private String locations(org.omg.CORBA.Object group) throws UserException {
    StringBuilder text = new StringBuilder();
    for (NameComponent[] location : manager.locations_of_members(group)) {
      text.append(text.length() == 0 ? "" : " ").append(location[0].id);
    }
    return text.toString();
  }

  private Any number(String text) {
    Any any = orb.create_any();
    any.insert_ulonglong(Long.parseUnsignedLong(text));
    return any;
  }

  private static NameComponent[] name(String path) {
    String[] parts = path.split("/");
    NameComponent[] name = new NameComponent[parts.length];
    for (int index = 0; index < parts.length; ++index) {
      name[index] = new NameComponent(parts[index], "");
    }
    return name;
  }

  private org.omg.CORBA.Object object(String text) {
    return orb.string_to_object(text);
  }

  private String text(org.omg.CORBA.Object object) {
    return orb.object_to_string(object);
  }
}
