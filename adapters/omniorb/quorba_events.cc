#include "quorba_events.h"

#include <chrono>

#include "quorba_ft.h"

namespace quorba_ft {
namespace {

// Types of TAO's filters (Event_Service_Constants).
const CORBA::Long ANY_TYPE = 0;
const CORBA::Long CONJUNCTION = 8;
// TimeT of the POSIX epoch.
const RtecEventComm::Time TIME_T_OF_UNIX_EPOCH = 0x01B21DD213814000;

RtecEventComm::Time now() {
  const auto since = std::chrono::system_clock::now().time_since_epoch();
  const auto ns = std::chrono::duration_cast<std::chrono::nanoseconds>(since).count();
  return TIME_T_OF_UNIX_EPOCH + static_cast<RtecEventComm::Time>(ns) / 100;
}

bool ends_with(const std::string& text, const std::string& end) {
  return text.size() >= end.size() &&
         text.compare(text.size() - end.size(), end.size(), end) == 0;
}

// The object of a channel that `end` names; another reference than a corbaloc is left as it is.
CORBA::Object_ptr object(CORBA::ORB_ptr orb, std::string reference, const std::string& end) {
  const bool is_corbaloc = reference.compare(0, 9, "corbaloc:") == 0;
  for (const char* other : {"/ft", "/numbered", "/rtec"}) {
    if (!is_corbaloc || !ends_with(reference, other)) continue;
    reference.resize(reference.size() - std::string(other).size());
    break;
  }
  if (is_corbaloc) reference += end;
  CORBA::Object_var found = orb->string_to_object(reference.c_str());
  if (CORBA::is_nil(found)) throw CORBA::INV_OBJREF(0, CORBA::COMPLETED_NO);
  if (is_corbaloc) protect(found);
  return found._retn();
}

// The corbaloc by which pushes to a channel go past the order; empty if there can be none.
std::string past_the_order(const std::string& channel) {
  const std::string ordered = "/Events/";
  const std::size_t at = channel.rfind(ordered);
  if (channel.compare(0, 9, "corbaloc:") != 0 || at == std::string::npos) return std::string();
  return channel.substr(0, at) + "/Unordered/" + channel.substr(at + ordered.size());
}

}  // namespace

Facade_ptr facade(CORBA::ORB_ptr orb, const std::string& reference) {
  CORBA::Object_var found = object(orb, reference, "/ft");
  return Facade::_unchecked_narrow(found);
}

RtecEventChannelAdmin::ConsumerQOS all_events() {
  RtecEventChannelAdmin::ConsumerQOS wanted;
  wanted.is_gateway = false;
  wanted.dependencies.length(1);
  RtecEventComm::EventHeader& header = wanted.dependencies[0].event.header;
  header.type = ANY_TYPE;
  header.source = 0;
  header.ttl = 1;
  header.creation_time = header.ec_recv_time = header.ec_send_time = 0;
  wanted.dependencies[0].event.data.pad1 = 0;
  wanted.dependencies[0].rt_info = 0;
  return wanted;
}

Id* subscribe(FtRtecEventChannelAdmin::EventChannelFacade_ptr channel,
              RtecEventComm::PushConsumer_ptr consumer,
              const RtecEventChannelAdmin::ConsumerQOS& wanted) {
  return channel->connect_push_consumer(consumer, wanted);
}

// The facade calls what a consumer is connected to its supplier.
void unsubscribe(FtRtecEventChannelAdmin::EventChannelFacade_ptr channel, const Id& id) {
  channel->disconnect_push_supplier(id);
}

Supplier::Supplier(FtRtecEventChannelAdmin::EventChannelFacade_ptr channel,
                   RtecEventComm::PushSupplier_ptr supplier,
                   const RtecEventChannelAdmin::SupplierQOS& offered)
    : channel_(FtRtecEventChannelAdmin::EventChannelFacade::_duplicate(channel)),
      id_(channel->connect_push_supplier(supplier, offered)) {}

Supplier::Supplier(CORBA::ORB_ptr orb, const std::string& channel,
                   RtecEventComm::PushSupplier_ptr supplier,
                   const RtecEventChannelAdmin::SupplierQOS& offered) {
  const std::string past = past_the_order(channel);
  if (!past.empty()) {
    channel_ = facade(orb, past);
    try {
      id_ = channel_->connect_push_supplier(supplier, offered);
      return;
    } catch (const CORBA::OBJECT_NOT_EXIST&) {
      // Nothing was connected: the channel is reliable, or there is none.
    }
  }
  channel_ = facade(orb, channel);
  id_ = channel_->connect_push_supplier(supplier, offered);
}

void Supplier::push(const RtecEventComm::EventSet& events) { channel_->push(id_, events); }

void Supplier::push(const CORBA::Any& value, CORBA::Long type, CORBA::Long source) {
  RtecEventComm::EventSet events;
  events.length(1);
  RtecEventComm::EventHeader& header = events[0].header;
  header.type = type;
  header.source = source;
  header.ttl = 1;
  header.creation_time = now();
  header.ec_recv_time = header.ec_send_time = 0;
  events[0].data.pad1 = 0;
  events[0].data.any_value = value;
  push(events);
}

void Supplier::disconnect() { channel_->disconnect_push_consumer(id_); }

void Once::push_numbered(QuorbaEvents::Number first, const RtecEventComm::EventSet& data) {
  std::lock_guard<std::mutex> lock(mutex_);
  const CORBA::ULong count = data.length();
  const QuorbaEvents::Number known = last_ >= first ? last_ - first + 1 : 0;
  if (known >= count) return;
  const auto skipped = static_cast<CORBA::ULong>(known);
  RtecEventComm::EventSet rest;
  rest.length(count - skipped);
  for (CORBA::ULong nth = skipped; nth < count; ++nth) rest[nth - skipped] = data[nth];
  events(rest);
  last_ = first + count - 1;
}

void Once::push(const RtecEventComm::EventSet&) {
  // Only `subscribe` of a consumer that wanted `subscribe_once` leads here.
  throw CORBA::BAD_INV_ORDER(0, CORBA::COMPLETED_NO);
}

Id* subscribe_once(CORBA::ORB_ptr orb, const std::string& channel,
                   QuorbaEvents::NumberedConsumer_ptr consumer,
                   const RtecEventChannelAdmin::ConsumerQOS& wanted) {
  // The events of a conjunction have one number together, which their number does not tell.
  for (CORBA::ULong nth = 0; nth < wanted.dependencies.length(); ++nth) {
    const CORBA::Long type = wanted.dependencies[nth].event.header.type;
    if (type == CONJUNCTION) throw CORBA::BAD_PARAM(0, CORBA::COMPLETED_NO);
  }
  CORBA::Object_var found = object(orb, channel, "/numbered");
  QuorbaEvents::NumberedChannel_var numbered =
      QuorbaEvents::NumberedChannel::_unchecked_narrow(found);
  return numbered->connect_numbered_consumer(consumer, wanted);
}

}  // namespace quorba_ft
