package names;

import java.util.ArrayList;
import java.util.List;
import ledger.Orbs;
import org.omg.CORBA.ORB;
import org.omg.CosNaming.Binding;
import org.omg.CosNaming.BindingIterator;
import org.omg.CosNaming.BindingIteratorHolder;
import org.omg.CosNaming.BindingListHolder;
import org.omg.CosNaming.BindingType;
import org.omg.CosNaming.NameComponent;
import org.omg.CosNaming.NamingContext;
import org.omg.CosNaming.NamingContextExt;
import org.omg.CosNaming.NamingContextExtHelper;
import org.omg.CosNaming.NamingContextHelper;

/**
 * Lists a naming service: one line for each binding, {@code object NAME} or {@code context NAME}.
 * Each binding is resolved, and each context is gone through once.
 */
public final class Tree {
  /** So many bindings are asked for in one call: few, so that iterators are used. */
  private static final int LISTED = 3;

  private final NamingContextExt root;
  private final List<org.omg.CORBA.Object> seen = new ArrayList<>();

  private Tree(NamingContextExt root) {
    this.root = root;
    seen.add(root);
  }

  /**
   * @param arguments the reference of the root; then {@code --bind NAME}, to bind NAME first to the
   *     root context itself, as an object
   */
  public static void main(String[] arguments) throws Exception {
    ORB orb = ORB.init(new String[0], Orbs.client());
    NamingContextExt root = NamingContextExtHelper.narrow(orb.string_to_object(arguments[0]));
    if (arguments.length == 3 && arguments[1].equals("--bind")) {
      root.rebind(root.to_name(arguments[2]), root);
    }
    new Tree(root).show(root, new NameComponent[0]);
    orb.shutdown(true);
  }

  private static List<Binding> bindings(NamingContext context) {
    BindingListHolder found = new BindingListHolder();
    BindingIteratorHolder holder = new BindingIteratorHolder();
    context.list(LISTED, found, holder);
    List<Binding> all = new ArrayList<>(List.of(found.value));
    BindingIterator iterator = holder.value;
    if (iterator == null) {
      return all;
    }
    boolean hasMore = true;
    while (hasMore) {
      hasMore = iterator.next_n(LISTED, found);
      all.addAll(List.of(found.value));
    }
    iterator.destroy();
    return all;
  }

  private void show(NamingContext context, NameComponent[] path) throws Exception {
    for (Binding binding : bindings(context)) {
      NameComponent[] name = java.util.Arrays.copyOf(path, path.length + 1);
      name[path.length] = binding.binding_name[0];
      org.omg.CORBA.Object found = root.resolve(name);
      String text = root.to_string(name);
      if (found == null) {
        throw new IllegalStateException(text + " is nil");
      }
      if (binding.binding_type.value() == BindingType._nobject) {
        System.out.println("object " + text);
        continue;
      }
      System.out.println("context " + text);
      if (seen.stream().noneMatch(found::_is_equivalent)) {
        seen.add(found);
        show(NamingContextHelper.narrow(found), name);
      }
    }
  }
}
