package ledger;

import java.util.HashMap;
import java.util.Map;
import java.util.Set;

/** A command line of {@code --name value} pairs. */
public final class Arguments {
  private final Map<String, String> values = new HashMap<>();

  /**
   * @throws IllegalArgumentException if a name is unknown or its value is missing
   */
  public Arguments(String[] args, Set<String> names) {
    for (int at = 0; at < args.length; at += 2) {
      if (!names.contains(args[at])) {
        throw new IllegalArgumentException("unknown option " + args[at]);
      }
      if (at + 1 >= args.length) {
        throw new IllegalArgumentException(args[at] + " needs a value");
      }
      values.put(args[at], args[at + 1]);
    }
  }

  public String text(String name, String fallback) {
    return values.getOrDefault(name, fallback);
  }

  public long number(String name, long fallback) {
    String value = values.get(name);
    return value == null ? fallback : Long.parseLong(value);
  }

  double fraction(String name, double fallback) {
    String value = values.get(name);
    return value == null ? fallback : Double.parseDouble(value);
  }
}
