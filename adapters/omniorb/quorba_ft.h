// The client's side of FT-CORBA (CORBA 3.0.3 chapter 23.2) for omniORB 4.2: link quorba_ft.cc with
// a client, and call install once. Its stubs and its calls stay as they are.
//
// - Calls to object groups carry FT_REQUEST, a name that stays the same when a call is made again,
//   so that a server that knows it executes the call once; and FT_GROUP_VERSION.
// - What ends with COMM_FAILURE, TRANSIENT, NO_RESPONSE or OBJ_ADAPTER is called again by table
//   23-1, at another address, until it is answered or its time is over.
// - A newer reference that rides on a reply replaces the object's.
//
// What it is not: a promise by itself. Only a server that remembers names executes a repetition
// once; see protect.
#ifndef QUORBA_FT_H
#define QUORBA_FT_H

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include <omniORB4/CORBA.h>

namespace quorba_ft {

struct Options {
  // How long a call may be made again (REQUEST_DURATION_POLICY). It must be shorter than the time
  // for which servers remember a call; Quorba's `reply_retention_ms` is five minutes.
  std::chrono::milliseconds duration{60000};
  // Unique for each process and each start of it. Empty: it is made up.
  std::string client_id;
  // `host:port`, as for `protect`.
  std::vector<std::string> gateways;
};

// Begins to work for all calls of this process: once after each ORB_init, while no call is under
// way. The client id stays what it was the first time, and gateways are added. It takes the place
// of omniORB's global exception handlers; what they do by default stays for objects that are no
// groups. Calls for which the application has installed a handler of its own (per object, or
// globally after this) are named, but are not made again unless that handler says so.
// Raises BAD_PARAM if the client id is longer than 512 octets, or a gateway is not `host:port`.
void install(const Options& options = Options());

// References with TAG_FT_GROUP say by themselves that their object is a group. A corbaloc cannot.
// This says it for every object behind the addresses of `object`: they are gateways of Quorba, or
// servers that remember FT_REQUEST. A server that does not would execute a call twice.
void protect(CORBA::Object_ptr object);

// Calls that this thread makes while one of these lives; the inner one counts.

// May be made again for so long.
class within {
 public:
  explicit within(std::chrono::milliseconds duration);
  ~within();
  within(const within&) = delete;
  within& operator=(const within&) = delete;

 private:
  std::int64_t before_;
};

// Carry no name, and are not made again if they may have been executed.
class unnamed {
 public:
  unnamed();
  ~unnamed();
  unnamed(const unnamed&) = delete;
  unnamed& operator=(const unnamed&) = delete;

 private:
  bool before_;
};

// Carry FTRT::FT_TRANSACTION_DEPTH (Huang and Gill, 3.4): how many replicas shall have a change
// before the caller goes on. A gateway of Quorba that cannot meet it raises
// FTRT::TransactionDepthTooHigh; where an operation does not declare that, stubs raise UNKNOWN.
class depth {
 public:
  explicit depth(CORBA::Long replicas);
  ~depth();
  depth(const depth&) = delete;
  depth& operator=(const depth&) = delete;

 private:
  bool was_set_;
  CORBA::Long before_;
};

// What was done since the process was started.
struct Figures {
  std::uint64_t named;       // calls with FT_REQUEST
  std::uint64_t again;       // times that a call was sent again
  std::uint64_t left;        // connections that were given up because another address may do better
  std::uint64_t references;  // newer references that were taken
};
Figures figures();

}  // namespace quorba_ft

#endif
