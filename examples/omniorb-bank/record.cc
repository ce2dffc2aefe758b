#include "record.h"

#include <algorithm>
#include <cinttypes>
#include <stdexcept>
#include <time.h>

namespace {

const char* name(Completed completed) {
  switch (completed) {
    case Completed::No: return "NO";
    case Completed::Maybe: return "MAYBE";
    default: return "YES";
  }
}

// The value below which the given share of the sorted values lies.
std::int64_t percentile(const std::vector<std::int64_t>& sorted, unsigned percent) {
  if (sorted.empty()) return 0;
  return sorted[(sorted.size() - 1) * percent / 100];
}

}  // namespace

std::int64_t now_us() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::int64_t>(now.tv_sec) * 1000000 + now.tv_nsec / 1000;
}

Record::Record(const std::string& path) : last_answer_us_(now_us()) {
  if (path.empty()) return;
  file_ = std::fopen(path.c_str(), "w");
  if (file_ == nullptr) throw std::runtime_error("cannot write the record to " + path);
}

Record::~Record() {
  if (file_ != nullptr) std::fclose(file_);
}

void Record::add(const std::string& reference, const std::string& operation,
                 std::int64_t start_us, std::int64_t end_us, const Outcome& outcome) {
  std::lock_guard<std::mutex> guard(lock_);
  if (outcome.answered) {
    ++acknowledged_;
    latency_us_.push_back(end_us - start_us);
    longest_gap_us_ = std::max(longest_gap_us_, end_us - last_answer_us_);
    last_answer_us_ = std::max(last_answer_us_, end_us);
  } else if (outcome.completed == Completed::No) {
    ++refused_;
  } else {
    ++maybe_;
  }
  if (file_ == nullptr) return;
  std::fprintf(file_,
               "{\"reference\":\"%s\",\"operation\":\"%s\",\"start_us\":%" PRId64
               ",\"end_us\":%" PRId64 ",\"outcome\":\"%s\"",
               reference.c_str(), operation.c_str(), start_us, end_us,
               outcome.answered ? "ok" : "exception");
  if (!outcome.exception.empty())
    std::fprintf(file_, ",\"exception\":\"%s\"", outcome.exception.c_str());
  if (!outcome.answered)
    std::fprintf(file_, ",\"completed\":\"%s\",\"minor\":%" PRIu32, name(outcome.completed),
                 outcome.minor);
  std::fputs("}\n", file_);
  std::fflush(file_);
}

std::string Record::figures() {
  std::lock_guard<std::mutex> guard(lock_);
  longest_gap_us_ = std::max(longest_gap_us_, now_us() - last_answer_us_);
  std::sort(latency_us_.begin(), latency_us_.end());
  char text[400];
  std::snprintf(text, sizeof text,
                "{\"requests\":%" PRIu64 ",\"acknowledged\":%" PRIu64 ",\"maybe\":%" PRIu64
                ",\"refused\":%" PRIu64 ",\"longest_gap_ms\":%.1f,\"p50_us\":%" PRId64
                ",\"p99_us\":%" PRId64 "}",
                acknowledged_ + maybe_ + refused_, acknowledged_, maybe_, refused_,
                static_cast<double>(longest_gap_us_) / 1000.0, percentile(latency_us_, 50),
                percentile(latency_us_, 99));
  return text;
}
