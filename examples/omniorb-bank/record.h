// What became of each call: one line of JSON per call in a file, and the figures of the whole run.
//
// Invariant: a line is in the file as soon as the outcome of its call is known.
#ifndef BANK_RECORD_H
#define BANK_RECORD_H

#include <cstdint>
#include <cstdio>
#include <mutex>
#include <string>
#include <vector>

// Microseconds of a clock that only goes forward; its zero means nothing.
std::int64_t now_us();

// Whether a failed call was executed, as far as the ORB knows.
enum class Completed { No, Maybe, Yes };

struct Outcome {
  bool answered = true;   // the server answered, be it with a user exception
  std::string exception;  // repository id, or empty
  Completed completed = Completed::Yes;
  std::uint32_t minor = 0;
};

// Several threads may add at once.
class Record {
 public:
  // Without a path only the figures are kept. Throws std::runtime_error.
  explicit Record(const std::string& path);
  ~Record();
  Record(const Record&) = delete;
  Record& operator=(const Record&) = delete;

  // `reference` and `operation` must need no JSON escapes.
  void add(const std::string& reference, const std::string& operation, std::int64_t start_us,
           std::int64_t end_us, const Outcome& outcome);

  // One JSON object: requests, acknowledged, maybe, refused, longest_gap_ms, p50_us, p99_us.
  std::string figures();

 private:
  std::mutex lock_;
  std::FILE* file_ = nullptr;
  std::uint64_t acknowledged_ = 0;
  std::uint64_t maybe_ = 0;
  std::uint64_t refused_ = 0;
  std::int64_t last_answer_us_;
  std::int64_t longest_gap_us_ = 0;       // between answers, over all threads
  std::vector<std::int64_t> latency_us_;  // of answered calls
};

#endif
