package ledger;

import java.util.Properties;

/** What JacORB is told at the start, by all programs here. */
public final class Orbs {
  private Orbs() {}

  /** A client's. */
  public static Properties client() {
    Properties properties = new Properties();
    properties.setProperty("org.omg.CORBA.ORBClass", "org.jacorb.orb.ORB");
    properties.setProperty("org.omg.CORBA.ORBSingletonClass", "org.jacorb.orb.ORBSingleton");
    // No call waits for ever, and a dead address is left soon: milliseconds, tries.
    properties.setProperty("jacorb.connection.client.pending_reply_timeout", "60000");
    properties.setProperty("jacorb.connection.client.connect_timeout", "2000");
    properties.setProperty("jacorb.retries", "1");
    properties.setProperty("jacorb.retry_interval", "50");
    return properties;
  }

  /**
   * A server's, whose references name its own address.
   *
   * @param name what its object keys begin with
   * @param listen HOST:PORT
   */
  public static Properties server(String name, String listen) {
    Properties properties = new Properties();
    properties.setProperty("org.omg.CORBA.ORBClass", "org.jacorb.orb.ORB");
    properties.setProperty("org.omg.CORBA.ORBSingletonClass", "org.jacorb.orb.ORBSingleton");
    properties.setProperty("jacorb.poa.thread_pool_min", "1");
    properties.setProperty("jacorb.implname", name);
    address(properties, listen, "OAIAddr", "OAPort");
    return properties;
  }

  static void address(Properties properties, String address, String host, String port) {
    int colon = address.lastIndexOf(':');
    if (colon < 1) {
      throw new IllegalArgumentException("HOST:PORT expected, not " + address);
    }
    properties.setProperty(host, address.substring(0, colon));
    properties.setProperty(port, address.substring(colon + 1));
  }
}
