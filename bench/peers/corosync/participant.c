/* Corosync's participant of `cargo xtask bench order`: an ordinary client of libcpg.
 *
 * What it is not: an example of how to use CPG in a product. It speaks the contract of
 * bench/peers/README.md on stdin and stdout, and ends at the first error.
 *
 * Invariants: one thread; it sleeps in poll() whenever there is nothing to send or deliver.
 */
#define _GNU_SOURCE /* ppoll */
#include <corosync/cpg.h>
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#define HEADER_BYTES 16
#define SIZE_MAX_BYTES (1 << 20)
#define SAMPLES_MAX 1000000
#define VIEWS_MAX 64
#define MEMBERS_MAX 64
#define LINE_MAX_BYTES 512
#define END_MARKER UINT64_MAX
#define RETRY_NS 1000000
#define FOREVER UINT64_MAX
#define START_TRIES_MAX 500

enum kind { LATENCY, STREAM, STEADY };

struct experiment {
    uint32_t id;
    enum kind kind;
    size_t size_bytes;
    uint32_t sender; /* 0: all */
    uint64_t amount;
    uint64_t window; /* 0: none */
    uint64_t pause_us;
};

struct view {
    uint64_t at_ns;
    uint32_t members[MEMBERS_MAX];
    size_t count;
};

static cpg_handle_t cpg;
static int cpg_fd;
static uint32_t own_node, node_count;
static char payload[SIZE_MAX_BYTES];

static struct experiment now;
static uint64_t go_ns, end_ns, hash, delivered, gap_begin_ns, gap_end_ns;
static uint64_t sent, own_delivered;
static bool is_sending, end_is_sent;
static uint32_t ends;
static uint64_t samples[SAMPLES_MAX];
static struct view views[VIEWS_MAX];
static size_t view_count;
static size_t member_count;

