// A shop's server: an ordinary omniORB program that calls other servers while it executes a call.
//
// usage: shop_server [ORB options] --bank REFERENCE [--partner REFERENCE]
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <iostream>
#include <mutex>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "bank.hh"
#include "shop.hh"

namespace {

struct Options {
  std::string bank;
  std::string partner;
};

// One call that changes something at a time, as it is replicated. The lock is not held while
// another server is called: that one may ask for the orders meanwhile, on another connection.
class ShopServant : public POA_Bank::Shop {
 public:
  ShopServant(Bank::Ledger_ptr bank, Bank::Shop_ptr partner)
      : bank_(Bank::Ledger::_duplicate(bank)), partner_(Bank::Shop::_duplicate(partner)) {}

  CORBA::LongLong buy(CORBA::LongLong amount, const char* reference,
                      CORBA::ULongLong& number) override {
    CORBA::LongLong balance;
    try {
      balance = bank_->deposit("shop", amount, reference);
      number = bank_->increment(reference);
    } catch (const CORBA::UserException&) {
      throw CORBA::UNKNOWN(0, CORBA::COMPLETED_YES);
    }
    std::ostringstream order;
    order << reference << ' ' << balance << ' ' << number;
    add(order.str());
    return balance;
  }

  CORBA::ULong pass_on(CORBA::ULong depth, const char* reference) override {
    CORBA::ULong shops = 0;
    if (depth > 0 && !CORBA::is_nil(partner_)) shops = partner_->pass_on(depth - 1, reference);
    add(std::string(reference) + ' ' + std::to_string(shops));
    return shops + 1;
  }

  CORBA::ULong reflect(const char* reference) override {
    add(std::string(reference) + " begins");
    CORBA::ULong seen = CORBA::is_nil(partner_) ? 0 : partner_->look_back(reference);
    add(std::string(reference) + ' ' + std::to_string(seen));
    return seen;
  }

  CORBA::ULong look_back(const char* reference) override {
    CORBA::ULong lines = 0;
    if (!CORBA::is_nil(partner_)) {
      FT::State_var text = partner_->orders();
      std::string orders(reinterpret_cast<const char*>(text->get_buffer()), text->length());
      if (!orders.empty()) lines = 1 + std::count(orders.begin(), orders.end(), '\n');
    }
    add(std::string(reference) + ' ' + std::to_string(lines));
    return lines;
  }

  FT::State* orders() override { return get_state(); }

  FT::State* get_state() override {
    std::lock_guard<std::mutex> guard(lock_);
    std::string text;
    for (const std::string& order : orders_) text += order + '\n';
    if (!text.empty()) text.pop_back();
    FT::State_var state = new FT::State;
    state->length(static_cast<CORBA::ULong>(text.size()));
    std::memcpy(state->get_buffer(), text.data(), text.size());
    return state._retn();
  }

  void set_state(const FT::State& state) override {
    std::string text(reinterpret_cast<const char*>(state.get_buffer()), state.length());
    std::lock_guard<std::mutex> guard(lock_);
    orders_.clear();
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) orders_.push_back(line);
  }

 private:
  void add(const std::string& order) {
    std::lock_guard<std::mutex> guard(lock_);
    orders_.push_back(order);
  }

  std::mutex lock_;
  Bank::Ledger_var bank_;
  Bank::Shop_var partner_;
  std::vector<std::string> orders_;
};

Options parse(int argc, char** argv) {
  Options options;
  for (int at = 1; at < argc; at += 2) {
    std::string name = argv[at];
    if (at + 1 >= argc) throw std::invalid_argument(name + " needs a value");
    if (name == "--bank") options.bank = argv[at + 1];
    else if (name == "--partner") options.partner = argv[at + 1];
    else throw std::invalid_argument("unknown option " + name);
  }
  if (options.bank.empty()) throw std::invalid_argument("--bank is missing");
  return options;
}

// To narrow asks the other server, so that one has to be up.
Bank::Ledger_ptr find_bank(CORBA::ORB_ptr orb, const std::string& text) {
  CORBA::Object_var object = orb->string_to_object(text.c_str());
  Bank::Ledger_ptr bank = Bank::Ledger::_narrow(object);
  if (CORBA::is_nil(bank)) throw std::invalid_argument(text + " is no bank");
  return bank;
}

// Two partners would wait for each other if both asked, so the reference is believed.
Bank::Shop_ptr find_partner(CORBA::ORB_ptr orb, const std::string& text) {
  if (text.empty()) return Bank::Shop::_nil();
  CORBA::Object_var object = orb->string_to_object(text.c_str());
  return Bank::Shop::_unchecked_narrow(object);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    // A default; the same option on the command line wins. The state may be long.
    const char* defaults[][2] = {{"giopMaxMsgSize", "16777216"}, {nullptr, nullptr}};
    CORBA::ORB_var orb = CORBA::ORB_init(argc, argv, "omniORB4", defaults);
    Options options = parse(argc, argv);
    Bank::Ledger_var bank = find_bank(orb, options.bank);
    Bank::Shop_var partner = find_partner(orb, options.partner);

    // This adapter's object keys are the plain names: corbaloc::HOST:PORT/shop.
    CORBA::Object_var object = orb->resolve_initial_references("omniINSPOA");
    PortableServer::POA_var poa = PortableServer::POA::_narrow(object);
    PortableServer::Servant_var<ShopServant> servant = new ShopServant(bank, partner);
    PortableServer::ObjectId_var id = PortableServer::string_to_ObjectId("shop");
    poa->activate_object_with_id(id, servant);
    PortableServer::POAManager_var manager = poa->the_POAManager();
    manager->activate();

    std::cout << "READY" << std::endl;
    orb->run();
    return 0;
  } catch (const CORBA::SystemException& e) {
    std::cerr << "shop_server: " << e._rep_id() << " minor " << std::hex << e.minor() << std::endl;
  } catch (const std::exception& e) {
    std::cerr << "shop_server: " << e.what() << std::endl;
  }
  return 1;
}
