import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Semaphore;
import java.util.concurrent.locks.LockSupport;
import java.util.stream.Collectors;
import org.jgroups.Address;
import org.jgroups.BytesMessage;
import org.jgroups.JChannel;
import org.jgroups.Message;
import org.jgroups.Receiver;
import org.jgroups.View;
import org.jgroups.protocols.SEQUENCER;
import org.jgroups.protocols.UFC;
import org.jgroups.stack.ProtocolStack;
import org.jgroups.util.NameCache;

/**
 * JGroups' participant of `cargo xtask bench order`: the stack that JGroups ships for UDP or TCP,
 * with SEQUENCER where its own sequencer.xml has it.
 *
 * <p>What it is not: an example of how to use JGroups in a product. It speaks the contract of
 * bench/peers/README.md on stdin and stdout.
 *
 * <p>Invariant: what deliveries change is changed under the lock of this object; JGroups delivers
 * one message after the other, but not always by the same thread.
 */
public final class Participant implements Receiver {
    private static final int HEADER_BYTES = 16;
    private static final long END_MARKER = -1;
    private static final long HASH_START = 0xcbf29ce484222325L;
    private static final long HASH_PRIME = 0x100000001b3L;
    private static final VarHandle INT =
        MethodHandles.byteArrayViewVarHandle(int[].class, ByteOrder.LITTLE_ENDIAN);
    private static final VarHandle LONG =
        MethodHandles.byteArrayViewVarHandle(long[].class, ByteOrder.LITTLE_ENDIAN);

    private enum Kind { LATENCY, STREAM, STEADY }

    private record ViewAt(long atNs, List<String> members) {}

    private final int node;
    private final int nodes;
    private final JChannel channel;
    private final CountDownLatch joined = new CountDownLatch(1);

    // The experiment.
    private int id;
    private Kind kind;
    private int size;
    private int sender;
    private long amount;
    private long window;
    private long pauseUs;

    // What has become of it.
    private long goNs;
    private long endNs;
    private long hash;
    private long delivered;
    private int ends;
    private long gapBeginNs;
    private long gapEndNs;
    private long[] samples;
    private List<ViewAt> views = new ArrayList<>();
    private Semaphore permits = new Semaphore(0);
    private volatile boolean isStopped;

    private Participant(int node, int nodes, String stack) throws Exception {
        this.node = node;
        this.nodes = nodes;
        channel = new JChannel(stack + ".xml").name(Integer.toString(node)).setReceiver(this);
        var protocols = channel.getProtocolStack();
        protocols.insertProtocol(new SEQUENCER(), ProtocolStack.Position.ABOVE, UFC.class);
    }

    public static void main(String[] arguments) throws Exception {
        Map<String, String> options = new HashMap<>();
        for (int i = 0; i + 1 < arguments.length; i += 2) {
            options.put(arguments[i], arguments[i + 1]);
        }
        int node = Integer.parseInt(options.get("--node"));
        int nodes = Integer.parseInt(options.get("--nodes"));
        try {
            new Participant(node, nodes, options.get("--stack")).run();
            System.exit(0);
        } catch (Exception error) {
            error.printStackTrace();
            String reason = error.toString().replace('"', '\'').replace('\n', ' ');
            say("{\"event\":\"failed\",\"reason\":\"" + reason + "\"}");
            System.exit(1);
        }
    }

    private static void say(String line) {
        System.out.println(line);
        System.out.flush();
    }

    private void run() throws Exception {
        channel.connect("bench");
        say("{\"event\":\"joined\"}");
        joined.await();
        say("{\"event\":\"ready\",\"members\":" + nodes + "}");
        var input = new BufferedReader(new InputStreamReader(System.in));
        for (;;) {
            String line = input.readLine();
            if (line == null || line.equals("quit")) {
                return;
            } else if (line.startsWith("prepare ")) {
                prepare(line);
            } else if (line.equals("go")) {
                var worker = new Thread(this::measure, "experiment");
                worker.start();
                if (kind == Kind.STEADY) {
                    // The line is `stop`, or the end of the orchestrator.
                    input.readLine();
                    stop();
                }
                worker.join();
            }
        }
    }

    private synchronized void prepare(String line) {
        Map<String, String> values = Arrays.stream(line.split(" ")).skip(1)
            .map(word -> word.split("=", 2))
            .collect(Collectors.toMap(pair -> pair[0], pair -> pair[1]));
        id = Integer.parseInt(values.get("id"));
        kind = Kind.valueOf(values.get("kind").toUpperCase());
        size = Integer.parseInt(values.get("size"));
        sender = Integer.parseInt(values.get("sender"));
        amount = Long.parseLong(values.get("amount"));
        window = Long.parseLong(values.get("window"));
        pauseUs = Long.parseLong(values.get("pause_us"));
        hash = HASH_START;
        delivered = endNs = gapBeginNs = gapEndNs = ends = 0;
        views = new ArrayList<>();
        permits = new Semaphore(kind == Kind.STREAM ? (int) window : 0);
        isStopped = false;
        if (values.get("guarantee").equals("safe")) {
            String reason = "SEQUENCER has no safe delivery";
            say("{\"event\":\"unsupported\",\"id\":" + id + ",\"reason\":\"" + reason + "\"}");
        } else {
            say("{\"event\":\"prepared\",\"id\":" + id + "}");
        }
    }