static uint64_t clock_ns(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static void fail(const char *what, int code) {
    printf("{\"event\":\"failed\",\"reason\":\"%s: %d\"}\n", what, code);
    fflush(stdout);
    exit(1);
}

static void offer(void);

static void on_deliver(cpg_handle_t handle, const struct cpg_name *group, uint32_t node,
                       uint32_t pid, void *message, size_t bytes) {
    (void)handle, (void)group, (void)pid;
    uint64_t at_ns = clock_ns();
    uint32_t id, sender;
    uint64_t number;
    if (bytes < HEADER_BYTES) return;
    memcpy(&id, message, 4);
    memcpy(&sender, (char *)message + 4, 4);
    memcpy(&number, (char *)message + 8, 8);
    if (id != now.id || sender != node) return;
    if (number == END_MARKER) {
        ends++;
        end_ns = at_ns;
        return;
    }
    if (delivered > 0 && at_ns - end_ns > gap_end_ns - gap_begin_ns) {
        gap_begin_ns = end_ns;
        gap_end_ns = at_ns;
    }
    hash = (hash ^ ((uint64_t)sender << 48 | number)) * 0x100000001b3u;
    delivered++;
    end_ns = at_ns;
    if (sender != own_node) return;
    own_delivered++;
    if (now.kind == STREAM && is_sending) offer();
}

static void on_view(cpg_handle_t handle, const struct cpg_name *group,
                    const struct cpg_address *members, size_t members_count,
                    const struct cpg_address *left, size_t left_count,
                    const struct cpg_address *joined, size_t joined_count) {
    (void)handle, (void)group, (void)left, (void)left_count, (void)joined, (void)joined_count;
    member_count = members_count;
    if (view_count == VIEWS_MAX || members_count > MEMBERS_MAX) return;
    struct view *view = &views[view_count++];
    view->at_ns = clock_ns();
    view->count = members_count;
    for (size_t i = 0; i < members_count; i++) view->members[i] = members[i].nodeid;
}

/* Offers one message. False: not now. */
static bool send_one(uint64_t number) {
    memcpy(payload, &now.id, 4);
    memcpy(payload + 4, &own_node, 4);
    memcpy(payload + 8, &number, 8);
    struct iovec part = {.iov_base = payload, .iov_len = now.size_bytes};
    cs_error_t error = cpg_mcast_joined(cpg, CPG_TYPE_AGREED, &part, 1);
    if (error == CS_ERR_TRY_AGAIN) return false;
    if (error != CS_OK) fail("cpg_mcast_joined", error);
    return true;
}

/* Sends what the window lets through, until the daemon refuses. */
static void offer(void) {
    while (now.window == 0 || sent - own_delivered < now.window) {
        if (clock_ns() - go_ns >= now.amount * 1000000u) {
            is_sending = false;
            return;
        }
        if (!send_one(sent)) return;
        sent++;
        /* Without a window, deliveries must have their turn as well. */
        if (now.window == 0 && sent % 64 == 0) return;
    }
}

static void dispatch(void) {
    cs_error_t error = cpg_dispatch(cpg, CS_DISPATCH_ALL);
    if (error != CS_OK && error != CS_ERR_TRY_AGAIN) fail("cpg_dispatch", error);
}

/* Waits for deliveries, for a line on stdin if `with_stdin`, and for the time; dispatches.
 * True if there is something to read on stdin. */
static bool wait_until(uint64_t until_ns, bool with_stdin) {
    struct pollfd fds[2] = {{.fd = cpg_fd, .events = POLLIN}, {.fd = 0, .events = POLLIN}};
    struct timespec time, *timeout = NULL;
    if (until_ns != FOREVER) {
        uint64_t at_ns = clock_ns(), left_ns = until_ns > at_ns ? until_ns - at_ns : 0;
        time = (struct timespec){.tv_sec = (time_t)(left_ns / 1000000000u),
                                 .tv_nsec = (long)(left_ns % 1000000000u)};
        timeout = &time;
    }
    if (ppoll(fds, with_stdin ? 2 : 1, timeout, NULL) < 0 && errno != EINTR) fail("poll", errno);
    if (fds[0].revents) dispatch();
    return with_stdin && fds[1].revents;
}

static void send_end(void) {
    while (!send_one(END_MARKER)) wait_until(clock_ns() + RETRY_NS, false);
    end_is_sent = true;
}

/* Lines are read without stdio, so that poll() knows of every one. */
static bool read_line(char *line) {
    size_t length = 0;
    while (length + 1 < LINE_MAX_BYTES) {
        ssize_t got = read(0, line + length, 1);
        if (got == 0) return false;
        if (got < 0 && errno != EINTR) fail("stdin", errno);
        if (got > 0 && line[length++] == '\n') break;
    }
    line[length] = 0;
    return true;
}

static void run_latency(void) {
    bool sends = now.sender == own_node;
    for (uint64_t i = 0; sends && i < now.amount; i++) {
        if (now.pause_us > 0) usleep((useconds_t)now.pause_us);
        uint64_t began_ns = clock_ns();
        while (!send_one(i)) wait_until(clock_ns() + RETRY_NS, false);
        while (own_delivered <= i) wait_until(FOREVER, false);
        samples[i] = end_ns - began_ns;
    }
    while (delivered < now.amount) wait_until(FOREVER, false);
}

static void run_stream(void) {
    is_sending = now.sender == 0 || now.sender == own_node;
    bool ever = is_sending;
    uint32_t senders = now.sender == 0 ? node_count : 1;
    while (ends < senders) {
        if (is_sending) offer();
        if (ever && !is_sending && !end_is_sent) send_end();
        /* A sender waits for its window, and otherwise only until it may try once more. */
        bool is_full = now.window > 0 && sent - own_delivered >= now.window;
        uint64_t pause_ns = now.window == 0 ? 0 : RETRY_NS;
        bool may_try = is_sending && !is_full;
        wait_until(may_try ? clock_ns() + pause_ns : FOREVER, false);
    }
}

static void run_steady(void) {
    char line[LINE_MAX_BYTES];
    bool sends = now.sender == 0 || now.sender == own_node;
    uint64_t next_ns = go_ns;
    for (;;) {
        if (sends && clock_ns() >= next_ns && send_one(sent)) {
            sent++;
            next_ns += now.pause_us * 1000;
        }
        uint64_t until_ns = next_ns > clock_ns() ? next_ns : clock_ns() + RETRY_NS;
        if (wait_until(sends ? until_ns : FOREVER, true)) {
            if (!read_line(line)) exit(0);
            break; /* stop */
        }
        if (!sends && ends > 0) return;
    }
    if (sends) send_end();
    while (sends && ends == 0) wait_until(FOREVER, false);
}

static void print_done(void) {
    printf("{\"event\":\"done\",\"id\":%u,\"go_ns\":%" PRIu64 ",\"end_ns\":%" PRIu64
           ",\"delivered\":%" PRIu64 ",\"hash\":\"%016" PRIx64 "\"",
           now.id, go_ns, end_ns, delivered, hash);
    if (now.kind == LATENCY && now.sender == own_node) {
        printf(",\"samples_ns\":[");
        for (uint64_t i = 0; i < now.amount; i++)
            printf("%s%" PRIu64, i > 0 ? "," : "", samples[i]);
        printf("]");
    }
    if (now.kind == STEADY) {
        printf(",\"gap_begin_ns\":%" PRIu64 ",\"gap_end_ns\":%" PRIu64 ",\"views\":[",
               gap_begin_ns, gap_end_ns);
        for (size_t i = 0; i < view_count; i++) {
            printf("%s{\"at_ns\":%" PRIu64 ",\"members\":[", i > 0 ? "," : "", views[i].at_ns);
            for (size_t j = 0; j < views[i].count; j++)
                printf("%s%u", j > 0 ? "," : "", views[i].members[j]);
            printf("]}");
        }
        printf("]");
    }
    printf("}\n");
    fflush(stdout);
}

static uint64_t number_of(const char *line, const char *key) {
    const char *at = strstr(line, key);
    if (at == NULL) fail(key, 0);
    return strtoull(at + strlen(key), NULL, 10);
}

static void prepare(const char *line) {
    now = (struct experiment){
        .id = (uint32_t)number_of(line, " id="),
        .size_bytes = number_of(line, " size="),
        .sender = (uint32_t)number_of(line, " sender="),
        .amount = number_of(line, " amount="),
        .window = number_of(line, " window="),
        .pause_us = number_of(line, " pause_us="),
    };
    if (strstr(line, " kind=latency")) now.kind = LATENCY;
    else if (strstr(line, " kind=stream")) now.kind = STREAM;
    else if (strstr(line, " kind=steady")) now.kind = STEADY;
    else fail("kind", 0);
    if (now.size_bytes < HEADER_BYTES || now.size_bytes > SIZE_MAX_BYTES) fail("size", 0);
    if (now.kind == LATENCY && now.amount > SAMPLES_MAX) fail("amount", 0);
    hash = 0xcbf29ce484222325u;
    delivered = sent = own_delivered = 0;
    end_ns = gap_begin_ns = gap_end_ns = 0;
    is_sending = end_is_sent = false;
    ends = 0;
    view_count = 0;
    if (strstr(line, "guarantee=safe")) {
        printf("{\"event\":\"unsupported\",\"id\":%u,\"reason\":\"CPG has no safe delivery\"}\n",
               now.id);
    } else {
        printf("{\"event\":\"prepared\",\"id\":%u}\n", now.id);
    }
    fflush(stdout);
}

static void join(void) {
    cpg_callbacks_t callbacks = {.cpg_deliver_fn = on_deliver, .cpg_confchg_fn = on_view};
    struct cpg_name group = {.length = 5, .value = "bench"};
    cs_error_t error;
    /* The daemon may be about to start. */
    for (int tries = 0; (error = cpg_initialize(&cpg, &callbacks)) != CS_OK; tries++) {
        if (tries == START_TRIES_MAX) fail("cpg_initialize", error);
        usleep(20000);
    }
    if ((error = cpg_fd_get(cpg, &cpg_fd)) != CS_OK) fail("cpg_fd_get", error);
    while ((error = cpg_join(cpg, &group)) == CS_ERR_TRY_AGAIN) usleep(10000);
    if (error != CS_OK) fail("cpg_join", error);
    while (member_count < node_count) wait_until(FOREVER, false);
    printf("{\"event\":\"ready\",\"members\":%zu}\n", member_count);
    fflush(stdout);
}

int main(int argc, char **argv) {
    for (int i = 1; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "--node") == 0) own_node = (uint32_t)atoi(argv[i + 1]);
        if (strcmp(argv[i], "--nodes") == 0) node_count = (uint32_t)atoi(argv[i + 1]);
    }
    if (own_node == 0 || node_count == 0) {
        fprintf(stderr, "usage: corosync-participant --node I --nodes N [--dir DIR]\n");
        return 3;
    }
    join();
    char line[LINE_MAX_BYTES];
    for (;;) {
        if (!wait_until(FOREVER, true)) continue;
        if (!read_line(line) || strncmp(line, "quit", 4) == 0) return 0;
        if (strncmp(line, "prepare", 7) == 0) prepare(line);
        if (strncmp(line, "go", 2) != 0) continue;
        go_ns = clock_ns();
        if (now.kind == LATENCY) run_latency();
        else if (now.kind == STREAM) run_stream();
        else run_steady();
        print_done();
    }
}
