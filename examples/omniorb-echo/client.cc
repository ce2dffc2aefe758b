// Measures how long a call takes, and how many there are a second: threads that each make one
// call at a time.
//
// usage: echo_client --ref IOR-or-corbaloc [--calls N] [--warm-up N] [--longs N] [--clients N]
//   [--think-us N] [--think-spread-us N] [--samples FILE] [ORB options]
//
// --clients is the number of threads; each has a connection of its own, and --calls and --warm-up
// are those of all together.
// --think-us sleeps before each call, --think-spread-us up to so much longer, at random.
// --samples writes the time of every measured call, in nanoseconds, one per line; in order if
// there is one client, client by client otherwise.
#include <algorithm>
#include <atomic>
#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <iostream>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <time.h>
#include <vector>

#include "echo.hh"

namespace {

struct Options {
  std::string ref;
  std::string samples;
  std::uint64_t calls = 20000;
  std::uint64_t warm_up = 2000;  // calls before the first that counts
  CORBA::ULong longs = 256;      // 1 KiB
  std::uint64_t clients = 1;     // threads
  std::int64_t think_us = 0;     // sleep before each call; not part of its time
  std::int64_t think_spread_us = 0;  // at most so much longer, at random
};

std::int64_t now_ns() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::int64_t>(now.tv_sec) * 1000000000 + now.tv_nsec;
}

std::int64_t own_cpu_ns() {
  timespec used;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
  return static_cast<std::int64_t>(used.tv_sec) * 1000000000 + used.tv_nsec;
}

// The same pauses in every run, so that two runs differ in nothing else.
void think(const Options& options) {
  static thread_local std::minstd_rand random;
  std::int64_t think_us = options.think_us;
  if (options.think_spread_us > 0)
    think_us += std::uniform_int_distribution<std::int64_t>(0, options.think_spread_us)(random);
  if (think_us <= 0) return;
  timespec pause = {static_cast<time_t>(think_us / 1000000),
                    static_cast<long>(think_us % 1000000 * 1000)};
  nanosleep(&pause, nullptr);
}

Options parse(int argc, char** argv) {
  Options options;
  for (int at = 1; at < argc; at += 2) {
    std::string name = argv[at];
    if (at + 1 >= argc) throw std::invalid_argument(name + " needs a value");
    std::string value = argv[at + 1];
    if (name == "--ref") options.ref = value;
    else if (name == "--samples") options.samples = value;
    else if (name == "--calls") options.calls = std::stoull(value);
    else if (name == "--warm-up") options.warm_up = std::stoull(value);
    else if (name == "--longs") options.longs = std::stoul(value);
    else if (name == "--clients") options.clients = std::stoull(value);
    else if (name == "--think-us") options.think_us = std::stoll(value);
    else if (name == "--think-spread-us") options.think_spread_us = std::stoll(value);
    else throw std::invalid_argument("unknown option " + name);
  }
  if (options.ref.empty()) throw std::invalid_argument("--ref is missing");
  if (options.calls == 0) throw std::invalid_argument("--calls must be at least 1");
  if (options.clients == 0 || options.clients > 256)
    throw std::invalid_argument("--clients must be 1 to 256");
  return options;
}

// The answer is compared: a fast wrong answer is worth nothing.
std::int64_t timed_call(EchoService_ptr echo, const EchoService::Longs& values) {
  std::int64_t start_ns = now_ns();
  EchoService::Longs_var answer = echo->echo(values);
  std::int64_t took_ns = now_ns() - start_ns;
  CORBA::ULong count = values.length();
  if (answer->length() != count ||
      !std::equal(values.get_buffer(), values.get_buffer() + count, answer->get_buffer()))
    throw std::runtime_error("the answer is not what was sent");
  return took_ns;
}

void write_samples(const std::string& path, const std::vector<std::int64_t>& samples_ns) {
  if (path.empty()) return;
  std::FILE* file = std::fopen(path.c_str(), "w");
  if (file == nullptr) throw std::runtime_error("cannot write the samples to " + path);
  for (std::int64_t sample_ns : samples_ns) std::fprintf(file, "%" PRId64 "\n", sample_ns);
  if (std::fclose(file) != 0) throw std::runtime_error("cannot write the samples to " + path);
}