    @Override
    public void receive(Message message) {
        long atNs = System.nanoTime();
        byte[] bytes = message.getArray();
        int at = message.getOffset();
        if (message.getLength() < HEADER_BYTES) {
            return;
        }
        synchronized (this) {
            if ((int) INT.get(bytes, at) != id) {
                return;
            }
            int from = (int) INT.get(bytes, at + 4);
            long number = (long) LONG.get(bytes, at + 8);
            if (number == END_MARKER) {
                ends++;
                endNs = atNs;
                notifyAll();
                return;
            }
            if (delivered > 0 && atNs - endNs > gapEndNs - gapBeginNs) {
                gapBeginNs = endNs;
                gapEndNs = atNs;
            }
            hash = (hash ^ ((long) from << 48 | number)) * HASH_PRIME;
            delivered++;
            endNs = atNs;
            if (kind == Kind.LATENCY && delivered == amount) {
                notifyAll();
            }
            if (from == node) {
                permits.release();
            }
        }
    }

    @Override
    public synchronized void viewAccepted(View view) {
        List<String> members = new ArrayList<>();
        for (Address member : view.getMembers()) {
            members.add(NameCache.get(member));
        }
        views.add(new ViewAt(System.nanoTime(), members));
        if (members.size() == nodes) {
            joined.countDown();
        }
    }

    private synchronized void stop() {
        isStopped = true;
        notifyAll();
    }

    private void send(long number) throws Exception {
        byte[] bytes = new byte[size];
        INT.set(bytes, 0, id);
        INT.set(bytes, 4, node);
        LONG.set(bytes, 8, number);
        channel.send(new BytesMessage(null, bytes));
    }

    private void measure() {
        try {
            goNs = System.nanoTime();
            boolean sends = sender == 0 || sender == node;
            switch (kind) {
                case LATENCY -> latency(sends);
                case STREAM -> stream(sends);
                case STEADY -> steady(sends);
            }
            done(sends);
        } catch (Exception error) {
            error.printStackTrace();
            say("{\"event\":\"failed\",\"reason\":\"" + error.getClass().getName() + "\"}");
            System.exit(1);
        }
    }

    private void latency(boolean sends) throws Exception {
        if (sends) {
            samples = new long[(int) amount];
            for (int i = 0; i < samples.length; i++) {
                if (pauseUs > 0) {
                    LockSupport.parkNanos(pauseUs * 1000);
                }
                long beganNs = System.nanoTime();
                send(i);
                permits.acquire();
                // Only this thread sends: the last delivery is that of this message.
                samples[i] = endNs() - beganNs;
            }
        }
        synchronized (this) {
            while (delivered < amount) {
                wait();
            }
        }
    }

    private synchronized long endNs() {
        return endNs;
    }

    private void stream(boolean sends) throws Exception {
        if (sends) {
            long untilNs = goNs + amount * 1_000_000;
            for (long number = 0; System.nanoTime() < untilNs; number++) {
                if (window > 0) {
                    permits.acquire();
                }
                send(number);
            }
            send(END_MARKER);
        }
        waitForEnds(sender == 0 ? nodes : 1);
    }

    private void steady(boolean sends) throws Exception {
        if (!sends) {
            waitForEnds(1);
            return;
        }
        long nextNs = goNs;
        for (long number = 0; !isStopped; number++) {
            LockSupport.parkNanos(nextNs - System.nanoTime());
            send(number);
            nextNs += pauseUs * 1000;
        }
        send(END_MARKER);
        isStopped = false;
        waitForEnds(1);
    }

    private synchronized void waitForEnds(int count) throws InterruptedException {
        while (ends < count && !isStopped) {
            wait();
        }
    }

    private synchronized void done(boolean sends) {
        var text = new StringBuilder("{\"event\":\"done\",\"id\":" + id + ",\"go_ns\":" + goNs);
        text.append(",\"end_ns\":").append(endNs).append(",\"delivered\":").append(delivered);
        text.append(String.format(",\"hash\":\"%016x\"", hash));
        if (kind == Kind.LATENCY && sends) {
            text.append(",\"samples_ns\":").append(Arrays.toString(samples));
        }
        if (kind == Kind.STEADY) {
            text.append(",\"gap_begin_ns\":").append(gapBeginNs);
            text.append(",\"gap_end_ns\":").append(gapEndNs).append(",\"views\":[");
            text.append(views.stream().map(view -> "{\"at_ns\":" + view.atNs + ",\"members\":["
                + String.join(",", view.members) + "]}").collect(Collectors.joining(",")));
            text.append("]");
        }
        say(text.append("}").toString());
    }
}
