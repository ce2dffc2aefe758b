// Installs the adapter when the ORB is initialised, so that a program needs no line of it: link
// this file, or name libquorba_ft.so in LD_PRELOAD of a program that is built already.
//
//   QUORBA_FT_DURATION_MS   how long a call may be made again
//   QUORBA_FT_GATEWAYS      host:port,host:port of gateways that corbalocs lead to
//
// What cannot be read is said on the standard error, and left out.
#include <cstdlib>
#include <iostream>
#include <string>

#include <omniORB4/CORBA.h>
#include <initialiser.h>

#include "quorba_ft.h"

namespace quorba_ft {
namespace {

const long DURATION_MS_MAX = 24L * 60 * 60 * 1000;

Options of_environment() {
  Options options;
  if (const char* text = std::getenv("QUORBA_FT_DURATION_MS")) {
    char* end = nullptr;
    const long ms = std::strtol(text, &end, 10);
    if (*text != 0 && *end == 0 && ms >= 0 && ms <= DURATION_MS_MAX) {
      options.duration = std::chrono::milliseconds(ms);
    } else {
      std::cerr << "quorba_ft: QUORBA_FT_DURATION_MS is " << text
                << ", and must be a number from 0 to " << DURATION_MS_MAX << std::endl;
    }
  }
  const char* listed = std::getenv("QUORBA_FT_GATEWAYS");
  std::string rest = listed ? listed : "";
  while (!rest.empty()) {
    const std::size_t comma = rest.find(',');
    options.gateways.push_back(rest.substr(0, comma));
    rest.erase(0, comma == std::string::npos ? comma : comma + 1);
  }
  return options;
}

class Initialiser : public omni::omniInitialiser {
 public:
  Initialiser() { omni::omniInitialiser::install(this); }

  void attach() override {
    Options options = of_environment();
    try {
      quorba_ft::install(options);
    } catch (const CORBA::BAD_PARAM&) {
      std::cerr << "quorba_ft: QUORBA_FT_GATEWAYS has something that is not host:port; it is left "
                   "out" << std::endl;
      options.gateways.clear();
      quorba_ft::install(options);
    }
  }
  void detach() override {}
};

Initialiser initialiser;

}  // namespace
}  // namespace quorba_ft
