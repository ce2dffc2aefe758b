// Channels of a fault-tolerant event service by one call (Huang and Gill 3.8, 3.9): to obtain the
// admin, to obtain the proxy and to connect are one operation of the facade,
// FtRtecEventChannelAdmin::EventChannel; of Quorba `Events/NAME/ft`.
//
// It needs quorba_ft.cc, and stubs of FtRtecEventChannelAdmin.idl and Events.idl with what they
// include. The functions raise what the operations do.
#ifndef QUORBA_EVENTS_H
#define QUORBA_EVENTS_H

#include <mutex>
#include <string>

#include "Events.hh"
#include "FtRtecEventChannelAdmin.hh"

namespace quorba_ft {

using Facade = FtRtecEventChannelAdmin::EventChannel;
using Facade_ptr = FtRtecEventChannelAdmin::EventChannel_ptr;
using Id = FtRtecEventComm::ObjectId;

// The facade behind a reference to it, or behind a corbaloc of a channel (`.../Events/NAME`), whose
// gateways are protected by that. Nobody is called. Raises INV_OBJREF if it is nil.
Facade_ptr facade(CORBA::ORB_ptr orb, const std::string& reference);

// What a consumer wants that wants all events. What it wants of types and sources, by TAO's rules,
// is written into the parts of a ConsumerQOS as for TAO.
RtecEventChannelAdmin::ConsumerQOS all_events();

// `consumer` is pushed to from now on. The id is the caller's to free, as of any CORBA call.
Id* subscribe(FtRtecEventChannelAdmin::EventChannelFacade_ptr channel,
              RtecEventComm::PushConsumer_ptr consumer,
              const RtecEventChannelAdmin::ConsumerQOS& wanted = all_events());
void unsubscribe(FtRtecEventChannelAdmin::EventChannelFacade_ptr channel, const Id& id);

// One that pushes. It need not be an object: `supplier` may be nil, and is told when the channel
// disconnects it.
class Supplier {
 public:
  explicit Supplier(FtRtecEventChannelAdmin::EventChannelFacade_ptr channel,
                    RtecEventComm::PushSupplier_ptr supplier = RtecEventComm::PushSupplier::_nil(),
                    const RtecEventChannelAdmin::SupplierQOS& offered =
                        RtecEventChannelAdmin::SupplierQOS());
  // The same of a channel by its corbaloc (`.../Events/NAME`). If the channel is not reliable its
  // pushes go past the order, to the member that leads: they cost a call of one server.
  Supplier(CORBA::ORB_ptr orb, const std::string& channel,
           RtecEventComm::PushSupplier_ptr supplier = RtecEventComm::PushSupplier::_nil(),
           const RtecEventChannelAdmin::SupplierQOS& offered =
               RtecEventChannelAdmin::SupplierQOS());
  // With a reply, so that it is known that the channel has the events.
  void push(const RtecEventComm::EventSet& events);
  void push(const CORBA::Any& value, CORBA::Long type, CORBA::Long source);
  // Not done when it is destroyed, because the call may fail.
  void disconnect();

 private:
  FtRtecEventChannelAdmin::EventChannelFacade_var channel_;
  FtRtecEventComm::ObjectId_var id_;
};

// A consumer that is given each event of a reliable channel of Quorba exactly once: what is pushed
// to it again is left out. Derive from it, activate it, and connect it with `subscribe_once`.
// Numbers begin anew with each subscription: take a new object for each, also of one channel.
class Once : public virtual POA_QuorbaEvents::NumberedConsumer {
 public:
  void push_numbered(QuorbaEvents::Number first, const RtecEventComm::EventSet& data) override;
  void push(const RtecEventComm::EventSet& data) override;

 protected:
  // Sets come in their order, and not two at a time. If it raises an exception the set comes again.
  virtual void events(const RtecEventComm::EventSet& data) = 0;

 private:
  std::mutex mutex_;
  QuorbaEvents::Number last_ = 0;
};

Id* subscribe_once(CORBA::ORB_ptr orb, const std::string& channel,
                   QuorbaEvents::NumberedConsumer_ptr consumer,
                   const RtecEventChannelAdmin::ConsumerQOS& wanted = all_events());

}  // namespace quorba_ft

#endif
