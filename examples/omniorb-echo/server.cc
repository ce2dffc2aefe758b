// Returns what it was given, as fast as omniORB can: the far end of a latency measurement.
//
// It keeps nothing between calls; an empty state is handed out at the object key "state", so that
// it can be replicated in every style.
//
// usage: echo_server [ORB options]
#include <iostream>

#include "echo.hh"
#include "ft-checkpointable.hh"

namespace {

class EchoServant : public POA_EchoService {
 public:
  EchoService::Longs* echo(const EchoService::Longs& values) override {
    return new EchoService::Longs(values);
  }
};

class EmptyState : public POA_FT::Checkpointable {
 public:
  FT::State* get_state() override { return new FT::State; }
  void set_state(const FT::State& state) override {
    if (state.length() != 0) throw FT::InvalidState();
  }
};

}  // namespace

int main(int argc, char** argv) {
  try {
    CORBA::ORB_var orb = CORBA::ORB_init(argc, argv);
    // This adapter's object keys are the plain names: corbaloc::HOST:PORT/echo.
    CORBA::Object_var object = orb->resolve_initial_references("omniINSPOA");
    PortableServer::POA_var poa = PortableServer::POA::_narrow(object);
    PortableServer::Servant_var<EchoServant> servant = new EchoServant;
    PortableServer::ObjectId_var id = PortableServer::string_to_ObjectId("echo");
    poa->activate_object_with_id(id, servant);
    PortableServer::Servant_var<EmptyState> state = new EmptyState;
    PortableServer::ObjectId_var state_id = PortableServer::string_to_ObjectId("state");
    poa->activate_object_with_id(state_id, state);
    PortableServer::POAManager_var manager = poa->the_POAManager();
    manager->activate();

    std::cout << "READY" << std::endl;
    orb->run();
    return 0;
  } catch (const CORBA::SystemException& e) {
    std::cerr << "echo_server: " << e._rep_id() << " minor " << std::hex << e.minor() << std::endl;
    return 1;
  }
}
