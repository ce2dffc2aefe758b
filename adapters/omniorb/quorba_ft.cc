// How omniORB is told. It calls two interceptors with each request and reply, and handlers with
// each exception; between them runs, in one thread, everything that one call needs. So what is
// known of a call is kept per thread, and found by its call descriptor, which lives as long as it.
//
// Invariants:
// - a retention id is of one call, however often that is sent; but for one that was answered with
//   COMPLETED_NO and is made anew: servers remember that answer under the old id;
// - when an attempt may have been executed no later one ends with COMPLETED_NO;
// - calls of objects that are no groups are left as they are.
#include "quorba_ft.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>
#include <mutex>
#include <random>
#include <set>
#include <thread>

// Interceptors are told of these; their headers name each other without a folder.
#include <giopStream.h>
#include <giopStrand.h>
#include <giopRope.h>
#include <GIOP_C.h>
#include <omniORB4/callDescriptor.h>
#include <omniORB4/minorCode.h>
#include <omniORB4/omniInterceptors.h>

#include "quorba_ft_rules.h"

namespace quorba_ft {
namespace {

using rules::Column;
using rules::Completed;
using rules::Group;
using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

// TimeT of the POSIX epoch: 100 ns since 1582-10-15 (TimeBase).
const std::uint64_t TIME_T_OF_UNIX_EPOCH = 0x01B21DD213814000;
const std::size_t CLIENT_ID_BYTES_MAX = 512;
// Pauses between attempts grow from the one to the other.
const milliseconds PAUSE_MIN{10};
const milliseconds PAUSE_MAX{200};
// A silent address is left after this part of the time that is left, but not before ATTEMPT_MIN,
// and only if ATTEMPT_MARGIN is left then.
const int ATTEMPT_SHARES = 4;
const milliseconds ATTEMPT_MIN{1000};
const milliseconds ATTEMPT_MARGIN{200};
// Connections that one attempt gives up at most.
const unsigned LEAVES_MAX = 64;
// Calls under way in one thread: they are nested, by custom marshalling or the check of a type.
const std::size_t CALLS_MAX = 16;

// ---- What all threads share

struct Shared {
  std::mutex mutex;
  milliseconds duration{60000};
  std::string client_id;
  std::set<std::string> gateways;
};

Shared& shared() {
  static Shared it;
  return it;
}

std::atomic<std::uint32_t> last_retention{0};
std::atomic<std::uint64_t> named_count{0}, again_count{0}, left_count{0}, reference_count{0};

bool is_protected(const std::string& address) {
  std::lock_guard<std::mutex> lock(shared().mutex);
  return shared().gateways.count(address) != 0;
}

// ---- What one thread knows

enum class State {
  Begun,     // nothing was sent
  Sent,      // no reply was seen
  Answered,  // by a reply with a system exception
  Done,      // by a reply with results or a user exception
  Again,     // it is to be sent again
};

struct Call {
  const void* descriptor;  // none as long as nothing was sent
  const omniObjRef* object;
  const char* operation;  // none: a LocateRequest
  State state;
  Column column;
  Clock::time_point until;
  std::uint64_t expiration;
  bool has_name;
  std::int32_t retention;
  bool may_be_executed;
  unsigned failures;
  // The address that shall not be asked again, and connections to it that were given up.
  std::string left;
  unsigned leaves;
  // Where the last attempt went.
  std::string address;
};

struct Scope {
  std::int64_t duration_ms = -1;
  bool is_named = true;
  bool has_depth = false;
  CORBA::Long depth = 0;
};

thread_local std::vector<Call> calls;
thread_local Scope scope;

std::uint64_t time_t_now() {
  const auto since = std::chrono::system_clock::now().time_since_epoch();
  const auto ns = std::chrono::duration_cast<std::chrono::nanoseconds>(since).count();
  return TIME_T_OF_UNIX_EPOCH + static_cast<std::uint64_t>(std::max<std::int64_t>(ns, 0)) / 100;
}

milliseconds duration_here() {
  if (scope.duration_ms >= 0) return milliseconds(scope.duration_ms);
  std::lock_guard<std::mutex> lock(shared().mutex);
  return shared().duration;
}

// The group that a reference names.
bool group_of(const omniIOR* ior, Group& group) {
  if (!ior) return false;
  const IOP::TaggedProfileList& profiles = ior->iopProfiles();
  for (CORBA::ULong nth = 0; nth < profiles.length(); ++nth) {
    const _CORBA_Unbounded_Sequence_Octet& data = profiles[nth].profile_data;
    if (data.length() == 0) continue;
    const auto* begin = data.get_buffer();
    if (rules::group_of_profile(profiles[nth].tag, begin, data.length(), group)) return true;
  }
  return false;
}

// ---- Calls

// `limit`: omniORB's own time limit for the call, if it has one.
Call begin(const omniObjRef* object, const char* operation, Column column,
           const omni_time_t& limit) {
  milliseconds left = duration_here();
  if (limit.s != 0 || limit.ns != 0) {
    unsigned long s = 0, ns = 0;
    omni_thread::get_time(&s, &ns);
    const auto seconds = static_cast<std::int64_t>(limit.s) - static_cast<std::int64_t>(s);
    const auto rest = static_cast<std::int64_t>(limit.ns) - static_cast<std::int64_t>(ns);
    const std::int64_t ms = seconds * 1000 + rest / 1000000;
    left = std::min(left, milliseconds(std::max<std::int64_t>(ms, 0)));
  }
  const auto ticks = static_cast<std::uint64_t>(left.count()) * 10000;
  return Call{nullptr, object, operation, State::Begun, column, Clock::now() + left,
              time_t_now() + ticks, false, 0, false, 0, std::string(), 0, std::string()};
}

Column column_of(const Group* group, const std::string& address) {
  const bool remembers = group != nullptr || is_protected(address);
  if (remembers && scope.is_named) return Column::Named;
  return group != nullptr ? Column::Group : Column::Plain;
}

template <class Is>
Call* find(Is is) {
  // The innermost is the last.
  auto found = std::find_if(calls.rbegin(), calls.rend(), is);
  return found == calls.rend() ? nullptr : &*found;
}

void forget(const Call* call) {
  if (call) calls.erase(calls.begin() + (call - calls.data()));
}

Call* keep(const Call& call) {
  if (calls.size() >= CALLS_MAX) calls.erase(calls.begin());
  calls.push_back(call);
  return &calls.back();
}

// The call that a request belongs to. Descriptors are on the stack, so a new call may have the
// address of an old one; omniORB sets `currentAddress` of one that it sends again by itself, and
// of no new one.
Call* call_of(omniCallDescriptor& descriptor, const Group* group, const std::string& address) {
  const omniObjRef* object = descriptor.objref();
  const char* operation = descriptor.op();
  const bool is_sent_again = descriptor.currentAddress() != nullptr;
  Call* call = find([&](const Call& one) { return one.descriptor == &descriptor; });
  const bool is_it = call && call->object == object && call->operation == operation;
  if (is_it && (is_sent_again || call->state == State::Again)) return call;
  forget(call);
  // It failed before it could be sent.
  call = find([&](const Call& one) {
    return !one.descriptor && one.object == object && one.operation == operation &&
           one.state == State::Again;
  });
  if (!call) {
    // What is over is of no use any more.
    auto is_over = [](const Call& one) { return one.state == State::Done; };
    calls.erase(std::remove_if(calls.begin(), calls.end(), is_over), calls.end());
    const Column column = column_of(group, address);
    call = keep(begin(object, operation, column, descriptor.getDeadline()));
  }
  call->descriptor = &descriptor;
  return call;
}

void name(Call& call) {
  if (call.has_name) return;
  call.has_name = true;
  call.retention = static_cast<std::int32_t>(++last_retention);
  ++named_count;
}

// ---- Requests

void add(IOP::ServiceContextList& contexts, std::uint32_t id, const rules::Octets& data) {
  const CORBA::ULong at = contexts.length();
  contexts.length(at + 1);
  contexts[at].context_id = id;
  contexts[at].context_data.length(static_cast<CORBA::ULong>(data.size()));
  std::memcpy(contexts[at].context_data.get_buffer(), data.data(), data.size());
}

// Gives up a connection to an address that is to be left, and has omniORB take the next one.
void leave(Call& call, omni::GIOP_C& giop) {
  if (call.left.empty() || call.left != call.address || call.leaves >= LEAVES_MAX) return;
  const omni::giopAddress* here = giop.strand().address;
  if (giop.rope()->notifyCommFailure(here, 0) == here) return;  // there is no other one
  ++call.leaves;
  ++left_count;
  call.state = State::Again;
  giop.strand().state(omni::giopStrand::DYING);
  throw omni::giopStream::CommFailure(omni::COMM_FAILURE_MarshalArguments, CORBA::COMPLETED_NO, 1);
}

// An address that says nothing is not waited for until the time is over.
void limit_attempt(const Call& call, omni::GIOP_C& giop, const omni_time_t& limit) {
  const auto left = std::chrono::duration_cast<milliseconds>(call.until - Clock::now());
  milliseconds share = std::max(left / ATTEMPT_SHARES, ATTEMPT_MIN);
  if (share + ATTEMPT_MARGIN >= left) share = std::max(left, ATTEMPT_MIN);
  unsigned long s = 0, ns = 0;
  const auto whole = static_cast<unsigned long>(share.count());
  omni_thread::get_time(&s, &ns, whole / 1000, whole % 1000 * 1000000);
  const bool has_limit = limit.s != 0 || limit.ns != 0;
  const auto limit_s = static_cast<unsigned long>(limit.s);
  const auto limit_ns = static_cast<unsigned long>(limit.ns);
  const bool is_sooner = has_limit && (limit_s < s || (limit_s == s && limit_ns <= ns));
  if (!is_sooner) giop.setDeadline(omni_time_t(s, ns));
}

CORBA::Boolean send_request(omni::omniInterceptors::clientSendRequest_T::info_T& info) {
  omniCallDescriptor* descriptor = info.giop_c.calldescriptor();
  const omni::giopAddress* address = info.giop_c.strand().address;
  // Without an address it is a call back over a connection that the other side made.
  if (!descriptor || !address) return 1;
  if (scope.has_depth) {
    const auto depth = static_cast<std::uint32_t>(scope.depth);
    add(info.service_contexts, rules::FT_TRANSACTION_DEPTH, rules::one_number(depth));
  }
  Group group;
  const bool has_group = group_of(info.giop_c.ior(), group);
  const char* text = address->address();
  const std::string place = text ? text : "";
  Call* call = call_of(*descriptor, has_group ? &group : nullptr, place);
  call->address = place;
  leave(*call, info.giop_c);
  call->state = State::Sent;
  call->leaves = 0;
  if (!descriptor->currentAddress()) descriptor->currentAddress(address);
  if (has_group) {
    add(info.service_contexts, rules::FT_GROUP_VERSION, rules::one_number(group.version));
  }
  if (call->column == Column::Named) {
    name(*call);
    const std::string& client = shared().client_id;
    add(info.service_contexts, rules::FT_REQUEST,
        rules::ft_request(client, call->retention, call->expiration));
    limit_attempt(*call, info.giop_c, descriptor->getDeadline());
  }
  return 1;
}

// ---- Replies

// Takes the newer reference of the same group that is in a context. The reference is written in
// the byte order of the message, without an octet that tells it.
void take_reference(omniObjRef& object, const IOP::ServiceContext& context, bool little) {
  const CORBA::ULong size = context.context_data.length();
  if (size == 0) return;
  const CORBA::Octet* data = context.context_data.get_buffer();
  omniIOR_var own_ior = object._getIOR();
  Group told, own;
  if (!rules::group_of_reference(rules::Reader(data, size, little), told)) return;
  if (!group_of(own_ior, own) || !told.is_same(own) || told.version <= own.version) return;
  std::vector<std::uint64_t> aligned(size / 8 + 1);
  std::memcpy(aligned.data(), data, size);
  cdrMemoryStream stream(aligned.data(), size);
  stream.setByteSwapFlag(little);
  CORBA::Object_var fresh = CORBA::Object::_unmarshalObjRef(stream);
  if (CORBA::is_nil(fresh)) return;
  ++reference_count;
  omni::locationForward(&object, fresh._retn()->_PR_getobj(), 1);
}

CORBA::Boolean receive_reply(omni::omniInterceptors::clientReceiveReply_T::info_T& info) {
  omniCallDescriptor* descriptor = info.giop_c.calldescriptor();
  if (!descriptor) return 1;
  if (Call* call = find([&](const Call& one) { return one.descriptor == descriptor; })) {
    switch (info.giop_c.replyStatus()) {
      case GIOP::SYSTEM_EXCEPTION: call->state = State::Answered; break;
      case GIOP::NO_EXCEPTION:
      case GIOP::USER_EXCEPTION: call->state = State::Done; break;
      default: break;  // omniORB follows it, and sends the request again
    }
  }
  const IOP::ServiceContextList& contexts = info.service_contexts;
  for (CORBA::ULong nth = 0; nth < contexts.length(); ++nth) {
    if (contexts[nth].context_id != rules::FT_FORWARD || !descriptor->objref()) continue;
    try {
      const bool little = (omni::myByteOrder != 0) != (info.giop_c.unmarshal_byte_swap() != 0);
      take_reference(*descriptor->objref(), contexts[nth], little);
    } catch (...) {
      // The call goes on without it.
      omniORB::logs(5, "quorba_ft: a reply carries a reference that cannot be used.");
    }
    break;
  }
  return 1;
}

// ---- Exceptions

enum class Kind { OfTheWay, Timeout, Other };

Completed completed_of(const CORBA::SystemException& raised) {
  switch (raised.completed()) {
    case CORBA::COMPLETED_NO: return Completed::No;
    case CORBA::COMPLETED_YES: return Completed::Yes;
    default: return Completed::Maybe;
  }
}

[[noreturn]] void raise_maybe(const CORBA::SystemException& raised) {
  auto* original = const_cast<CORBA::SystemException*>(&raised);
  CORBA::Exception* copy = CORBA::Exception::_duplicate(original);
  std::unique_ptr<CORBA::Exception> owner(copy);
  auto* system = CORBA::SystemException::_downcast(copy);
  if (system) system->completed(CORBA::COMPLETED_MAYBE);
  copy->_raise();
  throw CORBA::UNKNOWN(0, CORBA::COMPLETED_MAYBE);
}

// A call that could not be sent at all.
Call* begin_failed(omniObjRef* object, const char* operation) {
  omniIOR_var ior = object->_getIOR();
  Group group;
  const bool has_group = group_of(ior, group);
  std::string address;
  if (omniIOR::IORInfo* info = ior->getIORInfo()) {
    if (!info->addresses().empty()) address = (*info->addresses().begin())->address();
  }
  const Column column = column_of(has_group ? &group : nullptr, address);
  return column == Column::Plain ? nullptr
                                 : keep(begin(object, operation, column, omni_time_t(0, 0)));
}

// `retries`: how often omniORB has asked before for this call.
Call* failed_call(omniObjRef* object, const char* operation, CORBA::ULong retries) {
  Call* call = find([&](const Call& one) {
    return one.object == object && one.operation == operation;
  });
  const bool is_of_old = call && retries == 0 && call->failures != 0;
  if (is_of_old) forget(call);
  return call && !is_of_old ? call : begin_failed(object, operation);
}

void prepare_next(Call& call, Kind kind, Completed completed) {
  const bool answered = call.state == State::Answered;
  if (completed == Completed::Maybe) call.may_be_executed = true;
  // A server remembers that it answered COMPLETED_NO to this name.
  if (answered && !call.may_be_executed) call.has_name = false;
  // omniORB itself leaves an address that breaks; not one that says no, or nothing.
  call.left = answered || kind == Kind::Timeout ? call.address : std::string();
  call.state = State::Again;
  if (++call.failures == 1 && !answered) return;
  const unsigned doublings = std::min(call.failures - 1, 8u);
  const auto pause = std::min(PAUSE_MIN * (1 << doublings), PAUSE_MAX);
  const auto left = std::chrono::duration_cast<milliseconds>(call.until - Clock::now());
  if (left.count() > 0) std::this_thread::sleep_for(std::min(pause, left));
}

// What omniORB tells a handler.
struct Failure {
  CORBA::ULong retries;
  CORBA::Object_ptr target;
  const char* operation;
  const CORBA::SystemException& raised;
};

// Whether omniORB shall call again.
bool failed(const Failure& failure, Kind kind, bool by_default) {
  if (CORBA::is_nil(failure.target)) return by_default;
  omniObjRef* object = failure.target->_PR_getobj();
  Call* call = failed_call(object, failure.operation, failure.retries);
  if (!call || call->column == Column::Plain) {
    if (!by_default) forget(call);
    else if (call) call->state = State::Again;
    return by_default;
  }
  Completed completed = completed_of(failure.raised);
  // The reply had come in part: the next one is whole.
  if (call->state == State::Done && completed == Completed::Yes) completed = Completed::Maybe;
  // To locate an object changes nothing.
  if (!failure.operation) completed = Completed::No;
  const bool is_silence = kind == Kind::Timeout && call->state != State::Answered;
  const bool of_the_way = kind == Kind::OfTheWay || is_silence;
  if (rules::may_repeat(call->column, of_the_way, completed) && Clock::now() < call->until) {
    prepare_next(*call, kind, completed);
    ++again_count;
    return true;
  }
  const bool is_unknown = call->may_be_executed && completed == Completed::No;
  forget(call);
  if (is_unknown) raise_maybe(failure.raised);
  return false;
}

CORBA::Boolean on_transient(void*, CORBA::ULong retries, const CORBA::TRANSIENT& raised,
                            CORBA::Object_ptr target, const char* operation) {
  const bool is_back = raised.minor() == omni::TRANSIENT_FailedOnForwarded;
  const bool is_silence = raised.minor() == omni::TRANSIENT_CallTimedout;
  const Kind kind = is_silence ? Kind::Timeout : Kind::OfTheWay;
  const bool again = failed(Failure{retries, target, operation, raised}, kind, is_back);
  const bool is_ours = find([&](const Call& one) {
    return one.object == target->_PR_getobj() && one.column != Column::Plain;
  }) != nullptr;
  // As omniORB does it by itself: slowly, when it comes again and again.
  if (again && !is_ours) std::this_thread::sleep_for(std::chrono::seconds(std::min(retries, 30u)));
  return again;
}

CORBA::Boolean on_comm_failure(void*, CORBA::ULong retries, const CORBA::COMM_FAILURE& raised,
                               CORBA::Object_ptr target, const char* operation) {
  return failed(Failure{retries, target, operation, raised}, Kind::OfTheWay, false);
}

CORBA::Boolean on_timeout(void*, CORBA::ULong retries, const CORBA::TIMEOUT& raised,
                          CORBA::Object_ptr target, const char* operation) {
  return failed(Failure{retries, target, operation, raised}, Kind::Timeout, false);
}

CORBA::Boolean on_other(void*, CORBA::ULong retries, const CORBA::SystemException& raised,
                        CORBA::Object_ptr target, const char* operation) {
  const bool of_the_way = CORBA::NO_RESPONSE::_downcast(&raised) != nullptr ||
                          CORBA::OBJ_ADAPTER::_downcast(&raised) != nullptr;
  const Kind kind = of_the_way ? Kind::OfTheWay : Kind::Other;
  return failed(Failure{retries, target, operation, raised}, kind, false);
}

// ---- Installation

std::string made_up_client_id() {
  char host[64] = "";
  gethostname(host, sizeof host - 1);
  std::random_device chance;
  const auto now = std::chrono::system_clock::now().time_since_epoch().count();
  return "omniORB/" + std::string(host) + "/" + std::to_string(getpid()) + "/" +
         std::to_string(now) + "/" + std::to_string(chance());
}

void check(const std::string& gateway) {
  const std::size_t colon = gateway.rfind(':');
  if (colon == std::string::npos || colon == 0 || colon + 1 == gateway.size()) {
    throw CORBA::BAD_PARAM(0, CORBA::COMPLETED_NO);
  }
}

}  // namespace

void install(const Options& options) {
  if (options.client_id.size() > CLIENT_ID_BYTES_MAX) {
    throw CORBA::BAD_PARAM(0, CORBA::COMPLETED_NO);
  }
  for (const std::string& gateway : options.gateways) check(gateway);
  std::lock_guard<std::mutex> lock(shared().mutex);
  shared().duration = std::max(options.duration, milliseconds(0));
  for (const std::string& gateway : options.gateways) {
    shared().gateways.insert("giop:tcp:" + gateway);
    shared().gateways.insert("giop:ssl:" + gateway);
  }
  if (shared().client_id.empty()) {
    shared().client_id = options.client_id.empty() ? made_up_client_id() : options.client_id;
  }
  // They go with an ORB that is destroyed, but may still be there.
  omni::omniInterceptors* interceptors = omniORB::getInterceptors();
  interceptors->clientSendRequest.remove(send_request);
  interceptors->clientReceiveReply.remove(receive_reply);
  interceptors->clientSendRequest.add(send_request);
  interceptors->clientReceiveReply.add(receive_reply);
  omniORB::installTransientExceptionHandlerExt(nullptr, on_transient);
  omniORB::installCommFailureExceptionHandlerExt(nullptr, on_comm_failure);
  omniORB::installTimeoutExceptionHandlerExt(nullptr, on_timeout);
  omniORB::installSystemExceptionHandlerExt(nullptr, on_other);
}

void protect(CORBA::Object_ptr object) {
  if (CORBA::is_nil(object)) return;
  omniIOR_var ior = object->_PR_getobj()->_getIOR();
  omniIOR::IORInfo* info = ior->getIORInfo();
  if (!info) return;
  std::lock_guard<std::mutex> lock(shared().mutex);
  for (auto at = info->addresses().begin(); at != info->addresses().end(); ++at) {
    if (const char* address = (*at)->address()) shared().gateways.insert(address);
  }
}

within::within(milliseconds duration) : before_(scope.duration_ms) {
  scope.duration_ms = std::max<std::int64_t>(duration.count(), 0);
}
within::~within() { scope.duration_ms = before_; }

unnamed::unnamed() : before_(scope.is_named) { scope.is_named = false; }
unnamed::~unnamed() { scope.is_named = before_; }

depth::depth(CORBA::Long replicas) : was_set_(scope.has_depth), before_(scope.depth) {
  scope.has_depth = true;
  scope.depth = replicas;
}
depth::~depth() {
  scope.has_depth = was_set_;
  scope.depth = before_;
}

Figures figures() {
  return Figures{named_count.load(), again_count.load(), left_count.load(),
                 reference_count.load()};
}

}  // namespace quorba_ft