void print_figures(std::vector<std::int64_t> samples_ns, std::int64_t elapsed_ns,
                   std::int64_t cpu_ns) {
  std::sort(samples_ns.begin(), samples_ns.end());
  std::size_t count = samples_ns.size();
  auto us = [&](double share) {
    return static_cast<double>(samples_ns[static_cast<std::size_t>((count - 1) * share)]) / 1e3;
  };
  std::printf("{\"calls\":%zu,\"p50_us\":%.1f,\"p90_us\":%.1f,\"p99_us\":%.1f,\"p999_us\":%.1f,"
              "\"min_us\":%.1f,\"max_us\":%.1f,\"calls_per_s\":%.0f,\"client_cpu_us\":%.2f}\n",
              count, us(0.5), us(0.9), us(0.99), us(0.999), us(0), us(1),
              static_cast<double>(count) * 1e9 / static_cast<double>(elapsed_ns),
              static_cast<double>(cpu_ns) / 1e3 / static_cast<double>(count));
}

// Makes `calls` calls with all clients together; what each call took, client by client.
std::vector<std::int64_t> make_calls(EchoService_ptr echo, const Options& options,
                                     const EchoService::Longs& values, std::uint64_t calls) {
  std::atomic<std::uint64_t> begun{0};
  std::atomic<bool> failed{false};
  std::string failure;
  std::vector<std::vector<std::int64_t>> samples_ns(options.clients);
  auto client = [&](std::size_t which) {
    try {
      samples_ns[which].reserve(calls / options.clients * 2 + 1);
      while (!failed && begun.fetch_add(1, std::memory_order_relaxed) < calls) {
        think(options);
        samples_ns[which].push_back(timed_call(echo, values));
      }
    } catch (const CORBA::SystemException& e) {
      if (!failed.exchange(true)) failure = e._rep_id();
    } catch (const std::exception& e) {
      if (!failed.exchange(true)) failure = e.what();
    }
  };
  std::vector<std::thread> others;
  for (std::size_t which = 1; which < options.clients; ++which) others.emplace_back(client, which);
  client(0);
  for (std::thread& other : others) other.join();
  if (failed) throw std::runtime_error(failure);
  for (std::size_t which = 1; which < options.clients; ++which)
    samples_ns[0].insert(samples_ns[0].end(), samples_ns[which].begin(), samples_ns[which].end());
  return std::move(samples_ns[0]);
}

int run(int argc, char** argv) {
  // A client's call never waits for another client's connection.
  const char* defaults[][2] = {{"maxGIOPConnectionPerServer", "256"}, {nullptr, nullptr}};
  CORBA::ORB_var orb = CORBA::ORB_init(argc, argv, "omniORB4", defaults);
  Options options = parse(argc, argv);
  CORBA::Object_var object = orb->string_to_object(options.ref.c_str());
  EchoService_var echo = EchoService::_unchecked_narrow(object);
  if (CORBA::is_nil(echo)) throw std::invalid_argument("--ref is a nil reference");

  EchoService::Longs values;
  values.length(options.longs);
  for (CORBA::ULong at = 0; at < options.longs; ++at) values[at] = static_cast<CORBA::Long>(at);
  make_calls(echo, options, values, options.warm_up);
  std::int64_t start_ns = now_ns();
  std::int64_t start_cpu_ns = own_cpu_ns();
  std::vector<std::int64_t> samples_ns = make_calls(echo, options, values, options.calls);
  std::int64_t cpu_ns = own_cpu_ns() - start_cpu_ns;
  std::int64_t elapsed_ns = now_ns() - start_ns;
  write_samples(options.samples, samples_ns);
  print_figures(std::move(samples_ns), elapsed_ns, cpu_ns);
  orb->destroy();
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const CORBA::SystemException& e) {
    std::cerr << "echo_client: " << e._rep_id() << " minor " << std::hex << e.minor() << std::endl;
  } catch (const std::exception& e) {
    std::cerr << "echo_client: " << e.what() << std::endl;
  }
  return 1;
}
