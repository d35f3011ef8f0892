#pragma once

// A service on a virtual clock behind an Admission: places that work at a given speed, and tenants
// that send requests at given rates. Every number it gives depends on its seed alone.

#include <algorithm>
#include <map>
#include <queue>
#include <random>
#include <vector>

#include "admission/admission.h"

namespace sluice::admission {

struct Traffic {
    std::string tenant;
    double requests_per_second = 0;
    double mean_prompt = 500;
    double mean_completion = 200;
    std::uint64_t max_tokens = 4'096;
    Duration deadline = std::chrono::seconds(20);
};

struct TenantOutcome {
    std::uint64_t sent = 0;
    std::uint64_t good = 0;     ///< Complete before their deadlines.
    std::uint64_t late = 0;     ///< Complete, but after it, or given up on the way.
    std::uint64_t expired = 0;  ///< Passed away in the queue.
    std::uint64_t refused = 0;
    std::uint64_t gave_way = 0;
    double good_tokens = 0;
    std::vector<double> latencies;  ///< Of the good ones, seconds.

    [[nodiscard]] double p99() const {
        if (latencies.empty()) return 0;
        std::vector<double> sorted = latencies;
        std::ranges::sort(sorted);
        return sorted[(sorted.size() - 1) * 99 / 100];
    }
};

class ServiceSimulator {
public:
    /// `places` requests run at a time, each computing `prefill` and then `decode` tokens a second.
    ServiceSimulator(AdmissionOptions options, std::size_t places, double prefill, double decode)
        : admission_(std::move(options)), places_(places), prefill_(prefill), decode_(decode) {}

    std::map<std::string, TenantOutcome> run(const std::vector<Traffic>& traffic, Duration length,
                                             std::uint64_t seed) {
        std::mt19937_64 random(seed);
        for (const Traffic& each : traffic) {
            Instant at{};
            std::exponential_distribution<double> gap(each.requests_per_second);
            while ((at += seconds(gap(random))) < Instant{} + length) {
                arrivals_.emplace(at, draw(each, at, random));
            }
        }
        while (step()) {
        }
        return std::move(outcomes_);
    }

    [[nodiscard]] std::size_t most_waiting() const { return most_waiting_; }
    [[nodiscard]] std::size_t most_bytes() const { return most_bytes_; }
    [[nodiscard]] const Admission& admission() const { return admission_; }

private:
    struct Request {
        std::string tenant;
        Instant arrival;
        Instant deadline;
        std::uint64_t prompt = 0;
        std::uint64_t completion = 0;
        std::uint64_t max_tokens = 0;
    };

    static Duration seconds(double value) {
        return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(value));
    }

    static Request draw(const Traffic& traffic, Instant at, std::mt19937_64& random) {
        std::exponential_distribution<double> prompt(1 / traffic.mean_prompt);
        std::exponential_distribution<double> completion(1 / traffic.mean_completion);
        return {.tenant = traffic.tenant,
                .arrival = at,
                .deadline = at + traffic.deadline,
                .prompt = 1 + static_cast<std::uint64_t>(prompt(random)),
                .completion = std::min(traffic.max_tokens,
                                       1 + static_cast<std::uint64_t>(completion(random))),
                .max_tokens = traffic.max_tokens};
    }

    /// One event: an arrival, an end or a deadline. False if nothing is left to happen.
    bool step() {
        const Instant arrival = arrivals_.empty() ? Instant::max() : arrivals_.begin()->first;
        const Instant end = running_.empty() ? Instant::max() : running_.begin()->first;
        const Instant now = std::min({arrival, end, admission_.next_deadline()});
        if (now == Instant::max()) return false;
        for (const Ticket ticket : admission_.expire(now)) ++outcome(forget(ticket)).expired;
        if (end <= now) {
            finish(running_.begin()->second, now);
            running_.erase(running_.begin());
        } else if (arrival <= now) {
            const Request request = arrivals_.begin()->second;
            arrivals_.erase(arrivals_.begin());
            arrive(request, now);
        }
        while (running_.size() < places_) {
            const auto ticket = admission_.next(now);
            if (!ticket) break;
            const Request& request = requests_.at(*ticket);
            const double work = static_cast<double>(request.prompt) / prefill_ +
                                static_cast<double>(request.completion) / decode_;
            // Clients leave at their deadline, and their work is lost.
            running_.emplace(std::min(now + seconds(work), request.deadline), *ticket);
            complete_[*ticket] = now + seconds(work) <= request.deadline;
        }
        most_waiting_ = std::max(most_waiting_, admission_.waiting());
        most_bytes_ = std::max(most_bytes_, admission_.waiting_bytes());
        return true;
    }

    void arrive(const Request& request, Instant now) {
        TenantOutcome& at = outcome(request);
        ++at.sent;
        const auto admitted = admission_.submit({.tenant = *admission_.tenant(request.tenant),
                                                 .prompt_tokens = request.prompt,
                                                 .max_tokens = request.max_tokens,
                                                 .bytes = request.prompt * 4,
                                                 .deadline = request.deadline},
                                                now);
        if (!admitted) {
            ++at.refused;
            return;
        }
        for (const Ticket ticket : admitted->gave_way) ++outcome(forget(ticket)).gave_way;
        requests_.emplace(admitted->ticket, request);
    }

    void finish(Ticket ticket, Instant now) {
        const bool complete = complete_.at(ticket);
        complete_.erase(ticket);
        const Request request = forget(ticket);
        admission_.finish(ticket,
                          {.prompt_tokens = request.prompt,
                           .completion_tokens = request.completion,
                           .complete = complete},
                          now);
        TenantOutcome& at = outcome(request);
        if (!complete) {
            ++at.late;
            return;
        }
        ++at.good;
        at.good_tokens += static_cast<double>(request.prompt + request.completion);
        at.latencies.push_back(std::chrono::duration<double>(now - request.arrival).count());
    }

    Request forget(Ticket ticket) { return requests_.extract(ticket).mapped(); }
    TenantOutcome& outcome(const Request& request) { return outcomes_[request.tenant]; }

    Admission admission_;
    std::size_t places_;
    double prefill_;
    double decode_;
    std::multimap<Instant, Request> arrivals_;
    std::multimap<Instant, Ticket> running_;
    std::map<Ticket, bool> complete_;
    std::map<Ticket, Request> requests_;
    std::map<std::string, TenantOutcome> outcomes_;
    std::size_t most_waiting_ = 0;
    std::size_t most_bytes_ = 0;
};

}  // namespace sluice::admission
