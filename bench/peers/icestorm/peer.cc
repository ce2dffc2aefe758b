// A supplier and consumers of a topic of IceStorm, for `quorba lab run huang2005`: both in one
// process, so that there is one clock, as the laboratory's own supplier and consumers are.
//
//   icestorm_peer PORT CONSUMERS AHEAD WARM_UP EVENTS
//
// The supplier publishes WARM_UP events, says READY, waits for a line, publishes EVENTS more and
// prints the nanoseconds that all of them took until every consumer had them. It is at most AHEAD
// events before the slowest consumer. With AHEAD 0 each event is waited for, and its nanoseconds
// are printed, too, each on a line. Every call is answered, to the topic and to the consumers.
#include <Ice/Ice.h>
#include <IceStorm/IceStorm.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <iostream>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "Event.h"

using Clock = std::chrono::steady_clock;

namespace {

constexpr int EVENT_LEN = 1000;

struct Progress {
    std::mutex mutex;
    std::condition_variable changed;
    std::vector<int> had;
    Clock::time_point last;

    int slowest() const {
        int least = had.front();
        for (int one : had) least = std::min(least, one);
        return least;
    }

    // Waits until every consumer has had so many; when the last one had.
    Clock::time_point await(int wanted) {
        std::unique_lock lock(mutex);
        changed.wait(lock, [&] { return slowest() >= wanted; });
        return last;
    }
};

class Consumer : public Measured::Consumer {
public:
    Consumer(Progress& progress, int index) : progress_(progress), index_(index) {}

    // Threads may take two events of one consumer in another order.
    void push(int, std::string, const Ice::Current&) override {
        const auto at = Clock::now();
        std::lock_guard lock(progress_.mutex);
        ++progress_.had[index_];
        progress_.last = at;
        progress_.changed.notify_one();
    }

private:
    Progress& progress_;
    int index_;
};

}  // namespace

int main(int argc, char** argv) try {
    if (argc != 6) {
        std::cerr << "usage: icestorm_peer PORT CONSUMERS AHEAD WARM_UP EVENTS\n";
        return 2;
    }
    const int consumers = std::stoi(argv[2]), ahead = std::stoi(argv[3]);
    const int warm_up = std::stoi(argv[4]), events = std::stoi(argv[5]);
    auto properties = Ice::createProperties();
    // As many threads as there are consumers: one of them keeps no other waiting.
    properties->setProperty("Ice.ThreadPool.Server.Size", std::to_string(consumers));
    properties->setProperty("Ice.ThreadPool.Server.SizeMax", std::to_string(consumers));
    properties->setProperty("Ice.ThreadPool.Server.SizeWarn", "0");
    Ice::InitializationData data;
    data.properties = properties;
    Ice::CommunicatorHolder communicator(data);
    const std::string manager = "IceStorm/TopicManager:tcp -h 127.0.0.1 -p " + std::string(argv[1]);
    auto topics = Ice::checkedCast<IceStorm::TopicManagerPrx>(communicator->stringToProxy(manager));
    if (!topics) {
        std::cerr << "icestorm_peer: there is no IceStorm at port " << argv[1] << '\n';
        return 1;
    }
    std::shared_ptr<IceStorm::TopicPrx> topic;
    try {
        topic = topics->create("measured");
    } catch (const IceStorm::TopicExists&) {
        topic = topics->retrieve("measured");
    }
    auto adapter = communicator->createObjectAdapterWithEndpoints("consumers", "tcp -h 127.0.0.1");
    Progress progress;
    progress.had.assign(consumers, 0);
    for (int index = 0; index < consumers; ++index) {
        auto proxy = adapter->addWithUUID(std::make_shared<Consumer>(progress, index));
        topic->subscribeAndGetPublisher({}, proxy->ice_twoway());
    }
    adapter->activate();
    auto publisher = Ice::uncheckedCast<Measured::ConsumerPrx>(topic->getPublisher()->ice_twoway());
    const std::string text(EVENT_LEN, 'x');
    int number = 0;
    auto publish = [&](int count) {
        for (int index = 0; index < count; ++index) {
            ++number;
            const auto began = Clock::now();
            publisher->push(number, text);
            if (ahead == 0) {
                const auto came = progress.await(number);
                const std::chrono::nanoseconds took = came - began;
                if (number > warm_up) std::cout << took.count() << '\n';
            } else {
                progress.await(number - ahead);
            }
        }
        progress.await(number);
    };
    publish(warm_up);
    std::cout << "READY" << std::endl;
    std::string line;
    std::getline(std::cin, line);
    const auto began = Clock::now();
    publish(events);
    const std::chrono::nanoseconds took = Clock::now() - began;
    std::cout << took.count() << std::endl;
    return 0;
} catch (const std::exception& error) {
    std::cerr << "icestorm_peer: " << error.what() << '\n';
    return 1;
}
